"""The OpenAPI document tells the truth: schemathesis sends every route what it allows and what it does not.

All its checks are on: no 5xx, only documented statuses, content types and bodies, valid requests accepted and invalid
ones refused, 405 with Allow for other methods, and so on. The app is asked through Lambda's
events and as a running server.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType

import pytest
import schemathesis
from fastapi import FastAPI
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import EngineFinished, FatalError, NonFatalError, ScenarioFinished
from schemathesis.engine.run import PhaseName
from schemathesis.specs.openapi.schemas import OpenApiSchema

from function.engine.metadata.filters import OPERATORS
from function.routes.openapi_document import describe_app
from tests.conftest import STORY_COLUMNS
from tests.function.events.through_events import ThroughEvents
from tests.function.server.running import address_of, started


def configured(examples: int, headers: Mapping[str, str] = MappingProxyType({})) -> SchemathesisConfig:
    """Return the settings of a run that takes this many examples of each kind, each sent with these headers."""
    generation = {"max-examples": examples, "deterministic": True, "database": "none"}
    # a cache would be written into the working folder
    # with "truncate": false they refuse a text that is too long for the model, and no schema can say how long that is
    refused = {
        "include-name": ["POST /embed", "POST /", "POST /rerank"],
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 422]}},
    }
    return SchemathesisConfig.from_dict(
        {"cache": {"enabled": False}, "generation": generation, "headers": dict(headers), "operations": [refused]}
    )


@pytest.fixture
def through_events(make_app: Callable[..., FastAPI], rerank_bundle: Path) -> Iterator[ThroughEvents]:
    app = ThroughEvents(make_app(bundle=rerank_bundle))
    yield app
    app.close()


def check_conformance(schema: OpenApiSchema) -> None:
    """Run schemathesis over all routes of a document; fail with everything that it found."""
    operations = {f"{method.upper()} {path}" for path, each in schema.raw_schema["paths"].items() for method in each}
    found: list[str] = []
    asked: dict[PhaseName, set[str | None]] = {}
    for event in from_schema(schema).execute():
        if isinstance(event, ScenarioFinished):
            if event.recorder.cases:
                asked.setdefault(event.phase, set()).add(event.label)
            for checks in event.recorder.checks.values():
                failures = [check.failure_info for check in checks if check.failure_info is not None]
                found += [f"{event.label}: {failure.failure}\n{failure.code_sample}" for failure in failures]
        elif isinstance(event, NonFatalError | FatalError):
            found.append(str(event))
        elif isinstance(event, EngineFinished):
            found += [str(failure) for failure in event.failures]
    assert not found, "\n\n".join(found)
    assert asked[PhaseName.COVERAGE] == asked[PhaseName.FUZZING] == operations


def test_lambda_answers_as_the_document_says(through_events: ThroughEvents) -> None:
    check_conformance(schemathesis.openapi.from_asgi("/openapi.json", through_events, config=configured(15)))


def test_the_server_answers_as_the_document_says(rerank_bundle: Path) -> None:
    with started(rerank_bundle) as server, ThreadPoolExecutor(1) as reader:
        url = f"{address_of(server)}/openapi.json"
        assert server.stdout is not None
        reader.submit(server.stdout.read)  # a pipe that nobody reads would stop the server
        try:
            schema = schemathesis.openapi.from_url(url, config=configured(5))
            check_conformance(schema)
        finally:
            server.kill()


def test_the_routes_of_a_reranker_are_described_with_one(make_app: Callable[..., FastAPI], rerank_bundle: Path) -> None:
    paths = {"/rerank", "/v1/rerank", "/v2/rerank"}
    assert paths <= make_app(bundle=rerank_bundle).openapi()["paths"].keys()
    app = make_app()
    assert not paths & app.openapi()["paths"].keys()
    document = describe_app(app, {}, has_reranker=True)  # as after a switch to a bundle with one
    assert paths <= document["paths"].keys()


def test_the_document_says_which_columns_a_filter_may_name_and_what_a_result_may_leave_out(
    make_app: Callable[..., FastAPI],
) -> None:
    schemas = make_app().openapi()["components"]["schemas"]
    assert schemas["Filter"]["properties"].keys() == STORY_COLUMNS.keys() | {"id", "$and", "$or"}
    assert schemas["Filter"]["properties"]["chapter"]["anyOf"][0] == {"type": "number"}
    assert schemas["NumberOperators"]["properties"].keys() == set(OPERATORS) - {"$startsWith"}
    assert schemas["StringOperators"]["properties"].keys() == set(OPERATORS)
    assert schemas["ListOperators"]["properties"]["$startsWith"] == {"type": "string"}
    assert schemas["SimilarRequest"]["properties"]["filter"]["anyOf"][0] == {"$ref": "#/components/schemas/Filter"}
    always = set(schemas["Result"]["required"])
    assert schemas["Result"]["properties"].keys() - always == {"scores", "text", "metadata", "highlights", "snippet"}
