"""The language of each row's stems, read from a column such as `language`."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from export.corpus import Corpus, CorpusError
from function.engine.bundle import NO_STEMS

SHOWN = 40  # maximum characters of a wrong value in a message
# The languages of Snowball's stemmers, each with its ISO 639 codes
LANGUAGES = """\
arabic ar ara, armenian hy hye arm, basque eu eus baq, catalan ca cat, czech cs ces cze, danish da dan,
dutch nl nld dut, english en eng, esperanto eo epo, estonian et est, finnish fi fin, french fr fra fre,
german de deu ger, greek el ell gre, hindi hi hin, hungarian hu hun, indonesian id ind, irish ga gle, italian it ita,
lithuanian lt lit, nepali ne nep, norwegian no nor nb nob nn nno, persian fa fas per, polish pl pol, portuguese pt por,
romanian ro ron rum, russian ru rus, serbian sr srp, sesotho st sot, spanish es spa, swedish sv swe, tamil ta tam,
turkish tr tur, yiddish yi yid"""
STEMMERS = {name: names.split()[0] for names in LANGUAGES.split(",") for name in names.split()}
CODE = re.compile(r"[a-z]{2,3}")


def row_languages(corpus: Corpus, column: str, default: str | None, source: Path) -> Iterator[str | None]:
    """Yield the language of each row's stemmer, None without stems; default is the language of rows without a value.

    A value is a name or a code of a language: german, de or de-AT. Rows in a language without a stemmer have no stems.
    Raises CorpusError, which names the source and the row, if a value is no language.
    """
    for row, metadata in enumerate(corpus.metadata):
        value = json.loads(metadata).get(column)
        try:
            yield default if value is None or value == "" else _find_stemmer(value)
        except (KeyError, TypeError, AttributeError):
            raise CorpusError(
                f"{source}, text {row} (from 0, id {corpus.ids[row]!r}): found {repr(value)[:SHOWN]} in the column "
                f"{column!r}, expected a language such as german, de or de-AT, or {NO_STEMS}; correct it, or name "
                "another column with --language-column"
            ) from None


@cache
def _find_stemmer(value: str) -> str | None:
    from Stemmer import algorithms  # only this option needs it

    name = re.split("[-_]", value.strip().casefold())[0]
    stemmer = STEMMERS.get(name)
    if stemmer is None and name != NO_STEMS and not CODE.fullmatch(name):
        raise KeyError(name)
    return stemmer if stemmer in algorithms() else None
