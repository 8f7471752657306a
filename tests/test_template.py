"""The template: what is open, what is allowed, what is watched, and that their names agree with the code's."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from aws_lambda_powertools.shared import constants
from starlette.routing import BaseRoute, Route

from function.app import App
from function.routes.openapi_document import describe_app
from function.settings import DEFAULT_TEXTS, LAMBDA_TOKENS, Settings, read_settings
from tests.cloudformation import Stack, load_template
from tests.project import ROOT

TEMPLATE = load_template(ROOT / "template.yaml")
PLAIN = Stack(TEMPLATE)

JWT = {"Authorization": "JWT", "JwtIssuer": "https://issuer.example.com", "JwtAudience": "one,two"}
# each way of calling with the scheme that its routes must carry
AUTHORIZATIONS: list[tuple[dict[str, str], str | None]] = [
    ({}, "AWS_IAM"),
    (JWT, "jwt"),
    ({"Authorization": "NONE"}, None),
]
EMAIL = "someone@example.com"

# what function/telemetry.py sends at the first request
COLD_START_PHASES = {"InitImportEngine", "InitImportHttp", "InitModel", "InitApp", "InitWarmUp", "InitRestoreWarmUp"}
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
def app_routes(make_app: Callable[..., App]) -> set[tuple[str, str]]:
    """Every method and path that the real app answers, HEAD wherever GET is."""
    app = make_app().fastapi
    paths = describe_app(app, {}, has_reranker=True)["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    routes = {(method, route.path_format) for route in walk(app.routes) for method in route.methods or set()}
    routes |= {("HEAD", path) for method, path in routes if method == "GET"}
    assert routes - described == {("GET", app.openapi_url), ("HEAD", app.openapi_url)}  # nothing was overlooked
    return routes


def operations(stack: Stack) -> dict[tuple[str, str], dict[str, Any]]:
    paths = stack["Api"]["DefinitionBody"]["paths"]
    return {(method.upper(), path): one for path, methods in paths.items() for method, one in methods.items()}


# --- who may call


@pytest.mark.parametrize("parameters", [parameters for parameters, _ in AUTHORIZATIONS])
def test_the_api_has_the_routes_of_the_app_and_no_other(
    app_routes: set[tuple[str, str]], parameters: dict[str, str]
) -> None:
    assert len(app_routes) >= 5
    found = {(method, path.replace("+}", "}")) for method, path in operations(Stack(TEMPLATE, **parameters))}
    assert found == app_routes | {("GET", "/mcp")}  # a client of MCP expects the function's 405, not the API's 404


@pytest.mark.parametrize(("parameters", "scheme"), AUTHORIZATIONS)
def test_every_route_is_as_closed_as_the_parameter_says(parameters: dict[str, str], scheme: str | None) -> None:
    stack = Stack(TEMPLATE, **parameters)
    schemes = stack["Api"]["DefinitionBody"]["components"]["securitySchemes"]
    for operation in operations(stack).values():
        assert operation["security"] == ([{scheme: []}] if scheme else [])
    assert scheme is None or scheme in schemes
    if scheme == "jwt":
        expected = {"issuer": "https://issuer.example.com", "audience": ["one", "two"]}
        assert schemes[scheme]["x-amazon-apigateway-authorizer"]["jwtConfiguration"] == expected


def test_nobody_may_call_a_stack_without_credentials_unless_it_is_asked_for() -> None:
    assert TEMPLATE["Parameters"]["Authorization"]["Default"] == "IAM"


def test_only_this_api_may_invoke_the_function() -> None:
    (permission,) = PLAIN.of_type("AWS::Lambda::Permission").values()
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert permission["SourceArn"] == "arn:aws:execute-api:eu-central-1:123456789012:<Api>/*"


def test_callers_reach_the_alias_that_versions_are_published_to() -> None:
    stack = Stack(TEMPLATE)
    alias = stack["Function"]["AutoPublishAlias"]
    for operation in operations(stack).values():
        integration = operation["x-amazon-apigateway-integration"]
        assert integration["uri"].endswith(f"/functions/<Function.Arn>:{alias}/invocations")
        assert integration["payloadFormatVersion"] == "2.0"  # what Mangum and tests/function/test_handler.py know
    (permission,) = stack.of_type("AWS::Lambda::Permission").values()
    assert permission["FunctionName"] == "<Function.Alias>"


def test_no_web_page_may_call_unless_its_origin_is_given() -> None:
    assert "x-amazon-apigateway-cors" not in PLAIN["Api"]["DefinitionBody"]
    stack = Stack(TEMPLATE, CorsOrigins="https://a.example.com,https://b.example.com")
    cors = stack["Api"]["DefinitionBody"]["x-amazon-apigateway-cors"]
    assert cors["allowOrigins"] == ["https://a.example.com", "https://b.example.com"]
    assert {method for method, _ in operations(stack)} == set(cors["allowMethods"])


def test_the_api_is_throttled_and_logs_each_request_as_one_line_of_json() -> None:
    api = Stack(TEMPLATE, ThrottlingRate="7", ThrottlingBurst="9")["Api"]
    assert api["DefaultRouteSettings"] == {"ThrottlingRateLimit": "7", "ThrottlingBurstLimit": "9"}
    assert "\n" not in api["AccessLogSettings"]["Format"]


def test_routes_that_take_many_texts_have_a_rate_of_their_own() -> None:
    stack = Stack(TEMPLATE, PredictRate="3", PredictBurst="4")
    settings = stack["Api"]["RouteSettings"]
    paths = (
        "/predict",
        "/v1/embeddings",
        "/embed",
        "/similarity",
        "/tokenize",
        "/",
        "/rerank",
        "/v1/rerank",
        "/v2/rerank",
    )
    assert settings == {f"POST {path}": {"ThrottlingRateLimit": "3", "ThrottlingBurstLimit": "4"} for path in paths}
    assert {("POST", path) for path in paths} <= operations(stack).keys()


def access_log(**parameters: str) -> dict[str, str]:
    api = Stack(TEMPLATE, **parameters)["Api"]
    fields: dict[str, str] = json.loads(api["AccessLogSettings"]["Format"])
    return fields


@pytest.mark.parametrize(
    ("parameters", "caller"),
    [({}, "$context.identity.userArn"), (JWT, "$context.authorizer.claims.sub"), ({"Authorization": "NONE"}, "-")],
)
def test_the_access_log_names_the_caller(parameters: dict[str, str], caller: str) -> None:
    assert access_log(**parameters)["caller"] == caller


def test_the_access_log_holds_the_id_of_the_functions_log_and_addresses_unless_they_are_left_out() -> None:
    assert access_log()["function_request_id"] == "$context.integration.requestId"
    assert access_log()["address"] == "$context.identity.sourceIp"
    assert not any("sourceIp" in value for value in access_log(LogAddresses="false").values())


def limits(**parameters: str) -> tuple[str, str]:
    variables = Stack(TEMPLATE, **parameters)["Function"]["Environment"]["Variables"]
    return str(variables["MAX_TEXTS"]), str(variables["MAX_TOKENS"])


def test_a_request_may_ask_for_less_work_where_everyone_may_ask() -> None:
    assert limits() == limits(**JWT) == (str(DEFAULT_TEXTS), str(LAMBDA_TOKENS))
    assert limits(Authorization="NONE") == ("16", "1024")
    assert limits(Authorization="NONE", MaxTexts="3", MaxTokens="300") == ("3", "300")


# --- a domain of one's own

DOMAIN = {
    "DomainName": "search.example.com",
    "CertificateArn": "arn:aws:acm:eu-central-1:123456789012:certificate/1234abcd-12ab-34cd-56ef-1234567890ab",
}


def test_an_api_has_no_domain_unless_one_is_named() -> None:
    stack = Stack(TEMPLATE)
    kinds = {resource["Type"] for resource in stack.resources.values()}
    assert not {kind for kind in kinds if kind.startswith(("AWS::ApiGatewayV2::", "AWS::Route53::"))}
    assert "DomainTarget" not in stack.outputs
    assert stack.outputs["Url"] == "https://<Api>.execute-api.eu-central-1.amazonaws.com"


def test_a_domain_leads_to_the_api_under_its_certificate() -> None:
    stack = Stack(TEMPLATE, **DOMAIN)
    (domain,) = stack.of_type("AWS::ApiGatewayV2::DomainName").values()
    assert domain["DomainName"] == DOMAIN["DomainName"]
    (configuration,) = domain["DomainNameConfigurations"]
    assert configuration["CertificateArn"] == DOMAIN["CertificateArn"]
    assert (configuration["EndpointType"], configuration["SecurityPolicy"]) == ("REGIONAL", "TLS_1_2")
    (mapping,) = stack.of_type("AWS::ApiGatewayV2::ApiMapping").values()
    assert mapping == {"DomainName": "<Domain>", "ApiId": "<Api>", "Stage": "<Api.Stage>"}
    assert not stack.of_type("AWS::Route53::RecordSet")
    assert stack.outputs["DomainTarget"] == "<Domain.RegionalDomainName>"
    assert stack.outputs["Url"] == "https://search.example.com"


def test_a_hosted_zone_gets_the_record_of_the_domain() -> None:
    stack = Stack(TEMPLATE, **DOMAIN, HostedZoneId="Z148QEXAMPLE8V")
    (record,) = stack.of_type("AWS::Route53::RecordSet").values()
    assert (record["HostedZoneId"], record["Name"], record["Type"]) == ("Z148QEXAMPLE8V", DOMAIN["DomainName"], "A")
    assert record["AliasTarget"] == {
        "DNSName": "<Domain.RegionalDomainName>",
        "HostedZoneId": "<Domain.RegionalHostedZoneId>",
    }


def test_a_base_path_is_mapped_by_the_api_and_taken_off_by_the_function() -> None:
    stack = Stack(TEMPLATE, **DOMAIN, ApiBasePath="search/v1")
    (mapping,) = stack.of_type("AWS::ApiGatewayV2::ApiMapping").values()
    assert mapping["ApiMappingKey"] == "search/v1"  # API Gateway wants it without a slash before it
    assert base_path(stack) == "/search/v1"
    assert stack.outputs["Url"] == "https://search.example.com/search/v1"
    assert "https://search.example.com/search/v1/similar" in shlex.split(stack.outputs["Curl"])
    # the API's own address takes no base path
    assert stack_url(ApiBasePath="search") == "https://<Api>.execute-api.eu-central-1.amazonaws.com"
    assert base_path(Stack(TEMPLATE)) == Settings().api_base_path


def base_path(stack: Stack) -> str:
    variables = stack["Function"]["Environment"]["Variables"]
    return read_settings({name: str(value) for name, value in variables.items()}).api_base_path


def stack_url(**parameters: str) -> str:
    return Stack(TEMPLATE, **parameters).outputs["Url"]


KEY = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
NO_KEYS = ["arn:aws:kms:eu-central-1:123456789012:alias/texts", KEY.rpartition("/")[2]]


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("BundleKeyArn", ["", KEY], NO_KEYS),
        ("VectorKeyArn", ["", KEY], NO_KEYS),
        ("VectorIndex", ["", "headlines", "headlines-2", "headlines*"], ["*", "head*lines", "headlines-**"]),
        ("JwtAudience", ["one,two", ""], ["one, two", "one,,two"]),
        ("ApiBasePath", ["", "search", "search/v1", "v1.2_a-b"], ["/search", "search/", "a//b", "a b", "a" * 21]),
        ("DomainName", ["", "search.example.com"], ["localhost", "https://a.com", "a.com/", "*.a.com"]),
        ("SubnetIds", ["", "subnet-0a1b2c3d"], ["subnet-0a1b2c3d, subnet-0a1b2c3e", "sg-0a1b2c3d"]),
        ("SecurityGroupIds", ["", "sg-0a1b2c3d,sg-0a1b2c3e"], ["sg-0a1b2c3d,", "subnet-0a1b2c3d"]),
        ("PermissionsBoundary", ["", "arn:aws:iam::123456789012:policy/a/b"], ["developers"]),
        ("AlarmTopicArn", ["", "arn:aws:sns:eu-central-1:123456789012:operations"], ["operations", "a.fifo"]),
    ],
)
def test_a_name_that_aws_would_refuse_later_is_refused_before_anything_is_made(
    name: str, allowed: list[str], refused: list[str]
) -> None:
    parameter = TEMPLATE["Parameters"][name]

    def fits(value: str) -> bool:
        length = int(parameter.get("MaxLength", len(value)))
        return bool(re.fullmatch(parameter["AllowedPattern"], value)) and len(value) <= length

    assert [value for value in [*allowed, *refused] if fits(value)] == allowed


# --- what the function may do and how it runs


def statements(stack: Stack) -> list[dict[str, Any]]:
    """Return the statements of the function's role."""
    role = stack["FunctionRole"]
    return [one for policy in role["Policies"] for one in policy["PolicyDocument"]["Statement"]]


