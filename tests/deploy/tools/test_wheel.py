"""The wheel: built and installed on its own, it holds the packages with their types, and all of them start."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def run(*command: str | Path, folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the wheel is installed into, without its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, folder=folder)
    (wheel,) = folder.glob("*.whl")
    run(*PIP, "install", "--quiet", "--no-deps", "--target", folder / "installed", wheel, folder=folder)
    return folder / "installed"


def test_it_holds_the_packages_their_types_and_nothing_else(installed: Path) -> None:
    folders = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
    assert folders == {"function", "export", "semsearch", "bin"}
    folders.remove("bin")  # the console script
    for folder in folders:
        assert (installed / folder / "py.typed").is_file()
        sources = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py")}
        assert {path.relative_to(installed) for path in (installed / folder).rglob("*.py")} == sources
    page = {path.name for path in (ROOT / "function" / "page").iterdir()}
    assert {path.name for path in (installed / "function" / "page").iterdir()} == page


@pytest.mark.parametrize("command", [["-m", "export", "--help"], ["-m", "function", "--help"]])
def test_its_commands_start_outside_of_the_checkout(installed: Path, tmp_path: Path, command: list[str]) -> None:
    printed = run(sys.executable, *command, folder=tmp_path, environment={"PYTHONPATH": str(installed)})
    assert "usage:" in printed


def test_semsearch_imports_nothing_from_the_current_folder(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    for file in ("export/__init__.py", "function.py"):
        (tmp_path / file).write_text("raise SystemExit('a module of the current folder was imported')")
    for command in ([sys.executable, "-m", "semsearch"], [installed / "bin" / "semsearch"]):
        for words in (["--help"], ["evaluate", "--help"]):
            assert "semsearch" in run(*command, *words, folder=tmp_path, environment={"PYTHONPATH": str(installed)})
