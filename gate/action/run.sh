#!/usr/bin/env bash
# The gate's step. Docker mode: the gate runs in a container without network, token, socket or
# capabilities, on copies of the objects of git. Native mode: in the job's own environment.
# Ends with the gate's exit code; 3 when docker could not do its part.
set -euo pipefail
action=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=gate/action/lib.sh
. "$action/gate/action/lib.sh"
: "${GITHUB_OUTPUT:=/dev/null}" "${GITHUB_WORKSPACE:=$PWD}" "${RUNNER_TEMP:=${TMPDIR:-/tmp}}"
: "${KG_MODE:=run}" "${KG_RUNTIME:=auto}" "${KG_DEVICE:=auto}" "${KG_GPUS:=all}" "${KG_IMAGE:=}"
: "${KG_REPORT_DIR:=kernel-gate-report}" "${KG_REQUIREMENTS:=}" "${KG_BUDGET_SECONDS:=}"
DOCKER_ERROR=125
UNDECIDED=3
USAGE=2

work=$(mktemp -d "$RUNNER_TEMP/kernel-gate.XXXXXXXX")
name="kg-${GITHUB_RUN_ID:-0}-$RANDOM$RANDOM"
image=""

# Docker's files belong to the container's user: what is left is removed by a container, too.
clean_up() {
  if [ -n "$image" ]; then
    docker kill "$name" > /dev/null 2>&1 || true
    docker run --rm --network none --user 0:0 --entrypoint /bin/sh -v "$work:/w" "$image" \
      -c 'rm -rf /w/out /w/report' > /dev/null 2>&1 || true
  fi
  rm -rf "$work" 2> /dev/null || true
}
trap clean_up EXIT

# --- what is refused before anything is started --------------------------------------------------

