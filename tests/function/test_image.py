"""The scripts of the image's build: the check of its bundle, and the file that describes the image."""

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from bench.emulator import copy_function
from semsearch.engine.bundle import INDEX, MANIFEST
from semsearch.version import VERSION
from tests.bundle_files import damage
from tests.function.events.event_makers import http_api
from tests.image.sources import HANDLE, last_line
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


def describe(folder: Path, revision: str) -> dict[str, Any]:
    """Write the file that describes an image of the bundle in this folder, and return what GET /info shows of it."""
    done = run_in(ROOT, "-m", "function.image.describe", str(folder / "bundle"), revision)
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "image.json").write_text(done.stdout, encoding="utf-8")
    (reply,) = last_line(run_in(folder, "-c", HANDLE, text=json.dumps([http_api("GET", "/info", None)])).stdout)
    found: dict[str, Any] = json.loads(reply["body"])["image"]
    return found


def test_info_shows_the_version_the_revision_and_the_bundle_of_an_image(bundle: Path, tmp_path: Path) -> None:
    copy_function(tmp_path)
    (tmp_path / "bundle").symlink_to(bundle)
    digest = sha256((bundle / MANIFEST).read_bytes()).hexdigest()
    assert describe(tmp_path, "1a2b3c4") == {"version": VERSION, "revision": "1a2b3c4", "bundle": digest}
    assert describe(tmp_path, "") == {"version": VERSION, "bundle": digest}


def test_an_image_whose_bundle_is_in_s3_names_no_bundle(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).touch()
    done = run_in(ROOT, "-m", "function.image.describe", str(tmp_path), "1a2b3c4")
    assert json.loads(done.stdout) == {"version": VERSION, "revision": "1a2b3c4"}
