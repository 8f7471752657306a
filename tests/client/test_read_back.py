"""Everything is read back: all texts, as an iterator and as frames, many ids, and the stored embeddings."""

import json
import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal as polars_assert_frame_equal

from semsearch import Hit, Hits, Search, index
from semsearch.app.app import App
from semsearch.aws.s3.fetch import without_rows
from semsearch.client.folder import ROWS_READ_AT_ONCE, LocalBundle
from semsearch.client.frames import ColumnType
from semsearch.engine.bundle import VectorsInfo
from semsearch.engine.loading import RemoteBundle, RemoteTextsError, load
from semsearch.engine.quantization import dequantize, quantize
from semsearch.indexing.bundles import take_model
from semsearch.indexing.columns import choose_types
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.facts import read_facts
from tests.browser.page.conftest import serving
from tests.stand_ins.http import Handler, listening
from tests.world import WHO, write_bundle

ZONE = timezone(timedelta(hours=5, minutes=45))
EXACT = 2**53 + 1
# a value of each type, the extreme ones, and no value at all
ROWS: list[dict[str, Any]] = [
    {
        **{"whole": EXACT, "share": 0.1, "new": True, "name": "Żółć 🦆 東京\u2028", "tags": ["sea", "sea", ""]},
        **{"seen": "2024-05-31", "sizes": [EXACT, -1], "large": 2**64 - 1, "score": 7, "mixed": 5, "weights": [1, 0.5]},
    },
    {},
    {
        **{"whole": -(2**63), "share": -0.0, "new": False, "name": "", "tags": [], "seen": "0001-01-01"},
        **{"sizes": [], "large": 0, "text": "another text", "mixed": {"a": [1, None]}, "weights": []},
    },
    {
        **{"whole": 2**63 - 1, "share": 5, "name": "null", "tags": ["a\x00b"], "seen": "9999-12-31T23:59:59.999999Z"},
        **{"sizes": [-(2**63)], "id": "own", "mixed": ["x"], "weights": [1e308]},
    },
    {"whole": 0, "share": 1e-300, "seen": "2024-05-31T12:00:00+05:45", "mixed": "é"},
    {"whole": 1, "share": 2, "seen": "1969-12-31T23:59:59.000001", "nested": {"b": "ü"}},
]
NAMES = [*("large", "name", "new", "score", "seen", "share", "sizes", "tags", "weights", "whole"), "mixed", "nested"]
EXPECTED: dict[str, list[Any]] = {name: [row.get(name) for row in ROWS] for name in NAMES}
EXPECTED["seen"] = [
    datetime(2024, 5, 31, tzinfo=UTC),
    None,
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 5, 31, 12, tzinfo=ZONE),
    datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
]
EXPECTED |= {f"{name}_metadata": [row.get(name) for row in ROWS] for name in ("id", "text")}
# in the order of the types of the manifest, which is that of the alphabet; then those that filters cannot compare
ORDER = ["id_metadata", *NAMES[:8], "text_metadata", *NAMES[8:]]
PANDAS = {
    **{"id": "string", "text": "string", "id_metadata": "string", "text_metadata": "string", "name": "string"},
    **{"large": "UInt64", "score": "Int64", "whole": "Int64", "share": "Float64", "new": "boolean"},
    **{"seen": "datetime64[us, UTC]", "sizes": "object", "tags": "object", "weights": "object", "mixed": "object"},
    "nested": "object",
}
POLARS: dict[str, Any] = {
    **dict.fromkeys(("id", "text", "id_metadata", "text_metadata", "name"), pl.String),
    **{"large": pl.UInt64, "score": pl.Int64, "whole": pl.Int64, "share": pl.Float64, "new": pl.Boolean},
    **{"seen": pl.Datetime("us", "UTC"), "sizes": pl.List(pl.Int64), "tags": pl.List(pl.String)},
    **{"weights": pl.List(pl.Float64), "mixed": pl.Object, "nested": pl.Object},
}
ARROW: dict[str, Any] = {
    **dict.fromkeys(("id", "text", "id_metadata", "text_metadata", "name", "mixed", "nested"), pa.string()),
    **{"large": pa.uint64(), "score": pa.int64(), "whole": pa.int64(), "share": pa.float64(), "new": pa.bool_()},
    **{"seen": pa.timestamp("us", "UTC"), "sizes": pa.list_(pa.int64()), "tags": pa.list_(pa.string())},
    "weights": pa.list_(pa.float64()),
}


