"""What is measured on: headlines where there are any, otherwise Python's own documentation."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import texts
from bench.texts import Retrieval, ndcg, read_texts, short_queries
from export.corpus import Corpus, python_documentation


@pytest.fixture
def headlines(tmp_path: Path) -> Path:
    with gzip.open(tmp_path / "headlines.csv.gz", "wt", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([["id", "text"], *([number, f"headline number {number} of many"] for number in range(20))])
    return tmp_path


@pytest.fixture
def documentation(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """1,600 texts instead of all of Python's own, which take seconds to read."""
    found = [f"module.function_{number}: Return {number}." for number in range(1_600)]
    corpus = Corpus(found, found, ["{}"] * len(found), 0)
    monkeypatch.setattr(python_documentation, "python_documentation", lambda: corpus)
    texts.documentation.cache_clear()
    yield found
    texts.documentation.cache_clear()


def test_headlines_are_read_where_they_are(headlines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "FIRST_HELD_OUT", 15)
    read = read_texts(headlines, 10)
    assert read.texts == [f"headline number {number} of many" for number in range(10)]
    assert read.description() == "10 headlines"
    assert short_queries(headlines, 3, 4) == [f"headline number {number}" for number in range(15, 19)]


def test_without_headlines_the_documentation_is_read_and_said_to_be(
    tmp_path: Path, documentation: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    read = read_texts(tmp_path, 500)
    assert len(set(read.texts)) == 500
    assert read.description() == "500 texts of Python's own documentation"
    said = capsys.readouterr().out
    assert said.startswith(f"{tmp_path} has no headlines.csv.gz: measuring on Python's own documentation")
    assert "docs/benchmarks.md" in said


def test_queries_are_not_in_the_index(tmp_path: Path, documentation: list[str]) -> None:
    indexed, asked = read_texts(tmp_path, 10**6).texts, short_queries(tmp_path, 100, 10**6)
    assert len(asked) == 1_000
    assert sorted(indexed + asked) == sorted(documentation)
    assert indexed != documentation[:600]


def test_ndcg_is_what_pen_and_paper_say() -> None:
    test = Retrieval({"a": "", "b": "", "c": ""}, {"1": "", "2": ""}, {"1": {"a", "c"}, "2": {"b"}})
    # rows 2, 1, 0: relevant at ranks 1 and 3, of an ideal 1 and 2; then relevant at rank 2, of an ideal 1
    first, second = (1 + 1 / 2) / (1 + 1 / 1.584962500721156), 1 / 1.584962500721156
    assert ndcg([[2, 1, 0], [0, 1]], test) == pytest.approx((first + second) / 2)
