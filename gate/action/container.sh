#!/bin/bash
# The entrypoint of the container action. The runner starts it as root, with docker's socket, the
# job's token and its files; none of them is open to the four users that share the work, all without
# capabilities:
#
#   10001  runs the kernels of the change, behind a worker server's socket
#   10003  runs those of the base, which findings are placed with, behind another
#   10002  is the gate: git, schemas and references of the base, judging, reports, the comment
#   10004  installs the packages that the trusted commit requires
#
# Only what the gate reports is carried over.
set -euo pipefail
# shellcheck source=gate/action/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
: "${GITHUB_OUTPUT:=/dev/null}" "${GITHUB_WORKSPACE:=/github/workspace}" "${KG_MODE:=run}"
: "${KG_DEVICE:=auto}" "${KG_REPORT_DIR:=kernel-gate-report}" "${KG_REQUIREMENTS:=}" "${KG_COMMENT:=off}"
UNDECIDED=3
CHANGE=10001 GATE=10002 BASE=10003 PIP=10004
python=python3
fallback=""
servers=()

out=$(mktemp -d)
chmod 711 "$out"
# Called by the trap below.
# shellcheck disable=SC2329
clean_up() {
  kg_unmute
  end_sandboxes
  rm -rf "$out"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# as USER NAME=VALUE... COMMAND...: with these variables and no others.
as() {
  local user=$1
  shift
  exec env -i PATH="$PATH" HOME="$out/$user" TMPDIR="$out/$user" PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 \
    ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} ${PIP_CERT:+PIP_CERT="$PIP_CERT"} \
    ${PIP_FIND_LINKS:+PIP_FIND_LINKS="$PIP_FIND_LINKS"} \
    setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
    env "$@"
}

# gate VERB NAME=VALUE...: the trusted side, with the inputs and what GitHub says of the event. It is
# started through kg_beside.
# shellcheck disable=SC2329
gate() {
  local verb=$1 name given=()
  shift
  for name in $(compgen -e | grep -E '^KG_[A-Z_]+$' | grep -v -E '^KG_(TOKEN|OUT|REPO)$'); do
    given+=("$name=${!name}")
  done
  for name in GITHUB_EVENT_NAME GITHUB_REPOSITORY GITHUB_RUN_ID GITHUB_RUN_ATTEMPT GITHUB_SHA GITHUB_REF \
    GITHUB_API_URL; do
    given+=("$name=${!name:-}")
  done
  as "$GATE" "${given[@]}" GITHUB_EVENT_PATH=/dev/fd/9 KG_REPO="$GITHUB_WORKSPACE" KG_OUT="$out/report" \
    KG_PREPARED="$out/$GATE/prepared" GITHUB_OUTPUT="$out/$GATE/outputs" \
    GITHUB_STEP_SUMMARY="$out/$GATE/summary.md" KG_ANNOTATIONS="$out/$GATE/annotations" \
    KG_FALLBACK="$fallback" "$@" "$python" -P -m gate.action "$verb" 9< "${GITHUB_EVENT_PATH:?}"
}

# What the gate wrote becomes the step's; a link is none of its.
carry_over() {
  local status=$1 report="$GITHUB_WORKSPACE/$KG_REPORT_DIR" file
  kg_take "$out/$GATE/outputs" "$GITHUB_OUTPUT"
  kg_take "$out/$GATE/summary.md" "${GITHUB_STEP_SUMMARY:-/dev/null}"
  if [ -f "$out/$GATE/annotations" ]; then cat "$out/$GATE/annotations"; fi
  rm -f "$out/$GATE/outputs" "$out/$GATE/summary.md" "$out/$GATE/annotations"
  if [ "$KG_MODE" = run ] && [ -f "$out/report/result.json" ] && [ ! -L "$report" ]; then
    mkdir -p "$report"
    for file in result.json junit.xml comment.md report.md results.sarif annotations.txt; do
      rm -f -- "$report/$file"
      kg_take "$out/report/$file" "$report/$file"
    done
    chown -R --reference="$GITHUB_WORKSPACE" "$report"
  fi
  return "$status"
}

