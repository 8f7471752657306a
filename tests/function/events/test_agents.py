"""Actions of Bedrock agents: operations of an OpenAPI schema, and functions.

Powertools for AWS Lambda reads and answers such events too, so it says what an event contains and what a reply looks
like.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from aws_lambda_powertools.event_handler import BedrockAgentFunctionResolver, BedrockAgentResolver
from aws_lambda_powertools.event_handler.bedrock_agent_function import BedrockFunctionResponse
from aws_lambda_powertools.utilities.data_classes import BedrockAgentEvent
from aws_lambda_powertools.utilities.typing import LambdaContext

from semsearch.app.app import App
from semsearch.app.settings import ApiKey, Settings, hash_key
from semsearch.engine.embedder import Embedder
from tests.app_fixtures import BrokenEmbedder, answering
from tests.function.events.event_makers import MAKERS, Event, agent_function, agent_operation

Answer = Callable[[object], dict[str, Any]]
GOOSE: Event = {
    **{"text": "goose", "num_results": 2, "min_score": -0.5, "exact": True, "include": ["text"]},
    "filter": {"chapter": {"$lt": 12}},
}


def result(reply: Event) -> tuple[int, str]:
    """Return the status and the body of an operation's reply."""
    response = reply["response"]
    (content,) = response["responseBody"].values()
    return response["httpStatusCode"], content["body"]


OPERATIONS: list[tuple[Event, tuple[str, str, Event | None]]] = [
    (agent_operation("POST", "/similar", GOOSE), ("POST", "/similar", GOOSE)),
    (
        agent_operation("POST", "/predict", {"text": ["goose", "ferry"]}),
        ("POST", "/predict", {"text": ["goose", "ferry"]}),
    ),
    (agent_operation("GET", "/health"), ("GET", "/health", None)),
    (agent_operation("GET", "/passages/{id}", parameters={"id": "story-007"}), ("GET", "/passages/story-007", None)),
    (
        agent_operation("GET", "/passages/{id}", parameters={"before": 1, "id": "story-007", "after": 2}),
        ("GET", "/passages/story-007?before=1&after=2", None),
    ),
    (agent_operation("GET", "/nothing"), ("GET", "/nothing", None)),
    (agent_operation("POST", "/similar"), ("POST", "/similar", None)),
    (
        agent_operation("POST", "/similar", {"text": "goose", "num_results": 1000}),
        ("POST", "/similar", {"text": "goose", "num_results": 1000}),
    ),
]


@pytest.mark.parametrize(("event", "request_"), OPERATIONS)
def test_an_operation_is_answered_like_its_http_request(
    answer: Answer, client: httpx.Client, event: Event, request_: tuple[str, str, Event | None]
) -> None:
    method, path, body = request_
    expected = client.request(method, path, json=body)
    assert result(answer(event)) == (expected.status_code, expected.text)


def test_the_parts_of_an_operation_are_those_that_powertools_reads(client: httpx.Client, answer: Answer) -> None:
    event = agent_operation("POST", "/similar", {"text": "an angry goose", "mode": "keyword"})
    read = BedrockAgentEvent(event)
    expected = client.request(read.http_method, read.path, json=read.json_body)
    assert result(answer(event)) == (200, expected.text)


def test_a_reply_to_an_operation_has_the_form_of_powertools(answer: Answer) -> None:
    app, context = BedrockAgentResolver(enable_validation=False), LambdaContext()

    @app.get("/health", description="Whether it works")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    event = agent_operation("GET", "/health")
    attributes = {name: event[name] for name in ("sessionAttributes", "promptSessionAttributes")}
    assert answer(event) == app.resolve(event, context) | attributes


def test_a_function_is_the_post_route_of_its_name_and_its_reply_has_the_form_of_powertools(
    answer: Answer, client: httpx.Client
) -> None:
    app = BedrockAgentFunctionResolver(serializer=str)

    @app.tool(name="similar")
    def similar(text: str, num_results: int) -> str:
        return client.post("/similar", json={"text": text, "num_results": num_results}).text

    event = agent_function("similar", {"text": "goose", "num_results": 2})
    assert answer(event) == app.resolve(event, {})


