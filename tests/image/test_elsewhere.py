"""An image of embeddings that were made elsewhere: it has no model, and answers as the same code does outside of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from semsearch import index
from tests.function.events.event_makers import http_api
from tests.image.docker import build, docker
from tests.image.test_emulator import send, started
from tests.test_elsewhere import MAKER, ROWS, unit_rows

DIM = 1_536


def test_the_function_searches_by_vectors_and_by_words_without_a_model(
    image: str, context: Path, tag: str, answer: Callable[..., list[dict[str, Any]]]
) -> None:
    shutil.rmtree(context / "bundle")
    rows = [{"id": str(row), "text": f"an angry goose {row}"} for row in range(ROWS)]
    index(rows, out=context / "bundle", embeddings=unit_rows(ROWS, DIM, 1), embedded_by=MAKER, progress=False)
    build(context, tag)
    (vector,) = unit_rows(1, DIM, 2).tolist()
    events = [
        http_api("POST", "/similar", json.dumps({"vector": vector, "num_results": 20})),
        http_api("POST", "/similar", json.dumps({"text": "goose 7"})),
        http_api("POST", "/similar", json.dumps({"text": "goose 7", "vector": vector})),
        http_api("POST", "/predict", json.dumps({"text": "goose"})),
        http_api("GET", "/health", None),
    ]
    with started(tag) as container:
        found = send(container, events)
        files = docker("exec", container, "ls", "/var/task/bundle").split()
    assert [reply["statusCode"] for reply in found] == [200, 200, 200, 404, 200]
    assert [json.loads(reply["body"]) for reply in found] == [
        json.loads(reply["body"]) for reply in answer(events, context / "bundle")
    ]
    assert json.loads(found[1]["body"])["results"][0]["id"] == "7"
    assert files == ["index.safetensors", "keywords.safetensors", "manifest.json", "passages.safetensors"]
