#!/usr/bin/env bash
# Opens the sandboxes as gate/action/docker.sh does, over a tree that is given, and keeps them until
# standard input ends: `box.sh TREE WORK` prints `ready` when both listen in WORK/socket.
set -euo pipefail
tree=$1 work=$2
action=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=gate/action/lib.sh
. "$action/gate/action/lib.sh"
# shellcheck source=gate/action/docker.sh
. "$action/gate/action/docker.sh"
GITHUB_OUTPUT=/dev/null
UNDECIDED=3
KG_IMAGE=${KG_TEST_IMAGE:?}
KG_DEVICE=interpreter
name="kg-test-$$"
image=""
end() {
  kg_remove_all
  kg_remove_files
}
trap end EXIT
trap 'exit 143' TERM
mkdir -p "$work/trees/base"
cp -r "$tree" "$work/trees/head"
chmod -R a+rX "$work/trees"
kg_hold_on
kg_fences
make_image
start_sandboxes
echo "ready $name"
cat > /dev/null
