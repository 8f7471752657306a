"""The command `python -m export site`."""

import argparse
from collections import Counter

from rich.console import Console

from export.progress import showing_progress
from export.site.site import write_site
from export.terminal import python_module

WHEN = {
    "keywords": "first, for the search by words",
    "vocabulary": "then, for the search by meaning",
    "index": "then, for the search by meaning",
    "runtime": "then, for the search by meaning",
    "model": "then, for the search by meaning",
    "columns": "for filters, or when the rest is there",
    "passages": "for the results, or when the rest is there",
    "ids": "for similar texts, or when the rest is there",
}


def run(options: argparse.Namespace, console: Console) -> int:
    """Write the site and print what a visit loads; return the exit code.

    Raises what `write_site` raises.
    """
    with showing_progress(console) as on_progress:
        sizes = write_site(options.bundle, options.out, options.most_megabytes, options.packages, on_progress)
    total: Counter[str] = Counter()
    for name, size in sizes.items():
        total["columns" if name.startswith("column-") else name.partition("-")[0]] += size
    for name, when in WHEN.items():
        if total[name]:
            console.print(f"{name:10} {total[name] / 1e6:6.1f} MB  {when}", markup=False)
    serve = python_module("http.server", "--directory", options.out, "8000")
    console.print(f"{options.out}/ is ready, {total.total() / 1e6:.1f} MB. Try it: {serve}", markup=False)
    return 0
