"""The commands `publish`, `history`, `rollback` and `prune` of `python -m export`."""

import argparse
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rich.console import Console

from export.progress import showing_progress
from export.shell import python_module
from function.engine.bundle import BundleError

if TYPE_CHECKING:
    from export.publishing.store import Store

MEGABYTE = 1_000_000


def run(options: argparse.Namespace, console: Console) -> int:
    """Run one of the four commands and return the exit code.

    Raises BundleError if boto3 is not installed or the bundle does not open, PublishError if S3 refuses.
    """
    if not _has_boto3():
        advice = "run `pip install 'semantic-search-lambda[publish]'`"
        raise BundleError(f"boto3 is not installed, which `python -m export {options.command}` needs; {advice}")
    with closing(_open(options)) as store:
        _run(store, options, console)
    return 0


def _run(store: "Store", options: argparse.Namespace, console: Console) -> None:
    match options.command:
        case "publish":
            _publish(store, options, console)
        case "history":
            _history(store, console)
        case "rollback":
            _rollback(store, options, console)
        case _:
            _prune(store, options, console)


def _open(options: argparse.Namespace) -> "Store":
    import boto3
    from botocore.exceptions import BotoCoreError

    from export.publishing.store import PublishError, Store

    try:
        session = boto3.Session(profile_name=options.profile, region_name=options.region)
        client = session.client("s3", endpoint_url=options.endpoint)
    except (BotoCoreError, ValueError) as error:
        raise PublishError(f"{options.url}: {error}") from error
    return Store(client, options.url)


def _publish(store: "Store", options: argparse.Namespace, console: Console) -> None:
    before = store.pointer()
    with showing_progress(console) as progress:
        version, files, sent = store.send(options.bundle, lambda name, share: progress(f"send {name}", share))
    store.switch(version, before)
    console.print(f"{store.url} serves {version[:12]} now; {files} files were sent, {sent / MEGABYTE:,.1f} MB")
    if before.version not in (None, version):
        console.print(f"Back: {python_module('export', 'rollback', store.url)}", markup=False)


def _history(store: "Store", console: Console) -> None:
    for version in store.versions():
        mark = "current" if version.is_current else ""
        when = version.published.strftime("%Y-%m-%d %H:%M:%S UTC")
        console.print(f"{version.name[:12]}  {when}  {version.bytes / MEGABYTE:10,.1f} MB  {mark}".rstrip())


def _rollback(store: "Store", options: argparse.Namespace, console: Console) -> None:
    before = store.pointer()
    version = store.find(options.version, before)
    store.switch(version.name, before)
    console.print(f"{store.url} serves {version.name[:12]} now")


def _prune(store: "Store", options: argparse.Namespace, console: Console) -> None:
    deleted, freed = store.prune(options.keep)
    for name in deleted:
        console.print(f"deleted {name[:12]}")
    console.print(f"{len(deleted)} versions were deleted, {freed / MEGABYTE:,.1f} MB")


def _has_boto3() -> bool:
    try:
        return find_spec("boto3") is not None
    except ValueError:  # it is in sys.modules as None: not to be imported
        return False
