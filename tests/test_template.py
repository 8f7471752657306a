"""The template: who may call, what the function may do, limits, alarms and parameters, and names as in the code.

The tests read the YAML. What AWS makes of it is tested by cfn-lint, checkov and SAM's translator in tests/deploy/tools.
"""

import json
import logging
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from aws_lambda_powertools.shared import constants
from cfnlint.decode import cfn_yaml
from cfnlint.template import Template

from semsearch.app.app import App
from semsearch.app.mcp.messages import ISSUER_VARIABLE, OAUTH_METADATA
from semsearch.app.middleware import EXPOSED_HEADERS
from semsearch.app.routes.schemas import describe_app
from semsearch.app.settings import DEFAULT_TEXTS, LAMBDA_TOKENS, Settings, read_hashes
from tests.app.access.test_api_keys import PARAMETER, SECRET
from tests.project import ROOT

TEMPLATE: dict[str, Any] = cfn_yaml.load(str(ROOT / "template.yaml"))
PARAMETERS, RESOURCES = TEMPLATE["Parameters"], TEMPLATE["Resources"]
FUNCTION, API = (RESOURCES[name]["Properties"] for name in ("Function", "Api"))
VARIABLES = FUNCTION["Environment"]["Variables"]
OPERATIONS: dict[tuple[str, str], dict[str, Any]] = {
    (method.upper(), path): operation
    for path, methods in API["DefinitionBody"]["paths"].items()
    for method, operation in methods.items()
}
METADATA = (OAUTH_METADATA, f"{OAUTH_METADATA}/mcp")


ADDRESSES = PARAMETERS["Address"]["AllowedValues"]


def resolved(value: Any, address: str, has_vectors: bool = True) -> Any:
    """Return a part of the template with what it says for an address, with or without S3 Vectors.

    It is left as it is where it depends on other parameters.
    """
    if isinstance(value, list):
        found = [resolved(one, address, has_vectors) for one in value]
        return [one for one in found if one != {"Ref": "AWS::NoValue"}]
    if not isinstance(value, dict):
        return value
    conditions = {"IsApi": address == "HttpApi", "HasVectors": has_vectors}
    if (name := value.get("Fn::If", [""])[0]) in conditions:
        _, yes, no = value["Fn::If"]
        return resolved(yes if conditions[name] else no, address, has_vectors)
    return {name: resolved(one, address, has_vectors) for name, one in value.items()}


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: one["Properties"] for name, one in RESOURCES.items() if one["Type"] == kind}


# Who may call


