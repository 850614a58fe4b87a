# kernel-gate, and torch and Triton to run kernels with. The gate's sandbox and a laptop's tool:
#
#   docker run --rm -v "$PWD:/work" IMAGE run --base origin/main
#   docker run --rm --gpus all -v "$PWD:/work" IMAGE replay 'CASE'
ARG BASE=python:3.11-slim-bookworm
# hadolint ignore=DL3006
FROM ${BASE}

LABEL org.opencontainers.image.title="kernel-gate" \
      org.opencontainers.image.description="The CI gate for Triton kernels" \
      org.opencontainers.image.licenses="Apache-2.0"

# gcc and the C headers: Triton compiles a launcher for each kernel.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev git \
 && rm -rf /var/lib/apt/lists/*

RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin gate \
 && install -d -o 10001 -g 10001 /work

# cpu: wheels without CUDA, a fifth of the size. cuda: the default index's, which carry CUDA.
ARG TORCH=cpu
ARG TORCH_VERSION=2.13.0
ARG TRITON_VERSION=3.9.0
# Empty: what pip is set up for in the base image.
ARG CPU_INDEX=https://download.pytorch.org/whl/cpu
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# The version is pinned, behind an option that the linter cannot read.
# hadolint ignore=DL3013
RUN case "$TORCH" in \
      cpu) pip install --no-cache-dir ${CPU_INDEX:+--index-url "$CPU_INDEX"} "torch==$TORCH_VERSION" \
           && pip install --no-cache-dir "triton==$TRITON_VERSION" ;; \
      cuda) pip install --no-cache-dir "torch==$TORCH_VERSION" ;; \
      *) echo "TORCH is '$TORCH'; one of cpu, cuda" >&2; exit 2 ;; \
    esac

# Dependencies first: they change less often than the gate.
COPY pyproject.toml /opt/kernel-gate/
RUN python3 -c 'import tomllib; p = tomllib.load(open("/opt/kernel-gate/pyproject.toml", "rb")); print("\n".join(p["project"]["dependencies"]))' \
      > /opt/kernel-gate/requirements.txt \
 && pip install --no-cache-dir -r /opt/kernel-gate/requirements.txt

COPY setup.py README.md LICENSE /opt/kernel-gate/
COPY gate /opt/kernel-gate/gate
COPY corpus /opt/kernel-gate/corpus
COPY examples /opt/kernel-gate/examples
RUN pip install --no-cache-dir --no-deps /opt/kernel-gate \
 && rm -rf /opt/kernel-gate/build

ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    HOME=/tmp \
    TRITON_CACHE_DIR=/tmp/triton \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1

# The entrypoint leaves root at once, for the user whom /work belongs to.
WORKDIR /work
ENTRYPOINT ["/opt/kernel-gate/gate/action/entrypoint.sh"]
