"""The commands `publish`, `history`, `rollback` and `prune` of `python -m export`."""

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from rich.console import Console

from export.publishing.arguments import DEFAULT_BUNDLE
from export.publishing.client import connect
from export.publishing.fetch_time import DEFAULT_BANDWIDTH, FetchTime, fetched_bytes, limits
from export.shell import python_module
from export.terminal import showing_progress
from function.engine.bundle import read_manifest

if TYPE_CHECKING:
    from export.publishing.store import Store

MEGABYTE = 1_000_000


def run(options: argparse.Namespace, console: Console) -> int:
    """Run one of the four commands and return the exit code.

    Raises BundleError or TensorsError if the bundle cannot be published, PublishError if boto3 is not installed or AWS
    refuses.
    """
    if options.command == "publish" and options.limits:
        for line in limits(options.bundle, options.bundle is not DEFAULT_BUNDLE, options.bandwidth):
            console.print(line, markup=False, highlight=False)
        return 0
    if options.command == "publish" and options.to is not None:
        _publish_vectors(options, console)
        return 0
    client = connect("s3", options.endpoint, options.profile, options.region)
    from export.publishing.store import Store  # needs boto3

    with closing(client):
        store = Store(client, options.url)
        match options.command:
            case "publish":
                _publish(store, options, console)
            case "history":
                for version in store.versions():
                    mark = "current" if version.is_current else ""
                    when = version.published.strftime("%Y-%m-%d %H:%M:%S UTC")
                    console.print(f"{version.name[:12]}  {when}  {version.bytes / MEGABYTE:10,.1f} MB  {mark}".rstrip())
            case "rollback":
                before = store.pointer()
                name = store.find(options.version, before).name
                store.make_current(name, before)
                console.print(f"{name[:12]} is the current version of {store.url}")
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
    console.print(FetchTime(fetched_bytes(read_manifest(options.bundle)), DEFAULT_BANDWIDTH).describe(), markup=False)
    if before.version not in (None, version):
        console.print(f"To undo this: {python_module('export', 'rollback', store.url)}", markup=False)


def _publish_vectors(options: argparse.Namespace, console: Console) -> None:
    from export.publishing.s3vectors import publish

    client = connect("s3vectors", options.endpoint, options.profile, options.region)
    with closing(client), showing_progress(console) as on_progress:
        sent = publish(options.bundle, options.to[1], options.out, client, on_progress, keeps_texts=options.keep_texts)
    place = f"{sent.info.bucket}/{sent.info.index} in {sent.info.region}"
    calls = f"{sent.calls:,} calls, {sent.repeated:,} of them repeated"
    console.print(f"{place}: {sent.sent:,} vectors sent, {sent.there:,} were there; {calls}", markup=False)
    command = python_module("function", "--bundle", options.out)
    console.print(f"{options.out}/ is ready. Try it: {command}", markup=False)
