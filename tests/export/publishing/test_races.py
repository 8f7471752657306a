"""The pointer never names a version in pieces, and of two commands that switch it at once one wins."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
