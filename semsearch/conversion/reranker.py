"""Export a cross-encoder as the reranker of a bundle: an 8-bit graph, and a tokenizer if it is not the bundle's.

The graph takes the tokens of a pair and returns a logit. Like that of an embedding model, the float32 graph is compared
with the original model, which transformers runs on one pair at a time.
"""

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from semsearch.conversion.graph import add_pooling, add_steps, export_transformer, fuse, write_exact
from semsearch.conversion.quantize import quantize_graph, save_ort
from semsearch.conversion.reference import load_original, pool_original, reference_texts
from semsearch.engine.bundle import RERANK, RERANK_TOKENIZER, RerankInfo
from semsearch.engine.embedder import TokenIds, open_session
from semsearch.engine.rerank.reranker import Logits, Reranker, probabilities
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.models.calibration import CalibrationTexts
from semsearch.indexing.models.modules import ModelError, reading
from semsearch.indexing.models.nodes import add_constant, add_node, initializers
from semsearch.indexing.models.source import RECIPE, Source, write_tokenizer
from semsearch.indexing.processes import in_own_process
from semsearch.indexing.progress import OnProgress, no_progress

LOGITS = "logit"  # the graph's output
LARGEST_DIFFERENCE = 1e-3  # largest difference between two float32 logits; rounding alone stays far below
LEAST_CORRELATION = 0.99  # least rank correlation of 8 bit with float32
QUERY_WORDS = 8  # words at the beginning of a text that serve as a query
HELD_OUT_QUERIES, HELD_OUT_TEXTS = 50, 20  # the accuracy is measured on 50 queries, each with 20 texts
RERANK_WEIGHT = 0.5  # docs/relevance.md explains the choice


def export_rerank_graph(source: Source, workdir: Path) -> ModelProto:
    """Return the float32 graph: from input_ids, attention_mask and, if the model has types, token_type_ids to logits.

    The inputs are (n, tokens) int64, the result is (n,) float32. workdir holds intermediate files.
    Raises ModelError if optimum cannot export the model, OSError if the disk fails.
    """
    if source.pooling:
        raw = export_transformer(source, workdir)
        scores = add_steps(raw, source, add_pooling(raw, source.pooling))
    else:
        raw = export_transformer(source, workdir, "text-classification")
        scores = raw.graph.output[0].name  # (n, labels)
    _split_gemms(raw)
    _add_logit(raw, scores, source.dim)
    path = workdir / "logits.onnx"
    onnx.save(raw, path)
    return fuse(path, source)


def _split_gemms(model: ModelProto) -> None:
    """Replace each Gemm by a MatMul and an Add, because `quantize_graph` replaces only MatMul.

    The integer products that it makes are the same for a pair alone and in a batch. Those of a float32 Gemm are not.
    """
    nodes, tensors = list(model.graph.node), initializers(model)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type != "Gemm" or node.input[1] not in tensors:
            model.graph.node.append(node)
            continue
        is_transposed = any(each.name == "transB" and each.i for each in node.attribute)
        weight = numpy_helper.to_array(tensors[node.input[1]])
        name, has_bias = node.output[0], len(node.input) > 2
        constant = add_constant(model, f"{name}/weight", weight.T if is_transposed else weight)
        product = add_node(model, "MatMul", [node.input[0], constant], f"{name}/product" if has_bias else name)
        if has_bias:
            add_node(model, "Add", [product, node.input[2]], name)


def _add_logit(model: ModelProto, scores: str, labels: int) -> None:
    """Make the logit the only output: the only label's, or the second one's minus the first one's."""
    first, second = (add_constant(model, f"label_{place}", np.array(place, np.int64)) for place in (0, 1))
    names = [LOGITS] if labels == 1 else ["label_0_logit", "label_1_logit"]
    for name, place in zip(names, (first, second), strict=False):
        add_node(model, "Gather", [scores, place], name, attributes={"axis": 1})
    if labels == 2:
        add_node(model, "Sub", names[::-1], LOGITS)
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(LOGITS, TensorProto.FLOAT, ["n"]))


def reference_pairs(source: Source) -> list[tuple[str, str]]:
    """Return pairs of TEXTS and of a text that is longer than the model reads."""
    texts = reference_texts(source)
    return [(query, text) for query in (*texts[:3], texts[-1]) for text in texts]


def run_original_pairs(source: Source) -> Logits:
    """Return the logits (n,) float32 that transformers computes for `reference_pairs`.

    Raises ModelError if the model or its tokenizer cannot be loaded or run, or if the model lacks weights.
    """
    import torch

    model, tokenizer = load_original(source)
    accepted = signature(model.forward).parameters  # DistilBERT, for example, has no token types
    logits = []
    with reading(source.folder), torch.no_grad():
        for pair in reference_pairs(source):
            cased = [text.lower() if source.lower_case else text for text in pair]
            found = tokenizer(*cased, truncation="longest_first", max_length=source.max_tokens, return_tensors="pt")
            output = model(**{name: values for name, values in found.items() if name in accepted})
            if source.pooling:
                tokens = output.last_hidden_state.double()
                (scores,) = pool_original(source, tokens, found["attention_mask"]).numpy()
            else:
                scores = output.logits[0].numpy()
            logits.append(scores[-1] - (scores[0] if len(scores) == 2 else 0))
    return np.array(logits, np.float32)


def check_pairs(source: Source, original: Logits, exported: Reranker) -> None:
    """Raise ModelError unless the exported float32 model returns what `run_original_pairs` returned."""
    pairs = [exported.tokenize_pairs(query, [text])[0] for query, text in reference_pairs(source)]
    largest = float(np.abs(exported.score(pairs) - original).max())
    if not largest <= LARGEST_DIFFERENCE:  # refuses NaN too
        raise ModelError(
            f"{source.folder}: the logits of the exported model and of the original one differ by up to {largest:.6f}, "
            f"expected at most {LARGEST_DIFFERENCE}; tokenizer.json contradicts tokenizer_config.json, or the graph "
            "computes something else: save the model again with its own fast tokenizer, or choose another model"
        )


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
        original = in_own_process(write_exact, run_original_pairs, export_rerank_graph, source, path)
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
    count = min(HELD_OUT_QUERIES, len(texts))
    step = len(texts) // count
    return [
        (_query(texts[place * step]), [texts[(place * step + other) % len(texts)] for other in range(HELD_OUT_TEXTS)])
        for place in range(count)
    ]


def _query(text: str) -> str:
    return " ".join(text.split()[:QUERY_WORDS])
