"""The OpenAPI document tells the truth: schemathesis sends every route what it allows and what it does not.

All its checks are on: no 5xx, only documented statuses, content types and bodies, valid requests accepted and invalid
ones refused, 405 with Allow for other methods, and so on. The app is called in process and through Lambda's
events.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import EngineFinished, FatalError, NonFatalError, ScenarioFinished
from schemathesis.engine.run import PhaseName
from schemathesis.specs.openapi.schemas import OpenApiSchema

from semsearch.app.app import App
from semsearch.app.routes.schemas import describe_app
from semsearch.engine.metadata.filters import OPERATORS
from tests.function.events.through_events import ThroughEvents
from tests.world import STORY_COLUMNS


def configured(examples: int) -> SchemathesisConfig:
    """Return the settings of a run that takes this many examples of each kind."""
    generation = {"max-examples": examples, "deterministic": True, "database": "none"}
    # a cache would be written into the working folder
    # they refuse more dimensions than the model has and, with "truncate": false, a text that is too long for it; no
    # schema can say how long that is
    refused = {
        "include-name": ["POST /embed", "POST /", "POST /rerank", "POST /v1/embeddings"],
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 400, 422]}},
    }
    return SchemathesisConfig.from_dict(
        {"cache": {"enabled": False}, "generation": generation, "operations": [refused]}
    )


@pytest.fixture
def through_events(make_app: Callable[..., App], rerank_bundle: Path) -> Iterator[ThroughEvents]:
    app = ThroughEvents(make_app(bundle=rerank_bundle))
    yield app
    app.close()


def check_conformance(schema: OpenApiSchema) -> None:
    """Run schemathesis over all routes of a document; fail with everything that it found."""
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
    operations = {
        f"{method.upper()} {path}" for path, methods in schema.raw_schema["paths"].items() for method in methods
    }
    assert asked[PhaseName.COVERAGE] == asked[PhaseName.FUZZING] == operations


def test_the_app_answers_as_its_document_says(make_app: Callable[..., App], rerank_bundle: Path) -> None:
    app = make_app(bundle=rerank_bundle)
    check_conformance(schemathesis.openapi.from_asgi("/openapi.json", app, config=configured(15)))


def test_lambda_answers_as_the_document_says(through_events: ThroughEvents) -> None:
    check_conformance(schemathesis.openapi.from_asgi("/openapi.json", through_events, config=configured(15)))


def test_the_routes_of_a_reranker_are_described_with_one(make_app: Callable[..., App], rerank_bundle: Path) -> None:
    paths = {"/rerank", "/v1/rerank", "/v2/rerank"}
    assert paths <= make_app(bundle=rerank_bundle).fastapi.openapi()["paths"].keys()
    app = make_app().fastapi
    assert not paths & app.openapi()["paths"].keys()
    document = describe_app(app, {}, has_reranker=True)  # as after a switch to a bundle with one
    assert paths <= document["paths"].keys()


def test_the_document_says_which_columns_a_filter_may_name_and_what_a_result_may_leave_out(
    make_app: Callable[..., App],
) -> None:
    schemas = make_app().fastapi.openapi()["components"]["schemas"]
    assert schemas["Filter"]["properties"].keys() == STORY_COLUMNS.keys() | {"id", "$and", "$or"}
    assert schemas["Filter"]["properties"]["chapter"]["anyOf"][0] == {"type": "number"}
    assert schemas["NumberOperators"]["properties"].keys() == set(OPERATORS) - {"$startsWith"}
    assert schemas["StringOperators"]["properties"].keys() == set(OPERATORS)
    assert schemas["ListOperators"]["properties"]["$startsWith"] == {"type": "string"}
    assert schemas["SimilarRequest"]["properties"]["filter"]["anyOf"][0] == {"$ref": "#/components/schemas/Filter"}
    assert schemas["FacetRange"]["properties"].keys() == {"from", "to", "count"}
    always = set(schemas["Result"]["required"])
    assert schemas["Result"]["properties"].keys() - always == {"scores", "text", "metadata", "highlights", "snippet"}
