"""A function or a server whose bundle is in S3: how it starts, and what it leaves on the disk."""

import errno
import fcntl
import gc
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from semsearch import Search
from semsearch.aws.s3 import fetch as fetching
from semsearch.aws.s3 import folders
from semsearch.aws.s3.fetch import _link_model, without_rows
from semsearch.aws.s3.folders import LOCK, SharedFolder, open_shared
from semsearch.commands.main import dispatch
from semsearch.engine.bundle import BundleError, ModelInfo, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import load
from semsearch.publishing.store import Store
from tests.aws.s3.asking import Start, ask, fetched, left
from tests.command_line import contents
from tests.function.events.event_makers import http_api
from tests.no_model import ELSEWHERE, without_model
from tests.project import ROOT
from tests.server.running import WAIT
from tests.stand_ins.faults import Proxy
from tests.stand_ins.fixtures import Publish

RELOADER = """
import json, sys
import semsearch.app.reloading.s3
print(json.dumps([name for name in ("fastapi", "pydantic", "mangum") if name in sys.modules]))
"""


def test_the_fetch_can_begin_before_the_http_libraries_are_imported(in_a_new_process: Callable[..., Any]) -> None:
    assert in_a_new_process(RELOADER) == []


def test_a_function_serves_the_bundle_that_the_pointer_names_and_each_reply_names_it(
    start: Start, publish: Publish, bundles: list[Path], environment: dict[str, str]
) -> None:
    publish(bundles[0])
    version = publish(bundles[1])
    _, client = start()
    assert ask(client) == (version[:12], "Edition 1")
    (folder,) = left(environment)
    assert contents(fetched(environment) / folder) == contents(bundles[1])
    for reply in (client.get("/info"), client.get("/nothing"), client.post("/similar", json={}), client.get("/health")):
        assert reply.headers["x-bundle"] == version[:12]
    shown = client.get("/info").json()["bundle"]
    assert (shown["version"], shown["switches"], shown["error"]) == (version, 0, None)


def test_a_bundle_without_a_model_is_fetched_opened_and_replaced_by_its_equal_alone(
    start: Start, publish: Publish, bundles: list[Path], tmp_path: Path
) -> None:
    first, second = (without_model(Path(shutil.copytree(bundle, tmp_path / bundle.name))) for bundle in bundles[:2])
    other = without_model(Path(shutil.copytree(bundles[1], tmp_path / "other")), "another-model")
    published = publish(first)
    switch, client = start()
    assert switch.served.bundle.embedder is None
    assert ask(client)[0] == published[:12]
    assert client.get("/info").json()["model"]["name"] == ELSEWHERE
    newer = publish(second)
    switch.poll()
    assert ask(client)[0] == newer[:12]
    publish(other)
    switch.poll()
    assert "embeddings of another model, another-model" in str(switch.status.error)
    assert ask(client)[0] == newer[:12]


HANDLER = f"""
import json, threading
from snapshot_restore_py import get_after_restore
from function import handler
phases, loaded_at = list(handler.stopwatch.phases), handler.reloader.status.loaded_at
for hook, arguments, named in get_after_restore():
    hook(*arguments, **named)
handler.handler({http_api("GET", "/health", None)!r}, None)
for thread in threading.enumerate():
    if thread.name == "poll":
        thread.join()
print(json.dumps([phases, list(handler.cold_start.phases), handler.reloader.status.looked_at > loaded_at]))
"""


def test_a_start_in_lambda_tells_the_time_of_the_fetch_and_after_a_restore_a_request_polls(
    publish: Publish, bundle: Path, url: str, environment: dict[str, str], in_a_new_process: Callable[..., Any]
) -> None:
    publish(bundle)
    named = {"BUNDLE_DIR": url, "LOCAL_BUNDLE_DIR": "/nowhere", "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"}
    phases, after_restore, has_polled = in_a_new_process(HANDLER, **environment, **named)
    assert phases == ["import-engine", "import-http", "fetch", "model", "app", "warm-up", "other-routes"]
    assert (after_restore, has_polled) == (["restore-warm-up"], True)


def test_the_model_is_opened_once_while_the_other_files_are_fetched(
    start: Start, publish: Publish, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundle)
    opened, open_model = [], Embedder.open

    def opening(folder: Path, model: ModelInfo, **options: Any) -> Embedder:
        opened.append(folder)
        return open_model(folder, model, **options)

    monkeypatch.setattr(Embedder, "open", opening)
    start()
    assert len(opened) == 1


