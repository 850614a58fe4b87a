#!/usr/bin/env bash
# Builds one kind of the image and pushes it, with its SBOM and build record beside it in the
# registry. In the environment: IMAGE, TAG (v1.2.3), TORCH (cpu, cuda), ACTOR, TOKEN, SHA.
# Writes the output `digest`.
set -euo pipefail
[[ "$TAG" =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || { printf 'no release tag: %s\n' "$TAG" >&2; exit 2; }

# v1.2.3, v1.2 and v1; with -cuda for the large kind.
suffix=""
if [ "$TORCH" = cuda ]; then suffix=-cuda; fi
names=()
for version in "$TAG" "${TAG%.*}" "${TAG%%.*}"; do names+=(--tag "${IMAGE,,}:$version$suffix"); done

printf '%s' "$TOKEN" | docker login ghcr.io --username "$ACTOR" --password-stdin
trap 'docker logout ghcr.io' EXIT
docker buildx create --name release --driver docker-container --use
docker buildx build --push --sbom=true --provenance=mode=max --metadata-file metadata.json \
  --build-arg "TORCH=$TORCH" \
  --label "org.opencontainers.image.version=$TAG" \
  --label "org.opencontainers.image.revision=$SHA" \
  --label "org.opencontainers.image.source=https://github.com/${IMAGE#ghcr.io/}" \
  "${names[@]}" .
printf 'digest=%s\n' "$(jq -er '."containerimage.digest"' metadata.json)" >> "$GITHUB_OUTPUT"
