"""python -m export: the export step of a deployment. A model and texts become the bundle of the image.

    python -m export sentence-transformers/all-MiniLM-L6-v2 --corpus headlines.csv --out bundle/

It is `semsearch index` with the options that a deployment needs, and prints all that was checked and counted, for the
log of the deployment. The other options are left to `semsearch index`, whose bundle is the same.
"""

import sys
from typing import Literal

from cyclopts import App

from semsearch.commands.index import run_index
from semsearch.commands.main import dispatch, explain_import
from semsearch.commands.options import LOOK
from semsearch.commands.terminal import run

EXAMPLES = """\
Examples:

    python -m export sentence-transformers/all-MiniLM-L6-v2 --corpus headlines.csv --text-column title --out bundle/
    python -m export models/multilingual --corpus docs/ --base-url https://docs.example.com/ --out bundle/

`semsearch index` has more options, and makes the same bundle.
"""

program = App("python -m export", help_epilogue=EXAMPLES, version_flags=[], **LOOK)


@program.default
def export(
    model: str | None = None,
    /,
    *,
    corpus: str,
    text_column: str | None = None,
    id_column: str | None = None,
    base_url: str | None = None,
    queries: Literal["model", "table"] | None = None,
    rerank: str | None = None,
    out: str = "bundle",
) -> None:
    """Make the bundle of a deployment from a model and texts.

    If there is a bundle in --out already, it is updated: options that are not stated are those that it was made with.

    Args:
        model: a sentence-transformer's folder, or its name on the hub. Without it, the model of the bundle in --out, or
            all-MiniLM-L6-v2.
        corpus: the texts: a folder of documents or a table, also as s3://BUCKET/KEY.
        text_column: column of the texts. Without it, the column `text` or the only one.
        id_column: column of the ids. Without it, the column `id` or the row number.
        base_url: address at which the folder of documents is published.
        queries: what embeds queries: the model, or a table with a vector for each token, which is learned from the
            texts.
        rerank: a cross-encoder, a folder or a name on the hub, which can score the best texts again.
        out: folder of the bundle.
    """
    options = {
        "model": model,
        "text_column": text_column,
        "id_column": id_column,
        "base_url": base_url,
        "queries": queries,
        "rerank": rerank,
    }
    stated = {name: value for name, value in options.items() if value is not None}
    run_index([corpus], verbose=True, out=out, **stated)


if __name__ == "__main__":
    sys.exit(run(lambda: dispatch(sys.argv[1:], program), explain_import=explain_import))
