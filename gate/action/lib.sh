# shellcheck shell=bash
# What the steps of action.yml share. Sourced by run.sh and report.sh; defines functions only.

# Workflow commands of our own; everything else that is printed comes behind stop-commands.
kg_escape() {
  local text=$1
  text=${text//'%'/'%25'}
  text=${text//$'\r'/'%0D'}
  printf '%s' "${text//$'\n'/'%0A'}"
}

kg_error() { printf '::error title=kernel-gate::%s\n' "$(kg_escape "$1")"; }

# kg_output NAME VALUE: one output of the step, between random delimiters.
kg_output() {
  local mark
  mark="kg_$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  printf '%s<<%s\n%s\n%s\n' "$1" "$mark" "$2" "$mark" >> "$GITHUB_OUTPUT"
}

# kg_fail CODE MESSAGE: there is no verdict; say so everywhere and end the step.
kg_fail() {
  kg_error "$2"
  kg_output verdict error
  kg_output exit-code "$1"
  kg_output problem "$2"
  if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    printf '## kernel-gate: not decided (exit %s)\n\n~~~~~~~~text\n%s\n~~~~~~~~\n' "$1" "$2" \
      >> "$GITHUB_STEP_SUMMARY"
  fi
  exit "$1"
}

# kg_take FROM TO: append a file that a container wrote; a link is none of its.
kg_take() {
  if [ -f "$1" ] && [ ! -L "$1" ]; then cat -- "$1" >> "$2"; fi
}

# Runs a command whose output is shown but never obeyed.
kg_muted() {
  local status=0
  kg_silence="kg$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  printf '::stop-commands::%s\n' "$kg_silence"
  "$@" || status=$?
  kg_unmute
  return "$status"
}
kg_silence=""

# Lets the runner obey again; also called when a signal ends a muted command.
kg_unmute() {
  [ -z "$kg_silence" ] || printf '\n::%s::\n' "$kg_silence"
  kg_silence=""
}

# Runs a command beside this script, so that a signal ends the wait for it at once. It does not get
# the descriptor that tells containers whether this script lives.
kg_beside() {
  if [ -n "$hold" ]; then "$@" {hold}>&- & else "$@" & fi
  wait "$!"
}
hold=""

# The variables that a container gets: inputs by name, and what GitHub says of the event.
kg_env_flags() {
  local name
  env_flags=()
  for name in $(compgen -e | grep -E '^KG_[A-Z_]+$' | grep -v -E '^KG_(TOKEN|OUT|REPO|SHARDS|PYTHON|PREPARED|TREES|WORKER_SOCKET|USED_.*)$'); do
    env_flags+=(-e "$name")
  done
  for name in GITHUB_EVENT_NAME GITHUB_REPOSITORY GITHUB_RUN_ID GITHUB_RUN_ATTEMPT GITHUB_SHA \
    GITHUB_REF GITHUB_API_URL GITHUB_SERVER_URL; do
    env_flags+=(-e "$name")
  done
}
