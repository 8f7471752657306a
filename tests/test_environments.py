"""docs/environments.md and deploy/github.yaml: what is shown can be deployed, by roles that may do that and no more."""

import json
import re
import tomllib
from fnmatch import fnmatchcase
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from tests.project import ROOT
from tests.test_documents import BLOCK

PAGE = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
TEMPLATE: dict[str, Any] = cfn_yaml.load(str(ROOT / "template.yaml"))
ROLES: dict[str, Any] = cfn_yaml.load(str(ROOT / "deploy" / "github.yaml"))
SHOWN: dict[str, Any] = tomllib.loads(next(block for block in BLOCK.findall(PAGE) if "[dev." in block))

each_environment = pytest.mark.parametrize("environment", SHOWN)


def shown_parameters(environment: str) -> dict[str, str]:
    return dict(one.split("=", 1) for one in SHOWN[environment]["global"]["parameters"]["parameter_overrides"])


def named(environment: str, resource: str, key: str) -> str:
    """Return the name that deploy/github.yaml gives a resource, for the stack of an environment."""
    name = ROLES["Resources"][resource]["Properties"][key]
    stack = SHOWN[environment]["global"]["parameters"]["stack_name"]
    text: str = name.get("Fn::Sub", "${Stack}")
    return text.replace("${Stack}", stack).replace("${AWS::AccountId}", "123456789012")


# The environments in samconfig.toml


@each_environment
def test_each_parameter_that_is_shown_can_be_deployed(environment: str) -> None:
    parameters = shown_parameters(environment)
    for name, value in parameters.items():
        assert re.fullmatch(TEMPLATE["Parameters"][name].get("AllowedPattern", ".*"), value), name


@each_environment
def test_each_environment_that_is_shown_names_what_its_roles_are_made_with(environment: str) -> None:
    deploy = SHOWN[environment]["deploy"]["parameters"]
    account = "arn:aws:iam::123456789012:"
    assert deploy["role_arn"] == f"{account}role/{named(environment, 'Executor', 'RoleName')}"
    boundary = named(environment, "Boundary", "ManagedPolicyName")
    assert shown_parameters(environment)["PermissionsBoundary"] == f"{account}policy/{boundary}"
    assert deploy["s3_bucket"] == named(environment, "Bucket", "BucketName")
    assert deploy["image_repository"].endswith(f"/{named(environment, 'Repository', 'RepositoryName')}")


# Who may deploy


@pytest.mark.parametrize(
    ("subject", "is_allowed"),
    [
        ("repo:OWNER/REPOSITORY:environment:prod", True),
        ("repo:OWNER@123456/REPOSITORY@456789:environment:prod", True),
        ("repo:OWNER/*:environment:prod", False),
        ("repo:OWNER/REPOSITORY:*", False),
        ("repo:OWNER/REPOSITORY:ref:refs/heads/main", False),
    ],
)
def test_a_subject_names_one_repository_and_one_environment(subject: str, is_allowed: bool) -> None:
    assert bool(re.fullmatch(ROLES["Parameters"]["Subject"]["AllowedPattern"], subject)) is is_allowed


def test_a_stacks_name_is_short_enough_to_be_whole_in_the_names_of_its_resources() -> None:
    """CloudFormation's names are STACK-LOGICALID- and 12 characters. Beyond 64 it shortens STACK."""
    (longest,) = re.findall(r"\{0,(\d+)\}", ROLES["Parameters"]["Stack"]["AllowedPattern"])
    for name in ("Function", "FunctionRole", "CanaryRole"):
        assert name in TEMPLATE["Resources"]
        assert 1 + int(longest) + len(f"-{name}-") + 12 <= 64


# What the roles may do


