#!/usr/bin/env bash
# The reporting step: the only one that has the token. It runs no code of the change, and whatever
# goes wrong in it is a warning.
set -euo pipefail
action=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=gate/action/lib.sh
. "$action/gate/action/lib.sh"
: "${GITHUB_OUTPUT:=/dev/null}" "${GITHUB_WORKSPACE:=$PWD}" "${RUNNER_TEMP:=${TMPDIR:-/tmp}}"
: "${KG_REPORT_DIR:=kernel-gate-report}" "${KG_USED_RUNTIME:=}" "${KG_USED_IMAGE:=}"

work=$(mktemp -d "$RUNNER_TEMP/kernel-gate-report.XXXXXXXX")
trap 'rm -rf "$work"' EXIT
: > "$work/annotations"
status=0

report_native() {
  PYTHONPATH="$action" KG_ANNOTATIONS="$work/annotations" kg_muted "${KG_PYTHON:-python3}" -P -m gate.action report
}

report_docker() {
  local name
  mkdir "$work/report"
  for name in annotations outputs; do
    : > "$work/$name"
    chmod 666 "$work/$name"
  done
  if [ -f "$GITHUB_WORKSPACE/$KG_REPORT_DIR/result.json" ]; then
    cp --no-dereference "$GITHUB_WORKSPACE/$KG_REPORT_DIR/result.json" "$work/report/"
  fi
  cp "$GITHUB_EVENT_PATH" "$work/event.json"
  chmod -R a+rX "$work"
  kg_env_flags
  kg_muted docker run --rm --network "${KG_REPORT_NETWORK:-bridge}" --read-only --tmpfs /tmp --cap-drop ALL \
    --security-opt no-new-privileges --user 10001:10001 "${env_flags[@]}" -e KG_TOKEN \
    -e GITHUB_EVENT_PATH=/event.json -e KG_OUT=/report -e GITHUB_OUTPUT=/outputs \
    -e KG_ANNOTATIONS=/annotations -e HOME=/tmp \
    -v "$work/event.json:/event.json:ro" -v "$work/report:/report:ro" \
    -v "$work/outputs:/outputs" -v "$work/annotations:/annotations" \
    --workdir /tmp --entrypoint "" "$KG_USED_IMAGE" python3 -P -m gate.action report
}

case "$KG_USED_RUNTIME" in
  docker)
    report_docker || status=$?
    kg_take "$work/outputs" "$GITHUB_OUTPUT" ;;
  native) report_native || status=$? ;;
  *) printf 'no comment: the gate ended before it chose a runtime\n' ;;
esac
cat "$work/annotations"
if [ "$status" -ne 0 ]; then
  printf '::warning title=kernel-gate::the comment was not written (exit %s); the verdict stands, and the job summary has the report\n' "$status"
fi
