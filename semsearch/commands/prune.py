"""The command `semsearch prune`: delete old versions of a published bundle."""

from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from semsearch.commands.console import TerminalConsole
from semsearch.commands.published import AMAZON, MEGABYTE, InAws, open_store

command: App = App(help_epilogue="Examples:\n\n    semsearch prune s3://my-bundles/docs --keep 5\n")


@command.default
def prune(url: str, /, *, keep: Annotated[int, Parameter(validator=Number(gte=0))] = 5, aws: InAws = AMAZON) -> None:
    """Delete old versions, and uploads that a killed publish has left.

    The current version, the one before it, and what was sent during the last day are kept too.

    Args:
        url: s3://BUCKET/PREFIX
        keep: number of the newest versions to keep.
    """
    console = TerminalConsole()
    with open_store(url, aws) as store:
        pruned = store.prune(keep)
    for name in pruned.versions:
        console.print(f"deleted {name[:12]}")
    console.print(f"{len(pruned.versions)} versions were deleted, {pruned.bytes / MEGABYTE:,.1f} MB")
    if pruned.uploads:
        console.print(f"{pruned.uploads} unfinished uploads were aborted")