def test_the_api_has_the_routes_of_the_app_and_no_other(make_app: Callable[..., App]) -> None:
    app = make_app().fastapi
    paths = describe_app(app, {}, dim=1, has_model=True, has_keywords=True, has_reranker=True, floor={})["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    routes.add(("GET", "/openapi.json"))
    routes |= {("HEAD", path) for method, path in routes if method == "GET"}
    routes |= {(method, path) for method in ("GET", "HEAD") for path in METADATA}  # not in the OpenAPI document
    routes |= {("GET", "/mcp")}  # a client of MCP expects the function's 405, not the API's 404
    assert {(method, path.replace("+}", "}")) for method, path in OPERATIONS} == routes


def test_the_issuer_of_tokens_is_that_of_the_parameter() -> None:
    """A variable of the stage is in each event, where no caller can set it, and needs no version of the function."""
    condition, variables, otherwise = API["StageVariables"]["Fn::If"]
    assert (condition, variables) == ("IsJwt", {ISSUER_VARIABLE: {"Ref": "JwtIssuer"}})
    assert otherwise == {"Ref": "AWS::NoValue"}
    for path in METADATA:
        assert "requestParameters" not in OPERATIONS["GET", path]["x-amazon-apigateway-integration"]


def test_every_route_is_closed_unless_a_parameter_opens_it_and_calls_the_alias() -> None:
    assert PARAMETERS["Authorization"]["Default"] == "IAM"
    for (_, path), operation in OPERATIONS.items():
        others: Any = []  # read before there is a token
        if path not in METADATA:
            scopes = {"Fn::If": ["HasJwtScopes", {"Fn::Split": [",", {"Ref": "JwtScopes"}]}, []]}
            others = {"Fn::If": ["IsJwt", [{"jwt": scopes}], []]}
        assert operation["security"] == {"Fn::If": ["IsIam", [{"AWS_IAM": []}], others]}
        integration = operation["x-amazon-apigateway-integration"]
        assert integration["uri"]["Fn::Sub"].endswith(f"${{Function.Arn}}:{FUNCTION['AutoPublishAlias']}/invocations")
        assert integration["payloadFormatVersion"] == "2.0"  # the format of function.events.HttpApi
        assert FUNCTION["Timeout"] * 1000 < integration["timeoutInMillis"] <= 30_000  # milliseconds


def test_the_apis_own_address_is_closed_by_a_parameter() -> None:
    assert API["DisableExecuteApiEndpoint"] == {"Fn::If": ["HasDomainOnly", True, False]}
    assert PARAMETERS["DomainOnly"]["Default"] == "false"


def test_the_function_url_asks_for_aws_credentials_unless_the_function_asks_for_keys() -> None:
    url = RESOURCES["FunctionUrl"]
    assert (url["Condition"], url["Properties"]["AuthType"]) == ("IsUrl", {"Fn::If": ["IsIam", "AWS_IAM", "NONE"]})
    everyone = {
        name: one
        for name, one in RESOURCES.items()
        if one["Type"] == "AWS::Lambda::Permission" and name != "ApiMayInvoke"
    }
    # an invocation in another way would need no key
    ways = ("FunctionUrlAuthType", "InvokedViaFunctionUrl")
    found = {one["Properties"]["Action"]: [one["Properties"].get(way) for way in ways] for one in everyone.values()}
    assert found == {"lambda:InvokeFunctionUrl": ["NONE", None], "lambda:InvokeFunction": [None, True]}
    assert {one["Condition"] for one in everyone.values()} == {"IsUrlWithKeys"}
    assert TEMPLATE["Conditions"]["IsUrlWithKeys"]["Fn::And"] == [
        TEMPLATE["Conditions"][name] for name in ("IsUrl", "HasKeys")
    ]


def test_pages_have_the_same_rights_at_both_addresses() -> None:
    of_api = API["DefinitionBody"]["x-amazon-apigateway-cors"]["Fn::If"][1]
    of_url = RESOURCES["FunctionUrl"]["Properties"]["Cors"]["Fn::If"][1]
    assert {name[0].lower() + name[1:]: value for name, value in of_url.items()} == of_api
    assert of_api["exposeHeaders"] == [*EXPOSED_HEADERS]
    # what OpenAI's client in a page sends; a browser sends nothing unless all of its headers are allowed
    sent = ("arch", "lang", "os", "package-version", "retry-count", "runtime", "runtime-version", "timeout")
    assert {"authorization", "content-type", *(f"x-stainless-{name}" for name in sent)} <= set(of_api["allowHeaders"])


# Limits


def test_the_default_limits_are_those_of_the_code() -> None:
    assert VARIABLES["MAX_TEXTS"]["Fn::If"][2]["Fn::If"] == ["IsOpen", 16, DEFAULT_TEXTS]
    assert VARIABLES["MAX_TOKENS"]["Fn::If"][2]["Fn::If"] == ["IsOpen", 1024, LAMBDA_TOKENS]


# Parameters

KEY = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("BundleKeyArn", [KEY], [KEY.replace("key/", "alias/"), KEY.rpartition("/")[2]]),
        ("VectorIndex", ["headlines-2", "headlines*"], ["*", "head*lines"]),
        ("JwtIssuer", ["https://a.b/c_D"], ["http://a.b", "https://", "https://a.b/c d", "https://a@b"]),
        ("JwtAudience", ["one,two"], ["one, two", "one,,two"]),
        ("ApiBasePath", ["search/v1"], ["/search", "search/", "a//b", "a" * 21]),
        (
            "JwtFilter",
            ["custom:tenant=tenant", "https://login.example.com/claims/tenant_identifier=tenant"],
            ["tenant", "tenant=", "a b=c", "a" * 79 + "=b"],
        ),
        (
            "JwtScopes",
            ["search/read,search/write", "https://example.com/search"],
            ["read write", "read, write", "read,"],
        ),
        ("ApiKeysArn", [PARAMETER, SECRET], ["keys", PARAMETER.replace("ssm", "s3"), PARAMETER + "\n"]),
        ("DomainName", ["search.example.com"], ["localhost", "https://a.com", "*.a.com"]),
        ("SubnetIds", ["subnet-0a1b2c3d"], ["subnet-0a1b2c3d, subnet-0a1b2c3e", "sg-0a1b2c3d"]),
        ("SecurityGroupIds", ["sg-0a1b2c3d,sg-0a1b2c3e"], ["sg-0a1b2c3d,", "subnet-0a1b2c3d"]),
        ("PermissionsBoundary", ["arn:aws:iam::123456789012:policy/a/b"], ["developers"]),
        ("AlarmTopicArn", ["arn:aws:sns:eu-central-1:123456789012:operations"], ["operations"]),
    ],
)
def test_a_value_that_aws_would_refuse_later_is_refused_before_anything_is_made(
    name: str, allowed: list[str], refused: list[str]
) -> None:
    pattern, longest = PARAMETERS[name]["AllowedPattern"], PARAMETERS[name].get("MaxLength", 2048)
    fitting = [value for value in ["", *allowed, *refused] if re.fullmatch(pattern, value) and len(value) <= longest]
    assert fitting == ["", *allowed]


