"""template.yaml in a CDK app: the same resources, rights, limits and alarms, because it is a nested stack of that file.

    pip install aws-cdk-lib PyYAML
    npx aws-cdk deploy --app "python deploy/cdk/app.py" \
        --context image=ACCOUNT.dkr.ecr.REGION.amazonaws.com/REPOSITORY:TAG \
        --context parameters='{"Authorization": "KEYS", "ApiKeyHashes": "team-a:…"}'

Add resources of your own in `SearchStack`. docs/deploy.md says what is different from SAM.
"""

import json
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml
from aws_cdk import App, CfnOutput, CfnStack, Stack
from aws_cdk.aws_s3_assets import Asset

TEMPLATE = Path(__file__).parents[2] / "template.yaml"


class Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types
    """YAML with !Sub as Fn::Sub, and so on, to be sent as JSON: CloudFormation reads no YAML with aliases."""


def _intrinsic(loader: Any, name: str, node: Any) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    else:
        value = loader.construct_sequence(node, deep=True)
    if name == "Ref":
        return {"Ref": value}
    if name == "GetAtt":
        value = value.split(".", 1)
    return {f"Fn::{name}": value}


Loader.add_multi_constructor("!", _intrinsic)


class SearchStack(Stack):  # type: ignore[misc] # not installed where mypy runs
    """A stack of CDK that nests the template's stack. The function runs an image that was pushed before."""

    def __init__(self, scope: App, name: str, image: str, parameters: dict[str, str]) -> None:
        """Take the parameters of the template that differ from their defaults."""
        super().__init__(scope, name)
        template = yaml.load(TEMPLATE.read_text(encoding="utf-8"), Loader)  # noqa: S506  a SafeLoader
        template["Resources"]["Function"]["Properties"]["ImageUri"] = image
        with NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(template, file)
            file.flush()
            asset = Asset(self, "Template", path=file.name)
        self.search = CfnStack(self, "Search", template_url=asset.http_url, parameters=parameters)
        CfnOutput(self, "Url", value=self.search.get_att("Outputs.Url").to_string())


if __name__ == "__main__":
    app = App()
    given = app.node.try_get_context("parameters") or "{}"
    SearchStack(app, "semantic-search", app.node.get_context("image"), json.loads(given))
    app.synth()