# Inputs are validated in full by gate.action.inputs; here only those that steer this script.
check_inputs() {
  case "$KG_MODE" in run | report) ;; *) kg_fail "$USAGE" "input mode: '$KG_MODE' is not known; one of run, report" ;; esac
  case "$KG_RUNTIME" in auto | docker | native) ;; *) kg_fail "$USAGE" "input runtime: '$KG_RUNTIME' is not known; one of auto, docker, native" ;; esac
  case "$KG_DEVICE" in auto | cuda | interpreter) ;; *) kg_fail "$USAGE" "input device: '$KG_DEVICE' is not known; one of auto, cuda, interpreter" ;; esac
  [[ "$KG_GPUS" =~ ^[A-Za-z0-9=,:\"-]{1,128}$ ]] || kg_fail "$USAGE" "input gpus: '$KG_GPUS' is not a value of docker's --gpus"
  [[ "$KG_IMAGE" =~ ^([a-z0-9][A-Za-z0-9._:/@-]{0,254})?$ ]] || kg_fail "$USAGE" "input image: '$KG_IMAGE' is not an image name"
  [[ "$KG_BUDGET_SECONDS" =~ ^([0-9]{1,6}(\.[0-9]+)?)?$ ]] || kg_fail "$USAGE" "input budget-seconds: '$KG_BUDGET_SECONDS' is not a number of seconds"
  case "/$KG_REPORT_DIR/" in
    //* | /-* | /~* | */../* | *\\* | *[[:cntrl:]]*)
      kg_fail "$USAGE" "input report-dir: '$KG_REPORT_DIR' is not a path inside the repository (relative, without '..')" ;;
  esac
  case "${GITHUB_EVENT_NAME:-}/$KG_MODE" in
    pull_request_target/run | workflow_run/run | issue_comment/run | pull_request_review/run | issues/run)
      kg_fail "$USAGE" "mode: run refuses the event $GITHUB_EVENT_NAME: its token can write to the repository, and the code of the pull request must never run beside it; use 'on: pull_request' to run, and 'mode: report' in a workflow_run workflow to comment" ;;
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
    scrubbed "$python" -P -m gate.action requirements > "$work/requirements.txt" \
      || kg_fail "$USAGE" "input requirements: $KG_REQUIREMENTS could not be read at the trusted commit; the log says why"
    kg_muted "$python" -m pip install --quiet --disable-pip-version-check -r "$work/requirements.txt" >&2 \
      || kg_fail "$UNDECIDED" "input requirements: pip could not install $KG_REQUIREMENTS; the log says why"
  fi
  : > "$work/annotations"
  KG_ANNOTATIONS="$work/annotations" kg_muted scrubbed "$python" -P -m gate.action run || status=$?
  cat "$work/annotations"
  kg_output runtime native
  exit "$status"
}

# The gate itself runs from the action's folder; the job's environment gets what it imports.
install_dependencies() {
  "$1" -c 'import sys, tomllib; print("\n".join(tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"]))' \
    "$action/pyproject.toml" > "$work/dependencies.txt"
  kg_muted "$1" -m pip install --quiet --disable-pip-version-check -r "$work/dependencies.txt" >&2 \
    || kg_fail "$UNDECIDED" "runtime: native could not install kernel-gate's dependencies with $1 -m pip; install them in the job before this step"
}

# The gate's process without what a job's environment holds of secrets.
scrubbed() {
  env -u ACTIONS_RUNTIME_TOKEN -u ACTIONS_ID_TOKEN_REQUEST_TOKEN -u ACTIONS_ID_TOKEN_REQUEST_URL \
    -u ACTIONS_RUNTIME_URL -u ACTIONS_RESULTS_URL -u ACTIONS_CACHE_URL -u GITHUB_TOKEN -u GH_TOKEN \
    -u GITHUB_ENV -u GITHUB_PATH -u GITHUB_STATE -u KG_TOKEN "$@"
}

# --- docker: the image ---------------------------------------------------------------------------

wants_cuda() {
  [ "$KG_DEVICE" != interpreter ] && [ "$KG_GPUS" != none ] && {
    [ "$KG_DEVICE" = cuda ] || [ -e /dev/nvidiactl ] || command -v nvidia-smi > /dev/null
  }
}

make_image() {
  local torch=cpu digest built
  if [ -n "$KG_IMAGE" ]; then
    docker image inspect "$KG_IMAGE" > /dev/null 2>&1 || kg_muted docker pull --quiet "$KG_IMAGE" \
      || kg_fail "$UNDECIDED" "the image $KG_IMAGE could not be pulled; the log has docker's message"
    image=$KG_IMAGE
    return
  fi
  if wants_cuda; then torch=cuda; fi
  digest=$(cd "$action" && { printf '%s\n' "$torch"; find Dockerfile pyproject.toml setup.py gate -type f \
    ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum | cut -c1-16)
  built="kernel-gate:$torch-$digest"
  docker image inspect "$built" > /dev/null 2>&1 \
    || kg_muted docker build --network "${KG_BUILD_NETWORK:-default}" --build-arg "TORCH=$torch" -t "$built" "$action" \
    || kg_fail "$UNDECIDED" "the image could not be built; the log has docker's message. Name a ready one with the input image"
  image=$built
}

# The user's own packages, from the trusted commit's requirements: a layer on top, made with a
# network and without a token, kept on the runner until the requirements change.
add_requirements() {
  local digest layered
  [ -n "$KG_REQUIREMENTS" ] || return 0
  in_sandbox "$name-req" "$work/none" python3 -P -m gate.action requirements > "$work/requirements.txt" \
    || kg_fail "$USAGE" "input requirements: $KG_REQUIREMENTS could not be read at the trusted commit; the log says why"
  digest=$( (docker image inspect --format '{{.Id}}' "$image"; cat "$work/requirements.txt") | sha256sum | cut -c1-16)
  layered="kernel-gate-user:$digest"
  if ! docker image inspect "$layered" > /dev/null 2>&1; then
    mkdir "$work/layer"
    cp "$work/requirements.txt" "$work/layer/"
    printf 'FROM %s\nUSER 0\nCOPY requirements.txt /opt/requirements.txt\nRUN python3 -m pip install --no-cache-dir -r /opt/requirements.txt\n' \
      "$image" > "$work/layer/Dockerfile"
    kg_muted docker build --network "${KG_BUILD_NETWORK:-default}" -t "$layered" "$work/layer" \
      || kg_fail "$UNDECIDED" "input requirements: pip could not install $KG_REQUIREMENTS; the log says why"
  fi
  image=$layered
}

# --- docker: the source --------------------------------------------------------------------------

# A bare repository that borrows the checkout's objects: no configuration, hence no credentials that
# a checkout left there, no hooks, no index, and no working tree.
lend_repository() {
  local git=(git -c safe.directory='*' -C "$GITHUB_WORKSPACE") common head
  if ! head=$("${git[@]}" rev-parse --verify -q HEAD); then
    [ "$KG_MODE" = report ] && { mkdir -p "$work/repo.git" "$work/objects"; objects="$work/objects"; return 0; }
    kg_fail "$USAGE" "$GITHUB_WORKSPACE is not a git checkout: put actions/checkout with 'fetch-depth: 2' before this step"
  fi
  objects=$(cd "$GITHUB_WORKSPACE" && realpath "$("${git[@]}" rev-parse --git-path objects)")
  common=$(cd "$GITHUB_WORKSPACE" && realpath "$("${git[@]}" rev-parse --git-common-dir)")
  [ ! -s "$objects/info/alternates" ] \
    || kg_fail "$USAGE" "the checkout borrows objects of another repository (alternates); use runtime: native"
  git init --quiet --bare --template= "$work/repo.git"
  mkdir -p "$work/repo.git/objects/info"
  printf '/objects\n' > "$work/repo.git/objects/info/alternates"
  "${git[@]}" for-each-ref --format='%(objectname) %(refname)' refs/remotes refs/heads refs/tags \
    | sed '1i # pack-refs with: sorted' | LC_ALL=C sort -k2 > "$work/repo.git/packed-refs"
  if [ -f "$common/shallow" ]; then cp "$common/shallow" "$work/repo.git/shallow"; fi
  printf '%s\n' "$head" > "$work/repo.git/HEAD"
  chmod -R a+rX "$work/repo.git"
}

# --- docker: the sandbox -------------------------------------------------------------------------

# in_sandbox NAME OUT COMMAND...: OUT is the one folder that can be written, besides /tmp.
in_sandbox() {
  local called=$1 out=$2 memory
  shift 2
  memory=$(awk '/MemTotal/ { m = int($2 / 1024) - 1024; print (m > 1024 ? m : 1024) }' /proc/meminfo)
  mkdir -p "$out"
  chmod 1777 "$out"
  kg_env_flags
  docker run --rm --name "$called" --network none --read-only \
    --tmpfs /tmp:exec,mode=1777,size=4g --cap-drop ALL --security-opt no-new-privileges \
    --pids-limit 512 --memory "${memory}m" --user 10001:10001 --shm-size 1g \
    "${gpu_flags[@]}" "${env_flags[@]}" \
    -e HOME=/tmp -e TRITON_CACHE_DIR=/tmp/triton -e PYTHONDONTWRITEBYTECODE=1 \
    -e GITHUB_EVENT_PATH=/event.json -e KG_REPO=/repo.git -e KG_OUT=/out/report \
    -e GITHUB_OUTPUT=/out/outputs -e GITHUB_STEP_SUMMARY=/out/summary.md \
    -e KG_ANNOTATIONS=/out/annotations \
    -v "$work/repo.git:/repo.git:ro" -v "$objects:/objects:ro" -v "$work/event.json:/event.json:ro" \
    -v "$out:/out" "${extra_mounts[@]}" --workdir /tmp --entrypoint "" "$image" "$@"
}

# Tries the ways to hand a GPU to a container, in order, and keeps the first in which one is seen.
# A flag that docker takes is no proof: some engines ignore it.
find_gpu() {
  local way said status tries=""
  gpu_flags=()
  wants_cuda || return 0
  for way in gpus runtime cdi plain; do
    case $way in
      gpus) gpu_flags=(--gpus "$KG_GPUS") ;;
      runtime) gpu_flags=(--runtime nvidia -e "NVIDIA_VISIBLE_DEVICES=${KG_GPUS#device=}") ;;
      cdi) gpu_flags=(--device "nvidia.com/gpu=${KG_GPUS#device=}") ;;
      plain) gpu_flags=(-e "NVIDIA_VISIBLE_DEVICES=${KG_GPUS#device=}") ;;
    esac
    status=0
    said=$(docker run --rm --network none --cap-drop ALL --user 10001:10001 "${gpu_flags[@]}" \
      --entrypoint python3 "$image" -c "$GPU_PROBE" 2>&1) || status=$?
    if [ "$status" -eq 0 ]; then
      printf 'GPU: %s (docker run %s)\n' "$(printf '%s' "$said" | tail -n 1 | tr -cd '[:alnum:] ._-')" "${gpu_flags[*]}"
      return 0
    fi
    tries+="docker run ${gpu_flags[*]}: exit $status: $(printf '%s' "$said" | tail -n 2 | tr '\r\n' '  ')"$'\n'
  done
  gpu_flags=()
  if [ "$KG_DEVICE" = cuda ]; then
    kg_fail "$UNDECIDED" "device: cuda, but no container sees a GPU:"$'\n'"$tries""Install the NVIDIA container toolkit on the runner, use a GPU runner, or choose device: interpreter"
  fi
  printf 'no container sees a GPU; kernels run in the interpreter:\n%s' "$tries" | sed 's/^/| /; s/##\[/# # [/g'
}
GPU_PROBE='
import sys, torch
if not torch.cuda.is_available(): sys.exit("torch sees no GPU")
assert torch.ones(8, device="cuda").sum().item() == 8
print(torch.cuda.get_device_name(0))
'

