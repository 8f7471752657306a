"""What an export's options make of the keywords; tests/engine/keyword tests the postings."""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import Stemmer
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from semsearch import CorpusError, index
from semsearch.engine.bundle import KEYWORDS, KeywordsInfo, check_bundle, read_manifest
from semsearch.engine.keyword.keywords import Keywords
from semsearch.indexing import counting, keywords, term_counts
from semsearch.indexing.corpus.corpus import PassageRow
from semsearch.indexing.counting import KeywordText
from semsearch.indexing.keywords import KeywordOptions, heading_names, keyword_texts, share_of_known_words
from tests.bundle_files import make_keywords
from tests.command_line import error_line, export_texts, run, summary
from tests.indexing.memory import peak_of
from tests.world import make_tokenizer


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    path.write_text("text\nsearching in Häuser\nsearches\na Haus\n", encoding="utf-8")
    return path


def export(bundle: Path, texts: Path, *options: str) -> KeywordsInfo:
    export_texts(texts, bundle, *options)
    info = check_bundle(bundle).corpus.keywords
    assert info is not None
    return info


def found(bundle: Path, info: KeywordsInfo, text: str) -> list[int]:
    return sorted(hit.row for hit in Keywords(bundle / KEYWORDS, info, 3).match(text).best(100))


@pytest.mark.parametrize(
    ("options", "rows", "weight", "said"),
    [
        ([], {"search": [0, 1], "Haus": [2]}, 0.6, "english stems; hybrid: weight 0.6"),
        (["--stem", "german"], {"Haus": [0, 2]}, 0.6, "german stems; hybrid: weight 0.6"),
        (["--stem", "none", "--fusion-weight", "0"], {'"search"': []}, 0, "no stems; hybrid: weight 0"),
    ],
)
def test_stems_and_weight_are_the_default_ones_unless_others_are_named_and_the_summary_names_them(
    bundle_copy: Path, texts: Path, options: list[str], rows: dict[str, list[int]], weight: float, said: str
) -> None:
    assert said in summary(export_texts(texts, bundle_copy, *options), "keywords")
    info = check_bundle(bundle_copy).corpus.keywords
    assert info is not None
    assert info.fusion_weight == weight
    assert {query: found(bundle_copy, info, query) for query in rows} == rows


def test_synonyms_are_found_by_each_of_their_words_and_kept(bundle_copy: Path, texts: Path, tmp_path: Path) -> None:
    file = tmp_path / "synonyms.txt"
    file.write_bytes("\ufeff# one for a meaning\r\n\r\nhouses, Häuser ,haus,villa\r\nlook,Search\n".encode())
    info = export(bundle_copy, texts, "--synonyms", str(file))
    assert found(bundle_copy, info, "villas") == found(bundle_copy, info, "Haus") == [0, 2]
    assert found(bundle_copy, info, "looked") == [0, 1]
    file.unlink()
    assert export(bundle_copy, texts) == info


def test_each_language_has_the_stems_of_the_synonyms_and_a_code_is_one_as_a_whole() -> None:
    texts = ["Häuser", "houses", "wi-fi", "wi"]
    synonyms = [["Häuser", "houses"], ["wireless", "Wi-Fi", "wlan"]]
    _, info = make_keywords(texts, KeywordOptions(synonyms=synonyms), ["german", "english", "english", None])
    assert info is not None
    assert {term: info.synonyms[term] for term in ("haus", "hous", "wireless", "wlan")} == {
        **{"haus": ["hous"], "hous": ["haus"]},
        **{"wireless": ["wi-fi"], "wlan": ["wi-fi"]},
    }
    assert "wi" not in info.synonyms


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"sofa,couch\nlounge,living room\n", "line 2: found 'living room', expected single words with commas"),
        ("lounge,長椅子".encode(), "line 1: found '長椅子', expected single words"),
        (b"lounge,", "line 1: found '', expected single words"),
        (b"lounge,sofa => couch", "line 1: found 'sofa => couch', expected single words"),
        (b"caf\xe9,bar", "'utf-8' codec can't decode"),
        (None, "[Errno 2] No such file or directory"),
    ],
)
def test_a_file_of_synonyms_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "synonyms.txt"
    if content is not None:
        file.write_bytes(content)
    done = run("index", tmp_path / "none.csv", "--synonyms", file)
    assert done.code == 2
    assert f"--synonyms: {file}: {reason}" in " ".join(done.err.split())


def test_without_keywords_there_is_no_file_of_them(bundle_copy: Path, texts: Path) -> None:
    done = export_texts(texts, bundle_copy, "--no-keywords")
    assert summary(done, "keywords") == "none: no keyword and no hybrid search"
    assert not (bundle_copy / KEYWORDS).exists()


TITLED = "title,text\nThe angry goose,It sleeps on a ferry.\nThe ferry,A goose and a goose.\n,A baker\n7,goose ferry\n"


