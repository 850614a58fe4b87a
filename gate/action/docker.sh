# shellcheck shell=bash
# Docker's part of the gate's step. Sourced by run.sh; defines functions only.
#
# Every container is without capabilities and without a token, with a read-only root:
#
#   gate        the trusted side: git, schemas and references of the base, judging, reports. No
#               network, no GPU, no code of the change; it alone writes what leaves the step.
#   head, base  the sandboxes: kernels of the change, and those of the base that findings are placed
#               with. No network, no git, one tree, read-only. A worker server speaks to the gate
#               over a socket in a folder that only the two share.
#   pip         installs what the trusted commit requires: with a network, without the repository.

SANDBOX_USER=10001
TRUSTED_USER=10002 # where the caller is root
SOCKET_TRIES=600   # tenths of a second for a sandbox to listen

fences=()
code_flags=() # kernel-gate, mounted into an image that is the user's
venv_flags=() # packages that were installed for this run
gpu_flags=()
report_mount=()
python=python3

# --- starting and ending -------------------------------------------------------------------------

# The sandboxes' standard input: it ends with this process, however that ends, and they with it.
kg_hold_on() {
  mkfifo "$work/alive"
  exec {hold}<> "$work/alive"
}

kg_fences() {
  local half pids
  half=$(awk '/MemTotal/ { m = int($2 / 2048); print (m > 1024 ? m : 1024) }' /proc/meminfo)
  pids=$((512 + 32 * $(nproc)))
  fences=(--rm --label "kernel-gate=$name" --log-driver none --read-only
    --tmpfs "/tmp:exec,mode=1777,size=4g" --cap-drop ALL --security-opt no-new-privileges
    --pids-limit "$pids" --memory "${half}m" --memory-swap "${half}m" --ulimit core=0
    -e HOME=/tmp -e PYTHONDONTWRITEBYTECODE=1 -e PYTHONSAFEPATH=1)
}

# Ends and removes every container of this step; its folders go with them.
kg_remove_all() {
  local ids
  # shellcheck disable=SC2046
  kill $(jobs -p) > /dev/null 2>&1 || true
  ids=$(docker ps --all --quiet --no-trunc --filter "label=kernel-gate=$name" 2> /dev/null) || true
  # shellcheck disable=SC2086
  [ -z "$ids" ] || docker rm --force --volumes $ids > /dev/null 2>&1 || true
}

# Where an engine maps users, files belong to nobody here: a container removes them.
kg_remove_files() {
  rm -rf "$work" 2> /dev/null && return 0
  [ -z "$image" ] || docker run --rm --network none --user 0:0 --entrypoint /bin/sh -v "$work:/w" "$image" \
    -c 'rm -rf /w/*' > /dev/null 2>&1 || true
  rm -rf "$work" 2> /dev/null || true
}

# --- the image -----------------------------------------------------------------------------------

make_image() {
  local torch=cpu digest built
  if [ -n "$KG_IMAGE" ]; then
    docker image inspect "$KG_IMAGE" > /dev/null 2>&1 || kg_muted docker pull --quiet "$KG_IMAGE" \
      || kg_fail "$UNDECIDED" "the image $KG_IMAGE could not be pulled; the log has docker's message"
    image=$KG_IMAGE
    code_flags=(-v "$action/gate:/opt/kernel-gate-action/gate:ro" -e PYTHONPATH=/opt/kernel-gate-action)
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

# The user's own image gets kernel-gate from the action, and what that imports where it has it not.
complete_image() {
  [ -n "$KG_IMAGE" ] || return 0
  if ! kg_once --network none "$image" python3 -P -c 'import gate.action.__main__' > /dev/null 2>&1; then
    sed -n '/^dependencies = \[/,/^\]/p' "$action/pyproject.toml" \
      | sed -n 's/^ *"\([^"]*\)".*/\1/p' > "$work/own.txt"
    pip_install "$work/own.txt" "what kernel-gate imports into the image $KG_IMAGE"
  fi
}

# What the gate must know before anything of the change runs, from the trusted commit: where kernels
# run, and which packages they need.
prepare() {
  local status=0
  kg_muted kg_beside in_gate prepare || status=$?
  if [ "$status" -ne 0 ]; then
    take_outputs
    end_step "$status"
  fi
  if [ -s "$work/out/prepared/device" ] && [ ! -L "$work/out/prepared/device" ]; then
    KG_DEVICE=$(head -c 16 "$work/out/prepared/device")
    case "$KG_DEVICE" in auto | cuda | interpreter) ;; *) kg_fail "$UNDECIDED" "the gate named a device that is none" ;; esac
  fi
  if [ -n "$KG_REQUIREMENTS" ]; then
    kg_take "$work/out/prepared/requirements.txt" "$work/requirements.txt"
    pip_install "$work/requirements.txt" "input requirements: $KG_REQUIREMENTS"
  fi
}

