"""What an agent gets of documents by headings: whole sections, several at once, and what is below a heading."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch import index
from semsearch.app.mcp.fetching import FetchArguments, fetch
from semsearch.app.settings import ApiKey, Settings, hash_key
from semsearch.engine.bundle import TOKENIZER, Manifest
from semsearch.engine.loading import LoadedBundle, load, require_texts
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.documents.passages import Splitter
from semsearch.indexing.documents.reading import DocumentOptions, Reading, read_document
from semsearch.indexing.options import gather, new_options
from semsearch.search.query import SearchError
from tests.app.mcp.test_messages import call, content_of, tools_of
from tests.world import write_bundle

NOTES = """# Release notes

## 0.121.0 (2025-11-03)

### Features

- The baker sold forty apples at the market.

### Fixes

- The night nurse lost a silver key in the snow.

## 0.120.4 (2025-10-30)

### Fixes

- An old sailor missed the last ferry of the year.
"""
FEATURES, FIXES = "- The baker sold forty apples at the market.", "- The night nurse lost a silver key in the snow."
SECTION = f"0.121.0 (2025-11-03)\n\n### Features\n\n{FEATURES}\n\n### Fixes\n\n{FIXES}"
TWICE = """# Guide

## Example

The first goose.

### Use it

In the snow.

## Example

### Use it

