"""Search: the same objects from a folder and from a URL."""

import inspect
import json
import os
import pickle
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from threading import Event
from time import gmtime, strftime
from types import SimpleNamespace
from typing import Any, get_type_hints
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from semsearch import ColumnSummary, Hit, Hits, Search, index
from semsearch.app.app import App
from semsearch.app.settings import ApiKey, Settings, hash_key
from semsearch.client import ServerError
from semsearch.client.columns import summarize_column
from semsearch.client.folder import LocalBundle, open_folder
from semsearch.client.hits import LONGEST_CELL
from semsearch.client.requests import (
    Contents,
    as_written,
    checked_id,
    checked_texts,
    count_around,
    json_value,
    search_body,
    with_ids_as_text,
)
from semsearch.client.search import SearchOptions
from semsearch.engine.bundle import MANIFEST, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import load
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.corpus import Corpus
from semsearch.retrievers.filters import both, untranslated
from semsearch.search.query import Query
from semsearch.search.reply_types import FoundPassageReply, GroupResult
from semsearch.search.request import SimilarRequest
from tests.browser.page.conftest import serving
from tests.bundle_files import damage
from tests.project import needs_linux
from tests.stand_ins.http import Handler, listening
from tests.world import STORY_COLUMNS, write_bundle

KEY = "0123456789abcdef"
CLOSED = Settings(api_keys=(ApiKey("test", hash_key(KEY)),))


@pytest.fixture(scope="module")
def closed(make_app: Callable[..., App]) -> Iterator[str]:
    """The address of a server with an API key."""
    with serving(make_app(settings=CLOSED)) as address:
        yield address


@pytest.fixture(scope="module")
def remote(closed: str) -> Search:
    return Search(closed, key=KEY)


@pytest.fixture(scope="module")
def local(bundle: Path) -> Search:
    return Search(bundle)


def test_a_folder_and_a_url_return_the_same(local: Search, remote: Search) -> None:
    fields: dict[str, Any] = {"filter": {"chapter": {"$lt": 19}}, "facets": ["places"], "top_k": 3, "highlights": True}
    fields["boost"] = {"chapter": {"log": True, "weight": 0.1}}
    found, expected = (each.search("the baker", **fields) for each in (local, remote))
    assert found == expected
    assert (len(found), found.total, found.facets) == (3, expected.total, expected.facets)
    assert found[0].text.startswith("The baker")
    assert found[0].snippet is not None
    assert local.similar_to("story-007", top_k=2) == remote.similar_to("story-007", top_k=2)
    texts = ["the baker", "an angry goose"]
    np.testing.assert_array_equal(local.embed(texts, "query"), remote.embed(texts, "query"))


def test_facets_of_results_count_the_best_hundred_texts(local: Search) -> None:
    page = local.search("the baker", mode="semantic", facets=["who"], facets_of="results", top_k=1, offset=2)
    best = local.search("the baker", mode="semantic", top_k=100)
    counts = Counter(hit.metadata["who"] for hit in best if "who" in hit.metadata)
    assert (page.total, {each["value"]: each["count"] for each in page.facets["who"]}) == (100, counts)


async def test_groups_have_their_other_texts(local: Search) -> None:
    hits = await local.asearch("an angry goose", group_by="who", top_k=2)
    assert hits[0].group == "an angry goose"
    assert {other.metadata["who"] for other in hits[0].other_passages} == {"an angry goose"}


