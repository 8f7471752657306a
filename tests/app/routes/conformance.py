"""Schemathesis over all routes: it sends what a document allows and what it does not, and checks each reply."""

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import EngineFinished, FatalError, NonFatalError, ScenarioFinished
from schemathesis.engine.run import PhaseName

from tests.function.events.through_events import ThroughEvents


def configured(examples: int) -> SchemathesisConfig:
    """Return the settings of a run that takes this many examples of each kind."""
    generation = {"max-examples": examples, "deterministic": True, "database": "none"}
    # a cache would be written into the working folder
    # with "truncate": false, they refuse a text that is too long for the model; no schema can say how long that is
    refused = {
        "include-name": ["POST /embed", "POST /", "POST /rerank"],
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 400, 422]}},
    }
    # schemathesis would take the model's name from a reply, but it sends no value with a slash in a path
    named = {
        "include-name": "GET /v1/models/{name}",
        "phases": {"fuzzing": {"extra-data-sources": {"responses": False}}},
    }
    return SchemathesisConfig.from_dict(
        {"cache": {"enabled": False}, "generation": generation, "operations": [refused, named]}
    )


def check_conformance(app: ThroughEvents, examples: int) -> None:
    """Run schemathesis over all routes with this many examples of each kind; fail with everything that it found."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=configured(examples))
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
