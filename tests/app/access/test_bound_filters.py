"""A key whose filter does not fit the bundle is refused alone, and the operator hears of it."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.app.access.bound_filters import BoundFilters, misfit
from semsearch.app.app import App
from semsearch.app.settings import IN_LAMBDA, ApiKey, Settings, SettingsError, hash_key
from semsearch.engine.bundle import Manifest, VectorsInfo
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import load
from tests.world import write_bundle

GOOD, BAD = "key-of-team-a-0123456789", "key-of-team-b-0123456789"
FITTING = ApiKey("team-a", hash_key(GOOD), {"chapter": 15})
KEYS = (FITTING, ApiKey("team-b", hash_key(BAD), {"tenannt": {"$eq": "b"}}))
REASON = "the filter of team-b: filter: expected the name of a column, $and, $or or $not, found 'tenannt'"


def errors(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return the fields of the lines of errors."""
    return [vars(record) for record in caplog.records if record.name == "tests" and record.levelname == "ERROR"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/similar", {"text": "goose"}),
        ("POST", "/predict", {"text": "goose"}),
        ("POST", "/v1/embeddings", {"input": "goose", "model": "any"}),
        ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ("GET", "/info", None),
        ("GET", "/openapi.json", None),
    ],
)
def test_a_key_with_a_filter_that_does_not_fit_is_refused_alone_with_an_error_in_the_log(
    connect: Callable[..., httpx.Client],
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    body: dict[str, Any] | None,
) -> None:
    client = connect(settings=Settings(api_keys=KEYS))
    (at_start,) = errors(caplog)
    assert (at_start["message"], at_start["keys"]) == ("API keys are unusable", 1)
    assert at_start["error"].startswith(REASON)
    caplog.clear()
    assert client.request(method, path, json=body, headers={"authorization": f"Bearer {GOOD}"}).status_code == 200
    assert errors(caplog) == []
    reply = client.request(method, path, json=body, headers={"authorization": f"Bearer {BAD}"})
    assert reply.status_code == 503
    assert "key: its filter does not fit this bundle; ask the operator of this server" in reply.text
    assert "chapter" not in reply.text
    (line,) = errors(caplog)
    assert (line["message"], line["status"], line["key"]) == ("request", 503, "team-b")
    assert line["error"].startswith(REASON)


def test_info_names_unusable_keys_to_callers_that_find_all_texts(connect: Callable[..., httpx.Client]) -> None:
    client = connect(settings=Settings(api_keys=(*KEYS, ApiKey("all", hash_key(GOOD + "x")))))

    def shown(key: str) -> Any:
        return client.get("/info", headers={"authorization": f"Bearer {key}"}).json().get("keys")

    assert [reason.partition(":")[0] for reason in shown(GOOD + "x")["unusable"]] == ["the filter of team-b"]
    assert shown(GOOD) is None


def test_filters_are_checked_again_when_the_bundle_or_the_keys_have_changed(
    bundle: Path,
    corpus: Any,
    embedder: Embedder,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    renamed = {"kapitel" if name == "chapter" else name: kind for name, kind in corpus.columns.items()}
    metadata = [text.replace('"chapter"', '"kapitel"') for text in corpus.metadata]
    newer = write_bundle(tmp_path / "newer", replace(corpus, metadata=metadata, columns=renamed))
    current = [load(bundle, embedder)]
    filters = BoundFilters(lambda: current[0], Settings(), logging.getLogger("tests"), {IN_LAMBDA: "search"})
    keys = [FITTING]

    def sent() -> list[float]:
        """Return the values of the metric since the last call."""
        return [json.loads(line)["KeysUnusable"][0] for line in capsys.readouterr().out.splitlines()]

    assert (filters.reason_against(FITTING, keys), sent(), errors(caplog)) == (None, [], [])
    current[0] = load(newer, embedder)
    for _ in range(2):  # reported once
        assert "found 'chapter'" in str(filters.reason_against(FITTING, keys))
    assert (sent(), len(errors(caplog))) == ([1.0], 1)
    keys = [*keys, KEYS[1]]  # AWS was asked again
    assert "found 'tenannt'" in str(filters.reason_against(KEYS[1], keys))
    assert (sent(), len(errors(caplog))) == ([2.0], 2)
    current[0] = load(bundle, embedder)
    assert filters.reason_against(FITTING, keys) is None


def test_no_filter_fits_a_bundle_whose_texts_are_in_s3_vectors(manifest: Manifest) -> None:
    vectors = VectorsInfo("bucket", "index", "eu-central-1", "0" * 16)
    remote = replace(manifest, corpus_or_none=replace(manifest.corpus, vectors=vectors))
    assert "the texts are in S3 Vectors, expected in the bundle" in str(misfit({"id": "story-001"}, remote))
    assert misfit({"id": "story-001"}, manifest) is None


def test_a_filter_of_tokens_that_does_not_fit_ends_the_start(make_app: Callable[..., App]) -> None:
    with pytest.raises(SettingsError, match=r"JWT_FILTER: filter.chapter.\$eq: expected .*; name a column of the bun"):
        make_app(settings=Settings(jwt_filter="sub=chapter"))
