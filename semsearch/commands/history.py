"""The command `semsearch history`: the versions of a published bundle."""

from cyclopts import App

from semsearch.commands.console import TerminalConsole
from semsearch.commands.published import AMAZON, MEGABYTE, InAws, open_store

command: App = App(help_epilogue="Examples:\n\n    semsearch history s3://my-bundles/docs\n")


@command.default
def history(url: str, /, *, aws: InAws = AMAZON) -> None:
    """List the versions of a bundle in S3, the one that was published last first.

    Args:
        url: s3://BUCKET/PREFIX
    """
    console = TerminalConsole()
    with open_store(url, aws) as store:
        for version in store.versions():
            mark = ""
            if version.is_current:
                mark = "current"
            when = version.published.strftime("%Y-%m-%d %H:%M:%S UTC")
            console.print(f"{version.name[:12]}  {when}  {version.bytes / MEGABYTE:10,.1f} MB  {mark}".rstrip())
        for id, rows in store.pointer().removed.items():
            console.print(f"removed  {id!r}: {len(rows)} texts of the current version", markup=False)
