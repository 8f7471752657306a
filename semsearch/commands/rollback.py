"""The command `semsearch rollback`: make another version of a published bundle the current one."""

from cyclopts import App

from semsearch.commands.console import TerminalConsole
from semsearch.commands.published import AMAZON, InAws, open_store, warn_of_removed

EXAMPLES = """\
Examples:

    semsearch rollback s3://my-bundles/docs
    semsearch rollback s3://my-bundles/docs 3f2a91c04b7d
"""
command: App = App(help_epilogue=EXAMPLES)


@command.default
def rollback(url: str, version: str | None = None, /, *, aws: InAws = AMAZON) -> None:
    """Make another version the current one. Running functions switch to it.

    Args:
        url: s3://BUCKET/PREFIX
        version: its first characters, as `semsearch history` shows them. Without it, the one before the current one.
    """
    console = TerminalConsole()
    with open_store(url, aws) as store:
        before = store.pointer()
        name = store.find(version, before).name
        store.make_current(name, before)
        console.print(f"{name[:12]} is the current version of {store.url}")
        warn_of_removed(store, console)