# pip_install FILE WHAT: into a folder that is mounted read-only from then on. It is a virtual
# environment over the image's packages, so that torch is the image's unless FILE says otherwise.
pip_install() {
  mkdir -p "$work/venv"
  chmod 1777 "$work/venv"
  kg_muted kg_beside kg_once --network "${KG_BUILD_NETWORK:-bridge}" -v "$work/venv:/venv" \
    -v "$1:/packages.txt:ro" "$image" sh -c "$INSTALL" \
    || kg_fail "$UNDECIDED" "$2: pip could not install it; the log says why"
  venv_flags=(-v "$work/venv:/venv:ro")
  python=/venv/bin/python3
}
# Packages of a virtual environment that the image is in count as the image's, too.
# shellcheck disable=SC2016
INSTALL='
set -eu
if [ ! -e /venv/bin/python3 ]; then
  python3 -m venv --system-site-packages --without-pip /venv
  own=$(/venv/bin/python3 -c "import sysconfig; print(sysconfig.get_path(\"purelib\"))")
  python3 -c "import site; print(*site.getsitepackages(), sep=chr(10))" > "$own/outer.pth"
fi
exec python3 -m pip --python /venv/bin/python3 install --no-input --no-cache-dir \
  --disable-pip-version-check --quiet -r /packages.txt
'

# kg_once OPTION... IMAGE COMMAND...: one short container in the fences, as the sandbox's user.
kg_once() {
  docker run "${fences[@]}" --user "$SANDBOX_USER:$SANDBOX_USER" "${code_flags[@]}" \
    --workdir /tmp --entrypoint "" "$@"
}

# --- the source ----------------------------------------------------------------------------------

