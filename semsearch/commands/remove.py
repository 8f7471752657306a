"""The command `semsearch remove`: let running functions skip texts of a published bundle, without a new bundle."""

from collections.abc import Sequence
from pathlib import Path

from cyclopts import App

from semsearch.commands.console import TerminalConsole
from semsearch.commands.published import AMAZON, InAws, open_store
from semsearch.engine.errors import ExpectedError, OptionError

EXAMPLES = """\
Examples:

    semsearch remove s3://my-bundles/docs faq-12 faq-13
    semsearch remove s3://my-bundles/docs --ids removed.txt
"""
command = App(help_epilogue=EXAMPLES)


class IdsError(ExpectedError, ValueError):
    """A file of ids that cannot be used."""


@command.default
def remove(url: str, /, *id: str, ids: Path | None = None, aws: InAws = AMAZON) -> None:
    """Remove texts of the current version: functions skip them when they next poll S3.

    They stay removed in every version until `semsearch restore` brings them back. Leave them out of the next bundle
    too.

    Args:
        url: s3://BUCKET/PREFIX
        id: ids of the texts.
        ids: file with more ids, one in each line.
    """
    console = TerminalConsole()
    wanted = read_ids(id, ids)
    with open_store(url, aws) as store:
        removed = store.remove(wanted)
        texts = sum(len(removed[id]) for id in set(wanted))
        console.print(f"{texts:,} texts of {store.url} are removed: functions skip them from their next poll on")
        console.print("Leave them out of the texts of the next bundle too; `semsearch restore` brings them back")


def read_ids(ids: Sequence[str], file: Path | None) -> list[str]:
    """Return ids, and those in the lines of a file, without blanks after them.

    Raises OptionError if there are none, and IdsError for a file without ids.
    """
    if file is None:
        if not ids:
            raise OptionError("ids", "found no ids; write them after the address, or name a file")
        return list(ids)
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")  # -sig: editors on Windows write a BOM
    except UnicodeDecodeError:
        lines = []
    found = [line.rstrip() for line in lines if line.strip()]
    if not found:
        raise IdsError(f"{file}: found no ids, expected UTF-8 with an id in each line; nothing was changed")
    return [*ids, *found]