@pytest.fixture(params=["local", "remote"])
def either(request: pytest.FixtureRequest) -> Search:
    """A Search of a folder, and one of a server."""
    search: Search = request.getfixturevalue(request.param)
    return search


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"filter": {"year": 1}}, r"filter: expected the name of a column, .*, found 'year'; the columns are: .*"),
        ({"filter": {"told": {"$lt": b"x"}}}, r"filter\.told\.\$lt: found bytes .*"),
        ({"filter": {"chapter": float("nan")}}, r"filter\.chapter: found nan, expected a finite number"),
        ({"top_k": 0}, "top_k: input should be greater than or equal to 1, found 0"),
        ({"rerank": 0}, "rerank: input should be greater than or equal to 1, found 0"),
        ({"id": "nobody", "text": None}, "id: .*nobody.*"),
        ({"text": "a " * 40_000}, "text: a text of 80000 characters, at most 65536; split it"),
    ],
)
def test_an_argument_that_cannot_be_used_is_a_value_error(
    either: Search, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        either.search(**{"text": "goose"} | arguments)


@pytest.mark.parametrize(
    ("value", "same"),
    [
        ({"chapter": {"$lt": np.int64(19)}}, {"chapter": {"$lt": 19}}),
        ({"chapter": {"$lt": np.float32(19.5)}}, {"chapter": {"$lt": 19.5}}),
        ({"chapter": {"$in": {3, 5}}}, {"chapter": {"$in": [3, 5]}}),
        ({"chapter": {"$in": np.array([3, 5])}}, {"chapter": {"$in": [3, 5]}}),
        ({"chapter": Decimal("3.0")}, {"chapter": 3}),
        ({"chapter": {"$gt": Decimal("2.5")}}, {"chapter": {"$gt": 2.5}}),
        ({"told": {"$lt": date(2025, 6, 1)}}, {"told": {"$lt": "2025-06-01"}}),
        ({"told": {"$lt": datetime(2025, 6, 1, 12, tzinfo=UTC)}}, {"told": {"$lt": "2025-06-01T12:00:00+00:00"}}),
        ({"told": {"$lt": np.datetime64("2025-06-01T00:00:00.000000000")}}, {"told": {"$lt": "2025-06-01"}}),
        ({"true": np.bool_(True)}, {"true": True}),
    ],
    ids=str,
)
def test_values_of_filters_are_those_that_data_frames_hold(
    local: Search, value: dict[str, Any], same: dict[str, Any]
) -> None:
    most: Any = np.int64(100)
    found = local.search(filter=value, top_k=most, facets=("who",))
    assert found == local.search(filter=same, top_k=100)
    assert len(found) > 0
    assert found.total == local.search(filter=same, facets=["who"]).total


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.datetime64("2025-06-01T00:00:00.000000001"), "a time in whole microseconds"),
        (pd.Timestamp("2025-06-01T00:00:00.000000001"), "a time in whole microseconds"),
        (np.datetime64("NaT"), "a time in whole microseconds"),
        (pd.NaT, "a time in whole microseconds"),
        (Decimal("0.12345678901234567890"), "a number that 64 bits hold"),
        (Decimal("NaN"), "a finite number"),
    ],
    ids=repr,
)
def test_a_value_of_a_filter_that_would_lose_digits_is_refused(local: Search, value: object, expected: str) -> None:
    with pytest.raises(ValueError, match=rf"^filter\.told: found .*, expected {expected}"):
        local.search(filter={"told": value})


def test_an_id_can_be_a_number(tmp_path: Path) -> None:
    corpus = Corpus(["a warm coat", "an angry goose"], ["0", "1"], ["{}"] * 2, columns={})
    search = Search(write_bundle(tmp_path / "bundle", corpus))
    assert search.similar_to(1, top_k=1) == search.similar_to("1", top_k=1)
    number: Any = np.int64(1)
    assert search.get(number) == search.get("1")
    number = np.float32(1)
    assert search.get(1.0) == search.get(number) == search.get("1")
    assert search.similar_to(1.0) == search.similar_to("1")
    for condition in (
        *({"id": 1}, {"id": {"$in": [1]}}, {"$or": [{"id": {"$in": {np.int64(1)}}}, {"id": 1}]}),
        *({"id": 1.0}, {"id": {"$in": pd.Series([1.0])}}),
    ):
        assert [hit.id for hit in search.search(filter=condition)] == ["1"]


def test_a_string_is_embedded_as_one_text(either: Search) -> None:
    embedding = either.embed("the baker")
    assert embedding.ndim == 1
    np.testing.assert_array_equal(either.embed(("the baker",)), [embedding])


def test_a_bundle_with_a_model_for_queries_alone_embeds_no_documents(bundle_copy: Path) -> None:
    manifest = read_manifest(bundle_copy)
    write_manifest(bundle_copy, replace(manifest, model=replace(manifest.model, documents="0123456789abcdef")))
    with Search(bundle_copy) as search:
        assert search.embed(["a goose"], "query").shape == (1, manifest.model.dim)
        with pytest.raises(ValueError, match="role: found document, expected query"):
            search.embed(["a goose"], "document")


