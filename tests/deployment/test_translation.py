"""What AWS makes of the templates: SAM's own translator, and cfn-lint over its result."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.deployment.conftest import ROOT

Translate = Callable[..., dict[str, Any]]

JWT = ("Authorization=JWT", "JwtIssuer=https://issuer.example.com", "JwtAudience=one,two")
CASES = [
    ("template.yaml", ()),
    ("template.yaml", JWT),
    ("template.yaml", ("Authorization=NONE", "CorsOrigins=https://example.com")),
    ("template.yaml", ("Canary=true", "ProvisionedConcurrency=2", "ReservedConcurrency=4", "Tracing=Active")),
    ("template.yaml", ("Architecture=arm64", "AlarmEmail=someone@example.com")),
    ("template-zip.yaml", ()),
    ("template-zip.yaml", ("Authorization=NONE", "ReservedConcurrency=4", "Architecture=arm64")),
]
# SAM has put this parameter's value in, so that nothing refers to it any more
USED_BY_SAM = "W2001"


@pytest.fixture(scope="session")
def translate(tools: Path) -> Translate:
    """Return a function: a template and NAME=VALUE parameters to the CloudFormation template SAM makes of them."""

    @cache
    def run(template: str, *parameters: str) -> dict[str, Any]:
        script = Path(__file__).with_name("translate.py")
        command: list[str | Path] = [tools / "python", script, ROOT / template, *parameters]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        translated: dict[str, Any] = json.loads(done.stdout)
        return translated

    return run


def of_type(template: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: one for name, one in template["Resources"].items() if one["Type"] == kind}


@pytest.mark.parametrize(("template", "parameters"), CASES)
def test_cfn_lint_finds_nothing_in_what_sam_makes(
    translate: Translate, tmp_path: Path, template: str, parameters: tuple[str, ...]
) -> None:
    translated = tmp_path / "translated.json"
    translated.write_text(json.dumps(translate(template, *parameters)))
    command: list[str | Path] = [
        Path(sys.executable).with_name("cfn-lint"),
        "--ignore-checks",
        USED_BY_SAM,
        "--",
        str(translated),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("template", "parameters"), CASES)
def test_sam_gives_the_function_no_permission_that_is_not_written_out(
    translate: Translate, template: str, parameters: tuple[str, ...]
) -> None:
    roles = of_type(translate(template, *parameters), "AWS::IAM::Role")
    assert "ManagedPolicyArns" not in roles.pop("FunctionRole")["Properties"]
    # CodeDeploy's is AWS's own, made for shifting traffic between versions of functions
    assert roles.keys() <= {"CodeDeployServiceRole"}


def test_the_api_that_sam_makes_keeps_its_locks_and_its_limits(translate: Translate) -> None:
    translated = translate("template.yaml")
    (api,) = of_type(translated, "AWS::ApiGatewayV2::Api").values()
    for methods in api["Properties"]["Body"]["paths"].values():
        for operation in methods.values():
            assert operation["security"]["Fn::If"][:2] == ["IsIam", [{"AWS_IAM": []}]]
    (stage,) = of_type(translated, "AWS::ApiGatewayV2::Stage").values()
    assert stage["Properties"]["StageName"] == "$default"
    assert stage["Properties"]["DefaultRouteSettings"]["ThrottlingRateLimit"] == {"Ref": "ThrottlingRate"}
    assert "AccessLogSettings" in stage["Properties"]


def test_a_new_image_is_a_new_version_and_an_address_is_not(translate: Translate) -> None:
    def version(*parameters: str) -> str:
        (name,) = of_type(translate("template.yaml", *parameters), "AWS::Lambda::Version")
        return name

    before = version()
    assert version("AlarmEmail=someone@example.com") == before
    assert version("Image=123456789012.dkr.ecr.eu-central-1.amazonaws.com/stories:2") != before


def test_a_new_setting_replaces_the_version_by_its_description(translate: Translate) -> None:
    """A version's name says nothing of a parameter's value: CloudFormation replaces it for another description."""
    for template in ("template.yaml", "template-zip.yaml"):
        (version,) = of_type(translate(template), "AWS::Lambda::Version").values()
        assert "${MemorySize}" in version["Properties"]["Description"]["Fn::Sub"]


def test_traffic_is_shifted_by_codedeploy_only_with_a_canary(translate: Translate) -> None:
    assert not of_type(translate("template.yaml"), "AWS::CodeDeploy::DeploymentGroup")
    translated = translate("template.yaml", "Canary=true")
    (group,) = of_type(translated, "AWS::CodeDeploy::DeploymentGroup").values()
    alarms = [one["Name"]["Ref"] for one in group["Properties"]["AlarmConfiguration"]["Alarms"]]
    assert set(alarms) <= of_type(translated, "AWS::CloudWatch::Alarm").keys()
    (alias,) = of_type(translated, "AWS::Lambda::Alias").values()
    assert "CodeDeployLambdaAliasUpdate" in alias["UpdatePolicy"]


def test_the_url_of_the_zip_leads_to_versions_with_a_snapshot_that_go_when_they_are_replaced(
    translate: Translate,
) -> None:
    translated = translate("template-zip.yaml")
    (alias,) = of_type(translated, "AWS::Lambda::Alias")
    (url,) = of_type(translated, "AWS::Lambda::Url").values()
    assert url["Properties"]["TargetFunctionArn"] == {"Ref": alias}
    (function,) = of_type(translated, "AWS::Lambda::Function").values()
    assert function["Properties"]["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    (version,) = of_type(translated, "AWS::Lambda::Version").values()
    assert version["DeletionPolicy"] == "Delete"
    permissions = of_type(translated, "AWS::Lambda::Permission").values()
    assert {one["Condition"] for one in permissions} == {"IsOpen"}