At the market.
"""
# the description of f goes on after the one below it, and so does the page
GOES_ON = (
    '<h1 id="m">Module</h1><dl><dt id="f">f()</dt><dd><p>Opens a door.</p><dl><dt id="g">g()</dt>'
    "<dd>Paints it.</dd></dl><p>Then it ends.</p></dd></dl><p>After both.</p>"
)
DOCUMENTS = {"release-notes.md": NOTES, "guide.md": TWICE, "module.html": GOES_ON}


def write_documents(
    folder: Path,
    documents: Mapping[str, str],
    splitter: Splitter,
    fields: Callable[[str], dict[str, Any]] = lambda text: {},
) -> Path:
    """Write a bundle of these documents; fields returns more metadata of a passage, by its text."""
    folder.mkdir()
    reading = Reading(splitter, gather(DocumentOptions, new_options(index, {"anchors": "github"})))
    rows = []
    for name in sorted(documents):
        (folder / name).write_text(documents[name], encoding="utf-8")
        rows += read_document(folder, reading, folder / name).rows
    metadata = [json.dumps(json.loads(row.metadata) | fields(row.text)) for row in rows]
    columns = {"path": "string", "title": "string", "headings": "list", "passage": "number"}
    columns |= dict.fromkeys(fields(""), "string")
    corpus = Corpus(
        [row.text for row in rows], [row.id for row in rows], metadata, columns=columns, heading_prefix=True
    )
    return write_bundle(folder / "bundle", corpus)


@pytest.fixture(scope="module")
def make_splitter(bundle: Path, manifest: Manifest) -> Callable[[int], Splitter]:
    model = replace(manifest.model, max_tokens=500)
    return lambda tokens: Splitter(read_tokenizer(bundle / TOKENIZER), model, tokens, 0)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, make_splitter: Callable[[int], Splitter]) -> Path:
    return write_documents(tmp_path_factory.mktemp("sections") / "docs", DOCUMENTS, make_splitter(40))


@pytest.fixture(scope="module")
def documents(written: Path) -> LoadedBundle:
    return require_texts(load(written))


def text_of(bundle: LoadedBundle, id: str) -> str:
    text: str = fetch(bundle, FetchArguments(id=id))["text"]
    return text


def test_a_section_has_the_sections_below_it_with_their_headings(documents: LoadedBundle) -> None:
    found = fetch(documents, FetchArguments(id="release-notes.md#01210-2025-11-03"))
    assert (found["text"], found["title"], "cut" in found) == (SECTION, "0.121.0 (2025-11-03)", False)
    assert found["metadata"]["headings"] == ["Release notes", "0.121.0 (2025-11-03)"]
    assert text_of(documents, "release-notes.md#features") == FEATURES
    older = "## 0.120.4 (2025-10-30)\n\n### Fixes\n\n- An old sailor missed the last ferry of the year."
    whole = f"Release notes\n\n## {SECTION}\n\n{older}"
    assert text_of(documents, "release-notes.md#release-notes") == text_of(documents, "release-notes.md") == whole


def test_sections_of_equal_headings_are_told_apart(documents: LoadedBundle) -> None:
    assert text_of(documents, "guide.md#example") == "The first goose.\n\n### Use it\n\nIn the snow."
    assert text_of(documents, "guide.md#example-1") == "Example\n\n### Use it\n\nAt the market."
    first, second = (text_of(documents, f"guide.md#{anchor}") for anchor in ("example", "example-1"))
    assert text_of(documents, "guide.md") == f"Guide\n\n## Example\n\n{first}\n\n## {second}"


def test_a_section_that_follows_one_of_equal_headings_has_its_heading_again(
    tmp_path: Path, make_splitter: Callable[[int], Splitter]
) -> None:
    page = "# A\n\n## B\n\nThe goose.\n\n## B\n\nThe baker.\n"
    bundle = require_texts(load(write_documents(tmp_path / "docs", {"a.md": page}, make_splitter(40))))
    assert text_of(bundle, "a.md") == page.removeprefix("# ").strip()


def test_a_section_that_goes_on_after_one_below_it_says_so(documents: LoadedBundle) -> None:
    f = "Opens a door.\n\n### g()\n\nPaints it.\n\n## f()\n\nThen it ends."
    assert text_of(documents, "module.html#f") == f
    assert text_of(documents, "module.html#g") == "Paints it."
    assert text_of(documents, "module.html#m") == f"Module\n\n## f()\n\n{f}\n\n# Module\n\nAfter both."


def test_a_page_of_a_pdf_has_no_other_pages(tmp_path: Path) -> None:
    metadata = [
        json.dumps({"path": "a.pdf", "passage": n, "page": n + 1, "headings": ["A", "B"][: n + 1]}) for n in range(3)
    ]
    columns = {"path": "string", "passage": "number", "page": "number", "headings": "list"}
    ids = [f"a.pdf#page={number}:1" for number in (1, 2, 3)]
    corpus = Corpus(["one", "two", "three"], ids, metadata, columns=columns, heading_prefix=True)
    bundle = require_texts(load(write_bundle(tmp_path / "bundle", corpus)))
    assert text_of(bundle, "a.pdf#page=1") == "one"
    assert text_of(bundle, "a.pdf") == "one\n\n## B\n\ntwo\n\nthree"


@pytest.mark.parametrize("above", [0, 1])
def test_a_section_that_is_one_character_too_long_loses_its_last_passage(
    tmp_path: Path, make_splitter: Callable[[int], Splitter], above: int
) -> None:
    notes = NOTES.replace(FEATURES, f"- {'goose ' * 30}{'x' * above}")
    bundle = require_texts(load(write_documents(tmp_path / "docs", {"release-notes.md": notes}, make_splitter(40))))
    whole = text_of(bundle, "release-notes.md#01210-2025-11-03")
    found = fetch(bundle, FetchArguments(id="release-notes.md#01210-2025-11-03", max_characters=len(whole) - above))
    if not above:
        assert found["text"] == whole
        assert "cut" not in found
    else:
        shown = whole.removesuffix(f"\n\n### Fixes\n\n{FIXES}")
        assert found["text"] == shown != whole
        assert found["cut"] == (
            f"{len(shown)} of {len(whole)} characters; raise max_characters, or fetch release-notes.md#fixes:1 with "
            "`after` for what follows"
        )


@pytest.mark.parametrize(
    ("most", "lengths"),
    [
        (200, [200 - 1 - 80, 80, 1]),  # b.md is cut after its first passage, because half of 199 is less than 141
        (300, [300 - 1 - 141, 141, 1]),
        (501, [179, 141, 1]),  # texts of two passages
        (502, [179 + 2 + 179, 141, 1]),
    ],
)
def test_the_longest_of_several_texts_gets_what_the_others_leave(
    tmp_path: Path, make_splitter: Callable[[int], Splitter], most: int, lengths: list[int]
) -> None:
    pages = {"a.md": "goose " * 60, "b.md": f"{'a' * 80}\n\n{'b ' * 30}", "c.md": "c"}
    bundle = require_texts(load(write_documents(tmp_path / "docs", pages, make_splitter(30))))
    found = fetch(bundle, FetchArguments(ids=[*pages], max_characters=most))["results"]
    assert [len(each["text"]) for each in found] == lengths


def test_a_passage_that_is_too_long_is_what_is_fetched_next(
    tmp_path: Path, make_splitter: Callable[[int], Splitter]
) -> None:
    page = f"# A\n\n{'goose ' * 50}\n\n{'baker ' * 50}"
    bundle = require_texts(load(write_documents(tmp_path / "docs", {"a.md": page}, make_splitter(50))))
    for most, following in ((200, "a.md#a:1"), (298, "a.md#a:1"), (299, "a.md#a:2")):
        found = fetch(bundle, FetchArguments(id="a.md#a", max_characters=most))
        assert found["text"] == page.removeprefix("# A\n\n")[:most]
        assert f"or fetch {following} with" in found["cut"]


@pytest.mark.promise("FetchArguments.ids")
def test_several_ids_share_one_length_and_an_unknown_one_says_so(documents: LoadedBundle) -> None:
    ids = ["release-notes.md#01210-2025-11-03", "goose.md", "guide.md#example", "release-notes.md#older", "guide.md"]
    found = fetch(documents, FetchArguments(ids=ids))
    assert found.keys() == {"results"}
    for id, each in zip(ids, found["results"], strict=True):
        if "error" in each:
            with pytest.raises(SearchError) as error:
                fetch(documents, FetchArguments(id=id))
            assert each == {"id": id, "error": str(error.value)}
        else:
            assert each == fetch(documents, FetchArguments(id=id))
    assert [each["id"] for each in found["results"] if "error" in each] == ["goose.md", "release-notes.md#older"]
    whole = sum(len(each.get("text", "")) for each in found["results"])
    for most in (200, whole - 1, whole):
        texts = fetch(documents, FetchArguments(ids=ids, max_characters=most))["results"]
        assert sum(len(each.get("text", "")) for each in texts) <= most
        assert any("cut" in each for each in texts) is (most < whole)
        assert texts[2]["text"] == text_of(documents, ids[2])  # a short one is whole


def test_around_several_passages_are_those_around_each(documents: LoadedBundle) -> None:
    asked = FetchArguments(ids=["guide.md#use-it:1", "release-notes.md#features"], before=1, after=1)
    found = fetch(documents, asked)["results"]
    assert [[one["id"] for one in each["before"] + each["after"]] for each in found] == [
        ["guide.md#example:1", "guide.md#example-1:1"],
        ["release-notes.md#01210-2025-11-03:1", "release-notes.md#fixes:1"],
    ]


def test_texts_that_are_in_no_document_say_so_among_several(tmp_path: Path) -> None:
    bundle = require_texts(load(write_bundle(tmp_path / "bundle", Corpus(["one", "two"], ["1", "2"], ["{}", "{}"]))))
    assert [each["text"] for each in fetch(bundle, FetchArguments(ids=["2", "1"]))["results"]] == ["two", "one"]
    found = fetch(bundle, FetchArguments(ids=["2"], after=1))["results"]
    expected = "expected 0 for a text that is in no document, such as a row of a table"
    assert found == [{"id": "2", "error": f"after: found 1, {expected}; leave it out"}]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "expected either id or ids"),
        ({"ids": []}, "expected either id or ids"),
        ({"id": "a", "ids": ["a"]}, "expected either id or ids"),
        ({"ids": ["a"] * 21}, "at most 20 items"),
        ({"ids": ["a", " "]}, "expected words"),
        ({"ids": ["a"] * 20}, None),
        ({"id": "a", "ids": []}, None),
    ],
)
def test_either_an_id_or_up_to_twenty_are_fetched(fields: dict[str, Any], error: str | None) -> None:
    if error is None:
        FetchArguments(**fields)
    else:
        with pytest.raises(ValueError, match=error):
            FetchArguments(**fields)


def test_hidden_passages_are_neither_returned_nor_counted(
    tmp_path: Path, make_splitter: Callable[[int], Splitter]
) -> None:
    first, second, last = (f"{letter}{' goose' * 15}" for letter in "abc")
    notes = NOTES.replace(FEATURES, f"{first}\n\n{second}\n\n{last}")
    hidden = ("0.121.0 (2025-11-03)", second)  # the first passage of the section, and one in its middle
    bundle = write_documents(
        tmp_path / "docs",
        {"release-notes.md": notes},
        make_splitter(20),
        fields=lambda text: {"seen": "no" if text in hidden else "yes"},
    )
    whole = require_texts(load(bundle))
    view = whole.view({"seen": "yes"})
    section = "release-notes.md#features"
    assert [row.id for row in map(whole.passages.__getitem__, range(whole.rows)) if row.text in hidden] == [
        "release-notes.md#01210-2025-11-03:1",
        f"{section}:2",
    ]
    assert text_of(view, section) == f"{first}\n\n{last}"
    ids = [f"{section}:2", section, "release-notes.md"]
    found = fetch(view, FetchArguments(ids=ids, max_characters=200))["results"]
    unknown = "which 'release-notes.md' does not have; fetch 'release-notes.md', or search for a section"
    assert found[0] == {"id": ids[0], "error": f"id: found '{ids[0]}', {unknown}"}
    following = f"raise max_characters, or fetch {section}:3 with `after` for what follows"
    assert (found[1]["text"], found[1]["cut"]) == (first, f"91 of {91 + 2 + 91} characters; {following}")
    document = text_of(view, "release-notes.md")
    assert found[2]["cut"].startswith(f"{len(found[2]['text'])} of {len(document)} characters; ")
    assert document == text_of(whole, "release-notes.md").replace(f"{second}\n\n", "")


def test_a_section_without_its_first_passage_is_fetched(
    tmp_path: Path, make_splitter: Callable[[int], Splitter]
) -> None:
    texts = ("The goose slept in the snow.", "The baker sold forty apples.")
    bundle = write_documents(
        tmp_path / "docs",
        {"a.md": "# A\n\n" + "\n\n".join(texts)},
        make_splitter(8),
        fields=lambda text: {"seen": "no" if text == texts[0] else "yes"},
    )
    view = require_texts(load(bundle)).view({"seen": "yes"})
    assert (view.find("a.md#a:1"), text_of(view, "a.md#a")) == (None, texts[1])


def test_a_heading_alone_is_found_with_what_is_below_it(connect: Callable[..., httpx.Client], written: Path) -> None:
    client = connect(bundle=written)
    below = SECTION.partition("\n\n")[2]
    found = content_of(call(client, "search", query="0.121.0 (2025-11-03)"))["results"]
    assert found[0]["id"] == "release-notes.md#01210-2025-11-03"
    assert found[0]["snippet"] == f"0.121.0 (2025-11-03)\n\n{below}"
    own = tools_of(client)[0]["name"]
    for more in ({}, {"group_by": "path"}):
        results = content_of(call(client, own, text="0.121.0 (2025-11-03)", num_results=20, **more))["results"]
        hits = {each["id"]: each for one in results for each in (one, *one.get("other_passages", ()))}
        assert hits["release-notes.md#01210-2025-11-03:1"]["below"] == below
        assert "below" not in hits.get("release-notes.md#features:1", {})


@pytest.mark.parametrize("include", [[], ["text"], ["metadata"], ["text", "metadata"]])
def test_a_heading_has_what_is_below_it_whichever_fields_of_it_are_shown(
    connect: Callable[..., httpx.Client], written: Path, include: list[str]
) -> None:
    client = connect(bundle=written)
    asked: dict[str, Any] = {"text": "0.121.0 (2025-11-03)", "num_results": 20, "include": include}
    hits = {each["id"]: each for each in content_of(call(client, tools_of(client)[0]["name"], **asked))["results"]}
    assert hits["release-notes.md#01210-2025-11-03:1"]["below"] == SECTION.partition("\n\n")[2]
    assert "below" not in hits["release-notes.md#features:1"]


def test_further_passages_of_a_group_show_what_is_below_them(
    connect: Callable[..., httpx.Client], written: Path
) -> None:
    client = connect(bundle=written)
    asked: dict[str, Any] = {"text": "The baker sold forty apples", "group_by": "path", "group_size": 20}
    best, *_ = content_of(call(client, tools_of(client)[0]["name"], **asked))["results"]
    assert best["id"] == "release-notes.md#features:1"
    below = {each["text"]: each["below"] for each in best["other_passages"] if "below" in each}
    assert below["0.121.0 (2025-11-03)"] == SECTION.partition("\n\n")[2]


@pytest.mark.parametrize("above", [0, 1])
def test_what_is_below_a_heading_is_shown_up_to_240_characters(
    connect: Callable[..., httpx.Client], tmp_path: Path, make_splitter: Callable[[int], Splitter], above: int
) -> None:
    text = "goose" + "x" * (240 - len("### Sub\n\n") - 5 + above)
    page = f"# Page\n\n## Alone\n\n### Sub\n\n{text}\n\n## Empty\n"
    client = connect(bundle=write_documents(tmp_path / "docs", {"a.md": page}, make_splitter(400)))
    found = content_of(call(client, tools_of(client)[0]["name"], text="alone", num_results=20))["results"]
    below = {each["text"]: each.get("below") for each in found}
    assert below["Alone"] == "### Sub\n\n" + (f"{text[:-2]}…" if above else text)
    assert (below["Empty"], below[text]) == (None, None)  # nothing is below them


# three versions of one page, of which one has no copy in another, and a page of its own
PAGE = "# Page\n\n## Doors\n\nThe sailor opened the door.\n\nThe sailor closed it.\n\n## Walls\n\nThe baker painted.\n"
COPIES = {
    "next-page.md": PAGE,
    "old-page.md": PAGE.replace("closed it", "broke it"),
    "page.md": PAGE,
    "sea.md": "# Sea\n\nThe sailor missed the ferry.\n",
}


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory, make_splitter: Callable[[int], Splitter]) -> Path:
    return write_documents(
        tmp_path_factory.mktemp("copies") / "docs",
        COPIES,
        make_splitter(8),
        fields=lambda text: {"told": "1" if "door" in text else "2"},
    )


def own_search(client: httpx.Client, **arguments: Any) -> list[dict[str, Any]]:
    """Return the results of the tool that is named after the corpus."""
    results: list[dict[str, Any]] = content_of(call(client, tools_of(client)[0]["name"], **arguments))["results"]
    return results


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
def test_copies_of_a_passage_are_one_result_and_as_many_texts_are_returned_as_asked(
    connect: Callable[..., httpx.Client], copies: Path, mode: str
) -> None:
    client = connect(bundle=copies)
    query = {"text": "the sailor opened the door", "mode": mode}
    every = client.post("/similar", json=query | {"num_results": 100}).json()["results"]
    # the second passage of Doors differs in one page, whose section is no copy then
    expected: dict[object, dict[str, Any]] = {}
    for each in every:
        is_own = each["metadata"]["path"] == "old-page.md" and each["metadata"]["headings"][-1] == "Doors"
        first = expected.setdefault((each["text"], is_own), each)
        if len(each["metadata"]["path"]) < len(first["metadata"]["path"]):
            expected[each["text"], is_own] = each
    assert len(every) > len(expected) > 4
    for count in (1, 3, len(expected), 100):
        found = own_search(client, num_results=count, **query)
        kept = [{name: each[name] for name in each if name not in ("also_in", "below")} for each in found]
        assert kept == [*expected.values()][:count]
        assert (
            own_search(client, num_results=count, offset=1, **query)
            == own_search(client, num_results=100, **query)[1 : count + 1]
        )


def places_of_copies(client: httpx.Client) -> dict[str, list[str]]:
    """Return the paths of the other documents that have the section of a result, by the id of the result."""
    results = own_search(client, text="sailor", num_results=100)
    return {each["id"]: [place["path"] for place in each.get("also_in", ())] for each in results}


def test_a_passage_names_the_other_documents_that_have_its_section(
    connect: Callable[..., httpx.Client], copies: Path
) -> None:
    client = connect(bundle=copies)
    found = places_of_copies(client)
    assert found["page.md#doors:2"] == ["next-page.md"]
    assert found["page.md#walls:1"] == ["next-page.md", "old-page.md"]
    assert found["old-page.md#doors:2"] == []
    assert found["sea.md#sea:1"] == []


def test_copies_that_a_key_cannot_read_are_neither_results_nor_named(
    connect: Callable[..., httpx.Client], copies: Path
) -> None:
    key = ApiKey("some", hash_key("a" * 16), {"path": {"$in": ["next-page.md", "old-page.md"]}})
    client = connect(bundle=copies, settings=Settings(api_keys=(key,)))
    client.headers["authorization"] = f"Bearer {'a' * 16}"
    found = places_of_copies(client)
    assert found["old-page.md#walls:1"] == ["next-page.md"]
    assert found["next-page.md#doors:2"] == []
    assert not [id for id in found if id.startswith(("page.md", "sea.md"))]


@pytest.mark.parametrize(
    "more", [{"sort": {"path": "asc"}}, {"group_by": "told", "group_size": 20}], ids=["sorted", "groups"]
)
def test_sorted_results_and_groups_of_other_columns_have_all_copies(
    connect: Callable[..., httpx.Client], copies: Path, more: dict[str, Any]
) -> None:
    client = connect(bundle=copies)
    query = {"text": "the sailor", "num_results": 100} | more
    found = [hit for each in own_search(client, **query) for hit in (each, *each.get("other_passages", ()))]
    results = client.post("/similar", json=query).json()["results"]
    assert [each["id"] for each in found] == [
        hit["id"] for each in results for hit in (each, *each.get("other_passages", ()))
    ]
    assert len({each["text"] for each in found}) < len(found)