def corpus_of(rows: Sequence[dict[str, Any]]) -> Corpus:
    """Return a corpus whose metadata are these rows, also where they have the names id and text."""
    texts = [f"{WHO[number % len(WHO)]} 🦆 {number}" for number in range(len(rows))]
    metadata = [json.dumps(row) for row in rows]
    corpus = Corpus(texts, [f"r-{number}" for number in range(len(rows))], metadata, facts=read_facts(metadata))
    types = choose_types(corpus, {}, Path("rows"))
    return replace(corpus, columns=types, mixed={"mixed": "", "nested": ""} if "mixed" in types else {})


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of ROWS."""
    return write_bundle(tmp_path_factory.mktemp("odd") / "bundle", corpus_of(ROWS))


@pytest.fixture(scope="module")
def odd_server(odd: Path, make_app: Callable[..., App]) -> Iterator[Search]:
    with serving(make_app(bundle=odd)) as address:
        yield Search(address)


@pytest.fixture(params=["folder", "address"])
def either(request: pytest.FixtureRequest, odd: Path) -> Search:
    """The index of ROWS in a folder, and at a server."""
    if request.param == "folder":
        return Search(odd)
    search: Search = request.getfixturevalue("odd_server")
    return search


def plain(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a frame of pandas as lists, None for a missing value."""
    return {
        name: [None if not isinstance(value, list | dict) and pd.isna(value) else value for value in frame[name]]
        for name in frame.columns
    }


def test_a_pandas_frame_of_all_texts_equals_what_went_in(either: Search) -> None:
    frame = either.to_pandas()
    assert [*frame.columns] == ["id", "text", *ORDER]
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == PANDAS
    found = plain(frame)
    assert found.pop("id") == [f"r-{number}" for number in range(6)]
    assert found.pop("text") == [f"{WHO[number]} 🦆 {number}" for number in range(6)]
    assert found == EXPECTED
    assert str(found["share"][2]) == "-0.0"


def test_a_polars_frame_of_all_texts_equals_what_went_in(either: Search) -> None:
    frame = either.to_polars()
    assert frame.columns == ["id", "text", *ORDER]
    assert dict(frame.schema) == POLARS
    assert {name: frame[name].to_list() for name in ORDER} == EXPECTED


def test_an_arrow_table_of_all_texts_equals_what_went_in(either: Search) -> None:
    table = either.to_arrow()
    assert table.column_names == ["id", "text", *ORDER]
    assert {field.name: field.type for field in table.schema} == ARROW
    found = {name: table[name].to_pylist() for name in ORDER}
    for name in ("mixed", "nested"):
        found[name] = [None if text is None else json.loads(text) for text in found[name]]
    assert found == EXPECTED
    assert table["mixed"][4].as_py() == '"é"'


OF_HITS = ["id", "score", "text", "index"]


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ({"filter": {"whole": {"$lt": 10**6}}, "top_k": 1}, 1),  # a row with a value in a few columns
        ({"text": "nothing", "filter": {"name": "nobody"}}, 0),
        ({"filter": {"name": "nobody"}}, 0),
        ({"text": "the baker", "include": []}, 5),
        ({"top_k": 100}, 6),
    ],
    ids=str,
)
def test_frames_of_hits_have_all_columns_and_their_types_whatever_was_found(
    either: Search, arguments: dict[str, Any], count: int
) -> None:
    hits = either.search(**arguments)
    pandas, polars, arrow = hits.to_pandas(), hits.to_polars(), hits.to_arrow()
    assert len(hits) == len(pandas) == len(polars) == len(arrow) == count
    # `score` of the metadata is a column of another name, beside the score
    names = ["score_metadata" if name == "score" else name for name in ORDER]
    names = [name for name in names if name != "nested"] + ["nested"]
    assert [*pandas.columns] == polars.columns == arrow.column_names == [*OF_HITS, *names]
    own = {"score": "Float64", "index": "Int64", "score_metadata": "Int64"}
    assert {name: str(kind) for name, kind in pandas.dtypes.items()} == PANDAS | own
    kinds: dict[str, Any] = {"score": pl.Float64, "index": pl.Int64, "score_metadata": pl.Int64}
    assert dict(polars.schema) == POLARS | kinds
    types: dict[str, Any] = {"score": pa.float64(), "index": pa.int64(), "score_metadata": pa.int64()}
    assert {field.name: field.type for field in arrow.schema} == ARROW | types


