"""python -m semsearch.conversion COMMAND FOLDER: one conversion, as a child process of indexing/models/converting.py.

COMMAND is convert, rerank or compare. FOLDER has job.json with the arguments, and calibration.json and held_out.json
with texts. The result is written there as result.json, or an error as error.json. Standard output has the progress: a
line of JSON for each report.
"""

import errno
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from semsearch.conversion.convert import check_closeness, export_model
from semsearch.conversion.reranker import export_reranker
from semsearch.engine.errors import ExpectedError
from semsearch.indexing.models.calibration import CalibrationTexts
from semsearch.indexing.models.source import Source
from semsearch.indexing.progress import OnProgress


def convert(command: str, folder: Path, on_progress: OnProgress) -> dict[str, Any]:
    """Do what job.json says, and return the result: the fields of a ModelInfo, a RerankInfo or a Check.

    Raises ModelError as `export_model`, `export_reranker` and `check_closeness` do.
    """
    job = _read(folder / "job.json")
    source, out = Source.from_json(job["source"]), Path(job["out"])
    texts = CalibrationTexts(_read(folder / "calibration.json"), _read(folder / "held_out.json"))
    if command == "convert":
        return asdict(export_model(source, texts, out, on_progress))
    if command == "rerank":
        return asdict(export_reranker(source, texts, out, on_progress))
    return asdict(check_closeness(source, texts.held_out, out, on_progress))


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def main(command: str, folder: Path) -> int:
    """Run a conversion, report its progress, and return the exit code."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # ends its own child processes too
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as reports:
        os.dup2(2, 1)  # what libraries print is no progress

        def report(step: str, share: float, texts: int = 0) -> None:
            print(json.dumps({"step": step, "share": share, "texts": texts}), file=reports, flush=True)

        try:
            result = convert(command, folder, report)
        except ExpectedError as error:
            stated: dict[str, Any] = {"kind": type(error).__name__, "message": str(error)}
        except OSError as error:
            stated = {"kind": "OSError", "number": error.errno or errno.EIO, "file": error.filename}
        else:
            (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
            return 0
    (folder / "error.json").write_text(json.dumps(stated, default=str), encoding="utf-8")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
