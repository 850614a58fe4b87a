#!/usr/bin/env bash
# Sets up what the tests of the action need, then runs a command with it: npm packages, a Docker
# Engine, and the image of the Dockerfile. What is made lies in build/action and is used again; an
# engine that is started here is stopped at the end.
#
#   tests/action/prepare.sh python -m pytest tests/action
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/action
base=python:3.11-slim-bookworm
image=kernel-gate:test
engine=""

stop_engine() {
  if [ -n "$engine" ]; then
    kill "$(cat "$engine/pid" 2> /dev/null)" 2> /dev/null || true
    wait 2> /dev/null || true
    umount "$engine/exec/netns/default" 2> /dev/null || true
    rm -rf "$engine"
  fi
}
trap stop_engine EXIT

lack() {
  printf 'make test-action: %s\n' "$1" >&2
  exit 3
}

# need PROGRAM PACKAGE...: a program, from Debian's packages where that is possible.
need() {
  local program=$1
  shift
  if command -v "$program" > /dev/null; then return 0; fi
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } \
      > "$work/apt.log" 2>&1 || true
  fi
  command -v "$program" > /dev/null || lack "$program is missing; install it (Debian: apt-get install $*)"
}

# --- GitHub's description, and Prism ---------------------------------------------------------------

install_prism() {
  need node nodejs
  need npm npm
  [ "$here/npm/node_modules/.package-lock.json" -nt "$here/npm/package.json" ] \
    && [ -f "$here/npm/node_modules/@octokit/webhooks-examples/package.json" ] \
    || npm install --prefix "$here/npm" --no-audit --no-fund --no-package-lock > "$work/npm.log" 2>&1 \
    || lack "npm could not install what tests/action/npm/package.json names; $work/npm.log says why"
}

# --- the engine ------------------------------------------------------------------------------------

start_engine() {
  need docker docker.io
  if docker version > /dev/null 2>&1; then return 0; fi
  [ "$(id -u)" = 0 ] || lack "no Docker Engine answers, and only root may start one: start docker, or run this as root"
  need dockerd docker.io
  need runc runc
  engine=$(mktemp -d /tmp/kernel-gate-engine.XXXXXXXX)
  setsid dockerd --data-root "$work/docker" --exec-root "$engine/exec" --pidfile "$engine/pid" \
    -H "unix://$engine/docker.sock" --group root --bridge=none --iptables=false --ip-forward=false \
    --ip-masq=false > "$work/dockerd.log" 2>&1 &
  export DOCKER_HOST="unix://$engine/docker.sock"
  for _ in $(seq 120); do
    if docker version > /dev/null 2>&1; then return 0; fi
    sleep 0.5
  done
  lack "the Docker Engine did not start; $work/dockerd.log says why"
}

# --- the image -------------------------------------------------------------------------------------

# Where no registry of images can be reached: Debian's smallest system with this machine's Python,
# and the torch that this machine's pip would install.
make_base() {
  local tree=$work/base prefix name
  [ "$(id -u)" = 0 ] || lack "$base cannot be pulled, and only root can make a stand-in for it"
  need python3.11 python3.11
  need debootstrap debootstrap
  prefix=$(python3.11 -c 'import sys; print(sys.base_prefix)')
  [ -x "$tree/usr/bin/dpkg" ] || debootstrap --variant=minbase bookworm "$tree" > "$work/base.log" 2>&1
  tar -C "$prefix" --exclude='site-packages/*' --exclude=test --exclude='*.a' --exclude=__pycache__ \
    -c bin lib include | tar -C "$tree/usr/local" -x
  install -D -m 644 "$(realpath /etc/ssl/certs/ca-certificates.crt)" "$tree/etc/ssl/certs/ca-certificates.crt"
  cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
  chroot "$tree" sh -c '/sbin/ldconfig && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends libssl3 libsqlite3-0 libffi8 liblzma5 libbz2-1.0 zlib1g libreadline8 \
    libncursesw6 libuuid1 libexpat1 && apt-get clean && rm -rf /var/lib/apt/lists/* \
    && /usr/local/bin/python3.11 -m ensurepip' > "$work/base.log" 2>&1 \
    || lack "the stand-in for $base could not be made; $work/base.log says why"
  for name in python python3; do ln -sf python3.11 "$tree/usr/local/bin/$name"; done
  for name in pip pip3; do
    printf '#!/bin/sh\nexec /usr/local/bin/python3.11 -m pip "$@"\n' > "$tree/usr/local/bin/$name"
    chmod 755 "$tree/usr/local/bin/$name"
  done
  python3.11 -m pip download --quiet --no-deps --dest "$tree/opt/wheels" \
    "torch==$(sed -n 's/^ARG TORCH_VERSION=//p' "$root/Dockerfile")" \
    || lack "pip could not download torch for the stand-in of $base"
  tar -C "$tree" -c . | docker import -c 'ENV PIP_FIND_LINKS=/opt/wheels' \
    -c 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_DEFAULT_TIMEOUT=180' \
    -c 'ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin' \
    -c 'LABEL kernel-gate.stand-in=1' - "$base" > /dev/null
  rm -rf "$tree"
}

build_image() {
  local words=()
  docker image inspect "$base" > /dev/null 2>&1 || timeout 600 docker pull --quiet "$base" > /dev/null 2>&1 || make_base
  if [ -n "$(docker image inspect --format '{{index .Config.Labels "kernel-gate.stand-in"}}' "$base" 2> /dev/null)" ]; then
    words=(--build-arg CPU_INDEX=)
  fi
  DOCKER_BUILDKIT=0 docker build --network host "${words[@]}" -t "$image" "$root" > "$work/build.log" 2>&1 \
    || lack "the image could not be built; the end of $work/build.log: $(tail -n 5 "$work/build.log")"
}

mkdir -p "$work"
install_prism
start_engine
build_image
export KG_ACTION_TESTS=all KG_TEST_IMAGE=$image KG_BUILD_NETWORK=host
"$@"
