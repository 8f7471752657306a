"""Lambda lets no reply of more than 6 MB through: the caller is told what to ask for instead, before it is a 5xx."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from semsearch.app.settings import Settings

REQUESTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "similar": ("/similar", {"text": "ferry", "num_results": 7}, "num_results: the reply with 7 is {}; ask for fewer"),
    "similar, one": (
        "/similar",
        {"text": "goose", "num_results": 1},
        "num_results: the reply with 1 is {}; split the long texts of the corpus",
    ),
    "predict": ("/predict", {"text": ["ferry", "key"]}, "text: the reply to 2 texts is {}; send fewer"),
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_reply_at_the_limit_is_given_and_one_of_a_byte_more_refused(
    client: httpx.Client, connect: Callable[..., httpx.Client], kind: str
) -> None:
    path, body, message = REQUESTS[kind]
    whole = client.post(path, json=body)
    limit = len(json.dumps(whole.text))  # as a string of JSON in ASCII, the longest form of Lambda's runtimes
    assert limit > len(whole.content)
    assert connect(settings=Settings(max_reply_bytes=limit)).post(path, json=body).content == whole.content
    refused = connect(settings=Settings(max_reply_bytes=limit - 1)).post(path, json=body)
    error = message.format(f"{limit} bytes, at most {limit - 1}")
    assert (refused.status_code, refused.json()) == (413, {"error": error, "error_type": "too_large"})
