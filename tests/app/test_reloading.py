"""A folder's bundle is replaced while requests are answered."""

import errno
import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from semsearch.app.reloading.reloader import FolderReloader, bundle_of_request
from semsearch.engine.bundle import MANIFEST, BundleError, read_manifest
from semsearch.indexing.corpus import Corpus
from semsearch.search.executor import Executor, finish
from semsearch.search.query import Query
from tests.bundle_files import damage
from tests.server.running import eventually
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


def test_the_thread_polls_on_when_the_folder_was_a_file_for_a_moment(bundle_copy: Path, newer: Path) -> None:
    reloader = FolderReloader(bundle_copy, poll_seconds=0.01)
    reloader.connect(Executor(reloader.load().embedder), logging.getLogger("tests"))
    reloader.poll_forever()
    bundle_copy.rename(f"{bundle_copy}.moved")
    bundle_copy.touch()
    assert eventually(lambda: "Not a directory" in str(reloader.status.error))
    bundle_copy.unlink()
    newer.rename(bundle_copy)
    assert eventually(lambda: reloader.status.switches == 1)
    reloader.stop()
    assert found_by(reloader) == "new"


def test_a_new_bundle_that_cannot_be_read_for_a_moment_is_reported_once_and_served_later(
    reloader: FolderReloader,
    bundle_copy: Path,
    newer: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def failing(*arguments: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    replace_files(bundle_copy, newer)
    with monkeypatch.context() as patch:
        patch.setattr("semsearch.app.reloading.reloader.load", failing)
        reloader.poll()
        reloader.poll()
    assert "Too many open files" in str(reloader.status.error)
    assert reloader.info()["failures"] == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    reloader.poll()
    assert found_by(reloader) == "new"
    assert reloader.info()["error"] is None


def test_the_bundle_of_a_folder_that_is_gone_is_served_and_the_loss_is_shown(
    reloader: FolderReloader, bundle_copy: Path
) -> None:
    bundle_copy.rename(f"{bundle_copy}.moved")
    reloader.poll()
    assert found_by(reloader)
    assert str(reloader.info()["error"]).startswith(f"{bundle_copy}: holds no manifest.json")
    Path(f"{bundle_copy}.moved").rename(bundle_copy)
    reloader.poll()
    assert reloader.info()["error"] is None


def test_with_verify_a_damaged_bundle_is_served_neither_first_nor_later(bundle_copy: Path, newer: Path) -> None:
    reloader = FolderReloader(bundle_copy, verify=True)
    reloader.connect(Executor(reloader.load().embedder), logging.getLogger("tests"))
    damage(newer / "index.safetensors")
    replace_files(bundle_copy, newer)
    reloader.poll()
    assert "index.safetensors: is damaged" in str(reloader.status.error)
    assert found_by(reloader) != "new"
    with pytest.raises(BundleError, match="is damaged"):
        FolderReloader(bundle_copy, verify=True).load()