def unconditional(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the statements of policies, those that depend on a condition too."""
    found = [one for document in documents for one in document["Statement"]]
    return [one["Fn::If"][1] if "Fn::If" in one else one for one in found]


def written(role: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the statements of a role, those that depend on a condition too."""
    return unconditional([policy["PolicyDocument"] for policy in role["Properties"]["Policies"]])


BOUNDARY: dict[str, Any] = ROLES["Resources"]["Boundary"]["Properties"]["PolicyDocument"]


def arn(service: str, name: str) -> str:
    return f"arn:${{AWS::Partition}}:{service}:${{AWS::Region}}:${{AWS::AccountId}}:{name}"


def of_the_stack(resource: str | dict[str, Any]) -> str:
    """Return the resource of a statement as text, in the words of deploy/github.yaml."""
    if isinstance(resource, str):
        return resource
    if "Ref" in resource:
        return f"${{{resource['Ref']}}}"
    if "Fn::GetAtt" in resource:
        assert resource["Fn::GetAtt"] == ["FunctionLogs", "Arn"]
        return arn("logs", "log-group:/aws/lambda/${Stack}:*")
    text: str = resource["Fn::Sub"]
    return text.replace("${AWS::StackName}", "${Stack}")


def statements(role: str) -> list[dict[str, Any]]:
    return written(ROLES["Resources"][role])


def may(role: str, action: str) -> bool:
    patterns = [pattern.lower() for one in statements(role) for pattern in one["Action"]]
    return any(fnmatchcase(action.lower(), pattern) for pattern in patterns)


# What CloudFormation's schemas name and this stack does not use, or what it must not do.
NOT_NEEDED = (
    "billing:*",  # needed for budgets for one view of a bill
    "elasticfilesystem:*",  # needed for functions with a file system
    "firehose:*",  # needed for log groups with a delivery stream
    "iam:DeleteRolePermissionsBoundary",  # a role without the boundary could do everything
    "kms:*",  # needed for functions whose environment has a key
    "s3:*",  # needed for code and OpenAPI documents in S3
    "s3files:*",
)


def test_cloudformations_role_may_do_what_the_resources_of_the_template_need() -> None:
    kinds = {one["Type"] for one in TEMPLATE["Resources"].values()}
    kinds -= {"AWS::Serverless::Function", "AWS::Serverless::HttpApi"}
    kinds |= {f"AWS::Lambda::{kind}" for kind in ("Function", "Version", "Alias")}
    kinds |= {"AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage"}
    kinds |= {"AWS::CodeDeploy::Application", "AWS::CodeDeploy::DeploymentGroup"}
    refused = set()
    for kind in kinds:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("eu-central-1", kind).schema
        handlers = [handler for name, handler in schema["handlers"].items() if name != "list"]
        needed = {action for handler in handlers for action in handler["permissions"]}
        refused |= {action for action in needed if not may("Executor", action)}
    assert sorted(action for action in refused if not any(fnmatchcase(action, one) for one in NOT_NEEDED)) == []
    assert all(any(fnmatchcase(action, one) for action in refused) for one in NOT_NEEDED)


def test_policies_are_written_only_into_the_stacks_own_roles_and_only_with_the_boundary() -> None:
    writing = {"AttachRolePolicy", "CreateRole", "DeleteRolePolicy", "DetachRolePolicy", "PutRolePolicy"}
    writing = {f"iam:{action}" for action in writing | {"PutRolePermissionsBoundary"}}
    others = {"iam:CreateServiceLinkedRole", "iam:PassRole", "iam:DeleteRole", "iam:UpdateAssumeRolePolicy"}
    for one in statements("Deployer") + statements("Executor"):
        actions = set(one["Action"])
        assert not {"*", "iam:*", "sts:*"} & actions
        changes = {action for action in actions if re.match(r"iam:(?!Get|List|Tag|Untag|UpdateRole)", action)}
        assert changes <= writing | others
        if writing & actions:
            assert one["Condition"] == {"StringEquals": {"iam:PermissionsBoundary": {"Ref": "Boundary"}}}


def role_patterns() -> list[list[str]]:
    """Return the roles that each statement about roles of the template names, without the beginning of their ARNs."""
    ours = [
        one
        for one in statements("Executor")
        if {"iam:PutRolePolicy", "iam:GetRole", "iam:PassRole"} & set(one["Action"])
    ]
    return [[arn["Fn::Sub"].partition(":role/")[2] for arn in one["Resource"]] for one in ours]


def test_cloudformations_role_may_change_and_pass_the_roles_of_its_stack_and_no_other() -> None:
    roles = [name for name, one in TEMPLATE["Resources"].items() if one["Type"] == "AWS::IAM::Role"]
    assert role_patterns() == [[f"${{Stack}}-{name}-*" for name in roles]] * 3
    # CloudFormation's names of the roles of a stack whose name begins with this one's, and our own two roles
    others = [f"semantic-search-prod-{name}-1A2B3C4D5E6F" for name in roles]
    others += ["semantic-search-github", "semantic-search-cloudformation"]
    patterns = [one.replace("${Stack}", "semantic-search") for one in role_patterns()[0]]
    assert not [other for other in others if any(fnmatchcase(other, pattern) for pattern in patterns)]


def test_the_boundary_allows_what_the_roles_of_the_stack_may_do() -> None:
    role = [one for one in written(TEMPLATE["Resources"]["FunctionRole"]) if one["Effect"] == "Allow"]
    needed = {(action, of_the_stack(one["Resource"])) for one in role for action in one["Action"]}
    aliases = {("lambda:UpdateAlias", arn("lambda", "function:${Stack}-Function-1A2B3C"))}  # CodeDeploy
    bounds = [(action, of_the_stack(one["Resource"])) for one in unconditional([BOUNDARY]) for action in one["Action"]]
    refused = [
        (action, resource)
        for action, resource in needed | aliases
        if not any(action == one and fnmatchcase(resource, pattern) for one, pattern in bounds)
    ]
    assert refused == []


def test_the_boundary_allows_to_read_and_to_change_nothing_of_another_stack() -> None:
    named_by_the_stack = ("${Stack}", "${BundleBucket}", "${VectorBucket}", "${ApiKeysArn}")
    for one in unconditional([BOUNDARY]):
        if of_the_stack(one["Resource"]) != "*":
            assert any(name in of_the_stack(one["Resource"]) for name in named_by_the_stack)
        elif "kms:Decrypt" in one["Action"]:
            assert "kms:ViaService" in one["Condition"]["StringEquals"]
        else:
            assert {action.partition(":")[0] for action in one["Action"]} == {"xray", "ec2", "cloudwatch"}


def test_names_that_the_template_gives_are_those_that_cloudformations_role_may_change() -> None:
    resources = [one["Resource"] for one in statements("Executor")]
    flat = [json.dumps(arn) for one in resources for arn in (one if isinstance(one, list) else [one])]
    for name, kind in (("FunctionLogs", "log-group:"), ("AccessLogs", "log-group:")):
        group = TEMPLATE["Resources"][name]["Properties"]["LogGroupName"]["Fn::Sub"]
        assert any(arn.endswith(f':{kind}{group.replace("AWS::StackName", "Stack")}"}}') for arn in flat), name
    assert TEMPLATE["Resources"]["Dashboard"]["Properties"]["DashboardName"] == {"Ref": "AWS::StackName"}
    assert any(arn.endswith(':dashboard/${Stack}"}') for arn in flat)


def test_what_cloudformation_replaces_for_another_address_has_no_name_of_its_own() -> None:
    """The new one is created before the old one is deleted, so one name for both would fail the deployment."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("eu-central-1", "AWS::Budgets::Budget").schema
    replacing = {"/properties/Budget/BudgetName", "/properties/NotificationsWithSubscribers"}
    assert replacing <= set(schema["createOnlyProperties"])
    assert "BudgetName" not in TEMPLATE["Resources"]["Budget"]["Properties"]["Budget"]
    (rights,) = [one for one in statements("Executor") if one["Action"] == ["budgets:*"]]
    assert rights["Resource"]["Fn::Sub"].endswith(":budget/*")
