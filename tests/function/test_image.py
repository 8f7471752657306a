"""The scripts of the image's build: the check of its bundle."""

import subprocess
import sys
from pathlib import Path

import pytest

from semsearch.engine.bundle import INDEX, MANIFEST
from tests.bundle_files import damage
from tests.project import ROOT


def run_in(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=folder, input=text, capture_output=True, text=True, check=False)


def check(bundle: Path) -> tuple[int, str]:
    done = run_in(ROOT, "-m", "function.image.check_bundle", str(bundle))
    return done.returncode, done.stderr


def test_the_image_is_not_built_with_a_damaged_bundle_and_is_built_without_one(bundle_copy: Path) -> None:
    assert check(bundle_copy) == (0, "")
    damage(bundle_copy / INDEX)
    code, error = check(bundle_copy)
    assert code == 1
    assert "index.safetensors: is damaged" in error
    (bundle_copy / MANIFEST).write_bytes(b"")
    assert check(bundle_copy) == (0, "")


@pytest.mark.parametrize("files", [(), (INDEX,)])
def test_a_folder_without_a_bundle_is_refused_with_the_command_that_makes_one(
    tmp_path: Path, files: tuple[str, ...]
) -> None:
    for name in files:
        (tmp_path / name).touch()
    expected = "not found, expected an index of your texts; make a bundle first: semsearch index PATH --out"
    assert check(tmp_path) == (1, f"{tmp_path}/manifest.json: {expected} {tmp_path}/\n")
