"""The templates: what is open, what is allowed, what is watched, and that their names agree with the code's."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.shared import constants
from fastapi import FastAPI
from starlette.routing import BaseRoute, Route

from bench.cost import ARCHITECTURES, HTTP_API_REQUEST, LAMBDA_REQUEST, compute
from function.settings import Settings
from tests.cloudformation import Stack, load_template

ROOT = Path(__file__).parents[1]
IMAGE, ZIP = load_template(ROOT / "template.yaml"), load_template(ROOT / "template-zip.yaml")
both = pytest.mark.parametrize("template", [IMAGE, ZIP], ids=["image", "zip"])

JWT = {"Authorization": "JWT", "JwtIssuer": "https://issuer.example.com", "JwtAudience": "one,two"}
# each way of calling with the scheme that its routes must carry
AUTHORIZATIONS: list[tuple[dict[str, str], str | None]] = [
    ({}, "AWS_IAM"),
    (JWT, "jwt"),
    ({"Authorization": "NONE"}, None),
]
EMAIL = "someone@example.com"

# what function/telemetry.py sends at the first request
COLD_START_PHASES = {"InitImportEngine", "InitImportHttp", "InitModel", "InitApp", "InitWarmUp"}
COLD_START_METRICS = COLD_START_PHASES | {"InitTotal"}
COLD_START_DIMENSIONS = {"service": "stories", "ColdStart": "true"}


def walk(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    """Return every route, those of included routers too."""
    for route in routes:
        included = getattr(route, "original_router", None)  # FastAPI keeps an included router as it is
        if included is not None:
            yield from walk(included.routes)
        else:
            assert isinstance(route, Route), route
            yield route


@pytest.fixture(scope="module")
def app_routes(make_app: Callable[..., FastAPI]) -> set[tuple[str, str]]:
    """Every method and path that the real app answers, HEAD wherever GET is."""
    app = make_app()
    routes = {(method, route.path) for route in walk(app.routes) for method in route.methods or set()}
    routes |= {("HEAD", path) for method, path in routes if method == "GET"}
    described = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    assert routes - described == {("GET", app.openapi_url), ("HEAD", app.openapi_url)}  # nothing was overlooked
    return routes


def operations(stack: Stack) -> dict[tuple[str, str], dict[str, Any]]:
    paths = stack.of_type("AWS::Serverless::HttpApi")["Api"]["DefinitionBody"]["paths"]
    return {(method.upper(), path): one for path, methods in paths.items() for method, one in methods.items()}


# --- who may call


@pytest.mark.parametrize("parameters", [parameters for parameters, _ in AUTHORIZATIONS])
def test_the_api_has_the_routes_of_the_app_and_no_other(
    app_routes: set[tuple[str, str]], parameters: dict[str, str]
) -> None:
    assert len(app_routes) >= 5
    assert set(operations(Stack(IMAGE, **parameters))) == app_routes


@pytest.mark.parametrize(("parameters", "scheme"), AUTHORIZATIONS)
def test_every_route_is_as_closed_as_the_parameter_says(parameters: dict[str, str], scheme: str | None) -> None:
    stack = Stack(IMAGE, **parameters)
    schemes = stack.of_type("AWS::Serverless::HttpApi")["Api"]["DefinitionBody"]["components"]["securitySchemes"]
    for operation in operations(stack).values():
        assert operation["security"] == ([{scheme: []}] if scheme else [])
    assert scheme is None or scheme in schemes


@both
def test_nobody_may_call_a_stack_without_credentials_unless_it_is_asked_for(template: Mapping[str, Any]) -> None:
    assert template["Parameters"]["Authorization"]["Default"] in ("IAM", "AWS_IAM")


def test_tokens_are_checked_for_issuer_and_audience() -> None:
    api = Stack(IMAGE, **JWT).of_type("AWS::Serverless::HttpApi")["Api"]["DefinitionBody"]
    authorizer = api["components"]["securitySchemes"]["jwt"]["x-amazon-apigateway-authorizer"]
    assert authorizer["type"] == "jwt"
    assert authorizer["jwtConfiguration"] == {"issuer": "https://issuer.example.com", "audience": ["one", "two"]}


def test_a_function_url_is_everyones_only_with_authorization_none() -> None:
    assert Stack(ZIP).of_type("AWS::Lambda::Permission") == {}
    permissions = Stack(ZIP, Authorization="NONE").of_type("AWS::Lambda::Permission").values()
    assert {one["Action"] for one in permissions} == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}
    # the one says which kind of URL, the other through what: without these anyone could invoke the function itself
    assert all("FunctionUrlAuthType" in one or one.get("InvokedViaFunctionUrl") is True for one in permissions)


def test_only_this_api_may_invoke_the_function() -> None:
    (permission,) = Stack(IMAGE).of_type("AWS::Lambda::Permission").values()
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert permission["SourceArn"] == "arn:aws:execute-api:eu-central-1:123456789012:<Api>/*"


def test_callers_reach_the_alias_that_versions_are_published_to() -> None:
    stack = Stack(IMAGE)
    alias = stack.of_type("AWS::Serverless::Function")["Function"]["AutoPublishAlias"]
    for operation in operations(stack).values():
        integration = operation["x-amazon-apigateway-integration"]
        assert integration["uri"].endswith(f"/functions/<Function.Arn>:{alias}/invocations")
        assert integration["payloadFormatVersion"] == "2.0"  # what Mangum and tests/function/test_handler.py know
    (permission,) = stack.of_type("AWS::Lambda::Permission").values()
    assert permission["FunctionName"] == "<Function.Alias>"


def test_no_web_page_may_call_unless_its_origin_is_given() -> None:
    assert "x-amazon-apigateway-cors" not in Stack(IMAGE).of_type("AWS::Serverless::HttpApi")["Api"]["DefinitionBody"]
    stack = Stack(IMAGE, CorsOrigins="https://a.example.com,https://b.example.com")
    cors = stack.of_type("AWS::Serverless::HttpApi")["Api"]["DefinitionBody"]["x-amazon-apigateway-cors"]
    assert cors["allowOrigins"] == ["https://a.example.com", "https://b.example.com"]
    assert {method for method, _ in operations(stack)} == set(cors["allowMethods"])


def test_the_api_is_throttled_and_logs_each_request_as_one_line_of_json() -> None:
    api = Stack(IMAGE, ThrottlingRate="7", ThrottlingBurst="9").of_type("AWS::Serverless::HttpApi")["Api"]
    assert api["DefaultRouteSettings"] == {"ThrottlingRateLimit": "7", "ThrottlingBurstLimit": "9"}
    line = api["AccessLogSettings"]["Format"]
    assert "\n" not in line
    assert {"status", "route", "address", "milliseconds"} <= json.loads(line).keys()


# --- what the function may do and how it runs


@pytest.mark.parametrize(
    ("template", "parameters", "traces"),
    [
        (IMAGE, {}, {}),
        (IMAGE, {"Tracing": "Active"}, {"xray:PutTraceSegments": "*", "xray:PutTelemetryRecords": "*"}),
        (ZIP, {}, {}),
    ],
    ids=["image", "image with tracing", "zip"],
)
def test_the_function_may_write_its_own_logs_and_traces_and_nothing_else(
    template: Mapping[str, Any], parameters: dict[str, str], traces: dict[str, str]
) -> None:
    stack = Stack(template, **parameters)
    (role,) = stack.of_type("AWS::IAM::Role").values()
    assert "ManagedPolicyArns" not in role
    statements = [one for policy in role["Policies"] for one in policy["PolicyDocument"]["Statement"]]
    allowed = {action: one["Resource"] for one in statements for action in one["Action"]}
    logs = {"logs:CreateLogStream": "<FunctionLogs.Arn>", "logs:PutLogEvents": "<FunctionLogs.Arn>"}
    assert allowed == logs | traces
    (function,) = stack.of_type("AWS::Serverless::Function").values()
    assert function["Role"] == "<FunctionRole.Arn>"
    assert "Policies" not in function


@both
def test_each_variable_of_the_environment_is_read_by_the_settings_or_by_powertools(template: Mapping[str, Any]) -> None:
    known = {name.upper() for name in Settings.__dataclass_fields__}
    known |= {constants.SERVICE_NAME_ENV, constants.METRICS_NAMESPACE_ENV}
    (function,) = Stack(template).of_type("AWS::Serverless::Function").values()
    assert function["Environment"]["Variables"].keys() <= known


@both
def test_logs_are_json_in_a_group_that_forgets(template: Mapping[str, Any]) -> None:
    stack = Stack(template, LogRetentionDays="7")
    (function,) = stack.of_type("AWS::Serverless::Function").values()
    assert (function["LoggingConfig"]["LogFormat"], function["LoggingConfig"]["LogGroup"]) == ("JSON", "<FunctionLogs>")
    groups = stack.of_type("AWS::Logs::LogGroup")
    assert {group["RetentionInDays"] for group in groups.values()} == {"7"}
    assert len({group["LogGroupName"] for group in groups.values()}) == len(groups)


def test_both_flavours_run_the_function_alike() -> None:
    (image,) = Stack(IMAGE).of_type("AWS::Serverless::Function").values()
    (archive,) = Stack(ZIP).of_type("AWS::Serverless::Function").values()
    for name in ("MemorySize", "Timeout", "Architectures", "Environment", "LoggingConfig", "AutoPublishAlias"):
        assert image[name] == archive[name], name
    assert archive["Handler"] == "function.handler.handler"
    assert f"CPython {archive['Runtime'].removeprefix('python')} " in (ROOT / "requirements.txt").read_text()
    assert archive["SnapStart"] == {"ApplyOn": "PublishedVersions"}


# what of a function belongs to no version
NOT_IN_A_VERSION = {"ReservedConcurrentExecutions", "ProvisionedConcurrencyConfig", "DeploymentPreference"}
NOT_IN_A_VERSION |= {"FunctionUrlConfig", "VersionDescription"}


@both
def test_each_parameter_of_the_function_is_in_the_versions_description_so_that_it_reaches_the_alias(
    template: Mapping[str, Any],
) -> None:
    properties = template["Resources"]["Function"]["Properties"]
    versioned = json.dumps({name: value for name, value in properties.items() if name not in NOT_IN_A_VERSION})
    parameters = set(re.findall(r'"Ref": "(\w+)"', versioned)) & template["Parameters"].keys()
    assert parameters
    assert set(re.findall(r"\$\{(\w+)\}", properties["VersionDescription"]["Fn::Sub"])) == parameters


def test_the_function_gives_up_before_the_api_does() -> None:
    stack = Stack(IMAGE)
    timeout = stack.of_type("AWS::Serverless::Function")["Function"]["Timeout"]
    assert all(
        timeout * 1000 < operation["x-amazon-apigateway-integration"]["timeoutInMillis"] <= 30_000
        for operation in operations(stack).values()
    )


def test_concurrency_is_neither_reserved_nor_provisioned_unless_asked_for() -> None:
    plain = Stack(IMAGE).of_type("AWS::Serverless::Function")["Function"]
    assert not {"ReservedConcurrentExecutions", "ProvisionedConcurrencyConfig"} & plain.keys()
    asked = Stack(IMAGE, ReservedConcurrency="4", ProvisionedConcurrency="2")
    function = asked.of_type("AWS::Serverless::Function")["Function"]
    assert function["ReservedConcurrentExecutions"] == "4"
    assert function["ProvisionedConcurrencyConfig"] == {"ProvisionedConcurrentExecutions": "2"}


# --- what is watched


def metrics_of(alarm: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics of an alarm in one form, whether it has one or an expression over several."""
    if "Metrics" in alarm:
        return [one["MetricStat"]["Metric"] for one in alarm["Metrics"] if "MetricStat" in one]
    return [dict(alarm)]