@pytest.mark.parametrize(
    ("parameters", "traces"),
    [({}, {}), ({"Tracing": "Active"}, {"xray:PutTraceSegments": "*", "xray:PutTelemetryRecords": "*"})],
    ids=["default", "with tracing"],
)
def test_the_function_may_write_its_own_logs_and_traces_and_nothing_else(
    parameters: dict[str, str], traces: dict[str, str]
) -> None:
    stack = Stack(TEMPLATE, **parameters)
    role = stack["FunctionRole"]
    assert list(stack.of_type("AWS::IAM::Role")) == ["FunctionRole"]
    assert not {"ManagedPolicyArns", "PermissionsBoundary"} & role.keys()
    allowed = {action: one["Resource"] for one in statements(stack) for action in one["Action"]}
    logs = {"logs:CreateLogStream": "<FunctionLogs.Arn>", "logs:PutLogEvents": "<FunctionLogs.Arn>"}
    assert allowed == logs | traces
    function = stack["Function"]
    assert function["Role"] == "<FunctionRole.Arn>"
    assert "Policies" not in function


def test_a_function_with_a_bucket_may_read_its_prefix_and_nothing_else() -> None:
    stack = Stack(TEMPLATE, BundleBucket="texts", BundlePrefix="news/en")
    (reading,) = [one for one in statements(stack) if any(action.startswith("s3") for action in one["Action"])]
    assert reading["Action"] == ["s3:GetObject"]
    assert reading["Resource"].endswith(":s3:::texts/news/en/*")
    function = stack["Function"]
    variables = function["Environment"]["Variables"]
    assert variables["BUNDLE_DIR"] == "s3://texts/news/en"
    assert read_settings({name: str(value) for name, value in variables.items()}).bundle_url == "s3://texts/news/en"


