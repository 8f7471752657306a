"""A folder's bundle is replaced while requests are answered."""

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from semsearch.app.reloading.reloader import FolderReloader, bundle_of_request
from semsearch.engine.bundle import MANIFEST, read_manifest
from semsearch.indexing.corpus import Corpus
from semsearch.search.executor import Executor, finish
from semsearch.search.query import Query
from tests.world import write_bundle


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "newer", Corpus(["An angry goose in a new bundle"], ["new"], ["{}"], empty_texts=0))


@pytest.fixture
def reloader(bundle_copy: Path) -> FolderReloader:
    reloader = FolderReloader(bundle_copy)
    reloader.connect(Executor(reloader.load().embedder), logging.getLogger("tests"))
    return reloader


def replace_files(bundle: Path, newer: Path) -> None:
    """Replace a bundle in the order of an export."""
    (bundle / MANIFEST).unlink()
    for path in sorted(newer.iterdir(), key=lambda path: path.name == MANIFEST):
        shutil.copyfile(path, bundle / f"{path.name}.new")
        (bundle / f"{path.name}.new").rename(bundle / path.name)


def found_by(reloader: FolderReloader) -> str:
    found = finish(reloader.search(Query("an angry goose", 1), lambda phase: None))
    return str(found.results[0]["id"])


def test_a_new_bundle_is_served_and_a_running_request_keeps_the_old_one(
    reloader: FolderReloader, bundle_copy: Path, newer: Path
) -> None:
    before, token = found_by(reloader), bundle_of_request.set(reloader.served)
    (bundle_copy / MANIFEST).rename(bundle_copy / "moved")
    reloader.poll()  # it is half replaced
    (bundle_copy / "moved").rename(bundle_copy / MANIFEST)
    replace_files(bundle_copy, newer)
    reloader.poll()
    assert found_by(reloader) == before != "new"
    bundle_of_request.reset(token)
    assert found_by(reloader) == "new"
    assert (reloader.status.switches, reloader.status.failures) == (1, 0)
    assert reloader.info()["version"] == reloader.served.version


def test_a_bundle_with_another_model_is_refused_once(reloader: FolderReloader, bundle_copy: Path, newer: Path) -> None:
    manifest = read_manifest(newer)
    other = replace(manifest, model=replace(manifest.model, name="other"))
    (newer / MANIFEST).write_text(other.to_json(), encoding="utf-8")
    replace_files(bundle_copy, newer)
    reloader.poll()
    reloader.poll()
    assert found_by(reloader) != "new"
    assert (reloader.status.switches, reloader.status.failures) == (0, 1)
    assert "another model, other" in str(reloader.status.error)
