"""Docker, as far as the tests of the image need it."""

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.project import ROOT

TAG = "semantic-search-test"
# as Lambda runs it: nothing may be written but /tmp, and the image does not know the user
LIKE_LAMBDA = ("--read-only", "--tmpfs", "/tmp", "--network", "none", "--user", "993", "--memory", "512m")


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of an image: its name by content and the files in it, by path from the root."""

    diff_id: str
    files: dict[str, tarfile.TarInfo]

    @property
    def megabytes(self) -> float:
        """The size of its files together, unpacked."""
        return sum(file.size for file in self.files.values()) / 1e6


def why_there_is_no_docker() -> str | None:
    """Return why there is no Docker to test with; None if there is one, even one that does not work."""
    if shutil.which("docker") is None:
        return "there is no docker command on this machine"
    if "DOCKER_HOST" not in os.environ and not Path("/var/run/docker.sock").exists():
        return "no Docker engine runs on this machine: DOCKER_HOST is not set and there is no /var/run/docker.sock"
    return None


def run(*command: str, text: str | None = None, environment: dict[str, str] | None = None) -> str:
    """Run a command and return what it printed. Raises AssertionError with all output if it failed."""
    done = subprocess.run(
        command, cwd=ROOT, env=environment, input=text, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{' '.join(command)[:300]}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def docker(*arguments: str, text: str | None = None) -> str:
    """Run docker and return what it printed."""
    return run("docker", *arguments, text=text)


def python_in(image: str, script: str, *options: str, text: str | None = None) -> str:
    """Run a script with the image's Python, where and as the runtime would, and return what it printed."""
    environment = ("--env", "PYTHONPATH=/var/runtime")  # the base's bootstrap sets it
    arguments = ("run", "--rm", "-i", *LIKE_LAMBDA, *environment, *options)
    return docker(*arguments, "--entrypoint", "python3", image, "-c", script, text=text)


def description(image: str) -> dict[str, str]:
    """Return what an image says of itself."""
    found: dict[str, str] = json.loads(docker("run", "--rm", "--entrypoint", "cat", image, "image.json"))
    return found


def build(context: Path, tag: str) -> str:
    """Build an image of a copy of the project, without a revision, and return its tag."""
    docker("build", "--quiet", "--tag", tag, str(context))
    return tag


def diff_ids(image: str) -> list[str]:
    """Return the digests of an image's layers, the lowest first."""
    found: list[str] = json.loads(docker("image", "inspect", "--format", "{{json .RootFS.Layers}}", image))
    return found


def layers(image: str) -> list[Layer]:
    """Return an image's layers, the lowest first, as they would be pushed."""
    with tempfile.TemporaryFile() as file:
        subprocess.run(["docker", "save", image], stdout=file, check=True, timeout=600)
        file.seek(0)
        with tarfile.open(fileobj=file) as saved:
            (manifest,) = json.load(_open(saved, "manifest.json"))
            names = json.load(_open(saved, manifest["Config"]))["rootfs"]["diff_ids"]
            return [Layer(name, _files(saved, path)) for name, path in zip(names, manifest["Layers"], strict=True)]


def _open(saved: tarfile.TarFile, path: str) -> IO[bytes]:
    content = saved.extractfile(path)
    assert content is not None, path
    return content


def _files(saved: tarfile.TarFile, path: str) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=_open(saved, path)) as layer:
        return {member.name: member for member in layer if not member.isdir()}
