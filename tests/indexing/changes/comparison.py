"""Whether two bundles are the same: an updated one, and a fresh one of the same texts and options."""

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from semsearch.engine.bundle import INDEX, MANIFEST, PASSAGES, QUERY_TABLE, check_files, read_manifest
from semsearch.indexing.corpus.passages import PrefixedTexts, stored_columns, stored_sources
from semsearch.indexing.vectors.query_table import MOST_NEW

SIGNS = "bits"  # the tensor of an index that only speeds its searches up
# What an update can keep from the older index as long as few texts are new: measures, and what is made to fit them.
KEPT_FIELDS = (
    ("queries",),
    ("index", "stages"),
    ("index", "recall"),
    ("index", "floor"),
    ("index", "embedded_by"),
    ("index", "keywords", "known_words"),
)


def find_differences(updated: Path, fresh: Path, *, exactly: bool) -> list[str]:
    """Return a line for each field of the manifest, and for each file that it lists, that is not the same in both.

    Files that a manifest does not list are not compared. Unless `exactly`, what an update can keep is not compared:
    KEPT_FIELDS, the query table, and the SIGNS of the index. Raises BundleError if a file of the updated bundle is not
    what its manifest says.
    """
    check_files(updated)
    ours, theirs = (json.loads((bundle / MANIFEST).read_text()) for bundle in (updated, fresh))
    names = sorted(ours["files"].keys() & theirs["files"].keys())
    for manifest in (ours, theirs):
        manifest["files"] = dict.fromkeys(manifest["files"])  # the files themselves are compared
        if not exactly:
            _leave_out_kept(manifest)
    found = [f"{MANIFEST}: {line}" for line in _differing_fields(ours, theirs)]
    if not found and json.dumps(ours) != json.dumps(theirs):
        found = [f"{MANIFEST}: the fields are in another order"]
    for name in names:
        if (updated / name).read_bytes() == (fresh / name).read_bytes():
            continue
        if not exactly and _can_be_kept(name, updated / name, fresh / name):
            continue
        found.append(f"{name}: {_describe(updated / name, fresh / name)}")
    return found


def _leave_out_kept(manifest: dict[str, Any]) -> None:
    """Remove the KEPT_FIELDS from a manifest."""
    for *path, name in KEPT_FIELDS:
        fields: Any = manifest
        for each in path:
            fields = fields.get(each) or {}
        fields.pop(name, None)


def _can_be_kept(name: str, ours: Path, theirs: Path) -> bool:
    """Return whether a file that differs can be that of an older index."""
    return name == QUERY_TABLE or (name == INDEX and _differing_tensors(ours, theirs) == {SIGNS})


def _differing_fields(ours: Any, theirs: Any, path: str = "") -> list[str]:
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return [] if ours == theirs else [f"{path} is {ours!r:.200}, a fresh index has {theirs!r:.200}"]
    found = []
    for name in dict.fromkeys([*ours, *theirs]):
        found += _differing_fields(ours.get(name, "missing"), theirs.get(name, "missing"), f"{path}.{name}".lstrip("."))
    return found


def _differing_tensors(ours: Path, theirs: Path) -> set[str]:
    one, other = load_file(ours), load_file(theirs)
    both = one.keys() & other.keys()
    same = {
        name
        for name in both
        if (one[name].dtype, one[name].shape) == (other[name].dtype, other[name].shape)
        and one[name].tobytes() == other[name].tobytes()
    }
    return (one.keys() | other.keys()) - same


def _describe(ours: Path, theirs: Path) -> str:
    """Say what differs in a file, with the first rows of a passages.safetensors that are not the same."""
    if ours.suffix != ".safetensors":
        return "other bytes"
    line = f"other tensors: {', '.join(sorted(_differing_tensors(ours, theirs)))}"
    if ours.name == PASSAGES:
        rows = zip(zip(*stored_columns(ours), strict=True), zip(*stored_columns(theirs), strict=True), strict=False)
        for number, (one, other) in enumerate(rows):
            if one != other:
                return f"{line}; row {number} is {one}, a fresh index has {other}"
    return line


def embedded_texts(bundle: Path) -> list[str]:
    """Return the texts of a bundle as its model reads them; none if it has only a model."""
    corpus = read_manifest(bundle).corpus_or_none
    if corpus is None:
        return []
    texts, _, metadata = stored_columns(bundle / PASSAGES)
    if corpus.heading_prefix:
        return list(PrefixedTexts(texts, metadata, stored_sources(bundle / PASSAGES)))
    return list(texts)


def is_large_change(before: list[str], after: list[str]) -> bool:
    """Return whether more than a tenth of the texts are new, so that an update keeps no measure of the older index."""
    known = set(before)
    return sum(text not in known for text in after) > MOST_NEW * len(after)