def test_parameters_that_do_not_fit_together_are_refused_before_anything_is_made() -> None:
    """cfn-lint decides with the rules of the template which conditions can hold together."""
    conditions = Template("template.yaml", TEMPLATE).conditions

    def can_hold(wanted: dict[str, bool]) -> bool:
        return bool(list(conditions.build_scenarios({name: {value} for name, value in wanted.items()})))

    for refused in (
        {"HasBundleKey": True, "HasBucket": False},
        {"HasVectorKey": True, "HasVectors": False},
        {"HasZone": True, "HasDomain": False},
        {"HasKeysArn": True, "HasKeys": False},
        {"HasKeysKey": True, "HasKeys": False},
        {"HasJwtFilter": True, "IsJwt": False},
        {"HasJwtScopes": True, "IsJwt": False},
        {"HasDomainOnly": True, "HasDomain": False},
        {"HasDomain": True, "IsApi": False},
        {"IsUrl": True, "IsIam": False, "HasKeys": False},
        {"IsUrlWithKeys": True, "HasReserved": False},
        {"HasBudget": True, "HasEmail": False, "HasTopic": False},
        {"IsCanary": True, "HasProvisioned": True},
        {"HasSnapStart": True, "HasProvisioned": True},
    ):
        assert not can_hold(refused), refused
        others = [refused | {name: not value} for name, value in refused.items()]
        assert all(can_hold(other) for other in others), refused


def parameters_in(value: object) -> set[str]:
    names = {name for pair in re.findall(r'"Ref": "(\w+)"|\$\{(\w+)\}', json.dumps(value)) for name in pair}
    return names & set(PARAMETERS)


def test_each_parameter_of_the_function_is_in_the_versions_description_so_that_it_reaches_the_alias() -> None:
    """SAM publishes no new version for another value of a parameter, and Lambda none of an unchanged function."""
    not_in_a_version = {"ReservedConcurrentExecutions", "ProvisionedConcurrencyConfig", "DeploymentPreference"}
    versioned = {name: value for name, value in FUNCTION.items() if name not in not_in_a_version}

    def deciding(value: object) -> set[str]:
        names = re.findall(r'"Fn::If": \["(\w+)"', json.dumps(value))
        return parameters_in([value, [TEMPLATE["Conditions"][name] for name in names]])

    assert FUNCTION["VersionDescription"] == FUNCTION["Description"]
    assert deciding(FUNCTION["Description"]) == deciding(versioned)
    assert {"MemorySize", "MaxTexts", "Authorization", "SubnetIds"} <= deciding(FUNCTION["Description"])


def test_a_description_of_long_names_is_as_short_as_lambda_wants_it() -> None:
    text, variables = FUNCTION["Description"]["Fn::Sub"]
    assert variables.keys() == {
        "All",
        "Network",
        "Snap",
        "Traced",
    }  # two subnets and a group leave room for shorter names
    # a bucket with the names of a company, an account and a region; all other parameters are as long as they can be
    names_of_companies = {"BundleBucket": 37, "BundlePrefix": 20}

    def longest(name: str) -> int:
        parameter = PARAMETERS[name]
        values = [parameter["Default"], parameter.get("MaxValue", ""), *parameter.get("AllowedValues", [])]
        longest_value = max(len(str(value)) for value in values)
        return names_of_companies.get(name, int(parameter.get("MaxLength", longest_value)))

    names = [name for name in re.findall(r"\$\{(\w+)\}", text) if name not in variables]
    flags = len("SAT")
    assert len(re.sub(r"\$\{\w+\}", "", text)) + flags + sum(map(longest, names)) <= 256


# What the function may do