def test_files_come_in_parts_that_are_put_together(
    start: Start, publish: Publish, bundle: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PART_BYTES", 4000)
    publish(bundle)
    _, client = start()
    ask(client)
    size = (bundle / "index.safetensors").stat().st_size
    ranges = [asked for path, asked, _ in proxy.asked if path.endswith("index.safetensors")]
    assert sorted(ranges, key=lambda found: int(str(found)[6:].split("-")[0])) == [
        f"bytes={begin}-{min(begin + 4000, size) - 1}" for begin in range(0, size, 4000)
    ]


def test_a_model_that_is_here_is_not_fetched(start: Start, publish: Publish, bundles: list[Path], proxy: Proxy) -> None:
    publish(bundles[1])
    _, client = start(bundles[0])
    assert ask(client)[1] == "Edition 1"
    fetched = {path.rpartition("/")[2] for path, _, _ in proxy.asked}
    assert "index.safetensors" in fetched
    assert not {"model.ort", "tokenizer.txt"} & fetched


def test_a_server_whose_bundle_cannot_be_fetched_ends_in_one_line(
    keys: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert dispatch(["serve", "s3://bucket/prefix", "--port", "0", "--workers", "1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: s3://bucket/prefix/current.json: ")
    assert line.endswith(", 4 times; is 127.0.0.1:1 up?")


def test_two_processes_share_what_is_fetched_and_the_last_one_removes_it(
    start: Start, publish: Publish, bundles: list[Path], environment: dict[str, str], proxy: Proxy
) -> None:
    versions = [publish(bundles[0])]
    first, _ = start()
    proxy.asked.clear()
    second, client = start()
    assert [path.rpartition("/")[2] for path, _, _ in proxy.asked] == ["current.json"]
    versions.append(publish(bundles[1]))
    first.poll()
    assert left(environment) == sorted(versions)
    assert ask(client, mode="keyword")[0] == versions[0][:12]
    second.poll()
    gc.collect()
    assert left(environment) == [versions[1]]


def test_a_local_bundle_of_another_release_or_without_its_model_does_not_hinder_a_start(
    start: Start, publish: Publish, bundle: Path, bundle_copy: Path
) -> None:
    version = publish(bundle)
    (bundle_copy / "model.ort").unlink()
    for _ in range(2):
        _, client = start(bundle_copy)
        assert ask(client)[0] == version[:12]
        manifest = bundle_copy / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"format_version": 5', '"format_version": 3'))


def test_an_image_without_bundle_serves_one_of_s3(start: Start, publish: Publish, bundle: Path, tmp_path: Path) -> None:
    (command,) = re.findall(r"^mkdir bundle && .+$", (ROOT / "docs" / "publish.md").read_text(), re.MULTILINE)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    lines = re.findall(r"^COPY --from=bundle (.*) /", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    copied = [path.removeprefix("/build/bundle/") for line in lines for path in line.split() if "bundle/" in path]
    assert copied == ["*.safetensors", "manifest.json"]
    assert all(
        list((tmp_path / "bundle").glob(pattern)) for pattern in copied
    )  # docker copies no pattern without a file
    version = publish(bundle)
    _, client = start(tmp_path / "bundle")
    assert ask(client)[0] == version[:12]


def test_partial_fetches_are_removed(start: Start, publish: Publish, bundle: Path, environment: dict[str, str]) -> None:
    version = publish(bundle)
    folder = folders.own_folder(environment)
    (folder / "0123.part").mkdir()
    (folder / "0123.part" / "index.safetensors").touch()
    (folder / "0123.lock").touch()
    start()
    assert sorted(path.name for path in folder.iterdir()) == [version, f"{version}.lock"]


START_AND_END = """
import os
from semsearch.app.reloading.s3 import BundleReloader
from semsearch.app.settings import Settings
switch = BundleReloader(Settings(bundle_url=os.environ["URL"]), os.environ, by_requests=False)
switch.fetch()
bundle = switch.load()
print("true" if (bundle.folder / "manifest.json").is_file() else "false")
"""


def test_an_end_removes_what_was_fetched(
    publish: Publish, bundle: Path, url: str, environment: dict[str, str], in_a_new_process: Callable[..., Any]
) -> None:
    publish(bundle)
    assert in_a_new_process(START_AND_END, URL=url, **environment)
    assert list(fetched(environment).iterdir()) == []


def test_a_folder_of_others_is_not_used(environment: dict[str, str], tmp_path: Path) -> None:
    folder = folders.own_folder(environment)
    assert (folder.parent, folder.stat().st_mode & 0o777) == (Path(environment["TMPDIR"]), 0o700)
    for mode in (0o720, 0o702):
        folder.chmod(mode)
        with pytest.raises(BundleError, match="other users can write there"):
            folders.own_folder(environment)
    folder.chmod(0o755)
    assert folders.own_folder(environment) == folder
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(BundleError, match="other users can write there"):
        folders.own_folder(environment)


def test_a_process_that_waits_gets_the_folder_while_the_one_that_filled_it_uses_it(tmp_path: Path) -> None:
    path, is_opened = tmp_path / "bundle", Event()
    found: list[SharedFolder] = []

    def open_it() -> None:
        found.append(open_shared(path, lambda part: None))
        is_opened.set()

    with path.with_suffix(LOCK).open("w") as filler:
        fcntl.flock(filler, fcntl.LOCK_SH)
        Thread(target=open_it, daemon=True).start()
        assert not is_opened.wait(0.5)
        path.mkdir()
        assert is_opened.wait(WAIT)
        found[0].close()
        assert path.is_dir()  # the filler uses it


def test_a_folder_that_was_removed_before_it_was_locked_is_filled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock = tmp_path / "bundle", fcntl.flock
    filled = list[Path]()

    def flock_after_removal(lock: int, operation: int) -> None:
        if operation == fcntl.LOCK_SH and len(filled) == 1:
            path.rmdir()  # by another process, which keeps its lock file
        flock(lock, operation)

    monkeypatch.setattr(fcntl, "flock", flock_after_removal)
    open_shared(path, filled.append).close()
    assert len(filled) == 2


def test_a_published_bundle_is_searched_and_its_files_are_removed_afterwards(
    endpoint: str, store: Store, publish: Publish, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    version = publish(bundle)
    with Search(store.url) as search:
        assert search.search("the baker") == Search(bundle).search("the baker")
        assert version[:12] in repr(search)
        store.remove(["story-007"])
        assert (search.get("story-007") is None, len(search)) == (False, 200)
        search.reload()
        assert (search.get("story-007"), len(search)) == (None, 199)
        assert [path.name for path in tmp_path.glob("*/*") if path.is_dir()] == [version]
    assert not any(path.is_dir() for path in tmp_path.glob("*/*"))


def test_the_model_of_a_local_bundle_is_linked_if_it_is_the_same(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = read_manifest(bundle)
    for name in ("hard", "soft", "other"):
        (tmp_path / name).mkdir()
    names = ["model.ort", "tokenizer.txt"]
    assert _link_model(bundle, manifest, tmp_path / "hard") == names
    assert all((tmp_path / "hard" / name).samefile(bundle / name) for name in names)
    assert not any((tmp_path / "hard" / name).is_symlink() for name in names)
    other = replace(
        manifest, files=manifest.files | {"model.ort": replace(manifest.files["model.ort"], sha256="0" * 64)}
    )
    assert _link_model(bundle, other, tmp_path / "other") == names[1:]
    assert _link_model(tmp_path / "nowhere", manifest, tmp_path / "other") == []

    def refuse(link: Path, existing: Path) -> None:
        raise OSError(errno.EXDEV, "another disk")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert _link_model(bundle, manifest, tmp_path / "soft") == names
    assert [(tmp_path / "soft" / name).readlink() for name in names] == [bundle.resolve() / name for name in names]


def test_only_rows_of_the_bundle_can_be_left_out(bundle: Path) -> None:
    opened = load(bundle)
    assert without_rows(opened, [199, 0]).rows == 200
    allowed = without_rows(opened, [199, 0]).allowed
    assert allowed is not None
    assert np.flatnonzero(~allowed).tolist() == [0, 199]
    with pytest.raises(BundleError, match="row 200 was removed, expected one of 200 rows; publish again"):
        without_rows(opened, [3, 200])
