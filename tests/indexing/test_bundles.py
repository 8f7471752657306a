"""Models are copied from another bundle; the unfinished folder of a bundle gets links to them."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from semsearch.engine.bundle import MODEL, RERANK, RERANK_TOKENIZER, TOKENIZER, read_manifest
from semsearch.indexing.bundles import take_model, write_manifest
from semsearch.indexing.replacing import PARTIAL
from tests.command_line import names
from tests.rerankers import add_reranker


def links(bundle: Path) -> int:
    return (bundle / MODEL).stat().st_nlink


def test_the_unfinished_folder_of_a_bundle_gets_links_and_another_folder_copies(
    bundle_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (bundle_copy / PARTIAL).mkdir()
    take_model(bundle_copy, tmp_path / "other")
    assert links(bundle_copy) == 1
    take_model(bundle_copy, bundle_copy / PARTIAL)
    assert links(bundle_copy) == 2
    (bundle_copy / "third").mkdir()

    def refuse(file: Path, copy: Path) -> None:
        raise OSError("Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    take_model(bundle_copy, bundle_copy / "third")
    assert links(bundle_copy) == 2
    for folder in (tmp_path / "other", bundle_copy / PARTIAL, bundle_copy / "third"):
        assert names(folder) == sorted(["manifest.json", MODEL, TOKENIZER])
        assert (folder / MODEL).read_bytes() == (bundle_copy / MODEL).read_bytes()
        assert read_manifest(folder).model == read_manifest(bundle_copy).model


@pytest.mark.parametrize("own", ["another", "the same", "none"])
def test_a_reranker_is_taken_with_its_tokenizer_if_that_is_another_one(
    own: str, bundle_copy: Path, tmp_path: Path
) -> None:
    add_reranker(bundle_copy)
    manifest = read_manifest(bundle_copy)
    files = dict(manifest.files)
    if own != "another":
        shutil.copy(bundle_copy / TOKENIZER, bundle_copy / RERANK_TOKENIZER)
        files[RERANK_TOKENIZER] = files[TOKENIZER]
    if own == "none":
        del files[RERANK_TOKENIZER]
    write_manifest(bundle_copy, replace(manifest, files=files))
    (tmp_path / "copy").mkdir()
    taken = take_model(bundle_copy, tmp_path / "copy")
    assert taken == read_manifest(tmp_path / "copy")
    assert taken.rerank == manifest.rerank
    expected = {MODEL, TOKENIZER, RERANK, *[RERANK_TOKENIZER] * (own == "another")}
    assert taken.files == {name: manifest.files[name] for name in expected}