def test_the_function_may_use_resources_of_its_parameters_alone() -> None:
    (policy,) = RESOURCES["FunctionRole"]["Properties"]["Policies"]
    statements = [one.get("Fn::If", ("", one))[1] for one in policy["PolicyDocument"]["Statement"]]
    allowed = [one for one in statements if one["Effect"] == "Allow"]
    assert not [action for one in allowed for action in one["Action"] if action.endswith("*")]
    anywhere = [action for one in allowed for action in one["Action"] if one["Resource"] == "*"]
    assert anywhere == ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
    # what Lambda does with networks, the function's own code may not do: Lambda sets the key for its calls
    (denied,) = [one for one in statements if one not in allowed]
    assert (denied["Action"], denied["Condition"]) == (["ec2:*"], {"Null": {"lambda:SourceFunctionArn": "false"}})
    assert FUNCTION["Role"] == {"Fn::GetAtt": ["FunctionRole", "Arn"]}
    assert "Policies" not in FUNCTION
    assert all(role["PermissionsBoundary"]["Fn::If"][0] == "HasBoundary" for role in of_type("AWS::IAM::Role").values())


def test_each_variable_of_the_environment_is_read_by_the_settings_or_by_powertools() -> None:
    known = {name.upper() for name in Settings.__dataclass_fields__}
    assert VARIABLES.keys() <= known | {constants.SERVICE_NAME_ENV, constants.METRICS_NAMESPACE_ENV}


# What is watched


COLD_START_METRICS = {"InitImportEngine", "InitImportHttp", "InitModel", "InitApp", "InitWarmUp", "InitRestoreWarmUp"}
COLD_START_METRICS |= {"InitOtherRoutes", "InitTotal"}


