#!/bin/bash
# The image's entrypoint: kernel-gate on /work, as the user whom /work belongs to, so that reports
# are the caller's own files and nothing runs as root. Where /work is root's (rootless engines map
# the caller to root), the user stays. A user given with `docker run --user` stays, too.
set -eu
owner=$(stat -c %u .)
group=$(stat -c %g .)
if [ "$(id -u)" -eq 0 ] && [ "$owner" -ne 0 ]; then
  exec setpriv --reuid "$owner" --regid "$group" --clear-groups --no-new-privs \
    --inh-caps=-all --bounding-set=-all kernel-gate "$@"
fi
exec kernel-gate "$@"
