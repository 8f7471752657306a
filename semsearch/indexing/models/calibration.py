"""The texts that calibrate an 8-bit model, and those that measure it.

They do not depend on the texts of an index. So new texts leave the model unchanged, and with it the largest layer of a
container image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from semsearch.indexing.corpus import Corpus, read_texts
from semsearch.indexing.corpus.python_documentation import python_documentation
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.processes import in_own_process
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.vectors.recall import TOP_K

CALIBRATION_TEXTS = 512
ACCURACY_TEXTS = 1_000  # maximum number of texts to measure with
LEAST_TEXTS = 64


@dataclass(frozen=True, slots=True)
class CalibrationTexts:
    """Texts to calibrate with, and other texts to measure with."""

    calibration: Sequence[str]
    held_out: Sequence[str]


def read_calibration(file: Path | None, column: str | None, on_progress: OnProgress) -> CalibrationTexts:
    """Return the texts of a file, or else those of Python's own documentation.

    Raises CorpusError if the file cannot be read, ModelError if it has too few texts.
    """
    on_progress("read calibration", 0)
    if file is None:
        texts = split_documentation(in_own_process(python_documentation))  # its syntax trees take 200 MB
    else:
        texts = split_texts(read_texts(file, column, "--calibration-column"))
    on_progress("read calibration", 1)
    return texts


def split_documentation(documentation: Corpus) -> CalibrationTexts:
    """Split Python's own documentation. The calibration texts are the same in Python 3.11, 3.12 and 3.13.

    calibration_names.txt has the names of 512 objects whose documentation is equal in these versions, so all of them
    convert a model to the same model.ort. All other objects are held out.
    """
    names = files("semsearch.indexing.models").joinpath("calibration_names.txt").read_text("utf-8").split()
    texts = dict(zip(documentation.ids, documentation.texts, strict=True))
    calibration = [texts.pop(name) for name in names if name in texts]
    if len(calibration) < CALIBRATION_TEXTS // 2:  # another implementation of Python
        return split_texts(documentation.texts)
    return _hold_out(calibration, list(texts.values()))


def split_texts(texts: Sequence[str]) -> CalibrationTexts:
    """Split the user's own texts; both parts are spread over all of them. Raises ModelError if they are too few."""
    if len(texts) < LEAST_TEXTS:
        raise ModelError(f"--calibration: found {len(texts)} texts, expected at least {LEAST_TEXTS}; add more")
    spread = texts[:: max(1, len(texts) // (CALIBRATION_TEXTS + ACCURACY_TEXTS))]
    count = min(CALIBRATION_TEXTS, len(spread) // 2)
    return _hold_out(spread[:: len(spread) // count][:count], spread)


def _hold_out(calibration: Sequence[str], others: Sequence[str]) -> CalibrationTexts:
    taken = set(calibration)
    others = [text for text in others if text not in taken]
    held_out = others[:: max(1, len(others) // ACCURACY_TEXTS)][:ACCURACY_TEXTS]
    if len(held_out) <= TOP_K:
        found, expected = f"{len(held_out)} texts unlike the others", f"more than {TOP_K}"
        raise ModelError(f"--calibration: found {found}, expected {expected}; add more texts")
    return CalibrationTexts(calibration, held_out)
