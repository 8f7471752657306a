"""docs/environments.md and deploy/github.yaml: what is shown can be deployed, by roles that may do that and no more."""

import json
import re
import shlex
import tomllib
from fnmatch import fnmatchcase
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from tests.cloudformation import Stack, load_template
from tests.project import ROOT
from tests.test_documents import BLOCK
from tests.test_samconfig import SETTINGS

PAGE = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
TEMPLATE = load_template(ROOT / "template.yaml")
ROLES = load_template(ROOT / "deploy" / "github.yaml")
COMMANDS, TRUST, WORKFLOW = (
    next(block for block in BLOCK.findall(PAGE) if sign in block)
    for sign in ("aws cloudformation deploy", "sts:AssumeRoleWithWebIdentity", "runs-on:")
)
SHOWN: dict[str, Any] = tomllib.loads(next(block for block in BLOCK.findall(PAGE) if "[dev." in block))

each_environment = pytest.mark.parametrize("environment", SHOWN)


def shown_parameters(environment: str) -> dict[str, str]:
    return dict(one.split("=", 1) for one in SHOWN[environment]["global"]["parameters"]["parameter_overrides"])


def role_stack(environment: str) -> Stack:
    """Return deploy/github.yaml as the page's command deploys it, for this environment."""
    (command,) = [line for line in COMMANDS.replace("\\\n", " ").splitlines() if "cloudformation deploy" in line]
    words = shlex.split(command.replace("prod", environment))
    given = dict(word.split("=", 1) for word in words[words.index("--parameter-overrides") + 1 :])
    return Stack(ROLES, **given)


# The environments in samconfig.toml


@each_environment
def test_each_parameter_that_is_shown_can_be_deployed(environment: str) -> None:
    parameters = shown_parameters(environment)
    for name, value in parameters.items():
        assert re.fullmatch(TEMPLATE["Parameters"][name].get("AllowedPattern", ".*"), value), name
    assert Stack(TEMPLATE, **parameters).refusals() == []


@each_environment
def test_each_environment_that_is_shown_has_the_settings_of_ci_with_its_own_names(environment: str) -> None:
    own, ci = SHOWN[environment], SETTINGS["ci"]
    name = own["global"]["parameters"]["stack_name"]
    assert name == f"semantic-search-{environment}"
    assert own["build"]["parameters"] == {"build_dir": f".aws-sam/{environment}"}
    expected = {key: value for key, value in ci["deploy"]["parameters"].items() if not key.startswith("resolve_")}
    expected["template_file"] = f".aws-sam/{environment}/template.yaml"
    assert expected.items() <= own["deploy"]["parameters"].items()


@each_environment
def test_each_environment_that_is_shown_names_what_its_roles_are_made_with(environment: str) -> None:
    roles = role_stack(environment)
    assert roles.parameters["Stack"] == SHOWN[environment]["global"]["parameters"]["stack_name"]
    deploy = SHOWN[environment]["deploy"]["parameters"]
    account = "arn:aws:iam::123456789012:"
    assert deploy["role_arn"] == f"{account}role/{roles.of_type('AWS::IAM::Role')['Executor']['RoleName']}"
    (boundary,) = roles.of_type("AWS::IAM::ManagedPolicy").values()
    assert shown_parameters(environment)["PermissionsBoundary"] == f"{account}policy/{boundary['ManagedPolicyName']}"
    (bucket,) = roles.of_type("AWS::S3::Bucket").values()
    assert deploy["s3_bucket"] == bucket["BucketName"]
    (repository,) = roles.of_type("AWS::ECR::Repository").values()
    assert deploy["image_repository"].endswith(f".amazonaws.com/{repository['RepositoryName']}")


# Who may deploy


def test_the_trust_policy_that_is_shown_is_the_one_that_is_made() -> None:
    made = role_stack("prod").of_type("AWS::IAM::Role")["Deployer"]["AssumeRolePolicyDocument"]
    shown = json.loads(TRUST)
    made["Statement"][0]["Principal"] = shown["Statement"][0]["Principal"]  # the provider's ARN, once it exists
    assert made == shown


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


def statements(role: str) -> list[dict[str, Any]]:
    policies = Stack(ROLES, Stack="stories", Subject="", HostedZoneId="Z1").of_type("AWS::IAM::Role")[role]["Policies"]
    return [one for policy in policies for one in policy["PolicyDocument"]["Statement"]]


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
    parameters = {
        "Canary": "true",
        "DomainName": "a.b",
        "HostedZoneId": "Z1",
        "AlarmEmail": "a@b",
        "MonthlyBudget": "1",
    }
    kinds = {one["Type"] for one in Stack(TEMPLATE, **parameters).resources.values()}
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


