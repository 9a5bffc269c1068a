# A worker with Mathlib in a layer of its own, made by the command that makes an environment on a node:
#   docker build -f docker/environment.Dockerfile --build-arg NAME=mathlib-4.35 --build-arg MATHLIB=v4.35.0 \
#       -t lean-proof-farm-mathlib-4.35 PINS
# PINS is a folder with the `lean-toolchain` and `lake-manifest.json` that are expected: docs/operate/images.md.
ARG WORKER=lean-proof-farm-worker
FROM ${WORKER}
ARG NAME
ARG MATHLIB
# While an image is built there are no namespaces; what runs here is Mathlib's, and no proof.
RUN FARM_ISOLATION=rlimit farm environments add "$NAME" --mathlib "$MATHLIB" --dir "/environments/$NAME" \
    && rm -rf /var/lib/farm/.cache /var/lib/farm/work
COPY lean-toolchain lake-manifest.json /environments/pinned/
RUN for file in lean-toolchain lake-manifest.json; do \
        cmp "/environments/pinned/$file" "/environments/$NAME/workspace/$file" || exit 1; \
    done
ENV FARM_ENVIRONMENT=${NAME}
