"""What an export's options make of the keywords; tests/function/engine/keyword tests the postings."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from export.index.keywords import KeywordOptions, keyword_tensors
from function.engine.bundle import KEYWORDS, MANIFEST, KeywordsInfo, open_bundle
from function.engine.keyword.keywords import Keywords
from tests.export.command_line import contents, error_line, export_texts, run, summary


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    path.write_text("text\nsearching in Häuser\nsearches\na Haus\n", encoding="utf-8")
    return path


def export(bundle: Path, texts: Path, *options: str) -> KeywordsInfo | None:
    export_texts(texts, bundle, *options)
    index = open_bundle(bundle).index
    assert index is not None
    return index.keywords


def found(bundle: Path, info: KeywordsInfo | None, text: str) -> list[int]:
    assert info is not None
    return sorted(hit.row for hit in Keywords(bundle / KEYWORDS, info, 3).match(text).best(100))


def test_stems_are_english_unless_another_language_or_none_is_named(bundle_copy: Path, texts: Path) -> None:
    info = export(bundle_copy, texts)
    assert found(bundle_copy, info, "search") == [0, 1]
    assert found(bundle_copy, info, "Haus") == [2]
    info = export(bundle_copy, texts, "--stem", "german")
    assert found(bundle_copy, info, "Haus") == [0, 2]
    info = export(bundle_copy, texts, "--stem", "none")
    assert found(bundle_copy, info, '"search"') == []


@pytest.mark.parametrize(
    ("options", "fusion"),
    [
        ([], ("convex", 0.6)),
        (["--fusion-weight", "0"], ("convex", 0)),
        (["--fusion", "convex", "--fusion-weight", "0.25"], ("convex", 0.25)),
        (["--fusion", "rrf"], ("rrf", 0.6)),
    ],
)
def test_the_manifest_remembers_the_fusion(
    bundle_copy: Path, texts: Path, options: list[str], fusion: tuple[str, float]
) -> None:
    info = export(bundle_copy, texts, *options)
    assert info is not None
    assert (info.fusion, info.fusion_weight) == fusion


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--stem", "none"], "7 terms with 7 postings, no stems; hybrid: convex, weight 0.6"),
        (["--fusion", "rrf"], "6 terms with 7 postings, english stems; hybrid: rrf"),
        (["--no-keywords"], "none: no keyword and no hybrid search"),
    ],
)
def test_the_summary_describes_the_keywords(bundle_copy: Path, texts: Path, options: list[str], shown: str) -> None:
    assert (bundle_copy / KEYWORDS).exists()
    assert summary(export_texts(texts, bundle_copy, *options), "keywords") == shown
    assert (bundle_copy / KEYWORDS).exists() == (options != ["--no-keywords"])


@pytest.mark.parametrize(
    ("text", "query", "version"), [("Zürich", "zurich", 2), ("東京都", "京都", 2), ("Zurich €5", "ZURICH", 1)]
)
def test_only_a_manifest_of_accents_or_pairs_says_so(
    bundle_copy: Path, tmp_path: Path, text: str, query: str, version: int
) -> None:
    (tmp_path / "texts.csv").write_text(f"text\n{text}\ngoose\n", encoding="utf-8")
    info = export(bundle_copy, tmp_path / "texts.csv")
    assert info is not None
    written = json.loads((bundle_copy / MANIFEST).read_text())["index"]["keywords"]
    assert written.get("analyzer", 1) == info.analyzer == version
    assert ("analyzer" in written) == (version > 1)  # functions from before it refuse the field
    assert [hit.row for hit in Keywords(bundle_copy / KEYWORDS, info, 2).match(query).best(9)] == [0]


TITLED = "title,text\nThe angry goose,It sleeps on a ferry.\nThe ferry,A goose and a goose.\n,A baker\n7,goose ferry\n"


def test_words_of_a_title_are_found_and_count_more(bundle_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text(TITLED, encoding="utf-8")
    info = export(bundle_copy, tmp_path / "texts.csv", "--column", "title=string")
    assert found(bundle_copy, info, "angry") == []
    info = export(bundle_copy, tmp_path / "texts.csv", "--title-column", "title", "--column", "title=string")
    assert found(bundle_copy, info, '"angry"') == [0]
    assert info is not None
    with_titles = [TITLED.splitlines()[row + 1].partition(",") for row in range(4)]
    by_hand, expected = keyword_tensors([f"{title} {title} {text}" for title, _, text in with_titles], KeywordOptions())
    assert info == expected
    written = load_file(bundle_copy / KEYWORDS)
    assert written.keys() == by_hand.keys()
    assert all(np.array_equal(written[name], by_hand[name]) for name in by_hand)
    verified = run("verify", bundle_copy)
    assert (verified.code, verified.err) == (0, "")


def test_a_column_of_titles_that_the_texts_lack_is_refused(bundle_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text(TITLED, encoding="utf-8")
    before = contents(bundle_copy)
    done = run("corpus", "--corpus", tmp_path / "texts.csv", "--out", bundle_copy, "--title-column", "titel")
    assert error_line(done).endswith(
        "texts.csv: found the columns 'title', expected a column 'titel'; did you mean --title-column 'title'?"
    )
    assert contents(bundle_copy) == before


def test_texts_without_a_word_have_no_keywords(bundle_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "ducks.csv").write_text("text\n🦆\n🦆🦆\n", encoding="utf-8")
    assert export(bundle_copy, tmp_path / "ducks.csv") is None
    assert not (bundle_copy / KEYWORDS).exists()
