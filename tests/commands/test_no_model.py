"""The commands and the client over a bundle without a model."""

import json
from pathlib import Path

import httpx
import numpy as np
import pytest

from semsearch import Search
from tests.app.mcp.test_messages import message
from tests.app.mcp.test_stdio import answers
from tests.command_line import error_line, run
from tests.no_model import ELSEWHERE
from tests.server.running import address_of, drain, started
from tests.world import DIM

GOOSE = "angry goose"
VECTOR = np.linspace(-1, 1, DIM)


def test_query_finds_texts_by_their_words_and_by_an_id(no_model: Path) -> None:
    found = json.loads(run("query", no_model, GOOSE, "--json").out)
    assert found == json.loads(run("query", no_model, GOOSE, "--mode", "keyword", "--json").out)
    assert all("angry goose" in result["text"] for result in found["results"])
    assert len(json.loads(run("query", no_model, "--like", "story-150", "--json").out)["results"]) == 5
    refused = run("query", no_model, GOOSE, "--mode", "semantic")
    assert error_line(refused).endswith(f"no model to embed the text; send its embedding by {ELSEWHERE} as the vector")


def test_a_site_is_refused(no_model: Path, tmp_path: Path) -> None:
    refused = run("site", no_model, "--out", tmp_path / "site")
    expected = (
        "has no model, expected one that embeds what visitors type; serve it with the function or `semsearch serve`"
    )
    assert error_line(refused) == f"error: {no_model}: {expected}"
    assert not (tmp_path / "site").exists()


def test_evaluate_refuses_modes_by_meaning(no_model: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"query": "angry goose", "relevant": ["story-150"]}\n')
    refused = run("evaluate", no_model, "--questions", questions, "--mode", "hybrid")
    assert refused.code == 1
    assert refused.err.rstrip().endswith("because the bundle has no model to embed the questions")


def test_mcp_searches_over_standard_input(no_model: Path) -> None:
    call = message("tools/call", {"name": "search", "arguments": {"query": GOOSE}})
    (reply,) = answers(no_model, [call])
    (content,) = reply["result"]["content"]
    assert {hit["id"] for hit in json.loads(content["text"])["results"]} == {f"story-{row}" for row in range(150, 160)}


def test_a_server_answers_as_the_bundle_does(no_model: Path) -> None:
    here = Search(no_model)
    with started(no_model) as server:
        address = address_of(server)
        drain(server)
        with Search(address) as there:
            assert there.search(GOOSE) == here.search(GOOSE)
            assert there.search(vector=VECTOR) == here.search(vector=VECTOR)
            assert there.search(GOOSE, vector=VECTOR) == here.search(GOOSE, vector=VECTOR)
            assert there.search_many([GOOSE, "baker"]) == here.search_many([GOOSE, "baker"])
            assert repr(ELSEWHERE) in repr(there)
            for texts in (GOOSE, [GOOSE, "baker"]):
                with pytest.raises(ValueError, match=r"^model: this bundle has none, its embeddings are made by "):
                    there.embed(texts)
            with pytest.raises(ValueError, match=r"^mode: found 'semantic' with a text and no vector"):
                there.search(GOOSE, mode="semantic")
        assert httpx.get(f"{address}/health").json() == {"status": "ok"}
        assert httpx.get(f"{address}/metrics").status_code == 200