def test_values_of_hits_are_those_of_the_index(either: Search) -> None:
    hits = either.search(top_k=100)
    found = plain(hits.to_pandas())
    assert found["score"] == [None] * 6
    assert found["index"] == list(range(6))
    assert {name: found[name] for name in ("whole", "large", "seen", "tags", "mixed")} == {
        name: EXPECTED[name] for name in ("whole", "large", "seen", "tags", "mixed")
    }


def test_what_a_search_requests_is_a_column_also_without_hits(either: Search) -> None:
    requested: dict[str, Any] = {"group_by": "name", "highlights": True, "include": ["text", "source"]}
    for names in (["", "null"], ["nobody"]):
        hits = either.search("the baker", filter={"name": {"$in": names}}, **requested)
        assert [*hits.to_pandas().columns][:7] == [*OF_HITS, "group", "snippet", "source"]
        kind = hits.to_polars().schema["snippet"]
        assert isinstance(kind, pl.Struct)
        assert [field.name for field in kind.fields] == ["start", "end", "text", "highlights"]
        assert hits.to_arrow().schema.field("snippet").type.num_fields == 4
        assert [*hits.to_arrow()["snippet"].to_pylist()] == [hit.snippet for hit in hits]
    assert len(hits) == 0


def test_a_number_of_a_csv_that_keeps_its_form_is_a_number_in_a_frame(tmp_path: Path) -> None:
    metadata = ['{"price": "1.10", "new": "True", "tags": "[\\"a\\"]"}', '{"price": "3", "new": "false", "tags": "[]"}']
    corpus = Corpus(["a coat", "a goose"], ["0", "1"], metadata)
    kinds = {"price": "number", "new": "boolean", "tags": "list"}
    corpus = replace(corpus, columns=kinds, facts=read_facts(metadata))
    frame = Search(write_bundle(tmp_path / "bundle", corpus)).to_pandas()
    assert plain(frame) == {
        **{"id": ["0", "1"], "text": ["a coat", "a goose"]},
        **{"new": [True, False], "price": [1.1, 3.0], "tags": [["a"], []]},
    }


def test_numbers_of_a_column_that_is_compared_as_text_are_text_in_a_frame(tmp_path: Path) -> None:
    metadata = ['{"isbn": 5}', '{"isbn": "x"}', '{"isbn": 0.5}']
    corpus = Corpus(["a coat"] * 3, ["0", "1", "2"], metadata, columns={"isbn": "string"})
    assert [*Search(write_bundle(tmp_path / "bundle", corpus)).to_pandas()["isbn"]] == ["5", "x", "0.5"]


def test_whole_numbers_at_a_server_are_known_from_ranges_too(tmp_path: Path, make_app: Callable[..., App]) -> None:
    rows = [{"whole": number, "share": number / 2, "large": 2**63 + number} for number in range(150)]
    rows += [{f"other {number:02}": number} for number in range(9)]
    folder = write_bundle(tmp_path / "bundle", corpus_of(rows))
    with serving(make_app(bundle=folder)) as address:
        found = Search(address).search("x", filter={"whole": -1}).to_pandas()
    local = Search(folder).search("x", filter={"whole": -1}).to_pandas()
    assert found.dtypes.to_dict() == local.dtypes.to_dict()
    assert [str(found.dtypes[name]) for name in ("whole", "share", "large", "other 08")] == [
        *("Int64", "Float64", "UInt64", "Int64")
    ]


