# checkov:skip=CKV_DOCKER_2:Lambda runs no health checks of an image, and the HTTP API has GET /health
# checkov:skip=CKV_DOCKER_7:The base is an argument, so that it can be pinned by digest; its default names a version

# The function as a container image: the base, and five layers over it, the least often changed first.
# Everything is prepared in stages of their own and arrives finished: what a stage needs to work stays behind in it.
# `make pin-base` adds the digest of what this tag names in the registry, or renews it
ARG BASE_IMAGE=public.ecr.aws/lambda/python:3.13

# Each byte of the bundle is checked here, because a start has no time to. This stage is the first, so that a missing
# bundle is reported before anything is installed. COPY fails if a folder is missing, but not if a pattern matches
# nothing, so `[e]` makes the folder's name a pattern. The bundle may have been copied here with files that only their
# owner may read; in the image that would be root.
FROM ${BASE_IMAGE} AS bundle
WORKDIR /build
COPY semsearch/ semsearch/
COPY function/image/ function/image/
COPY function/image/check_bundle.py bundl[e] bundle/
RUN python3 -m function.image.check_bundle bundle && chmod -R a+rX bundle
# The files of the models get a layer of their own, which is empty for a bundle without a model
RUN mkdir models && for file in bundle/*.ort bundle/*tokenizer.txt; do [ ! -e "$file" ] || mv "$file" models/; done
# What the image is built of, such as the commit, if the builder names it
ARG REVISION
RUN python3 -m function.image.describe bundle "$REVISION" > image.json

# The list of the packages with their hashes (SBOM), in CycloneDX's JSON: `docker run --rm --entrypoint cat IMAGE
# sbom.cdx.json` prints it. It is a file, because Lambda refuses images with attestations; nothing reads it at run time.
FROM ${BASE_IMAGE} AS sbom
COPY requirements.txt function/image/sbom-requirements.txt /build/
RUN python3 -m pip install --target /build/tools --require-hashes --no-deps --only-binary :all: \
    --no-compile --no-cache-dir --disable-pip-version-check --root-user-action ignore -r /build/sbom-requirements.txt \
    && PYTHONPATH=/build/tools python3 -m cyclonedx_py requirements --output-reproducible --no-validate \
    --output-file /build/sbom.cdx.json /build/requirements.txt

# What the function imports, without what it never does, and the bytecode of both it and the base.
FROM ${BASE_IMAGE} AS dependencies
# Otherwise pip leaves bytecode of the base's modules behind, which would then be taken for the base's own
ENV PYTHONDONTWRITEBYTECODE=1
COPY requirements.txt /build/
RUN python3 -m pip install --target /staging/var/task --require-hashes --no-deps --only-binary :all: \
    --no-compile --no-cache-dir --disable-pip-version-check --root-user-action ignore -r /build/requirements.txt
COPY --from=sbom /build/sbom.cdx.json /staging/var/task/
COPY function/image/ /build/
RUN python3 /build/trim.py /staging/var/task \
    && python3 /build/bytecode.py /staging --base \
    && chmod -R a+rX /staging

# The function, and in one file all that it imports: function/archive.py says why
FROM ${BASE_IMAGE} AS function
WORKDIR /var/task
COPY --from=dependencies /staging/ /
COPY function/ function/
COPY semsearch/ semsearch/
RUN mkdir -p /staging/var/task && cp -R function semsearch /staging/var/task && rm -r /staging/var/task/function/image \
    && python3 function/image/bytecode.py /staging \
    && python3 -m function.image.build_archive --out /staging/var/task/function/archive.bin && chmod -R a+rX /staging

FROM ${BASE_IMAGE}
COPY --from=dependencies /staging/ /
COPY --from=function /staging/ /
COPY --from=bundle /build/models/ /var/task/bundle/
COPY --from=bundle /build/bundle/*.safetensors /build/bundle/manifest.json /var/task/bundle/
COPY --from=bundle /build/image.json /var/task/

# /tmp is all that may be written in Lambda; a library that looks for a cache finds it there.
# NumPy would start a thread for each core, and pydantic would look for plugins: neither is needed here.
ENV HOME=/tmp ORT_DISABLE_TELEMETRY=1 OPENBLAS_NUM_THREADS=1 PYDANTIC_DISABLE_PLUGINS=__all__
# The user that Lambda itself runs functions as; by number, because the base's /etc/passwd does not know it
USER 993:990
# `sam local` builds its own image on this one and can add its emulator as root alone. So whoever builds on this image
# gets root back, as on most bases, and ends with a USER of their own; docs/deploy.md says so. Lambda chooses its own user.
ONBUILD USER root
CMD ["function.handler.handler"]

LABEL org.opencontainers.image.title="semantic-search" \
    org.opencontainers.image.description="Semantic search on AWS Lambda" \
    org.opencontainers.image.licenses="MIT"
