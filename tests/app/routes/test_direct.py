"""Requests that are answered without FastAPI: which ones, and that FastAPI would answer them with the same bytes."""

import json
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from semsearch.app.app import App
from semsearch.app.cold_start import ColdStart
from semsearch.app.middleware import RequestLimits, RequestLog, answer_head
from semsearch.app.settings import Settings
from tests.server.test_same_replies import FIELDS
from tests.server.test_same_replies import requests as random_bodies
from tests.world import InProcess

JSON = "application/json"
Request = tuple[str, str, str | None, bytes]  # method, path, content-type, body
CHANGING = {b"x-request-id", b"server-timing"}


def ask(app: Any, request: Request) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of the reply, without the headers that differ each time."""
    method, path, content_type, content = request
    headers = {"accept-encoding": "identity"}
    if content_type is not None:
        headers["content-type"] = content_type
    with httpx.Client(transport=InProcess(app), base_url="http://tests") as client:
        reply = client.request(method, path, content=content, headers=headers)
    assert {name for name, _ in reply.headers.raw} >= CHANGING
    return reply.status_code, [each for each in reply.headers.raw if each[0] not in CHANGING], reply.content


@pytest.fixture(scope="module")
def both(make_app: Callable[..., App]) -> tuple[App, App]:
    """The app, and one whose FastAPI app answers everything."""
    app, logger = make_app(), logging.getLogger("tests")
    limits = partial(RequestLimits, max_body_bytes=Settings().max_body_bytes)
    log = partial(RequestLog, logger=logger, cold_start=ColdStart(lambda phases: None))
    return app, App((), lambda: app.fastapi, [limits, answer_head, log])


def post(body: object, path: str = "/similar", content_type: str | None = JSON) -> Request:
    return "POST", path, content_type, body if isinstance(body, bytes) else json.dumps(body).encode()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
texts = st.sampled_from(["goose", "silver key: in the snow", "żółć", " "]) | st.text(max_size=5)


def mostly(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(*[values] * 4, anything)


bodies = st.sampled_from(list(random_bodies(1_000)))
searches = bodies | st.builds(
    lambda body, name, value: body | {name: value}, bodies, st.sampled_from(["text", "id", *FIELDS]), anything
)
embeddings = st.fixed_dictionaries(
    {"text": mostly(texts | st.lists(texts, max_size=3))},
    optional={"prompt_name": mostly(st.sampled_from(["query", "document", None]))},
)
requests: st.SearchStrategy[Request] = st.one_of(
    st.builds(post, searches),
    st.builds(post, embeddings, st.just("/predict")),
    st.builds(post, st.binary(max_size=30), st.sampled_from(["/similar", "/predict"])),
    st.tuples(
        st.sampled_from(["GET", "HEAD", "POST", "PUT"]),
        st.sampled_from(["/health", "/similar", "/predict", "/health/", "/none"]),
        st.sampled_from([JSON, None, "text/plain"]),
        st.just(b'{"text": "goose"}'),
    ),
)


@given(request=requests)
@example(post(b""))
@example(post(b'\xef\xbb\xbf{"text": "a"}'))
@example(post('{"text": "a"}'.encode("utf-16")))
@example(post(b'{"text": "a", "filter": {"b": NaN, "c": -Infinity, "d": 1e400, "e": -0.0}}'))
@example(post(b'{"text": "a", "filter": {"b": %s}}' % (b"1" * 5000)))
@example(post(b'{"text": "a", "filter": {"b": "\\ud800"}}'))
@example(post(b'{"text": "a", "filter": {"b": "\xed\xa0\x80"}}'))
@example(post(b'{"text": "a", "filter": {"b": %s1%s}}' % (b"[" * 300, b"]" * 300)))
@example(post(b'{"text": "a\tb"}'))
@example(post(b'{"text": "a\x00b"}'))
@example(post(b'{"text": "a",}'))
@example(post(b' \r\n{"text": "a"}\n '))
@example(post(b'\x0c{"text": "a"}'))
@example(post(b'{"text": "a"} {}'))
@example(post(b'{"text": "a", "num_results": 01}'))
@example(post(b'{"text": "a", "text": "b"}'))
@example(post({"text": "a", "filter": {f"column {number}": 1 for number in range(200)}}))
@example(post({f"field {number}": 1 for number in range(200)}))
@example(post({"text": "a" * 200_000}))
@example(post({"text": "a"}, content_type="application/json; charset=utf-8"))
@example(post({"text": "a"}, content_type="APPLICATION/JSON"))
@example(post({"text": "a"}, content_type="application/ld+json"))
@example(post({"text": "a"}, content_type="application/jsonx"))
@example(post({"text": "a"}, content_type="application/json;"))
@example(post({"text": "a"}, content_type=" application/json"))
@example(post({"text": "a"}, content_type="application/json, text/html"))
@example(post({"text": "a"}, "/similar?x=1"))
@settings(max_examples=max(200, settings().max_examples))
def test_any_request_gets_the_bytes_that_fastapi_would_send(both: tuple[App, App], request: Request) -> None:
    found, expected = (ask(app, request) for app in both)
    assert found == expected
    assert found[0] < 500


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (post({"text": "goose"}), 200),
        (post({"text": "goose: 1:2"}, content_type="application/json; charset=utf-8"), 200),
        (post({"text": ["goose: a", "key: b"] * 60}, "/predict"), 200),
        (post({"id": "none"}), 404),
        (post({"text": "goose", "filter": {"none": 1}}), 422),
        (post({"text": ["a" * 60_000] * 100}, "/predict"), 413),
        (("HEAD", "/health", None, b""), 200),
        (post(b" " * 7_000_000), 413),
    ],
)
def test_plain_valid_requests_do_not_make_the_fastapi_app(
    make_app: Callable[..., App], request_: Request, status: int
) -> None:
    app = make_app()
    assert ask(app, request_)[0] == status
    assert "fastapi" not in vars(app)
    ask(app, post(b"{"))
    assert "fastapi" in vars(app)


def test_the_fastapi_app_raises_what_it_cannot_answer_and_the_log_has_it_once(
    make_app: Callable[..., App], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: 1 // 0)
    status, _, body = ask(make_app(), ("GET", "/info", None, b""))
    assert (status, json.loads(body)["error_type"]) == (500, "internal")
    assert "its trace is in the log under the request id" in json.loads(body)["error"]
    assert caplog.text.count("ZeroDivisionError") == 1