def test_the_frame_of_many_searches_has_the_number_of_each(either: Search, tmp_path: Path) -> None:
    found = either.search_many(["the baker", "nobody"], top_k=2, mode="keyword")
    assert [len(hits) for hits in found] == [2, 0] or [len(hits) for hits in found] == [1, 0]
    found.reverse()
    frames = found.to_pandas(), found.to_polars(), found.to_arrow()
    for frame, names in zip(frames, (list(frames[0].columns), frames[1].columns, frames[2].column_names), strict=True):
        assert names[:5] == ["query", *OF_HITS]
        assert {*map(int, list(frame["query"].to_numpy()))} == {1}
    assert [*frames[0]["id"]] == [hit.id for hit in found[1]]
    assert either.search_many(["nobody"], mode="keyword").to_polars().schema["whole"] == pl.Int64
    assert [*either.search_many(vectors=[]).to_pandas().columns] == [*frames[0].columns]
    search = Search(write_bundle(tmp_path / "bundle", corpus_of([{"query": "own"}])))
    frame = search.search_many(["baker", "baker"]).to_pandas()
    assert ([*frame["query"]], [*frame["query_metadata"]]) == ([0, 1], ["own", "own"])


def test_texts_are_all_texts_in_order(either: Search) -> None:
    assert list(either.texts()) == list(either.search(top_k=100))
    first = next(either.texts())
    assert first == Hit("r-0", None, f"{WHO[0]} 🦆 0", ROWS[0], 0)


@pytest.fixture
def removed(odd: Path) -> Search:
    """The index of ROWS of which the first, the third and the last text were removed."""
    search = Search(odd)
    search._source = LocalBundle(without_rows(load(odd), [0, 2, 5]), version="")
    return search


def test_only_texts_that_can_be_found_are_read(removed: Search) -> None:
    assert [hit.id for hit in removed.texts()] == ["r-1", "r-3", "r-4"]
    assert [hit.index for hit in removed.texts()] == [1, 3, 4]
    assert plain(removed.to_pandas()[["id", "whole"]]) == {"id": ["r-1", "r-3", "r-4"], "whole": [None, 2**63 - 1, 0]}
    assert [hit and hit.id for hit in removed.get(["r-5", "r-4", "r-0"])] == [None, "r-4", None]
    assert removed.embeddings().shape == (3, 48)
    with pytest.raises(ValueError, match="ids: found 'r-0', expected ids of texts; leave it out"):
        removed.embeddings(["r-1", "r-0"])
    np.testing.assert_array_equal(removed.embeddings()[2], removed.embeddings(["r-4"])[0])


def test_of_a_view_only_its_texts_are_read(odd: Path) -> None:
    search, bundle = Search(odd), load(odd)
    search._source = LocalBundle(bundle.view({"whole": {"$gt": 0}}), version="")  # type: ignore[attr-defined]
    assert [hit.id for hit in search.texts()] == ["r-0", "r-3", "r-5"]
    assert [*search.to_arrow()["id"].to_pylist()] == ["r-0", "r-3", "r-5"]


def test_a_frame_without_texts_has_the_columns(odd: Path) -> None:
    search = Search(odd)
    search._source = LocalBundle(without_rows(load(odd), range(6)), version="")
    assert list(search.texts()) == []
    assert {name: str(kind) for name, kind in search.to_pandas().dtypes.items()} == PANDAS
    assert dict(search.to_polars().schema) == POLARS
    assert {field.name: field.type for field in search.to_arrow().schema} == ARROW
    assert search.embeddings().shape == (0, 48)
    assert search.get([]) == []


def test_an_iteration_reads_the_index_that_it_began_with(tmp_path: Path) -> None:
    rows = ROWS_READ_AT_ONCE + 1
    folder = write_bundle(tmp_path / "bundle", corpus_of([{"number": number} for number in range(rows)]))
    search = Search(folder)
    reading = search.texts()
    began = search.texts()
    assert next(reading).index == 0
    shutil.rmtree(folder)
    write_bundle(folder, Corpus(["a warm coat"], ["c-1"], ["{}"], columns={}))
    assert [hit.id for hit in search.texts()] == ["c-1"]
    assert [hit.metadata["number"] for hit in reading] == list(range(1, rows))
    search.close()
    assert sum(1 for _ in began) == rows


