"""Convert a model in a process of its own, which imports PyTorch and ends with the conversion.

PyTorch and transformers keep half a gigabyte for as long as a process lives. semsearch/conversion/tasks.py is what the
process runs.
"""

from pathlib import Path
from typing import Any

from semsearch.indexing.models.calibration import CalibrationTexts
from semsearch.indexing.models.source import Source
from semsearch.indexing.processes import in_own_process
from semsearch.indexing.progress import OnProgress

TASK = "semsearch.conversion.tasks:run"  # a name, because this package never imports the conversion


def convert(task: str, source: Source, texts: CalibrationTexts, out: Path, on_progress: OnProgress) -> Any:
    """Do a task of semsearch/conversion/tasks.py, and return its result.

    - "convert" writes model.ort and tokenizer.txt into the folder `out`, and returns the ModelInfo for the manifest.
    - "rerank" writes rerank.ort and rerank_tokenizer.txt there, and returns the RerankInfo.
    - "compare" compares the model of the bundle `out` with the source on the held-out texts, and returns a Check.

    Raises ModelError if the source cannot be converted, if the 8-bit model differs too much from the original, or if
    the bundle's model has another source.
    """
    return in_own_process(TASK, task, source, texts, out, on_progress=on_progress)
