#!/usr/bin/env bash
# Run what a user of a Mac runs, and the tests of the package, on a machine that lacks what macOS lacks.
# tests/mac.sh IMITATOR, as root and after `make demo`: IMITATOR COMMAND… runs a command without /proc, without Linux's own
# functions, and with sys.platform "darwin". `tests/mac.sh` alone runs the same here, for example on a real Mac.
set -euo pipefail
imitator=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."

if [ -n "$imitator" ]; then
    MAC_CPUINFO=$(mktemp)
    export MAC_CPUINFO
    trap 'rm -f "$MAC_CPUINFO"' EXIT
    cat /proc/cpuinfo > "$MAC_CPUINFO"
    "$imitator" tests/mac.sh
    exit
fi

work=$(mktemp -d) server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
python=$PWD/.venv/bin/python
semsearch=$PWD/.venv/bin/semsearch

# The packages that are installed here are those for Linux. ONNX Runtime and PyTorch read this file of /proc, which those
# for macOS do not, and pypdfium2 looks for the file that its package for macOS has.
if [ -n "${MAC_CPUINFO:-}" ]; then
    cp "$MAC_CPUINFO" /proc/cpuinfo
    pdfium=$(dirname "$("$python" -c 'import importlib.util; print(importlib.util.find_spec("pypdfium2_raw").origin)')")
    cp -R "$pdfium" "$work/pdfium"
    ln -s libpdfium.so "$work/pdfium/libpdfium.dylib"
    mount --bind "$work/pdfium" "$pdfium"
fi

# GNU commands and options that macOS lacks
mkdir "$work/bin"
for name in nproc sha256sum; do
    printf '#!/bin/sh\necho "%s: not found on a Mac" >&2\nexit 127\n' "$name" > "$work/bin/$name"
done
printf '#!/bin/sh\n[ "$1" != -i ] || { echo "sed: -i without a suffix, on a Mac" >&2; exit 1; }\nexec %s "$@"\n' \
    "$(command -v sed)" > "$work/bin/sed"
chmod +x "$work/bin/"*
export PATH=$work/bin:$PATH

# the model is that of `make demo`, and the index of the folder is not left in the user's cache
cache=${XDG_CACHE_HOME:-$HOME/.cache}/semsearch
mkdir -p "$cache/models" "$work/cache/semsearch"
ln -s "$cache/models" "$work/cache/semsearch/models"
export XDG_CACHE_HOME=$work/cache

mkdir "$work/docs"
cp README.md docs/documents.md "$work/docs"
"$python" - "$work/docs/wings.pdf" <<'END'
import sys
from pathlib import Path
from tests.indexing.documents.files import write_pdf

write_pdf(Path(sys.argv[1]), [["An angry goose spreads its wings."]])
END

printf '\n-- a folder, an index and a server\n'
"$semsearch" query "$work/docs" "which animal is in a bad mood?" --num-results 1 | tee "$work/found"
grep -q 'wings.pdf#page=1' "$work/found"
"$semsearch" index "$work/docs" --out "$work/bundle"
"$semsearch" query "$work/bundle" "titles of a scanned PDF" --num-results 1 | grep -q 'documents.md:[0-9]'
serve() {
    : > "$work/errors"  # the address of the server before must not be found there
    "$semsearch" serve "$@" --port 0 > "$work/log" 2> "$work/errors" &
    server=$!
    until address=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/errors"); do
        kill -0 "$server" || { cat "$work/errors"; exit 1; }
        sleep 0.2
    done
    "$python" -c 'import sys; from semsearch import Search; print(Search(sys.argv[1]).search("an angry goose")[0].id)' \
        "$address"
    kill -TERM "$server"
    wait "$server" || { cat "$work/errors"; exit 1; }
    server=
}
serve "$work/bundle"
serve "$work/docs" --watch --threads 2

printf '\n-- Python\n'
cd "$work"
"$python" - <<'END'
from semsearch import Search, index

rows = [
    {"text": "a warm coat for the winter", "price": 80},
    {"text": "a light dress for the summer", "price": 60},
    {"text": "an umbrella", "price": 15},
]
index(rows, text_column="text", out="coats", progress=False)
search = Search("coats")
(hit,) = search.search("something against the cold", filter={"price": {"$gt": 70}}, top_k=1)
print(hit.text)
texts = ["snow and ice", "a rainy day", "the beach"]
assert search.search_many(texts) == [search.search(text) for text in texts]
END
cd - > /dev/null

printf '\n-- the tests\n'
make test PATHS="tests/engine tests/search tests/indexing tests/commands tests/server tests/test_client.py \
    tests/test_client_places.py tests/indexing/test_walking.py tests/deploy/test_pin_base.py"