def test_the_function_may_ask_the_one_index_of_s3_vectors_that_is_named() -> None:
    stack = Stack(TEMPLATE, VectorBucket="texts", VectorIndex="headlines")
    (found,) = [one for one in statements(stack) if "s3vectors:QueryVectors" in one["Action"]]
    assert found["Action"] == ["s3vectors:QueryVectors", "s3vectors:GetVectors"]
    assert found["Resource"].startswith("arn:")
    assert found["Resource"].endswith(":bucket/texts/index/headlines")
    assert "*" not in found["Resource"]


@pytest.mark.parametrize(
    ("parameters", "service"),
    [
        ({"BundleBucket": "texts", "BundleKeyArn": KEY}, "s3.eu-central-1.amazonaws.com"),
        (
            {"VectorBucket": "texts", "VectorIndex": "headlines", "VectorKeyArn": KEY},
            "s3vectors.eu-central-1.amazonaws.com",
        ),
    ],
    ids=["the bundle's key", "the index's key"],
)
def test_the_function_may_decrypt_what_its_key_protects_and_only_through_that_service(
    parameters: dict[str, str], service: str
) -> None:
    (found,) = [one for one in statements(Stack(TEMPLATE, **parameters)) if "kms:Decrypt" in one["Action"]]
    assert found == {
        "Effect": "Allow",
        "Action": ["kms:Decrypt"],
        "Resource": KEY,
        "Condition": {"StringEquals": {"kms:ViaService": service}},
    }


