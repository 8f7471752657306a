"""Pin the Dockerfile's base image by digest: to the image that its tag names in the registry now.

A tag names another image whenever AWS publishes one; with a digest, the same commit builds on the same base. To take
AWS's updates, run `make pin-base` again. Where the tag names one image for each kind of processor, the digest is that
of their list, and each build finds its own.
https://docs.docker.com/reference/cli/docker/buildx/imagetools/inspect/
"""

import re
import subprocess
import sys
from pathlib import Path

DOCKERFILE = Path(__file__).parents[1] / "Dockerfile"
BASE = re.compile(r"^ARG BASE_IMAGE=(?P<tag>[^@\s]+)(?P<digest>@\S+)?$", re.MULTILINE)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class PinError(ValueError):
    """A digest that cannot be found or written: the message says where, what was found and expected, and what to do."""


def pin(dockerfile: Path) -> tuple[str, str]:
    """Write the digest of the base's tag into the Dockerfile and return the base's old and new name.

    Raises PinError if the Dockerfile names no base or the registry's answer is not a digest, and leaves the file alone.
    """
    content = dockerfile.read_text(encoding="utf-8")
    base = BASE.search(content)
    if base is None:
        raise PinError(f"{dockerfile}: no line ARG BASE_IMAGE=NAME:TAG, expected one; write it above the first FROM")
    new = f"{base['tag']}@{digest_in_the_registry(base['tag'])}"
    dockerfile.write_text(content[: base.start()] + f"ARG BASE_IMAGE={new}" + content[base.end() :], encoding="utf-8")
    return base["tag"] + (base["digest"] or ""), new


def digest_in_the_registry(tag: str) -> str:
    """Return the digest, sha256: and 64 digits, that the registry has for a tag; raises PinError if there is none."""
    command = ["docker", "buildx", "imagetools", "inspect", tag, "--format", "{{.Manifest.Digest}}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except FileNotFoundError as error:
        raise PinError(
            f"{tag}: there is no docker command, expected one to ask the registry; install Docker"
        ) from error
    answer = (done.stdout if done.returncode == 0 else done.stderr or done.stdout).strip()
    if done.returncode or not DIGEST.fullmatch(answer):
        raise PinError(
            f"{tag}: docker buildx answered {answer!r}, expected sha256: and 64 hexadecimal digits; check that "
            "`docker buildx version` works and that this machine can reach the registry"
        )
    return answer


if __name__ == "__main__":
    try:
        old, pinned = pin(DOCKERFILE)
    except PinError as error:
        sys.exit(f"error: {error}")
    print(f"{old}\n  is now\n{pinned}" if old != pinned else f"{old}\n  is the newest")