# A bare repository that borrows the checkout's objects: no configuration, hence no credentials that
# a checkout left there, no hooks, no index, and no working tree.
lend_repository() {
  local git=(git -c safe.directory='*' -C "$GITHUB_WORKSPACE") common head
  if ! head=$("${git[@]}" rev-parse --verify -q HEAD); then
    [ "$KG_MODE" != run ] && { mkdir -p "$work/repo.git" "$work/objects"; objects="$work/objects"; return 0; }
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

# --- the GPU -------------------------------------------------------------------------------------

wants_cuda() {
  [ "$KG_DEVICE" != interpreter ] && [ "$KG_GPUS" != none ] && {
    [ "$KG_DEVICE" = cuda ] || [ -e /dev/nvidiactl ] || command -v nvidia-smi > /dev/null
  }
}

# Tries the ways to hand a GPU to a container, in order, and keeps the first in which one is seen.
# A flag that docker takes is no proof: some engines ignore it.
find_gpu() {
  local way said status ids=${KG_GPUS#device=} tries=""
  gpu_flags=()
  wants_cuda || { KG_DEVICE=interpreter; return 0; }
  for way in gpus runtime cdi plain; do
    case $way in
      gpus) gpu_flags=(--gpus "$KG_GPUS") ;;
      runtime) gpu_flags=(--runtime nvidia -e "NVIDIA_VISIBLE_DEVICES=$ids") ;;
      cdi) gpu_flags=(--device "nvidia.com/gpu=$ids") ;;
      plain) gpu_flags=(-e "NVIDIA_VISIBLE_DEVICES=$ids") ;;
    esac
    status=0
    said=$(kg_once --network none "${gpu_flags[@]}" "${venv_flags[@]}" "$image" "$python" -P -c "$GPU_PROBE" 2>&1) || status=$?
    if [ "$status" -eq 0 ]; then
      printf 'GPU: %s (docker run %s)\n' "$(printf '%s' "$said" | tail -n 1 | tr -cd '[:alnum:] ._-')" "${gpu_flags[*]}"
      KG_DEVICE=cuda
      return 0
    fi
    tries+="docker run ${gpu_flags[*]}: exit $status: $(printf '%s' "$said" | sed '/^ *$/d; /docker run --help/d' | tail -n 2 | tr '\r\n' '  ')"$'\n'
  done
  gpu_flags=()
  if [ "$KG_DEVICE" = cuda ]; then
    kg_fail "$UNDECIDED" "device: cuda, but no container sees a GPU:"$'\n'"$tries""Install the NVIDIA container toolkit on the runner, use a GPU runner, or choose device: interpreter"
  fi
  printf 'no container sees a GPU; kernels run in the interpreter:\n%s' "$tries" | sed 's/^/| /; s/##\[/# # [/g'
  KG_DEVICE=interpreter
  KG_FALLBACK="a GPU was looked for and no container sees one: $(printf '%s' "$tries" | tr '\n' ';')"
}
GPU_PROBE='
import sys, torch
if not torch.cuda.is_available(): sys.exit("torch sees no GPU")
assert torch.ones(8, device="cuda").sum().item() == 8
print(torch.cuda.get_device_name(0))
'

# --- the two sides -------------------------------------------------------------------------------

# start_sandbox TREE: the kernels of one tree, behind a socket. It gets no variable of the job's.
start_sandbox() {
  docker run --interactive --name "$name-$1" "${fences[@]}" --network none --shm-size 1g \
    --user "$SANDBOX_USER:$SANDBOX_USER" "${gpu_flags[@]}" "${code_flags[@]}" "${venv_flags[@]}" \
    -e TRITON_CACHE_DIR=/tmp/triton -v "$work/trees/$1:/trees/$1:ro" -v "$work/socket:/socket" \
    --workdir /tmp --entrypoint "" "$image" "$python" -P -m gate.run.worker --until-eof \
    --socket "/socket/$1.sock" --socket-mode 666 --device "$KG_DEVICE" \
    < "$work/alive" > "$work/$1.log" 2>&1 {hold}>&- &
}

# Both must listen before the gate starts; then nothing can take the place of their sockets.
start_sandboxes() {
  local tree tries=0
  mkdir -p "$work/trees/head" "$work/trees/base" "$work/socket"
  chmod 1777 "$work/trees/head" "$work/trees/base" "$work/socket"
  for tree in head base; do start_sandbox "$tree"; done
  for tree in head base; do
    until [ -S "$work/socket/$tree.sock" ]; do
      tries=$((tries + 1))
      if [ "$tries" -gt "$SOCKET_TRIES" ] || [ "$(jobs -r -p | wc -l)" -lt 2 ]; then
        sed 's/^/| /; s/##\[/# # [/g' "$work/head.log" "$work/base.log" | tail -n 40
        kg_fail "$UNDECIDED" "docker could not start the sandbox of the kernels; the log has its message"
      fi
      sleep 0.1
    done
  done
  chmod 755 "$work/socket"
}

