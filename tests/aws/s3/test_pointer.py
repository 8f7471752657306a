"""A pointer that is none: functions and all commands refuse it with the same words, and nothing is deleted."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from semsearch.aws.s3.published import Pointer, is_version, parse_pointer, split_s3_url
from semsearch.engine.bundle import BundleError
from semsearch.publishing.store import Store
from tests.aws.s3.asking import Start, ask
from tests.command_line import error_line, run
from tests.stand_ins.faults import Fault, Proxy, change, cut, cut_in_s3
from tests.stand_ins.fixtures import Publish, object_at

VERSION = "ab" * 32
WRONG: dict[str, bytes] = {
    "not JSON": b"version: 5",
    "nested deeply": b"[" * 100_000,
    "a list": b"[1]",
    "no version": b"{}",
    "capital letters": json.dumps({"version": VERSION.upper()}).encode(),
    "with a line break": json.dumps({"version": f"{VERSION}\n"}).encode(),
    "previous": json.dumps({"version": VERSION, "previous": 5}).encode(),
    "removed rows": json.dumps({"version": VERSION, "removed": {"id": [-1]}}).encode(),
    "removed truth": json.dumps({"version": VERSION, "removed": {"id": [True]}}).encode(),
    "removed text": json.dumps({"version": VERSION, "removed": {"id": ["1"]}}).encode(),
    "a version of one digit more": json.dumps({"version": f"{VERSION}0"}).encode(),
    "removed ids": json.dumps({"version": VERSION, "removed": ["id"]}).encode(),
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_what_is_no_pointer_is_refused(content: bytes) -> None:
    with pytest.raises(BundleError) as raised:
        parse_pointer(content, "s3://bucket/current.json")
    message = str(raised.value)
    assert message.startswith("s3://bucket/current.json: ")
    assert message.endswith(
        "`semsearch history` and `semsearch rollback`, which take the removed ids from removed.json"
    )
    assert len(message) < 400


@pytest.mark.parametrize(
    ("fields", "previous"),
    [
        ({"version": VERSION}, None),
        ({"version": VERSION, "previous": None}, None),
        ({"version": VERSION, "previous": "01" * 32, "format_version": 6, "later": [{}]}, "01" * 32),
    ],
)
def test_a_pointer_of_another_release_is_read(fields: dict[str, object], previous: str | None) -> None:
    for encoding in ("utf-8", "utf-8-sig"):
        pointer = parse_pointer(json.dumps(fields).encode(encoding), "here")
        assert (pointer.version, pointer.previous) == (VERSION, previous)


def test_functions_and_commands_refuse_a_pointer_with_the_same_words(
    start: Start, publish: Publish, store: Store, s3: Any, bundle: Path, endpoint: str
) -> None:
    content = WRONG["capital letters"]
    version = publish(bundle)
    there = store.versions()
    switch, client = start()
    s3.put_object(**object_at(store.url, "current.json"), Body=content)
    switch.poll()
    error = switch.status.error
    assert ask(client)[0] == version[:12]
    where = [store.url, "--endpoint", endpoint]
    for words in (["publish", bundle], ["history"], ["rollback"]):
        assert error_line(run(*words, *where)) == f"error: {error}"
    s3.delete_object(**object_at(store.url, "current.json"))
    assert [each.name for each in store.versions()] == [each.name for each in there]


@pytest.mark.parametrize("fault", [change, cut, cut_in_s3])
def test_a_pointer_that_changed_on_its_way_is_read_again_by_functions_and_commands(
    start: Start, publish: Publish, bundles: list[Path], store: Store, proxy: Proxy, fault: Fault
) -> None:
    publish(bundles[0])
    switch, client = start()
    version = publish(bundles[1])
    proxy.fail("current.json", fault, times=2)
    switch.poll()
    assert (ask(client)[0], switch.status.error) == (version[:12], None)
    proxy.fail("current.json", fault, times=2)
    assert run("history", store.url, "--endpoint", proxy.address).out.splitlines()[0].endswith(" current")
    proxy.fail("current.json", fault)
    assert "delete" not in error_line(run("history", store.url, "--endpoint", proxy.address))


def test_what_others_wrote_is_neither_listed_nor_deleted(publish: Publish, store: Store, s3: Any, bundle: Path) -> None:
    version = publish(bundle)
    names = ("readme.txt", "notes/manifest.json", f"{VERSION.upper()}/x")
    others = [object_at(store.url, f"bundles/{name}") for name in names]
    for other in others:
        s3.put_object(**other, Body=b"{}")
    assert [each.name for each in store.versions()] == [version]
    assert Store(s3, store.url, timedelta(days=-1)).prune(0).versions == []
    there = s3.list_objects_v2(Bucket=others[0]["Bucket"])["Contents"]
    assert {found["Key"] for found in there} >= {other["Key"] for other in others}


def test_a_pointer_has_the_rows_of_all_removed_ids_in_order() -> None:
    fields = {"version": VERSION, "previous": None, "removed": {"b": [7, 3], "a": [], "c": [0]}, "newer": 1}
    pointer = parse_pointer(json.dumps(fields).encode(), "")
    assert pointer == Pointer(VERSION, None, {"b": (7, 3), "a": (), "c": (0,)})
    assert pointer.removed_rows == (0, 3, 7)
    assert parse_pointer(json.dumps({"version": VERSION}).encode(), "") == Pointer(VERSION, None, {})
    assert [is_version(text) for text in (VERSION, VERSION[1:], f" {VERSION}", 5, None)] == [True, *[False] * 4]


@pytest.mark.parametrize(
    ("url", "bucket", "prefix"),
    [("s3://b", "b", ""), ("s3://b/", "b", ""), ("s3://b/x/y/", "b", "x/y"), ("s3://b//x", "b", "x")],
)
def test_an_address_has_a_bucket_and_a_prefix_without_slashes_at_its_ends(url: str, bucket: str, prefix: str) -> None:
    assert split_s3_url(url) == (bucket, prefix)


@pytest.mark.parametrize("url", ["b/x", "s3://", "s3:///x", "s3://b/x?y", "s3://b/x#y"])
def test_another_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{url!r}, expected s3://BUCKET/PREFIX")):
        split_s3_url(url)