def test_errors_throttles_slow_requests_and_slow_cold_starts_ring() -> None:
    alarms = Stack(IMAGE).of_type("AWS::CloudWatch::Alarm")
    watched = {
        name: [(metric["Namespace"], metric["MetricName"]) for metric in metrics_of(alarm)]
        for name, alarm in alarms.items()
    }
    assert watched == {
        "ErrorsAlarm": [("AWS/Lambda", "Errors"), ("AWS/ApiGateway", "5xx")],
        "ThrottlesAlarm": [("AWS/Lambda", "Throttles")],
        "DurationAlarm": [("AWS/Lambda", "Duration")],
        "ColdStartAlarm": [("SemanticSearch", "InitTotal")],
    }
    assert (alarms["DurationAlarm"]["ExtendedStatistic"], alarms["ColdStartAlarm"]["ExtendedStatistic"]) == (
        "p99",
        "p90",
    )
    assert {alarm["TreatMissingData"] for alarm in alarms.values()} == {"notBreaching"}


def test_alarms_are_sent_if_there_is_an_address() -> None:
    for alarm in Stack(IMAGE).of_type("AWS::CloudWatch::Alarm").values():
        assert "AlarmActions" not in alarm
    stack = Stack(IMAGE, AlarmEmail=EMAIL)
    assert stack.of_type("AWS::SNS::Topic")["AlarmTopic"]["Subscription"] == [{"Protocol": "email", "Endpoint": EMAIL}]
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == ["<AlarmTopic>"]


