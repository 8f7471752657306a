"""What holds for the passages of all documents, whatever is in them."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semsearch.engine.bundle import TOKENIZER, Manifest
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.corpus.corpus import PREFIX_CHARACTERS, heading_prefix
from semsearch.indexing.corpus.passages import PrefixedTexts
from semsearch.indexing.documents import passages
from semsearch.indexing.documents.document import Block, Heading
from semsearch.indexing.documents.html import read_html_text
from semsearch.indexing.documents.markdown import read_markdown
from semsearch.indexing.documents.passages import Splitter, divide
from semsearch.indexing.documents.plain_text import read_plain

TOKENS = 24
WORDS = st.sampled_from(["alpha", "beta.", "`gamma`", "Ωmega", "東京", "*d*", "<b>x</b>", "|", "1-2", "x" * 90])
LINES = st.lists(WORDS, max_size=40).map(" ".join)
PIECES = st.one_of(
    LINES,
    st.tuples(st.sampled_from(["# ", "## ", "### "]), LINES).map("".join),
    LINES.map("- {}\n- two".format),
    LINES.map("```\n{}\n\nb\n```".format),
    st.lists(LINES, max_size=9).map(lambda rows: "| a | b |\n| - | - |\n" + "\n".join(f"| {row} |" for row in rows)),
)
MARKDOWN = st.lists(PIECES, max_size=12).map("\n\n".join)
# Pages that are well nested. Nothing but an element is between two words W, unless they are in an inline element.
PHRASES = st.recursive(
    st.sampled_from(["W", "W<br>W", "W<img>W", "W<button>x</button>W", "W<svg></svg>W", "W<input>"]),
    lambda inner: st.builds("{1} <{0}>{2}</{0}> ".format, st.sampled_from(["b", "a", "span", "code"]), inner, inner),
    max_leaves=3,
)
LEAVES = st.builds(
    "<{0}>{1}</{0}>".format, st.sampled_from(["p", "h1", "h2", "h6", "pre", "address", "summary"]), PHRASES
)
BOXES = ["div", "section", "blockquote", "details", "figure", "figcaption", "center", "ul", "ol"]
FLOW = st.recursive(
    PHRASES | LEAVES,
    lambda inner: st.one_of(
        st.builds("{1}<{0}>{2}<hr>{1}</{0}>".format, st.sampled_from(BOXES), inner, inner),
        st.builds("<ul><li>{}<li>{}</ul>".format, inner, inner),
        st.builds("<dl><dt id=x>{}<dt>{}<dd>{}</dl>".format, PHRASES, PHRASES, inner),
        st.builds("<table><caption>{}<tr><th>{}<td>{}</table>".format, PHRASES, inner, inner),
        st.builds("<h2>{}<div>{}</div></h2>".format, PHRASES, PHRASES),
        st.builds("<h2>{}<p>{}<ul><li>{}</ul></h2>".format, PHRASES, PHRASES, PHRASES),
    ),
    max_leaves=12,
)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(text=MARKDOWN, overlap=st.sampled_from([0, 5]))
@in_one_folder
def test_passages_of_markdown(text: str, overlap: int, tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    (tmp_path / "page.md").write_bytes(text.encode())
    document = read_markdown(tmp_path / "page.md", "github")
    (part,) = document.parts
    splitter = make_splitter(TOKENS, overlap)
    found = list(divide(document, splitter))
    alone = {(block.start, block.end) for block in part.blocks if isinstance(block, Heading)}
    assert part.markup is not None
    for each in found:
        own = text[each.start : each.end]
        assert own == own.strip() != ""
        assert each.text == each.text.strip() != ""
        # no passage crosses a heading; one without a text is a passage by itself
        assert all(
            end <= each.start or start >= each.end or start <= each.start < each.end <= end for start, end in alone
        )
    if not overlap:
        blocks = [part.markup.plain(one.start, one.end) for one in part.blocks if isinstance(one, Block)]
        # a heading without a text can be longer than a passage
        of_blocks = [each.text for each in found if not any(start <= each.start < end for start, end in alone)]
        assert re.sub(r"[\s|-]", "", "".join(of_blocks)) == re.sub(r"[\s|-]", "", "".join(blocks))
    assert found == list(divide(document, splitter))


@given(text=st.text(st.sampled_from("ab. \n\f東"), max_size=200), tokens=st.integers(1, 9))
@in_one_folder
def test_passages_of_plain_text(text: str, tokens: int, tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    (tmp_path / "page.txt").write_bytes(text.encode())
    splitter = make_splitter(tokens)
    found = list(divide(read_plain(tmp_path / "page.txt"), splitter))
    assert all(text[each.start : each.end] == each.text and splitter.count(each.text) <= tokens for each in found)
    assert "".join("".join(each.text for each in found).split()) == "".join(text.split())


def test_a_long_text_is_divided_at_a_blank_of_the_second_half_of_what_is_read_at_once(
    make_splitter: Callable[..., Splitter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "SENTENCE_CHARACTERS", 20)
    splitter = make_splitter(1)
    assert splitter.split("a" * 9 + " " + "b" * 30) == [(0, 9), (10, 20), (20, 40)]
    assert splitter.split("a" * 10 + " " + "b" * 30) == [(0, 10), (11, 31), (31, 41)]
    text = "a" * 15 + "\n" + "b" * 9 + " " + "c" * 9 + "\n" + "d" * 20
    assert splitter.split(text) == [(0, 15), (16, 25), (26, 35), (36, 56)]
    assert splitter.split("a" * 20 + " " + "b" * 19) == [(0, 20), (21, 40)]


def test_the_prompt_of_passages_takes_its_tokens_of_what_the_model_reads(bundle: Path, manifest: Manifest) -> None:
    def room(prompts: dict[str, str]) -> int:
        return Splitter(read_tokenizer(bundle / TOKENIZER), replace(manifest.model, prompts=prompts), 9, 0).sizes[0]

    assert room({"query": "a b c ", "document": "a b "}) == room({}) - 2


def test_a_text_of_many_characters_a_token_does_not_fit(make_splitter: Callable[..., Splitter]) -> None:
    splitter, text = make_splitter(40), "x" * 400
    assert splitter.count(text) == 1
    longest = 10 * passages.MOST_CHARACTERS
    assert [splitter.fits(text, 5, 5 + length, 10) for length in (longest, longest + 1)] == [True, False]
    assert [splitter.fits("a b c", 0, 5, tokens) for tokens in (2, 3)] == [False, True]


def test_overlap_repeats_the_end_of_the_passage_before(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    (tmp_path / "a.txt").write_text(" ".join(f"w{n}" for n in range(30)))
    found = [each.text.split() for each in divide(read_plain(tmp_path / "a.txt"), make_splitter(12, overlap=3))]
    assert all(after[:3] == before[-3:] and len(after) <= 12 for before, after in pairwise(found))
    assert [word for place, words in enumerate(found) for word in words[3 if place else 0 :]] == [
        f"w{n}" for n in range(30)
    ]


def test_a_long_path_leaves_room_for_the_text(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    (tmp_path / "a.md").write_text(f"# {'head ' * 30}\n\n{'word ' * 90}")
    document = read_markdown(tmp_path / "a.md", "github")
    splitter = make_splitter(60, max_tokens=80)
    for each in divide(document, splitter):
        assert splitter.count(heading_prefix({"title": document.title, "headings": each.headings}) + each.text) <= 78


@pytest.mark.parametrize(
    ("metadata", "prefix"),
    [
        ({}, ""),
        ({"title": "A", "headings": []}, "A\n"),
        ({"title": "A", "headings": ["A", "B"]}, "A > B\n"),
        ({"title": "T", "headings": ["A", "B"], "table": "a | b"}, "T > A > B\na | b\n"),
        ({"title": "T" * 400, "headings": []}, "T" * PREFIX_CHARACTERS + "\n"),
    ],
)
def test_the_path_of_headings_is_embedded_before_a_text(metadata: dict[str, object], prefix: str) -> None:
    texts = PrefixedTexts(["x", "y"], [json.dumps(metadata), "{}"], ["*x*", ""])
    assert heading_prefix(metadata) == prefix
    assert (list(texts), len(texts)) == ([f"{prefix}*x*", "y"], 2)


@given(pieces=st.lists(FLOW, max_size=4))
@in_one_folder
def test_all_words_of_pages_are_found_and_none_glued(pieces: list[str], make_splitter: Callable[..., Splitter]) -> None:
    numbers = count()
    page = re.sub("W", lambda _: f"w{next(numbers)}", "<hr>".join(pieces))
    words = [f"w{number}" for number in range(next(numbers))]
    document = read_html_text(page, Path("page.html"))
    (part,) = document.parts
    assert [word for word in part.text.split() if word not in ("-", "|")] == words
    divided = list(divide(document, make_splitter(TOKENS)))
    found = {word for each in divided for text in (each.text, *each.headings) for word in text.split()}
    assert found >= set(words)


def test_beside_a_path_of_headings_that_leaves_no_room_a_passage_has_half_of_what_the_model_reads(
    make_splitter: Callable[..., Splitter],
) -> None:
    splitter, text = make_splitter(400, max_tokens=100), "a " * 300
    alone, *_ = splitter.divide(text, [Block(0, len(text))], "")
    beside, *_ = splitter.divide(text, [Block(0, len(text))], "a " * 100)
    assert splitter.count(text[: beside.end]) == splitter.count(text[: alone.end]) // 2


def test_rows_after_a_long_header_have_half_of_a_passage_and_a_token_at_least(
    make_splitter: Callable[..., Splitter],
) -> None:
    text = " ".join("a" * 12)
    table = Block(0, len(text), (Block(0, len(text)),), "h " * 7)
    found = [span[:3] for span in make_splitter(9).divide(text, [table], "")]
    assert found == [(0, 15, ""), (16, 23, "")]  # pieces of 4 tokens
    table = Block(0, 5, (Block(0, 3), Block(4, 5)), "h h")
    found = [span[:3] for span in make_splitter(1).divide(text, [table], "")]
    assert found == [(0, 1, ""), (2, 3, ""), (4, 5, "h h")]


def test_a_table_that_fits_in_a_passage_is_not_divided(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    table = "\n".join(["| a | b |", "| - | - |", *("| c | d |" for _ in range(4))])
    (tmp_path / "page.md").write_text(f"{'e ' * 15}\n\n{table}\n")
    first, second = divide(read_markdown(tmp_path / "page.md", "github"), make_splitter(32))
    assert (first.text, second.text) == (" ".join("e" * 15), "\n".join(["a | b", *["c | d"] * 4]))