def test_every_role_has_the_boundary_that_is_named() -> None:
    boundary = "arn:aws:iam::123456789012:policy/developers"
    roles = Stack(TEMPLATE, Canary="true", PermissionsBoundary=boundary).of_type("AWS::IAM::Role")
    assert roles.keys() == {"FunctionRole", "CanaryRole"}
    assert {role["PermissionsBoundary"] for role in roles.values()} == {boundary}


NETWORK = {
    "SubnetIds": "subnet-0a1b2c3d4e5f60718,subnet-1a1b2c3d4e5f60718",
    "SecurityGroupIds": "sg-0a1b2c3d4e5f60718",
}


def test_a_function_is_in_no_network_unless_it_is_asked_for() -> None:
    assert "VpcConfig" not in PLAIN["Function"]
    stack = Stack(TEMPLATE, **NETWORK)
    assert stack["Function"]["VpcConfig"] == {
        "SubnetIds": ["subnet-0a1b2c3d4e5f60718", "subnet-1a1b2c3d4e5f60718"],
        "SecurityGroupIds": ["sg-0a1b2c3d4e5f60718"],
    }
    role = stack["FunctionRole"]
    assert role["ManagedPolicyArns"] == ["arn:aws:iam::aws:policy/service-role/AWSLambdaENIManagementAccess"]


def test_only_lambda_and_not_the_functions_code_may_change_networks() -> None:
    (found,) = [one for one in statements(Stack(TEMPLATE, **NETWORK)) if one["Effect"] == "Deny"]
    assert found["Action"] == ["ec2:*"]
    assert found["Condition"] == {"Null": {"lambda:SourceFunctionArn": "false"}}  # Lambda sets it for the code's calls


def test_each_variable_of_the_environment_is_read_by_the_settings_or_by_powertools() -> None:
    known = {name.upper() for name in Settings.__dataclass_fields__}
    known |= {constants.SERVICE_NAME_ENV, constants.METRICS_NAMESPACE_ENV}
    function = PLAIN["Function"]
    assert function["Environment"]["Variables"].keys() <= known


