"""What is measured on: headlines where there are any, otherwise Python's own documentation."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import work
from bench.work import read_texts, short_queries


@pytest.fixture
def documentation(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """1,600 texts instead of all of Python's own, which take seconds to read."""
    found = [f"module.function_{number}: Return {number}." for number in range(1_600)]
    monkeypatch.setattr(work, "python_documentation", lambda: [{"text": text} for text in found])
    work._all_texts.cache_clear()
    yield found
    work._all_texts.cache_clear()


def test_headlines_are_read_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open(tmp_path / "headlines.csv.gz", "wt", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([["id", "text"], *([number, f"headline number {number} of many"] for number in range(20))])
    monkeypatch.setattr(work, "HELD_OUT", 5)
    read = read_texts(tmp_path, 10)
    assert read.texts == [f"headline number {number} of many" for number in range(10)]
    assert read.description() == "10 headlines"
    assert short_queries(tmp_path) == [f"headline number {number} of" for number in range(15, 20)]


def test_without_headlines_the_documentation_is_read_and_its_queries_are_not_in_the_index(
    tmp_path: Path, documentation: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    read, asked = read_texts(tmp_path, 10**6), short_queries(tmp_path)
    assert read.description() == "600 texts of Python's own documentation"
    assert "measuring on Python's own documentation" in capsys.readouterr().out
    assert len(asked) == 1_000
    assert sorted(read.texts + asked) == sorted(documentation)
