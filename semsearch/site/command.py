"""The command `python -m export site`."""

import argparse
from collections import Counter
from pathlib import Path

from rich.console import Console

from semsearch.commands.console import python_module
from semsearch.indexing.progress import showing_progress

# Megabytes that a visit loads until it can search by meaning: about 50,000 texts; 4 seconds at 50 Mbit/s
MOST_MEGABYTES = 24
SITE = """\
Write a static site that searches a bundle in the browser, without a server. Any static host can publish the folder.

  python -m export site bundle/ --out site/

Everything in it is public: the texts with their metadata, the embeddings, the query table and the model, if any.
A stemmer and onnxruntime-web come from npm, which is part of Node.js 20 or newer.
"""


def add_site_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("bundle", nargs="?", type=Path, default=Path("bundle"), help="the bundle's folder (default: bundle/)")
    add("--out", type=Path, default=Path("site"), help="the site's folder (default: site/)")
    limit = f"refuse a site that loads more than this until it can search by meaning (default: {MOST_MEGABYTES})"
    add("--most-megabytes", type=float, default=MOST_MEGABYTES, metavar="N", help=limit)
    model = "add the model, which embeds the queries once the browser has loaded it; until then the query table does"
    add("--model", dest="with_model", action="store_true", help=model)
    packages = "where `npm ci` installed semsearch/site/package-lock.json (default: npm fills a temporary folder)"
    add("--packages", type=Path, metavar="FOLDER", help=packages)


WHEN = {
    "keywords": "first, for the search by words",
    "vocabulary": "then, for the search by meaning",
    "index": "then, for the search by meaning",
    "queries": "then, for the search by meaning",
    "runtime": "after that, for long questions",
    "model": "after that, for long questions",
    "columns": "for filters, or when the rest is there",
    "passages": "for the results, or when the rest is there",
    "ids": "for similar texts, or when the rest is there",
}


def run(options: argparse.Namespace, console: Console) -> int:
    """Write the site and print what a visit loads; return the exit code.

    Raises what `write_site` raises.
    """
    from semsearch.site.site import write_site  # imports what --help does not need

    with showing_progress(console) as on_progress:
        limits = options.most_megabytes, options.packages, options.with_model
        sizes = write_site(options.bundle, options.out, *limits, on_progress)
    total: Counter[str] = Counter()
    for name, size in sizes.items():
        total["columns" if name.startswith("column-") else name.partition("-")[0]] += size
    for name, when in WHEN.items():
        if total[name]:
            console.print(f"{name:10} {total[name] / 1e6:6.1f} MB  {when}", markup=False)
    serve = python_module("http.server", "--directory", options.out, "8000")
    console.print(f"{options.out}/ is ready, {total.total() / 1e6:.1f} MB. Try it: {serve}", markup=False)
    return 0