def test_words_of_a_title_are_found_and_count_more(bundle_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text(TITLED, encoding="utf-8")
    info = export(bundle_copy, tmp_path / "texts.csv", "--column", "title=string")
    assert found(bundle_copy, info, "angry") == []
    info = export(bundle_copy, tmp_path / "texts.csv", "--title-column", "title", "--column", "title=string")
    assert found(bundle_copy, info, '"angry"') == [0]
    with_titles = [TITLED.splitlines()[row + 1].partition(",") for row in range(4)]
    by_hand, expected = make_keywords([f"{title} {title} {text}" for title, _, text in with_titles], KeywordOptions())
    assert expected is not None
    assert info == replace(expected, known_words=info.known_words)
    written = load_file(bundle_copy / KEYWORDS)
    assert written.keys() == by_hand.keys()
    assert all(np.array_equal(written[name], by_hand[name]) for name in by_hand)
    verified = run("verify", bundle_copy)
    assert (verified.code, verified.err) == (0, "")


def test_a_column_of_titles_that_the_texts_lack_is_refused(bundle_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text(TITLED, encoding="utf-8")
    done = run("index", tmp_path / "texts.csv", "--out", bundle_copy, "--title-column", "titel")
    assert error_line(done).endswith(
        "texts.csv: found the columns 'title', expected a column 'titel'; did you mean --title-column 'title'?"
    )


def test_a_column_of_languages_that_the_texts_lack_is_refused(out: Path) -> None:
    rows = [{"text": "a goose", "lang": "en"}]
    with pytest.raises(CorpusError) as caught:
        index(rows, out=out, language_column="lung", progress=False)
    assert str(caught.value) == (
        "rows: found the columns 'lang', expected a column 'lung'; did you mean language_column=\"lang\"?"
    )
    index(rows, out=out, language_column="none", progress=False)
    assert read_manifest(out).corpus.options["language_column"] == "none"


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
    keywords = Keywords(bundle_copy / KEYWORDS, info, len(LANGUAGES))
    for query, rows in [("runs", {0}), ("Haus", {1}), ('"laufende houses"', set()), ("maison", {2})]:
        matches = keywords.match(query)
        assert {hit.row for hit in matches.best(9)} == rows, query
        assert matches.corrected == {}
    assert keywords.match("maizons").corrected["maizons"].keys() == {"maisons"}
    assert {hit.row for hit in keywords.match("maizons").best(9)} == {2, 3, 4}


@pytest.mark.parametrize("value", ["klingon", "7"])
def test_a_value_that_is_no_language_is_refused_with_its_row(bundle_copy: Path, tmp_path: Path, value: str) -> None:
    (tmp_path / "texts.csv").write_text(f"lang,text\nen,goose\n{value},ferry\n", encoding="utf-8")
    done = run("index", tmp_path / "texts.csv", "--out", bundle_copy, "--language-column", "lang")
    assert error_line(done).endswith(
        f"texts.csv, text 1 (from 0, id '1'): found '{value}' in the column 'lang', expected a language such as "
        "german, de or de-AT, or none; correct it, or name another column with --language-column"
    )


def test_texts_without_a_word_have_no_keywords(bundle_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "ducks.csv").write_text("text\n🦆\n🦆🦆\n", encoding="utf-8")
    export_texts(tmp_path / "ducks.csv", bundle_copy)
    assert check_bundle(bundle_copy).corpus.keywords is None
    assert not (bundle_copy / KEYWORDS).exists()


@pytest.mark.parametrize(
    ("text", "known"), [("the wooden river", 1.0), ("der Fuchs river einen Bach", 0.25), ("an AB-12", 1.0)]
)
def test_a_word_is_known_if_the_tokenizer_has_it_as_one_token(text: str, known: float) -> None:
    assert share_of_known_words([text], make_tokenizer()) == known


WORDS = [*"abcdefghij", "searching", "searches", "AB-1234", "C++", "Żółć", "東京", "🦆", "..."]


@pytest.mark.parametrize("stemming", [None, "english"])
@pytest.mark.parametrize("block", [1, 7, 100])
def test_tensors_do_not_depend_on_block_size(block: int, stemming: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(block)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    texts = [" ".join(choose.choices(WORDS, weights, k=choose.randint(0, 12))) for _ in range(60)]
    texts += ["a " * 300, ""]
    expected, described = make_keywords(texts, KeywordOptions(stemming))
    monkeypatch.setattr(term_counts, "SORTED_AT_ONCE", block)
    monkeypatch.setattr(counting, "BLOCK_CHARACTERS", block)
    monkeypatch.setattr(counting, "REMEMBERED_TERMS", block)
    found, info = make_keywords(texts, KeywordOptions(stemming))
    assert (info, found.keys()) == (described, expected.keys())
    for name, tensor in expected.items():
        assert (found[name].dtype, found[name].tobytes()) == (tensor.dtype, tensor.tobytes()), name


def terms_by_row(texts: Sequence[str]) -> list[set[str]]:
    """Return the terms whose postings have each row."""
    tensors, info = make_keywords(texts, KeywordOptions())
    assert info is not None
    terms = [
        tensors["terms"][begin:end].tobytes().decode() for begin, end in pairwise(tensors["terms.offsets"].tolist())
    ]
    found: list[set[str]] = [set() for _ in texts]
    for term, (begin, end) in zip(terms, pairwise(tensors["postings.offsets"].tolist()), strict=True):
        for row in tensors["rows"][begin:end].tolist():
            found[row].add(term)
    return found


PARTS = ["t shirt", "T-shirt", "tshirt", "wi fi", "Wi-Fi", "wifi", "128 GB", "128GB", "--no-cache", "foo_bar", "foobar"]


@given(st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(" ".join), min_size=2, max_size=4))
@example(["a t shirt", "a tshirt"])
def test_the_terms_of_a_text_are_the_same_whatever_other_texts_there_are(texts: list[str]) -> None:
    assert terms_by_row(texts) == [terms_by_row([text])[0] for text in texts]


@pytest.mark.slow  # traces each allocation
def test_a_word_of_a_text_takes_few_bytes_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_counts, "SORTED_AT_ONCE", 1 << 10)
    monkeypatch.setattr(counting, "BLOCK_CHARACTERS", 1 << 13)
    rows, words = 5_000, 25

    class Texts(Collection[str]):
        def __iter__(self) -> Iterator[str]:
            choose = random.Random(0)
            for _ in range(rows):
                yield " ".join(f"word{choose.randrange(100)}" for _ in range(words))

        def __len__(self) -> int:
            return rows

        def __contains__(self, text: object) -> bool:
            return any(text == each for each in self)

    assert peak_of(lambda: make_keywords(Texts(), KeywordOptions())) < 14 * rows * words


OPTION = {"click.option.get_default", "option.get_default"}


@pytest.mark.parametrize(
    ("metadata", "names"),
    [
        ({"headings": ["API", "class click.Option(x=1)"]}, {"click.option", "option", "class click.option(x=1"}),
        ({"headings": ["get_default()"], "url": "api#click.Option.get_default"}, {*OPTION, "get_default"}),
        ({"headings": ["-v, --verbose"]}, {"-v", "--verbose", "v, --verbose"}),
        ({"headings": ["Install"], "url": "guide#install"}, {"install"}),
        ({"headings": ["Codes"], "url": "codes#FSTWRN001"}, {"codes", "fstwrn001"}),
        ({"headings": ["Codes"], "url": "codes#Fst-1"}, {"codes"}),
        ({"headings": ["How to install C++ and fooBar?"]}, {"c++", "foobar", "how to install c++ and foobar"}),
        ({"title": "E1001", "headings": []}, {"e1001"}),
        ({"headings": ["5.9.4. Orphaning a package"]}, {"5.9.4. orphaning a package", "orphaning a package"}),
        ({"headings": ["1.2 Install"]}, {"1.2 install", "install"}),
        ({"headings": ["Kapitel\u00a02.\u00a0Pakete"]}, {"kapitel 2. pakete", "pakete"}),
        ({"headings": ["B.1. os.path(x)"]}, {"b.1. os.path(x", "os.path(x", "os.path", "path"}),
        ({"headings": ["A guide to 1.2 Install"]}, {"a guide to 1.2 install"}),
        ({"headings": ["3 ways to install"]}, {"3 ways to install"}),
        ({"title": "2.5 SSD"}, set()),  # a column of a table
        ({"headings": ["Démission"]}, {"démission", "demission"}),
        ({"headings": ["L\u2019Œuvre d\u2019art"]}, {"l\u2019œuvre d\u2019art", "l'oeuvre d'art"}),
        ({"headings": ["Straße"]}, {"strasse"}),
        ({"title": "Two words"}, set()),
        ({"title": 7}, set()),
    ],
)
def test_a_heading_has_these_names(metadata: dict[str, object], names: set[str]) -> None:
    assert heading_names(metadata, None) == names


def test_passages_are_read_with_their_title_their_language_and_the_names_of_their_heading() -> None:
    rows = [
        PassageRow("text", "1", '{"name":"N","lang":"de","headings":["A","b.c"],"title":"T"}', "*text*"),
        PassageRow("text", "2", '{"name":7,"lang":""}'),
        PassageRow("text", "3", '{"title":"os.path","lang":"ja"}'),
    ]
    options = KeywordOptions("dutch", title_column="name", language_column="lang")
    assert list(keyword_texts(rows, options, has_prefixes=True)) == [
        KeywordText("T > A > b.c\ntext", "N", "german", {"b.c", "c"}),
        KeywordText("text", "", "dutch", set()),
        KeywordText("os.path\ntext", "", None, set()),
    ]
    assert list(keyword_texts(rows[2:], KeywordOptions(), has_prefixes=False)) == [
        KeywordText("text", "", "english", {"os.path", "path"})
    ]


def test_words_of_a_sample_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "KNOWN_TEXTS", 2)
    monkeypatch.setattr(keywords, "KNOWN_CHARACTERS", 13)
    texts = ["the wooden river Fuchs", *["Fuchs"] * 3, "river Fuchs", "Fuchs"]  # the first and the fifth one
    assert share_of_known_words(texts, make_tokenizer()) == round(2 / 3, 4)
    assert share_of_known_words(["a", "1234"], make_tokenizer()) == 1
