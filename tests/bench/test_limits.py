"""The costliest requests are those that the default settings just accept, and the last one that they refuse."""

from collections.abc import Callable

import httpx
import pytest

from bench.limits import Request, make_requests
from function.engine.bundle import Manifest
from function.engine.embedder import Embedder
from function.settings import DEFAULT_BODY_LIMIT, DEFAULT_TEXTS, DEFAULT_TOKENS, Settings

ACCEPTED = ("MAX_TOKENS reached", "MAX_TOKENS and MAX_BODY_BYTES reached")
REFUSED = "MAX_TEXTS reached, without MAX_TOKENS"


@pytest.fixture
def requests(manifest: Manifest) -> dict[str, Request]:
    return make_requests("goose", manifest.model.max_tokens)


def post(client: httpx.Client, request: Request) -> int:
    event = request.event()
    return client.post(request.path, content=event["body"], headers={"content-type": "application/json"}).status_code


def test_the_default_settings_accept_all_requests_but_the_last(
    client: httpx.Client, requests: dict[str, Request]
) -> None:
    assert [post(client, request) for request in requests.values()] == [200, 200, 200, 413]


def test_with_one_more_text_a_request_has_too_many_tokens(client: httpx.Client, requests: dict[str, Request]) -> None:
    full = requests["MAX_TOKENS reached"]
    assert post(client, Request(full.path, [*full.text, "word " * 100])) == 413


def test_the_largest_body_fills_its_limit_up_to_a_hundredth(requests: dict[str, Request]) -> None:
    length = len(requests["MAX_TOKENS and MAX_BODY_BYTES reached"].event()["body"])
    assert 0.99 * DEFAULT_BODY_LIMIT < length <= DEFAULT_BODY_LIMIT


def test_every_text_of_a_costly_request_is_as_long_as_the_model_reads(
    requests: dict[str, Request], embedder: Embedder
) -> None:
    for name in (*ACCEPTED, REFUSED):
        assert {len(one.ids) for one in embedder.tokenize(list(requests[name].text))} == {embedder.model.max_tokens}


def test_without_max_tokens_the_last_request_would_be_accepted(
    connect: Callable[..., httpx.Client], requests: dict[str, Request]
) -> None:
    last = requests[REFUSED]
    assert len(last.text) == DEFAULT_TEXTS
    assert post(connect(settings=Settings(max_tokens=10 * DEFAULT_TOKENS)), last) == 200
