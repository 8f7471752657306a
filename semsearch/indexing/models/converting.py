"""Convert a model in a process of its own, which imports PyTorch and ends with the conversion.

PyTorch and transformers keep half a gigabyte for as long as a process lives. semsearch/conversion/tasks.py is what the
process runs.
"""

from pathlib import Path

from semsearch.engine.bundle import ModelInfo, RerankInfo
from semsearch.indexing.models.calibration import CalibrationTexts
from semsearch.indexing.models.source import Source
from semsearch.indexing.processes import in_own_process
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.verification import Check

TASK = "semsearch.conversion.tasks:run"  # a name, because this package never imports the conversion


def convert_model(
    source: Source, texts: CalibrationTexts, folder: Path, on_progress: OnProgress = no_progress
) -> ModelInfo:
    """Write model.ort and tokenizer.txt into the folder, and return the manifest's entry for them.

    Raises ModelError if the model cannot be converted, or if the 8-bit model differs too much from the original.
    """
    info: ModelInfo = in_own_process(TASK, "convert", source, texts, folder, on_progress=on_progress)
    return info


def convert_reranker(
    source: Source, texts: CalibrationTexts, folder: Path, on_progress: OnProgress = no_progress
) -> RerankInfo:
    """Write rerank.ort and rerank_tokenizer.txt into the folder, and return the manifest's entry for them.

    Raises ModelError if the model cannot be converted, or if the 8-bit model orders texts differently.
    """
    info: RerankInfo = in_own_process(TASK, "rerank", source, texts, folder, on_progress=on_progress)
    return info


def compare_with_original(
    source: Source, texts: CalibrationTexts, bundle: Path, on_progress: OnProgress = no_progress
) -> Check:
    """Compare the model of a bundle with the float32 model that it was converted from, on the held-out texts.

    Raises ModelError if the source has other weights.
    """
    check: Check = in_own_process(TASK, "compare", source, texts, bundle, on_progress=on_progress)
    return check
