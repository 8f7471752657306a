"""The corpus of up to a million passages: real ones in random order, and mixed ones where they are too few."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from bench.report import Missing
from bench.scale.bundles import LOTS, write_corpus
from bench.texts import ARXIV

HEADLINES = [f"{number} geese fly and {number} goats walk" for number in range(40)]
PAPER = {"title": "On geese", "abstract": "Geese fly south in autumn. They are Hungry. Nobody knows why they return!"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with gzip.open(tmp_path / "headlines.csv.gz", "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in HEADLINES), [HEADLINES[0]]])
    for name in ARXIV:
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write(json.dumps(PAPER) + "\n")
    return tmp_path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_real_passages_are_headlines_titles_and_sentences_each_once(data: Path) -> None:
    assert write_corpus(data / "corpus.csv", data, 43) == "43 headlines, titles and sentences of abstracts"
    rows = rows_of(data / "corpus.csv")
    texts = [row["text"] for row in rows]
    others = {
        PAPER["title"]: "title",
        "Geese fly south in autumn.": "sentence",
        "Nobody knows why they return!": "sentence",
    }
    assert {row["text"]: row["source"] for row in rows} == dict.fromkeys(HEADLINES, "headline") | others
    assert len(texts) == len(set(texts))
    assert texts == [*HEADLINES, *others]
    assert all(0 <= int(row["lot"]) < LOTS for row in rows)


def test_what_is_missing_is_mixed_of_two_headlines_and_counted(data: Path) -> None:
    described = write_corpus(data / "corpus.csv", data, 1_243)
    assert described == "43 headlines, titles and sentences of abstracts, and 1,200 mixed of two headlines each"
    rows = rows_of(data / "corpus.csv")
    mixed = [row["text"] for row in rows if row["source"] == "mixed"]
    assert len(mixed) == 1_200
    assert len({row["text"] for row in rows}) == 1_243
    halves = {half for text in HEADLINES for half in (" ".join(text.split()[:3]), " ".join(text.split()[3:]))}
    for text in mixed:
        first = next(half for half in halves if text.startswith(f"{half} "))
        assert text.removeprefix(f"{first} ") in halves


def test_the_same_data_give_the_same_corpus(data: Path) -> None:
    write_corpus(data / "one.csv", data, 60)
    write_corpus(data / "two.csv", data, 60)
    assert (data / "one.csv").read_bytes() == (data / "two.csv").read_bytes()


def test_without_abstracts_one_line_says_how_to_get_them(data: Path) -> None:
    (data / ARXIV[1]).unlink()
    with pytest.raises(Missing, match=r"there is no such file; docs/benchmarks\.md says where it comes from"):
        write_corpus(data / "corpus.csv", data, 10)
