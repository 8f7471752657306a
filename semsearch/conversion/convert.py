"""Export a sentence-transformer as the model part of a bundle: an 8-bit graph and a tokenizer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx

from semsearch.conversion.graph import export_graph, write_exact
from semsearch.conversion.quantize import quantize_graph, save_ort
from semsearch.conversion.reference import check_agreement, run_original
from semsearch.engine.bundle import MODEL, TOKENIZER, ModelInfo, read_manifest
from semsearch.engine.embedder import Embedder, open_session
from semsearch.engine.quantization import Embeddings
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.models.calibration import CalibrationTexts
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.models.source import RECIPE, Source, write_tokenizer
from semsearch.indexing.processes import in_own_process
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.vectors.embed import embed_texts
from semsearch.indexing.vectors.recall import SampleScores, neighbour_recall
from semsearch.indexing.verification import Check

LEAST_QUANTIZED_COSINE = 0.995  # least mean cosine to float32; a model below this would find other neighbours


def export_model(
    source: Source,
    texts: CalibrationTexts,
    folder: Path,
    on_progress: OnProgress = no_progress,
) -> ModelInfo:
    """Write model.ort and tokenizer.txt into the folder and return the manifest's entry for them.

    texts calibrate the 8-bit model and measure how close it is.
    Raises ModelError if the model cannot be exported, if its float32 graph differs from the original model, or if the
    8-bit model differs too much from the float32 graph.
    """
    write_tokenizer(source, folder / TOKENIZER)
    with TemporaryDirectory(dir=folder) as scratch:
        on_progress("export graph", 0)
        graph, exact = _export_exact(source, folder / TOKENIZER, Path(scratch))
        on_progress("export graph", 1)
        tokens = exact.tokenize(texts.calibration)
        quantized = quantize_graph(onnx.load(graph), tokens, on_progress)
        save_ort(quantized, folder / MODEL)
        del quantized
        on_progress("compare with float32", 0)
        expected = embed_texts(exact, texts.held_out)
    accuracy = compare(expected, embed_texts(Embedder.open(folder, exact.model), texts.held_out))
    on_progress("compare with float32", 1)
    if not accuracy["cosine_mean"] >= LEAST_QUANTIZED_COSINE:  # refuses NaN too
        raise ModelError(
            f"{source.folder}: in 8 bit the mean cosine to float32 is {accuracy['cosine_mean']}, expected at least "
            f"{LEAST_QUANTIZED_COSINE}; calibrate with texts like yours: --calibration FILE"
        )
    return replace(exact.model, accuracy=accuracy)


def check_closeness(source: Source, texts: Sequence[str], bundle: Path, on_progress: OnProgress = no_progress) -> Check:
    """Compare a bundle's model with its float32 source on these texts. Raises ModelError if it has another source."""
    info = read_manifest(bundle).model
    if source.weights_sha256 != info.source_sha256:
        hashes = f"{source.weights_sha256[:12]}, expected {info.source_sha256[:12]}"
        raise ModelError(f"{source.folder}: weights with sha256 {hashes}; name the bundle's own model")
    on_progress("compare with float32", 0)
    with TemporaryDirectory() as scratch:
        _, exact = _export_exact(source, bundle / TOKENIZER, Path(scratch))
        expected = embed_texts(exact, texts)
    accuracy = compare(expected, embed_texts(Embedder.open(bundle, info), texts))
    on_progress("compare with float32", 1)
    found = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in accuracy.items())
    is_close = accuracy["cosine_mean"] >= LEAST_QUANTIZED_COSINE
    return Check("model against float32", found, f"cosine mean >= {LEAST_QUANTIZED_COSINE}", is_close)


def _export_exact(source: Source, tokenizer: Path, workdir: Path) -> tuple[Path, Embedder]:
    """Return the float32 graph's file, and an embedder that uses it and the bundle's tokenizer.

    Raises ModelError if the source cannot be exported, or if its graph disagrees with the original model.
    """
    path = workdir / "exact.onnx"
    original = in_own_process(write_exact, run_original, export_graph, source, path)
    model = ModelInfo(
        name=source.name,
        revision=source.revision,
        source_sha256=source.weights_sha256,
        pooling=source.pooling,
        dim=source.dim,
        full_dim=source.full_dim if source.dim < source.full_dim else None,
        max_tokens=source.max_tokens,
        prompts=source.prompts,
        quantization=RECIPE,
        unused_prompts=source.unused_prompts,
        similarity=source.similarity,
    )
    exact = Embedder(read_tokenizer(tokenizer), open_session(path), model)
    check_agreement(source, original, exact)
    return path, exact


def compare(exact: Embeddings, found: Embeddings) -> dict[str, float]:
    """Return how close embeddings of the same texts are: mean and least cosine, and recall@10 of the neighbours.

    Both are (n, dim) float32, n at least 12. The neighbours of each text are among the other n - 1 texts.
    """
    cosines = (exact * found).sum(axis=1)
    recall = neighbour_recall(_scores_of_others(exact), _scores_of_others(found))
    return {
        "texts": float(len(exact)),
        "cosine_mean": round(float(cosines.mean()), 6),
        "cosine_min": round(float(cosines.min()), 6),
        "recall_at_10": round(recall, 4),
    }


def _scores_of_others(embeddings: Embeddings) -> SampleScores:
    """Return the cosines of each text with all texts, (n, n) float32; minus infinity for a text with itself."""
    scores: SampleScores = embeddings @ embeddings.T
    np.fill_diagonal(scores, -np.inf)
    return scores
