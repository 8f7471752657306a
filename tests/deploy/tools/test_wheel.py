"""The wheel: built and installed on its own, it holds the packages with their types, and all of them start."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.tools.conftest import TOOLS
from tests.project import ROOT

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def run(*command: str | Path, folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, folder=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the wheel is installed into, without its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    run(*PIP, "install", "--quiet", "--no-deps", "--target", folder / "installed", wheel, folder=folder)
    return folder / "installed"


def test_it_holds_the_package_its_types_and_nothing_else(installed: Path) -> None:
    assert {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} == {"semsearch", "bin"}
    files = {
        path.relative_to(ROOT) for path in (ROOT / "semsearch").rglob("*") if path.suffix in (".py", ".js", ".html")
    }
    assert {path for path in files if "node_modules" not in path.parts} <= {
        path.relative_to(installed) for path in (installed / "semsearch").rglob("*")
    }
    assert (installed / "semsearch" / "py.typed").is_file()


def test_its_contents_are_in_order(wheel: Path) -> None:
    run(TOOLS / "check-wheel-contents", wheel, folder=wheel.parent)