@pytest.mark.parametrize(("function", "parameters"), [("similar", {"num_results": 2, "txt": "goose"}), ("nothing", {})])
def test_an_agent_that_sends_a_wrong_value_is_asked_again(answer: Answer, function: str, parameters: Event) -> None:
    outcome = answer(agent_function(function, parameters))["response"]["functionResponse"]
    assert outcome["responseState"] == "REPROMPT"
    assert json.loads(outcome["responseBody"]["TEXT"]["body"]).keys() == {"error", "error_type"}


def test_an_agent_that_sends_an_unreadable_action_is_asked_again(answer: Answer) -> None:
    outcome = answer(agent_function("similar", {}) | {"parameters": 3})["response"]["functionResponse"]
    assert outcome["responseState"] == "REPROMPT"
    assert json.loads(outcome["responseBody"]["TEXT"]["body"])["error_type"] == "bad_request"  # a 400, the least of all


def test_a_search_that_fails_is_a_failure_of_the_action(make_app: Callable[..., App], embedder: Embedder) -> None:
    with answering(make_app(embedder=BrokenEmbedder(embedder))) as answer:
        reply = answer(agent_function("similar", {"text": "goose"}))
        assert reply["response"]["functionResponse"]["responseState"] == "FAILURE"
        assert result(answer(agent_operation("POST", "/similar", {"text": "goose"})))[0] == 500
    BedrockFunctionResponse(response_state="FAILURE")  # Powertools refuses a state that Bedrock does not know
    BedrockFunctionResponse(response_state="REPROMPT")


def test_a_value_that_is_not_of_its_type_is_a_text(answer: Answer) -> None:
    event = agent_function("similar", {"text": "goose", "num_results": 2})
    event["parameters"][1]["value"] = "two"
    body = answer(event)["response"]["functionResponse"]["responseBody"]["TEXT"]["body"]
    assert "num_results: " in body
    assert "found 'two'" in body


@pytest.mark.parametrize(
    "changes", [{"parameters": "goose"}, {"requestBody": "goose"}, {"apiPath": 5}, {"httpMethod": None}]
)
def test_an_action_with_a_field_of_the_wrong_type_is_refused(answer: Answer, changes: Event) -> None:
    status, body = result(answer(agent_operation("POST", "/similar", {"text": "goose"}) | changes))
    assert status == 400
    assert json.loads(body)["error"].startswith("event: found [")


@pytest.fixture(scope="module")
def answer_closed(make_app: Callable[..., App]) -> Iterator[Answer]:
    """Return what answers an event of a function whose callers need a key."""
    keys = (ApiKey("a", hash_key("0123456789abcdef")),)
    with answering(make_app(settings=Settings(api_keys=keys))) as answer:
        yield answer


ACTIONS = [agent_operation("POST", "/similar", {"text": "goose"}), agent_function("similar", {"text": "goose"})]


def test_an_agent_needs_no_key_because_it_has_permission_to_invoke_the_function(answer_closed: Answer) -> None:
    operation, function = ACTIONS
    assert result(answer_closed(operation))[0] == 200
    assert "responseState" not in answer_closed(function)["response"]["functionResponse"]


@pytest.mark.parametrize("make", MAKERS, ids=[make.__name__ for make in MAKERS])
@pytest.mark.parametrize("action", ACTIONS, ids=["operation", "function"])
def test_no_http_request_becomes_an_action_by_its_body_or_by_further_fields(
    answer_closed: Answer, make: Callable[..., Event], action: Event
) -> None:
    for event in (make("POST", "/similar", json.dumps(action)), action | make("POST", "/similar", '{"text": "goose"}')):
        reply = answer_closed(event)
        assert (reply["statusCode"], json.loads(reply["body"])["error_type"]) == (401, "unauthorized")
    assert answer_closed(action | {"headers": {}})["statusCode"] == 400
