"""API keys: who is let in, where everyone is, and that no key is ever shown."""

import asyncio
import json
import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import httpx
import pytest

from semsearch.app.access import keys as keys_module
from semsearch.app.access import stored_keys
from semsearch.app.access.binding import bound_filter
from semsearch.app.access.keys import StatedKeys, check_listener, find_key
from semsearch.app.access.stored_keys import StoredKeys
from semsearch.app.app import App
from semsearch.app.settings import ApiKey, Settings, SettingsError, encode_filter, hash_key, read_settings
from semsearch.app.shared_memory import Handover
from semsearch.aws.requests import Service
from semsearch.aws.s3.objects import PAUSE
from semsearch.commands.main import dispatch
from tests.app_fixtures import answering
from tests.function.events.event_makers import MAKERS
from tests.server.running import WAIT, eventually

OLD, NEW = "old-key-0123456789", "new-key-0123456789"
KEYS = read_settings({"API_KEYS": f"{OLD},{NEW}"})
ASK = {"text": "angry goose"}


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def closed(connect: Callable[..., httpx.Client]) -> httpx.Client:
    """A client of an app with two keys, without one of its own."""
    client = connect(settings=KEYS)
    client.get("/health")
    return client


@pytest.mark.parametrize(
    "value",  # several headers are separated by "|"
    [
        *("", "Bearer", f"Bearer {OLD}x", f"Bearer {OLD[:-1]}", f"Bearer {OLD},{NEW}", f"Bearer {OLD} {NEW}"),
        *(f"Basic {OLD}", OLD, f"Bearer{OLD}", f"Bearer {OLD.upper()}", "Bearer ż", f"Bearer {OLD}|Bearer {NEW}"),
    ],
)
def test_anything_else_is_a_401_that_says_what_to_send_and_not_what_was_sent(closed: httpx.Client, value: str) -> None:
    reply = closed.post("/similar", json=ASK, headers=[(b"authorization", each.encode()) for each in value.split("|")])
    assert (reply.status_code, reply.json()["error_type"]) == (401, "unauthorized")
    assert reply.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert reply.json()["error"].startswith(
        "authorization: is not one of this server's API keys, expected Bearer and an API key"
    )
    assert "0123456789" not in reply.text
    assert reply.headers["x-request-id"]


def test_a_request_without_the_header_is_told_that_it_is_missing(closed: httpx.Client) -> None:
    reply = closed.post("/similar", json=ASK)
    assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert reply.json()["error"].startswith("authorization: is missing, expected Bearer and an API key")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("GET", "/", 200), ("HEAD", "/", 200)),
        *(("GET", "/health", 200), ("HEAD", "/health", 200), ("POST", "/health", 401), ("DELETE", "/health", 401)),
        *(("GET", "/info", 401), ("HEAD", "/info", 401), ("GET", "/openapi.json", 401), ("GET", "/nothing", 401)),
        *(("POST", "/", 401), ("GET", "//", 401), ("GET", "/health/", 401), ("OPTIONS", "/similar", 401)),
    ],
)
def test_only_health_and_the_page_are_open(closed: httpx.Client, method: str, path: str, status: int) -> None:
    reply = closed.request(method, f"http://tests{path}")
    assert reply.status_code == status
    assert (reply.content == b"") is (method == "HEAD")


def test_a_body_is_not_read_before_the_key(closed: httpx.Client) -> None:
    assert closed.post("/similar", content=b" " * 7_000_000).status_code == 401
    assert closed.post("/similar", content=b" " * 7_000_000, headers=bearer(OLD)).status_code == 413


def test_every_key_is_compared_whichever_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def compare(digest: str, given: str) -> bool:
        compared.append(digest)
        return secrets.compare_digest(digest, given)

    monkeypatch.setattr(keys_module, "compare_digest", compare)
    for key, expected in ((OLD, KEYS.api_keys[0]), (NEW, KEYS.api_keys[1]), ("x", None)):
        compared.clear()
        scope = {"headers": [(b"authorization", b"Bearer " + key.encode())]}
        assert find_key(scope, KEYS.api_keys) is expected
        assert compared == [hash_key(OLD), hash_key(NEW)]


