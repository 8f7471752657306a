"""The command `semsearch remove`: remove texts of an index, or let running functions skip those of a published one."""

from collections.abc import Sequence
from pathlib import Path

from cyclopts import App

from semsearch.aws.s3.published import S3
from semsearch.commands.console import TerminalConsole
from semsearch.commands.published import AMAZON, InAws, open_store
from semsearch.engine.errors import ExpectedError, OptionError
from semsearch.indexing.progress import showing_progress

EXAMPLES = """\
Examples:

    semsearch remove bundle/ faq-12
    semsearch remove s3://my-bundles/docs faq-12 faq-13
    semsearch remove s3://my-bundles/docs --ids removed.txt
"""
command: App = App(help_epilogue=EXAMPLES)


class IdsError(ExpectedError, ValueError):
    """A file of ids that cannot be used."""


@command.default
def remove(place: str, /, *id: str, ids: Path | None = None, wait: float = 0, aws: InAws = AMAZON) -> None:
    """Remove texts by their ids.

    From a bundle's folder they are removed at once. Those of a bundle that was published are skipped by functions when
    these next poll S3, without a new bundle, and stay removed in every version until `semsearch restore` brings them
    back. Leave them out of the next bundle too.

    Args:
        place: a bundle, or s3://BUCKET/PREFIX
        id: ids of the texts.
        ids: file with more ids, one in each line.
        wait: seconds to wait for another command that writes into the bundle's folder.
    """
    console = TerminalConsole()
    wanted = read_ids(id, ids)
    if not place.startswith(S3):
        from semsearch.indexing.make import remove as remove_from  # not needed for what is in S3

        with showing_progress(console) as on_progress:
            made = remove_from(wanted, place, wait=wait, progress=on_progress)
        console.print(f"{made.left_out:,} texts are removed; {made.manifest.corpus.rows:,} are left in {place}")
        return
    if wait:
        raise OptionError("wait", "is for the folder of a bundle, and S3 is not waited for; leave it out")
    with open_store(place, aws) as store:
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
