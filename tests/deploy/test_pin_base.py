"""`make pin-base` writes the digest that the registry has for the base's tag; a stand-in on PATH plays docker."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.function import image
from deploy.pin_base import PinError, pin
from tests.project import ROOT

TAG = "public.ecr.aws/lambda/python:3.13"
DIGESTS = [f"sha256:{digit * 64}" for digit in "1a"]


@pytest.fixture
def dockerfile(tmp_path: Path) -> Path:
    """A copy of our Dockerfile, unpinned, in a copy of what `make pin-base` needs."""
    (tmp_path / "deploy").mkdir()
    for name in ("Makefile", "deploy/pin_base.py"):
        shutil.copy2(ROOT / name, tmp_path / name)
    content = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    path = tmp_path / "Dockerfile"
    path.write_text(re.sub(r"^(ARG BASE_IMAGE=[^@\n]+).*$", r"\1", content, flags=re.MULTILINE), encoding="utf-8")
    return path


def registry(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, exit_code: int = 0) -> Path:
    """Put a docker on PATH that answers any question so; return the file where it notes what it was asked."""
    programs, asked = folder / "bin", folder / "asked"
    programs.mkdir(exist_ok=True)
    script = f"#!/bin/sh\necho \"$*\" >> '{asked}'\necho '{answer}'\nexit {exit_code}\n"
    (programs / "docker").write_text(script, encoding="utf-8")
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return asked


def test_the_command_writes_the_digest_of_the_tag_and_prints_old_and_new(
    dockerfile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dockerfile.read_text(encoding="utf-8")
    asked = registry(tmp_path, monkeypatch, DIGESTS[0])
    command = ["make", "--silent", "pin-base"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert asked.read_text() == f"buildx imagetools inspect {TAG} --format {{{{.Manifest.Digest}}}}\n"
    assert printed.split() == [TAG, "is", "now", f"{TAG}@{DIGESTS[0]}"]
    pinned = f"ARG BASE_IMAGE={TAG}@{DIGESTS[0]}\n"
    assert dockerfile.read_text(encoding="utf-8") == before.replace(f"ARG BASE_IMAGE={TAG}\n", pinned)


def test_a_newer_digest_replaces_an_older_one(
    dockerfile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry(tmp_path, monkeypatch, DIGESTS[0])
    pin(dockerfile)
    asked = registry(tmp_path, monkeypatch, DIGESTS[1])
    assert pin(dockerfile) == (f"{TAG}@{DIGESTS[0]}", f"{TAG}@{DIGESTS[1]}")
    assert f" {TAG} " in asked.read_text().splitlines()[-1]  # the tag, whose digest may be another now
    assert dockerfile.read_text(encoding="utf-8").count("@sha256:") == 1


@pytest.mark.parametrize(
    ("answer", "exit_code"), [("unknown command: docker buildx", 1), ("", 0), ("sha256:12", 0), (DIGESTS[0], 1)]
)
def test_an_answer_that_is_no_digest_leaves_the_dockerfile_as_it_is(
    dockerfile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, exit_code: int
) -> None:
    before = dockerfile.read_bytes()
    registry(tmp_path, monkeypatch, answer, exit_code)
    with pytest.raises(PinError, match=re.escape(f"{TAG}: docker buildx answered {answer!r}, expected sha256:")):
        pin(dockerfile)
    assert dockerfile.read_bytes() == before


def test_without_docker_the_error_says_so(dockerfile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PinError, match="there is no docker command"):
        pin(dockerfile)


def test_a_dockerfile_without_a_base_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n", encoding="utf-8")
    with pytest.raises(PinError, match="no line ARG BASE_IMAGE=NAME:TAG"):
        pin(tmp_path / "Dockerfile")


def test_the_bench_measures_on_the_pinned_base(
    dockerfile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry(tmp_path, monkeypatch, DIGESTS[0])
    _, pinned = pin(dockerfile)
    monkeypatch.setattr(image, "PROJECT", tmp_path)
    assert image.base_image() == pinned
