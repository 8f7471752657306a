"""`sam build` and `sam local invoke`, as people use them: the answers are those of the app.

SAM exits 0 whatever the function did, so what it printed is what counts.
"""

import hashlib
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml

from semsearch.app.settings import read_hashes
from semsearch.version import VERSION
from tests.image.docker import description, docker, run
from tests.project import ROOT

TEMPLATE = ROOT / "template.yaml"
DEPLOY = ROOT / "docs" / "deploy.md"
RELEASE = "1a2b3c4"


@pytest.fixture(scope="module")
def sam() -> Iterator[Callable[..., str]]:
    """Return a function that runs sam, without a request to AWS, and returns its standard output."""
    if shutil.which("sam") is None:
        pytest.skip("there is no sam command on this machine; pip install aws-sam-cli brings it")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        yield lambda *arguments: run("sam", *arguments)


SETTINGS = {
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",  # otherwise sam looks for credentials there
    "SAM_CLI_TELEMETRY": "0",
}


@pytest.fixture(scope="module")
def built(sam: Callable[..., str], image: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built template; the image's layers are those that `make image` left."""
    folder = tmp_path_factory.mktemp("sam")
    overrides = ("--parameter-overrides", f"Release={RELEASE}")
    printed = sam("build", "--template", str(TEMPLATE), "--build-dir", str(folder), *overrides)
    assert "Build Succeeded" in printed
    return folder / "template.yaml"


def test_the_image_tells_its_processor_and_the_release_that_sam_was_told(built: Path) -> None:
    image = cfn_yaml.load(str(built))["Resources"]["Function"]["Properties"]["ImageUri"]
    assert docker("image", "inspect", "--format", "{{.Architecture}}", image) == "amd64\n"
    digest = hashlib.sha256((ROOT / "bundle" / "manifest.json").read_bytes()).hexdigest()
    assert description(image) == {"version": VERSION, "revision": RELEASE, "bundle": digest}


def test_sam_hands_over_keys_with_filters_as_the_page_writes_them(sam: Callable[..., str]) -> None:
    (line,) = re.findall(r"^parameter_overrides = .*ApiKeyHashes.*$", DEPLOY.read_text(encoding="utf-8"), re.MULTILINE)
    values = tomllib.loads(line.replace("HASH", "0123456789abcdef" * 4))["parameter_overrides"]
    script = "import json, sys; from samcli.cli.types import CfnParameterOverridesType as Reader; "
    script += "print(json.dumps(Reader().convert(json.loads(sys.argv[1]), None, None)))"
    found = json.loads(run(python_of_sam(), "-c", script, json.dumps(values)))
    keys = read_hashes("ApiKeyHashes", found["ApiKeyHashes"])
    assert [(key.name, key.filter) for key in keys] == [("team-a", None), ("team-b", {"tenant": "b"})]


def python_of_sam() -> str:
    """Return the Python that runs sam."""
    path = shutil.which("sam")
    assert path is not None  # otherwise the fixture skips
    with Path(path).open(encoding="utf-8") as file:
        return file.readline().removeprefix("#!").strip()


def test_an_event_is_answered_as_outside(sam: Callable[..., str], built: Path, answer: Callable[[Any], Any]) -> None:
    path = ROOT / "function" / "sample_events" / "http-api.json"
    found = json.loads(sam("local", "invoke", "--template", str(built), "--event", str(path)))
    (wanted,) = answer([json.loads(path.read_text(encoding="utf-8"))])
    assert found["statusCode"] == wanted["statusCode"] == 200
    assert found["body"] == wanted["body"]
