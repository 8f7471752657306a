"""An error of any command is one line and exit code 1, and the old bundle stays byte for byte."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from semsearch.indexing.errors import EXTRAS, explain_missing
from tests.command_line import STORY_COLUMNS, Run, contents, error_line, names, run, write_texts
from tests.export_fixtures import TINY_BERT
from tests.project import ROOT, needs_linux


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{here}/none.csv", "--model", "{tiny}"], "none.csv: No such file or directory"),
        (["{few}", "--model", "{tiny}", "--calibration", "{few}"], "--calibration: found 3 texts, expected at least"),
        (["{few}", "--model", "{here}/no/model"], "no/model: expected a folder, or a name"),
        (["{few}", "--model", "{here}"], "config.json: cannot be read as a model"),
    ],
)
def test_an_error_is_one_line_and_leaves_the_old_bundle_byte_for_byte(
    arguments: list[str], message: str, story_bundle: Path, tmp_path: Path
) -> None:
    few = write_texts(tmp_path / "few.csv", ["one", "two", "three"])
    before = contents(story_bundle)
    words = [argument.format(tiny=TINY_BERT, here=tmp_path, few=few) for argument in arguments]
    done = run("index", *words, "--text-column", "text", "--id-column", "text", "--out", story_bundle)
    assert message in error_line(done)
    assert contents(story_bundle) == before
    assert names(story_bundle.parent) == ["bundle"]


@contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[Path]:
    """Mount a file system in memory of this size. Skips the test where that is forbidden."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command)}: {done.stderr.strip()}")
    try:
        yield place
    finally:
        # lazily: a test that failed may still map files there, and a mount left behind stops pytest from cleaning up
        subprocess.run(["umount", "--lazy", place], check=True)


@needs_linux("tmpfs")
def test_a_full_disk_leaves_the_old_bundle(whole: tuple[Path, Run], stories: Path, tmp_path: Path) -> None:
    kilobytes = sum(-(-path.stat().st_size // 4096) * 4 for path in whole[0].iterdir())
    with small_disk(tmp_path / "disk", int(1.05 * kilobytes)) as disk:
        out = Path(shutil.copytree(whole[0], disk / "bundle"))
        line = error_line(run("index", stories, *STORY_COLUMNS, "--out", out))
        assert "No space left on device" in line
        assert contents(out) == contents(whole[0])


WITHOUT_READERS = """
import runpy, sys
sys.modules["pyromark"] = None
sys.argv = ["semsearch", "index", sys.argv[1], "--update", sys.argv[2], "--out", sys.argv[3]]
runpy.run_module("semsearch", run_name="__main__", alter_sys=True)
"""


# packages whose name differs from the module
PACKAGE_OF = {"optimum": "optimum-onnx", "yaml": "PyYAML", "prometheus_client": "prometheus-client"}
PACKAGE_OF |= {"ray": "ray[data]", "pyarrow": "ray[data]"}


def test_the_extras_are_those_of_the_project() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        assert {PACKAGE_OF.get(module, module) for module in modules} == {
            re.split("[><=]", requirement)[0] for requirement in stated[extra]
        }


def test_a_command_without_its_extra_ends_in_one_line(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("An angry goose.")
    command: list[str | Path] = [sys.executable, "-c", WITHOUT_READERS, tmp_path / "a.md", bundle, tmp_path / "out"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    expected = "expected the extra `documents`; install it: pip install '.[documents]'"
    assert done.returncode == 1
    assert done.stderr.endswith(f"the package pyromark is not installed, {expected}\n")


def test_the_nodes_of_a_cluster_need_no_package_of_an_extra() -> None:
    absent = "sys.modules.update(dict.fromkeys(['rich', 'polars', 'torch', 'onnx']))"
    code = f"import sys; {absent}; import semsearch.indexing.cluster"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_another_import_that_fails_is_not_explained() -> None:
    with pytest.raises(ImportError, match="cannot import name"):
        explain_missing(ImportError("cannot import name 'x' from 'rich'", name="rich"))


@pytest.mark.parametrize(
    ("place", "option", "message"),
    [
        ("none.csv", "--ray=auto", "--ray: the package ray is not installed"),  # reads no file
        ("s3://b/a.csv", "--strict", "s3://b/a.csv: the package pyarrow is not installed"),
    ],
)
def test_a_missing_package_of_the_cluster_is_named_with_its_extra(
    place: str, option: str, message: str, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("ray", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    line = error_line(run("index", place, "--out", bundle_copy, option))
    assert line == f"error: {message}, expected the extra `cluster`; install it: pip install '.[cluster]'"
