"""A folder's bundle is replaced while requests are answered."""

import errno
import logging
import shutil
from dataclasses import replace
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest

from semsearch.app.reloading import reloader as reloader_module
from semsearch.app.reloading.reloader import ActiveBundle, FolderReloader, bundle_of_request, reason_of
from semsearch.app.shared_memory import Handover
from semsearch.engine.bundle import KEYWORDS, MANIFEST, PASSAGES, BundleError, ModelInfo, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.tensors import TensorsError
from semsearch.indexing.corpus import Corpus
from semsearch.search.executor import Executor, finish
from semsearch.search.query import Query
from tests.bundle_files import damage
from tests.no_model import ELSEWHERE, without_model
from tests.server.running import WAIT, eventually
from tests.world import write_bundle


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "newer", Corpus(["An angry goose in a new bundle"], ["new"], ["{}"]))


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


def look(reloader: FolderReloader) -> None:
    """Look twice: files are opened when two looks have found the same."""
    reloader.poll()
    reloader.poll()


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
    look(reloader)
    served = reloader.served
    look(reloader)
    assert reloader.served is served  # it is opened once
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
    look(reloader)
    look(reloader)
    assert found_by(reloader) != "new"
    assert (reloader.status.switches, reloader.status.failures) == (0, 1)
    assert "another model, other" in str(reloader.status.error)


def test_a_bundle_without_a_model_is_replaced_by_embeddings_of_the_same_model_alone(
    bundle: Path, bundle_copy: Path, newer: Path, tmp_path: Path
) -> None:
    with_model = Path(shutil.copytree(newer, tmp_path / "with-model"))
    other = without_model(Path(shutil.copytree(newer, tmp_path / "other")), "another-model")
    fewer = without_model(Path(shutil.copytree(newer, tmp_path / "fewer")))
    manifest = read_manifest(fewer)
    (fewer / MANIFEST).write_text(
        replace(manifest, model=ModelInfo.elsewhere(ELSEWHERE, 2)).to_json(), encoding="utf-8"
    )
    reloader = FolderReloader(without_model(bundle_copy))
    reloader.connect(Executor(reloader.load().embedder), logging.getLogger("tests"))
    for refused, message in (
        (other, "embeddings of another model, another-model with 48 dimensions, expected the one that is served"),
        (fewer, f"embeddings of another model, {ELSEWHERE} with 2 dimensions, expected the one that is served"),
        (with_model, "another model, tests/mean-of-words, or the same converted with other options"),
    ):
        replace_files(bundle_copy, refused)
        look(reloader)
        assert message in str(reloader.status.error)
        assert found_by(reloader) != "new"
    replace_files(bundle_copy, without_model(newer))
    look(reloader)
    assert reloader.status.error is None
    assert found_by(reloader) == "new"


def test_a_bundle_with_a_model_is_not_replaced_by_one_without(
    reloader: FolderReloader, bundle_copy: Path, newer: Path
) -> None:
    replace_files(bundle_copy, without_model(newer))
    look(reloader)
    assert f"embeddings of another model, {ELSEWHERE}" in str(reloader.status.error)
    assert found_by(reloader) != "new"


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


def test_the_thread_polls_at_once_when_it_is_told_to(bundle_copy: Path, newer: Path) -> None:
    reloader = FolderReloader(bundle_copy, poll_seconds=3600)
    reloader.connect(Executor(reloader.load().embedder), logging.getLogger("tests"))
    reloader.poll_forever()
    replace_files(bundle_copy, newer)

    def has_switched() -> bool:
        reloader.poll_now()
        return reloader.status.switches == 1

    assert eventually(has_switched)
    reloader.stop()
    assert reloader._thread is not None
    assert reloader._thread.daemon
    reloader._thread.join(WAIT)
    assert not reloader._thread.is_alive()


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
        look(reloader)
        look(reloader)
    assert "Too many open files" in str(reloader.status.error)
    assert reloader.info()["failures"] == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    reloader.poll()
    assert found_by(reloader) == "new"
    assert reloader.info()["error"] is None