# in_gate VERB, beside this script: the trusted side. It can write /out, /tmp and the trees.
in_gate() {
  local user more=()
  user="$(id -u):$(id -g)"
  case "$user" in 0:* | "$SANDBOX_USER":*) user="$TRUSTED_USER:$TRUSTED_USER" ;; esac
  if [ "$1" = run ] && [ "$KG_MODE" = run ]; then
    more=(-v "$work/trees/head:/trees/head" -v "$work/trees/base:/trees/base" -v "$work/socket:/socket:ro"
      -e KG_TREES=/trees -e KG_WORKER_SOCKET='/socket/{tree}.sock')
  fi
  mkdir -p "$work/out"
  chmod 1777 "$work/out"
  kg_env_flags
  exec timeout --kill-after 10 "$(hard_limit)" docker run --name "$name-$1" "${fences[@]}" --network none --user "$user" \
    "${env_flags[@]}" "${code_flags[@]}" "${venv_flags[@]}" "${more[@]}" "${report_mount[@]}" \
    -e GITHUB_EVENT_PATH=/event.json -e KG_REPO=/repo.git -e KG_OUT=/out/report -e KG_PREPARED=/out/prepared \
    -e GITHUB_OUTPUT=/out/outputs -e GITHUB_STEP_SUMMARY=/out/summary.md -e KG_ANNOTATIONS=/out/annotations \
    -v "$work/repo.git:/repo.git:ro" -v "$objects:/objects:ro" -v "$work/event.json:/event.json:ro" \
    -v "$work/out:/out" --workdir /tmp --entrypoint "" "$image" "$python" -P -m gate.action "$1"
}

# Seconds after which the step ends, and every container with it: the budget, and time to compile, shrink and report.
hard_limit() {
  local budget=${KG_BUDGET_SECONDS%.*}
  printf '%s' "$((${budget:-300} * 2 + 1200))"
}

run_docker() {
  local status=0
  kg_hold_on
  kg_fences
  make_image
  complete_image
  kg_output runtime docker
  kg_output image "$image"
  cp "${GITHUB_EVENT_PATH:?}" "$work/event.json"
  chmod 644 "$work/event.json"
  lend_repository
  if [ "$KG_MODE" = run ]; then
    prepare
    find_gpu
    start_sandboxes
  elif [ "$KG_MODE" = merge ]; then
    [ -d "$GITHUB_WORKSPACE/$KG_SHARDS_DIR" ] \
      || kg_fail "$USAGE" "input shards-dir: there is no folder $KG_SHARDS_DIR; download the shards' artifacts into it first"
    report_mount=(-v "$GITHUB_WORKSPACE/$KG_SHARDS_DIR:/shards:ro" -e KG_SHARDS=/shards)
  elif [ -d "$GITHUB_WORKSPACE/$KG_REPORT_DIR" ]; then
    report_mount=(-v "$GITHUB_WORKSPACE/$KG_REPORT_DIR:/out/report:ro")
  fi
  kg_muted kg_beside in_gate run || status=$?
  take_outputs
  [ "$KG_MODE" = report ] || take_report
  end_step "$status"
}

take_outputs() {
  kg_take "$work/out/outputs" "$GITHUB_OUTPUT"
  [ -z "${GITHUB_STEP_SUMMARY:-}" ] || kg_take "$work/out/summary.md" "$GITHUB_STEP_SUMMARY"
  [ ! -f "$work/out/annotations" ] || kg_take "$work/out/annotations" /dev/stdout
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

# end_step STATUS: how the gate's container ended is how the step ends, or it is not decided.
end_step() {
  case "$1" in
    0 | 1 | 2 | 3 | 70) exit "$1" ;;
    "$DOCKER_ERROR") kg_fail "$UNDECIDED" "docker could not start the gate; the log has its message" ;;
    124) kg_fail "$UNDECIDED" "the gate was ended after $(hard_limit) seconds" ;;
    137) kg_fail "$UNDECIDED" "the gate's container was killed: out of memory, or beyond $(hard_limit) seconds" ;;
    *) kg_fail "$UNDECIDED" "the gate's container ended with $1, which is no exit code of the gate" ;;
  esac
}
