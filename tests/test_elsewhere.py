"""Embeddings of other models: a folder, a server and the function find what NumPy finds among the stored rows."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semsearch import Search, index
from semsearch.app.app import create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.settings import Settings
from semsearch.engine.loading import load
from tests.browser.page.conftest import serving
from tests.function.events.event_makers import http_api
from tests.image.sources import HANDLE, last_line
from tests.world import WHAT, WHO

ROWS = 300
DIMS = [2, 1_536, 3_072]
MAKER = "openai/text-embedding-3-small"


def unit_rows(rows: int, dim: int, seed: int) -> Any:
    """Return random directions, (rows, dim) float32."""
    found = np.random.default_rng(seed).normal(size=(rows, dim))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module", params=DIMS)
def elsewhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of random embeddings of this dimension."""
    out = tmp_path_factory.mktemp("elsewhere") / "bundle"
    rows = [
        {"id": f"r{row}", "text": f"{WHO[row % len(WHO)]} {WHAT[row % len(WHAT)]} {row}", "even": row % 2 == 0}
        for row in range(ROWS)
    ]
    index(rows, out=out, embeddings=unit_rows(ROWS, request.param, 1), embedded_by=MAKER, progress=False)
    return out


def found_in_the_function(bundle: Path, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the replies of the function, in a process of its own."""
    events = [http_api("POST", "/similar", json.dumps(body)) for body in bodies]
    done = subprocess.run(
        [sys.executable, "-c", HANDLE],
        input=json.dumps(events),
        env=os.environ | {"BUNDLE_DIR": str(bundle)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [json.loads(reply["body"]) for reply in last_line(done.stdout)]


@pytest.fixture
def address(elsewhere: Path) -> Iterator[str]:
    cold_start = ColdStart(lambda phases: None)
    app = create_app(load(elsewhere), Settings(), logging.getLogger("tests"), cold_start)
    with serving(app) as address:
        yield address


def test_a_folder_a_server_and_the_function_find_what_numpy_finds(elsewhere: Path, address: str) -> None:
    folder, server = Search(elsewhere), Search(address)
    stored = folder.embeddings()
    vectors = unit_rows(4, stored.shape[1], 2)
    bodies = [{"vector": vector.tolist(), "num_results": 20, "filter": {"even": True}} for vector in vectors]
    replies = found_in_the_function(elsewhere, bodies)
    for vector, reply in zip(vectors, replies, strict=True):
        scores = stored.astype(np.float64) @ vector
        scores[1::2] = -np.inf
        expected = np.argsort(-scores, kind="stable")[:20]
        for hits in (
            folder.search(vector=vector, top_k=20, filter={"even": True}),
            server.search(vector=vector, top_k=20, filter={"even": True}),
        ):
            assert [hit.score for hit in hits] == pytest.approx(scores[expected].tolist(), abs=1e-5)
            assert [hit.score for hit in hits] == pytest.approx(scores[[hit.index for hit in hits]].tolist(), abs=1e-5)
        assert [result["id"] for result in reply["results"]] == [hit.id for hit in hits]
        assert [result["score"] for result in reply["results"]] == [hit.score for hit in hits]


def test_a_text_is_searched_by_its_words_alike(elsewhere: Path, address: str) -> None:
    text = f"{WHO[3]} 3"
    expected = Search(elsewhere).search(text, mode="keyword")
    assert expected[0].id == "r3"
    assert Search(elsewhere).search(text) == Search(address).search(text) == expected
    (reply,) = found_in_the_function(elsewhere, [{"text": text}])
    assert [result["id"] for result in reply["results"]] == [hit.id for hit in expected]
