"""What is the same in two bundles, and what an update can keep of an older one."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from semsearch.engine.bundle import (
    INDEX,
    KEYWORDS,
    MODEL,
    TOKENIZER,
    FloorInfo,
    Manifest,
    StagesInfo,
    describe_file,
    read_manifest,
)
from semsearch.engine.tensors import AnyArray
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.tensor_files import save_tensors
from tests.indexing.changes.comparison import find_differences, is_large_change
from tests.world import add_table


def rewrite(bundle: Path, name: str, **tensors: AnyArray) -> None:
    """Change tensors of a file, and state its bytes in the manifest."""
    save_tensors(bundle / name, load_file(bundle / name) | tensors)
    manifest = read_manifest(bundle)
    write_manifest(bundle, replace(manifest, files=manifest.files | {name: describe_file(bundle / name)}))


def test_files_that_the_manifest_does_not_list_are_not_compared(bundle: Path, bundle_copy: Path) -> None:
    (bundle_copy / "source.txt").write_text("elsewhere")
    assert find_differences(bundle_copy, bundle, exactly=True) == []


def test_another_file_is_named_with_its_tensors_and_so_is_another_field(bundle: Path, bundle_copy: Path) -> None:
    rewrite(bundle_copy, KEYWORDS, scales=load_file(bundle / KEYWORDS)["scales"] * 2)
    manifest = read_manifest(bundle_copy)
    write_manifest(bundle_copy, replace(manifest, corpus_or_none=replace(manifest.corpus, title="Geese")))
    field, file = find_differences(bundle_copy, bundle, exactly=False)
    assert field == "manifest.json: index.title is 'Geese', a fresh index has ''"
    assert file == f"{KEYWORDS}: other tensors: scales"


@pytest.mark.parametrize("tensor", ["codes", "scales"])
def test_an_older_row_of_the_index_is_a_difference(bundle: Path, bundle_copy: Path, tensor: str) -> None:
    rewrite(bundle_copy, INDEX, **{tensor: load_file(bundle / INDEX)[tensor][::-1].copy()})
    assert find_differences(bundle_copy, bundle, exactly=False) == [f"{INDEX}: other tensors: {tensor}"]


def older_measures(manifest: Manifest) -> Manifest:
    corpus = replace(manifest.corpus, stages=StagesInfo(500, 100), recall={}, floor={"hybrid": FloorInfo(0.5, 1.0)})
    return replace(manifest, corpus_or_none=corpus)


def add_older_table(bundle: Path) -> None:
    add_table(bundle)
    manifest = read_manifest(bundle)
    assert manifest.queries is not None
    write_manifest(bundle, replace(manifest, queries=replace(manifest.queries, new_rows=1)))


@pytest.mark.parametrize(
    "change",
    [
        lambda bundle: rewrite(bundle, INDEX, bits=np.zeros((2, 200), np.uint64)),
        lambda bundle: write_manifest(bundle, older_measures(read_manifest(bundle))),
        add_older_table,
    ],
    ids=["signs", "measures", "query-table"],
)
def test_what_an_update_can_keep_is_compared_only_exactly(
    bundle: Path, bundle_copy: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    fresh = Path(shutil.copytree(bundle, tmp_path / "fresh"))
    if change is add_older_table:
        add_table(fresh)
    change(bundle_copy)
    assert find_differences(bundle_copy, fresh, exactly=False) == []
    assert find_differences(bundle_copy, fresh, exactly=True) != []


def test_a_change_is_large_if_more_than_a_tenth_of_the_texts_are_new() -> None:
    texts = [str(number) for number in range(20)]
    assert not is_large_change(texts, ["new", "newer", *texts[2:]])
    assert is_large_change(texts, ["new", "newer", "newest", *texts[3:]])
    assert not is_large_change(texts, texts[:5])


def test_a_missing_file_is_a_difference(bundle: Path, bundle_copy: Path) -> None:
    manifest = read_manifest(bundle_copy)
    write_manifest(bundle_copy, replace(manifest, files={name: manifest.files[name] for name in (MODEL, TOKENIZER)}))
    assert "manifest.json: files.index.safetensors is 'missing', a fresh index has None" in find_differences(
        bundle_copy, bundle, exactly=False
    )
