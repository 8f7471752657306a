"""What S3 does on a bad day, and bundles that cannot be served: the old bundle serves on."""

import errno
import hashlib
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from semsearch.engine.bundle import MANIFEST, BundleError, read_manifest
from tests.aws.s3.asking import Behind, Start, ask, fetched, left
from tests.stand_ins.faults import Fault, Proxy, cut, refuse
from tests.stand_ins.fixtures import Publish, object_at


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (refuse(503, "SlowDown"), "503 SlowDown"),
        (refuse(403, "AccessDenied"), "403 AccessDenied; publish a bundle there, or allow s3:GetObject"),
    ],
)
def test_what_s3_does_wrong_is_told_and_the_old_bundle_serves_on_until_it_does_better(
    behind: Behind, environment: dict[str, str], proxy: Proxy, fault: Fault, message: str
) -> None:
    switch, client, old, new = behind
    proxy.fail("index.safetensors", fault)
    switch.poll()
    assert switch.status.failures == 1
    assert re.search(message, str(switch.status.error))
    assert client.get("/info").json()["bundle"]["error"] == switch.status.error
    assert ask(client) == (old[:12], "")
    assert left(environment) == [old]
    proxy.faults.clear()
    switch.poll()
    assert switch.status.error is None
    assert ask(client)[0] == new[:12]


@pytest.mark.parametrize("fault", [cut, refuse(503, "SlowDown")])
def test_what_goes_wrong_once_is_asked_for_again(behind: Behind, proxy: Proxy, fault: Fault) -> None:
    switch, client, _, new = behind
    for where in ("current.json", "manifest.json", "index.safetensors"):
        proxy.fail(where, fault, times=2)
    switch.poll()
    assert switch.status.error is None
    assert ask(client)[0] == new[:12]


@pytest.mark.parametrize("name", ["manifest.json", "index.safetensors"])
def test_wrong_bytes_are_refused_once(
    behind: Behind, environment: dict[str, str], proxy: Proxy, s3: Any, url: str, name: str
) -> None:
    switch, client, old, new = behind
    place = object_at(url, f"bundles/{new}/{name}")
    content = bytearray(s3.get_object(**place)["Body"].read())
    content[len(content) // 2] ^= 1
    s3.put_object(**place, Body=bytes(content))
    switch.poll()
    assert f"{name}: is damaged" in str(switch.status.error) or f"{name} is damaged" in str(switch.status.error)
    assert ask(client)[0] == old[:12]
    assert left(environment) == [old]
    proxy.asked.clear()
    switch.poll()
    assert len(proxy.asked) == 1
    assert switch.status.error


def full_disk(number: int, environment: dict[str, str]) -> str:
    """Return the end of the error of a full disk."""
    return f": {os.strerror(number)} while writing to {fetched(environment)}; make room there"


def test_a_disk_without_room_for_the_whole_bundle_is_told_before_it_is_fetched(
    behind: Behind, environment: dict[str, str], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch, client, old, _ = behind
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1))
    proxy.asked.clear()
    switch.poll()
    assert str(switch.status.error).endswith(full_disk(errno.ENOSPC, environment))
    assert {path.rpartition("/")[2] for path, _, _ in proxy.asked} == {"current.json", "manifest.json"}
    assert ask(client)[0] == old[:12]
    assert left(environment) == [old]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_becomes_full_is_told_and_no_part_is_asked_for_again(
    behind: Behind, environment: dict[str, str], proxy: Proxy, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse_to_write(file: int, content: bytes, place: int) -> int:
        raise OSError(number, os.strerror(number))

    switch, client, old, _ = behind
    monkeypatch.setattr("os.pwrite", refuse_to_write)
    proxy.asked.clear()
    switch.poll()
    assert str(switch.status.error).endswith(full_disk(number, environment))
    parts = [path for path, part, _ in proxy.asked if part is not None]
    assert len(parts) == len(set(parts)) > 0
    assert ask(client)[0] == old[:12]
    assert left(environment) == [old]


def test_an_unforeseen_error_is_reported_and_tried_again(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    switch, client, _, new = behind
    with monkeypatch.context() as patch:
        patch.setattr("semsearch.app.reloading.s3.load", lambda folder, embedder: 1 / 0)
        switch.poll()
    assert switch.status.error == "ZeroDivisionError('division by zero')"
    switch.poll()
    assert ask(client)[0] == new[:12]
    assert switch.status.error is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": {"prompts": {"query": "query: "}}},
            "another model, tests/mean-of-words, or the same converted with other options",
        ),
        ({"index": {"rows": 199}}, "rows of the index, rows of the passages and dim are"),
    ],
)
def test_a_bundle_that_this_function_cannot_serve_is_refused(
    start: Start,
    publish: Publish,
    bundle: Path,
    bundle_copy: Path,
    environment: dict[str, str],
    proxy: Proxy,
    changes: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    version = publish(bundle)
    switch, client = start()
    fields = json.loads((bundle_copy / MANIFEST).read_text())
    for name, value in changes.items():
        fields[name] |= value
    (bundle_copy / MANIFEST).write_text(json.dumps(fields))
    # a publisher of another release would send it; this one refuses
    monkeypatch.setattr("semsearch.publishing.store.check_bundle", lambda folder: read_manifest(bundle))
    publish(bundle_copy)
    switch.poll()
    assert message in str(switch.status.error)
    assert ask(client)[0] == version[:12]
    assert left(environment) == [version]
    proxy.asked.clear()
    switch.poll()
    assert len(proxy.asked) == 1  # the pointer: the bundle is not fetched again


def test_the_pointer_is_read_again_after_a_lack_of_free_files(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    switch, client, _, new = behind
    with monkeypatch.context() as patch:

        def failing(folder: Path) -> None:
            raise BundleError(f"{folder}: Too many open files") from OSError(24, "Too many open files")

        patch.setattr("semsearch.app.reloading.s3.read_manifest", failing)
        switch.poll()
    assert "Too many open files" in str(switch.status.error)
    switch.poll()
    assert ask(client)[0] == new[:12]


NAMES = ["", "..", "a/b", "a\\b", ".hidden", "a\0b", "\ud800", "manifest.json", "a\n"]


def publish_manifest(s3: Any, url: str, content: bytes) -> None:
    """Publish a version that consists of a manifest with this content."""
    version = hashlib.sha256(content).hexdigest()
    s3.put_object(**object_at(url, f"bundles/{version}/manifest.json"), Body=content)
    s3.put_object(**object_at(url, "current.json"), Body=json.dumps({"version": version}).encode())


def test_what_is_no_manifest_is_refused_by_a_start_and_by_a_poll(
    start: Start, publish: Publish, bundle: Path, environment: dict[str, str], s3: Any, url: str
) -> None:
    version = publish(bundle)
    switch, client = start()
    publish_manifest(s3, url, b"[" * 100_000)
    with pytest.raises(BundleError, match=r"manifest\.json: maximum recursion depth exceeded") as raised:
        start()
    switch.poll()
    assert switch.status.error == str(raised.value)
    assert ask(client)[0] == version[:12]
    assert left(environment) == [version]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_manifest_that_lists_what_is_no_name_of_a_file_is_refused(
    start: Start, bundle: Path, environment: dict[str, str], s3: Any, url: str, name: str
) -> None:
    fields = json.loads((bundle / MANIFEST).read_text())
    fields["files"][name] = {"bytes": 1, "sha256": "0" * 64}
    publish_manifest(s3, url, json.dumps(fields).encode())
    with pytest.raises(BundleError, match="expected the name of a file; publish it again"):
        start()
    assert left(environment) == []
