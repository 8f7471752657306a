#!/bin/sh
# Check that a tag can be released, and print the part of CHANGELOG.md about its version: deploy/release/check.sh v1.0.0
set -eu
cd "$(dirname "$0")/../.."
fail() { echo "error: $*" >&2; exit 1; }

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
[ "$1" = "v$version" ] || fail "the tag is $1, expected v$version as in pyproject.toml; change one of them"
grep -q "\"semsearch-model==$version\"" pyproject.toml ||
    fail "pyproject.toml requires another semsearch-model than $version; change its extra index"
states() { grep -q "$2" "$1" || fail "$1 states no $3; see Releasing in CONTRIBUTING.md"; }
states pyproject.toml '^authors = ' authors
states pyproject.toml '^Source = "https://' "Source in [project.urls]"
states CITATION.cff '^repository-code: https://' repository-code
notes=$(awk -v heading="## [$version]" '/^## \[/ { found = index($0, heading) == 1; next } found' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no text below ## [$version]; add what users notice"
python3 -m bench.tables >&2 || fail "these results are not of this commit's code; see Releasing in CONTRIBUTING.md"
printf '%s\n' "$notes"
