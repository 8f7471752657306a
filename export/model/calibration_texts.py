"""The texts that calibrate the 8-bit model, and different texts that measure how close it is to float32."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from export.corpus import Corpus
from export.index.recall import TOP_K
from export.model.source.model_files import ModelError

CALIBRATION_TEXTS = 512
ACCURACY_TEXTS = 1_000  # maximum number of texts to measure with
LEAST_TEXTS = 64


@dataclass(frozen=True, slots=True)
class CalibrationTexts:
    """Texts to calibrate with, and other texts to measure with."""

    calibration: Sequence[str]
    held_out: Sequence[str]


def split_documentation(documentation: Corpus) -> CalibrationTexts:
    """Split Python's own documentation. The calibration texts are the same in Python 3.11, 3.12 and 3.13.

    calibration_names.txt has the names of 512 objects whose documentation is equal in these versions, so all of them
    export the same model.ort.
    """
    names = files("export.model").joinpath("calibration_names.txt").read_text("utf-8").split()
    texts = dict(zip(documentation.ids, documentation.texts, strict=True))
    calibration = [texts.pop(name) for name in names if name in texts]
    if len(calibration) < CALIBRATION_TEXTS // 2:  # another implementation of Python
        return split_texts(documentation.texts)
    return _hold_out(calibration, list(texts.values()))


def split_texts(texts: Sequence[str]) -> CalibrationTexts:
    """Split the user's own texts; both parts are spread over all of them. Raises ModelError if they are too few."""
    if len(texts) < LEAST_TEXTS:
        raise ModelError(
            f"{len(texts)} calibration texts; expected at least {LEAST_TEXTS}, better {CALIBRATION_TEXTS}; name a file "
            "with more texts: --calibration FILE"
        )
    spread = texts[:: max(1, len(texts) // (CALIBRATION_TEXTS + ACCURACY_TEXTS))]
    count = min(CALIBRATION_TEXTS, len(spread) // 2)
    return _hold_out(spread[:: len(spread) // count][:count], spread)


def _hold_out(calibration: Sequence[str], others: Sequence[str]) -> CalibrationTexts:
    """Return the calibration texts and up to ACCURACY_TEXTS of the other texts, spread over them."""
    taken = set(calibration)
    others = [text for text in others if text not in taken]
    held_out = others[:: max(1, len(others) // ACCURACY_TEXTS)][:ACCURACY_TEXTS]
    if len(held_out) <= TOP_K:
        raise ModelError(
            f"{len(held_out)} calibration texts unlike the others; expected more than {TOP_K}; name a file with more "
            "texts: --calibration FILE"
        )
    return CalibrationTexts(calibration, held_out)
