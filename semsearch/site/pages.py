"""The step that the plugins of MkDocs and Sphinx add to a build: the search of the pages, in a folder of them."""

from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console

from semsearch.indexing.make import index
from semsearch.indexing.progress import ProgressLines
from semsearch.indexing.summary import print_summary
from semsearch.site.site import write_site

LOG_WIDTH = 10_000  # characters: a log has lines of any length
Say = Callable[[str], object]


class LinesOut(StringIO):
    """A file that calls a function with each line that is written into it."""

    def __init__(self, say: Say) -> None:
        """Take the function, which gets a line without its end."""
        super().__init__()
        self._say = say
        self._begun = ""

    def write(self, text: str, /) -> int:
        """Take a part of a line, or several lines. Return the number of characters."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._say(line.rstrip())
        return len(text)


def write_search(
    site: Path,
    bundle: Path,
    out: Path,
    *,
    title: str,
    exclude: Sequence[str],
    say: Say,
) -> None:
    """Make or update the index of the pages of a site in `bundle`, and write the search into the folder `out`.

    A folder beside the index keeps a copy of the search for the next build: see `write_site`.

    say gets each line of what `semsearch index` prints: its progress, warnings and summary. A warning is such a line
    too, because Sphinx and MkDocs have options with which a warning of theirs fails a build. Raises ExpectedError if
    the search cannot be written.
    """
    console = Console(file=LinesOut(say), width=LOG_WIDTH, highlight=False, color_system=None)
    on_progress = ProgressLines(console)
    made = index(
        site,
        bundle,
        title=title,
        queries="table",
        exclude=exclude,
        mode="replace",
        progress=on_progress,
    )
    write_site(bundle, out, keep=bundle.with_name(f"{bundle.name}-site"), on_progress=on_progress)
    for warning in made.warnings:
        say(f"warning: {warning}")
    print_summary(console, made, is_verbose=False)
