#!/usr/bin/env bash
# The last step: writes the verdict, failing closed. A gate that ended without a word, or whose
# words do not fit how it ended, is an error.
set -euo pipefail
action=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=gate/action/lib.sh
. "$action/gate/action/lib.sh"
: "${GITHUB_OUTPUT:=/dev/null}" "${KG_GATE_OUTCOME:=}" "${KG_VERDICT:=}" "${KG_EXIT_CODE:=}"

case "$KG_GATE_OUTCOME/$KG_EXIT_CODE/$KG_VERDICT" in
  success/0/pass | success/0/skipped) kg_output verdict "$KG_VERDICT" ;;
  success/0/fail) kg_output verdict fail ;; # fail-on: never, or a defect that the base has, too
  success/*) # mode: report says what another run found and does not judge it again
    if [ "${KG_MODE:-run}" = report ] && [[ "$KG_VERDICT" =~ ^(pass|fail|error|skipped)$ ]]; then
      kg_output verdict "$KG_VERDICT"
    else
      kg_output verdict error
      kg_error "the gate ended without a result (verdict '$KG_VERDICT', exit code '$KG_EXIT_CODE')"
      exit 3
    fi ;;
  failure/1/fail) kg_output verdict fail ;;
  *) kg_output verdict error ;;
esac
