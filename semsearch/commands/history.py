"""The command `semsearch history`: the versions of a published bundle."""

from cyclopts import App

from semsearch.commands.console import TerminalConsole
from semsearch.commands.published import AMAZON, MEGABYTE, InAws, open_store
from semsearch.engine.bundle import BundleError

command: App = App(help_epilogue="Examples:\n\n    semsearch history s3://my-bundles/docs\n")


@command.default
def history(url: str, /, *, aws: InAws = AMAZON) -> None:
    """List the versions of a bundle in S3, the one that was published last first, and the removed ids.

    Args:
        url: s3://BUCKET/PREFIX
    """
    console = TerminalConsole()
    with open_store(url, aws) as store:
        pointer = store.pointer()
        for version in store.versions():
            mark = ""
            if version.is_current:
                mark = "current"
            when = version.published.strftime("%Y-%m-%d %H:%M:%S UTC")
            console.print(f"{version.name[:12]}  {when}  {version.bytes / MEGABYTE:10,.1f} MB  {mark}".rstrip())
        for id, rows in pointer.removed.items():
            found = f": {len(rows)} texts of the current version"
            if pointer.version is None:
                found = ""
            console.print(f"removed  {id!r}{found}", markup=False)
        kept = store.kept_ids()
        for id in kept:
            if id not in pointer.removed:
                console.print(f"removed  {id!r}: in removed.json alone", markup=False)
        if kept or pointer.removed:
            console.print(f"{len(pointer.removed):,} ids are removed; removed.json has {len(kept):,}")
        try:
            store.check_pointer(pointer)
        except BundleError as error:
            console.print(f"warning: {error}", markup=False)
