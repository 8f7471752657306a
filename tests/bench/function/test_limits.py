"""The costliest requests are those that the default settings just accept, and those "before" are refused."""

from collections.abc import Callable

import httpx
import pytest

from bench.function.limits import FORMER_BODY_LIMIT, FORMER_TEXTS, Request, make_requests
from function.engine.bundle import Manifest
from function.engine.embedder import Embedder
from function.settings import Settings

ACCEPTED = ("as many tokens as are allowed", "and as many characters")
LIMIT = 4096  # for the tiny model, which reads fewer tokens of a text than real ones
LIMITED = Settings(max_tokens=LIMIT)
REFUSED = ("before: as many bytes", "before: as many texts")


@pytest.fixture
def requests(manifest: Manifest) -> dict[str, Request]:
    return make_requests("goose", manifest.model.max_tokens, LIMIT)


def post(client: httpx.Client, request: Request) -> int:
    event = request.event()
    return client.post(request.path, content=event["body"], headers={"content-type": "application/json"}).status_code


def test_the_default_settings_accept_all_requests_but_those_of_before(
    connect: Callable[..., httpx.Client], requests: dict[str, Request]
) -> None:
    client = connect(settings=LIMITED)
    assert [post(client, request) for request in requests.values()] == [200, 200, 200, 413, 413]


def test_with_one_more_text_a_request_has_too_many_tokens(
    connect: Callable[..., httpx.Client], requests: dict[str, Request]
) -> None:
    full = requests[ACCEPTED[0]]
    assert post(connect(settings=LIMITED), Request(full.path, [*full.text, "word " * 100])) == 413


def test_requests_fill_their_limits_up_to_a_hundredth(requests: dict[str, Request]) -> None:
    characters = sum(map(len, requests[ACCEPTED[1]].text))
    assert 0.99 * LIMITED.max_characters < characters <= LIMITED.max_characters
    length = len(requests[REFUSED[0]].event()["body"])
    assert 0.99 * FORMER_BODY_LIMIT < length <= FORMER_BODY_LIMIT


def test_every_text_of_a_costly_request_is_as_long_as_the_model_reads(
    requests: dict[str, Request], embedder: Embedder
) -> None:
    for name in (ACCEPTED[0], *REFUSED):  # the tiny model has another vocabulary, and a few words are a few tokens
        assert {len(one.ids) for one in embedder.tokenize(list(requests[name].text))} == {embedder.model.max_tokens}


def test_with_larger_limits_the_requests_of_before_would_be_accepted(
    connect: Callable[..., httpx.Client], requests: dict[str, Request]
) -> None:
    assert len(requests[REFUSED[1]].text) == FORMER_TEXTS
    for name in REFUSED:
        assert post(connect(settings=Settings(max_tokens=16 * LIMIT)), requests[name]) == 200