def test_many_ids_are_returned_in_their_order(either: Search) -> None:
    found = either.get(["r-4", "nobody", "r-0", "r-4"])
    assert [hit and hit.id for hit in found] == ["r-4", None, "r-0", "r-4"]
    assert found[0] == either.get("r-4")
    ids: list[Any] = [np.array(["r-1"]), pd.Series(["r-1"]), ("r-1",), {"r-1": 5}.keys(), iter(["r-1"])]
    for several in ids:
        assert either.get(several) == [either.get("r-1")]
    assert either.get([]) == []
    one = either.get("r-1")
    assert isinstance(one, Hit)
    wrong: list[Any] = [{"r-1": 5}, [["r-1"]], [True], b"r-1"]
    for several in wrong:
        with pytest.raises(ValueError, match=r"^id: found .*, expected text"):
            either.get(several)


def test_numbers_and_uuids_among_many_ids_are_ids(tmp_path: Path) -> None:
    ids = ["1", "2", str(UUID(int=3)), "1"]
    search = Search(write_bundle(tmp_path / "bundle", Corpus(["a coat"] * 4, ids, ["{}"] * 4, columns={})))
    numbers: list[Any] = [2.0, np.int64(1), UUID(int=3), 5]
    found = search.get(numbers)
    assert [hit and hit.index for hit in found] == [1, 0, 2, None]  # the first of those with one id


def test_passages_around_many_ids_are_returned(tmp_path: Path) -> None:
    rows = [json.dumps({"path": "a.md", "passage": number}) for number in range(4)]
    kinds = {"path": "string", "passage": "number"}
    texts = [f"door {number}" for number in range(4)]
    search = Search(write_bundle(tmp_path / "bundle", Corpus(texts, ["0", "1", "2", "3"], rows, columns=kinds)))
    first, second = search.get(["2", "0"], before=1)
    assert first is not None
    assert second is not None
    assert ([hit.id for hit in first.before], second.before) == (["1"], [])


def test_stored_embeddings_are_those_of_the_texts_within_the_rounding_of_eight_bits(odd: Path) -> None:
    search = Search(odd)
    stored, made = search.embeddings(), search.embed([hit.text for hit in search.texts()])
    assert stored.shape == (6, 48)
    assert stored.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(stored, axis=1), 1, atol=1e-6)
    assert ((stored * made).sum(axis=1) > 0.9999).all()
    assert (np.abs(stored - made) < np.abs(made).max(axis=1, keepdims=True) / 127).all()
    ids = ["r-5", "r-0", "r-5"]
    np.testing.assert_array_equal(search.embeddings(ids), stored[[5, 0, 5]])
    assert search.embeddings([]).shape == (0, 48)
    with pytest.raises(ValueError, match="ids: found 'r-0', expected several ids"):
        search.embeddings("r-0")


