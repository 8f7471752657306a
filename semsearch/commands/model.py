"""The commands `semsearch model convert`, `pack` and `unpack`: models without texts."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

from cyclopts import App

from semsearch.commands.console import TerminalConsole, suggested
from semsearch.commands.index import options_of_index
from semsearch.commands.options import as_command
from semsearch.engine.bundle import PASSAGES, BundleError
from semsearch.indexing.make import index
from semsearch.indexing.models import cache as models_cache
from semsearch.indexing.models.placing import ModelChoice, RerankerChoice, place_models
from semsearch.indexing.options import gather, new_options
from semsearch.indexing.progress import showing_progress
from semsearch.indexing.replacing import replacing
from semsearch.indexing.summary import model_rows, print_rows

EXAMPLES = """\
Examples:

    semsearch model convert models/multilingual --out bundle/
    semsearch model pack models.tar
    semsearch model unpack models.tar
"""
command: App = App(
    "model", help="Convert a model, or take converted models to another machine.", help_epilogue=EXAMPLES
)


def convert(model: str, /, *, out: Path, **chosen: Any) -> None:
    """Convert a sentence-transformer to the 8-bit model of a bundle that has no texts yet.

    `semsearch index PATH --out FOLDER` adds the texts.
    """
    if (out / PASSAGES).exists():
        raise BundleError(f"{out}: holds texts, expected a folder without; choose another folder with --out")
    options = new_options(index, {"model": model, **chosen})
    choice, reranker = gather(ModelChoice, options), gather(RerankerChoice, options)
    console = TerminalConsole()
    with replacing(out) as fresh, showing_progress(console) as on_progress:
        placed = place_models(fresh, None, choice, reranker, on_progress)
    print_rows(console, model_rows(placed.manifest, placed.prompts))
    console.print(f"Next: {suggested('index', 'PATH', '--out', out)}", markup=False)


def _options() -> list[inspect.Parameter]:
    """Return the options of `convert`: those of `index` about models."""
    options = options_of_index(model=str, out=Path)
    model = options["model"].replace(kind=inspect.Parameter.POSITIONAL_ONLY, default=inspect.Parameter.empty)
    out = options["out"].replace(default=inspect.Parameter.empty)
    names = [field.name for field in (*fields(ModelChoice), *fields(RerankerChoice))]
    return [model, out, *(options[name] for name in names if name != "model")]


command.command(as_command(convert, _options(), EXAMPLES, "convert"))


@command.command
def pack(file: Path, /) -> None:
    """Write all converted models of the cache into a tar file, for a machine without PyTorch.

    Args:
        file: the tar file.
    """
    models_cache.pack(file)


@command.command
def unpack(file: Path, /) -> None:
    """Add the converted models of a tar file to the cache.

    Args:
        file: a file that `semsearch model pack` has written.
    """
    models_cache.unpack(file)
