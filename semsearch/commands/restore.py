"""The command `semsearch restore`: let running functions find removed texts of a published bundle again."""

from pathlib import Path

from cyclopts import App

from semsearch.commands.console import TerminalConsole
from semsearch.commands.published import AMAZON, InAws, open_store
from semsearch.commands.remove import read_ids

command: App = App(help_epilogue="Examples:\n\n    semsearch restore s3://my-bundles/docs faq-12\n")


@command.default
def restore(url: str, /, *id: str, ids: Path | None = None, aws: InAws = AMAZON) -> None:
    """Bring removed texts back: functions find them again when they next poll S3.

    Args:
        url: s3://BUCKET/PREFIX
        id: removed ids.
        ids: file with more ids, one in each line.
    """
    wanted = read_ids(id, ids)
    with open_store(url, aws) as store:
        store.restore(wanted)
        TerminalConsole().print(f"{len(set(wanted)):,} ids of {store.url} are not removed any more")
