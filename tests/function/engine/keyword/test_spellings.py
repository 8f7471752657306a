"""Accents do not hide a word, and Chinese and Japanese are searched by pairs; older bundles stay as they are."""

from pathlib import Path

import pytest
from safetensors.numpy import save_file

from export.index.keywords import KeywordOptions, keyword_tensors
from function.engine.keyword.highlights import TermsOfWords, highlight
from function.engine.keyword.keywords import Keywords


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keywords.safetensors"


def make(path: Path, texts: list[str], stemming: str | None = None) -> Keywords:
    tensors, info = keyword_tensors(texts, KeywordOptions(stemming))
    assert info is not None
    save_file(tensors, path)
    return Keywords(path, info, len(texts))


def found(keywords: Keywords, query: str) -> list[int]:
    return [hit.row for hit in keywords.match(query).best(10)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [("Zürich", [1, 0]), ("zurich", [0, 1]), ('"Zürich"', [1]), ('"zurich"', [0, 1]), ("ZU\u0308RICH", [1, 0])],
)
def test_a_word_is_found_in_spite_of_accents_and_its_own_spelling_first(
    path: Path, query: str, rows: list[int]
) -> None:
    assert found(make(path, ["by Zurich", "by Zürich", "goose"]), query) == rows


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("french", "les élèves étudiaient", "eleve etudier"),
        ("german", "alte Häuser", "hauser"),
        ("spanish", "las canciones", "cancion"),
        ("none", "Łódź", "lodz"),
        ("none", "smørrebrød", "smorrebrod"),
        ("none", "Æsir", "aesir"),
        ("russian", "ёлка", "елка"),
        ("none", "café-au-lait", "cafe-au-lait"),
    ],
)
def test_a_word_is_found_without_accents_in_each_language(path: Path, language: str, text: str, query: str) -> None:
    assert found(make(path, ["goose", text], None if language == "none" else language), query) == [1]


JAPANESE = ["東京都の公園", "京都の寺", "東の都", "大阪"]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("東京", [0]),
        ("京都", [1, 0]),
        ("京都の寺", [1, 0]),
        ("都", [2, 1, 0]),
        ("寺", [1]),
        ('"東京" 京都', [0]),
        ("奈良", []),
    ],
)
def test_pairs_find_words_and_a_character_alone_finds_itself(path: Path, query: str, rows: list[int]) -> None:
    assert found(make(path, JAPANESE), query) == rows


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("zurich", "To Zürich and Zurich.", ["Zürich", "Zurich"]),
        ("Zürich", "To Zürich and Zurich.", ["Zürich", "Zurich"]),
        ("京都", "東京都と京都。京の都", ["京都", "京都"]),
        ("東京都", "東京都と京都。京の都", ["東京都", "京都"]),
        ("都", "東京都と京都。京の都", ["都", "都", "都"]),
    ],
)
def test_highlights_mark_folded_words_and_pairs(query: str, text: str, marked: list[str]) -> None:
    (parts,) = highlight([text], TermsOfWords(query, [None]), marks_words=True)
    assert [text[start:end] for start, end in parts.ranges] == marked