# --- docker: the run -----------------------------------------------------------------------------

# Seconds after which the container is killed: the budget, and time to compile, shrink and report.
hard_limit() {
  local budget=${KG_BUDGET_SECONDS%.*}
  printf '%s' "$((${budget:-300} * 2 + 1200))"
}

run_docker() {
  local status=0
  make_image
  cp "${GITHUB_EVENT_PATH:?}" "$work/event.json"
  chmod 644 "$work/event.json"
  lend_repository
  add_requirements
  find_gpu
  if [ "$KG_MODE" = report ]; then
    [ -d "$GITHUB_WORKSPACE/$KG_REPORT_DIR" ] && extra_mounts=(-v "$GITHUB_WORKSPACE/$KG_REPORT_DIR:/out/report:ro")
  fi
  (sleep "$(hard_limit)" && docker kill "$name" > /dev/null 2>&1) > /dev/null 2>&1 &
  local watchdog=$!
  kg_muted in_sandbox "$name" "$work/out" python3 -P -m gate.action run || status=$?
  kill "$watchdog" 2> /dev/null || true
  kg_output runtime docker
  kg_output image "$image"
  kg_take "$work/out/outputs" "$GITHUB_OUTPUT"
  [ -z "${GITHUB_STEP_SUMMARY:-}" ] || kg_take "$work/out/summary.md" "$GITHUB_STEP_SUMMARY"
  [ ! -f "$work/out/annotations" ] || kg_take "$work/out/annotations" /dev/stdout
  [ "$KG_MODE" = report ] || take_report
  case "$status" in
    0 | 1 | 2 | 3 | 70) exit "$status" ;;
    "$DOCKER_ERROR") kg_fail "$UNDECIDED" "docker could not start the gate; the log has its message" ;;
    137) kg_fail "$UNDECIDED" "the gate's container was killed: out of memory, or beyond $(hard_limit) seconds" ;;
    *) kg_fail "$UNDECIDED" "the gate's container ended with $status, which is no exit code of the gate" ;;
  esac
}

# Reports become files of the caller's user, in a folder that no link leads away from.
take_report() {
  local place="" part file
  while IFS= read -r -d / part; do
    place+="$part"
    [ ! -L "$GITHUB_WORKSPACE/$place" ] \
      || kg_fail "$USAGE" "input report-dir: $place is a symbolic link; name a folder"
    place+=/
  done <<< "$KG_REPORT_DIR/"
  mkdir -p "$GITHUB_WORKSPACE/$KG_REPORT_DIR"
  for file in result.json junit.xml comment.md report.md results.sarif annotations.txt; do
    rm -f -- "$GITHUB_WORKSPACE/$KG_REPORT_DIR/$file"
    kg_take "$work/out/report/$file" "$GITHUB_WORKSPACE/$KG_REPORT_DIR/$file"
  done
}

gpu_flags=()
extra_mounts=()
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
