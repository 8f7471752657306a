"""The command `semsearch verify`: check a bundle."""

from collections.abc import Iterator

from cyclopts import App

from semsearch.commands.console import TerminalConsole, suggested
from semsearch.commands.places import bundle_at
from semsearch.engine.bundle import read_manifest
from semsearch.engine.errors import ExpectedError, OptionError
from semsearch.indexing.models.calibration import read_calibration
from semsearch.indexing.models.converting import convert
from semsearch.indexing.models.source import find_model, read_source
from semsearch.indexing.progress import showing_progress
from semsearch.indexing.summary import print_checks
from semsearch.indexing.verification import Check
from semsearch.indexing.verification import verify as checks_of

EXAMPLES = """\
Examples:

    semsearch verify bundle/
    semsearch verify bundle/ --model sentence-transformers/all-MiniLM-L6-v2
"""
command: App = App(help_epilogue=EXAMPLES)


class FailedVerificationError(ExpectedError):
    """A check of a bundle failed."""


@command.default
def verify(place: str, /, *, model: str | None = None) -> None:
    """Check a bundle: the checksum of each file, some of its texts embedded again, and the neighbours that it finds.

    Args:
        place: a bundle, or a folder of documents, whose index is kept in a cache.
        model: folder or hub name of the model that the bundle's model was converted from, to measure again how close
            8 bit is to float32.
    """
    bundle = bundle_at(place)
    manifest = read_manifest(bundle)
    if model is not None and not manifest.has_model:
        raise OptionError("model", f"{bundle} has no model, and embeddings by {manifest.model.name}; leave it out")
    console = TerminalConsole()
    with showing_progress(console) as on_progress:

        def checks() -> Iterator[Check]:
            yield from checks_of(bundle, on_progress)
            if model is not None:
                source = read_source(*find_model(model, None), manifest.model.pooling, manifest.model.dim)
                texts = read_calibration(None, None, on_progress)
                yield convert("compare", source, texts, bundle, on_progress)

        passed = print_checks(console, checks())
    if not passed:
        again = suggested("index", "PATH", "--model", "MODEL", "--out", bundle)
        raise FailedVerificationError(f"{bundle}: a check failed; index the texts again: {again}")
