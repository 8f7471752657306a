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
from export.indexer import take_model
from export.verify import Check, verify
from function.engine.bundle import (
    INDEX,
    MANIFEST,
    MODEL,
    PASSAGES,
    TOKENIZER,
    BundleError,
    describe_file,
    read_manifest,
)
from function.engine.index import signs
from function.engine.passages import passage_tensors
from function.engine.quantization import quantize
from function.engine.tensors import TensorsError
from tests.conftest import DIM

COSINE = "least cosine of 200 rows to their texts"
RECALL = "recall@10 against exact search"


def check(bundle: Path) -> tuple[dict[str, Check], Exception | None]:
    """Give the checks by name, and what stopped them."""
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
    """Have the manifest say of each file what it is now, as if it had always been so."""
    manifest = read_manifest(bundle)
    assert manifest.index is not None
    files = {name: describe_file(bundle / name) for name in manifest.files}
    index = replace(manifest.index, model_sha256=files[MODEL].sha256, tokenizer_sha256=files[TOKENIZER].sha256)
    (bundle / MANIFEST).write_text(replace(manifest, files=files, index=index).to_json())


def change_index(bundle: Path, change: Callable[[dict[str, NDArray[Any]]], None]) -> None:
    tensors = {name: tensor.copy() for name, tensor in load_file(bundle / INDEX).items()}
    change(tensors)
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, bundle / INDEX)


def test_a_good_bundle_passes_every_check(bundle: Path) -> None:
    checks, error = check(bundle)
    assert error is None
    assert list(checks) == [
        *(f"checksum of {name}" for name in (MODEL, TOKENIZER, INDEX, PASSAGES)),
        "rows in index, texts, manifest",
        COSINE,
        RECALL,
    ]
    assert all(one.passed for one in checks.values())
    assert checks["rows in index, texts, manifest"].found == "200, 200, 200"
    assert float(checks[COSINE].found) > 0.9995
    assert float(checks[RECALL].found) == 1


def test_progress_is_told_the_texts_embedded_again(bundle: Path) -> None:
    told: list[int] = []
    list(verify(bundle, told.append))
    assert sum(told) == 200


def test_a_bundle_without_texts_is_checked_as_far_as_it_goes(bundle: Path, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, INDEX, PASSAGES])
@pytest.mark.parametrize("place", [0.02, 0.5, 0.98])
def test_one_flipped_byte_fails_the_checksum_of_its_file_alone(bundle_copy: Path, name: str, place: float) -> None:
    content = bytearray((bundle_copy / name).read_bytes())
    content[int(place * len(content))] ^= 0b100
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


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, INDEX, PASSAGES])
def test_a_file_cut_short_is_refused(bundle_copy: Path, name: str) -> None:
    with (bundle_copy / name).open("r+b") as file:
        file.truncate((bundle_copy / name).stat().st_size - 1)
    with pytest.raises(BundleError, match=name):
        list(verify(bundle_copy))


def test_rows_in_another_order_than_their_texts_fail_the_cosine(bundle_copy: Path) -> None:
    def swap_two(tensors: dict[str, NDArray[Any]]) -> None:
        for tensor in tensors.values():
            tensor[[17, 120]] = tensor[[120, 17]]

    change_index(bundle_copy, swap_two)
    assert failed(bundle_copy) == [f"checksum of {INDEX}", COSINE]
    describe_again(bundle_copy)
    assert failed(bundle_copy) == [COSINE]


def test_texts_of_another_corpus_fail_the_cosine(bundle_copy: Path, corpus: Corpus) -> None:
    texts = [text.replace("silver", "golden") for text in corpus.texts]
    save_file(passage_tensors(texts, corpus.ids, corpus.metadata), bundle_copy / PASSAGES)
    describe_again(bundle_copy)
    assert failed(bundle_copy) == [COSINE]


def test_fewer_texts_than_rows_fail_the_check_of_rows(bundle_copy: Path, corpus: Corpus) -> None:
    save_file(passage_tensors(corpus.texts[:-3], corpus.ids[:-3], corpus.metadata[:-3]), bundle_copy / PASSAGES)
    describe_again(bundle_copy)
    checks, _ = check(bundle_copy)
    found = checks["rows in index, texts, manifest"]
    assert (found.found, found.passed) == ("200, 197, 200", False)


def test_codes_of_another_model_fail_the_cosine(bundle_copy: Path) -> None:
    def replace_all(tensors: dict[str, NDArray[Any]]) -> None:
        rows = np.random.default_rng(7).standard_normal((200, DIM)).astype(np.float32)
        tensors["codes"], tensors["scales"] = quantize(rows / np.linalg.norm(rows, axis=1, keepdims=True))
        tensors["bits"] = signs(tensors["codes"])

    change_index(bundle_copy, replace_all)
    describe_again(bundle_copy)
    assert failed(bundle_copy) == [COSINE]


def test_another_model_beside_the_index_is_refused(bundle_copy: Path) -> None:
    manifest = read_manifest(bundle_copy)
    (bundle_copy / MODEL).write_bytes((bundle_copy / MODEL).read_bytes()[::-1])
    files = manifest.files | {MODEL: describe_file(bundle_copy / MODEL)}
    (bundle_copy / MANIFEST).write_text(replace(manifest, files=files).to_json())
    with pytest.raises(BundleError, match=rf"{INDEX}: was embedded by {MODEL}"):
        list(verify(bundle_copy))


def test_one_scale_a_hundredth_too_small_fails_the_cosine(bundle_copy: Path) -> None:
    def shrink_one(tensors: dict[str, NDArray[Any]]) -> None:
        tensors["scales"][150] *= 0.99

    change_index(bundle_copy, shrink_one)
    describe_again(bundle_copy)
    assert failed(bundle_copy) == [COSINE]
