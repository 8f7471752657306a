"""Each kind of damage to a bundle fails a check that names it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from semsearch.engine.bundle import INDEX, MANIFEST, MODEL, PASSAGES, TOKENIZER, describe_file, read_manifest
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.vectors.recall import Recall
from semsearch.indexing.verification import Check, verify
from tests.bundle_files import write_passages

Tensors = dict[str, NDArray[Any]]

COSINE = "least cosine of 200 rows to their texts"
RECALLS = [f"recall@10, first hits of 200 {kind}" for kind in ("spans", "rows")]


def check(bundle: Path) -> tuple[dict[str, Check], Exception | None]:
    """Return the checks by name, and the error that stopped them."""
    checks: dict[str, Check] = {}
    try:
        for one in verify(bundle):
            checks[one.name] = one
    except Exception as error:  # noqa: BLE001  tokenizers and ONNX Runtime raise no narrower one
        return checks, error
    return checks, None


def failed(bundle: Path) -> list[str]:
    checks, error = check(bundle)
    assert error is None
    return [name for name, one in checks.items() if not one.passed]


def describe_again(bundle: Path) -> None:
    """Write the current length and checksum of each file into the manifest."""
    manifest = read_manifest(bundle)
    files = {name: describe_file(bundle / name) for name in manifest.files}
    index = replace(manifest.corpus, model_sha256=files[MODEL].sha256, tokenizer_sha256=files[TOKENIZER].sha256)
    (bundle / MANIFEST).write_text(replace(manifest, files=files, corpus_or_none=index).to_json())


def change_tensors(path: Path, change: Callable[[Tensors], object]) -> None:
    """Change some tensors of a bundle's file, and its checksum in the manifest."""
    tensors = {name: tensor.copy() for name, tensor in load_file(path).items()}
    change(tensors)
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, path)
    describe_again(path.parent)


def test_a_good_bundle_passes_every_check(bundle: Path) -> None:
    checks, error = check(bundle)
    assert error is None
    assert list(checks) == [
        *(f"checksum of {name}" for name in read_manifest(bundle).files),
        "rows in index, texts, manifest",
        COSINE,
        *RECALLS,
    ]
    assert all(one.passed for one in checks.values())
    assert checks["rows in index, texts, manifest"].found == "200, 200, 200"
    assert float(checks[COSINE].found) > 0.9995
    assert [checks[name].found for name in RECALLS] == ["1.0000, 1.0000"] * 2


def test_an_index_that_misses_neighbours_fails(bundle_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "semsearch.indexing.vectors.recall.ExactSearch.recall_of", lambda exact, index: Recall(0.97, 1.0)
    )
    assert failed(bundle_copy) == RECALLS


def test_the_model_of_a_bundle_without_texts_is_checked(out: Path) -> None:
    checks, error = check(out)
    assert error is None
    assert list(checks) == [f"checksum of {MODEL}", f"checksum of {TOKENIZER}"]
    assert all(one.passed for one in checks.values())


def swap_two_rows(tensors: Tensors) -> None:
    for tensor in tensors.values():
        tensor[[17, 120]] = tensor[[120, 17]]


def shrink_one_scale(tensors: Tensors) -> None:
    tensors["scales"][150] *= 0.99


@pytest.mark.parametrize("change", [swap_two_rows, shrink_one_scale])
def test_rows_of_other_texts_fail_the_cosine(bundle_copy: Path, change: Callable[[Tensors], None]) -> None:
    change_tensors(bundle_copy / INDEX, change)
    assert failed(bundle_copy) == [COSINE]


def test_fewer_texts_than_rows_fail_the_check_of_rows(bundle_copy: Path, corpus: Corpus) -> None:
    write_passages(bundle_copy / PASSAGES, corpus.texts[:-3], corpus.ids[:-3], corpus.metadata[:-3])
    describe_again(bundle_copy)
    checks, _ = check(bundle_copy)
    found = checks["rows in index, texts, manifest"]
    assert (found.found, found.passed) == ("200, 197, 200", False)
