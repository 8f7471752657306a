"""python -m export: the export step of a deployment. A model and texts become the bundle of the image.

    python -m export sentence-transformers/all-MiniLM-L6-v2 --corpus headlines.csv --out bundle/

The options are those of `semsearch index`, whose steps docs/architecture.md has. The differences: the model is named
first, the texts are an option, and all that was checked and counted is printed, for the log of the deployment.
"""

import inspect
import sys
from typing import Annotated, Any

from cyclopts import Parameter

from semsearch.commands.index import as_command, options_of_index, run_index
from semsearch.commands.main import dispatch, explain_import
from semsearch.commands.terminal import run

EXAMPLES = """\
Examples:

  python -m export sentence-transformers/all-MiniLM-L6-v2 --corpus headlines.csv --text-column title --out bundle/
  python -m export models/multilingual --corpus docs/ --base-url https://docs.example.com/ --out bundle/
"""


def export(model: str | None = None, /, *, corpus: str = "python", **options: Any) -> None:
    """Make the bundle of a deployment from a model and texts.

    Without a model, the one of the bundle in --out is used, or else all-MiniLM-L6-v2. Without --corpus, the texts are
    Python's own documentation.
    """
    run_index(corpus, verbose=True, model=model, **options)


def export_options() -> list[inspect.Parameter]:
    """Return the options of `semsearch index`, with the model first, and the texts as an option."""
    options = options_of_index(data=Annotated[str, Parameter(name="--corpus")])
    model, corpus = options.pop("model"), options.pop("data")
    return [
        model.replace(kind=inspect.Parameter.POSITIONAL_ONLY),
        corpus.replace(name="corpus", kind=inspect.Parameter.KEYWORD_ONLY, default="python"),
        *options.values(),
    ]


program = as_command(export, export_options(), EXAMPLES, "python -m export")

if __name__ == "__main__":
    sys.exit(run(lambda: dispatch(sys.argv[1:], program), explain_import=explain_import))
