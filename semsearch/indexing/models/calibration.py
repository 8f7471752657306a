"""The texts that calibrate an 8-bit model, and those that measure it.

They do not depend on the texts of an index. So new texts leave the model unchanged, and with it the largest layer of a
container image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from semsearch.indexing.corpus import read_column
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.vectors.recall import TOP_K

CALIBRATION_TEXTS = 512
ACCURACY_TEXTS = 1_000  # maximum number of texts to measure with
LEAST_TEXTS = 64
DOCUMENTATION = Path(__file__).parent / "documentation"  # a text a line; the licence is beside them


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
    texts = documentation_texts() if file is None else split_texts(read_column(file, column, "--calibration-column"))
    on_progress("read calibration", 1)
    return texts


def documentation_texts() -> CalibrationTexts:
    """Return the texts of this package: CALIBRATION_TEXTS texts of Python's documentation, and ACCURACY_TEXTS others.

    They are files, made with Python 3.13, so that each version of Python converts a model to the same bytes.
    """
    return CalibrationTexts(_lines_of("calibration.txt"), _lines_of("held_out.txt"))


def _lines_of(name: str) -> list[str]:
    return (DOCUMENTATION / name).read_text("utf-8").removesuffix("\n").split("\n")


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
