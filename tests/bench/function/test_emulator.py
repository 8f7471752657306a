"""The events that measurements send."""

import json

from bench.function.emulator import compute, sample_event
from function.events import HttpApi, format_of
from tests.project import ROOT

SAMPLE = ROOT / "deploy" / "events" / "http-api.json"


def test_an_event_is_the_sample_but_for_its_path_and_body() -> None:
    event, sample = sample_event("/predict", {"text": "Zürich"}), json.loads(SAMPLE.read_text(encoding="utf-8"))
    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/predict"
    assert json.loads(event["body"]) == {"text": "Zürich"}
    assert event["headers"]["content-length"] == str(len(event["body"].encode()))
    for changed in (event, sample):
        for key in ("rawPath", "routeKey", "body"):
            del changed[key]
        del changed["headers"]["content-length"], changed["requestContext"]["routeKey"]
        del changed["requestContext"]["http"]["path"]
    assert event == sample


def test_an_event_without_a_body_is_a_get() -> None:
    event = sample_event("/info")
    assert event["requestContext"]["http"]["method"] == "GET"
    assert event["body"] is None
    assert format_of(event) is HttpApi


def test_a_started_millisecond_is_billed_whole() -> None:
    assert compute(2.1, 1024) == compute(3.0, 1024) == 0.003 * 0.0000166667
