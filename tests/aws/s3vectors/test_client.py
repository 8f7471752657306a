"""A start with a corpus in S3 Vectors, and what the client does when S3 Vectors does not answer as it should."""

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from function.startup import warm_up
from semsearch.aws.s3vectors import client as client_module
from semsearch.aws.s3vectors.client import Page, ServiceFilter, VectorsClient
from semsearch.engine.bundle import VectorsInfo
from semsearch.engine.errors import BackendError
from semsearch.engine.loading import load
from semsearch.engine.passages import Passage
from tests.app_fixtures import connect_app
from tests.function.events.event_makers import http_api
from tests.stand_ins.fixtures import BUCKET, CREDENTIALS
from tests.stand_ins.http import Handler, listening
from tests.stand_ins.s3vectors import StandIn
from tests.world import DIM

INFO = VectorsInfo("bucket", "index", "eu-central-1", "abc")
QUERY = np.full(DIM, DIM**-0.5, np.float32)
HIT = {"key": "abc-7", "distance": 0.25, "metadata": {"_text": "a text", "_id": "seven", "_metadata": '{"year": 2024}'}}
FOUND = json.dumps({"vectors": [HIT], "distanceMetric": "cosine"}).encode()

Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Server:
    """Answers each request with the next reply of a list, the last one for ever; None closes the connection."""

    address: str = ""
    replies: list[Reply | None] = field(default_factory=lambda: [(200, {}, FOUND)])
    requests: list[tuple[dict[str, str], Any]] = field(default_factory=list)
    connections: int = 0


@pytest.fixture
def faulty() -> Iterator[Server]:
    server = Server()

    class Answer(Handler):
        def setup(self) -> None:
            server.connections += 1
            super().setup()

        def answer(self) -> None:
            server.requests.append((dict(self.headers), json.loads(self.body())))
            reply = server.replies.pop(0) if len(server.replies) > 1 else server.replies[0]
            if reply is None:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self.reply(*reply)
            if "content-length" in reply[1]:
                self.close_connection = True  # shorter than promised

    with listening(Answer) as server.address:
        yield server


@pytest.fixture
def asking(faulty: Server) -> VectorsClient:
    return VectorsClient(INFO, CREDENTIALS | {"AWS_ENDPOINT_URL_S3VECTORS": faulty.address})


def query(client: VectorsClient, top_k: int = 1, condition: ServiceFilter | None = None) -> Page:
    (page,) = client.nearest(QUERY, top_k, condition)
    return page


def test_a_hit_has_its_row_its_id_its_cosine_and_its_metadata(asking: VectorsClient, faulty: Server) -> None:
    (hit,) = query(asking, 5, {"year": 2024})
    assert hit == (7, 0.75, Passage("seven", "a text", {"year": 2024}))
    headers, question = faulty.requests[0]
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=testing/")
    assert question["filter"] == {"year": 2024}
    assert (question["vectorBucketName"], question["indexName"], question["topK"]) == ("bucket", "index", 5)
    assert np.array_equal(np.float32(question["queryVector"]["float32"]), QUERY)


def test_one_connection_serves_many_queries(asking: VectorsClient, faulty: Server) -> None:
    for _ in range(3):
        query(asking)
    assert (len(faulty.requests), faulty.connections) == (3, 1)


def test_a_connection_that_was_closed_meanwhile_is_replaced(asking: VectorsClient, faulty: Server) -> None:
    faulty.replies = [(200, {}, FOUND), None, (200, {}, FOUND)]
    query(asking)
    assert len(query(asking)) == 1
    assert faulty.connections == 2


def test_a_query_whose_new_connection_is_closed_too_is_not_sent_again(asking: VectorsClient, faulty: Server) -> None:
    faulty.replies = [None]
    with pytest.raises(BackendError, match="RemoteDisconnected"):
        query(asking)
    assert len(faulty.requests) == 2


FAULTS: list[tuple[Reply | None, int | None, str]] = [
    ((429, {"x-amzn-errortype": "TooManyRequestsException:http://x"}, b'{"message": "Slow down"}'), 1, "429 TooMany"),
    ((403, {"x-amzn-errortype": "AccessDeniedException"}, b'{"message": "No"}'), None, "allow s3vectors:QueryVectors"),
    ((200, {}, b"<html>login</html>"), None, "expected vectors"),
    ((200, {}, b'{"vectors": [{"key": "other-7", "distance": 0, "metadata": {}}]}'), None, "index of its own"),
    ((200, {"content-length": "9999"}, FOUND), None, "cannot be reached (IncompleteRead"),
    (None, None, "cannot be reached (RemoteDisconnected"),
]


@pytest.mark.parametrize(("reply", "seconds", "expected"), FAULTS)
def test_each_fault_is_an_error_that_names_the_index_and_says_why(
    asking: VectorsClient, faulty: Server, reply: Reply | None, seconds: int | None, expected: str
) -> None:
    faulty.replies = [reply]
    with pytest.raises(BackendError) as error:
        query(asking)
    assert str(error.value).startswith("S3 Vectors bucket/index: ")
    assert expected in str(error.value)
    assert error.value.seconds == seconds
    faulty.replies = [(200, {}, FOUND)]
    assert len(query(asking)) == 1  # and the next query is answered


def test_an_answer_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RESPONSE_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asking = VectorsClient(INFO, CREDENTIALS | {"AWS_ENDPOINT_URL": url})
        with pytest.raises(BackendError, match="TimeoutError"):
            query(asking)