def test_logs_are_json_in_a_group_that_forgets() -> None:
    stack = Stack(TEMPLATE, LogRetentionDays="7")
    function = stack["Function"]
    assert (function["LoggingConfig"]["LogFormat"], function["LoggingConfig"]["LogGroup"]) == ("JSON", "<FunctionLogs>")
    groups = stack.of_type("AWS::Logs::LogGroup")
    assert {group["RetentionInDays"] for group in groups.values()} == {"7"}
    assert len({group["LogGroupName"] for group in groups.values()}) == len(groups)


# what of a function belongs to no version
NOT_IN_A_VERSION = {"ReservedConcurrentExecutions", "ProvisionedConcurrencyConfig", "DeploymentPreference"}
NOT_IN_A_VERSION |= {"FunctionUrlConfig", "VersionDescription"}


def test_each_parameter_of_the_function_is_in_the_versions_description_so_that_it_reaches_the_alias() -> None:
    properties = TEMPLATE["Resources"]["Function"]["Properties"]
    versioned = json.dumps({name: value for name, value in properties.items() if name not in NOT_IN_A_VERSION})
    decided = json.dumps([TEMPLATE["Conditions"][name] for name in re.findall(r'"Fn::If": \["(\w+)"', versioned)])
    assert {"MemorySize", "MaxTexts", "Authorization", "SubnetIds", "ApiBasePath"} <= parameters_in(versioned)
    assert parameters_in(json.dumps(properties["VersionDescription"])) == parameters_in(versioned + decided)


def parameters_in(text: str) -> set[str]:
    names = {name for pair in re.findall(r'"Ref": "(\w+)"|\$\{(\w+)\}', text) for name in pair}
    parameters: set[str] = set(TEMPLATE["Parameters"])
    return names & parameters


@pytest.mark.parametrize("parameters", [JWT, {"BundlePrefix": "news"}, {"MaxTexts": "2048"}])
def test_each_new_version_has_another_function_behind_it(parameters: dict[str, str]) -> None:
    """Lambda publishes no version of a function that has not changed, and CloudFormation then fails the deployment."""
    before, after = (Stack(TEMPLATE, **chosen)["Function"] for chosen in ({}, parameters))
    assert before["VersionDescription"] != after["VersionDescription"]
    assert before["Description"] != after["Description"]


LONGEST = {
    "Release": "r" * 40,
    "MemorySize": "10240",
    "SnapStart": "PublishedVersions",
    "MaxTexts": "10000",
    "MaxTokens": "1000000",
    "Tracing": "PassThrough",
    "EphemeralStorage": "10240",
    "BundlePollSeconds": "86400",
    "BundleBucket": "b" * 63,
    "BundlePrefix": "p" * 40,
    "ApiBasePath": "a" * 20,
}


@pytest.mark.parametrize(
    "parameters",
    [
        LONGEST,
        {"Release": "r" * 40, "BundleBucket": "b" * 40, "BundlePrefix": "p" * 20, "ApiBasePath": "a" * 8}
        | {"SubnetIds": ",".join(["subnet-" + "0" * 17] * 3), "SecurityGroupIds": ",".join(["sg-" + "0" * 17] * 2)},
    ],
    ids=["without a network", "with a network of five ids"],
)
def test_descriptions_are_as_short_as_lambda_wants_them(parameters: dict[str, str]) -> None:
    for name, value in parameters.items():
        parameter = TEMPLATE["Parameters"][name]
        assert re.fullmatch(parameter.get("AllowedPattern", ".*"), value), name
        assert len(value) <= int(parameter.get("MaxLength", 10_000)), name
        if parameters is LONGEST and "MaxLength" in parameter:
            assert len(value) == int(parameter["MaxLength"]), name
    function = Stack(TEMPLATE, **parameters)["Function"]
    assert len(function["Description"]) <= 256
    assert len(function["VersionDescription"]) <= 256


def test_the_function_gives_up_before_the_api_does() -> None:
    stack = Stack(TEMPLATE)
    timeout = stack["Function"]["Timeout"]
    assert all(
        timeout * 1000 < operation["x-amazon-apigateway-integration"]["timeoutInMillis"] <= 30_000
        for operation in operations(stack).values()
    )


def test_concurrency_is_neither_reserved_nor_provisioned_unless_asked_for() -> None:
    plain = PLAIN["Function"]
    assert not {"ReservedConcurrentExecutions", "ProvisionedConcurrencyConfig"} & plain.keys()
    asked = Stack(TEMPLATE, ReservedConcurrency="4", ProvisionedConcurrency="2")
    function = asked["Function"]
    assert function["ReservedConcurrentExecutions"] == "4"
    assert function["ProvisionedConcurrencyConfig"] == {"ProvisionedConcurrentExecutions": "2"}


