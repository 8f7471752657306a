"""The settings of SAM: build and deploy of one environment mean the same template, folder and processor."""

import tomllib
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml

from tests.project import ROOT

SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))
PARAMETERS = cfn_yaml.load(str(ROOT / "template.yaml"))["Parameters"]
ARCHITECTURES = {"default": "x86_64", "arm64": "arm64", "ci": "x86_64"}

each_environment = pytest.mark.parametrize("environment", ARCHITECTURES)


def settings(environment: str, command: str) -> dict[str, Any]:
    """Return what SAM reads for a command: the environment's global parameters, replaced by the command's own."""
    commands = SETTINGS[environment]
    own: dict[str, Any] = commands.get(command, {}).get("parameters", {})
    return {**commands["global"]["parameters"], **own}


def overrides(environment: str, command: str) -> dict[str, str]:
    """Return the template's parameters that a command is told, by name."""
    return dict(one.split("=", 1) for one in settings(environment, command)["parameter_overrides"])


def test_there_is_an_environment_for_each_processor() -> None:
    assert SETTINGS.keys() - {"version"} == ARCHITECTURES.keys()
    assert set(ARCHITECTURES.values()) == set(PARAMETERS["Architecture"]["AllowedValues"])
    assert ARCHITECTURES["default"] == PARAMETERS["Architecture"]["Default"]


@each_environment
def test_an_image_is_built_for_the_processor_that_it_is_deployed_on(environment: str) -> None:
    for command in ("build", "deploy", "local_start_api", "local_invoke"):
        told = overrides(environment, command)
        assert told["Architecture"] == ARCHITECTURES[environment]
        assert told.keys() <= PARAMETERS.keys()


@each_environment
def test_what_is_deployed_is_what_the_same_environment_has_built(environment: str) -> None:
    assert settings(environment, "build").get("template_file", "template.yaml") == "template.yaml"
    folder = settings(environment, "build")["build_dir"]
    assert settings(environment, "deploy")["template_file"] == f"{folder}/template.yaml"
