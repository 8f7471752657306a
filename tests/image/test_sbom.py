"""The image's list of packages (SBOM), against the lock that they are installed from."""

import json
import re
from typing import Any

import pytest

from tests.image.docker import docker
from tests.project import ROOT


@pytest.fixture(scope="module")
def sbom(image: str) -> dict[str, Any]:
    """The list that the image carries."""
    content: dict[str, Any] = json.loads(docker("run", "--rm", "--entrypoint", "cat", image, "sbom.cdx.json"))
    return content


def test_it_names_every_package_of_the_lock_with_version_and_hashes(sbom: dict[str, Any]) -> None:
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    locked = {}
    for entry in re.split(r"^(?=[\w-]+==)", lock, flags=re.MULTILINE)[1:]:
        name, version = re.findall(r"[^\s=]+", entry)[:2]
        locked[name, version] = set(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry))
    named = {
        (one["name"], one["version"]): {
            entry["content"]
            for reference in one["externalReferences"]
            for entry in reference["hashes"]
            if entry["alg"] == "SHA-256"
        }
        for one in sbom["components"]
    }
    assert len(locked) > 10
    assert named == locked


def test_it_is_in_cyclonedx_format_and_the_same_whenever_it_is_made(sbom: dict[str, Any]) -> None:
    assert sbom["bomFormat"] == "CycloneDX"
    assert "serialNumber" not in sbom
    assert "timestamp" not in sbom["metadata"]
