"""Export a cross-encoder as the reranker of a bundle: an 8-bit graph, and a tokenizer if it is not the bundle's."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from numpy.typing import NDArray

from export.model.calibration_texts import CalibrationTexts
from export.model.quantize import RECIPE, quantize_graph, save_ort
from export.model.rerank.graph import export_rerank_graph
from export.model.rerank.reference import OriginalPairs, check_pairs, run_original_pairs
from export.model.source.model_files import ModelError
from export.model.source.source import Source
from export.model.source.tokenizer import write_tokenizer
from export.progress import OnProgress, no_progress
from export.subprocess_call import in_own_process
from function.engine.bundle import RERANK, RERANK_TOKENIZER, RerankInfo
from function.engine.embedder import TokenIds, open_session
from function.engine.rerank.reranker import Logits, Reranker, probabilities
from function.engine.tokenizer import read_tokenizer

LEAST_CORRELATION = 0.99  # least rank correlation of 8 bit with float32
QUERY_WORDS = 8  # words at the beginning of a text that serve as a query
HELD_OUT_QUERIES, HELD_OUT_TEXTS = 50, 20  # the accuracy is measured on 50 queries, each with 20 texts
RERANK_WEIGHT = 0.5  # docs/relevance.md explains the choice


def export_reranker(
    source: Source, texts: CalibrationTexts, folder: Path, on_progress: OnProgress = no_progress
) -> RerankInfo:
    """Write rerank.ort and rerank_tokenizer.txt into the folder and return the manifest's entry for them.

    Pairs of the texts calibrate the 8-bit model and measure how close it is.
    Raises ModelError if the model cannot be exported, if its float32 graph differs from the original model, or if the
    8-bit model orders texts differently.
    """
    write_tokenizer(source, folder / RERANK_TOKENIZER)
    with TemporaryDirectory(dir=folder) as scratch:
        on_progress("export reranker", 0)
        path = Path(scratch) / "exact.onnx"
        original = in_own_process(write_exact_reranker, source, Path(scratch), path)
        info = RerankInfo(source.name, source.revision, source.weights_sha256, source.max_tokens, RERANK_WEIGHT, RECIPE)
        exact = Reranker(read_tokenizer(folder / RERANK_TOKENIZER), open_session(path), info)
        check_pairs(source, original, exact)
        on_progress("export reranker", 1)
        quantized = quantize_graph(
            onnx.load(path),
            calibration_pairs(exact, texts.calibration),
            lambda step, share, texts=0: on_progress(f"{step} reranker", share, texts),
        )
        save_ort(quantized, folder / RERANK)
        del quantized
        on_progress("compare reranker with float32", 0)
        pairs = [pair for query, others in _held_out(texts.held_out) for pair in exact.tokenize_pairs(query, others)]
        expected = exact.score(pairs)
    found = Reranker(read_tokenizer(folder / RERANK_TOKENIZER), open_session(folder / RERANK), info).score(pairs)
    accuracy = compare_logits(expected, found)
    on_progress("compare reranker with float32", 1)
    if not accuracy["rank_correlation"] >= LEAST_CORRELATION:  # refuses NaN too
        raise ModelError(
            f"{source.folder}: in 8 bit the rank correlation with float32 is {accuracy['rank_correlation']}, expected "
            f"at least {LEAST_CORRELATION}; calibrate with texts like yours: --calibration FILE"
        )
    return replace(info, accuracy=accuracy)


def write_exact_reranker(source: Source, workdir: Path, path: Path) -> OriginalPairs:
    """Write the float32 graph and return the original model's logits of a few pairs. Both need torch."""
    original = run_original_pairs(source)
    onnx.save(export_rerank_graph(source, workdir), path)
    return original


def calibration_pairs(reranker: Reranker, texts: Sequence[str]) -> list[TokenIds]:
    """Return a pair for each text: with its own beginning as the query, or with the beginning of the next text."""
    queries = [_query(texts[(place + place % 2) % len(texts)]) for place in range(len(texts))]
    return [reranker.tokenize_pairs(query, [text])[0] for query, text in zip(queries, texts, strict=True)]


def compare_logits(exact: Logits, found: Logits) -> dict[str, float]:
    """Return how close the logits of the same pairs are: Spearman's rank correlation and differences of the score."""
    difference = np.abs(probabilities(exact) - probabilities(found))
    return {
        "pairs": float(len(exact)),
        "rank_correlation": round(rank_correlation(exact, found), 6),
        "score_difference_mean": round(float(difference.mean()), 6),
        "score_difference_max": round(float(difference.max()), 6),
    }


def rank_correlation(first: Logits, second: Logits) -> float:
    """Return Spearman's rank correlation; equal values share their mean rank."""

    def ranks(values: Logits) -> NDArray[np.float64]:
        ordered = np.sort(values)
        return (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, "right")) / 2.0

    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def _held_out(texts: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return queries, each with its own text and others."""
    count = min(HELD_OUT_QUERIES, len(texts))
    step = len(texts) // count
    return [
        (_query(texts[place * step]), [texts[(place * step + other) % len(texts)] for other in range(HELD_OUT_TEXTS)])
        for place in range(count)
    ]


def _query(text: str) -> str:
    return " ".join(text.split()[:QUERY_WORDS])
