"""Requests with all fields of /similar, right and wrong ones: the engine, the app, the handler and a server agree.

`REQUESTS=10000 python -m pytest tests/server/test_same_replies.py` sends that number instead of 150.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
from pydantic import ValidationError

from semsearch.app.app import App
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import AnyBundle, load
from semsearch.search.query import SearchError, UnknownIdError, query_of
from semsearch.search.request import SimilarRequest
from tests.function.events.through_events import ThroughEvents
from tests.search.searching import find
from tests.server.running import WAIT, address_of, drain, started
from tests.world import WHAT, WHO, InProcess

FIELDS: dict[str, tuple[Any, ...]] = {  # values of each field; the last one cannot be used
    "vector": ([0.5] * 48, [0.25, -1, 0, 2] * 12, [0.5] * 47),
    "num_results": (1, 3, 100, 0),
    "mode": ("semantic", "keyword", "hybrid", "words"),
    "prefix": (True, False, "yes"),
    "exact": (True, False, 1),
    "filter": ({"who": "the baker"}, {"chapter": {"$gte": 3}}, {"$or": [{"true": True}, {"places": "sea"}]}, {"x": 1}),
    "include": ([], ["text"], ["metadata", "text"], ["vectors"]),
    "offset": (0, 5, 150, -1),
    "min_score": (0.1, 0.5, -1.0, "high", "floor"),
    "group_by": ("who", "who", "chapter"),
    "group_size": (1, 2, 20, 21),
    "sort": ({"told": "desc"}, {"chapter": "asc", "who": "desc"}, {"places": "asc"}),
    "facets": (["who"], ["places", "chapter", "true"], ["unknown"]),
    "facets_of": ("matching", "results", "all"),
    "highlights": (True, False, None),
    "fusion_weight": (0.0, 0.4, 1.0, 1.5),
    "correct": (True, False, 0),
    "without": ([], ["goose"], ["old baker", "snow"], ""),
    "queries": ("model", "table"),
    "boost": (
        {},
        {"told": {"half_life": "999999w", "weight": 0.3}, "true": {"equals": True, "weight": 0.1}},
        {"chapter": {"log": True, "weight": 0.05}},
        {"chapter": {"log": True, "weight": -1}},
    ),
    "rerank": ({"candidates": 5}, {}, {"candidates": 0}),
}


def requests(count: int) -> Iterator[dict[str, Any]]:
    """Yield requests for a text, for an id and for a list, with some of the other fields."""
    choose = random.Random(11)
    for number in range(count):
        request: dict[str, Any] = {}
        kind = number % 4
        if kind < 2:
            request["text"] = f"{choose.choice(WHO)} {choose.choice(WHAT)}"[: choose.randint(1, 60)]
        elif kind == 2:
            request["id"] = f"story-{choose.randrange(205):03}"
        for name in choose.sample(sorted(FIELDS), choose.randint(0, 6)):
            *right, wrong = FIELDS[name]
            request[name] = wrong if choose.random() < 0.05 else choose.choice(right)
        yield request


def by_engine(bundle: AnyBundle, request: dict[str, Any]) -> tuple[int, Any]:
    """Return the status and the reply of a search without HTTP."""
    try:
        query = query_of(SimilarRequest.model_validate_json(json.dumps(request)))
        return 200, json.loads(json.dumps(find(bundle, query).reply()))
    except UnknownIdError:
        return 404, None
    except (ValidationError, SearchError):
        return 422, None


def by_http(client: httpx.Client, request: dict[str, Any]) -> tuple[int, Any]:
    """Return the status and the reply of /similar."""
    reply = client.post("/similar", json=request)
    if reply.status_code == HTTPStatus.OK:
        return reply.status_code, reply.json()
    assert reply.json()["error"]
    return reply.status_code, None


def test_each_request_has_the_same_reply_everywhere(
    rerank_bundle: Path, embedder: Embedder, make_app: Callable[..., App]
) -> None:
    loaded = load(rerank_bundle, embedder)
    app = make_app(bundle=rerank_bundle)
    statuses: list[int] = []
    seen: set[str] = set()
    with (
        started(rerank_bundle) as server,
        closing(ThroughEvents(app)) as handler,
        httpx.Client(base_url=address_of(server), trust_env=False, timeout=WAIT) as remote,
        httpx.Client(transport=InProcess(app), base_url="http://tests") as local,
        httpx.Client(transport=InProcess(handler), base_url="http://tests") as lambda_client,
    ):
        drain(server)
        for request in requests(int(os.environ.get("REQUESTS", "150"))):
            expected = by_engine(loaded, request)
            for client in (local, lambda_client, remote):
                assert by_http(client, request) == expected, request
            statuses.append(expected[0])
            seen |= request.keys()
    assert seen == SimilarRequest.model_fields.keys()
    assert statuses.count(200) > len(statuses) / 2
    assert {404, 422} < set(statuses)
