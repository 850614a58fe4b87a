#!/usr/bin/env bash
# The gate's step. Docker mode: the gate in one container, the kernels in others (docker.sh). Native
# mode: in the job's own environment, kernels as processes with what fences the system allows.
# Ends with the gate's exit code; 3 when docker could not do its part.
set -euo pipefail
action=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=gate/action/lib.sh
. "$action/gate/action/lib.sh"
# shellcheck source=gate/action/docker.sh
. "$action/gate/action/docker.sh"
: "${GITHUB_OUTPUT:=/dev/null}" "${GITHUB_WORKSPACE:=$PWD}" "${RUNNER_TEMP:=${TMPDIR:-/tmp}}"
: "${KG_MODE:=run}" "${KG_RUNTIME:=auto}" "${KG_DEVICE:=auto}" "${KG_GPUS:=all}" "${KG_IMAGE:=}"
: "${KG_SHARDS_DIR:=kernel-gate-shards}" "${KG_REPORT_DIR:=kernel-gate-report}" "${KG_REQUIREMENTS:=}" "${KG_BUDGET_SECONDS:=}"
DOCKER_ERROR=125
UNDECIDED=3
USAGE=2
export KG_MODE KG_DEVICE KG_FALLBACK=""

work=$(mktemp -d "$RUNNER_TEMP/kernel-gate.XXXXXXXX")
name="kg-${GITHUB_RUN_ID:-0}-$RANDOM$RANDOM"
image=""

clean_up() {
  trap '' INT TERM HUP
  kg_unmute
  if [ -n "$image" ]; then kg_remove_all; fi
  kg_remove_files
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- what is refused before anything is started --------------------------------------------------

# Inputs are validated in full by gate.action.inputs; here only those that steer this script.
check_inputs() {
  case "$KG_MODE" in run | report | merge) ;; *) kg_fail "$USAGE" "input mode: '$KG_MODE' is not known; one of run, report, merge" ;; esac
  case "$KG_RUNTIME" in auto | docker | native) ;; *) kg_fail "$USAGE" "input runtime: '$KG_RUNTIME' is not known; one of auto, docker, native" ;; esac
  case "$KG_DEVICE" in auto | cuda | interpreter) ;; *) kg_fail "$USAGE" "input device: '$KG_DEVICE' is not known; one of auto, cuda, interpreter" ;; esac
  [[ "$KG_GPUS" =~ ^[A-Za-z0-9=,:\"-]{1,128}$ ]] || kg_fail "$USAGE" "input gpus: '$KG_GPUS' is not a value of docker's --gpus"
  [[ "$KG_IMAGE" =~ ^([a-z0-9][A-Za-z0-9._:/@-]{0,254})?$ ]] || kg_fail "$USAGE" "input image: '$KG_IMAGE' is not an image name"
  [[ "$KG_BUDGET_SECONDS" =~ ^([0-9]{1,6}(\.[0-9]+)?)?$ ]] || kg_fail "$USAGE" "input budget-seconds: '$KG_BUDGET_SECONDS' is not a number of seconds"
  check_folder report-dir "$KG_REPORT_DIR"
  check_folder shards-dir "$KG_SHARDS_DIR"
  case "${GITHUB_EVENT_NAME:-}/$KG_MODE" in
    pull_request_target/run | workflow_run/run | issue_comment/run | pull_request_review/run | issues/run)
      kg_fail "$USAGE" "mode: run refuses the event $GITHUB_EVENT_NAME: its token can write to the repository, and the code of the pull request must never run beside it; use 'on: pull_request' to run, and 'mode: report' in a workflow_run workflow to comment" ;;
  esac
}

check_folder() {
  case "/$2/" in
    //* | /-* | /~* | */../* | *\\* | *[[:cntrl:]]*)
      kg_fail "$USAGE" "input $1: '$2' is not a path inside the repository (relative, without '..')" ;;
  esac
}

# --- native --------------------------------------------------------------------------------------

run_native() {
  local python=${KG_PYTHON:-python3} status=0
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null \
    || kg_fail "$UNDECIDED" "runtime: native needs Python 3.11 or newer as $python; use actions/setup-python or a container with it"
  export PYTHONPATH="$action${PYTHONPATH:+:$PYTHONPATH}"
  if ! "$python" -P -c 'import gate.action.__main__' 2> /dev/null; then
    install_dependencies "$python"
  fi
  if [ -n "$KG_REQUIREMENTS" ]; then
    KG_PREPARED="$work/prepared" kg_muted kg_beside scrubbed "$python" -P -m gate.action prepare || exit "$?"
    kg_muted kg_beside scrubbed "$python" -m pip install --quiet --disable-pip-version-check \
      -r "$work/prepared/requirements.txt" \
      || kg_fail "$UNDECIDED" "input requirements: pip could not install $KG_REQUIREMENTS; the log says why"
  fi
  : > "$work/annotations"
  KG_ANNOTATIONS="$work/annotations" kg_muted kg_beside scrubbed "$python" -P -m gate.action run || status=$?
  cat "$work/annotations"
  kg_output runtime native
  exit "$status"
}

# The gate itself runs from the action's folder; the job's environment gets what it imports.
install_dependencies() {
  "$1" -c 'import sys, tomllib; print("\n".join(tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"]))' \
    "$action/pyproject.toml" > "$work/dependencies.txt"
  kg_muted kg_beside scrubbed "$1" -m pip install --quiet --disable-pip-version-check -r "$work/dependencies.txt" \
    || kg_fail "$UNDECIDED" "runtime: native could not install kernel-gate's dependencies with $1 -m pip; install them in the job before this step"
}

# The gate's process without what a job's environment holds of secrets.
scrubbed() {
  env -u ACTIONS_RUNTIME_TOKEN -u ACTIONS_ID_TOKEN_REQUEST_TOKEN -u ACTIONS_ID_TOKEN_REQUEST_URL \
    -u ACTIONS_RUNTIME_URL -u ACTIONS_RESULTS_URL -u ACTIONS_CACHE_URL -u GITHUB_TOKEN -u GH_TOKEN \
    -u GITHUB_ENV -u GITHUB_PATH -u GITHUB_STATE -u KG_TOKEN "$@"
}

objects=""
check_inputs
case "$KG_RUNTIME" in
  native) run_native ;;
  docker)
    docker version > /dev/null 2>&1 || kg_fail "$UNDECIDED" "runtime: docker, but no docker engine answers here; use runtime: native"
    run_docker ;;
  auto)
    if docker version > /dev/null 2>&1; then run_docker; else run_native; fi ;;
esac
