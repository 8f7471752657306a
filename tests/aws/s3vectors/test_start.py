"""What a start with a corpus in S3 Vectors imports, and that one without it imports none of that."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semsearch.publishing.s3vectors import Sent
from tests.function.events.event_makers import http_api
from tests.stand_ins.s3vectors import StandIn

OURS = {
    "semsearch.aws.s3vectors",
    "semsearch.aws.s3vectors.client",
    "semsearch.aws.s3vectors.index",
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


def test_a_start_that_keeps_its_texts_connects_and_its_first_request_imports_nothing(
    start: Start, bundle: Path, send: Callable[..., Sent], tmp_path: Path
) -> None:
    send(bundle, "kept-stories", tmp_path / "kept", keeps_texts=True)
    seen = start(tmp_path / "kept")
    assert (seen["status"], len(json.loads(seen["body"])["results"])) == (200, 5)
    assert seen["later"] == []
    pages = -(-200 // StandIn.page)  # hybrid search ranks all of the 200 texts
    assert len(StandIn.queries) == 2 * pages


def test_a_start_while_s3_vectors_is_busy_answers_the_routes_that_do_not_ask_it(start: Start, published: Path) -> None:
    StandIn.busy = 1
    assert start(published)["status"] == 200