def test_the_dashboard_and_the_alarms_name_metrics_that_the_function_sends() -> None:
    namespace = VARIABLES[constants.METRICS_NAMESPACE_ENV]
    dashboard, variables = RESOURCES["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    for address in ADDRESSES:
        values = {name: resolved(value, address) for name, value in variables.items()}
        texts = {name: value["Fn::Sub"] for name, value in values.items() if "Fn::Sub" in value}
        with_metrics = re.sub(r"\$\{(\w+)\}", lambda match: texts.get(match[1], match[0]), dashboard)  # noqa: B023
        json.loads(re.sub(r"\$\{[^}]*\}", "0", with_metrics))
        assert ("ApiGateway" in with_metrics) is (address == "HttpApi")
    assert set(re.findall(rf'"{namespace}", "(\w+)"', dashboard)) == COLD_START_METRICS
    alarms = of_type("AWS::CloudWatch::Alarm").values()
    namespaces = [resolved(alarm.get("Namespace", "AWS/"), "HttpApi") for alarm in alarms]
    own = [alarm for alarm, name in zip(alarms, namespaces, strict=True) if name.partition("/")[0] != "AWS"]
    assert {alarm["Namespace"] for alarm in own} == {namespace}
    filters = of_type("AWS::Logs::MetricFilter").values()
    counted = [one["MetricTransformations"][0]["MetricName"] for one in filters]  # in the logs
    sent = ["InitTotal", "SwitchFailed", "LookFailed", "KeysNotRead", "KeysUnusable"]
    assert sorted(str(alarm["MetricName"]) for alarm in own) == sorted(map(str, [*sent, *counted]))


def matches(filter_of_log: dict[str, Any], line: dict[str, Any]) -> bool:
    """Return whether a filter of CloudWatch Logs matches a line. A field that the line lacks equals nothing."""

    def value(path: str) -> Any:
        found: Any = line
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    pattern = re.sub(r"\$\.([\w.]+) = ", r'value("\1") == ', filter_of_log["FilterPattern"].strip("{} "))
    return bool(eval(pattern.replace("&&", "and").replace("||", "or"), {"value": value}))


def init_report(phase: str, status: str) -> dict[str, Any]:
    """Return the line of a start in the format of Lambda's JSON logs."""
    record = {"initializationType": "on-demand", "phase": phase, "status": status, "metrics": {"durationMs": 503.2}}
    return {"time": "2026-11-28T12:00:00.000Z", "type": "platform.initReport", "record": record}


@pytest.mark.parametrize(
    ("line", "is_counted"),
    [
        (init_report("init", "success"), False),
        (init_report("init", "error"), True),
        (init_report("init", "timeout"), False),  # Lambda begins it again in the request that needs it
        (init_report("invoke", "timeout"), True),
        (init_report("invoke", "error"), True),
        ({"type": "platform.report", "record": {"status": "error"}}, False),
        ({"level": "ERROR", "message": "request failed"}, False),
    ],
)
def test_a_start_that_failed_is_counted(line: dict[str, Any], is_counted: bool) -> None:
    filter_of_log = RESOURCES["FailedStarts"]["Properties"]
    assert matches(filter_of_log, line) is is_counted
    (metric,) = filter_of_log["MetricTransformations"]
    assert RESOURCES["StartsAlarm"]["Properties"]["MetricName"] == metric["MetricName"]


@pytest.mark.parametrize(
    ("line", "is_counted"),
    [
        ({"level": "ERROR", "message": "request", "status": 502}, True),
        ({"level": "ERROR", "message": "request", "status": 503}, False),
        ({"level": "INFO", "message": "request", "status": 200}, False),
        ({"level": "ERROR", "message": "bundle look failed"}, False),
    ],
)
def test_a_failure_of_s3_vectors_is_counted(line: dict[str, Any], is_counted: bool) -> None:
    filter_of_log = RESOURCES["FailedBackends"]["Properties"]
    assert matches(filter_of_log, line) is is_counted
    (metric,) = filter_of_log["MetricTransformations"]
    assert RESOURCES["BackendAlarm"]["Properties"]["MetricName"] == metric["MetricName"]


def test_a_filter_of_tokens_and_texts_in_s3_vectors_are_refused_together() -> None:
    rules = {one["AssertDescription"]: one["Assert"] for one in TEMPLATE["Rules"]["Combinations"]["Assertions"]}
    (found,) = [rule for text, rule in rules.items() if text.startswith("JwtFilter needs texts")]
    assert found == {"Fn::Or": [{"Fn::Equals": [{"Ref": name}, ""]} for name in ("VectorBucket", "JwtFilter")]}


@pytest.mark.parametrize(
    ("path", "body", "is_counted"),
    [
        ("/similar", {"text": "goose"}, True),
        ("/similar", {"texts": "goose"}, False),  # refused, which takes no time
        ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, True),
        ("/predict", {"text": ["goose", "ferry"]}, False),
        ("/v1/embeddings", {"input": ["goose", "ferry"], "model": "any"}, False),
    ],
)
def test_the_alarm_for_slow_requests_looks_at_searches_and_not_at_requests_for_many_embeddings(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, path: str, body: dict[str, Any], is_counted: bool
) -> None:
    """The filter reads the fields that the log line of a real request has."""
    caplog.set_level(logging.INFO, logger="tests")
    caplog.clear()
    client.post(path, json=body)
    (line,) = [vars(record) for record in caplog.records if record.name == "tests"]
    filter_of_log = RESOURCES["Searches"]["Properties"]
    assert matches(filter_of_log, line) is is_counted
    (metric,) = filter_of_log["MetricTransformations"]
    assert line[metric["MetricValue"].removeprefix("$.")] > 0
    alarm = RESOURCES["DurationAlarm"]["Properties"]
    assert (alarm["Namespace"], alarm["MetricName"]) == (metric["MetricNamespace"], metric["MetricName"])


HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("hashes", "is_accepted"),
    [
        *((text, True) for text in ("", HASH, f"a:{HASH}", f"a:{HASH},{HASH}", f"a:{HASH}:eyJ0IjoxfQ,b:{HASH}")),
        *((text, True) for text in (f'a:{HASH}:{{"t":"a,b"}},b:{HASH}', f"a:{HASH}, b:{HASH}")),
        *((text, False) for text in (f"a:{HASH},b:{HASH}:{{", f"a:{HASH},", f'a:{HASH}:{{"t":"a"}},b:{HASH}:{{')),
        ("a:b", False),
    ],
)
def test_a_list_of_keys_that_was_cut_is_refused(hashes: str, is_accepted: bool) -> None:
    pattern = PARAMETERS["ApiKeyHashes"]["AllowedPattern"]
    assert bool(re.search(pattern, hashes, re.ASCII)) is is_accepted
    if hashes and is_accepted:
        assert read_hashes("ApiKeyHashes", hashes)


# the metrics of an API, and those of the same things that Lambda has for its function URLs
# (https://docs.aws.amazon.com/lambda/latest/dg/urls-monitoring.html)
OF_URLS = {
    "ApiGateway Count": "Lambda UrlRequestCount",
    "ApiGateway 5xx": "Lambda Url5xxCount",
    "ApiGateway 4xx": "Lambda Url4xxCount",
}


