"""The texts that are measured on: headlines, test sets and abstracts, or without them Python's own documentation.

docs/benchmarks.md says where each file of the data folder comes from.
"""

import argparse
import csv
import gzip
import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.report import Missing, console
from semsearch.evaluation.measures import measure

HEADLINES, STS, SCIFACT, CISI = "headlines.csv.gz", "eval/stsb-dev.tsv", "eval/scifact", "eval/cisi"
ARXIV = ("arxiv.jsonl.gz", "arxiv-extra-70k.jsonl.gz")
TOP_K = 10  # documents that nDCG counts for a query
SEED = 7
FIRST_HELD_OUT = 190_000  # headlines from this row on are in no measured index
QUERY_WORDS = 4  # words of a short query
HELD_OUT = 1_000  # texts of the documentation that are in no measured index


def data_folder() -> Path:
    """Return the folder that holds the data: the environment variable BENCH_DATA, or build/bench/data."""
    return Path(os.environ.get("BENCH_DATA") or "build/bench/data")


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """Add --data."""
    parser.add_argument(
        "--data", type=Path, default=data_folder(), help="folder of the data; default: BENCH_DATA, or build/bench/data"
    )


def _open(path: Path) -> Any:
    if not path.is_file():
        raise Missing(
            f"{path}: there is no such file; docs/benchmarks.md says where it comes from: "
            "name the folder that holds it with --data or BENCH_DATA"
        )
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def read_headlines(data: Path, count: int | None = None) -> list[str]:
    """Return the first `count` headlines; the file is shuffled, so they are a fair sample."""
    with _open(data / HEADLINES) as file:
        return [row["text"] for _, row in zip(range(count or 10**9), csv.DictReader(file), strict=False)]


def read_papers(data: Path) -> Iterator[dict[str, str]]:
    """Yield arXiv's papers, with their "title" and "abstract"."""
    for name in ARXIV:
        with _open(data / name) as file:
            yield from map(json.loads, file)


def read_sts(data: Path) -> tuple[list[str], list[str], list[float]]:
    """Return STSBenchmark's development set: first sentences, second sentences, human scores from 0 to 5."""
    with _open(data / STS) as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    return [row[1] for row in rows], [row[2] for row in rows], [float(row[0]) for row in rows]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A retrieval test: documents and queries by id, and the ids of the relevant documents of each query."""

    documents: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, set[str]]
    titles: dict[str, str] = field(default_factory=dict)  # title of each document, which begins with it


def read_scifact(data: Path, name: str = SCIFACT) -> Retrieval:
    """Return SciFact's test set as BEIR has it, or another set in its format; a document is its title and its text."""
    folder = data / name
    with _open(folder / "corpus.jsonl.gz") as file:
        entries = [json.loads(line) for line in file]
    titles = {entry["_id"]: entry["title"] for entry in entries}
    documents = {entry["_id"]: f"{entry['title']} {entry['text']}".strip() for entry in entries}
    with _open(folder / "queries.jsonl") as file:
        queries = {entry["_id"]: entry["text"] for entry in map(json.loads, file)}
    relevant: dict[str, set[str]] = {}
    with _open(folder / "qrels.tsv") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["score"]) > 0:
                relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    return Retrieval(documents, queries, relevant, titles)


def ndcg(best: Sequence[Sequence[int]], test: Retrieval) -> float:
    """Return the mean nDCG@10 over the queries, relevance being yes or no.

    best has, for each query of the test, the rows of the documents that were found, best first.
    """
    ids = list(test.documents)
    relevant = (dict.fromkeys(test.relevant[query_id], 1) for query_id in test.queries)
    found = zip(best, relevant, strict=True)
    return float(np.mean([measure([ids[row] for row in rows], grades)[0] for rows, grades in found]))


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts, their kind as a sentence names it, and the name of their files."""

    kind: str
    file_name: str
    texts: list[str]

    def description(self) -> str:
        """Return the number of texts and their kind, such as "30,000 headlines"."""
        return f"{len(self.texts):,} {self.kind}"


def read_texts(data: Path, count: int) -> Texts:
    """Return the first `count` headlines, or as many texts of the documentation as there are; both are shuffled."""
    if (data / HEADLINES).is_file():
        return Texts("headlines", "headlines", read_headlines(data, count))
    console.print(
        f"{data} has no {HEADLINES}: measuring on Python's own documentation; docs/benchmarks.md says how to get it"
    )
    return Texts("texts of Python's own documentation", "documentation", documentation()[:-HELD_OUT][:count])


def short_queries(data: Path, count: int) -> list[str]:
    """Return the first words of `count` texts that `read_texts` leaves out; the documentation has at most HELD_OUT.

    Raises Missing if the file of headlines is too short to leave any out.
    """
    if (data / HEADLINES).is_file():
        texts = read_headlines(data, FIRST_HELD_OUT + count)[FIRST_HELD_OUT:]
        if not texts:
            found = f"has at most {FIRST_HELD_OUT:,} rows, expected more: the others are queries"
            raise Missing(f"{data / HEADLINES}: {found}; use the file of docs/benchmarks.md, or none")
    else:
        texts = documentation()[-HELD_OUT:][:count]
    return [" ".join(text.split()[:QUERY_WORDS]) for text in texts]


@cache
def documentation() -> list[str]:
    """Return the texts of Python's own documentation, shuffled, because they are sorted by module."""
    from semsearch.indexing.corpus.python_documentation import python_documentation

    texts = list(python_documentation().texts)
    random.Random(SEED).shuffle(texts)
    return texts
