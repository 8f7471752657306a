"""The texts that are measured on: headlines where they were fetched, otherwise Python's own documentation."""

import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.data import HEADLINES, read_headlines
from bench.needs import Missing
from bench.report import console
from export.corpus.python_documentation import python_documentation

SEED = 7
FIRST_HELD_OUT = 190_000  # headlines from here on are in no measured index
HELD_OUT = 1_000  # of the documentation, which is short


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts, what they are called in a sentence, and what their files are called."""

    kind: str
    file_name: str
    texts: list[str]

    def description(self) -> str:
        """Return how many of what they are."""
        return f"{len(self.texts):,} {self.kind}"


def read_texts(data: Path, count: int) -> Texts:
    """Return the first `count` texts, of the documentation perhaps fewer; both are shuffled, so they are a sample."""
    if has_headlines(data):
        return Texts("headlines", "headlines", read_headlines(data, count))
    console.print(
        f"{data} has no {HEADLINES}: measuring on Python's own documentation; docs/benchmarks.md says how to get it"
    )
    texts = documentation()[:-HELD_OUT][:count]
    return Texts("texts of Python's own documentation", "documentation", texts)


def held_out_texts(data: Path, count: int) -> list[str]:
    """Return `count` texts, of the documentation at most a thousand, that `read_texts` leaves out.

    Raises Missing if the file of headlines is too short to leave any out.
    """
    if has_headlines(data):
        texts = read_headlines(data, FIRST_HELD_OUT + count)[FIRST_HELD_OUT:]
        if not texts:
            raise Missing(
                f"{data / HEADLINES}: has at most {FIRST_HELD_OUT:,} rows, expected more, because queries come from "
                "the rows beyond; fetch the file of docs/benchmarks.md, or remove it to use Python's documentation"
            )
        return texts
    return documentation()[-HELD_OUT:][:count]


def has_headlines(data: Path) -> bool:
    """Return whether the headlines were fetched."""
    return (data / HEADLINES).is_file()


@cache
def documentation() -> list[str]:
    """Return the texts of Python's own documentation, shuffled, because they come by module."""
    texts = list(python_documentation().texts)
    random.Random(SEED).shuffle(texts)
    return texts


def short_queries(data: Path, words: int, count: int) -> list[str]:
    """Return the first words of texts that are in no measured index."""
    return [" ".join(text.split()[:words]) for text in held_out_texts(data, count)]
