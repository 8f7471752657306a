"""`make pin-base` writes the digest that the registry has for the base's tag; a script on PATH replaces docker."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.project import ROOT

TAG = "public.ecr.aws/lambda/python:3.13"
DIGESTS = [f"sha256:{digit * 64}" for digit in "1a"]


@pytest.fixture
def dockerfile(tmp_path: Path) -> Path:
    """A copy of our Dockerfile, unpinned, beside a copy of the Makefile."""
    shutil.copy2(ROOT / "Makefile", tmp_path)
    content = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    path = tmp_path / "Dockerfile"
    path.write_text(re.sub(r"^(ARG BASE_IMAGE=[^@\n]+).*$", r"\1", content, flags=re.MULTILINE), encoding="utf-8")
    return path


def pin(folder: Path, answer: str, exit_code: int = 0) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run `make pin-base` with a docker that always answers the same; return the result, and docker's arguments."""
    programs, arguments = folder / "bin", folder / "arguments"
    programs.mkdir(exist_ok=True)
    script = f"#!/bin/sh\necho \"$*\" >> '{arguments}'\necho '{answer}'\nexit {exit_code}\n"
    (programs / "docker").write_text(script, encoding="utf-8")
    (programs / "docker").chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    command = ["make", "--silent", "pin-base"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done, arguments.read_text(encoding="utf-8").splitlines()


def test_the_digest_of_the_tag_is_written_and_printed_and_a_newer_one_replaces_it(
    dockerfile: Path, tmp_path: Path
) -> None:
    before = dockerfile.read_text(encoding="utf-8")
    for digest in DIGESTS:
        done, asked = pin(tmp_path, digest)
        assert asked[-1] == f"buildx imagetools inspect {TAG} --format {{{{.Manifest.Digest}}}}"
        assert (done.returncode, done.stdout, done.stderr) == (0, f"ARG BASE_IMAGE={TAG}@{digest}\n", "")
        pinned = f"ARG BASE_IMAGE={TAG}@{digest}\n"
        assert dockerfile.read_text(encoding="utf-8") == before.replace(f"ARG BASE_IMAGE={TAG}\n", pinned)
