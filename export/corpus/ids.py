"""The ids of passages: numbers as text, and row numbers in place of blank ids."""

from collections.abc import Callable, Sequence
from pathlib import Path

from export.corpus.corpus import corpus_error

EXACT_FLOATS = 2**53  # up to here a float holds every whole number (IEEE 754, 53 bits of significand)


def id_of_number(number: float) -> str:
    """Return a number, int or float, as an id. Whole numbers get no decimal point: 1, 1.0 and "1" are the same id."""
    if isinstance(number, float) and number.is_integer() and abs(number) < EXACT_FLOATS:
        return str(int(number))
    return str(number)


def replace_blank_ids(
    path: Path, ids: Sequence[str], rows: Sequence[int], place: Callable[[int], str]
) -> tuple[list[str], int]:
    """Return the ids with each blank one replaced by its row number, and how many were replaced.

    ids and rows have one entry per passage; place(i) says where passage i stands, such as "line 7".
    Raises CorpusError if such a row number is the id of another passage, because the id would then name two texts.
    """
    blank = {str(rows[i]): i for i, name in enumerate(ids) if not name.strip()}
    for i, name in enumerate(ids):
        if name in blank:
            found = f"a blank id, and the row number {name} that replaces it is the id of {place(i)}"
            remedy = "write an id where it is blank, or name another column with --id-column"
            raise corpus_error(path, place(blank[name]), found, "a different id for each", remedy)
    return [name if name.strip() else str(row) for name, row in zip(ids, rows, strict=True)], len(blank)
