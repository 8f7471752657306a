#!/bin/sh
# What action.yml runs: make the search of a folder of built HTML, in a folder of it. Outside of GitHub:
#   deploy/site_action.sh install && HTML=site OUT=find deploy/site_action.sh build
# CACHE keeps the last index, so that the next push embeds only what has changed, and the last search, whose files stay
# beside the new ones. With WHEELS_CACHED=true, the wheels in
# dist/ are those of this checkout already.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
cache=${CACHE:-$HOME/.cache/semsearch-action}

case $1 in
digest) # the name of the wheels in a cache: a digest of what they are made from
    cd "$here"
    find Makefile LICENSE README.md constraints.txt requirements.txt pyproject.toml deploy/model deploy/release semsearch \
        -type f ! -name '*.pyc' -exec shasum -a 256 {} + | LC_ALL=C sort | shasum -a 256 | cut -d ' ' -f 1
    ;;
install)
    [ "${WHEELS_CACHED:-}" = true ] || make -C "$here" wheels
    wheel=$(echo "$here"/dist/semsearch-*.whl)
    python3 -m pip install --quiet --constraint "$here/constraints.txt" "$wheel[index]" "$here"/dist/semsearch_model-*.whl
    ;;
build)
    set -- "$HTML" --out "$cache/bundle" --replace --base-url "${BASE_URL:-}" --title "${TITLE:-}" --queries table
    set -f # EXCLUDE has patterns, one a line
    IFS='
'
    for pattern in ${EXCLUDE:-}; do set -- "$@" --exclude "$pattern"; done
    unset IFS
    python3 -P -m semsearch index "$@"
    python3 -P -m semsearch site "$cache/bundle" --out "$HTML/${OUT:-find}" --keep "$cache/site"
    ;;
esac
