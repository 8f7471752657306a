"""Do what AWS does with a SAM template: print the CloudFormation template that results.

python translate.py TEMPLATE [NAME=VALUE …], in the environment of requirements.txt beside this file.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")  # boto3 needs one, although nothing is asked of AWS

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

IMAGE = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/stories:1"


class NoManagedPolicies:
    """Stands for the list of AWS's managed policies: our template names none."""

    def load(self) -> dict[str, str]:
        """Return no policies."""
        return {}


def main(path: str, *parameters: str) -> None:
    """Print the translated template as JSON."""
    template: dict[str, Any] = yaml_parse(Path(path).read_text(encoding="utf-8"))
    values = dict(one.split("=", 1) for one in parameters)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":  # as `sam package` leaves it
            resource["Properties"] |= {"ImageUri": values.pop("Image", IMAGE)}
    print(json.dumps(transform(template, values, NoManagedPolicies())))


if __name__ == "__main__":
    main(*sys.argv[1:])
