"""The rows of a table whose texts are divided into passages instead of being truncated."""

import json
from collections.abc import Callable

from export.corpus.corpus import Append, CorpusError
from export.corpus.formats.json_rows import compact_json

COLUMNS = ("path", "start", "end", "passage")

Split = Callable[[str], list[tuple[int, int]]]  # returns the start and the end of each passage of a text


class SplitRows:
    """Call it with each row to append the row's passages. `texts` counts the rows that are more than one."""

    def __init__(self, append: Append, split: Split) -> None:
        self._append, self._split = append, split
        self.texts = 0

    def __call__(self, text: str, id: str, metadata: str) -> None:
        """Append the passages of a row: with the row's id as `path`, their characters, and their number from 0.

        Only of a divided text, the number is in the id too. Raises CorpusError if the row has such a column already.
        """
        others = json.loads(metadata)
        if taken := [name for name in COLUMNS if name in others]:
            raise CorpusError(
                f"--split: found a column {taken[0]!r}, expected none of that name, since --split adds the columns "
                f"{', '.join(COLUMNS)}; rename it in the file"
            )
        ranges = self._split(text)
        self.texts += len(ranges) > 1
        for number, (start, end) in enumerate(ranges):
            name = id if len(ranges) == 1 else f"{id}:{number + 1}"
            added = dict(zip(COLUMNS, (id, start, end, number), strict=True))
            self._append(text[start:end], name, compact_json(others | added))
