"""Each kind of damage to a bundle fails a check that names it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from semsearch.engine.bundle import (
    INDEX,
    MANIFEST,
    MODEL,
    PASSAGES,
    RERANK,
    TOKENIZER,
    BundleError,
    Manifest,
    VectorsInfo,
    describe_file,
    read_manifest,
)
from semsearch.engine.embedder import Embedder
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.progress import no_progress
from semsearch.indexing.vectors.recall import Recall
from semsearch.indexing.verification import Check, least_cosine, verify, verify_new
from tests.bundle_files import damage, write_passages
from tests.rerankers import add_reranker

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
    model, tokenizer = (files[name].sha256 if name in files else "" for name in (MODEL, TOKENIZER))
    index = replace(manifest.corpus, model_sha256=model, tokenizer_sha256=tokenizer)
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


def test_the_limits_and_the_progress_of_the_checks_are_told(bundle: Path) -> None:
    told: list[tuple[str, float, int]] = []

    def on_progress(step: str, share: float, texts: int = 0) -> None:
        told.append((step, share, texts))

    files = read_manifest(bundle).files
    digests = {name: info.sha256[:12] for name, info in files.items()}
    expected = [Check(f"checksum of {name}", digest, digest, True) for name, digest in digests.items()]
    *others, cosine, spans, rows = verify(bundle, on_progress)
    assert others == [*expected, Check("rows in index, texts, manifest", "200, 200, 200", "the same", True)]
    assert (cosine.expected, spans.expected, rows.expected) == (">= 0.999", *[">= 0.9900, 0.9900"] * 2)
    assert len(cosine.found) == len("0.99999")
    assert told == [
        *(("check files", number / len(files), 0) for number in range(len(files) + 1)),
        *(("embed a sample again", 0, 0), ("embed a sample again", 1, 200)),
        *(("measure recall", 0, 0), ("measure recall", 1, 0)),
    ]


def test_after_a_wrong_checksum_no_other_check_is_made(bundle_copy: Path) -> None:
    damage(bundle_copy / PASSAGES)
    checks, error = check(bundle_copy)
    assert error is None
    assert list(checks) == [f"checksum of {name}" for name in read_manifest(bundle_copy).files]
    assert failed(bundle_copy) == [f"checksum of {PASSAGES}"]


def test_of_a_bundle_in_s3_vectors_only_the_files_are_checked(bundle_copy: Path) -> None:
    manifest = read_manifest(bundle_copy)
    vectors = VectorsInfo(bucket="vectors", index="texts", region="eu-central-1", keys="a-")
    write_manifest(bundle_copy, replace(manifest, corpus_or_none=replace(manifest.corpus, vectors=vectors)))
    checks, error = check(bundle_copy)
    assert (list(checks), error) == ([f"checksum of {name}" for name in manifest.files], None)


def test_without_the_model_of_its_passages_only_the_search_is_checked(bundle_copy: Path) -> None:
    manifest = read_manifest(bundle_copy)
    write_manifest(bundle_copy, replace(manifest, model=replace(manifest.model, documents="other")))
    checks, error = check(bundle_copy)
    assert error is None
    assert [name for name in checks if not name.startswith("checksum")] == ["rows in index, texts, manifest", *RECALLS]


def test_a_broken_reranker_is_noticed(bundle_copy: Path, embedder: Embedder) -> None:
    add_reranker(bundle_copy)
    (bundle_copy / RERANK).write_bytes(b"no model")
    describe_again(bundle_copy)
    assert check(bundle_copy)[1] is not None
    with pytest.raises(BundleError):
        list(verify_new(bundle_copy, embedder, np.arange(0), 16, False, no_progress))


def test_a_new_bundle_has_some_of_its_new_rows_embedded_again(bundle_copy: Path, embedder: Embedder) -> None:
    def names_of(rows: list[int], most: int, *, is_measured: bool) -> list[str]:
        found = verify_new(bundle_copy, embedder, np.array(rows, np.intp), most, is_measured, no_progress)
        return [each.name for each in found if each.passed]

    lengths = "rows in index, texts, manifest"
    assert names_of([], 16, is_measured=True) == [lengths]  # a search looks at every row
    assert names_of([3, 5, 7], 2, is_measured=False) == [lengths, "least cosine of 2 rows to their texts"]
    assert names_of([3, 5, 7], 16, is_measured=False) == [lengths, "least cosine of 3 rows to their texts"]
    change_tensors(bundle_copy / INDEX, swap_two_rows)
    assert names_of([3, 5, 7], 16, is_measured=False) == [lengths, "least cosine of 3 rows to their texts"]
    assert names_of([17], 16, is_measured=False) == [lengths]


@pytest.mark.parametrize(
    ("accuracy", "embedded_by", "least"),
    [
        ({}, ["cpu int8"], 0.999),
        ({}, ["cpu int8", "given"], 0.99),
        ({"cosine_min": 0.98}, ["cuda float16"], 0.975),
        ({"cosine_min": 0.997}, ["cuda float16"], 0.99),
    ],
)
def test_rows_of_the_float_model_can_differ_as_much_as_its_accuracy_says(
    accuracy: dict[str, float], embedded_by: list[str], least: float, manifest: Manifest
) -> None:
    assert least_cosine(replace(manifest.model, accuracy=accuracy), embedded_by) == pytest.approx(least)


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