def test_a_canary_goes_back_when_an_alarm_of_the_stack_rings() -> None:
    function = Stack(IMAGE, Canary="true").of_type("AWS::Serverless::Function")["Function"]
    preference = function["DeploymentPreference"]
    assert preference["Enabled"] == "true"
    assert {alarm.strip("<>") for alarm in preference["Alarms"]} <= Stack(IMAGE).of_type(
        "AWS::CloudWatch::Alarm"
    ).keys()
    assert preference["Alarms"]


def widgets(stack: Stack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(stack.of_type("AWS::CloudWatch::Dashboard")["Dashboard"]["DashboardBody"])[
        "widgets"
    ]
    return found


def graphed(widget: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Return namespace, name and dimensions of each metric of a widget; "..." repeats those of the line above."""
    above: list[str] = []
    for line in widget["properties"].get("metrics", []):
        names = [one for one in line if isinstance(one, str)]
        if not names:
            continue  # an expression
        above = above if names == ["..."] else names
        yield above[0], above[1], dict(zip(above[2::2], above[3::2], strict=True))


def test_the_dashboard_and_the_alarms_ask_for_metrics_that_the_function_sends() -> None:
    stack = Stack(IMAGE)
    asked = [metric for widget in widgets(stack) for metric in graphed(widget)]
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        for metric in metrics_of(alarm):
            dimensions = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
            asked.append((metric["Namespace"], metric["MetricName"], dimensions))
    variables = stack.of_type("AWS::Serverless::Function")["Function"]["Environment"]["Variables"]
    own = [(name, dimensions) for namespace, name, dimensions in asked if not namespace.startswith("AWS/")]
    assert {namespace for namespace, _, _ in asked if not namespace.startswith("AWS/")} == {
        variables[constants.METRICS_NAMESPACE_ENV]
    }
    assert COLD_START_DIMENSIONS["service"] == variables[constants.SERVICE_NAME_ENV]
    assert {name for name, _ in own} == COLD_START_METRICS
    assert all(dimensions == COLD_START_DIMENSIONS for _, dimensions in own)
    dimensions_of_aws = {(namespace, *dims.items()) for namespace, _, dims in asked if namespace.startswith("AWS/")}
    assert dimensions_of_aws == {
        ("AWS/Lambda", ("FunctionName", "<Function>")),
        ("AWS/ApiGateway", ("ApiId", "<Api>")),
    }


def test_the_dashboard_stacks_every_phase_of_a_cold_start_once() -> None:
    (stacked,) = (one for one in widgets(Stack(IMAGE)) if one["type"] == "metric" and one["properties"]["stacked"])
    assert sorted(name for _, name, _ in graphed(stacked)) == sorted(COLD_START_PHASES)
    assert stacked["properties"]["stat"] == "Average"  # averages add up


def test_the_dashboard_asks_the_functions_log_for_fields_that_a_request_leaves() -> None:
    stack = Stack(IMAGE)
    (widget,) = (one for one in widgets(stack) if one["type"] == "log")
    query = widget["properties"]["query"]
    assert query.startswith("SOURCE '<FunctionLogs>' | ")
    fields = set(re.findall(r"\bphases\.(\w+)", query))
    assert fields == {"parse", "embed", "search", "reply"}
    assert set(re.findall(r"(\w+) = ", query)) == {"message", "path", "status"}


def test_no_two_widgets_of_the_dashboard_cover_each_other() -> None:
    covered = [
        (x, y)
        for one in widgets(Stack(IMAGE))
        for x in range(one["x"], one["x"] + one["width"])
        for y in range(one["y"], one["y"] + one["height"])
    ]
    assert len(covered) == len(set(covered))
    assert max(x for x, _ in covered) < 24  # a dashboard's width


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("provisioned", [0, 3])
def test_the_dashboards_cost_is_what_the_prices_give(architecture: str, provisioned: int) -> None:
    """The expressions are CloudWatch's metric math; for this arithmetic Python reads the same."""
    stack = Stack(IMAGE, Architecture=architecture, ProvisionedConcurrency=str(provisioned), MemorySize="1024")
    (widget,) = (one for one in widgets(stack) if "Dollars" in one["properties"].get("title", ""))
    lines = [line[-1] for line in widget["properties"]["metrics"]]
    expressions = {one["id"]: one["expression"] for one in lines if "expression" in one}
    assert {one["id"] for one in lines} == {"lambda", "all", "duration", "requests", "init"}

    requests, milliseconds, cold, period = 500, 2.5, 600.0, 3600
    names: dict[str, Any] = {"duration": requests * milliseconds, "requests": requests, "init": cold}
    functions = {"FILL": lambda series, value: series, "PERIOD": lambda series: period}
    found = eval(expressions["lambda"], {"__builtins__": {}}, names | functions)
    price = ARCHITECTURES[architecture]
    gigabyte_second = price.gigabyte_second_of_provisioned if provisioned else price.gigabyte_second
    expected = requests * (compute(milliseconds, 1024, gigabyte_second) + LAMBDA_REQUEST)
    expected += cold / 1000 * gigabyte_second + provisioned * period * price.provisioned_gigabyte_second
    assert found == pytest.approx(1000 * expected / requests, rel=1e-6)
    with_api = expressions["all"].replace("lambda", "lambda_")  # a word of Python's
    assert eval(with_api, {"__builtins__": {}, "lambda_": found}) == pytest.approx(found + 1000 * HTTP_API_REQUEST)


# --- what one sees and types


@both
def test_every_parameter_is_described_grouped_and_used(template: Mapping[str, Any]) -> None:
    parameters = template["Parameters"]
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert sorted(name for group in groups for name in group["Parameters"]) == sorted(parameters)
    used = json.dumps([template["Conditions"], template["Resources"]], default=str)
    for name, parameter in parameters.items():
        assert parameter["Description"], name
        assert "Default" in parameter, name
        assert f'{{"Ref": "{name}"}}' in used or f"${{{name}}}" in used, name


def test_tokens_without_issuer_or_audience_are_refused_before_anything_is_made() -> None:
    (rule,) = IMAGE["Rules"].values()
    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "Authorization"}, "JWT"]}
    checked = json.dumps([assertion["Assert"] for assertion in rule["Assertions"]])
    assert "JwtIssuer" in checked
    assert "JwtAudience" in checked


