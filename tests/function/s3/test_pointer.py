"""A pointer that is none: functions and all commands refuse it with the same words, and nothing is deleted."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from export.cli import main
from export.publishing.store import Store
from function.engine.bundle import BundleError
from function.engine.published import parse_pointer
from tests.function.s3.asking import Start, ask
from tests.stand_ins.fixtures import Publish

VERSION = "ab" * 32
UPPER = VERSION.upper()
DIGITS = "64 hexadecimal digits in lower case"
WRONG: dict[str, tuple[bytes, str]] = {
    "not UTF-8": (b'{"version": "\xff\xfe"}', "cannot be read"),
    "nested deeply in a field": (b'{"version": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "cannot be read"),
    "twice": (f'{{"version": "{VERSION}", "version": "{"cd" * 32}"}}'.encode(), "a name occurs twice"),
    "a list": (b"[1]", "found [1], expected a JSON object"),
    "empty object": (b"{}", f"version is None, expected {DIGITS}"),
    "capital letters": (json.dumps({"version": UPPER}).encode(), f"expected {DIGITS}"),
    "with a line break": (json.dumps({"version": f"{VERSION}\n"}).encode(), f"expected {DIGITS}"),
    "other digits": (json.dumps({"version": "٣" * 64}).encode(), f"expected {DIGITS}"),
    "previous is a number": (
        json.dumps({"version": VERSION, "previous": 5}).encode(),
        "previous is 5, expected null or",
    ),
}


def put_pointer(s3: Any, url: str, content: bytes) -> None:
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    s3.put_object(Bucket=bucket, Key=f"{prefix}/current.json", Body=content)


@pytest.mark.parametrize(("content", "found"), WRONG.values(), ids=WRONG)
def test_what_is_no_pointer_is_refused(content: bytes, found: str) -> None:
    with pytest.raises(BundleError) as raised:
        parse_pointer(content, "s3://bucket/current.json")
    message = str(raised.value)
    assert message.startswith("s3://bucket/current.json: ")
    assert found in message
    assert message.endswith("; delete the object and publish again")
    assert len(message) < 300


@pytest.mark.parametrize(
    ("fields", "previous"),
    [({"version": VERSION, "previous": "01" * 32, "format_version": 5, "later": [{}]}, "01" * 32)],
)
def test_a_pointer_of_another_release_is_read(fields: dict[str, object], previous: str | None) -> None:
    for encoding in ("utf-8", "utf-8-sig"):
        pointer = parse_pointer(json.dumps(fields).encode(encoding), "here")
        assert (pointer.version, pointer.previous) == (VERSION, previous)


@pytest.mark.parametrize("kind", ["not UTF-8"])
def test_functions_and_commands_refuse_a_pointer_with_the_same_words(
    start: Start,
    publish: Publish,
    store: Store,
    s3: Any,
    bundle: Path,
    endpoint: str,
    kind: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    content, _ = WRONG[kind]
    version = publish(bundle)
    there = store.versions()
    switch, client = start()
    put_pointer(s3, store.url, content)
    switch.poll()
    error = switch.status.error
    assert ask(client)[0] == version[:12]
    where = [store.url, "--endpoint", endpoint]
    for command in (["publish", str(bundle), *where], *([name, *where] for name in ("history", "rollback", "prune"))):
        assert main(command) == 1, command
        assert " ".join(capsys.readouterr().err.split()) == f"error: {error}"
    s3.delete_object(Bucket=store.url.split("/")[2], Key=f"{'/'.join(store.url.split('/')[3:])}/current.json")
    assert [each.name for each in store.versions()] == [each.name for each in there]


def test_a_version_in_use_that_the_pointer_names_in_capital_letters_is_not_deleted(
    publish: Publish, store: Store, s3: Any, bundles: list[Path], endpoint: str
) -> None:
    versions = [publish(bundle) for bundle in bundles]
    put_pointer(s3, store.url, json.dumps({"version": versions[0].upper(), "previous": None}).encode())
    assert main(["prune", store.url, "--keep", "0", "--endpoint", endpoint]) == 1
    put_pointer(s3, store.url, json.dumps({"version": versions[0]}).encode())
    assert {each.name for each in store.versions()} == set(versions)


def test_what_publish_did_not_write_is_neither_listed_nor_deleted(
    publish: Publish, store: Store, s3: Any, bundle: Path
) -> None:
    version = publish(bundle)
    bucket, _, prefix = store.url.removeprefix("s3://").partition("/")
    others = [f"{prefix}/bundles/{name}" for name in ("readme.txt", "notes/manifest.json", f"{VERSION.upper()}/x")]
    for name in others:
        s3.put_object(Bucket=bucket, Key=name, Body=b"{}")
    assert [each.name for each in store.versions()] == [version]
    assert Store(s3, store.url, timedelta(days=-1)).prune(0) == ([], 0)
    assert {found["Key"] for found in s3.list_objects_v2(Bucket=bucket)["Contents"]} >= set(others)