def test_the_log_names_a_key_and_neither_it_nor_info_has_the_key(
    closed: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert closed.post("/similar", json=ASK, headers=bearer(OLD + "x")).status_code == 401
    info = closed.get("/info", headers=bearer(OLD))
    assert info.status_code == 200
    assert closed.post("/similar", json=ASK, headers={"authorization": f"bearer {NEW}"}).status_code == 200
    records = [vars(record) for record in caplog.records if record.name == "tests"]
    assert [(line["status"], line.get("key")) for line in records] == [(401, None), (200, "key 1"), (200, "key 2")]
    assert "0123456789" not in info.text + repr(records) + repr(KEYS)


# --- the OpenAPI document


def test_the_document_says_which_routes_need_a_key(make_app: Callable[..., App]) -> None:
    token = bound_filter.set(None)  # as for a request
    document = make_app(settings=KEYS).fastapi.openapi()
    bound_filter.reset(token)
    assert document["components"]["securitySchemes"]["ApiKey"]["scheme"] == "bearer"
    assert document["security"] == [{"ApiKey": []}]
    open_to_all = {
        (path, method) for path, each in document["paths"].items() for method in each if "security" in each[method]
    }
    assert open_to_all == {("/", "get"), ("/health", "get")}
    for path in ("/similar", "/v1/embeddings"):
        responses = document["paths"][path]["post"]["responses"]
        content = responses["500"]["content"]
        headers = {"WWW-Authenticate": {"schema": {"type": "string"}}}
        assert responses["401"] == {"description": "no API key", "headers": headers, "content": content}
        assert responses["503"] == {"description": "the key's filter does not fit the bundle", "content": content}
    assert "401" not in document["paths"]["/health"]["get"]["responses"]
    assert document["paths"]["/health"]["get"]["responses"]["503"]["description"] == "unhealthy"


# --- Lambda


@pytest.fixture(scope="module")
def answer_closed(make_app: Callable[..., App]) -> Iterator[Callable[[object], dict[str, Any]]]:
    """Return what answers an event, with keys."""
    with answering(make_app(settings=KEYS)) as answer:
        yield answer


@pytest.mark.parametrize("make_event", MAKERS)
def test_an_http_event_needs_a_key(
    answer_closed: Callable[[object], dict[str, Any]], make_event: Callable[..., dict[str, Any]]
) -> None:
    event = make_event("POST", "/similar", json.dumps(ASK))
    assert answer_closed(event | {"is_direct": True})["statusCode"] == 401
    for headers, value in (("headers", f"Bearer {NEW}"), ("multiValueHeaders", [f"Bearer {NEW}"])):
        if headers in event:
            event[headers] = event[headers] | {"Authorization": value}
    assert answer_closed(event)["statusCode"] == 200


def test_a_direct_invocation_and_a_ping_need_none(answer_closed: Callable[[object], dict[str, Any]]) -> None:
    for event in (ASK, {"path": "/predict", "body": ASK}, {"path": "/info"}, {"warmer": True}):
        assert answer_closed(event)["statusCode"] == 200
    assert answer_closed({"Records": []})["statusCode"] == 400


# --- settings


@pytest.mark.parametrize("text", [f"{OLD},{NEW}", f" {OLD} {NEW}\n", f"{OLD},\n{NEW},", f"{OLD}\t{NEW}"])
def test_keys_are_separated_by_commas_or_white_space(text: str, tmp_path: Path) -> None:
    assert read_settings({"API_KEYS": text}) == KEYS
    (tmp_path / "keys").write_text(text, encoding="utf-8")
    assert read_settings({"API_KEYS_FILE": str(tmp_path / "keys")}) == KEYS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fifteen-letters", "API_KEYS: key 1 has 15 characters, expected 16 or more of ASCII; make one with `openssl"),
        (f"{OLD} short", "API_KEYS: key 2 has 5 characters, expected 16"),
        (f"{OLD},klucz-bardzo-długi", "API_KEYS: key 2 has characters that are not ASCII"),
        (" , ", "API_KEYS: there is no key; make one with"),
    ],
)
def test_a_key_that_is_easily_guessed_is_refused_and_not_shown(text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"API_KEYS": text})
    assert str(caught.value).startswith(expected)
    assert not any(key in str(caught.value) for key in text.replace(",", " ").split())


@pytest.mark.parametrize(("content", "expected"), [(None, "cannot be read (No such file"), (b"\n", "there is no key")])
def test_a_file_without_a_key_is_refused(tmp_path: Path, content: bytes | None, expected: str) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        read_settings({"API_KEYS_FILE": str(file)})
    assert str(caught.value).startswith(f"API_KEYS_FILE: {file}: {expected}")


A, B = hash_key(OLD), hash_key(NEW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (A, [ApiKey("key 1", A)]),
        (f" team-a:{A},\n{B} ", [ApiKey("team-a", A), ApiKey("key 2", B)]),
        (
            f'team-a:{A}:{{"tenant": {{"$in": ["a", "b"]}}}},team-b:{B}',
            [ApiKey("team-a", A, {"tenant": {"$in": ["a", "b"]}}), ApiKey("team-b", B)],
        ),
        (
            f"team-a:{A}:{encode_filter({'t': '?>'})},team-b:{B}:eyJ0ZW5hbnQiOiJiIn0",
            [ApiKey("team-a", A, {"t": "?>"}), ApiKey("team-b", B, {"tenant": "b"})],
        ),
        *(
            (f"a:{A}:{encode_filter({'t': 'x' * number})}", [ApiKey("a", A, {"t": "x" * number})])
            for number in range(15)
        ),
    ],
)
def test_hashes_have_names_and_filters(text: str, expected: list[ApiKey]) -> None:
    assert read_settings({"API_KEY_HASHES": text}).api_keys == tuple(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("x", f"{A}x", A[:-1], A.upper(), f"a:{A}:", f"a:{A}:{{}}", f'a:{A}:{{"t": 1', f"a:{A}:[1]", f"a:b:{A}"),
        *(f'a:{A}:{{"t": 1}}{B}', ", ", f"a:{A}:eyJ0", f"a:{A}:W10", f"a:{A}:eyJ0ZW5hbnQiOiJiIn0:"),
    ],
)
def test_a_list_of_hashes_that_is_not_clear_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(SettingsError, match=r"API_KEY_HASHES: key \d cannot be read, expected NAME:HASH") as caught:
        read_settings({"API_KEY_HASHES": text})
    assert A not in str(caught.value)


def test_the_command_makes_a_key_that_its_entry_accepts(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["key", "team-a", "--filter", '{"tenant": "a"}']) == 0
    made, secret = capsys.readouterr()
    (key,) = read_settings({"API_KEY_HASHES": made}).api_keys
    assert (key.name, key.filter) == ("team-a", {"tenant": "a"})
    assert key.sha256 == hash_key(secret.split()[-1])
    assert re.fullmatch(r"[\w:-]+\n", made)  # needs no quoting
    assert dispatch(["key", "team a"]) == 1


# --- keys that AWS keeps

SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:keys-AbCdEf"
PARAMETER = "arn:aws:ssm:eu-central-1:123456789012:parameter/keys"


class Store(BaseHTTPRequestHandler):
    """Secrets Manager and Systems Manager, as far as the keys need them."""

    content = ""
    later = ""  # what the second request and those after it get instead, if anything
    named = ""  # what the parameter names
    field = "SecretString"  # field that holds the content of a secret
    refusals: ClassVar[list[tuple[int, str]]] = []  # statuses and types of errors that precede the next content
    asked = 0

    def do_POST(self) -> None:
        Store.asked += 1
        if Store.asked > 1 and self.later:
            Store.content = self.later
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        target, service = self.headers["x-amz-target"], self.headers["authorization"].split("/")[3]
        status = 200
        if self.refusals:
            status, kind = self.refusals.pop(0)
            reply: object = {"__type": kind}
        elif (service, target, body) == ("ssm", "AmazonSSM.GetParameter", {"Name": PARAMETER, "WithDecryption": True}):
            reply = {"Parameter": {"Value": self.named or self.content}}
        else:
            assert (service, target) == ("secretsmanager", "secretsmanager.GetSecretValue")
            reply = {self.field: self.content}
            if body != {"SecretId": SECRET}:
                status, reply = 400, {"__type": "ResourceNotFoundException"}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Return the environment with a store that has OLD's hash."""
    monkeypatch.setattr(stored_keys, "PAUSE", 0.0)
    Store.content, Store.asked = f"old:{A}", 0
    Store.refusals.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "AKIA",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
        for thread in threading.enumerate():
            if thread.name == "keys":  # it reads them again, and would count in the next test
                thread.join(WAIT)
        server.shutdown()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock for the age of keys, whose only value a test can change."""
    now = [0.0]
    monkeypatch.setattr(stored_keys, "monotonic", lambda: now[0])
    return now


def names(stored: StoredKeys) -> list[str]:
    """Return the names of the keys that a request finds."""
    return [key.name for key in asyncio.run(stored.get())]


@pytest.mark.parametrize(("arn", "named"), [(SECRET, ""), (PARAMETER, ""), (PARAMETER, SECRET)])
def test_keys_from_aws_are_read_again_and_stay_if_that_fails(
    arn: str,
    named: str,
    store: dict[str, str],
    now: list[float],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Store, "named", named)
    stored = StoredKeys(Settings(api_keys_arn=arn), logging.getLogger("tests"), store)
    Store.content = f"new:{B}"
    assert names(stored) == ["old"]
    now[0] += stored_keys.SECONDS_KEPT
    assert eventually(lambda: names(stored) == ["new"])
    Store.content = " "  # all keys are removed
    now[0] += stored_keys.SECONDS_KEPT
    assert eventually(lambda: names(stored) == [])
    assert eventually(lambda: "holds no key" in str(stored.failures.error))
    assert "there are no API keys" in caplog.text
    Store.content = f"new:{B}"
    now[0] += stored_keys.SECONDS_KEPT
    assert eventually(lambda: names(stored) == ["new"])
    assert eventually(lambda: stored.failures.error is None)
    Store.content = "nothing"
    now[0] += stored_keys.SECONDS_KEPT
    assert names(stored) == ["new"]
    assert eventually(lambda: "key 1 cannot be read" in str(stored.failures.error))
    assert "API keys were not read" in caplog.text
    assert names(stored) == ["new"]


def test_a_request_after_a_long_pause_waits_for_the_keys_and_in_lambda_a_failure_is_a_metric(
    store: dict[str, str], now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    environment = store | {"AWS_LAMBDA_FUNCTION_NAME": "search"}
    stored = StoredKeys(Settings(api_keys_arn=SECRET), logging.getLogger("tests"), environment)
    Store.content = f"new:{B}"
    Store.refusals[:] = [(500, "InternalServiceError")] * 4
    for expected in ("old", "new"):
        now[0] += 2 * stored_keys.SECONDS_KEPT
        assert names(stored) == [expected]
    assert json.loads(capsys.readouterr().out)["KeysNotRead"] == [1.0]


def test_a_start_with_an_empty_store_is_reported(store: dict[str, str]) -> None:
    Store.content = ""
    stored = StoredKeys(Settings(api_keys_arn=SECRET), logging.getLogger("tests"), store)
    assert "every request gets 401" in str(stored.failures.error)


def test_a_worker_that_replaces_another_accepts_its_keys_while_aws_is_away(
    store: dict[str, str], now: list[float]
) -> None:
    first, second, third = (
        StoredKeys(Settings(api_keys_arn=SECRET), logging.getLogger("tests"), store) for _ in range(3)
    )
    handover = Handover(room=1_000)
    first.follow(handover)
    Store.content = f'new:{B}:{{"tenant": "a"}}'
    now[0] += stored_keys.SECONDS_KEPT
    assert eventually(lambda: names(first) == ["new"])
    Store.refusals[:] = [(500, "InternalServiceError")] * 100
    second.follow(handover)
    assert names(second) == ["new"]
    assert list(second.latest) == list(first.latest)  # with its filter
    handover.write(b"x" * 2_000)  # as incomplete as if the first worker had been killed while it wrote
    third.follow(handover)
    assert names(third) == []


def test_a_start_that_is_throttled_tries_four_times(store: dict[str, str]) -> None:
    Store.refusals[:] = [(400, "ThrottlingException"), (500, "InternalServerError"), (400, "ThrottlingException")]
    StoredKeys(Settings(api_keys_arn=PARAMETER), logging.getLogger("tests"), store)
    assert Store.asked == 4


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        ((400, "ThrottlingException"), "was not read (400 ThrottlingException, tried 4 times); is 127.0.0.1"),
        ((400, "com.amazonaws#AccessDeniedException"), "(400 AccessDeniedException, tried 1 times); let the role read"),
        ((400, "ParameterNotFound"), "(400 ParameterNotFound, tried 1 times); check the ARN"),
        ((403, ""), "(403 , tried 1 times); is 127.0.0.1"),
        ((200, "InternalFailure"), "(200 InternalFailure, tried 1 times); is 127.0.0.1"),
        ((499, "Closed"), "(499 Closed, tried 1 times); is 127.0.0.1"),
    ],
)
def test_a_start_without_its_keys_fails_and_says_why(
    refusal: tuple[int, str], message: str, store: dict[str, str]
) -> None:
    Store.refusals[:] = [refusal] * 4
    with pytest.raises(SettingsError, match=re.escape(message)):
        StoredKeys(Settings(api_keys_arn=PARAMETER), logging.getLogger("tests"), store)


def test_a_binary_secret_is_named(store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "field", "SecretBinary")
    expected = r"\(a reply without SecretString, tried 1 times\); store the keys as text, not as a binary secret"
    with pytest.raises(SettingsError, match=expected):
        StoredKeys(Settings(api_keys_arn=SECRET), logging.getLogger("tests"), store)


def test_a_store_that_is_down_and_an_arn_of_something_else_stop_a_start(store: dict[str, str]) -> None:
    store["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9"
    with pytest.raises(SettingsError, match=r"ConnectionRefusedError, tried 4 times\); is 127.0.0.1:9 reachable"):
        StoredKeys(Settings(api_keys_arn=PARAMETER), logging.getLogger("tests"), store)
    with pytest.raises(SettingsError, match="expected the ARN of a secret"):
        StoredKeys(Settings(api_keys_arn="keys"), logging.getLogger("tests"), store)


@pytest.mark.parametrize(
    ("arn", "host"),
    [
        (SECRET, "secretsmanager.eu-central-1.amazonaws.com"),
        (PARAMETER.replace("arn:aws:", "arn:aws-us-gov:"), "ssm.eu-central-1.amazonaws.com"),
        (PARAMETER.replace("arn:aws:", "arn:aws-cn:"), "ssm.eu-central-1.amazonaws.com.cn"),
    ],
)
def test_the_store_of_an_arn_is_asked_four_times_with_longer_pauses(
    arn: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise TimeoutError

    pauses: list[float] = []
    monkeypatch.setattr(Service, "request", refuse)
    monkeypatch.setattr(stored_keys, "time", SimpleNamespace(sleep=pauses.append))
    expected = f"(TimeoutError, tried 4 times); is {host} reachable? In a VPC it needs an interface endpoint"
    with pytest.raises(SettingsError, match=re.escape(f"API_KEYS_ARN: {arn} was not read {expected}") + "$"):
        StoredKeys(Settings(api_keys_arn=arn), logging.getLogger("tests"), {})
    assert pauses == [PAUSE, 2 * PAUSE, 4 * PAUSE]


def test_no_try_begins_when_lambda_could_stop_the_start(now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(*arguments: object) -> None:
        now[0] += stored_keys.SECONDS_TO_READ / 2
        raise TimeoutError

    monkeypatch.setattr(Service, "request", wait)
    monkeypatch.setattr(stored_keys, "PAUSE", 0.0)
    now[0] = 1_000.0
    with pytest.raises(SettingsError, match="tried 2 times"):
        StoredKeys(Settings(api_keys_arn=SECRET), logging.getLogger("tests"), {})


def test_without_credentials_the_start_fails_at_once(store: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=f"API_KEYS_ARN: {SECRET} was not read: there are no AWS credentials"):
        StoredKeys(Settings(api_keys_arn=SECRET), logging.getLogger("tests"), {})
    assert Store.asked == 0


def test_keys_of_aws_and_of_the_environment_are_valid_together(store: dict[str, str]) -> None:
    stored = StoredKeys(Settings(api_keys_arn=SECRET), logging.getLogger("tests"), store | {"API_KEYS": NEW})
    assert names(stored) == ["key 1", "old"]
    Store.content = f"new:{A}"
    stored.read_again()
    assert eventually(lambda: names(stored) == ["key 1", "new"])


def test_a_file_of_keys_is_read_again_and_a_wrong_one_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys"
    file.write_text(OLD, encoding="utf-8")
    environment = {"API_KEYS_FILE": str(file)}
    stated = StatedKeys(read_settings(environment), logging.getLogger("tests"), environment)
    file.write_text(f"{OLD}\n{NEW}", encoding="utf-8")
    stated.read_again()
    assert stated.latest == KEYS.api_keys
    file.write_text("short", encoding="utf-8")
    stated.read_again()
    assert stated.latest == KEYS.api_keys
    (line,) = caplog.records
    assert line.message == "API keys were not read"
    assert vars(line)["error"].startswith(f"API_KEYS_FILE: {file}: key 1 has 5 characters, expected 16")


RESTORED = """
import json
from snapshot_restore_py import get_after_restore
from function.handler import app
found = [[key.name for key in app.stored_keys.latest]]
for hook, arguments, named in get_after_restore():
    hook(*arguments, **named)
print(json.dumps([*found, [key.name for key in app.stored_keys.latest]]))
"""


def test_keys_are_read_again_after_a_restore(
    in_a_new_process: Callable[..., Any], bundle: Path, store: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "later", f"new:{B}")
    environment = store | {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start", "API_KEYS_ARN": SECRET}
    assert in_a_new_process(RESTORED, BUNDLE_DIR=str(bundle), **environment) == [["old"], ["new"]]


# --- the server


@pytest.mark.parametrize("address", ["0.0.0.0", "2001:db8::1"])
def test_other_machines_may_ask_only_with_keys_or_if_it_is_wanted(address: str) -> None:
    with pytest.raises(
        SettingsError, match="other machines could send requests, and there are no API keys; set API_KEYS, or"
    ):
        check_listener(address, Settings(), is_open=False)
    check_listener(address, Settings(), is_open=True)
    check_listener(address, KEYS, is_open=False)
    check_listener("127.0.0.1", Settings(), is_open=False)