@pytest.mark.parametrize(
    ("template", "parameters", "credentials"),
    [
        (IMAGE, {}, "--aws-sigv4 aws:amz:eu-central-1:execute-api"),
        (IMAGE, JWT, "authorization: Bearer $TOKEN"),
        (IMAGE, {"Authorization": "NONE"}, None),
        (ZIP, {}, "--aws-sigv4 aws:amz:eu-central-1:lambda"),
        (ZIP, {"Authorization": "NONE"}, None),
    ],
)
def test_the_curl_line_asks_similar_as_a_caller_must(
    template: Mapping[str, Any], parameters: dict[str, str], credentials: str | None
) -> None:
    line = Stack(template, **parameters).outputs["Curl"]
    words = shlex.split(line)
    assert words[0] == "curl"
    (url,) = (word for word in words if word.endswith("/similar") or word.endswith(">similar"))
    assert url in ("https://<Api>.execute-api.eu-central-1.amazonaws.com/similar", "<FunctionUrl.FunctionUrl>similar")
    assert json.loads(words[words.index("-d") + 1]).keys() == {"text"}
    assert "content-type: application/json" in words
    found = " ".join(words)
    assert credentials in found if credentials else "authorization" not in found and "sigv4" not in found


def test_the_settings_of_sam_name_what_is_there() -> None:
    settings = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))
    assert settings.pop("version") == 0.1
    for environment, template in (("default", ROOT / "template.yaml"), ("zip", ROOT / "template-zip.yaml")):
        commands = {name: one["parameters"] for name, one in settings[environment].items()}
        assert commands["global"]["stack_name"].startswith("semantic-search")
        assert (ROOT / commands["build"].get("template_file", "template.yaml")) == template
        built = Path(commands["build"].get("build_dir", ".aws-sam/build")) / "template.yaml"
        assert Path(commands["deploy"].get("template_file", ".aws-sam/build/template.yaml")) == built
        assert commands["deploy"]["capabilities"] == "CAPABILITY_IAM"
        assert "cached" not in commands["build"]
        overrides = re.findall(r"(\w+)=", " ".join(commands["deploy"].get("parameter_overrides", [])))
        assert set(overrides) <= load_template(template)["Parameters"].keys()
    assert settings["default"]["deploy"]["parameters"]["resolve_image_repos"] is True
