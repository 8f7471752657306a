"""A model becomes the model half of a bundle: its files, what the manifest says of them, and how close they stayed."""

import hashlib
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from semsearch.conversion import convert as export_model_module
from semsearch.conversion import reranker as reranker_module
from semsearch.conversion import tasks
from semsearch.conversion.convert import check_closeness, compare, export_model
from semsearch.conversion.quantize import quantize_graph
from semsearch.conversion.reranker import export_reranker
from semsearch.engine.bundle import MODEL, TOKENIZER, ModelInfo
from semsearch.engine.embedder import Embedder
from semsearch.engine.quantization import Embeddings
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.models.calibration import (
    ACCURACY_TEXTS,
    CALIBRATION_TEXTS,
    LEAST_TEXTS,
    documentation_texts,
    split_texts,
)
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.models.source import Source
from semsearch.indexing.progress import no_progress
from semsearch.indexing.vectors.recall import TOP_K
from tests.engine.test_quantization import unit_rows
from tests.export_fixtures import TINY_BERT, embed_with_transformers


def test_what_the_manifest_will_say_comes_from_the_model(tiny_export: tuple[Path, ModelInfo]) -> None:
    folder, info = tiny_export
    assert sorted(path.name for path in folder.iterdir()) == [MODEL, TOKENIZER]
    assert info.accuracy.keys() == {"texts", "cosine_mean", "cosine_min", "recall_at_10"}
    assert info.accuracy["texts"] == 100  # the half that did not calibrate
    assert 0.9 < info.accuracy["recall_at_10"] <= 1
    weights = hashlib.sha256((TINY_BERT / "model.safetensors").read_bytes()).hexdigest()
    prompts = {"query": "query: ", "document": "passage: "}
    expected = ModelInfo("tests/tiny-bert", None, weights, "mean", 32, 32, prompts, "w8a14")
    assert replace(info, accuracy={}) == expected


def test_embeddings_are_close_to_those_of_transformers(tiny_export: tuple[Path, ModelInfo], corpus: Corpus) -> None:
    folder, info = tiny_export
    embedder = Embedder.open(folder, info)
    tokens = embedder.tokenize(corpus.texts)
    expected = embed_with_transformers(TINY_BERT, [one.ids for one in tokens], "mean")
    found = embedder.embed(tokens)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    cosines = (found * expected).sum(axis=1)
    assert cosines.min() > 0.999
    assert info.accuracy["cosine_mean"] > 0.9998  # the held-out texts
    assert info.accuracy["cosine_mean"] == pytest.approx(cosines.mean(), abs=1e-4)


def test_the_same_model_and_texts_give_the_same_bytes(
    tiny_export: tuple[Path, ModelInfo], tiny_source: Source, corpus: Corpus, tmp_path: Path
) -> None:
    texts = split_texts(corpus.texts)
    assert export_model(tiny_source, texts, tmp_path) == tiny_export[1]
    for name in (MODEL, TOKENIZER):
        assert (tmp_path / name).read_bytes() == (tiny_export[0] / name).read_bytes()


def test_an_export_that_strayed_from_float32_is_refused(
    tiny_source: Source, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flip_the_signs(*arguments: Any) -> ModelProto:
        quantized = quantize_graph(*arguments)
        for tensor in quantized.graph.initializer:
            if tensor.name.endswith("/codes"):
                flipped = -np.frombuffer(tensor.raw_data, np.int8)
                tensor.raw_data = flipped.tobytes()
        return quantized

    monkeypatch.setattr(export_model_module, "quantize_graph", flip_the_signs)
    with pytest.raises(ModelError, match=r"in 8 bit the mean cosine to float32 is .*, expected at least 0\.995"):
        export_model(tiny_source, split_texts(corpus.texts), tmp_path)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (list(map(str, range(63))), "--calibration: found 63 texts, expected at least 64"),
        (["the same"] * 64, "--calibration: found 0 texts unlike the others, expected more than 10"),
    ],
)
def test_too_few_different_texts_are_refused(texts: list[str], found: str) -> None:
    with pytest.raises(ModelError, match=found):
        split_texts(texts)


def test_the_texts_unlike_the_others_are_more_than_the_neighbours_that_are_measured() -> None:
    def texts(others: int) -> list[str]:
        return [str(row) if row % 2 and row < 2 * others else "the same" for row in range(LEAST_TEXTS)]

    assert split_texts(texts(TOP_K + 1)).held_out == [str(row) for row in range(1, 2 * TOP_K + 3, 2)]
    with pytest.raises(ModelError, match=f"--calibration: found {TOP_K} texts unlike the others, expected more than"):
        split_texts(texts(TOP_K))


@pytest.mark.parametrize(
    ("count", "calibration", "held_out"),
    [
        (64, range(0, 64, 2), range(1, 64, 2)),
        (1_512, range(0, 1_024, 2), [*range(1, 1_024, 2), *range(1_024, 1_512)]),
        (3_023, range(0, 2_560, 5), [*(row for row in range(2_560) if row % 5), *range(2_560, 3_023)][::2]),
        (3_024, range(0, 2_048, 4), [*range(2, 2_048, 4), *range(2_048, 3_024, 2)]),
    ],
)
def test_texts_are_divided_at_equal_steps(count: int, calibration: Sequence[int], held_out: Sequence[int]) -> None:
    split = split_texts([str(number) for number in range(count)])
    assert split.calibration == [str(row) for row in calibration]
    assert split.held_out == [str(row) for row in held_out[:ACCURACY_TEXTS]]


