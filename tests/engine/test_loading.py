"""A bundle opened in one piece: all its parts, or the error of the part that is broken."""

import json
from pathlib import Path

import pytest

from semsearch.engine.bundle import INDEX, MODEL, PASSAGES, TOKENIZER, BundleError, Manifest
from semsearch.engine.loading import load_bundle
from semsearch.engine.tensors import TensorsError
from semsearch.indexing.corpus import Corpus


def test_the_parts_of_a_bundle_answer_together(bundle: Path, manifest: Manifest, corpus: Corpus) -> None:
    loaded = load_bundle(bundle)
    assert loaded.manifest == manifest
    assert len(loaded.index) == len(loaded.passages) == len(corpus.texts)
    (query,) = loaded.embedder.embed(loaded.embedder.tokenize([corpus.texts[123]], role="query"))
    (hit,) = loaded.index.search(query, top_k=1)
    assert loaded.passages[hit.row].text == corpus.texts[123]


def test_a_bundle_that_is_not_whole_is_not_loaded(bundle_copy: Path) -> None:
    (bundle_copy / PASSAGES).unlink()
    with pytest.raises(BundleError, match=r"passages\.safetensors: is missing"):
        load_bundle(bundle_copy)


@pytest.mark.parametrize("name", [INDEX, PASSAGES])
def test_a_damaged_file_of_the_right_length_is_refused_by_name(bundle_copy: Path, name: str) -> None:
    with (bundle_copy / name).open("r+b") as file:
        file.write(b"\xff" * 8)  # the length of the header
    with pytest.raises(TensorsError, match=name):
        load_bundle(bundle_copy)


@pytest.mark.parametrize("name", [TOKENIZER, MODEL])
def test_a_damaged_model_or_tokenizer_of_the_right_length_is_refused_by_name_and_reason(
    bundle_copy: Path, name: str
) -> None:
    path = bundle_copy / name
    path.write_bytes(b"}" * path.stat().st_size)
    with pytest.raises(BundleError) as refused:
        load_bundle(bundle_copy)
    reason = str(refused.value.__cause__)
    assert reason
    assert str(refused.value) == f"{path}: {reason}; run `semsearch index` again"


def test_a_manifest_that_does_not_fit_the_files_is_refused(bundle_copy: Path) -> None:
    path = bundle_copy / "manifest.json"
    content = json.loads(path.read_text())
    content["index"]["rows"] = 7
    path.write_text(json.dumps(content))
    with pytest.raises(BundleError, match="run `semsearch index` again"):
        load_bundle(bundle_copy)
