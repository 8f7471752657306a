"""The wheel: built and installed on its own, it holds the packages with their types, and all of them start."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

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


def test_the_links_of_its_description_need_no_folder_around_it(installed: Path) -> None:
    (metadata,) = installed.glob("semsearch-*.dist-info/METADATA")
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", metadata.read_text(encoding="utf-8")) == []


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder, whose listings are what pip reads, without a line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_the_command_comes_from_an_index_by_its_name(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "simple" / "semsearch"
    folder.mkdir(parents=True)
    (folder / wheel.name).write_bytes(wheel.read_bytes())
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", folder=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    alone = {"PATH": os.defpath, "PIP_CONFIG_FILE": os.devnull}  # no other place that pip was told of
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=tmp_path)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        index = f"http://127.0.0.1:{server.server_port}/simple/"
        options = ("--quiet", "--no-cache-dir", "--no-deps", "--index-url", index)
        run(*PIP, "--python", python, "install", *options, "semsearch", folder=tmp_path, environment=alone)
        server.shutdown()
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=tmp_path).strip())
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    place = run(python, "-P", "-c", "import semsearch; print(semsearch.__file__)", folder=tmp_path, environment=alone)
    assert Path(place.strip()).is_relative_to(own)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = run(tmp_path / "venv" / "bin" / "semsearch", "--version", folder=tmp_path, environment=alone)
    assert stated == f"{project['name']} {project['version']}\n"
