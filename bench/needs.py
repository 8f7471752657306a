"""What a measurement needs and a machine may not have: Docker, data, a program."""

import shutil
import subprocess

EXIT_CODE = 3  # `python -m bench all` tells a measurement that cannot run here by it from one that failed


class Missing(SystemExit):
    """Something that a measurement needs is not on this machine; the message says what and how to get it."""


def docker_problem() -> str | None:
    """Return why no container can be run on this machine; None if one can."""
    if shutil.which("docker") is None:
        return "docker is not installed on this machine"
    done = subprocess.run(["docker", "version"], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        return f"docker is installed, but no engine answers: {done.stderr.strip().splitlines()[-1]}"
    return None


def require_docker() -> None:
    """Raise Missing if no container can be run on this machine."""
    problem = docker_problem()
    if problem is not None:
        raise Missing(f"{problem}; this measurement starts the image, so install Docker and start its engine")
