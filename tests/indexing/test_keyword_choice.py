"""What keyword search reads, as options and texts say."""

from dataclasses import replace

import pytest

from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.keyword_choice import KeywordChoice
from semsearch.indexing.keywords import KeywordOptions, is_language

USUAL = KeywordChoice(
    keywords=True,
    stem=None,
    text_column=None,
    title_column=None,
    language_column=None,
    synonyms=None,
    fusion_weight=0.5,
)
COLUMNS = Corpus((), (), (), columns={"name": "string", "label": "string", "language": "string"})
ENGLISH = ReadReport()
SITE = ReadReport(of_site={"language": ("en", "de-AT")})


@pytest.mark.parametrize(
    ("choice", "column"),
    [
        (USUAL, None),
        (replace(USUAL, text_column="name"), None),
        (replace(USUAL, text_column="name,text"), "name"),
        (replace(USUAL, text_column="gone,name"), None),
        (replace(USUAL, text_column="name,text", title_column="label"), "label"),
    ],
)
def test_the_first_of_several_text_columns_has_the_titles(choice: KeywordChoice, column: str | None) -> None:
    assert choice.title_column_of(COLUMNS) == column


@pytest.mark.parametrize(
    ("choice", "report", "columns", "column"),
    [
        (USUAL, ENGLISH, COLUMNS.columns, None),
        (USUAL, SITE, COLUMNS.columns, "language"),
        (USUAL, ReadReport(of_site={"language": ("en",)}), COLUMNS.columns, None),
        (USUAL, ReadReport(of_site={"language": ("en-US",)}), COLUMNS.columns, None),
        (USUAL, ReadReport(of_site={"language": ("de-AT",)}), COLUMNS.columns, "language"),
        (USUAL, ReadReport(of_site={"language": ("ja",)}), COLUMNS.columns, None),
        (USUAL, ReadReport(of_site={"language": ("klingon",)}), COLUMNS.columns, None),
        (USUAL, ReadReport(of_site={"language": ("de",)}), {}, None),
        (USUAL, ReadReport(of_site={"language": ("en", "ja")}), COLUMNS.columns, "language"),  # ja has no stems
        (USUAL, ReadReport(of_site={"language": ("en", "klingon")}), COLUMNS.columns, None),
        (USUAL, SITE, {"language": "list"}, None),
        (USUAL, SITE, {}, None),
        (replace(USUAL, language_column="none"), SITE, COLUMNS.columns, None),
        (replace(USUAL, language_column="lang"), ENGLISH, COLUMNS.columns, "lang"),
        (replace(USUAL, language_column="lang"), SITE, COLUMNS.columns, "lang"),
    ],
)
def test_a_site_in_several_languages_or_in_another_one_has_a_column_of_them(
    choice: KeywordChoice, report: ReadReport, columns: dict[str, str], column: str | None
) -> None:
    corpus = replace(COLUMNS, columns=columns)
    assert choice.language_column_of(corpus, report) == column
    assert choice.has_default_stems(corpus, report) == (column is None)


def test_options_without_a_value_have_their_usual_one() -> None:
    usual = KeywordOptions("english", 0.5)
    assert USUAL.options_of(COLUMNS, ENGLISH) == usual
    assert replace(USUAL, stem="none").options_of(COLUMNS, ENGLISH) == replace(usual, stemming=None)
    chosen = replace(USUAL, stem="german", text_column="name,text", synonyms=[["a", "b"]])
    assert chosen.options_of(COLUMNS, SITE) == KeywordOptions("german", 0.5, "name", "language", [["a", "b"]])
    assert replace(USUAL, keywords=False).options_of(COLUMNS, ENGLISH) is None


def test_stems_that_nobody_has_chosen_are_the_default_ones() -> None:
    for choice in (replace(USUAL, stem="english"), replace(USUAL, keywords=False)):
        assert not choice.has_default_stems(COLUMNS, ENGLISH)


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        *(("german", True), (" De_AT ", True), ("xx", True), ("xyz-1", True), ("none", True), ("English", True)),
        *(("klingon", False), ("x", False), ("d3", False), ("", False), ("xxxx", False)),
    ],
)
def test_a_language_is_a_name_or_a_code(value: str, is_one: bool) -> None:
    assert is_language(value) is is_one