def value_of(alarm: str, sums: dict[str, float], address: str, has_vectors: bool = True) -> float:
    """Return what the expression of an alarm returns in one period. A metric that `sums` lacks has no data then."""
    metrics = {one["Id"]: one for one in resolved(RESOURCES[alarm]["Properties"]["Metrics"], address, has_vectors)}
    if address == "FunctionUrl":
        sums = {OF_URLS.get(name, name): value for name, value in sums.items()}
    functions = {
        "FILL": lambda value, instead: instead if value is None else value,
        "IF": lambda condition, yes, no: yes if condition else no,
        "MAX": max,
    }
    values: dict[str, Any] = {}
    for name, metric in reversed(metrics.items()):  # an expression stands above the metrics that it names
        if "Expression" in metric:
            expression = metric["Expression"].replace(" AND ", " and ")
            values[name] = eval(expression, {**functions, **values})
        else:
            found = metric["MetricStat"]["Metric"]
            metric_name = found["MetricName"]
            if isinstance(metric_name, dict):
                metric_name = metric_name["Fn::Sub"].partition("-")[2]  # without the stack's name
            values[name] = sums.get(f"{found['Namespace'].rpartition('/')[2]} {metric_name}")
    (returned,) = [name for name, metric in metrics.items() if metric.get("ReturnData", True)]
    return float(values[returned])


def sums_of(requests: int = 0, failed: int = 0, refused: int = 0, **of_lambda: int) -> dict[str, float]:
    """Return the sums of metrics in one period, without those that have no data then."""
    found: dict[str, float] = {f"Lambda {name.title()}": value for name, value in of_lambda.items()}
    if requests:
        found |= {"ApiGateway Count": requests, "ApiGateway 5xx": failed, "ApiGateway 4xx": refused}
    return found


PERIODS: dict[str, tuple[dict[str, float], float, bool]] = {  # sums, percent of failures, whether it is an outage
    "no start": (sums_of(requests=10, failed=10), 100, True),
    "few requests that all fail": (sums_of(requests=2, failed=2, invocations=2), 0, True),
    "strangers are refused and the only caller fails": (sums_of(9, failed=1, refused=8, invocations=1), 0, True),
    "some fail": (sums_of(requests=100, failed=3, refused=5, invocations=95, errors=0), 3, False),
    "healthy": (sums_of(requests=100, refused=5, invocations=95), 0, False),
    "strangers only": (sums_of(requests=5, refused=5), 0, False),
    "direct invocations that crash": (sums_of(invocations=10, errors=5), 50, False),
    "no traffic": ({}, 0, False),
}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(("sums", "rate", "is_outage"), PERIODS.values(), ids=PERIODS)
def test_failed_requests_raise_an_alarm_whether_many_or_few_and_with_or_without_a_function(
    sums: dict[str, float], rate: float, is_outage: bool, address: str
) -> None:
    assert value_of("ErrorsAlarm", sums, address) == rate
    assert bool(value_of("OutageAlarm", sums, address)) is is_outage
    assert RESOURCES["ErrorsAlarm"]["Properties"]["Threshold"] == RESOURCES["OutageAlarm"]["Properties"]["Threshold"]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(
    ("failed", "backends", "crashes", "counted"), [(0, 0, 0, 0), (5, 5, 0, 0), (5, 4, 0, 1), (5, 5, 2, 2), (5, 0, 0, 5)]
)
def test_failures_of_s3_vectors_do_not_withdraw_a_canary(
    failed: int, backends: int, crashes: int, counted: int, address: str
) -> None:
    sums = sums_of(requests=10, failed=failed, errors=crashes) | {"SemanticSearch failed-backends": backends}
    assert value_of("CanaryErrorsAlarm", sums, address) == counted
    assert value_of("CanaryErrorsAlarm", sums, address, has_vectors=False) == max(failed, crashes)


def test_every_alarm_of_a_function_url_reads_what_there_is_without_an_api() -> None:
    with_api = {name for name, one in RESOURCES.items() if one.get("Condition") in ("IsApi", "HasDomain", "HasZone")}
    for name, alarm in RESOURCES.items():
        if alarm["Type"] == "AWS::CloudWatch::Alarm" and name not in with_api:
            read = json.dumps(resolved(alarm, "FunctionUrl"))
            assert "ApiGateway" not in read, name
            assert not {one for one in with_api if f'"{one}"' in read}, name
    assert {"RefusedRequestsAlarm", "AccessLogs", "Api"} <= with_api
