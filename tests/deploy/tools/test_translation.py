"""What AWS makes of the template: SAM's own translator, and cfn-lint over its result."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.project import ROOT

Translate = Callable[..., dict[str, Any]]

KEY = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
CERTIFICATE = "arn:aws:acm:eu-central-1:123456789012:certificate/1234abcd-12ab-34cd-56ef-1234567890ab"
CASES = [
    (),
    (
        *("Authorization=JWT", "JwtIssuer=https://issuer.example.com", "JwtAudience=one,two", "SilenceAlarm=true"),
        *("JwtScopes=search/read,search/write", "JwtFilter=https://example.com/claims/tenant=tenant"),
        *("CorsOrigins=https://example.com", "LogAddresses=false", "AlarmEmail=someone@example.com"),
        *("MonthlyBudget=20", "ProvisionedConcurrency=2", "ReservedConcurrency=4", "Tracing=Active", "Release=3f2a9c1"),
    ),
    (
        *("Canary=true", "SnapStart=PublishedVersions", "SecurityGroupIds=sg-0a1b2c3d4e5f60718"),
        *("PermissionsBoundary=arn:aws:iam::123456789012:policy/developers", "Authorization=NONE"),
        "SubnetIds=subnet-0a1b2c3d4e5f60718,subnet-1a1b2c3d4e5f60718",
        *("AlarmTopicArn=arn:aws:sns:eu-central-1:123456789012:operations", "BundleBucket=texts"),
        *("VectorBucket=texts", "VectorIndex=headlines", f"BundleKeyArn={KEY}", f"VectorKeyArn={KEY}"),
        *("DomainName=search.example.com", f"CertificateArn={CERTIFICATE}", "HostedZoneId=Z148QEXAMPLE8V"),
        *("ApiBasePath=search", "DomainOnly=true"),
    ),
    (
        *(
            "Address=FunctionUrl",
            "Authorization=KEYS",
            f"ApiKeyHashes={'0123456789abcdef' * 4}",
            "ReservedConcurrency=5",
        ),
        *("CorsOrigins=https://example.com", "Canary=true", "SilenceAlarm=true", "WarmUpAllRoutes=true"),
    ),
]
# W1030, W1033: template.yaml says why defaults are empty.
# W2001: SAM has put a parameter's value in, so that nothing refers to the parameter any more.
# W3011: template.yaml says why the function has an UpdateReplacePolicy and no DeletionPolicy; SAM drops that comment.
IGNORED = "W1030,W1033,W2001,W3011"


@pytest.fixture(scope="session")
def translate(tools: Path) -> Translate:
    """Return a function: NAME=VALUE parameters to the CloudFormation template that SAM makes with them."""

    @cache
    def run(*parameters: str) -> dict[str, Any]:
        script = Path(__file__).with_name("translate.py")
        command: list[str | Path] = [tools / "python", script, ROOT / "template.yaml", *parameters]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        translated: dict[str, Any] = json.loads(done.stdout)
        return translated

    return run


def of_type(template: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: one for name, one in template["Resources"].items() if one["Type"] == kind}


@pytest.mark.parametrize("parameters", CASES)
def test_cfn_lint_finds_nothing_in_what_sam_makes_and_no_permission_is_added(
    translate: Translate, tmp_path: Path, parameters: tuple[str, ...]
) -> None:
    translated = translate(*parameters)
    path = tmp_path / "translated.json"
    path.write_text(json.dumps(translated))
    command: list[str | Path] = [Path(sys.executable).with_name("cfn-lint"), "--ignore-checks", IGNORED, "--", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    roles = of_type(translated, "AWS::IAM::Role")
    assert roles.keys() == {"FunctionRole", "CanaryRole"}  # the second has a condition
    condition, _, otherwise = roles["FunctionRole"]["Properties"]["ManagedPolicyArns"]["Fn::If"]
    assert (condition, otherwise) == ("HasNetwork", {"Ref": "AWS::NoValue"})


def test_a_domain_leads_to_the_stage_that_sam_makes(translate: Translate) -> None:
    translated = translate()
    (stage,) = of_type(translated, "AWS::ApiGatewayV2::Stage")
    (mapping,) = of_type(translated, "AWS::ApiGatewayV2::ApiMapping").values()
    assert mapping["Properties"]["Stage"] == {"Ref": stage}


def test_the_api_that_sam_makes_keeps_its_locks_and_its_limits(translate: Translate) -> None:
    translated = translate()
    (api,) = of_type(translated, "AWS::ApiGatewayV2::Api").values()
    for methods in api["Properties"]["Body"]["paths"].values():
        for operation in methods.values():
            assert operation["security"]["Fn::If"][:2] == ["IsIam", [{"AWS_IAM": []}]]
    (server,) = api["Properties"]["Body"]["servers"]
    closed = server["x-amazon-apigateway-endpoint-configuration"]["disableExecuteApiEndpoint"]
    assert closed == {"Fn::If": ["HasDomainOnly", True, False]}
    (stage,) = of_type(translated, "AWS::ApiGatewayV2::Stage").values()
    assert stage["Properties"]["StageName"] == "$default"
    assert stage["Properties"]["DefaultRouteSettings"]["ThrottlingRateLimit"] == {"Ref": "ThrottlingRate"}
    assert "AccessLogSettings" in stage["Properties"]


def test_a_function_url_leads_to_the_alias(translate: Translate) -> None:
    translated = translate()
    (alias,) = of_type(translated, "AWS::Lambda::Alias")
    (url,) = of_type(translated, "AWS::Lambda::Url").values()
    assert url["Properties"]["Qualifier"] == {"Fn::Select": [7, {"Fn::Split": [":", {"Ref": alias}]}]}
    for permission in of_type(translated, "AWS::Lambda::Permission").values():
        assert permission["Properties"]["FunctionName"] == {"Ref": alias}


def test_a_new_image_is_a_new_version_and_an_address_is_not(translate: Translate) -> None:
    def version(*parameters: str) -> str:
        (name,) = of_type(translate(*parameters), "AWS::Lambda::Version")
        return name

    before = version()
    assert version("AlarmEmail=someone@example.com") == before
    assert version("Image=123456789012.dkr.ecr.eu-central-1.amazonaws.com/stories:2") != before


def test_a_new_setting_replaces_the_version_and_keeps_the_old_one(translate: Translate) -> None:
    """A version's name says nothing of a parameter's value: CloudFormation replaces it for another description."""
    translated = translate()
    (version,) = of_type(translated, "AWS::Lambda::Version").values()
    assert "${MemorySize}" in version["Properties"]["Description"]["Fn::Sub"][0]
    (function,) = of_type(translated, "AWS::Lambda::Function").values()
    assert function["Properties"]["Description"] == version["Properties"]["Description"]
    assert version["UpdateReplacePolicy"] == version["DeletionPolicy"] == "Retain"


def test_traffic_is_shifted_by_codedeploy_only_with_a_canary(translate: Translate) -> None:
    assert not of_type(translate(), "AWS::CodeDeploy::DeploymentGroup")
    translated = translate("Canary=true")
    (group,) = of_type(translated, "AWS::CodeDeploy::DeploymentGroup").values()
    assert group["Properties"]["ServiceRoleArn"]["Fn::If"][:2] == ["IsCanary", {"Fn::GetAtt": ["CanaryRole", "Arn"]}]
    condition, alarms_of_a_canary, _ = group["Properties"]["AlarmConfiguration"]["Fn::If"]
    assert condition == "IsCanary"
    alarms = [one["Name"]["Ref"] for one in alarms_of_a_canary["Alarms"]]
    assert set(alarms) <= of_type(translated, "AWS::CloudWatch::Alarm").keys()
    (alias,) = of_type(translated, "AWS::Lambda::Alias").values()
    assert "CodeDeployLambdaAliasUpdate" in alias["UpdatePolicy"]
