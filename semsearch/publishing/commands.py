"""The commands `publish`, `history`, `rollback` and `prune` of `python -m export`."""

import argparse
from contextlib import closing
from pathlib import Path

from rich.console import Console

from semsearch.commands.console import python_module
from semsearch.indexing.progress import showing_progress
from semsearch.publishing.bucket import PublishError, connect
from semsearch.publishing.s3vectors import publish
from semsearch.publishing.store import Store, first_ids

MEGABYTE = 1_000_000


def run(options: argparse.Namespace, console: Console) -> int:
    """Run one of the four commands and return the exit code.

    Raises BundleError or TensorsError if the bundle cannot be published, PublishError if AWS refuses.
    """
    if options.command == "publish" and options.to is not None:
        _publish_vectors(options, console)
        return 0
    client = connect("s3", options.endpoint, options.profile, options.region)
    with closing(client):
        store = Store(client, options.url)
        match options.command:
            case "publish" if options.remove is not None or options.restore is not None:
                _change_removed(store, options, console)
            case "publish":
                _publish(store, options, console)
            case "history":
                for version in store.versions():
                    mark = "current" if version.is_current else ""
                    when = version.published.strftime("%Y-%m-%d %H:%M:%S UTC")
                    console.print(f"{version.name[:12]}  {when}  {version.bytes / MEGABYTE:10,.1f} MB  {mark}".rstrip())
                for id, rows in store.pointer().removed.items():
                    console.print(f"removed  {id!r}: {len(rows)} texts of the current version", markup=False)
            case "rollback":
                before = store.pointer()
                name = store.find(options.version, before).name
                store.make_current(name, before)
                console.print(f"{name[:12]} is the current version of {store.url}")
                _warn_of_removed(store, console)
            case _:
                deleted, freed = store.prune(options.keep)
                for name in deleted:
                    console.print(f"deleted {name[:12]}")
                console.print(f"{len(deleted)} versions were deleted, {freed / MEGABYTE:,.1f} MB")
    return 0


def _publish(store: "Store", options: argparse.Namespace, console: Console) -> None:
    before = store.pointer()
    with showing_progress(console) as on_progress:
        version, files, sent = store.send(options.bundle, on_progress)
    store.make_current(version, before)
    console.print(
        f"{version[:12]} is the current version of {store.url}; {files} files were sent, {sent / MEGABYTE:,.1f} MB"
    )
    _warn_of_removed(store, console)
    if before.version not in (None, version):
        console.print(f"To undo this: {python_module('export', 'rollback', store.url)}", markup=False)


def _change_removed(store: "Store", options: argparse.Namespace, console: Console) -> None:
    ids = [*(options.restore if options.remove is None else options.remove), *_read_ids(options.ids)]
    if options.remove is not None:
        removed = store.remove(ids)
        texts = sum(len(removed[id]) for id in set(ids))
        console.print(f"{texts:,} texts of {store.url} are removed: functions skip them from their next poll on")
        console.print("Leave them out of the texts of the next bundle too; --restore brings them back")
        return
    store.restore(ids)
    console.print(f"{len(set(ids)):,} ids of {store.url} are not removed any more")


def _read_ids(path: Path | None) -> list[str]:
    """Return the ids in the lines of a file, without blanks after them. Raises PublishError if it has none."""
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # -sig: editors on Windows write a BOM
    except UnicodeDecodeError:
        lines = []
    if not (ids := [line.rstrip() for line in lines if line.strip()]):
        raise PublishError(f"--ids: {path}: found no ids, expected UTF-8 with an id in each line; nothing was changed")
    return ids


def _warn_of_removed(store: "Store", console: Console) -> None:
    if ids := [id for id, rows in store.pointer().removed.items() if rows]:
        restore = python_module("export", "publish", store.url, "--restore", "ID")
        console.print(
            f"warning: this version has removed ids, whose texts functions skip: {first_ids(ids)}. Leave them out of "
            f"the next bundle, or bring them back: {restore}",
            markup=False,
        )


def _publish_vectors(options: argparse.Namespace, console: Console) -> None:
    client = connect("s3vectors", options.endpoint, options.profile, options.region)
    with closing(client), showing_progress(console) as on_progress:
        sent = publish(options.bundle, options.to[1], options.out, client, on_progress, keeps_texts=options.keep_texts)
    place = f"{sent.info.bucket}/{sent.info.index} in {sent.info.region}"
    console.print(f"{place}: {sent.sent:,} vectors sent, {sent.there:,} were there", markup=False)
    command = python_module("function", "--bundle", options.out)
    console.print(f"{options.out}/ is ready. Try it: {command}", markup=False)