choose_device() {
  local found=""
  if [ -s "$out/$GATE/prepared/device" ]; then KG_DEVICE=$(head -c 16 "$out/$GATE/prepared/device"); fi
  if [ "$KG_DEVICE" = interpreter ]; then return 0; fi
  if [ -e /dev/nvidiactl ] || [ -e /dev/nvidia0 ] || [ -e /dev/kfd ] || [ -e /dev/dxg ]; then found=1; fi
  if [ "$KG_DEVICE" = cuda ] && [ -z "$found" ]; then
    kg_fail "$UNDECIDED" "device: cuda, but this container sees no GPU: the runner gives container actions no flags, so nvidia must be docker's default runtime; use the action at the root of the repository, or device: interpreter"
  fi
  KG_DEVICE=cuda
  if [ -z "$found" ]; then
    KG_DEVICE=interpreter
    fallback="a GPU was looked for and the container action sees none: nvidia is not docker's default runtime here"
  fi
}

install_requirements() {
  cp "$out/$GATE/prepared/requirements.txt" "$out/requirements.txt"
  install -d -o "$PIP" -g "$PIP" "$out/venv"
  # shellcheck disable=SC2016
  kg_muted kg_beside as "$PIP" sh -c '
    python3 -m venv --system-site-packages --without-pip "$1/venv" && exec python3 -m pip --python "$1/venv/bin/python3" \
      install --no-input --no-cache-dir --disable-pip-version-check --quiet -r "$1/requirements.txt"' sh "$out" \
    || kg_fail "$UNDECIDED" "input requirements: pip could not install $KG_REQUIREMENTS; the log says why"
  python=$out/venv/bin/python3
}

start_sandboxes() {
  local tree user tries=0
  install -d -m 1777 "$out/socket"
  install -d "$out/trees"
  for tree in head base; do
    user=$CHANGE
    [ "$tree" = head ] || user=$BASE
    install -d -o "$GATE" -g "$GATE" "$out/trees/$tree"
    as "$user" TRITON_CACHE_DIR="$out/$user/triton" "$python" -P -m gate.run.worker --socket "$out/socket/$tree.sock" \
      --socket-mode 666 --device "$KG_DEVICE" > "$out/$tree.log" 2>&1 < /dev/null &
    servers+=("$!")
    disown "$!"
  done
  for tree in head base; do
    until [ -S "$out/socket/$tree.sock" ]; do
      tries=$((tries + 1))
      [ "$tries" -lt 600 ] || kg_fail "$UNDECIDED" "the sandbox of the kernels did not start: $(tail -n 5 "$out/$tree.log")"
      sleep 0.1
    done
  done
  chmod 755 "$out/socket"
}

# Nothing of theirs is left when the token comes into play, whatever it did to stay.
end_sandboxes() {
  local user tries
  [ "${#servers[@]}" -gt 0 ] || return 0
  kill "${servers[@]}" 2> /dev/null || true
  for user in "$CHANGE" "$BASE"; do
    for tries in $(seq 100); do
      setpriv --reuid "$user" --clear-groups bash -c 'kill -KILL -1' 2> /dev/null || break
      [ "$tries" -lt 100 ] || kg_fail "$UNDECIDED" "a process that the kernels left does not end"
      sleep 0.05
    done
  done
  servers=()
}

status=0
for user in "$CHANGE" "$GATE" "$BASE" "$PIP"; do install -d -m 700 -o "$user" -g "$user" "$out/$user"; done
if [ "$KG_MODE" = report ]; then
  ln -s "$GITHUB_WORKSPACE/$KG_REPORT_DIR" "$out/report"
else
  install -d -o "$GATE" -g "$GATE" "$out/report"
  kg_muted kg_beside gate prepare || status=$?
  if [ "$status" -ne 0 ]; then carry_over "$status"; fi
  if [ -n "$KG_REQUIREMENTS" ]; then install_requirements; fi
  choose_device
  start_sandboxes
fi
kg_muted kg_beside gate run KG_DEVICE="$KG_DEVICE" KG_TREES="$out/trees" \
  KG_WORKER_SOCKET="$out/socket/{tree}.sock" || status=$?
end_sandboxes
carry_over 0
if [ "$KG_COMMENT" != off ] && [ -n "${KG_TOKEN:-}" ]; then
  kg_muted kg_beside gate report KG_TOKEN="$KG_TOKEN" || true
  carry_over 0
fi
exit "$status"
