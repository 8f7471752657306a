"""What the tool `fetch` returns: how much of a long document, and how a text without a title is called."""

import json
from pathlib import Path
from typing import Any

import pytest

from semsearch.app.mcp.fetching import FetchArguments, fetch, reference
from semsearch.engine.loading import LoadedBundle, load, require_texts
from semsearch.indexing.corpus import Corpus
from semsearch.search.query import SearchError
from tests.world import write_bundle

TEXTS = [letter * 100 for letter in "abcde"]
WHOLE = "\n\n".join(TEXTS)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> LoadedBundle:
    """Five passages of a section, each of a hundred characters, which take two more each."""
    metadata = [json.dumps({"path": "a.md", "passage": number, "headings": ["B"]}) for number in range(5)]
    ids = [f"a.md#b:{number}" for number in range(1, 6)]
    columns = {"path": "string", "passage": "number", "headings": "list"}
    corpus = Corpus(TEXTS, ids, metadata, columns=columns, heading_prefix=True)
    return require_texts(load(write_bundle(tmp_path_factory.mktemp("document") / "bundle", corpus)))


@pytest.mark.parametrize(
    ("id", "most", "expected"),
    [
        ("a.md#b:3", 304, "\n\n".join(TEXTS[1:4])),
        ("a.md#b:3", 303, TEXTS[2]),
        ("a.md#b:1", 202, "\n\n".join(TEXTS[:2])),
        ("a.md#b:1", 201, TEXTS[0]),
        ("a.md#b:1", 406, "\n\n".join(TEXTS[:4])),
        ("a.md#b:5", 304, "\n\n".join(TEXTS[2:])),
        ("a.md#b:5", 303, "\n\n".join(TEXTS[3:])),
        ("a.md#b", 507, "\n\n".join(TEXTS[:4])),
        ("a.md#b", 508, WHOLE),
        ("a.md", 508, WHOLE),
    ],
)
def test_of_a_long_document_the_passages_around_the_one_are_returned(
    document: LoadedBundle, id: str, most: int, expected: str
) -> None:
    found = fetch(document, FetchArguments(id=id, max_characters=most))
    assert found["text"] == expected
    following = TEXTS.index(expected[-100:]) + 2  # ids count from 1
    rest = "one section or passage by its id" if following == 6 else f"a.md#b:{following} with `after` for what follows"
    cut = f"{len(expected):,} of 508 characters; raise max_characters, or fetch {rest}"
    assert found.get("cut") == (None if expected == WHOLE else cut)


def test_what_is_returned_of_a_passage_a_section_and_a_document(document: LoadedBundle) -> None:
    of_all: dict[str, Any] = {"path": "a.md", "headings": ["B"]}
    reference = {"title": "B", "url": "", "text": WHOLE}
    for id, more in (("a.md#b:2", {"passage": 1}), ("a.md#b", {}), ("a.md", {})):
        assert fetch(document, FetchArguments(id=id)) == {"id": id, **reference, "metadata": of_all | more}
    around = fetch(document, FetchArguments(id="a.md#b:2", before=1))
    before = [{"id": "a.md#b:1", "text": TEXTS[0]}]
    assert (around["before"], around["text"], around["after"]) == (before, TEXTS[1], [])
    after = fetch(document, FetchArguments(id="a.md#b:2", after=2))["after"]
    assert [each["id"] for each in after] == ["a.md#b:3", "a.md#b:4"]
    assert fetch(document, FetchArguments(id="a.md#b", before=1, after=1))["text"] == WHOLE


def test_what_is_around_a_section_is_before_its_first_and_after_its_last_passage(tmp_path: Path) -> None:
    ids = ["a.md#a:1", "a.md#b:1", "a.md#b:2", "a.md#b:3", "a.md#c:1", "a.md#c:2"]
    metadata = [json.dumps({"path": "a.md", "passage": number}) for number in range(6)]
    columns = {"path": "string", "passage": "number"}
    corpus = Corpus(ids, ids, metadata, columns=columns, heading_prefix=True)
    bundle = require_texts(load(write_bundle(tmp_path / "bundle", corpus)))
    found = fetch(bundle, FetchArguments(id="a.md#b", before=2, after=1))
    assert found["text"] == "\n\n".join(ids[1:4])
    assert [[each["id"] for each in found[side]] for side in ("before", "after")] == [ids[:1], ids[4:5]]


@pytest.mark.parametrize("id", ["b.md#b", "b.md", "#b", "a.md:1"])
def test_an_id_of_no_document_names_none_to_fetch(document: LoadedBundle, id: str) -> None:
    with pytest.raises(SearchError, match=f"^id: found '{id}', expected the id of a result; search for one$"):
        fetch(document, FetchArguments(id=id))


def test_a_text_without_a_title_is_called_by_its_beginning(tmp_path: Path) -> None:
    texts = ["a  " + "b" * 78, "a\n" + "b" * 79, "c", "d", "e:1"]
    metadata = ["{}", "{}", '{"url": 7, "title": 8, "headings": ["x"]}', '{"headings": ["x", "y"]}', "{}"]
    columns = {"url": "number", "title": "number", "headings": "list"}
    corpus = Corpus(texts, ["1", "2", "3", "4", "5#x:1"], metadata, columns=columns)
    bundle = require_texts(load(write_bundle(tmp_path / "bundle", corpus)))
    found = [fetch(bundle, FetchArguments(id=id)) for id in ("1", "2", "3", "4")]
    assert [each["title"] for each in found] == ["a " + "b" * 78, "a " + "b" * 77 + "…", "8", "y"]
    assert found[2]["url"] == ""
    with pytest.raises(SearchError, match=r"^id: found '5#x', expected the id of a result"):
        fetch(bundle, FetchArguments(id="5#x"))  # these ids are not those of sections


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [
        ({"max_characters": 200}, True),
        ({"max_characters": 199}, False),
        ({"max_characters": 1_000_000}, True),
        ({"max_characters": 1_000_001}, False),
        ({"before": 0, "after": 10}, True),
        ({"before": 10, "after": 0}, True),
        ({"before": 11}, False),
        ({"before": -1}, False),
    ],
)
def test_the_limits_of_what_is_fetched(fields: dict[str, Any], is_valid: bool) -> None:
    if is_valid:
        assert FetchArguments(id="a", **fields).model_dump(include={*fields}) == fields
    else:
        with pytest.raises(ValueError, match="Input should be"):
            FetchArguments(id="a", **fields)


def test_the_title_is_that_of_the_page_and_of_a_section_its_heading() -> None:
    metadata = {"title": "Page", "headings": ["A", "B"], "url": "/a"}
    assert reference("a", "text", metadata) == {"id": "a", "title": "Page", "url": "/a"}
    assert reference("a", "text", metadata, is_section=True)["title"] == "B"
    assert reference("a", "text", {"headings": ["A", "B"], "url": 1}) == {"id": "a", "title": "B", "url": ""}