def test_githubs_role_may_make_the_calls_of_sam_deploy_and_nothing_else() -> None:
    """The calls are those of SAM CLI 1.170, in samcli/lib/deploy/deployer.py and samcli/lib/package/*_uploader.py."""
    calls = {
        "cloudformation:CreateChangeSet",
        "cloudformation:DescribeChangeSet",
        "cloudformation:DescribeStackEvents",
        "cloudformation:DescribeStacks",
        "cloudformation:ExecuteChangeSet",
        "cloudformation:GetTemplateSummary",
        "ecr:BatchCheckLayerAvailability",  # docker push
        "ecr:BatchGetImage",
        "ecr:CompleteLayerUpload",
        "ecr:GetAuthorizationToken",
        "ecr:GetDownloadUrlForLayer",
        "ecr:InitiateLayerUpload",
        "ecr:PutImage",
        "ecr:UploadLayerPart",
        "iam:PassRole",
        "s3:GetObject",  # HeadObject, and CloudFormation with this role's credentials
        "s3:PutObject",
    }
    assert {action for one in statements("Deployer") for action in one["Action"]} == calls


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
            assert one["Condition"] == {"StringEquals": {"iam:PermissionsBoundary": "<Boundary>"}}
            assert one["Resource"].endswith(":role/stories-*Role-*")
    names = {role["RoleName"] for role in Stack(ROLES, Stack="stories", Subject="").of_type("AWS::IAM::Role").values()}
    assert names == {"stories-github", "stories-cloudformation"}  # which the pattern leaves out


def test_the_boundary_allows_what_the_roles_of_the_stack_may_do() -> None:
    (boundary,) = Stack(ROLES, Stack="stories", Subject="").of_type("AWS::IAM::ManagedPolicy").values()
    allowed = {action for one in boundary["PolicyDocument"]["Statement"] for action in one["Action"]}
    key = "arn:aws:kms:eu-central-1:123456789012:key/1"
    everything = {
        "Tracing": "Active",
        "BundleBucket": "a",
        "BundleKeyArn": key,
        "VectorBucket": "a",
        "VectorKeyArn": key,
    }
    role = Stack(TEMPLATE, **everything).of_type("AWS::IAM::Role")["FunctionRole"]
    written = [one for policy in role["Policies"] for one in policy["PolicyDocument"]["Statement"]]
    assert {action for one in written for action in one["Action"]} <= allowed


def test_names_that_the_template_gives_are_those_that_cloudformations_role_may_change() -> None:
    stack = Stack(TEMPLATE, MonthlyBudget="1", AlarmEmail="a@b")
    names = [f"log-group:{one['LogGroupName']}" for one in stack.of_type("AWS::Logs::LogGroup").values()]
    names += [f"dashboard/{one['DashboardName']}" for one in stack.of_type("AWS::CloudWatch::Dashboard").values()]
    names += [f"budget/{one['Budget']['BudgetName']}" for one in stack.of_type("AWS::Budgets::Budget").values()]
    assert len(names) == 4
    resources = [one["Resource"] for one in statements("Executor")]
    flat = [arn for one in resources for arn in (one if isinstance(one, list) else [one])]
    for name in names:
        assert any(arn.endswith(f":{name}") for arn in flat), name


# The workflow


def test_the_workflow_deploys_the_environments_that_are_shown_with_githubs_token() -> None:
    workflow = cfn_yaml.loads(WORKFLOW)
    (job,) = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "read", "id-token": "write"}
    assert workflow["permissions"] == {}
    targets = re.findall(r"'(\w+)' \|\| '(\w+)'", job["environment"])[0]
    assert set(targets) == SHOWN.keys()
    assert job["environment"] == job["env"]["TARGET"]
    runs = [step["run"] for step in job["steps"] if "run" in step]
    assert runs[-2:] == ['sam build --config-env "$TARGET"', 'sam deploy --config-env "$TARGET"']
    for environment in SHOWN:
        assert shown_parameters(environment)["Release"] == "main"  # what the workflow replaces
    assert any("Release=main" in run for run in runs)


def test_the_workflow_pins_each_action_by_its_commit() -> None:
    used = re.findall(r"uses: (\S+)( # v[\d.]+)?", WORKFLOW)
    assert len(used) == 3
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) and version for action, version in used)
    ours = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    for action, _ in used:
        name = action.partition("@")[0]
        assert name not in ours or action in ours  # the same version as our own workflow


def test_the_workflow_makes_a_target_that_exists_and_exports_a_bundle_as_the_readme_does() -> None:
    (target,) = re.findall(r"run: make (\S+)", WORKFLOW)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"\n{target.replace('.venv', '$(VENV)')}:" in makefile
    (export,) = re.findall(r"run: \.venv/bin/(python -m export .*)", WORKFLOW)
    assert export in (ROOT / "README.md").read_text(encoding="utf-8")
