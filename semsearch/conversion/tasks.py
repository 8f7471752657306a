"""The conversions that semsearch/indexing/models/converting.py runs, each in a process of its own."""

import os
import signal
import sys
from pathlib import Path

from semsearch.conversion.convert import check_closeness, export_model
from semsearch.conversion.reranker import export_reranker
from semsearch.engine.bundle import ModelInfo, RerankInfo
from semsearch.indexing.models.calibration import CalibrationTexts
from semsearch.indexing.models.source import Source
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.verification import Check


def run(
    task: str, source: Source, texts: CalibrationTexts, out: Path, on_progress: OnProgress
) -> ModelInfo | RerankInfo | Check:
    """Do what `convert` does, in a process that nothing else uses."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # ends its own child processes too
    os.dup2(2, 1)  # what libraries print is no result of a command
    return convert(task, source, texts, out, on_progress)


def convert(
    task: str, source: Source, texts: CalibrationTexts, out: Path, on_progress: OnProgress
) -> ModelInfo | RerankInfo | Check:
    """Do the task convert, rerank or compare. Raises ModelError as the function for it does."""
    if task == "convert":
        return export_model(source, texts, out, on_progress)
    if task == "rerank":
        return export_reranker(source, texts, out, on_progress)
    return check_closeness(source, texts.held_out, out, on_progress)