def test_the_bundle_of_a_folder_that_is_gone_is_served_and_the_loss_is_reported_once(
    reloader: FolderReloader, bundle_copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bundle_copy.rename(f"{bundle_copy}.moved")
    look(reloader)
    look(reloader)
    assert found_by(reloader)
    assert str(reloader.info()["error"]).startswith(f"{bundle_copy}: holds no manifest.json")
    assert reloader.info()["failures"] == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    Path(f"{bundle_copy}.moved").rename(bundle_copy)
    look(reloader)
    assert (reloader.info()["error"], reloader.info()["switches"]) == (None, 0)


def test_a_loss_that_comes_again_is_reported_again(reloader: FolderReloader, bundle_copy: Path) -> None:
    copy = Path(f"{bundle_copy}.moved")
    for failures in (1, 2):
        bundle_copy.rename(copy)
        look(reloader)
        assert reloader.info()["failures"] == failures
        assert str(reloader.info()["error"]).startswith(f"{bundle_copy}: holds no manifest.json")
        copy.rename(bundle_copy)
        look(reloader)
        assert reloader.info()["error"] is None
    bundle_copy.rename(copy)
    look(reloader)
    shutil.copytree(copy, bundle_copy)  # other files with the same content
    look(reloader)
    shutil.rmtree(bundle_copy)
    look(reloader)
    assert (reloader.info()["failures"], reloader.info()["switches"]) == (4, 0)
    shutil.copytree(copy, bundle_copy)
    look(reloader)
    assert reloader.info()["error"] is None


def test_what_is_told_of_a_bundle_and_of_a_switch(
    bundle_copy: Path, newer: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tests")
    now, ticks = [1_000_000.0004], count(0, 0.123456)
    monkeypatch.setattr(reloader_module, "time", lambda: now[0])
    monkeypatch.setattr(reloader_module, "perf_counter", lambda: next(ticks))
    reloader, changes = FolderReloader(bundle_copy), list[int]()
    reloader.connect(Executor(reloader.load().embedder), logging.getLogger("tests"))
    reloader.on_change = lambda status: changes.append(status.switches)
    version = sha256((bundle_copy / MANIFEST).read_bytes()).hexdigest()
    assert not reloader.served.is_behind
    told: dict[str, object] = {
        "source": str(bundle_copy),
        "version": version,
        "loaded_at": 1_000_000.0,
        "fetch_milliseconds": 123.46,
        "removed": 0,
        "switches": 0,
        "failures": 0,
        "error": None,
    }
    now[0] += 1.2345
    assert reloader.info() == told | {"seconds_since_look": 1.235}
    reloader.poll()
    reloader.more_info = lambda: {"update": "runs"}
    assert reloader.info() == told | {"seconds_since_look": 0.0, "update": "runs"}
    assert changes == [0]
    replace_files(bundle_copy, newer)
    look(reloader)
    assert changes == [0, 0, 1, 1]  # by the switch, and by the poll
    newest = sha256((newer / MANIFEST).read_bytes()).hexdigest()
    now[0] += 2
    switched = {"version": newest, "switches": 1, "loaded_at": 1_000_001.235}
    assert reloader.info() == told | switched | {"seconds_since_look": 2.0, "update": "runs"}
    bundle_copy.rename(f"{bundle_copy}.moved")
    look(reloader)
    assert changes == [0, 0, 1, 1, 1, 1]
    fields = {"bundle": str(bundle_copy), "version": newest[:12], "milliseconds": 123.46}
    done, failed = (vars(record) for record in caplog.records)
    assert {name: done[name] for name in (*fields, "removed", "message")} == fields | {
        "removed": 0,
        "message": "bundle switched",
    }
    assert {name: failed[name] for name in (*fields, "error", "message")} == fields | {
        "error": f"{bundle_copy}: holds no manifest.json; a process that starts now would fail",
        "message": "bundle switch failed",
    }


def test_a_bundle_that_is_copied_file_by_file_is_served_when_the_last_file_is_there(
    reloader: FolderReloader, bundle_copy: Path, newer: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for path in sorted(newer.iterdir()):  # manifest.json comes before passages.safetensors
        content = path.read_bytes()
        for copied in (len(content) // 2, len(content)):
            (bundle_copy / path.name).write_bytes(content[:copied])
            reloader.poll()
    assert not caplog.records
    reloader.poll()
    assert found_by(reloader) == "new"
    assert (reloader.status.switches, reloader.status.failures) == (1, 0)


def test_a_refused_bundle_is_served_after_the_file_that_was_missing_has_come(
    reloader: FolderReloader, bundle_copy: Path, newer: Path
) -> None:
    replace_files(bundle_copy, newer)
    (bundle_copy / PASSAGES).rename(newer / "late")
    look(reloader)
    assert "passages.safetensors: is missing" in str(reloader.status.error)
    (newer / "late").rename(bundle_copy / PASSAGES)
    look(reloader)
    assert found_by(reloader) == "new"
    assert (reloader.status.failures, reloader.status.error) == (1, None)


def test_a_bundle_with_a_file_that_only_some_requests_need_and_that_is_cut_off_is_refused(
    reloader: FolderReloader, bundle_copy: Path, newer: Path
) -> None:
    keywords = newer / KEYWORDS
    keywords.write_bytes(keywords.read_bytes()[:-20])
    replace_files(bundle_copy, newer)
    look(reloader)
    assert KEYWORDS in str(reloader.status.error)
    assert found_by(reloader) != "new"


def test_a_file_that_comes_after_a_bundle_was_opened_is_served_too(
    reloader: FolderReloader, bundle_copy: Path, newer: Path
) -> None:
    older = (bundle_copy / PASSAGES).read_bytes()
    (bundle_copy / PASSAGES).write_bytes(older.replace(b"story-1", b"STORY-1"))  # has the same length
    look(reloader)
    assert found_by(reloader).startswith("STORY-1")
    (newer / PASSAGES).write_bytes(older)
    (newer / PASSAGES).rename(bundle_copy / PASSAGES)
    look(reloader)
    assert found_by(reloader).startswith("story-1")


def test_a_process_that_replaces_another_serves_what_that_one_served(bundle_copy: Path, newer: Path) -> None:
    first, second = FolderReloader(bundle_copy), FolderReloader(bundle_copy)
    for each in (first, second):
        each.connect(Executor(each.load().embedder), logging.getLogger("tests"))
    handover = Handover()
    first.follow(handover)
    assert handover.read() is None
    replace_files(bundle_copy, newer)
    look(first)
    second.follow(handover)
    assert found_by(second) == "new"
    assert second.info()["version"] == first.info()["version"]


def test_a_process_that_replaces_another_is_behind_while_the_folder_holds_nothing_that_it_can_serve(
    bundle_copy: Path, newer: Path
) -> None:
    first, second = FolderReloader(bundle_copy), FolderReloader(bundle_copy)
    for each in (first, second):
        each.connect(Executor(each.load().embedder), logging.getLogger("tests"))
    handover = Handover()
    first.follow(handover)
    replace_files(bundle_copy, newer)
    look(first)
    (bundle_copy / MANIFEST).write_text('{"format_version": 99}')
    second.follow(handover)
    look(second)
    assert (second.served.is_behind, second.status.version) == (True, "")
    assert "format_version is 99" in str(second.status.error)
    bundle_copy.rename(newer.parent / "gone")
    look(second)
    assert second.served.is_behind
    newer.rename(bundle_copy)
    look(second)
    assert found_by(second) == "new"


def test_a_process_that_could_not_open_the_files_of_its_start_again_tries_again(
    bundle_copy: Path, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = FolderReloader(bundle_copy), FolderReloader(bundle_copy)
    for each in (first, second):
        each.connect(Executor(each.load().embedder), logging.getLogger("tests"))
    handover, kept = Handover(), newer.parent / "kept"
    first.follow(handover)
    bundle_copy.rename(kept)
    newer.rename(bundle_copy)
    look(first)
    bundle_copy.rename(newer)
    kept.rename(bundle_copy)

    def fail(version: str, embedder: Embedder | None) -> ActiveBundle:
        raise OSError("too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(second, "_open", fail)
        second.follow(handover)
    assert (second.served.is_behind, second.status.error is None) == (True, False)
    look(second)
    assert (second.served.is_behind, second.status.error) == (False, None)


def test_the_reason_of_a_failure_that_nobody_foresaw_has_its_type() -> None:
    foreseen: list[Exception] = [BundleError("no bundle"), TensorsError("no file"), OSError("no disk")]
    assert [reason_of(error) for error in foreseen] == ["no bundle", "no file", "no disk"]
    assert reason_of(ValueError("no sense")) == "ValueError('no sense')"


def test_with_verify_a_damaged_bundle_is_served_neither_first_nor_later(bundle_copy: Path, newer: Path) -> None:
    reloader = FolderReloader(bundle_copy, verify=True)
    reloader.connect(Executor(reloader.load().embedder), logging.getLogger("tests"))
    damage(newer / "index.safetensors")
    replace_files(bundle_copy, newer)
    look(reloader)
    assert "index.safetensors: is damaged" in str(reloader.status.error)
    assert found_by(reloader) != "new"
    with pytest.raises(BundleError, match="is damaged"):
        FolderReloader(bundle_copy, verify=True).load()