# --- what is watched


def metrics_of(alarm: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics of an alarm in one form, whether it has one or an expression over several."""
    if "Metrics" in alarm:
        return [one["MetricStat"]["Metric"] for one in alarm["Metrics"] if "MetricStat" in one]
    return [dict(alarm)]


CANARY_ALARMS = {"CanaryErrorsAlarm", "CanaryDurationAlarm"}


@pytest.mark.parametrize(
    ("parameter", "added"),
    [
        ({"Canary": "true"}, CANARY_ALARMS),
        ({"SilenceAlarm": "true"}, {"NoRequestsAlarm"}),
        ({"BundleBucket": "texts"}, {"SwitchAlarm"}),
    ],
)
def test_each_alarm_says_what_to_look_at_and_some_are_there_only_with_what_they_watch(
    parameter: dict[str, str], added: set[str]
) -> None:
    alarms = Stack(TEMPLATE, **parameter).of_type("AWS::CloudWatch::Alarm")
    assert alarms.keys() - PLAIN.of_type("AWS::CloudWatch::Alarm").keys() == added
    for name, alarm in alarms.items():
        assert "Look first" in alarm["AlarmDescription"], name
        assert alarm["TreatMissingData"] == ("breaching" if name == "NoRequestsAlarm" else "notBreaching"), name


@pytest.mark.parametrize(
    ("requests", "crashes", "replies", "is_alarm"),
    [
        (1, 1, 0, False),
        (1000, 2, 2, False),
        (1000, 0, 9, False),
        (1000, 9, 10, True),
        (3, 3, 0, True),
        (200, 0, 3, True),
    ],
)
def test_errors_ring_from_one_in_a_hundred_and_three(requests: int, crashes: int, replies: int, is_alarm: bool) -> None:
    """The expression is CloudWatch's metric math; for this arithmetic Python reads the same."""
    alarm = PLAIN["ErrorsAlarm"]
    (expression,) = (one["Expression"] for one in alarm["Metrics"] if "Expression" in one)
    functions = {"FILL": lambda series, value: series, "MAX": max, "IF": lambda test, yes, no: yes if test else no}
    rate = eval(
        expression, {"__builtins__": {}}, functions | {"requests": requests, "crashes": crashes, "replies": replies}
    )
    assert (rate >= alarm["Threshold"]) is is_alarm


TOPIC = "arn:aws:sns:eu-central-1:123456789012:operations"


@pytest.mark.parametrize(
    ("parameters", "receivers"),
    [
        ({}, []),
        ({"AlarmEmail": EMAIL}, ["<AlarmTopic>"]),
        ({"AlarmTopicArn": TOPIC}, [TOPIC]),
        ({"AlarmEmail": EMAIL, "AlarmTopicArn": TOPIC}, ["<AlarmTopic>", TOPIC]),
    ],
    ids=["nowhere", "an address", "a topic", "both"],
)
def test_alarms_are_sent_to_the_address_and_the_topic_that_are_named(
    parameters: dict[str, str], receivers: list[str]
) -> None:
    stack = Stack(TEMPLATE, SilenceAlarm="true", BundleBucket="texts", **parameters)
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == receivers
    topics = stack.of_type("AWS::SNS::Topic").values()
    subscriptions = [one for topic in topics for one in topic["Subscription"]]
    assert subscriptions == ([{"Protocol": "email", "Endpoint": EMAIL}] if "AlarmEmail" in parameters else [])


def test_a_canary_is_withdrawn_by_alarms_of_its_own_version_that_are_quicker_than_it() -> None:
    stack = Stack(TEMPLATE, Canary="true")
    preference = stack["Function"]["DeploymentPreference"]
    assert preference["Enabled"] == "true"
    minutes = int(re.findall(r"(\d+)Minutes", preference["Type"])[0])
    alarms = stack.of_type("AWS::CloudWatch::Alarm")
    assert {alarm.strip("<>") for alarm in preference["Alarms"]} == CANARY_ALARMS
    for name in CANARY_ALARMS:
        alarm = alarms[name]
        periods = [one["MetricStat"]["Period"] for one in alarm.get("Metrics", ()) if "MetricStat" in one]
        assert max([alarm.get("Period", 0), *periods]) * alarm["EvaluationPeriods"] < minutes * 60
        of_lambda = next(metric for metric in metrics_of(alarm) if metric["Namespace"] == "AWS/Lambda")
        dimensions = {one["Name"]: one["Value"] for one in of_lambda["Dimensions"]}
        assert dimensions["Resource"] == "<Function>:live"
        assert dimensions["ExecutedVersion"] == "<Function.Version.Version>"


@pytest.mark.parametrize(
    ("parameters", "refusal"),
    [
        ({}, None),
        (JWT, None),
        ({"Authorization": "JWT", "JwtAudience": "one"}, "Authorization JWT needs JwtIssuer"),
        ({"Authorization": "JWT", "JwtIssuer": "https://issuer.example.com"}, "Authorization JWT needs JwtAudience"),
        ({"SnapStart": "PublishedVersions"}, None),
        ({"Canary": "true", "SnapStart": "PublishedVersions"}, None),
        ({"SnapStart": "PublishedVersions", "ProvisionedConcurrency": "1"}, "SnapStart does not work with"),
        ({"Canary": "true", "ProvisionedConcurrency": "1"}, "Canary does not work with ProvisionedConcurrency"),
        ({"SnapStart": "PublishedVersions", "EphemeralStorage": "1024"}, "SnapStart works with an EphemeralStorage"),
        ({"MonthlyBudget": "20"}, "MonthlyBudget needs AlarmEmail or AlarmTopicArn"),
        ({"MonthlyBudget": "20", "AlarmTopicArn": TOPIC}, None),
        ({"VectorBucket": "texts"}, "VectorBucket needs VectorIndex"),
        ({"VectorBucket": "texts", "VectorIndex": "headlines"}, None),
        ({"MonthlyBudget": "20", "AlarmEmail": EMAIL}, None),
        ({"BundleKeyArn": KEY}, "BundleKeyArn needs BundleBucket"),
        ({"BundleKeyArn": KEY, "BundleBucket": "texts"}, None),
        ({"VectorKeyArn": KEY}, "VectorKeyArn needs VectorBucket"),
        (NETWORK, None),
        ({"SubnetIds": NETWORK["SubnetIds"]}, "SubnetIds and SecurityGroupIds need each other"),
        ({"SecurityGroupIds": NETWORK["SecurityGroupIds"]}, "SubnetIds and SecurityGroupIds need each other"),
        (DOMAIN, None),
        (DOMAIN | {"HostedZoneId": "Z148QEXAMPLE8V"}, None),
        ({"DomainName": DOMAIN["DomainName"]}, "DomainName and CertificateArn need each other"),
        ({"CertificateArn": DOMAIN["CertificateArn"]}, "DomainName and CertificateArn need each other"),
        ({"HostedZoneId": "Z148QEXAMPLE8V"}, "HostedZoneId needs DomainName"),
    ],
)
def test_what_lambda_would_refuse_half_way_is_refused_before_anything_is_made(
    parameters: dict[str, str], refusal: str | None
) -> None:
    found = Stack(TEMPLATE, **parameters).refusals()
    assert len(found) == (refusal is not None)
    assert all(str(refusal) in one for one in found)


@pytest.mark.parametrize(
    "receivers", [{"AlarmEmail": EMAIL}, {"AlarmTopicArn": TOPIC}, {"AlarmEmail": EMAIL, "AlarmTopicArn": TOPIC}]
)
def test_a_budget_writes_before_and_after_the_money_is_gone(receivers: dict[str, str]) -> None:
    assert not PLAIN.of_type("AWS::Budgets::Budget")
    kinds = {"AlarmEmail": "EMAIL", "AlarmTopicArn": "SNS"}
    subscribers = [{"SubscriptionType": kinds[name], "Address": address} for name, address in receivers.items()]
    (budget,) = Stack(TEMPLATE, MonthlyBudget="20", **receivers).of_type("AWS::Budgets::Budget").values()
    assert budget["Budget"]["BudgetLimit"] == {"Amount": "20", "Unit": "USD"}
    assert [one["Notification"]["Threshold"] for one in budget["NotificationsWithSubscribers"]] == [80, 100]
    assert [one["Subscribers"] for one in budget["NotificationsWithSubscribers"]] == [subscribers, subscribers]


def test_a_release_is_named_by_the_function_its_versions_and_the_images_labels() -> None:
    function = Stack(TEMPLATE, Release="3f2a9c1").resources["Function"]
    assert "3f2a9c1" in function["Properties"]["VersionDescription"]


def test_saved_queries_ask_for_fields_that_the_logs_have() -> None:
    queries = PLAIN.of_type("AWS::Logs::QueryDefinition")
    asked = set(re.findall(r"(?:by|,) (\w+)(?=[,\n])", queries["RefusalsQuery"]["QueryString"]))
    assert asked == {"status", "route", "error", "integration_error", "authorizer_error", "caller"}
    assert asked <= access_log().keys()
    for alarm in Stack(TEMPLATE, Canary="true").of_type("AWS::CloudWatch::Alarm").values():
        for name in re.findall(r'saved query\s+"([^"]+)"', alarm["AlarmDescription"]):
            assert f"stories/{name}" in {one["Name"] for one in queries.values()}


def widgets(stack: Stack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(stack["Dashboard"]["DashboardBody"])["widgets"]
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
    stack = Stack(TEMPLATE)
    asked = [metric for widget in widgets(stack) for metric in graphed(widget)]
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        for metric in metrics_of(alarm):
            dimensions = {one["Name"]: one["Value"] for one in metric.get("Dimensions", ())}
            asked.append((metric["Namespace"], metric["MetricName"], dimensions))
    variables = stack["Function"]["Environment"]["Variables"]
    own = [(name, dimensions) for namespace, name, dimensions in asked if not namespace.startswith("AWS/")]
    assert {namespace for namespace, _, _ in asked if not namespace.startswith("AWS/")} == {
        variables[constants.METRICS_NAMESPACE_ENV]
    }
    assert COLD_START_DIMENSIONS["service"] == variables[constants.SERVICE_NAME_ENV]
    (counted,) = stack.of_type("AWS::Logs::MetricFilter").values()
    (transformation,) = counted["MetricTransformations"]
    assert transformation["MetricNamespace"] == variables[constants.METRICS_NAMESPACE_ENV]
    assert {name for name, _ in own} == COLD_START_METRICS | {transformation["MetricName"]}
    assert all(
        dimensions == ({} if name == transformation["MetricName"] else COLD_START_DIMENSIONS)
        for name, dimensions in own
    )
    dimensions_of_aws = {(namespace, *dims.items()) for namespace, _, dims in asked if namespace.startswith("AWS/")}
    assert dimensions_of_aws == {
        ("AWS/Lambda", ("FunctionName", "<Function>")),
        ("AWS/ApiGateway", ("ApiId", "<Api>")),
    }


def test_the_dashboard_stacks_every_phase_of_a_cold_start_once() -> None:
    (stacked,) = (one for one in widgets(Stack(TEMPLATE)) if one["type"] == "metric" and one["properties"]["stacked"])
    assert sorted(name for _, name, _ in graphed(stacked)) == sorted(COLD_START_PHASES)
    assert stacked["properties"]["stat"] == "Average"  # averages add up


def test_the_dashboard_asks_the_functions_log_for_fields_that_a_request_leaves() -> None:
    stack = Stack(TEMPLATE)
    (widget,) = (one for one in widgets(stack) if one["type"] == "log")
    query = widget["properties"]["query"]
    assert query.startswith("SOURCE '<FunctionLogs>' | ")
    fields = set(re.findall(r"\bphases\.(\w+)", query))
    assert fields == {"parse", "embed", "search", "reply"}
    assert set(re.findall(r"(\w+) = ", query)) == {"message", "path", "status"}


def test_no_two_widgets_of_the_dashboard_cover_each_other() -> None:
    covered = [
        (x, y)
        for one in widgets(Stack(TEMPLATE))
        for x in range(one["x"], one["x"] + one["width"])
        for y in range(one["y"], one["y"] + one["height"])
    ]
    assert len(covered) == len(set(covered))
    assert max(x for x, _ in covered) < 24  # a dashboard's width


# --- what one sees and types


def test_every_parameter_is_described_grouped_and_used() -> None:
    parameters = TEMPLATE["Parameters"]
    groups = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert sorted(name for group in groups for name in group["Parameters"]) == sorted(parameters)
    used = json.dumps([TEMPLATE["Conditions"], TEMPLATE["Resources"]], default=str)
    for name, parameter in parameters.items():
        assert parameter["Description"], name
        assert "Default" in parameter, name
        assert f'{{"Ref": "{name}"}}' in used or f"${{{name}}}" in used, name


@pytest.mark.parametrize(
    ("parameters", "credentials"),
    [
        ({}, "--aws-sigv4 aws:amz:eu-central-1:execute-api"),
        (JWT, "authorization: Bearer $TOKEN"),
        ({"Authorization": "NONE"}, None),
    ],
)
def test_the_curl_line_asks_similar_as_a_caller_must(parameters: dict[str, str], credentials: str | None) -> None:
    line = Stack(TEMPLATE, **parameters).outputs["Curl"]
    words = shlex.split(line)
    assert words[0] == "curl"
    assert "https://<Api>.execute-api.eu-central-1.amazonaws.com/similar" in words
    assert json.loads(words[words.index("-d") + 1]).keys() == {"text"}
    assert "content-type: application/json" in words
    found = " ".join(words)
    assert credentials in found if credentials else "authorization" not in found and "sigv4" not in found
