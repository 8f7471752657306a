"""The callback through which a long step reports its progress. export/terminal.py displays it."""

from typing import Protocol


class OnProgress(Protocol):
    """A function that a long step calls now and then."""

    def __call__(self, step: str, share: float, texts: int = 0) -> None:
        """Report that this share of the step is done, from 0 (it begins) to 1 (it ends).

        texts is the number of texts embedded so far, 0 in a step that embeds none.
        """


def no_progress(step: str, share: float, texts: int = 0) -> None:
    """Ignore the progress."""