@pytest.mark.parametrize("dim", [48, 384, 3_072])
def test_embeddings_of_any_direction_keep_a_cosine_above_0_9999(dim: int) -> None:
    made = np.random.default_rng(5).standard_normal((2_000, dim)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    stored = dequantize(*quantize(made))
    assert ((stored * made).sum(axis=1) > 0.9999).all()
    assert (np.abs(stored - made) < np.abs(made).max(axis=1, keepdims=True) / 127).all()


def test_a_server_returns_no_embeddings(odd_server: Search) -> None:
    with pytest.raises(ValueError, match="a server does not return embeddings of its texts; read the bundle itself"):
        odd_server.embeddings()


def test_texts_in_s3_vectors_are_not_read(odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, search = load(odd), Search(odd)
    vectors = VectorsInfo("bucket", "index", "eu-central-1", "0" * 16)
    manifest = replace(opened.manifest, corpus_or_none=replace(opened.manifest.corpus, vectors=vectors))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    search._source = LocalBundle(RemoteBundle(manifest, opened.embedder, odd), version="")
    for read in (search.texts, search.to_pandas, search.embeddings, lambda: search.get(["r-1"])):
        with pytest.raises(RemoteTextsError, match="corpus: found in S3 Vectors, expected in the bundle; search"):
            read()
    result = {"id": "a", "score": 0.5, "index": 0, "text": "a", "metadata": {"whole": 5, "large": EXACT}}
    frame = Hits({"results": [result], "truncated": False}, search._source.types).to_pandas()
    assert (str(frame["whole"].dtype), frame["whole"][0]) == ("Float64", 5)
    assert (str(frame["large"].dtype), frame["large"][0]) == ("object", EXACT)  # rather than another number
    assert str(frame["score_metadata"].dtype) == "Float64"


def test_a_server_lets_the_first_10100_texts_be_read_and_says_that_there_are_more(
    tmp_path: Path, make_app: Callable[..., App]
) -> None:
    texts = [f"{WHO[row % len(WHO)]} {row}" for row in range(10_101)]
    ids = [str(row) for row in range(10_101)]
    folder = write_bundle(tmp_path / "bundle", Corpus(texts, ids, ["{}"] * 10_101, columns={}))
    with serving(make_app(bundle=folder)) as address:
        reading = Search(address).texts()
        assert [next(reading).index for _ in range(10_100)] == list(range(10_100))
        message = "has 10101 texts, expected at most 10100, which a server lets be read; search with a filter"
        with pytest.raises(ValueError, match=message):
            next(reading)
        assert [hit.text for hit in Search(folder).texts()] == texts


class Changing(Handler):
    """A server that switches to an index with fewer texts behind the first page."""

    def answer(self) -> None:
        results: list[Any] = [
            {"index": row, "id": str(row), "score": None, "text": "a", "metadata": {}} for row in range(100)
        ]
        total = 250 - json.loads(self.body())["offset"]
        self.reply(200, {}, json.dumps({"results": results, "truncated": False, "total": total}).encode())


def test_texts_of_a_server_whose_number_changes_meanwhile_are_an_error() -> None:
    with listening(Changing) as address:
        reading = Search(address).texts()
        assert sum(1 for _ in zip(range(100), reading, strict=False)) == 100
        with pytest.raises(ValueError, match="has 150 texts and had 250; read them again"):
            next(reading)


def test_default_boosts_do_not_change_the_order_of_texts(tmp_path: Path, make_app: Callable[..., App]) -> None:
    rows = [{"number": number} for number in range(150)]
    boost = {"number": {"log": True, "weight": 1}}
    folder = write_bundle(tmp_path / "bundle", corpus_of(rows), options={"boost": boost})
    with serving(make_app(bundle=folder)) as address:
        for search in (Search(folder), Search(address)):
            assert search.search(top_k=1)[0].index == 149
            assert [hit.index for hit in search.texts()] == list(range(150))


def test_copies_and_pickles_of_hits_have_the_same_frames(either: Search) -> None:
    hits = either.search("the baker", top_k=2, highlights=True)
    expected = hits.to_arrow()
    for copied in (hits[:], deepcopy(hits), pickle.loads(pickle.dumps(hits))):
        assert copied.to_arrow() == expected
    assert hits[:0].to_arrow().schema == expected.schema
    many = pickle.loads(pickle.dumps(either.search_many(["the baker"])))
    assert many.to_arrow().schema.field("whole").type == pa.int64()


def test_hits_ask_a_server_for_types_only_for_a_frame() -> None:
    asked = []

    class Server(Handler):
        def answer(self) -> None:
            asked.append(self.path)
            if self.command == "POST":
                self.body()
            reply = {"results": [], "truncated": False, "facets": {"n": []}, "limits": {}, "index": {"columns": {}}}
            reply["index"] = {"columns": {"n": "number"}}  # as a view has it, without the other columns
            self.reply(200, {}, json.dumps(reply).encode())

    with listening(Server) as address:
        search = Search(address)
        hits = copy(search.search("goose")[:1])
        assert asked == ["/similar"]
        assert [*hits.to_pandas().columns] == [*OF_HITS, "n"]
        assert asked == ["/similar", "/info", "/similar"]
        assert str(search.search("goose").to_pandas()["n"].dtype) == "Float64"
        assert asked[3:] == ["/similar"]


def test_a_server_of_texts_in_s3_vectors_is_not_asked_for_counts() -> None:
    class Server(Handler):
        def answer(self) -> None:
            index = {"columns": {"n": "number", "ns": "numbers"}, "untyped": ["x"], "vectors": {"bucket": "b"}}
            self.reply(200, {}, json.dumps({"limits": {}, "index": index}).encode())

    with listening(Server) as address:
        types = Search(address)._opened.types()
    assert types == {
        **{"n": ColumnType("number", "float64"), "ns": ColumnType("numbers", "float64")},
        "x": ColumnType("objects"),
    }


def test_values_of_another_index_than_the_one_that_a_server_has_described_are_objects() -> None:
    known = {name: ColumnType(kind) for name, kind in (("d", "date"), ("b", "boolean"), ("l", "list"), ("s", "string"))}
    known |= {"n": ColumnType("number", "int64"), "m": ColumnType("number", "uint64")}
    known |= {"f": ColumnType("number", "float64"), "ns": ColumnType("numbers", "int64")}
    metadata = {"n": 0.5, "m": -1, "f": 2**1024, "ns": [1, 2**63], "d": "today", "b": 3, "l": "x", "s": [1]}
    result = {"id": "a", "score": None, "index": 0, "text": "a", "metadata": metadata}
    hits = Hits({"results": [result], "truncated": False}, lambda: known)
    assert plain(hits.to_pandas()[[*metadata]]) == {name: [value] for name, value in metadata.items()}
    assert [hits.to_polars()[name].to_list() for name in metadata] == [[value] for value in metadata.values()]
    assert [json.loads(hits.to_arrow()[name][0].as_py()) for name in metadata] == [*metadata.values()]
    hits[0].metadata["n"] = 2**63
    assert str(hits.to_pandas()["n"].dtype) == "object"
    hits[0].metadata["n"] = 2**63 - 1
    assert str(hits.to_pandas()["n"].dtype) == "Int64"


FRAME = pd.DataFrame(
    {
        "id": ["a", "b", "c"],
        "text": ["a warm coat", "Żółć, 東京 🦆", "an angry goose"],
        "price": pd.array([EXACT, None, -(2**63)], dtype="Int64"),
        "share": pd.array([0.1, None, 5.0], dtype="Float64"),
        "sold": pd.array([True, None, False], dtype="boolean"),
        "brand": pd.array(["North", None, ""], dtype="string"),
        "made": pd.to_datetime(["2024-05-31T12:00:00+05:45", None, "0001-01-01"], utc=True, format="ISO8601"),
        "tags": [["sea", "war"], None, ["ü"]],
    }
)


@pytest.mark.usefixtures("quick_commands")
@pytest.mark.parametrize("form", ["pandas", "polars", "arrow"])
def test_a_frame_that_is_indexed_comes_back(tmp_path: Path, bundle: Path, form: str) -> None:
    take_model(bundle, tmp_path)  # so that `index` uses the model of the tests
    given: Any = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "arrow": pa.Table.from_pandas(FRAME)}[form]
    index(given, out=tmp_path)
    search = Search(tmp_path)
    found = {"pandas": search.to_pandas, "polars": search.to_polars, "arrow": search.to_arrow}[form]()
    names = ["id", "text", *sorted(FRAME.columns[2:])]
    if form == "pandas":
        expected = FRAME[names].astype({"id": "string", "text": "string"})
        pd.testing.assert_frame_equal(found.drop(columns="tags"), expected.drop(columns="tags"))
        assert plain(found[["tags"]]) == plain(expected[["tags"]])
    elif form == "polars":
        polars_assert_frame_equal(found, given.select(names))
    else:
        kinds = pa.schema([found.schema.field(name) for name in names])
        assert found.equals(given.select(names).cast(kinds))
    index(search.to_arrow(), out=tmp_path / "again", update=tmp_path)
    assert Search(tmp_path / "again").to_arrow() == search.to_arrow()
