"""Each kind of damage to a bundle fails a check that names it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from export.corpus import Corpus
from export.index.indexer import take_model
from export.index.keywords import KeywordOptions, keyword_tensors
from export.index.recall import ExactSearches, Recall, sample_rows, search_samples
from export.index.verify import Check, verify
from function.engine.bundle import (
    COLUMNS,
    INDEX,
    KEYWORDS,
    MANIFEST,
    MODEL,
    PASSAGES,
    TOKENIZER,
    BundleError,
    describe_file,
    read_manifest,
)
from function.engine.embedder import Embedder
from function.engine.quantization import quantize
from function.engine.tensors import TensorsError
from tests.conftest import DIM, write_bundle
from tests.passage_files import write_passages

Tensors = dict[str, NDArray[Any]]

TERMS = "terms of 200 texts without their postings"
COSINE = "least cosine of 200 rows to their texts"
RECALLS = [f"recall@10, first hits of 200 {kind}" for kind in ("spans", "rows")]
METADATA = "columns, metadata of the texts"


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
    assert manifest.index is not None
    files = {name: describe_file(bundle / name) for name in manifest.files}
    index = replace(manifest.index, model_sha256=files[MODEL].sha256, tokenizer_sha256=files[TOKENIZER].sha256)
    (bundle / MANIFEST).write_text(replace(manifest, files=files, index=index).to_json())


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
        *(f"checksum of {name}" for name in (MODEL, TOKENIZER, INDEX, PASSAGES, COLUMNS, KEYWORDS)),
        "rows in index, texts, manifest",
        METADATA,
        TERMS,
        COSINE,
        *RECALLS,
    ]
    assert all(one.passed for one in checks.values())
    assert checks["rows in index, texts, manifest"].found == "200, 200, 200"
    assert float(checks[COSINE].found) > 0.9995
    assert [checks[name].found for name in RECALLS] == ["1.0000, 1.0000"] * 2


def test_each_step_tells_its_progress_up_to_one(bundle: Path) -> None:
    told: list[tuple[str, float, int]] = []
    list(verify(bundle, lambda step, share, texts=0: told.append((step, share, texts))))
    steps = ("check files", "embed a sample again", "measure recall")
    assert tuple(dict.fromkeys(step for step, _, _ in told)) == steps
    for step in steps:
        shares = [share for name, share, _ in told if name == step]
        assert (shares[0], shares[-1]) == (0, 1)
        assert shares == sorted(shares)
    assert ("embed a sample again", 1, 200) in told


# After an export


@pytest.fixture(scope="module")
def exact(bundle: Path) -> ExactSearches:
    """What exact search finds, which the export has in memory when it has written an index."""
    tensors = load_file(bundle / INDEX)
    codes, scales = tensors["codes"], tensors["scales"]
    return search_samples(sample_rows(codes, scales), codes, scales)


def test_an_index_that_misses_neighbours_fails_after_an_export(
    bundle_copy: Path, embedder: Embedder, exact: ExactSearches, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [one.name for one in verify(bundle_copy, embedder=embedder, exact=exact) if not one.passed] == []
    monkeypatch.setattr("export.index.recall.ExactSearch.recall_of", lambda exact, index: Recall(0.97, 1.0))
    assert [one.name for one in verify(bundle_copy, embedder=embedder, exact=exact) if not one.passed] == RECALLS


# Damage


def test_the_model_of_a_bundle_without_texts_is_checked(bundle: Path, tmp_path: Path) -> None:
    take_model(bundle, tmp_path)
    checks, error = check(tmp_path)
    assert error is None
    assert list(checks) == [f"checksum of {MODEL}", f"checksum of {TOKENIZER}"]
    assert all(one.passed for one in checks.values())


def test_a_model_that_does_not_open_is_found_without_texts_too(bundle: Path, tmp_path: Path) -> None:
    take_model(bundle, tmp_path)
    (tmp_path / MODEL).write_bytes(b"\xff" * (tmp_path / MODEL).stat().st_size)
    checks, error = check(tmp_path)
    assert not checks[f"checksum of {MODEL}"].passed
    assert isinstance(error, BundleError)


@pytest.mark.parametrize("name", [TOKENIZER, PASSAGES])
def test_one_flipped_byte_fails_the_checksum_of_its_file_alone(bundle_copy: Path, name: str) -> None:
    content = bytearray((bundle_copy / name).read_bytes())
    content[len(content) // 2] ^= 0b100
    (bundle_copy / name).write_bytes(content)
    checks, _ = check(bundle_copy)
    assert [one for one in checks if one.startswith("checksum") and not checks[one].passed] == [f"checksum of {name}"]


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, INDEX])
def test_a_file_that_does_not_open_stops_the_checks_with_an_error_that_names_it(bundle_copy: Path, name: str) -> None:
    content = bytearray((bundle_copy / name).read_bytes())
    content[:8] = b"\xff" * 8
    (bundle_copy / name).write_bytes(content)
    _, error = check(bundle_copy)
    assert isinstance(error, BundleError | TensorsError), repr(error)
    assert name in str(error)


@pytest.mark.parametrize("name", [MODEL, PASSAGES])
def test_a_file_cut_short_is_refused(bundle_copy: Path, name: str) -> None:
    with (bundle_copy / name).open("r+b") as file:
        file.truncate((bundle_copy / name).stat().st_size - 1)
    with pytest.raises(BundleError, match=name):
        list(verify(bundle_copy))


def swap_two_rows(tensors: Tensors) -> None:
    for tensor in tensors.values():
        tensor[[17, 120]] = tensor[[120, 17]]


def take_codes_of_another_model(tensors: Tensors) -> None:
    rows = np.random.default_rng(7).standard_normal((200, DIM)).astype(np.float32)
    tensors["codes"], tensors["scales"] = quantize(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def shrink_one_scale(tensors: Tensors) -> None:
    tensors["scales"][150] *= 0.99


@pytest.mark.parametrize("change", [swap_two_rows, take_codes_of_another_model, shrink_one_scale])
def test_rows_that_are_not_those_of_their_texts_fail_the_cosine(
    bundle_copy: Path, change: Callable[[Tensors], None]
) -> None:
    change_tensors(bundle_copy / INDEX, change)
    assert failed(bundle_copy) == [COSINE]


def test_texts_of_another_corpus_fail_the_cosine_and_the_terms(bundle_copy: Path, corpus: Corpus) -> None:
    texts = [text.replace("silver", "golden") for text in corpus.texts]
    write_passages(bundle_copy / PASSAGES, texts, corpus.ids, corpus.metadata)
    describe_again(bundle_copy)
    assert failed(bundle_copy) == [TERMS, COSINE]


def test_fewer_texts_than_rows_fail_the_check_of_rows(bundle_copy: Path, corpus: Corpus) -> None:
    write_passages(bundle_copy / PASSAGES, corpus.texts[:-3], corpus.ids[:-3], corpus.metadata[:-3])
    describe_again(bundle_copy)
    checks, _ = check(bundle_copy)
    found = checks["rows in index, texts, manifest"]
    assert (found.found, found.passed) == ("200, 197, 200", False)


def test_another_model_beside_the_index_is_refused(bundle_copy: Path) -> None:
    manifest = read_manifest(bundle_copy)
    (bundle_copy / MODEL).write_bytes((bundle_copy / MODEL).read_bytes()[::-1])
    files = manifest.files | {MODEL: describe_file(bundle_copy / MODEL)}
    (bundle_copy / MANIFEST).write_text(replace(manifest, files=files).to_json())
    with pytest.raises(BundleError, match=rf"{INDEX}: was embedded by {MODEL}"):
        list(verify(bundle_copy))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("who.codes", lambda tensors: tensors["who.codes"].__setitem__(57, 0)),
        ("told.present", lambda tensors: tensors.pop("told.present")),
        ("more.values", lambda tensors: tensors.update({"more.values": np.zeros(200)})),
    ],
    ids=["who", "told", "more"],
)
def test_columns_that_differ_from_the_metadata_fail_a_check_that_names_them(
    bundle_copy: Path, name: str, change: Callable[[Tensors], object]
) -> None:
    change_tensors(bundle_copy / COLUMNS, change)
    checks, _ = check(bundle_copy)
    assert (checks[METADATA].found, checks[METADATA].passed) == (f"{name} different", False)
    assert failed(bundle_copy) == [METADATA]


def test_metadata_of_another_type_than_the_manifest_says_fails_a_check(bundle_copy: Path) -> None:
    manifest = read_manifest(bundle_copy)
    assert manifest.index is not None
    index = replace(manifest.index, columns=manifest.index.columns | {"who": "number"})
    (bundle_copy / MANIFEST).write_text(replace(manifest, index=index).to_json())
    checks, _ = check(bundle_copy)
    assert checks[METADATA].found == "row 1: 'the baker' in the column 'who'"
    assert not checks[METADATA].passed


def test_keywords_of_other_texts_fail_the_check_that_names_missing_terms(bundle_copy: Path, corpus: Corpus) -> None:
    texts = [text.replace("goose", "duck") for text in corpus.texts]
    tensors, info = keyword_tensors(texts, KeywordOptions())
    save_file(tensors, bundle_copy / KEYWORDS)
    manifest = read_manifest(bundle_copy)
    assert manifest.index is not None
    index = replace(manifest.index, keywords=info)
    (bundle_copy / MANIFEST).write_text(replace(manifest, index=index).to_json())
    describe_again(bundle_copy)
    assert failed(bundle_copy) == [TERMS]
    assert check(bundle_copy)[0][TERMS].found == "1, goos"


def test_a_bundle_without_keywords_passes_every_check(tmp_path: Path, corpus: Corpus) -> None:
    checks, error = check(write_bundle(tmp_path / "bundle", corpus, keywords=None))
    assert error is None
    assert TERMS not in checks
    assert all(one.passed for one in checks.values())


def test_damaged_keywords_stop_the_checks(bundle_copy: Path) -> None:
    change_tensors(bundle_copy / KEYWORDS, lambda tensors: tensors.update(rows=tensors["rows"][:-1]))
    _, error = check(bundle_copy)
    assert isinstance(error, TensorsError)
    assert str(error).startswith(f"{bundle_copy / KEYWORDS}: holds ")
