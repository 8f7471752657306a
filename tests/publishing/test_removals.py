"""Ids that are removed from the current version: their rows in the pointer, through publishes, rollbacks and races."""

from pathlib import Path
from typing import Any

import pytest

from semsearch.commands.main import dispatch as main
from semsearch.publishing.bucket import Bucket, PublishError
from semsearch.publishing.store import Store
from tests.command_line import error_line, run
from tests.stand_ins.fixtures import Publish
from tests.world import write_bundle


def test_the_pointer_has_the_rows_of_removed_ids_and_only_ids_are_read(
    store: Store, publish: Publish, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundle)
    assert store.pointer().removed == {}
    lengths = []
    read_part = Bucket.read_part

    def count(bucket: Bucket, name: str, begin: int, length: int) -> bytes:
        lengths.append(length)
        return read_part(bucket, name, begin, length)

    monkeypatch.setattr(Bucket, "read_part", count)
    store.remove(["story-017", "story-003"])
    assert store.pointer().removed == {"story-017": (17,), "story-003": (3,)}
    ids = sum(len(f"story-{row:03}") for row in range(200)) + 201 * 8
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


def test_a_removed_id_stays_removed_in_other_versions_with_their_rows(
    store: Store, publish: Publish, bundles: list[Path], corpus: Any, tmp_path: Path
) -> None:
    first = publish(bundles[0])
    store.remove(["story-000", "story-003"])
    fewer = type(corpus)(corpus.texts[1:], corpus.ids[1:], corpus.metadata[1:], empty_texts=0, columns=corpus.columns)
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


# The commands


def test_ids_come_from_the_command_line_or_from_a_file(
    where: list[str], bundle: Path, store: Store, tmp_path: Path
) -> None:
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
    assert run("restore", *where, "story-001").code == 0
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
