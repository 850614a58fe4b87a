#!/bin/bash
# The entrypoint of the container action. The runner starts it as root, with docker's socket and the
# job's files; the gate itself runs as another user without capabilities, to whom none of them is
# open, and only what it reports is carried over.
set -euo pipefail
out=$(mktemp -d)
chown 10001:10001 "$out"
status=0
env -i PATH="$PATH" HOME="$out" PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 \
  ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} \
  GITHUB_EVENT_NAME="${GITHUB_EVENT_NAME:-}" GITHUB_EVENT_PATH=/dev/fd/9 \
  KG_REPO="${GITHUB_WORKSPACE:-/github/workspace}" KG_OUT="$out/report" \
  GITHUB_OUTPUT="$out/outputs" GITHUB_STEP_SUMMARY="$out/summary.md" KG_ANNOTATIONS="$out/annotations" \
  KG_DEVICE="${KG_DEVICE:-}" KG_CONFIG="${KG_CONFIG:-}" KG_SCHEMAS="${KG_SCHEMAS:-}" \
  KG_TRUSTED_REF="${KG_TRUSTED_REF:-}" KG_BASE="${KG_BASE:-}" \
  KG_BUDGET_SECONDS="${KG_BUDGET_SECONDS:-}" KG_CASES_PER_KERNEL="${KG_CASES_PER_KERNEL:-}" \
  KG_SEED="${KG_SEED:-}" KG_FAIL_ON="${KG_FAIL_ON:-}" KG_UNMATCHED="${KG_UNMATCHED:-}" \
  KG_PYTHONPATH="${KG_PYTHONPATH:-}" KG_PROTECTED_PATHS="${KG_PROTECTED_PATHS:-}" \
  KG_REPORT_DIR="${KG_REPORT_DIR:-}" \
  setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --inh-caps=-all \
  --bounding-set=-all python3 -P -m gate.action run 9< "${GITHUB_EVENT_PATH:?}" || status=$?

carry() {
  if [ -f "$1" ] && [ ! -L "$1" ]; then cat -- "$1" >> "$2"; fi
}
carry "$out/outputs" "${GITHUB_OUTPUT:-/dev/null}"
carry "$out/summary.md" "${GITHUB_STEP_SUMMARY:-/dev/null}"
if [ -f "$out/annotations" ]; then carry "$out/annotations" /dev/stdout; fi
report="${GITHUB_WORKSPACE:-/github/workspace}/${KG_REPORT_DIR:-kernel-gate-report}"
if [ -d "$out/report" ] && [ ! -L "$report" ]; then
  mkdir -p "$report"
  for file in result.json junit.xml comment.md report.md results.sarif annotations.txt; do
    rm -f -- "$report/$file"
    carry "$out/report/$file" "$report/$file"
  done
  chown -R --reference="${GITHUB_WORKSPACE:-/github/workspace}" "$report"
fi
rm -rf "$out"
exit "$status"