@pytest.mark.parametrize(
    ("texts", "role", "message"),
    [
        (["the lion"], "passage", "role: found 'passage', expected 'query' or 'document', or None for no prompt"),
        ([], None, "texts: found .*, expected a text or a list with at least one"),
        (["a", ""], None, r"texts\.1: found '', expected words.*"),
        (["a", None], None, r"texts\.1: found None, expected words.*"),
        (["\ud800"], None, r"texts\.0: found half a surrogate pair.*"),
        (["a " * 70_000], None, r"texts\.0: a text of 140000 characters, at most 65536; split it"),
    ],
)
def test_texts_that_cannot_be_embedded_are_a_value_error(local: Search, texts: Any, role: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        local.embed(texts, role)


@pytest.mark.parametrize(
    "limits", [{"max_texts": 2}, {"max_tokens": 24}, {"max_body_bytes": 160}, {"max_reply_bytes": 1_600}], ids=str
)
def test_many_texts_are_embedded_in_requests_within_the_limits_of_a_server(
    local: Search, make_app: Callable[..., App], limits: dict[str, Any]
) -> None:
    texts = [f"the baker and {number} geese" for number in range(7)]
    with serving(make_app(settings=replace(Settings(), **limits))) as address, Search(address) as search:
        embeddings = search.embed(texts)
    np.testing.assert_array_equal(embeddings, local.embed(texts))


def test_a_wrong_key_is_an_error_of_the_server(closed: str) -> None:
    with pytest.raises(ServerError, match="API keys") as raised:
        Search(closed, key="f" * 16).search("goose")
    assert raised.value.status == 401


METADATA = {"score": 5, "score_metadata": 6, "id": "x", "brand": "North", "index": 7}
RESULT = {"index": 3, "id": "c-1", "score": 0.5, "text": "A warm <b>coat</b>", "metadata": METADATA}
REPLY: dict[str, Any] = {"results": [RESULT, {**RESULT, "id": "c-2", "metadata": {"brand": 1}}], "truncated": False}
REPLY |= {"facets": {"brand": [{"value": "North", "count": 2}]}, "total": 2}
EMPTY = Hits({"results": [], "truncated": False})
ALWAYS = ["id", "score", "text", "index"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_hits_become_a_table(library: str) -> None:
    frame = pytest.importorskip(library, reason=f"{library} is not installed with this project")
    table, empty = getattr(Hits(REPLY), f"to_{library}")(), getattr(EMPTY, f"to_{library}")()
    assert isinstance(table, frame.DataFrame)
    assert [*table.columns][:4] == [*empty.columns] == ALWAYS
    assert [*table["score"]] == [0.5, 0.5]
    assert table["score_metadata_metadata"][0] == 5  # the metadata's score; its score_metadata keeps its name
    assert table["score_metadata"][0] == 6
    assert ([*table["id"]], table["id_metadata"][0], table["index_metadata"][0]) == (["c-1", "c-2"], "x", 7)


MIXED: list[list[Any]] = [
    *([{"a": 1}, [1]], [1, "x"], [{"a": 1}, "x"], [[1], "x"], [True, 5], [None, [1], {"a": 1}], [[1], [[2]]]),
    *([1, 2.5, None], [{"a": 1}, {"b": "x"}], [[1], ["a"]], [["a"], []], [2**70, 1], ["a", None]),
]


@pytest.mark.parametrize("values", MIXED, ids=repr)
def test_both_tables_have_the_values_of_a_column_whatever_their_types_are(values: list[Any]) -> None:
    results = [{**RESULT, "metadata": {} if value is None else {"v": value}} for value in values]
    hits = Hits({"results": results, "truncated": False})
    types = {type(value) for value in values if value is not None}
    found = hits.to_polars()["v"]
    if len(types) > 1 and types != {int, float}:
        pandas = hits.to_pandas()["v"].where(lambda v: v.notna(), None)
        assert repr(found.to_list()) == repr(pandas.to_list()) == repr(values)
    assert len(found) == len(values)
    assert found.null_count() == values.count(None)


def test_hits_become_dicts_with_what_the_search_requested(local: Search) -> None:
    (first, *_) = local.search("an angry goose", group_by="who", highlights=True, top_k=2).to_dicts()
    assert [*first][:6] == [*ALWAYS, "group", "snippet"]
    assert (first["group"], first["who"]) == ("an angry goose", "an angry goose")
    assert [*local.search("goose", mode="semantic", top_k=1).to_dicts()[0]][:5] == [*ALWAYS, "chapter"]


def test_a_slice_of_hits_keeps_facets_and_total() -> None:
    hits = Hits(REPLY)
    part = hits[1:]
    assert isinstance(part, Hits)
    assert ([hit.id for hit in part], part.total, part.facets, len(hits)) == (["c-2"], 2, hits.facets, 2)
    assert isinstance(hits[0], Hit)
    assert pickle.loads(pickle.dumps(part)).total == 2


def test_a_notebook_displays_hits_as_a_table() -> None:
    shown = Hits(REPLY)._repr_html_()
    assert "<th>score_metadata_metadata</th>" in shown
    assert "<td>A warm &lt;b&gt;coat&lt;/b&gt;</td>" in shown
    assert EMPTY._repr_html_().count("<th>") == len(ALWAYS)


def test_a_notebook_marks_the_highlights_of_texts_and_snippets() -> None:
    text = "A <warm> coat" + " and" * LONGEST_CELL
    snippet = {"start": 2, "end": 13, "text": "<warm> coat", "highlights": [[1, 5]]}
    ranges = [[3, 7], [9, 13], [LONGEST_CELL - 1, LONGEST_CELL + 2], [LONGEST_CELL, LONGEST_CELL + 1]]
    hit = {"id": "c-1", "score": 0.5, "text": text, "highlights": ranges, "snippet": snippet, "index": 0}
    shown = Hits({"results": [hit], "truncated": False})._repr_html_()
    beginning = "<td>A &lt;<mark>warm</mark>&gt; <mark>coat</mark> and"
    assert beginning in shown
    assert f"{text[LONGEST_CELL - 4 : LONGEST_CELL - 1]}<mark>{text[LONGEST_CELL - 1]}</mark>…</td>" in shown
    assert "<td>&lt;<mark>warm</mark>&gt; coat</td>" in shown


def test_a_hit_displays_the_fields_that_it_has() -> None:
    assert repr(Hit("c-1", 0.0, "A coat", group="")) == "Hit(id='c-1', score=0.0, text='A coat', index=0)"
    assert repr(Hit("c-1", None, metadata={"price": 0}, index=3)) == "Hit(id='c-1', metadata={'price': 0}, index=3)"


def test_a_search_says_what_it_searches(either: Search, local: Search, bundle: Path) -> None:
    assert len(either) == len(local) == 200
    columns = either.columns
    assert {name: column.type for name, column in columns.items()} == STORY_COLUMNS
    assert columns["chapter"] == ColumnSummary("number", 180, 0, 19)
    assert columns["told"] == ColumnSummary("date", 180, "2024-01-05", "2024-12-05")
    assert columns["places"] == ColumnSummary("list", 180, values={"sea": 120, "village": 60})
    assert columns["true"].values == {False: 120, True: 60}
    assert len(columns["who"].values) == 10
    assert "model='tests/mean-of-words'" in repr(either)
    assert "rows=200" in repr(either)
    stored = (bundle / "manifest.json").stat().st_mtime
    assert f"made={strftime('%Y-%m-%dT%H:%M:%SZ', gmtime(stored))!r}" in repr(local)
    assert sha256((bundle / "manifest.json").read_bytes()).hexdigest()[:12] in repr(local)


def test_a_text_is_found_by_its_id(either: Search) -> None:
    found = either.get("story-007")
    assert found is not None
    (listed,) = either.search(filter={"id": "story-007"})
    assert (found.index, found.text, found.metadata) == (listed.index, listed.text, listed.metadata)
    assert (found.score, either.get("a/b ?#%")) == (None, None)


def test_a_passage_has_those_around_it(tmp_path: Path, make_app: Callable[..., App]) -> None:
    rows = [json.dumps({"path": "a.md", "passage": number}) for number in range(4)]
    ids, kinds = [f"a.md#é&?:{number}" for number in range(4)], {"path": "string", "passage": "number"}
    texts = [f"the baker opened door {number}" for number in range(4)]
    folder = write_bundle(tmp_path / "bundle", Corpus(texts, ids, rows, columns=kinds))
    with serving(make_app(bundle=folder)) as address:
        local, remote = (each.get(ids[1], before=2, after=1) for each in (Search(folder), Search(address)))
    assert local == remote
    assert local is not None
    assert ([hit.id for hit in local.before], [hit.text for hit in local.after]) == (ids[:1], texts[2:3])


@pytest.mark.parametrize(
    ("numbers", "error"),
    [
        ({"before": 1}, "before: found 1, expected 0 for a text that is in no document, such as a row of a table"),
        ({"after": 11}, "after: found 11, expected a whole number from 0 to 10"),
    ],
)
def test_passages_around_a_text_that_cannot_be_returned_are_a_value_error(
    either: Search, numbers: Any, error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        either.get("story-007", **numbers)


def test_several_texts_find_what_each_finds_alone(either: Search) -> None:
    texts = ["the baker", "an angry goose", "the baker", "trains in winter"]
    for arguments in ({}, {"mode": "keyword"}, {"mode": "semantic", "filter": {"chapter": {"$lt": 9}}}, {"top_k": 50}):
        fields: Any = arguments
        assert either.search_many(texts, **fields) == [either.search(text, **fields) for text in texts]
    with pytest.raises(ValueError, match=r"texts\.1: found ' '"):
        either.search_many(["a", " "])
    unknown: Any = {"topk": 3}
    with pytest.raises(TypeError, match="topk"):
        either.search_many(["a"], **unknown)


def test_words_alone_are_not_embedded(local: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["the baker", "an angry goose"]
    expected = local.search_many(texts, mode="keyword")
    embedded: list[object] = []

    def embed(self: Embedder, tokens: list[object], run: object) -> list[object]:
        embedded.extend(tokens)
        return []

    monkeypatch.setattr(Embedder, "embed", embed)
    assert local.search_many(texts, mode="keyword") == expected
    assert not embedded


def test_a_search_without_arguments_lists_the_texts(either: Search) -> None:
    assert either.search() == either.search(filter={})
    assert [hit.index for page in either.pages() for hit in page] == list(range(200))


def test_pages_have_all_hits_in_order(either: Search) -> None:
    pages = list(either.pages("the baker", mode="semantic", filter={"chapter": {"$lt": 5}}, top_k=7, offset=2))
    whole = either.search("the baker", mode="semantic", filter={"chapter": {"$lt": 5}}, top_k=100, offset=2)
    assert [hit for page in pages for hit in page] == whole
    assert [len(page) for page in pages[:-1]] == [7] * (len(pages) - 1)
    assert sum(map(len, either.pages(sort={"chapter": "asc"}))) == 200


def test_a_closed_search_refuses_to_search(bundle: Path) -> None:
    with Search(bundle) as search:
        assert search.search("goose")
    with pytest.raises(ValueError, match="is closed"):
        search.search("goose")
    assert repr(search) == f"Search({str(bundle)!r})"
    search.reload()
    assert search.search("goose")


def test_the_next_search_is_in_the_bundle_that_has_taken_the_place(bundle_copy: Path) -> None:
    search = Search(bundle_copy)
    texts = ["a warm coat", "a red shirt"]
    corpus = Corpus(texts, ["c-1", "c-2"], ["{}", "{}"], columns={})
    shutil.rmtree(bundle_copy)
    assert len(search) == 200  # its files stay open
    write_bundle(bundle_copy, corpus)
    assert (len(search), search.search("coat", top_k=1)[0].id) == (2, "c-1")


def replace_by_two_texts(bundle: Path) -> None:
    shutil.rmtree(bundle)
    write_bundle(bundle, Corpus(["a warm coat", "a red shirt"], ["0", "1"], ["{}"] * 2, columns={}))


def test_no_thread_searches_the_older_bundle_while_another_one_opens_the_new_one(
    bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(bundle_copy)
    replace_by_two_texts(bundle_copy)
    open_new, others = search._open, list[Future[int]]()

    def opening() -> object:
        others.append(pool.submit(len, search))
        wait(others, timeout=0.2)  # so that a thread that does not wait for the new bundle has answered
        return open_new()

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(search, "_open", opening)
        assert len(search) == 2
    assert [other.result() for other in others] == [2]


@needs_linux("fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # Python 3.12 and newer
def test_a_process_forked_while_a_thread_opens_a_new_bundle_searches_the_new_one(
    bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(bundle_copy)
    replace_by_two_texts(bundle_copy)
    open_new, is_opening, is_forked = search._open, Event(), Event()

    def opening() -> object:
        is_opening.set()
        is_forked.wait(timeout=0.2)  # so that a fork that does not wait for the new bundle has happened
        return open_new()

    monkeypatch.setattr(search, "_open", opening)
    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(len, search)
        is_opening.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends a child that waits for a lock
            try:
                os._exit(len(search))
            finally:
                os._exit(1)
        is_forked.set()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == rows.result() == 2
    assert len(search) == 2


def test_a_bundle_that_cannot_be_opened_is_warned_of_once_and_the_older_one_is_searched(bundle_copy: Path) -> None:
    search = Search(bundle_copy)
    (bundle_copy / MANIFEST).rename(bundle_copy / "before")
    (bundle_copy / MANIFEST).write_text("{}")
    with pytest.warns(
        UserWarning, match="the older bundle is searched, because the new one cannot be: .*format_version"
    ) as warned:
        assert search.search("goose")
    assert warned[0].filename == __file__
    assert search.search("goose")
    (bundle_copy / "before").rename(bundle_copy / MANIFEST)
    assert search.search("goose")


def test_a_pickle_has_the_place_without_the_key(
    bundle: Path, remote: Search, local: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bundle.parent)
    content = pickle.dumps(Search(bundle.name))
    monkeypatch.chdir("/")
    assert pickle.loads(content).search("goose") == local.search("goose")
    content = pickle.dumps(remote)
    assert KEY.encode() not in content
    with pytest.raises(ValueError, match="SEMSEARCH_KEY: is not set"):
        pickle.loads(content)
    monkeypatch.setenv("SEMSEARCH_KEY", KEY)
    assert pickle.loads(content).search("goose") == remote.search("goose")


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} ", f"{KEY}é", ""], ids=ascii)
def test_neither_repr_nor_an_error_holds_the_key(key: str, remote: Search) -> None:
    assert KEY not in repr(remote)
    with pytest.raises(ValueError, match="key: found blanks") as raised:
        Search("http://localhost:1", key=key)
    assert KEY not in str(raised.value)


def wrong_names(search: Search, folder: Path) -> None:
    """Nothing calls this: `make check` runs mypy over it, and each wrong name is an error of mypy."""
    search.search("coat", topk=3)  # type: ignore[call-arg]
    search.similar_to("c-1", limt=3)  # type: ignore[call-arg]
    search.search("coat", mode="words")  # type: ignore[arg-type]
    index([], folder, titel="Coats")  # type: ignore[call-arg]


def test_every_field_of_similar_is_an_argument_and_a_field_of_the_query_with_the_same_default() -> None:
    parameters = {**inspect.signature(Search.search).parameters}
    del parameters["self"]
    parameters["num_results"] = parameters.pop("top_k")
    fields = {name: field.get_default(call_default_factory=True) for name, field in SimilarRequest.model_fields.items()}
    defaults = {name: tuple(default) if isinstance(default, list) else default for name, default in fields.items()}
    assert {name: parameter.default for name, parameter in parameters.items()} == defaults
    in_query = {field.name: field.default for field in dataclass_fields(Query)}
    assert in_query == defaults | {"rerank_weight": None, "folds_copies": False}


def test_a_server_gets_only_what_differs_from_its_default() -> None:
    bodies = []

    class Server(Handler):
        def answer(self) -> None:
            bodies.append(json.loads(self.body()))
            self.reply(200, {"content-type": "application/json"}, b'{"results": [], "truncated": false}')

    with listening(Server) as address:
        search = Search(address)
        search.search("coat")
        search.search("coat", mode=None, exact=False, without=(), offset=0)
        search.search("coat", top_k=5, offset=1, rerank=8)
        search.similar_to(7, exact=True)
        search.search()
        search.search_many(["coat"], without=(), prefix=True)
    assert bodies == [
        {"text": "coat"},
        {"text": "coat"},
        {"text": "coat", "offset": 1, "rerank": {"candidates": 8}},
        {"id": "7", "exact": True},
        {"filter": {}},
        {"text": "coat", "prefix": True},
    ]


def test_fields_of_a_newer_server_are_ignored() -> None:
    passage = {"id": "1:1", "index": 1, "text": "goose", "metadata": {}, "newer": 1}
    hit = passage | {"score": 0.5, "other_passages": [passage | {"score": 0.4}]}
    content = {"results": [hit], "truncated": False, "newer": 1} | passage | {"before": [passage], "after": []}

    class Server(Handler):
        def answer(self) -> None:
            if self.command == "POST":
                self.body()
            self.reply(200, {"content-type": "application/json"}, json.dumps(content).encode())

    with listening(Server) as address:
        search = Search(address)
        (found,) = search.search("goose")
        got = search.get("1:1", before=1)
    other = Hit("1:1", 0.4, "goose", {}, 1)
    assert found == Hit("1:1", 0.5, "goose", {}, 1, other_passages=[other])
    assert got == Hit("1:1", None, "goose", {}, 1, before=[replace(other, score=None)])


def test_a_hit_has_the_fields_of_results_and_passages() -> None:
    of_replies = get_type_hints(GroupResult) | get_type_hints(FoundPassageReply)
    assert {field.name for field in dataclass_fields(Hit)} == of_replies.keys()


def test_the_options_that_methods_pass_on_are_those_of_search() -> None:
    of_search = get_type_hints(Search.search)
    assert get_type_hints(SearchOptions) == {
        name: kind for name, kind in of_search.items() if name not in ("text", "id", "return")
    }


def test_with_verify_a_damaged_bundle_is_refused(bundle_copy: Path) -> None:
    Search(bundle_copy, verify=True)
    damage(bundle_copy / "passages.safetensors")
    with pytest.raises(ValueError, match=r"passages\.safetensors: is damaged"):
        Search(bundle_copy, verify=True)
    with pytest.raises(ValueError, match="verify: http://localhost:8000 is an address"):
        Search("http://localhost:8000", verify=True)


class Colour(str):
    """Text of a class of its own, as an enumeration has it."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (Colour("red"), "red"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (time(7, 8), "07:08:00"),
        (np.float32(0.5), 0.5),
        (Decimal(3), 3),
        ({1: [date(2026, 1, 2), {"a": (True, 2.0)}]}, {"1": ["2026-01-02", {"a": [True, 2.0]}]}),
        (iter("ab"), ["a", "b"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_becomes_what_json_has_for_it(value: object, expected: object) -> None:
    found = json_value(value, "x")
    assert (found, type(found)) == (expected, type(expected)) or isinstance(found, Colour)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"x" * 99, f"x: found bytes {str(b'x' * 99)[:60]!r}, expected text, a number, a date, True, False, None or"),
        (np.timedelta64(1, "s"), "x: found timedelta64 '1 seconds', expected text"),
        (float("inf"), "x: found inf, expected a finite number"),
        ({"y": [object]}, "x.y: found type "),
    ],
    ids=repr,
)
def test_a_value_that_json_has_not_is_a_value_error(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        json_value(value, "x")


def test_ids_and_numbers_of_passages_are_checked() -> None:
    assert [checked_id(None), checked_id("a"), checked_id(2.0)] == [None, "a", "2"]
    for id in (True, ["a"], {"a": 1}):
        with pytest.raises(ValueError, match=r"^id: found .*, expected text or a number$"):
            checked_id(id)
    assert [count_around(0, "x"), count_around(np.int64(10), "x")] == [0, 10]
    for count in (-1, 11, True, 1.0, "1", None):
        with pytest.raises(ValueError, match=r"^x: found .*, expected a whole number from 0 to 10$"):
            count_around(count, "x")


def test_a_text_can_have_65536_characters() -> None:
    longest = "a" * 65_536
    assert checked_texts([longest, "b"]) == [longest, "b"]
    assert search_body(longest, None, {}) == {"text": longest}
    for make in (lambda: checked_texts([longest + "a"]), lambda: search_body(None, longest + "a", {})):
        with pytest.raises(ValueError, match="a text of 65537 characters, at most 65536; split it"):
            make()
    nothing: list[Any] = [[], {}, "a", 5]
    for texts in nothing:
        with pytest.raises(ValueError, match=r"^texts: found .*, expected a text or a list with at least one$"):
            checked_texts(texts)


def test_the_body_of_a_search_has_the_names_of_the_server() -> None:
    stated = {"top_k": 3, "rerank": 0, "sort": None}
    assert search_body(None, 7, stated) == {"num_results": 3, "rerank": {"candidates": 0}, "sort": None, "id": "7"}
    assert search_body(None, None, {"filter": {"a": 1}}) == {"filter": {"a": 1}}
    assert search_body(None, None, {"rerank": None}) == {"rerank": None, "filter": {}}
    assert as_written("num_results, rerank.candidates and prompt_name of a rerankxcandidates") == (
        "top_k, rerank and role of a rerankxcandidates"
    )


def test_numbers_are_ids_only_where_a_filter_names_the_id() -> None:
    condition = {"id": {"$in": [1, 2.0, True, "x"]}, "n": 1, "$or": [{"id": 3}, {"n": {"$in": [4]}}]}
    assert with_ids_as_text(condition) == {
        "id": {"$in": ["1", "2", True, "x"]},
        "n": 1,
        "$or": [{"id": "3"}, {"n": {"$in": [4]}}],
    }


def listing(asked: list[dict[str, Any]], *replies: dict[str, Any]) -> Callable[..., Hits]:
    """Return what notes the arguments of searches and returns hits of these replies in turn."""
    several = iter(replies)

    def search(**arguments: Any) -> Hits:
        asked.append(arguments)
        return Hits({"results": [], "truncated": False} | next(several))

    return search


def test_columns_are_summarized_by_one_search_or_two() -> None:
    asked: list[dict[str, Any]] = []
    counts = {"total": 30, "facets": {"c": [{"value": str(number), "count": 20 - number} for number in range(12)]}}
    found = summarize_column(listing(asked, counts), "c", "string")
    assert found == ColumnSummary("string", 30, values={str(number): 20 - number for number in range(10)})
    assert asked == [{"filter": {"c": {"$exists": True}}, "facets": ["c"], "top_k": 1, "include": ()}]
    asked.clear()
    ends = [{"results": [{"id": "a", "score": None, "metadata": {"c": value}}], "total": 5} for value in ("-1.50", 2)]
    assert summarize_column(listing(asked, *ends), "c", "number") == ColumnSummary("number", 5, -1.5, 2)
    assert asked == [
        {"filter": {"c": {"$exists": True}}, "sort": {"c": way}, "facets": ["c"], "top_k": 1, "include": ("metadata",)}
        for way in ("asc", "desc")
    ]
    ends[0]["results"][0]["metadata"]["c"] = "2026-01-02"  # type: ignore[index]
    assert summarize_column(listing(asked, ends[0], {"total": 0}), "c", "date") == ColumnSummary(
        "date", 5, "2026-01-02"
    )


def test_a_search_is_true_without_texts_and_without_asking_a_server() -> None:
    assert Search("localhost:1")


def test_columns_of_texts_elsewhere_have_only_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search("localhost:1")
    held = Contents("m", None, 3, {"a": "number"}, has_texts=False, made="")
    monkeypatch.setattr("semsearch.client.server.RemoteServer.contents", lambda server: held)
    assert search.columns == {"a": ColumnSummary("number")}
    described = "model='m', version='', made='', rows=3, columns={'a': 'number'}"
    assert (repr(search), len(search)) == (f"Search('localhost:1', {described})", 3)


def test_a_notebook_displays_a_cell_of_at_most_200_characters() -> None:
    metadata = {"long": "x" * 201, "whole": "y" * 200, "share": 0.123456, "score_metadata": "<", "score": 1}
    hits = Hits(
        {"results": [RESULT | {"metadata": metadata}, RESULT | {"score": None, "metadata": {}}], "truncated": True}
    )
    head = ("id", "score", "text", "index", "long", "whole", "share", "score_metadata", "score_metadata_metadata")
    row = ("c-1", "0.5", "A warm &lt;b&gt;coat&lt;/b&gt;", "3", "x" * 200 + "…", "y" * 200, "0.1235", "&lt;", "1")
    bare = ("c-1", "", "A warm &lt;b&gt;coat&lt;/b&gt;", "3", "", "", "", "", "")
    cells = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for cells in (row, bare)]
    header = "".join(f"<th>{name}</th>" for name in head)
    assert hits._repr_html_() == f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(cells)}</tbody></table>"
    assert (hits.truncated, hits.total, hits.facets, hits.corrected) == (True, None, {}, {})


def test_pages_begin_where_they_are_asked_to_and_end_after_one_that_is_not_full() -> None:
    asked: list[tuple[int, int]] = []

    class Counting(Search):
        def search(self, *arguments: Any, **options: Any) -> Hits:
            asked.append((options["offset"], options["top_k"]))
            left = max(0, 7 - options["offset"])
            return Hits({"results": [RESULT] * min(options["top_k"], left), "truncated": False})

    search = Counting("localhost:1")
    assert [len(page) for page in search.pages(top_k=3)] == [3, 3, 1]
    assert [len(page) for page in search.pages(top_k=5, offset=2)] == [5, 0]
    assert [len(page) for page in search.pages()] == [7]
    assert asked == [(0, 3), (3, 3), (6, 3), (2, 5), (7, 5), (0, 100)]


@pytest.mark.parametrize(
    ("table", "query", "is_needed"),
    [
        (None, Query("goose"), True),
        (None, Query("goose", mode="keyword"), False),
        ("there", Query("goose"), False),
        ("there", Query("goose", queries="model"), True),
        ("there", Query("goose", queries="model", mode="keyword"), False),
    ],
)
def test_the_model_embeds_what_neither_words_nor_the_table_answer(table: object, query: Query, is_needed: bool) -> None:
    opened = object.__new__(LocalBundle)
    opened._bundle = SimpleNamespace(table=table, embedder="there")  # type: ignore[assignment]
    assert opened._needs_model(query) == is_needed


def test_a_bundle_has_changed_once_for_each_new_manifest_and_is_released_once(bundle_copy: Path) -> None:
    released: list[str] = []
    opened = open_folder(bundle_copy, verify=False)
    fixed = LocalBundle(load(bundle_copy), "version", lambda: released.append("released"))
    assert not opened.has_changed()
    content = (bundle_copy / MANIFEST).read_bytes()
    (bundle_copy / MANIFEST).unlink()
    assert not opened.has_changed()
    (bundle_copy / MANIFEST).write_bytes(content)
    os.utime(bundle_copy / MANIFEST, (1, 1))
    assert (opened.has_changed(), opened.has_changed(), fixed.has_changed()) == (True, False, False)
    assert fixed.contents().version == "version"
    fixed.close()
    fixed.close()
    assert released == ["released"]


def test_texts_are_embedded_with_the_prompt_of_their_role(bundle_copy: Path) -> None:
    manifest = read_manifest(bundle_copy)
    prompts = {"query": "angry goose: ", "document": "the baker: "}
    write_manifest(bundle_copy, replace(manifest, model=replace(manifest.model, prompts=prompts)))
    opened, plain = open_folder(bundle_copy, verify=False), ["silver key", "old ferry"]
    for texts in (plain[:1], plain):
        expected = opened.embed([f"angry goose: {text}" for text in texts], None)
        np.testing.assert_array_equal(opened.embed(texts, "query"), expected)
        assert not np.array_equal(opened.embed(texts, None), expected)
        assert not np.array_equal(opened.embed(texts, "document"), expected)


def test_two_filters_of_a_retriever_are_one() -> None:
    assert both(None, {}) is None
    assert both({"a": 1}, None) == {"$and": [{"a": 1}]}
    assert both({"a": 1}, {"b": 2}) == {"$and": [{"a": 1}, {"b": 2}]}
    assert str(untranslated("'x'", ["==", "!="])) == "filter: expected one of the operators ==, !=, found 'x'"
