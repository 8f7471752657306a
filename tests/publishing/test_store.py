"""Bundles in S3, on a server that keeps its conditions: what is sent, who wins, what is deleted, and removed ids."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from semsearch import index
from semsearch.commands.main import dispatch as main
from semsearch.engine.bundle import MANIFEST, BundleError, read_manifest
from semsearch.publishing import store as store_module
from semsearch.publishing.bucket import Bucket, PublishError, StoredObject
from semsearch.publishing.store import Current, Pruned, Store, first_ids
from tests.bundle_files import damage
from tests.command_line import error_line, run
from tests.stand_ins.fixtures import Publish, object_at
from tests.world import write_bundle


def test_a_published_bundle_has_all_its_files(store: Store, s3: Any, url: str, publish: Publish, bundle: Path) -> None:
    version = publish(bundle)
    assert json.loads(s3.get_object(**object_at(url, "current.json"))["Body"].read())["version"] == version
    for path in bundle.iterdir():
        sent = s3.get_object(**object_at(url, f"bundles/{version}/{path.name}"))
        assert sent["Body"].read() == path.read_bytes()
        assert sent["ChecksumSHA256"]


def test_a_file_that_is_there_is_not_sent_again(store: Store, s3: Any, url: str, bundle: Path) -> None:
    version, files, size = store.send(bundle)
    assert files == len(list(bundle.iterdir())) - 1
    assert size == sum(path.stat().st_size for path in bundle.iterdir() if path.name != "manifest.json")
    assert store.send(bundle) == (version, 0, 0)
    s3.delete_object(**object_at(url, f"bundles/{version}/tokenizer.txt"))
    assert store.send(bundle)[1] == 1


def test_a_file_of_another_content_is_sent_again(
    store: Store, s3: Any, url: str, publish: Publish, bundles: list[Path], where: list[str]
) -> None:
    version = publish(bundles[0])
    publish(bundles[1])
    index = bundles[0] / "index.safetensors"
    place = object_at(url, f"bundles/{version}/{index.name}")
    s3.put_object(**place, Body=bytes(index.stat().st_size))  # as long as the file, by another program
    error = error_line(run("rollback", *where))
    assert f"{version[:12]} is not whole: {index.name} is missing, or has another length or SHA-256" in error
    assert store.send(bundles[0])[1] == 1
    assert s3.get_object(**place)["Body"].read() == index.read_bytes()


def test_a_damaged_file_is_not_sent(store: Store, bundle_copy: Path) -> None:
    damage(bundle_copy / "index.safetensors")
    with pytest.raises(BundleError, match=r"index.safetensors: is damaged: SHA-256"):
        store.send(bundle_copy)
    assert store.versions() == []


def test_a_changing_bundle_is_not_published(store: Store, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    send_file = Bucket.send_file

    def send_and_replace(*arguments: Any) -> None:
        send_file(*arguments)
        manifest = bundle_copy / "manifest.json"
        manifest.write_text(manifest.read_text().replace("stories.csv", "others.csv"))

    monkeypatch.setattr(Bucket, "send_file", send_and_replace)
    with pytest.raises(BundleError, match="was replaced while it was published"):
        store.send(bundle_copy)
    assert store.versions() == []


def test_the_manifest_is_sent_last(store: Store, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bucket, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        store.send(bundle)
    monkeypatch.undo()
    assert store.versions() == []
    assert store.send(bundle)[1] == 0


def test_of_two_publishers_of_different_versions_one_wins_and_the_other_is_told(
    store: Store, bundles: list[Path]
) -> None:
    versions = [store.send(bundle)[0] for bundle in bundles]
    before = store.pointer()  # nothing is published yet
    store.switch(versions[0], before)
    with pytest.raises(PublishError, match=f"switched it to {versions[0][:12]} in the meantime.*rollback"):
        store.switch(versions[1], before)
    before = store.pointer()
    store.switch(versions[1], before)
    store.switch(versions[1], before)  # by another publisher of the same version
    with pytest.raises(PublishError, match="in the meantime"):
        store.switch(versions[2], before)
    assert store.pointer().version == versions[1]


def test_rollback_finds_the_version_that_was_served_before(store: Store, publish: Publish, bundles: list[Path]) -> None:
    versions = [publish(bundle) for bundle in bundles]
    pointer = store.pointer()
    assert store.find(None, pointer).name == versions[1]
    store.switch(versions[1], pointer)
    assert store.find(None, store.pointer()).name == versions[2]
    assert store.find(versions[0][:6].upper(), pointer).name == versions[0]


def test_a_version_that_is_not_there_is_refused(store: Store, publish: Publish, bundle: Path) -> None:
    publish(bundle)
    publish(bundle)
    with pytest.raises(PublishError, match="0 versions begin with '0000000', expected one"):
        store.find("0000000", store.pointer())
    with pytest.raises(PublishError, match="no version was served before"):
        store.find(None, store.pointer())


OLD = timedelta(days=-1)  # makes objects that were just written old enough for `prune`


def test_prune_keeps_what_is_young_the_newest_and_what_the_pointer_names(
    s3: Any, url: str, store: Store, publish: Publish, bundles: list[Path]
) -> None:
    versions = [publish(bundle) for bundle in bundles]
    assert store.prune(0) == Pruned([], 0, 0)
    old = Store(s3, url, OLD)
    assert old.prune(3) == Pruned([], 0, 0)
    assert old.prune(0) == Pruned([versions[0]], sum(path.stat().st_size for path in bundles[0].iterdir()), 0)
    assert {version.name for version in store.versions()} == set(versions[1:])
    assert [version.name for version in store.versions() if version.is_current] == [versions[2]]


def test_prune_believes_the_clock_of_s3_and_not_that_of_this_machine(
    store: Store, publish: Publish, bundles: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class TwoDaysAhead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "TwoDaysAhead":
            return super().now(tz) + timedelta(days=2)

    versions = {publish(bundle) for bundle in bundles}
    monkeypatch.setattr(store_module, "datetime", TwoDaysAhead)
    assert store.prune(0).versions == []
    assert {version.name for version in store.versions()} == versions


def test_prune_aborts_old_uploads_of_a_prefix(s3: Any, url: str, store: Store, publish: Publish, bundle: Path) -> None:
    publish(bundle)
    ours = object_at(url, "bundles/0/model.ort")
    for upload in (ours, ours | {"Key": "others/model.ort"}):
        s3.create_multipart_upload(**upload)
    assert Store(s3, url, timedelta(days=100_000)).prune(5).uploads == 0  # it could still run
    assert store.prune(5).uploads == 1  # moto dates all uploads 2010
    left = s3.list_multipart_uploads(Bucket=ours["Bucket"])["Uploads"]
    assert [upload["Key"] for upload in left] == ["others/model.ort"]


def test_unfinished_versions_are_pruned(s3: Any, url: str, store: Store, publish: Publish, bundles: list[Path]) -> None:
    publish(bundles[0])
    version, _, _ = store.send(bundles[1])
    s3.delete_object(**object_at(url, f"bundles/{version}/manifest.json"))
    assert Store(s3, url, OLD).prune(3)[0] == [version]


@pytest.mark.parametrize("url", ["bucket/prefix", "s3:///prefix"])
def test_what_is_no_prefix_of_a_bucket_is_refused(s3: Any, url: str) -> None:
    with pytest.raises(PublishError, match="expected s3://BUCKET/PREFIX"):
        Store(s3, url)


def test_an_empty_version_is_no_rollback(store: Store, publish: Publish, bundles: list[Path], where: list[str]) -> None:
    """As the shell leaves it, if a variable is not set."""
    for bundle in bundles[:2]:
        publish(bundle)
    pointer = store.pointer()
    assert "found '' as the version, expected its first characters" in error_line(
        run("rollback", where[0], "", *where[1:])
    )
    assert store.pointer() == pointer


def with_other_model(bundle: Path, folder: Path) -> Path:
    """Return a copy of a bundle whose queries get a prompt: functions must not switch between the two."""
    copy = Path(shutil.copytree(bundle, folder))
    manifest = read_manifest(copy)
    other = replace(manifest, model=replace(manifest.model, prompts={"query": "query: "}))
    (copy / MANIFEST).write_text(other.to_json(), encoding="utf-8")
    return copy


def test_a_bundle_of_another_model_is_published_only_if_that_is_said(
    store: Store, s3: Any, publish: Publish, bundle: Path, where: list[str], tmp_path: Path
) -> None:
    other = with_other_model(bundle, tmp_path / "other")
    version, name = publish(bundle), read_manifest(bundle).model.name
    expected = f"{other}: has the model {name}, expected the model {name} with the same options, as the current version"
    assert expected in error_line(run("publish", other, *where))
    assert [version.name for version in store.versions()] == [version]
    assert run("publish", other, *where, "--other-model").code == 0
    assert run("rollback", *where).code == 0
    # a version that nothing can start with is no reason to refuse the one that replaces it
    s3.delete_object(**object_at(store.url, f"bundles/{version}/{MANIFEST}"))
    assert run("publish", other, *where).code == 0


def test_embeddings_of_another_maker_are_another_model(
    store: Store, publish: Publish, bundle: Path, where: list[str], tmp_path: Path
) -> None:
    def made(name: str, embedded_by: str, dim: int) -> Path:
        rows = [{"id": name, "text": f"A goose of {name}"}]
        index(rows, tmp_path / name, embeddings=[[0.5] * dim], embedded_by=embedded_by, progress=False)
        return tmp_path / name

    first = made("first", "openai/small", 3)
    publish(bundle)
    name = read_manifest(bundle).model.name
    ours = f"{first}: has no model, and embeddings of 3 dimensions by openai/small, expected the model {name}"
    assert ours in error_line(run("publish", first, *where))
    assert run("publish", first, *where, "--other-model").code == 0
    assert run("publish", made("same", "openai/small", 3), *where).code == 0
    for other in (made("maker", "openai/large", 3), made("dimensions", "openai/small", 4), bundle):
        expected = "expected no model, and embeddings of 3 dimensions by openai/small with the same options"
        assert expected in error_line(run("publish", other, *where))


def test_a_bucket_that_is_not_there_is_named(s3: Any, bundle: Path) -> None:
    with pytest.raises(PublishError, match=r"s3://nowhere-at-all/x: .*NoSuchBucket"):
        Store(s3, "s3://nowhere-at-all/x").send(bundle)


def test_the_pointer_has_the_rows_of_removed_ids_and_only_ids_are_read(
    store: Store, publish: Publish, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundle)
    assert store.pointer().removed == {}
    parts = []
    read_part = Bucket.read_part

    def count(bucket: Bucket, name: str, begin: int, length: int) -> bytes:
        parts.append((name.rpartition("/")[2], begin, length))
        return read_part(bucket, name, begin, length)

    monkeypatch.setattr(Bucket, "read_part", count)
    store.remove(["story-017", "story-003"])
    assert store.pointer().removed == {"story-017": (17,), "story-003": (3,)}
    ids = sum(len(f"story-{row:03}") for row in range(200)) + 201 * 8
    lengths = [length for _, _, length in parts]
    begins = [(begin, length) for name, begin, length in parts if name == "passages.safetensors"]
    header = int.from_bytes((bundle / "passages.safetensors").read_bytes()[:8], "little")
    assert begins[:2] == [(0, 8), (8, header)]
    assert sum(lengths) < ids + 1_000 < (bundle / "passages.safetensors").stat().st_size / 3


def test_all_texts_of_a_repeated_id_are_removed(store: Store, publish: Publish, corpus: Any, tmp_path: Path) -> None:
    corpus.ids[7:9], before = ["ü", "ü"], corpus.ids[7:9]
    try:
        publish(write_bundle(tmp_path / "bundle", corpus))
    finally:
        corpus.ids[7:9] = before
    assert store.remove(["ü"]) == {"ü": (7, 8)}


def test_an_unknown_id_is_refused_and_nothing_is_removed(store: Store, publish: Publish, bundle: Path) -> None:
    publish(bundle)
    with pytest.raises(
        PublishError, match=r"found 'story-1', '', expected ids of the current version; nothing was removed"
    ):
        store.remove(["story-001", "story-1", ""])
    assert store.pointer().removed == {}
    with pytest.raises(
        PublishError, match=r"found 'story-001', expected removed ids; `semsearch history s3://.*` lists"
    ):
        store.restore(["story-001"])


def test_texts_in_s3_vectors_are_not_removed_at_once(store: Store, publish: Publish, published: Path) -> None:
    publish(published)
    with pytest.raises(PublishError, match="texts of the current version are in S3 Vectors, expected in the bundle"):
        store.remove(["story-003"])
    assert store.pointer().removed == {}


def test_a_removed_id_stays_removed_in_other_versions_with_their_rows(
    store: Store, publish: Publish, bundles: list[Path], corpus: Any, tmp_path: Path
) -> None:
    first = publish(bundles[0])
    store.remove(["story-000", "story-003"])
    fewer = type(corpus)(corpus.texts[1:], corpus.ids[1:], corpus.metadata[1:], columns=corpus.columns)
    publish(write_bundle(tmp_path / "fewer", fewer))
    assert store.pointer().removed == {"story-000": (), "story-003": (2,)}
    store.make_current(first, store.pointer())
    assert store.pointer().removed == {"story-000": (0,), "story-003": (3,)}
    store.restore(["story-000"])
    assert store.pointer().removed == {"story-003": (3,)}


def test_a_removal_while_another_bundle_is_sent_is_kept(store: Store, publish: Publish, bundles: list[Path]) -> None:
    publish(bundles[0])
    before = store.pointer()
    version, _, _ = store.send(bundles[1])
    store.remove(["story-003"])
    store.make_current(version, before)
    assert (store.pointer().version, store.pointer().removed) == (version, {"story-003": (3,)})


def kept(s3: Any, url: str) -> list[str]:
    """Return the ids of removed.json."""
    found: list[str] = json.loads(s3.get_object(**object_at(url, "removed.json"))["Body"].read())["removed"]
    return found


def test_a_lost_pointer_is_named_and_removed_ids_stay_removed(
    store: Store, s3: Any, url: str, publish: Publish, bundles: list[Path], where: list[str], tmp_path: Path
) -> None:
    version = publish(bundles[0])
    store.remove(["story-003"])
    s3.delete_object(**object_at(url, "current.json"))
    lost = f"{url}/current.json: is missing, expected the pointer to one of 1 versions; run `semsearch rollback {url} "
    for words in (
        ["publish", bundles[0], *where],
        ["remove", *where, "story-004"],
        ["restore", *where, "story-003"],
        ["rollback", *where],
    ):
        assert lost in error_line(run(*words))
    with pytest.raises(PublishError, match=r"current\.json: is missing"):
        store.fetch(tmp_path)  # for `semsearch index --update`
    history = " ".join(run("history", *where).out.split())
    assert f"removed 'story-003' 1 ids are removed; removed.json has 1 warning: {lost}" in history
    assert run("rollback", url, version, *where[1:]).code == 0
    assert store.pointer().removed == {"story-003": (3,)}
    s3.delete_object(**object_at(url, "current.json"))
    assert run("publish", bundles[1], *where, "--new-pointer").code == 0
    assert store.pointer().removed == {"story-003": (3,)}


def test_removed_json_never_has_fewer_ids_than_the_pointer(
    store: Store, s3: Any, url: str, publish: Publish, bundles: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundles[0])
    written = []
    write = Bucket.write

    def note(bucket: Bucket, name: str, *arguments: Any) -> None:
        written.append(name)
        write(bucket, name, *arguments)

    monkeypatch.setattr(Bucket, "write", note)
    store.remove(["story-003", "story-004"])
    store.restore(["story-003"])
    assert written == ["removed.json", "current.json", "current.json", "removed.json"]
    assert (kept(s3, url), [*store.pointer().removed]) == (["story-004"], ["story-004"])
    s3.delete_object(**object_at(url, "removed.json"))
    publish(bundles[0])  # it is the current version already
    assert kept(s3, url) == ["story-004"]


def test_nothing_is_removed_where_nothing_is_published(store: Store) -> None:
    with pytest.raises(PublishError, match="holds no current version; publish a bundle first"):
        store.remove(["story-003"])


def test_an_id_whose_removal_was_stopped_can_be_restored(
    store: Store,
    s3: Any,
    url: str,
    publish: Publish,
    bundle: Path,
    where: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish(bundle)

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_write_pointer", stop)
        with pytest.raises(KeyboardInterrupt):
            store.remove(["story-003"])
    assert (store.pointer().removed, kept(s3, url)) == ({}, ["story-003"])
    assert "removed  'story-003': in removed.json alone" in run("history", *where).out
    pointer = store.pointer()
    store.restore(["story-003"])
    assert (kept(s3, url), store.pointer().etag) == ([], pointer.etag)  # functions need not look at it again


@pytest.mark.parametrize("content", [b"", b"[]", b'{"removed": 5}', b'{"removed": [5]}'])
def test_a_damaged_list_of_removed_ids_is_named(
    store: Store, s3: Any, url: str, publish: Publish, bundle: Path, where: list[str], content: bytes
) -> None:
    publish(bundle)
    s3.put_object(**object_at(url, "removed.json"), Body=content)
    error = error_line(run("remove", *where, "story-003"))
    assert f"{url}/removed.json: cannot be read (" in error
    assert store.pointer().removed == {}


def test_of_two_commands_at_the_same_time_the_second_is_refused(
    store: Store, publish: Publish, bundles: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundles[0])
    write = Bucket.write

    def publish_first(bucket: Bucket, *arguments: Any) -> None:
        monkeypatch.setattr(Bucket, "write", write)
        publish(bundles[1])
        write(bucket, *arguments)

    monkeypatch.setattr(Bucket, "write", publish_first)
    with pytest.raises(PublishError, match="another command changed it at the same time; run the command again"):
        store.remove(["story-003"])
    assert store.pointer().removed == {}


def test_ids_come_from_the_command_or_from_a_file(where: list[str], bundle: Path, store: Store, tmp_path: Path) -> None:
    url, *options = where
    run("publish", bundle, *where)
    done = run("remove", url, "story-001", "story-002", *options)
    assert (done.code, done.err) == (0, "")
    assert f"2 texts of {url} are removed: functions skip them from their next poll on" in done.out
    file = tmp_path / "ids.txt"
    file.write_bytes(b"\xef\xbb\xbfstory-003 \r\n\r\nstory-004\t\n")  # as an editor on Windows writes it
    assert run("remove", *options, "--ids", file, url, "story-005").code == 0
    assert run("remove", url, "--ids", file, *options).code == 0  # once more
    assert [*store.pointer().removed] == [f"story-00{number}" for number in (1, 2, 5, 3, 4)]
    restored = run("restore", *where, "story-001")
    assert (restored.code, restored.out) == (0, f"1 ids of {url} are not removed any more\n")
    history = run("history", *where).out
    assert "removed  'story-002': 1 texts of the current version" in history
    assert "story-001" not in history
    file.write_bytes(b"\xff")
    (empty := tmp_path / "empty").write_text("\n \n")
    for path in (file, tmp_path / "missing", empty):
        assert f"{path}: " in error_line(run("remove", *where, "--ids", path))
    assert "found 'nobody', expected ids of the current version" in error_line(run("remove", *where, "nobody"))


def test_publish_and_rollback_warn_of_removed_ids_in_the_new_version(
    where: list[str], bundles: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", str(bundles[0]), *where]) == 0
    assert "warning" not in capsys.readouterr().out
    assert main(["remove", *where, "story-003"]) == 0
    for command in (["publish", str(bundles[1]), *where], ["rollback", *where]):
        capsys.readouterr()
        assert main(command) == 0
        words = " ".join(capsys.readouterr().out.split())
        assert "warning: this version has removed ids, whose texts functions skip: 'story-003'." in words
        assert f"semsearch restore {where[0]} ID" in words


def test_first_ids_are_five_at_most() -> None:
    assert first_ids(list("abcde")) == "'a', 'b', 'c', 'd', 'e'"
    assert first_ids(list("abcdefg")) == "'a', 'b', 'c', 'd', 'e' and 2 more"


def test_more_removed_ids_than_functions_can_read_are_refused(
    store: Store, s3: Any, url: str, publish: Publish, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MOST_REMOVED", 2)
    version = publish(bundle)
    store.remove(["story-003", "story-004"])
    with pytest.raises(PublishError, match="3 ids would be removed, expected at most 2; publish a bundle without"):
        store.remove(["story-005"])
    assert [*store.pointer().removed] == kept(s3, url) == ["story-003", "story-004"]
    s3.delete_object(**object_at(url, f"bundles/{version}/{MANIFEST}"))
    with pytest.raises(PublishError, match=f"bundles/{version}/{MANIFEST}: is missing; publish its bundle again"):
        store.remove(["story-003"])


class Shelf:
    """A bucket whose objects have chosen times, of which the first day is one before the last."""

    def __init__(self, pointers: list[Current]) -> None:
        self.pointers, self.deleted, self.aborted = pointers, list[list[str]](), list[object]()
        self.url = "s3://bucket"
        self.days = {"a": 1, "b": 9, "c": 10, "d": 3, "e": 4, "f": 5, "0": 2}

    def entries(self, folder: str) -> list[StoredObject]:
        first, last = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
        found = [StoredObject("bundles/no-version/x", 5, first), StoredObject("bundles/x", 5, first)]
        for letter, day in self.days.items():
            for size, name in enumerate(("model.ort", "index", MANIFEST)[: 2 if letter == "0" else 3]):
                found.append(StoredObject(f"bundles/{letter * 64}/{name}", 10**size, first + day * last))
        return found

    def now(self) -> datetime:
        return datetime(2026, 1, 11, tzinfo=UTC)

    def delete(self, names: list[str]) -> None:
        self.deleted.append(names)

    def abort_uploads(self, folder: str, before: datetime) -> int:
        self.aborted.append((folder, before))
        return 7


def test_prune_deletes_manifests_first_and_looks_at_the_pointer_before_each_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = Current("e" * 64, "a" * 64)
    shelf = Shelf([others, others, others, others, Current("f" * 64, "e" * 64), others])
    store = object.__new__(Store)
    store._bucket, store._young, store.url = shelf, timedelta(days=1), shelf.url  # type: ignore[assignment]
    monkeypatch.setattr(store, "pointer", lambda: shelf.pointers.pop(0))
    # c is young; b is as old as what is not; a was served before, e and f were current
    shelf.days["b"] = 8
    assert store.prune(1) == Pruned(["b" * 64, "d" * 64, "0" * 64], 111 + 111 + 11, 7)
    assert shelf.deleted == [
        *([f"bundles/{letter * 64}/{name}" for name in (MANIFEST, "model.ort", "index")] for letter in "bd"),
        [f"bundles/{'0' * 64}/model.ort", f"bundles/{'0' * 64}/index"],
    ]
    assert shelf.aborted == [("bundles/", datetime(2026, 1, 10, tzinfo=UTC))]
    shelf.days = {"b": 9}  # exactly a day
    assert store.prune(0).versions == []
    assert store.abort_old_uploads() == 7
    assert shelf.aborted[2] == shelf.aborted[0]


@pytest.mark.parametrize("current", ["a", "b"])
def test_the_current_version_is_the_newer_one_of_two_of_the_same_second(current: str) -> None:
    seconds = {"a": 7, "b": 7, "older": 6, "newer": 8}
    folders = {
        name: {MANIFEST: StoredObject(MANIFEST, 1, datetime.fromtimestamp(second, UTC))}
        for name, second in seconds.items()
    }
    other = {"a": "b", "b": "a"}[current]
    found = [version.name for version in store_module._finished(folders, current)]
    assert found == ["newer", current, other, "older"]
