"""Which types the columns of a corpus have, as its values say and the options of `index` choose."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from semsearch.engine.bundle import NO_STEMS
from semsearch.indexing.columns import NONE, choose_types, columns_of_numbers, describe_mixed
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.columns import require_column
from semsearch.indexing.digests import Positions
from semsearch.indexing.keywords import require_languages

NO_TYPES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """Which types columns have, and which ones exist. The options of `index` of these names explain the fields."""

    column: Mapping[str, str]
    title_column: str | None
    language_column: str | None
    strict: bool

    def of_those_in(self, corpus: Corpus) -> Self:
        """Return the options without columns that no text of a corpus has."""
        titles, languages = (
            name if name in corpus.facts else None for name in (self.title_column, self.language_column)
        )
        stated = {name: kind for name, kind in self.column.items() if name in corpus.facts}
        return replace(self, column=stated, title_column=titles, language_column=languages)


def choose_columns(
    corpus: Corpus,
    path: Path,
    options: ColumnOptions,
    before: Mapping[str, str] = NO_TYPES,
    new: Positions | None = None,
) -> Corpus:
    """Return the corpus with the types of its columns; path is for messages.

    before has the types of the columns of the older index: one of numbers stays one if its values are numbers, or
    strings that are. new has the rows that are new, without it all.

    Raises CorpusError if an option names a column that is not there, or one with other values.
    """
    columns = choose_types(corpus, options.column, path)
    others = {column: kind for column, kind in columns.items() if column not in options.column}
    numeric = tuple(columns_of_numbers(corpus, others, ("string",)))
    if corpus.is_csv:
        columns |= dict.fromkeys(numeric, "number")
    else:
        numbers = columns_of_numbers(corpus, others, ("string", NONE))
        columns |= {name: "number" for name in numbers if before.get(name) == "number"}
    if options.title_column is not None:
        require_column(path, columns, options.title_column, "--title-column")
    if options.language_column not in (None, NO_STEMS):
        require_column(path, columns, options.language_column, "--language-column")
        require_languages(corpus, options.language_column, path, np.arange(len(corpus.texts)) if new is None else new)
    mixed = describe_mixed(corpus, {name: kind for name, kind in others.items() if columns[name] == kind})
    return replace(corpus, numeric_strings=numeric, columns=columns, mixed=mixed)
