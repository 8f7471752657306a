"""What an export's options make of the keywords; tests/function/engine/keyword tests the postings."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import Stemmer
from safetensors.numpy import load_file

from export.index.keywords import KeywordOptions, keyword_tensors
from export.index.languages import STEMMERS
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


@pytest.mark.parametrize(("text", "query"), [("Zürich", "zurich"), ("東京都", "京都"), ("Zurich €5", "ZÜRICH")])
def test_words_are_found_without_accents_and_by_pairs(bundle_copy: Path, tmp_path: Path, text: str, query: str) -> None:
    (tmp_path / "texts.csv").write_text(f"text\n{text}\ngoose\n", encoding="utf-8")
    info = export(bundle_copy, tmp_path / "texts.csv")
    assert info is not None
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
    assert expected is not None
    assert info == replace(expected, known_words=info.known_words)
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


LANGUAGES = {
    "en": "the running geese searched several houses",
    "German": "die laufenden Gänse suchten mehrere Häuser",
    "fr-CA": "les oies cherchaient plusieurs maisons",
    "ja": "running Häuser maisons",
    "": "running Häuser maisons again",
}
NAMES = ["english", "german", "french", None, "dutch"]  # stemmers of these texts with --stem dutch


@pytest.fixture
def languages(tmp_path: Path) -> Path:
    path = tmp_path / "languages.csv"
    rows = (f"{language},{text}\n" for language, text in LANGUAGES.items())
    path.write_text("lang,text\n" + "".join(rows), encoding="utf-8")
    return path


def test_each_text_has_the_stems_of_its_own_language(bundle_copy: Path, languages: Path) -> None:
    info = export(bundle_copy, languages, "--language-column", "lang", "--stem", "dutch")
    assert info is not None
    assert (info.stemming, info.languages) == ("dutch", ["dutch", "english", "french", "german", "none"])
    keywords = Keywords(bundle_copy / KEYWORDS, info, len(LANGUAGES))
    rows_by_term: dict[str, set[int]] = {}
    for row, (name, text) in enumerate(zip(NAMES, LANGUAGES.values(), strict=True)):
        for word in text.lower().split():
            for spelling in (word, word.replace("ä", "a")):
                term = spelling if name is None else Stemmer.Stemmer(name).stemWord(spelling)
                rows_by_term.setdefault(term, set()).add(row)
    assert {term: set(keywords.rows_of(term).tolist()) for term in rows_by_term} == rows_by_term
    assert info.terms == len(rows_by_term)
    verified = run("verify", bundle_copy)
    assert (verified.code, verified.err) == (0, "")


def test_a_query_is_read_in_each_language_of_the_texts(bundle_copy: Path, languages: Path) -> None:
    info = export(bundle_copy, languages, "--language-column", "lang", "--stem", "none")
    assert info is not None
    keywords = Keywords(bundle_copy / KEYWORDS, info, len(LANGUAGES))
    for query, rows in [
        ("runs", {0}),
        ("Haus", {1}),
        ("Häuser", {1, 3, 4}),
        ('"run" house', {0}),
        ('"laufende Haus"', {1}),
        ('"laufende houses"', set()),
        ("maison", {2}),
    ]:
        matches = keywords.match(query)
        assert {hit.row for hit in matches.best(9)} == rows, query
        assert matches.corrected == {}
    assert keywords.match("maizons").corrected["maizons"].keys() == {"maisons"}
    assert {hit.row for hit in keywords.match("maizons").best(9)} == {2, 3, 4}


def test_a_word_counts_once_where_its_stems_are_equal(bundle_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("lang,text\nen,a goose\nen,goose houses\nde,houses\n", encoding="utf-8")
    info = export(bundle_copy, tmp_path / "two.csv", "--language-column", "lang")
    assert info is not None
    scores = Keywords(bundle_copy / KEYWORDS, info, 3).match("houses house").scores
    info = export(bundle_copy, tmp_path / "two.csv")
    assert info is not None
    assert scores.tolist() == Keywords(bundle_copy / KEYWORDS, info, 3).match("houses house").scores.tolist()


def test_the_manifest_names_languages_only_with_a_column_of_them(bundle_copy: Path, languages: Path) -> None:
    for options in ((), ("--language-column", "lang")):
        export(bundle_copy, languages, "--stem", "english", *options)
        written = json.loads((bundle_copy / MANIFEST).read_text())["index"]["keywords"]
        assert bool(written["languages"]) == bool(options)


@pytest.mark.parametrize("value", ["klingon", "en de", "7"])
def test_a_value_that_is_no_language_is_refused_with_its_row(bundle_copy: Path, tmp_path: Path, value: str) -> None:
    (tmp_path / "texts.csv").write_text(f"lang,text\nen,goose\n{value},ferry\n", encoding="utf-8")
    before = contents(bundle_copy)
    done = run("corpus", "--corpus", tmp_path / "texts.csv", "--out", bundle_copy, "--language-column", "lang")
    assert error_line(done).endswith(
        f"texts.csv, text 1 (from 0, id '1'): found '{value}' in the column 'lang', expected a language such as "
        "german, de or de-AT, or none; correct it, or name another column with --language-column"
    )
    assert contents(bundle_copy) == before


def test_each_stemmer_is_known_by_its_name() -> None:
    assert {*Stemmer.algorithms()} - {*STEMMERS} <= {"porter", "dutch_porter"}
    assert all(STEMMERS[name] == name for name in STEMMERS.values())


def test_texts_without_a_word_have_no_keywords(bundle_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "ducks.csv").write_text("text\n🦆\n🦆🦆\n", encoding="utf-8")
    assert export(bundle_copy, tmp_path / "ducks.csv") is None
    assert not (bundle_copy / KEYWORDS).exists()


@pytest.mark.parametrize(
    ("text", "known"),
    [("the wooden river", 1.0), ("der Fuchs river einen Bach", 0.25), ("Der Fuchs", 0.0), ("an AB-12", 1.0)],
)
def test_the_manifest_says_how_many_words_the_tokenizer_knows(
    bundle_copy: Path, tmp_path: Path, text: str, known: float
) -> None:
    (tmp_path / "texts.csv").write_text(f"text\n{text}\n", encoding="utf-8")
    info = export(bundle_copy, tmp_path / "texts.csv")
    assert info is not None
    assert info.known_words == known