@pytest.mark.parametrize(
    ("reply", "status", "kind", "retry_after"),
    [(FAULTS[0][0], 429, "overloaded", "1"), (None, 502, "backend", None)],
)
def test_similar_says_that_the_backend_failed(
    published: Path,
    faulty: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    reply: Reply | None,
    status: int,
    kind: str,
    retry_after: str | None,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3VECTORS", faulty.address)
    faulty.replies = [reply]
    app = connect_app(load(published))
    found = app.post("/similar", json={"text": "goose"})
    assert (found.status_code, found.json()["error_type"]) == (status, kind)
    assert found.headers.get("retry-after") == retry_after
    assert found.json()["error"].startswith(f"S3 Vectors {BUCKET}/stories: ")
    assert app.post("/predict", json={"text": "goose"}).status_code == 200
    if status >= 500:
        (line,) = [each for each in caplog.records if each.levelname == "ERROR"]
        assert (line.__dict__["status"], line.__dict__["error"]) == (status, found.json()["error"])
    params = {"name": "search_stories", "arguments": {"text": "x"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = app.post("/mcp", json=call).json()
    assert answer["result"]["isError"]
    assert answer["result"]["content"][0]["text"].startswith("S3 Vectors")


OURS = {
    "semsearch.aws.s3vectors",
    "semsearch.aws.s3vectors.client",
    "semsearch.search.s3vectors",
    "semsearch.aws.requests",
}
SCRIPT = f"""
import json, sys
import function.handler
before = set(sys.modules)
reply = function.handler.handler({http_api("POST", "/similar", '{"text": "angry goose"}')!r}, None)
print(json.dumps({{"status": reply["statusCode"], "body": reply["body"], "modules": sorted(sys.modules),
                  "later": sorted(set(sys.modules) - before)}}))
"""

Start = Callable[[Path], dict[str, Any]]


@pytest.fixture
def start(server: str, in_a_new_process: Callable[..., dict[str, Any]]) -> Start:
    """Return what starts the handler over a bundle in a new process, sends it a request and tells what was seen."""
    return lambda bundle: in_a_new_process(SCRIPT, BUNDLE_DIR=str(bundle))


def test_a_start_without_s3_vectors_imports_nothing_of_it(start: Start, bundle: Path) -> None:
    assert not OURS & set(start(bundle)["modules"])


def test_a_start_with_it_imports_no_boto3_and_its_first_request_nothing(start: Start, published: Path) -> None:
    seen = start(published)
    assert (seen["status"], len(json.loads(seen["body"])["results"])) == (200, 5)
    assert set(seen["modules"]) >= OURS
    assert not {"boto3", "botocore", "urllib3", "requests", "urllib.request"} & set(seen["modules"])
    assert seen["later"] == []
    assert len(StandIn.queries) == 2  # one of them while starting, so that the connection is there


@pytest.mark.parametrize("status", [429, 502])
def test_a_start_does_not_fail_while_s3_vectors_does_not_answer(status: int) -> None:
    warm_up(lambda event, context: {"statusCode": status})


@pytest.mark.parametrize(
    ("status", "advice", "seconds"),
    [
        (429, "try again in 1 s", 1),
        (503, "try again in 1 s", 1),
        (403, "allow s3vectors:QueryVectors and s3vectors:GetVectors on the index", None),
        (404, "publish the bundle again, or set the region of the index", None),
        (430, "publish the bundle again, or set the region of the index", None),
        (504, "publish the bundle again, or set the region of the index", None),
    ],
)
def test_a_status_says_what_to_do(
    asking: VectorsClient, faulty: Server, status: int, advice: str, seconds: int | None
) -> None:
    faulty.replies = [(status, {"x-amzn-errortype": "Odd"}, b"x" * 301)]
    with pytest.raises(BackendError) as raised:
        query(asking)
    assert str(raised.value) == f"S3 Vectors bucket/index: {status} Odd: {'x' * 300}; {advice}"
    assert raised.value.seconds == seconds
    faulty.replies = [(status, {}, b"")]
    with pytest.raises(BackendError, match=f"^S3 Vectors bucket/index: {status} : ; "):
        query(asking)


def test_pages_are_asked_for_until_there_are_no_more_and_no_empty_filter_is_sent(
    asking: VectorsClient, faulty: Server
) -> None:
    bare = {"key": "abc-3", "distance": 1.00000049, "metadata": {"_text": "t", "_id": "i"}}
    pages = [{"vectors": [HIT], "nextToken": "more"}, {"vectors": [bare, HIT]}]
    faulty.replies = [(200, {}, json.dumps(page).encode()) for page in pages]
    found = list(asking.nearest(QUERY, 3, {}))
    assert [[row for row, _, _ in page] for page in found] == [[7], [3, 7]]
    assert found[1][0] == (3, 0, Passage("i", "t", {}))
    first, second = (question for _, question in faulty.requests)
    assert first == {
        "vectorBucketName": "bucket",
        "indexName": "index",
        "topK": 3,
        "queryVector": {"float32": QUERY.tolist()},
        "returnDistance": True,
        "returnMetadata": True,
    }
    assert second == first | {"nextToken": "more"}


def test_an_index_without_credentials_is_an_error_that_names_it() -> None:
    with pytest.raises(BackendError, match=r"^S3 Vectors bucket/index: there are no AWS credentials: "):
        query(VectorsClient(INFO, {}))
