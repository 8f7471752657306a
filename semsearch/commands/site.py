"""The command `semsearch site`: a static site that searches in the browser."""

import shlex
from collections import Counter
from pathlib import Path
from urllib.parse import quote, urlsplit

from cyclopts import App
from rich.markup import escape

from semsearch.commands.console import TerminalConsole
from semsearch.commands.places import bundle_at
from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.indexing.progress import showing_progress
from semsearch.site.former import MOST_FORMER_BYTES
from semsearch.site.site import FORMER, MOST_MEGABYTES, rounded_columns, write_site

EXAMPLES = """\
Examples:

    semsearch site bundle/ --out site/
    semsearch site docs/ --out build/site/find --model

Everything in the site is public: the texts with their metadata, the embeddings, the query table and the model, if any.
With --model, onnxruntime-web comes from npm, which is part of Node.js 20 or newer.
"""
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
    FORMER: "for visitors who came before, from the last build",
}
command: App = App(help_epilogue=EXAMPLES)


@command.default
def site(
    place: str = "bundle",
    /,
    *,
    out: Path = Path("site"),
    most_megabytes: float = MOST_MEGABYTES,
    model: bool = False,
    packages: Path | None = None,
    keep: Path | None = None,
) -> None:
    """Write a static site that searches in the browser, without a server. Any static host can publish the folder.

    Args:
        place: a bundle, or a folder of documents, whose index is kept in a cache.
        out: folder of the site.
        most_megabytes: refuse a site that loads more than this until it can search by meaning.
        model: add the model, which embeds the queries once the browser has loaded it; until then the query table does.
        packages: with --model, the folder where `npm ci` installed semsearch/site/package-lock.json. Without it, npm
            fills a temporary folder.
        keep: folder that keeps a copy of this build for the next one, whose site then has the files of both, for
            visitors who came before. Without it, only an older site in `out` has them.
    """
    bundle = bundle_at(place)
    console = TerminalConsole()
    with showing_progress(console) as on_progress:
        sizes = write_site(bundle, out, most_megabytes, packages, model, on_progress, keep)
    total: Counter[str] = Counter()
    for name, size in sizes.items():
        kind = "columns" if name.startswith("column-") else name.partition("-")[0]
        total[kind] += size
    for name, when in WHEN.items():
        if total[name]:
            console.print(f"{name:10} {total[name] / 1e6:6.1f} MB  {when}", markup=False)
    if sizes.get(FORMER) == 0:
        found = (
            f"more than {MOST_FORMER_BYTES / 1e6:.0f} MB of the last build are not in this one, so none of them stays"
        )
        TerminalConsole(stderr=True).print(f"[yellow]warning:[/] {found}; open pages load the new build instead")
    for name in rounded_columns(bundle):
        found = f"the site cannot filter, sort or count by the column {name}, because browsers round its whole numbers"
        warning = f"{found} from 2^53 on; index the texts with --column {name}=string"
        TerminalConsole(stderr=True).print(f"[yellow]warning:[/] {escape(warning)}")
    served = out
    page = ""
    if _has_relative_links(bundle):
        folder = out if out.name else out.resolve()  # the working folder has no name
        served = folder.parent
        page = f"{quote(folder.name)}/"
    command = shlex.join(["python", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(served), "8000"])
    console.print(f"{out}/ is ready, {total.total() / 1e6:.1f} MB. Any web server of files can show it.", markup=False)
    console.print(f"Try it: {command}, then open http://localhost:8000/{page}", markup=False)


def _has_relative_links(bundle: Path) -> bool:
    """Return whether the links of results begin at the folder above the site. So do those of documents."""
    url = Passages(bundle / PASSAGES).metadata(0).get("url")
    return isinstance(url, str) and not url.startswith("/") and not urlsplit(url).scheme
