"""The commands as users type them."""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from semsearch.commands.console import suggested
from semsearch.commands.main import dispatch as main
from semsearch.commands.remove import IdsError, read_ids
from semsearch.engine.bundle import MANIFEST, read_manifest
from semsearch.indexing.corpus import Corpus
from semsearch.publishing.bucket import Bucket, PublishError
from semsearch.publishing.store import Pruned, Store
from tests.command_line import error_line, export_texts, run, summary, write_texts
from tests.stand_ins.fixtures import Publish, object_at
from tests.world import write_bundle


def test_publish_rollback_and_prune(where: list[str], bundles: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    for bundle in bundles:
        assert main(["publish", str(bundle), *where]) == 0
    assert "is the current version of" in capsys.readouterr().out
    assert main(["history", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    (current,) = [line.split()[0] for line in lines if line.endswith("current")]
    assert main(["rollback", *where]) == 0
    served = capsys.readouterr().out.split()[2]
    assert served != current
    assert main(["rollback", where[0], current, *where[1:]]) == 0
    assert f"{current} is the current version of" in capsys.readouterr().out
    assert main(["prune", *where, "--keep", "0"]) == 0
    assert "0 versions were deleted" in capsys.readouterr().out  # all of them are young
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "prune", lambda store, keep: Pruned(["0123456789abcdef"], 2_500_000, 1))
        assert main(["prune", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["deleted 0123456789ab", "1 versions were deleted, 2.5 MB", "1 unfinished uploads were aborted"]


def test_a_nightly_job_without_a_disk_embeds_only_new_texts(
    where: list[str],
    endpoint: str,
    store: Store,
    bundle: Path,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    texts, nights = list(corpus.texts), []
    first = tmp_path / "first"
    shutil.copytree(bundle, first)
    assert export_texts(write_texts(tmp_path / "texts.csv", texts), first, "--title", "Stories").code == 0
    assert main(["publish", str(first), *where]) == 0
    for night in range(2):
        texts.append(f"An old sailor painted the river {night}.")
        new = tmp_path / f"night-{night}"
        done = run("index", write_texts(tmp_path / "texts.csv", texts), "--update", where[0], "--out", new, "--verbose")
        assert done.code == 0, done.err
        nights.append(summary(done, "embedded"))
        assert read_manifest(new).corpus.title == "Stories"
        questions = tmp_path / "questions.jsonl"
        questions.write_text(json.dumps({"query": texts[-1], "relevant": [len(texts) - 1]}), encoding="utf-8")
        judge = ["evaluate", str(new), "--questions", str(questions), "--mode", "keyword", "--floor"]
        assert main([*judge, "mrr@10=0.9"]) == 0
        assert main(["publish", str(new), *where]) == 0
        assert_published(new, store, tmp_path / f"fetched-{night}")
    questions.write_text(json.dumps({"query": texts[-1], "relevant": [0]}), encoding="utf-8")  # another text
    assert main([*judge, "mrr@10=0.9"]) == 1
    assert main(["rollback", *where]) == 0
    assert_published(tmp_path / "night-0", store, tmp_path / "rolled-back")
    assert nights == [f"1 texts, {rows} rows taken over from the older index" for rows in (200, 201)]


def assert_published(bundle: Path, store: Store, folder: Path) -> None:
    """Fetch the current version, and compare its files with those of a bundle byte by byte."""
    folder.mkdir()
    store.fetch(folder)
    names = [MANIFEST, *read_manifest(bundle).files]
    assert [name for name in names if (folder / name).read_bytes() != (bundle / name).read_bytes()] == []


def test_an_update_needs_a_published_bundle(
    where: list[str], endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    texts = write_texts(tmp_path / "texts.csv", ["a"])
    done = run("index", texts, "--update", where[0], "--out", tmp_path / "new", "--verbose")
    assert f"{where[0]}: holds no published bundle; publish one first" in error_line(done)
    assert not (tmp_path / "new").exists()


def test_a_bundle_that_a_filter_of_a_key_does_not_fit_is_not_published(
    where: list[str], store: Store, bundle: Path, tmp_path: Path
) -> None:
    def entry(name: str, condition: str) -> str:
        made = run("key", name, "--filter", condition, "--bundle", bundle)
        assert (made.code, made.err.startswith("the key, shown only now: ")) == (0, True)
        return made.out.strip()

    refused = run("key", "team-b", "--filter", '{"tenannt": "b"}', "--bundle", bundle)
    reason = "filter: expected the name of a column, $and, $or or $not, found 'tenannt'"
    assert (refused.code, refused.out) == (2, "")
    assert f"--filter: does not fit {bundle}: {reason}" in refused.err
    keys = tmp_path / "keys.txt"
    unfit = run("key", "team-b", "--filter", '{"tenannt": "b"}').out
    fit = entry("team-a", '{"chapter": 15}')
    keys.write_text(f"{fit},\n{unfit}")
    error = error_line(run("publish", bundle, *where, "--keys", keys))
    assert f"{bundle}: 1 keys of {keys} do not fit it; nothing was published: the filter of team-b: {reason}" in error
    assert store.versions() == []
    assert run("publish", bundle, *where, "--keys", tmp_path / "none").code == 2
    keys.write_text(entry("team-a", '{"chapter": 15}'))
    assert run("publish", bundle, *where, "--keys", keys).code == 0


def test_missing_credentials_end_in_one_line(where: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    assert "credentials" in error_line(run("history", *where))


def test_a_role_that_may_not_abort_uploads_publishes_with_a_warning(
    where: list[str], store: Store, bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> int:
        raise PublishError("s3://bucket: AccessDenied")

    monkeypatch.setattr(Bucket, "abort_uploads", refuse)
    assert main(["publish", str(bundle), *where]) == 0
    assert "warning: old unfinished uploads stay" in capsys.readouterr().out
    assert store.pointer().version is not None


def test_an_interrupted_publish_says_how_to_go_on(
    where: list[str], bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bucket, "send_file", stop)
    with pytest.raises(KeyboardInterrupt):  # `semsearch.commands.terminal.run` exits with 130
        main(["publish", str(bundle), *where])
    assert "interrupted: run the command again" in capsys.readouterr().err


def remove(store: Store, s3: Any, version: str, name: str, content: bytes | None = None) -> None:
    """Delete an object of a version, or replace it by other content."""
    place = object_at(store.url, f"bundles/{version}/{name}")
    if content is None:
        s3.delete_object(**place)
    else:
        s3.put_object(**place, Body=content)


@pytest.mark.parametrize(("name", "content"), [("index.safetensors", None), ("manifest.json", b"short")])
def test_rollback_to_a_version_in_pieces_is_refused(
    store: Store, s3: Any, publish: Publish, bundles: list[Path], where: list[str], name: str, content: bytes | None
) -> None:
    versions = [publish(bundle) for bundle in bundles[:2]]
    pointer = store.pointer()
    remove(store, s3, versions[0], name, content)
    assert f"{versions[0][:12]} is not whole: {name} " in error_line(run("rollback", *where))
    assert store.pointer() == pointer


def test_rollback_to_the_format_of_another_release_is_refused(
    store: Store, s3: Any, publish: Publish, bundle: Path, where: list[str]
) -> None:
    publish(bundle)
    content = b'{"format_version": 3}'
    version = hashlib.sha256(content).hexdigest()
    remove(store, s3, version, "manifest.json", content)
    assert "format_version is 3, this code reads 5" in error_line(run("rollback", where[0], version, *where[1:]))


def printed(*words: object) -> list[str]:
    """Return what a command that must succeed prints, without its progress."""
    done = run(*words)
    assert (done.code, done.err) == (0, ""), done.err
    return [line for line in done.out.splitlines() if not re.search(r": \d+%", line)]


def test_commands_print_versions_removed_ids_and_the_next_command(
    where: list[str], bundles: list[Path], store: Store, s3: Any, tmp_path: Path
) -> None:
    url, *options = where
    odd = write_bundle(tmp_path / "odd", Corpus(["a goose", "a duck"], ["[b]x", "y"], ["{}"] * 2, columns={}))
    files = {bundle: [path for path in bundle.iterdir() if path.name != MANIFEST] for bundle in (bundles[0], odd)}
    sent = {bundle: sum(path.stat().st_size for path in paths) for bundle, paths in files.items()}
    first, second = (hashlib.sha256((bundle / MANIFEST).read_bytes()).hexdigest() for bundle in files)
    done = f"{first[:12]} is the current version of {url}; {{}} files were sent, {{:.1f}} MB"
    assert printed("publish", bundles[0], *where) == [done.format(len(files[bundles[0]]), sent[bundles[0]] / 1e6)]
    assert printed("publish", bundles[0], *where) == [done.format(0, 0)]
    (line,) = run("publish", odd, *where, "--json").out.splitlines()
    assert json.loads(line) == {
        "url": url,
        "version": second,
        "replaced": first,
        "files": len(files[odd]),
        "bytes": sent[odd],
    }
    assert printed("remove", url, "[b]x", "[b]x", *options) == [
        f"1 texts of {url} are removed: functions skip them from their next poll on",
        "Leave them out of the texts of the next bundle too; `semsearch restore` brings them back",
    ]
    warning = "warning: this version has removed ids, whose texts functions skip: '[b]x'. Leave them out of the next "
    warning += f"bundle, or bring them back: {suggested('restore', url, 'ID')}"
    assert printed("rollback", *where) == [f"{first[:12]} is the current version of {url}"]
    assert printed("publish", odd, *where) == [
        f"{second[:12]} is the current version of {url}; 0 files were sent, 0.0 MB",
        warning,
        f"To undo this: {suggested('rollback', url)}",
    ]
    s3.put_object(**object_at(url, "removed.json"), Body=b'{"removed": ["[b]x", "[b]z"]}')
    versions = {version.name: version for version in store.versions()}
    assert printed("history", *where) == [
        *(
            f"{name[:12]}  {versions[name].published:%Y-%m-%d %H:%M:%S} UTC  {versions[name].bytes / 1e6:10,.1f} MB{x}"
            for name, x in ((second, "  current"), (first, ""))
        ),
        "removed  '[b]x': 1 texts of the current version",
        "removed  '[b]z': in removed.json alone",
        "1 ids are removed; removed.json has 2",
    ]
    assert printed("restore", url, "[b]x", "[b]x", "[b]z", *options) == [f"2 ids of {url} are not removed any more"]
    assert len(printed("history", *where)) == 2
    assert printed("prune", *where) == ["0 versions were deleted, 0.0 MB"]


def test_at_least_five_versions_are_kept(where: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []

    def prune(store: Store, keep: int) -> Pruned:
        kept.append(keep)
        return Pruned([], 0, 0)

    monkeypatch.setattr(Store, "prune", prune)
    assert printed("prune", *where) == ["0 versions were deleted, 0.0 MB"]
    printed("prune", *where, "--keep", "0")
    assert (kept, run("prune", *where, "--keep", "-1").code) == ([5, 0], 2)


def test_more_ids_can_be_in_a_file(tmp_path: Path) -> None:
    (file := tmp_path / "ids").write_text("a b \n\n c\n", encoding="utf-8-sig")
    assert read_ids(["x"], file) == ["x", "a b", " c"]
    assert read_ids(("x", "y"), None) == ["x", "y"]
    file.write_text(" \n")
    with pytest.raises(IdsError, match="found no ids, expected UTF-8 with an id in each line; nothing was changed"):
        read_ids(["x"], file)