@pytest.mark.parametrize("count", [64, 65, 1_511, 100_000])
def test_calibration_and_measurement_share_no_text_and_spread_over_all(count: int) -> None:
    texts = [str(number) for number in range(count)]
    split = split_texts(texts)
    calibration, held_out = split.calibration, split.held_out
    assert not set(calibration) & set(held_out)
    assert len(set(calibration)) == len(calibration) == min(CALIBRATION_TEXTS, count // 2)
    assert min(count // 2, 512) <= len(held_out) <= ACCURACY_TEXTS
    for part in (calibration, held_out):
        numbers = np.array([int(text) for text in part])
        assert numbers.min() < 0.1 * count
        assert np.abs(np.median(numbers) / count - 0.5) < 0.2


def test_the_texts_of_the_package_are_those_that_the_published_model_was_calibrated_with() -> None:
    split = documentation_texts()
    digest = hashlib.sha256("\n".join(split.calibration).encode()).hexdigest()
    assert digest == "ed80db4b0055d0ddeb7d30a3f550e32ed5a592017959c5cb6678c865d032fd37"
    assert len(set(split.calibration)) == CALIBRATION_TEXTS
    assert len(set(split.held_out)) == ACCURACY_TEXTS
    assert not set(split.calibration) & set(split.held_out)


def slow_recall(exact: Embeddings, found: Embeddings) -> float:
    def ten_nearest(embeddings: Embeddings, row: int) -> set[int]:
        others = [(float(embeddings[row] @ other), i) for i, other in enumerate(embeddings)]
        return {i for _, i in sorted((one for one in others if one[1] != row), reverse=True)[:10]}

    return sum(len(ten_nearest(exact, row) & ten_nearest(found, row)) for row in range(len(exact))) / 10 / len(exact)


def test_compare_counts_cosines_and_neighbours_as_a_slow_loop_does() -> None:
    exact = unit_rows(60, 12, seed=1)
    found = exact + 0.25 * unit_rows(60, 12, seed=2)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    cosines = [
        sum(a * b for a, b in zip(*pair, strict=True)) for pair in zip(exact.tolist(), found.tolist(), strict=True)
    ]
    accuracy = compare(exact, found)
    assert accuracy["texts"] == 60
    assert accuracy["cosine_mean"] == pytest.approx(sum(cosines) / 60, abs=1e-5)
    assert accuracy["cosine_min"] == pytest.approx(min(cosines), abs=1e-5)
    assert accuracy["recall_at_10"] == pytest.approx(slow_recall(exact, found), abs=1e-4)
    assert 0.5 < accuracy["recall_at_10"] < 0.95
    assert compare(exact, exact) == {"texts": 60, "cosine_mean": 1, "cosine_min": 1, "recall_at_10": 1}


def test_a_bundle_is_compared_with_its_own_source_alone(tiny_source: Source, bundle: Path) -> None:
    with pytest.raises(ModelError, match=r"weights with sha256 .*, expected .*; name the bundle's own model"):
        check_closeness(tiny_source, ["a text"], bundle)


def test_a_process_of_a_conversion_prints_to_stderr_and_ends_with_the_code_of_a_signal(
    tiny_source: Source, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(task: str, *arguments: object) -> str:
        os.write(1, f"{task} ".encode())
        if task == "stop":
            os.kill(os.getpid(), signal.SIGTERM)
        return f"{task} is done"

    monkeypatch.setattr(tasks, "convert", convert)
    texts, output, handler = documentation_texts(), os.dup(1), signal.getsignal(signal.SIGTERM)
    try:
        done: Any = tasks.run("convert", tiny_source, texts, Path(), no_progress)
        with pytest.raises(SystemExit) as stopped:
            tasks.run("stop", tiny_source, texts, Path(), no_progress)
    finally:
        os.dup2(output, 1)
        os.close(output)
        signal.signal(signal.SIGTERM, handler)
    assert done == "convert is done"
    assert stopped.value.code == 128 + signal.SIGTERM
    assert capfd.readouterr() == ("", "convert stop ")


def test_a_float32_graph_that_differs_from_the_original_model_is_refused_before_it_is_quantized(
    tiny_source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise ModelError("it differs")

    for module in (export_model_module, reranker_module):
        for name in ("in_own_process", "open_session", "Embedder", "Reranker"):
            monkeypatch.setattr(module, name, lambda *arguments: None, raising=False)
    monkeypatch.setattr(export_model_module, "check_agreement", refuse)
    monkeypatch.setattr(reranker_module, "check_pairs", refuse)
    for export in (export_model, export_reranker):
        with pytest.raises(ModelError, match="it differs"):
            export(tiny_source, documentation_texts(), tmp_path)
