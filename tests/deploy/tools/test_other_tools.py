"""The examples for CDK and Terraform make the resources of template.yaml and no other."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml

from tests.project import ROOT

IMAGE = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/stories:1"
PYTHON = ROOT / "build" / "cdk" / "bin" / "python"


@pytest.mark.skipif(shutil.which("node") is None, reason="CDK needs Node.js")
def test_the_stack_of_cdk_has_the_resources_and_rules_of_the_template(tmp_path: Path) -> None:
    context = {"image": IMAGE, "parameters": json.dumps({"Authorization": "NONE"})}
    environment = os.environ | {"CDK_OUTDIR": str(tmp_path), "CDK_CONTEXT_JSON": json.dumps(context)}
    subprocess.run([PYTHON, ROOT / "deploy" / "cdk" / "app.py"], env=environment, check=True, timeout=300)
    stack = json.loads((tmp_path / "semantic-search.template.json").read_bytes())
    nested = stack["Resources"].pop("Search")
    assert (nested["Type"], nested["Properties"]["Parameters"]) == (
        "AWS::CloudFormation::Stack",
        {"Authorization": "NONE"},
    )
    assert {resource["Type"] for resource in stack["Resources"].values()} <= {"AWS::CDK::Metadata"}
    (asset,) = tmp_path.glob("asset.*.json")
    assert asset.name.split(".")[1] in json.dumps(nested["Properties"]["TemplateURL"])
    expected: dict[str, Any] = json.loads(json.dumps(cfn_yaml.load(str(ROOT / "template.yaml"))))
    expected["Resources"]["Function"]["Properties"]["ImageUri"] = IMAGE
    assert json.loads(asset.read_bytes()) == expected
