"""Convert a model in a process of its own, which imports PyTorch and ends with the conversion.

PyTorch and transformers keep half a gigabyte for as long as a process lives. The process is
`python -m semsearch.conversion`, which describes the files of a job.
"""

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from semsearch.engine.bundle import ModelInfo, RerankInfo
from semsearch.indexing.models.calibration import CalibrationTexts
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.models.source import Source
from semsearch.indexing.processes import KilledError, python_command, undisturbed
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.verification import Check


def convert_model(
    source: Source, texts: CalibrationTexts, folder: Path, on_progress: OnProgress = no_progress
) -> ModelInfo:
    """Write model.ort and tokenizer.txt into the folder, and return the manifest's entry for them.

    Raises ModelError if the model cannot be converted, or if the 8-bit model differs too much from the original.
    """
    return ModelInfo(**_run("convert", source, texts, folder, on_progress))


def convert_reranker(
    source: Source, texts: CalibrationTexts, folder: Path, on_progress: OnProgress = no_progress
) -> RerankInfo:
    """Write rerank.ort and rerank_tokenizer.txt into the folder, and return the manifest's entry for them.

    Raises ModelError if the model cannot be converted, or if the 8-bit model orders texts differently.
    """
    return RerankInfo(**_run("rerank", source, texts, folder, on_progress))


def compare_with_original(
    source: Source, texts: CalibrationTexts, bundle: Path, on_progress: OnProgress = no_progress
) -> Check:
    """Compare the model of a bundle with the float32 model that it was converted from, on the held-out texts.

    Raises ModelError if the source has other weights.
    """
    return Check(**_run("compare", source, texts, bundle, on_progress))


def _run(command: str, source: Source, texts: CalibrationTexts, out: Path, on_progress: OnProgress) -> dict[str, Any]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        job = {"source": asdict(source), "out": out.absolute()}
        for file, content in (("job", job), ("calibration", texts.calibration), ("held_out", texts.held_out)):
            (folder / f"{file}.json").write_text(json.dumps(content, default=str), encoding="utf-8")
        return run_conversion(command, folder, on_progress)


def run_conversion(command: str, folder: Path, on_progress: OnProgress) -> dict[str, Any]:
    """Run a conversion in a new process, and return its result. folder has the files of the job.

    Raises ModelError or OSError if the conversion raised it, KilledError if the process was killed.
    """
    with undisturbed():
        words = [*python_command("semsearch.conversion"), command, str(folder)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        assert process.stdout is not None
        for line in process.stdout:
            on_progress(**json.loads(line))
        code = process.wait()
    finally:
        process.terminate()  # has no effect on a process that has ended
        process.communicate()
    if code == 0:
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        return result
    if not (folder / "error.json").exists():
        raise KilledError(code)
    error = json.loads((folder / "error.json").read_text(encoding="utf-8"))
    if error["kind"] == "OSError":
        raise OSError(error["number"], os.strerror(error["number"]), error["file"])
    raise ModelError(error["message"])
