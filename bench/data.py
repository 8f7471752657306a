"""Real texts to measure on, from outside the project: --data or the variable BENCH_DATA names their folder."""

import argparse
import csv
import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class DataError(SystemExit):
    """Texts that are not there."""


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """Add --data, which defaults to BENCH_DATA."""
    default = Path(os.environ.get("BENCH_DATA", "data"))
    parser.add_argument(
        "--data", type=Path, default=default, help="folder with headlines.csv.gz and eval/; BENCH_DATA unless given"
    )


def _open(path: Path) -> Any:
    if not path.exists():
        raise DataError(
            f"{path}: there is no such file; name the folder that holds the texts with --data or BENCH_DATA"
        )
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def read_headlines(data: Path, count: int | None = None) -> list[str]:
    """Give the first `count` headlines; the file is shuffled, so they are a fair sample."""
    with _open(data / "headlines.csv.gz") as file:
        return [row["text"] for _, row in zip(range(count or 10**9), csv.DictReader(file), strict=False)]


def read_sts(data: Path) -> tuple[list[str], list[str], list[float]]:
    """Give STSBenchmark's development set: sentences, sentences, human scores 0 to 5."""
    with _open(data / "eval" / "stsb-dev.tsv") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    return [row[1] for row in rows], [row[2] for row in rows], [float(row[0]) for row in rows]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A retrieval test: texts and queries by id, and the relevant documents of each query."""

    documents: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, set[str]]


def read_scifact(data: Path) -> Retrieval:
    """Give SciFact's test set as BEIR has it; a document is its title and its text."""
    folder = data / "eval" / "scifact"
    with _open(folder / "corpus.jsonl.gz") as file:
        documents = {one["_id"]: f"{one['title']} {one['text']}" for one in map(json.loads, file)}
    with _open(folder / "queries.jsonl") as file:
        queries = {one["_id"]: one["text"] for one in map(json.loads, file)}
    relevant: dict[str, set[str]] = {}
    with _open(folder / "qrels.tsv") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["score"]) > 0:
                relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    return Retrieval(documents, queries, relevant)
