"""A search in one's own process has none of a server's limits: as many hits as there are texts, compared with NumPy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semsearch import Hits, Search, load_bundle
from semsearch.app.app import App
from semsearch.engine.loading import require_embedder
from semsearch.engine.quantization import dequantize
from semsearch.engine.semantic.index import EXHAUSTIVE_ROWS
from semsearch.indexing.corpus import Corpus
from tests.browser.page.conftest import serving
from tests.world import WHAT, WHO, write_bundle

TEXT = "angry baker winter"


def corpus_of(rows: int) -> Corpus:
    texts = [f"{WHO[row % len(WHO)]} {WHAT[row // 7 % len(WHAT)]} number {row // 200}." for row in range(rows)]
    return Corpus(texts, [f"t{row}" for row in range(rows)], ["{}"] * rows, columns={})


@pytest.fixture(scope="module", params=[350, EXHAUSTIVE_ROWS + 8], ids=["scanned", "in stages"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with more texts than a server returns."""
    return write_bundle(tmp_path_factory.mktemp("large") / "bundle", corpus_of(request.param))


def cosines(bundle: Path, text: str) -> Any:
    """Return the cosine of a text to each row, (rows,), to six decimals."""
    opened = load_bundle(bundle)
    embedder = require_embedder(opened)
    (query,) = embedder.embed(embedder.tokenize([text], role="query"))
    embeddings = dequantize(*opened.index.codes_of(np.arange(len(opened.index))))
    return np.round(embeddings.astype(np.float64) @ query, 6)


def rows_of(hits: Hits) -> list[int]:
    return [hit.index for hit in hits]


def scores_of(hits: Hits) -> list[float]:
    return [hit.score for hit in hits if hit.score is not None]


def test_all_texts_are_returned_in_the_order_of_their_cosines(large: Path) -> None:
    search, expected = Search(large), cosines(large, TEXT)
    for top_k in (len(search), len(search) - 1, len(search) + 1, 10**12):
        hits = search.search(TEXT, mode="semantic", top_k=top_k)
        assert len(hits) == min(top_k, len(search))
        assert len({*rows_of(hits)}) == len(hits)
        np.testing.assert_allclose(scores_of(hits), expected[rows_of(hits)], atol=2e-6)
        places = [(-hit.score, hit.index) for hit in hits if hit.score is not None]
        assert places == sorted(places)
    assert search.search(TEXT, mode="semantic", top_k=150, exact=True) == hits[:150]


def test_all_texts_with_a_word_are_returned_and_those_of_hybrid_have_both_scores(large: Path) -> None:
    search = Search(large)
    by_words = search.search(TEXT, mode="keyword", top_k=10**9)
    words = {hit.index: hit.score or 0.0 for hit in by_words}
    texts = [hit.text.lower() for hit in search.search(top_k=10**9)]
    assert {*words} == {row for row, text in enumerate(texts) if "angry" in text or "baker" in text or "winter" in text}
    places = [(-score, row) for row, score in words.items()]
    assert places == sorted(places)
    both = search.search(TEXT, mode="hybrid", top_k=len(search))
    assert sorted(rows_of(both)) == list(range(len(search)))
    assert [(-(hit.score or 0), hit.index) for hit in both] == sorted((-(hit.score or 0), hit.index) for hit in both)
    parts = [hit.scores or {} for hit in both]
    np.testing.assert_allclose([part["semantic"] for part in parts], cosines(large, TEXT)[rows_of(both)], atol=2e-6)
    np.testing.assert_allclose([part["keyword"] for part in parts], [words.get(hit.index, 0) for hit in both])
    # score = weight * cosine + (1 - weight) * BM25 / divisor: the same two numbers for all texts
    design = np.array([[part["semantic"], part["keyword"]] for part in parts])
    weights, *_ = np.linalg.lstsq(design, np.array(scores_of(both)))
    np.testing.assert_allclose(design @ weights, scores_of(both), atol=2e-6)


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid", None])
def test_a_page_at_any_offset_continues_the_ones_before(large: Path, mode: Any) -> None:
    search, text = Search(large), None if mode is None else TEXT
    everything = search.search(text, mode=mode, top_k=10**9, exact=True)
    count = len(everything)
    for offset in (0, 1, count // 2, count - 1, count, count + 1, 10**12):
        assert search.search(text, mode=mode, top_k=150, offset=offset, exact=True) == everything[offset : offset + 150]


def test_a_filter_can_hold_any_number_of_values(large: Path) -> None:
    search = Search(large)
    wanted = {f"t{row}" for row in range(0, len(search), 3)} | {f"nobody {number}" for number in range(5_000)}
    hits = search.search(filter={"id": {"$in": wanted}}, top_k=10**9)
    assert rows_of(hits) == list(range(0, len(search), 3))
    hits = search.search(TEXT, filter={"id": {"$nin": wanted}}, top_k=10**9)
    assert sorted(rows_of(hits)) == [row for row in range(len(search)) if row % 3]


@pytest.mark.parametrize("text", [None, TEXT])
def test_an_empty_list_finds_no_text_and_leaves_out_none(large: Path, text: str | None) -> None:
    search = Search(large)
    collections: list[Any] = [[], set(), np.array([], np.int64)]
    for empty in collections:
        assert search.search(text, filter={"id": {"$in": empty}}) == []
        assert len(search.search(text, filter={"id": {"$nin": empty}}, top_k=10**9)) == len(search)


def test_pages_reach_the_last_text(tmp_path: Path) -> None:
    search = Search(write_bundle(tmp_path / "bundle", corpus_of(10_050)))
    assert [hit.index for page in search.pages(top_k=2_000, include=()) for hit in page] == list(range(10_050))
    (last,) = search.search(top_k=5, offset=10_049)
    assert last.id == "t10049"


@pytest.fixture(scope="module")
def served(make_app: Callable[..., App]) -> Iterator[Search]:
    with serving(make_app()) as address:
        yield Search(address)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top_k": 101}, "top_k: input should be less than or equal to 100, found 101"),
        ({"offset": 10_001}, "offset: input should be less than or equal to 10000, found 10001"),
        ({"filter": {"id": {"$in": ["a"] * 998}}}, "filter: expected at most 1000 values, lists and objects included"),
    ],
    ids=["top_k", "offset", "filter"],
)
def test_a_server_has_its_limits(served: Search, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        served.search("goose", **arguments)
