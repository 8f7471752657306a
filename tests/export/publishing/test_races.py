"""Commands that run beside each other: `publish`, `rollback` and `prune` never leave a pointer to a version in pieces.

Each test lets one command run inside another one, just before a certain request of it.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import export.publishing.store as module
from export.cli import main
from export.publishing.bucket import Bucket
from export.publishing.store import Store
from tests.stand_ins.fixtures import Publish

Before = Callable[[str, Callable[[], object]], None]


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Before:
    """Return what runs something once, right before the next call of a method of Bucket."""

    def run_before(method: str, intrude: Callable[[], object]) -> None:
        call = getattr(Bucket, method)

        def intrude_and_call(*arguments: Any, **options: Any) -> Any:
            monkeypatch.setattr(Bucket, method, call)
            intrude()
            return call(*arguments, **options)

        monkeypatch.setattr(Bucket, method, intrude_and_call)

    return run_before


def is_whole(store: Store, s3: Any, version: str | None) -> bool:
    """Return whether all objects of a version are there, as its manifest lists them."""
    bucket, _, prefix = store.url.removeprefix("s3://").partition("/")
    listing = s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/bundles/{version}/").get("Contents", [])
    found = {each["Key"].rpartition("/")[2]: each["Size"] for each in listing}
    if "manifest.json" not in found:
        return False
    content = s3.get_object(Bucket=bucket, Key=f"{prefix}/bundles/{version}/manifest.json")["Body"].read()
    files = {name: info["bytes"] for name, info in json.loads(content)["files"].items()}
    return bool(found == files | {"manifest.json": len(content)})


def remove(store: Store, s3: Any, version: str, name: str, content: bytes | None = None) -> None:
    """Delete an object of a version, or replace it by other content."""
    bucket, _, prefix = store.url.removeprefix("s3://").partition("/")
    key = f"{prefix}/bundles/{version}/{name}"
    if content is None:
        s3.delete_object(Bucket=bucket, Key=key)
    else:
        s3.put_object(Bucket=bucket, Key=key, Body=content)


def test_a_prune_while_an_older_version_is_published_again_takes_nothing_of_it(
    store: Store, s3: Any, publish: Publish, bundles: list[Path], where: list[str], before: Before
) -> None:
    versions = [publish(bundle) for bundle in bundles]
    before("write", lambda: store.prune(1))  # after all files were found there
    assert main(["publish", str(bundles[0]), *where]) == 0
    assert store.pointer().version == versions[0]
    assert is_whole(store, s3, versions[0])


def test_a_prune_while_an_abandoned_upload_is_resumed_takes_nothing_of_it(
    store: Store,
    s3: Any,
    publish: Publish,
    bundles: list[Path],
    where: list[str],
    before: Before,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish(bundles[0])
    version, _, _ = store.send(bundles[1])
    for name in ("manifest.json", "tokenizer.txt"):
        remove(store, s3, version, name)
    monkeypatch.setattr(module, "SECONDS_UNFINISHED", -86_400)
    before("send_file", lambda: store.prune(1))
    assert main(["publish", str(bundles[1]), *where]) == 0
    assert store.pointer().version == version
    assert is_whole(store, s3, version)


@pytest.mark.parametrize("command", ["publish", "rollback"])
def test_a_version_that_is_pruned_right_before_the_switch_does_not_stay_current(
    store: Store,
    s3: Any,
    publish: Publish,
    bundles: list[Path],
    where: list[str],
    before: Before,
    command: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    versions = [publish(bundle) for bundle in bundles]
    pointer = store.pointer()
    before("replace", lambda: store.prune(0))
    version = [str(bundles[0]), *where] if command == "publish" else [where[0], versions[0], *where[1:]]
    assert main([command, *version]) == 1
    message = " ".join(capsys.readouterr().err.split())
    assert f"{versions[0][:12]} is not whole" in message
    assert f"the pointer names {versions[2][:12]} again" in message
    after = store.pointer()
    assert (after.version, after.previous) == (pointer.version, pointer.previous)
    assert is_whole(store, s3, after.version)
    assert main(["publish", str(bundles[0]), *where]) == 0
    assert is_whole(store, s3, store.pointer().version)


@pytest.mark.parametrize("content", [None, b"short"], ids=["missing", "of another length"])
@pytest.mark.parametrize("name", ["index.safetensors", "manifest.json"])
def test_rollback_to_a_version_in_pieces_is_refused(
    store: Store,
    s3: Any,
    publish: Publish,
    bundles: list[Path],
    where: list[str],
    name: str,
    content: bytes | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    versions = [publish(bundle) for bundle in bundles[:2]]
    pointer = store.pointer()
    remove(store, s3, versions[0], name, content)
    assert main(["rollback", *where]) == 1
    message = " ".join(capsys.readouterr().err.split())
    if name == "manifest.json" and content is None:
        assert "0 versions begin with" in message
    else:
        assert f"{versions[0][:12]} is not whole: {name} " in message
        assert "publish its bundle again" in message
    assert store.pointer() == pointer


def test_a_rollback_before_a_prune_deletes_keeps_the_version(
    store: Store, s3: Any, publish: Publish, bundles: list[Path], where: list[str], before: Before
) -> None:
    versions = [publish(bundle) for bundle in bundles]
    # prune has read the pointer, and is about to delete the manifest
    before("delete", lambda: main(["rollback", where[0], versions[0], *where[1:]]))
    assert store.prune(1) == ([], 0)
    assert store.pointer().version == versions[0]
    assert is_whole(store, s3, versions[0])


def test_a_publish_before_a_prune_deletes_keeps_the_version(
    store: Store, s3: Any, publish: Publish, bundles: list[Path], where: list[str], before: Before
) -> None:
    versions = [publish(bundle) for bundle in bundles]
    before("delete", lambda: main(["publish", str(bundles[0]), *where]))
    assert store.prune(1) == ([], 0)
    assert store.pointer().version == versions[0]
    assert is_whole(store, s3, versions[0])


def test_a_version_that_is_touched_after_prune_has_listed_it_is_kept(
    store: Store, s3: Any, publish: Publish, bundles: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [publish(bundle) for bundle in bundles]
    remove(store, s3, versions[0], "tokenizer.txt")
    folders = Store._folders

    def list_then_send(each: Store) -> Any:
        found = folders(each)
        monkeypatch.setattr(Store, "_folders", folders)
        store.send(bundles[0])  # somebody is about to publish it
        return found

    monkeypatch.setattr(Store, "_folders", list_then_send)
    assert store.prune(0) == ([], 0)
    assert is_whole(store, s3, versions[0])


def test_a_prune_says_so_if_an_abandoned_upload_was_published_while_it_was_deleted(
    store: Store,
    s3: Any,
    publish: Publish,
    bundles: list[Path],
    where: list[str],
    before: Before,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    publish(bundles[0])
    version, _, _ = store.send(bundles[1])
    remove(store, s3, version, "manifest.json")
    monkeypatch.setattr(module, "SECONDS_UNFINISHED", -86_400)
    before("delete", lambda: publish(bundles[1]))
    assert main(["prune", *where]) == 1
    assert f"{version[:12]} was published while it was deleted" in " ".join(capsys.readouterr().err.split())
    assert main(["publish", str(bundles[1]), *where]) == 0
    assert is_whole(store, s3, version)


def test_two_prunes_at_the_same_time_delete_the_same_versions(
    store: Store, s3: Any, publish: Publish, bundles: list[Path], before: Before
) -> None:
    versions = [publish(bundle) for bundle in bundles]
    before("delete", lambda: store.prune(0))
    store.prune(0)
    assert {version.name for version in store.versions()} == set(versions[1:])
    assert not is_whole(store, s3, versions[0])


def test_two_publishes_of_other_bundles_at_once_leave_one_of_them_whole(
    store: Store, s3: Any, publish: Publish, bundles: list[Path], where: list[str], before: Before
) -> None:
    publish(bundles[0])
    before("replace", lambda: main(["publish", str(bundles[1]), *where]))
    assert main(["publish", str(bundles[2]), *where]) == 1
    assert is_whole(store, s3, store.pointer().version)


def test_rollback_to_the_format_of_another_release_is_refused(
    store: Store, s3: Any, publish: Publish, bundle: Path, where: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    publish(bundle)
    content = b'{"format_version": 3}'
    version = hashlib.sha256(content).hexdigest()
    remove(store, s3, version, "manifest.json", content)
    assert main(["rollback", where[0], version, *where[1:]]) == 1
    assert "format_version is 3, this code reads 5" in " ".join(capsys.readouterr().err.split())
