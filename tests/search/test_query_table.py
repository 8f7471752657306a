"""A bundle with a query table: what embeds its queries, and what a search neither imports nor reads."""

import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from semsearch import Search
from semsearch.app.app import create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.settings import Settings
from semsearch.engine import embedder as embedding
from semsearch.engine.bundle import MODEL, BundleError, read_manifest
from semsearch.engine.embedder import Embedder, QueryTable, TokenIds
from semsearch.engine.loading import LoadedBundle, load_bundle, require_embedder
from semsearch.engine.quantization import Embeddings
from semsearch.engine.tensors import TensorsError
from tests.world import InProcess, add_table


@pytest.fixture(scope="module")
def table_bundle(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_table(Path(shutil.copytree(bundle, tmp_path_factory.mktemp("table") / "bundle")))


def test_an_embedding_is_the_unit_sum_of_whole_numbers() -> None:
    table = QueryTable(np.array([[0, 0, 0], [100, 0, 0], [127, -4, 3]], np.int8))
    found = table.embed([TokenIds([1, 2, 1, 0], False), TokenIds([0], False)])
    expected = np.array([327, -4, 3]) / np.sqrt(327**2 + 4**2 + 3**2)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array([expected, [0, 0, 0]], np.float32))


def test_a_token_without_a_vector_is_refused() -> None:
    table = QueryTable(np.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]], np.int8))
    assert table.embed([TokenIds([2], False), TokenIds([0], False)]).tolist() == [[0, 1, 0, 0], [0.5] * 4]
    expected = "query table: 3 vectors, expected one for each token and so for token 3; run `semsearch index` again"
    with pytest.raises(TensorsError, match=f"^{expected}$"):
        table.embed([TokenIds([0], False), TokenIds([1, 3], False)])


@pytest.fixture
def loaded(table_bundle: Path) -> LoadedBundle:
    return load_bundle(table_bundle)


@pytest.fixture
def client(loaded: LoadedBundle) -> httpx.Client:
    app = create_app(loaded, Settings(), logging.getLogger("tests"), ColdStart(lambda phases: None))
    return httpx.Client(transport=InProcess(app), base_url="http://tests")


QUESTION = "angry goose"


def semantic(client: httpx.Client, **fields: object) -> dict[str, Any]:
    reply: dict[str, Any] = client.post("/similar", json={"text": QUESTION, "mode": "semantic", **fields}).json()
    return reply


def scores(loaded: LoadedBundle, embedding: Embeddings) -> list[float]:
    return [hit.score for hit in loaded.index.search(embedding, 5)]


def test_the_table_embeds_queries_and_the_model_those_that_ask(client: httpx.Client, loaded: LoadedBundle) -> None:
    assert loaded.table is not None
    tokens = require_embedder(loaded).tokenize([QUESTION], role="query")
    asked: list[tuple[dict[str, object], str, Callable[..., Embeddings]]] = [
        ({}, "table", loaded.table.embed),
        ({"queries": "model"}, "model", require_embedder(loaded).embed),
    ]
    for fields, name, embed in asked:
        for more in dict[str, object](), {"highlights": True}:  # plain, and a refined query
            found = semantic(client, **fields, **more)
            assert found["queries"] == name
            assert [hit["score"] for hit in found["results"]] == scores(loaded, embed(tokens)[0])


def test_several_texts_find_what_each_finds_alone(table_bundle: Path) -> None:
    with Search(table_bundle) as search:
        texts = ["the baker", "an angry goose"]
        assert search.search_many(texts) == [search.search(text) for text in texts]


@pytest.mark.parametrize("request_", [{"text": QUESTION, "mode": "keyword"}, {"id": "story-001"}, {"facets": ["who"]}])
def test_a_reply_without_an_embedded_text_names_nothing(client: httpx.Client, request_: dict[str, object]) -> None:
    assert "queries" not in client.post("/similar", json=request_).json()


def test_a_search_and_a_check_of_health_leave_the_model_closed_and_predict_opens_it(
    client: httpx.Client, loaded: LoadedBundle, table_bundle: Path
) -> None:
    semantic(client)
    assert client.get("/health").status_code == 200
    assert client.get("/info").json()["queries"]["spans"] == 0
    assert not require_embedder(loaded).is_open
    found = client.post("/predict", json={"text": QUESTION}).json()["embeddings"]
    assert require_embedder(loaded).is_open
    own = Embedder.open(table_bundle, loaded.manifest.model)
    np.testing.assert_array_equal(np.array(found, np.float32), own.embed(own.tokenize([QUESTION])))


def rewrite_in_place(model: Path) -> None:
    """Replace a model by a copy of itself, as `index` moves the new file to the place of the old one."""
    copy = shutil.copy(model, model.with_suffix(".new"))
    Path(copy).replace(model)


def damage(model: Path) -> None:
    """Replace a model by a file that is none."""
    model.unlink()
    model.write_bytes(b"no model")


@pytest.mark.parametrize("replace", [Path.unlink, rewrite_in_place, damage])
def test_the_model_of_a_bundle_that_was_replaced_is_the_one_that_was_there(
    replace: Callable[[Path], None], table_bundle: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(table_bundle, tmp_path / "bundle"))
    loaded = load_bundle(folder)
    replace(folder / MODEL)
    own = Embedder.open(table_bundle, loaded.manifest.model)
    tokens = own.tokenize([QUESTION])
    np.testing.assert_array_equal(require_embedder(loaded).embed(tokens), own.embed(tokens))


def test_a_model_is_not_the_one_that_takes_its_place_while_it_is_opened(
    table_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(table_bundle, tmp_path / "bundle"))
    loaded = load_bundle(folder)
    opened: list[object] = []

    def replace_and_open(model: Path | bytes) -> object:
        if isinstance(model, Path):
            rewrite_in_place(model)
        opened.append(model)
        return object()

    monkeypatch.setattr(embedding, "open_session", replace_and_open)
    require_embedder(loaded).open_session()
    assert opened == [folder / MODEL, (table_bundle / MODEL).read_bytes()]


def test_a_model_that_is_opened_late_and_is_damaged_is_named(table_bundle: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(table_bundle, tmp_path / "bundle"))
    damage(folder / MODEL)
    embedder = Embedder.open(folder, read_manifest(folder).model, is_lazy=True)
    with pytest.raises(BundleError, match=rf"^{re.escape(str(folder / MODEL))}: .*; run `semsearch index` again$"):
        embedder.open_session()
