"""Real texts to measure on: which files there are, and how to read them. `python -m bench data` fetches them."""

import argparse
import csv
import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.needs import Missing

HEADLINES, STS, SCIFACT = "headlines.csv.gz", "eval/stsb-dev.tsv", "eval/scifact"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of the data: its path in the data folder, its length in bytes, and its SHA-256 in hexadecimal."""

    path: str
    length: int
    sha256: str


# docs/benchmarks.md says where each comes from
FILES = (
    DataFile(HEADLINES, 6_021_549, "d4aa26f0f46dfac12113d17bf844452b58de7a30032ab2155be6e02d9bad4428"),
    DataFile(
        f"{SCIFACT}/corpus.jsonl.gz", 2_751_397, "e962861c4d0b8024cf011fdc93328ac5599cf897b0a5f9430fac31941c67733b"
    ),
    DataFile(f"{SCIFACT}/queries.jsonl", 35_277, "d3161c84e70775b287de2665f3ef4e45abfb64ba39f5fd80465deb17745b7b22"),
    DataFile(f"{SCIFACT}/qrels.tsv", 5_049, "68c0ac63f1c24b9e8ce497649694f09b2d0850bab7ec2b103cc66996f5f8b3a3"),
    DataFile(STS, 201_267, "45707d055f29b5062fc0e401a84e6b0850ce6f5f547b5be70a0273630d1427f0"),
)
# abstracts, which only `scale` needs
ARXIV = (
    DataFile("arxiv.jsonl.gz", 11_346_240, "61ca5ebdf5a0e3e3e3fcc04fedc96a11c16177cf5d23a6a9c43e760f90384f15"),
    DataFile(
        "arxiv-extra-70k.jsonl.gz", 26_430_455, "8715f59403b58c7ae2166260e6a0321d41b36ab81300613f200296ffefc0df50"
    ),
)


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
            f"{path}: there is no such file; fetch it with `python -m bench data --from FOLDER|URL` "
            "(docs/benchmarks.md says what it is), or name the folder that holds it with --data"
        )
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def read_headlines(data: Path, count: int | None = None) -> list[str]:
    """Return the first `count` headlines; the file is shuffled, so they are a fair sample."""
    with _open(data / HEADLINES) as file:
        return [row["text"] for _, row in zip(range(count or 10**9), csv.DictReader(file), strict=False)]


def read_papers(data: Path) -> Iterator[dict[str, str]]:
    """Yield arXiv's papers, with their "title" and "abstract"."""
    for described in ARXIV:
        with _open(data / described.path) as file:
            yield from map(json.loads, file)


def read_sts(data: Path) -> tuple[list[str], list[str], list[float]]:
    """Return STSBenchmark's development set: sentences, sentences, human scores 0 to 5."""
    with _open(data / STS) as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    return [row[1] for row in rows], [row[2] for row in rows], [float(row[0]) for row in rows]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A retrieval test: texts and queries by id, and the relevant documents of each query."""

    documents: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, set[str]]


def read_scifact(data: Path) -> Retrieval:
    """Return SciFact's test set as BEIR has it; a document is its title and its text."""
    folder = data / SCIFACT
    with _open(folder / "corpus.jsonl.gz") as file:
        documents = {entry["_id"]: f"{entry['title']} {entry['text']}" for entry in map(json.loads, file)}
    with _open(folder / "queries.jsonl") as file:
        queries = {entry["_id"]: entry["text"] for entry in map(json.loads, file)}
    relevant: dict[str, set[str]] = {}
    with _open(folder / "qrels.tsv") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["score"]) > 0:
                relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    return Retrieval(documents, queries, relevant)
