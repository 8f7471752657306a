"""46 questions about this documentation, whose answering pages were written down first: the site search and Pagefind.

Both read the built pages of `make docs`. In our search a page is as good as its best passage.
"""

import argparse
import json
import subprocess
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Literal

from bench.report import Missing, console, make_provenance, report
from semsearch import Search, index

QUESTIONS = Path(__file__).with_suffix(".tsv")  # a question and the pages that answer it
NATURAL = 16  # number of first questions that are worded as a reader would ask a person
MODES: tuple[Literal["hybrid", "semantic", "keyword"], ...] = ("hybrid", "semantic", "keyword")
ASK = """
const [address, questions] = process.argv.slice(2);
const pagefind = await import(`${process.cwd()}/pagefind.mjs`);
await pagefind.options({ basePath: `${address}/pagefind/`, baseUrl: "/" });
const found = [];
for (const question of JSON.parse(questions)) {
  const { results } = await pagefind.search(question);
  found.push(await Promise.all(results.slice(0, 10).map(async (one) => (await one.data()).url)));
}
console.log(JSON.stringify(found));
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--site", type=Path, default=Path("build/docs-site"), help="built by `make docs`")
    parser.add_argument("--pagefind", type=Path, default=Path("build/pagefind"), help="where npm installed pagefind")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    pagefind = options.pagefind / "node_modules" / ".bin" / "pagefind"
    if not (options.site.exists() and pagefind.exists()):
        raise Missing("site-questions needs `make docs` and `npm install --prefix build/pagefind pagefind`")
    texts, expected = zip(*(line.split("\t") for line in QUESTIONS.read_text().splitlines()), strict=True)
    index(options.site, out=options.work / "site-questions", mode="replace")
    search, ranked = Search(options.work / "site-questions"), {}
    for mode in MODES:
        replies = (search.search(text, mode=mode, group_by="path", group_size=1, top_k=10) for text in texts)
        ranked[str(mode)] = [[hit.metadata["url"] for hit in each] for each in replies]
    ranked["Pagefind"] = ask_pagefind(pagefind, options.site, texts)
    rows = []
    for name, pages in ranked.items():
        places = [place_of(urls, answers.split()) for urls, answers in zip(pages, expected, strict=True)]
        for kind, some in (("natural", places[:NATURAL]), ("others", places[NATURAL:]), ("all", places)):
            first, third = (sum(place <= most for place in some) / len(some) for most in (1, 3))
            mean = sum(1 / place for place in some) / len(some)
            rows.append((name, kind, len(some), f"{first:.0%}", f"{third:.0%}", f"{mean:.2f}"))
        missed = [text for text, place in zip(texts, places, strict=True) if place > 3]
        console.print(f"{name}, not among the first three: {'; '.join(missed)}", markup=False)
    names = ("search", "questions", "number", "hit@1", "hit@3", "MRR")
    report("site_questions", names, rows, {"results": rows}, make_provenance("the documentation of this project"))
    return 0


def place_of(urls: Sequence[str], answers: Sequence[str]) -> float:
    """Return the place, from 1, of the first page that answers; infinity if there is none."""
    pages = [url.partition("#")[0].strip("/") for url in urls]
    return next((place for place, page in enumerate(pages, 1) if page in answers), float("inf"))


def ask_pagefind(program: Path, site: Path, questions: Sequence[str]) -> list[list[str]]:
    """Return the addresses of the pages that Pagefind finds for each question."""
    with TemporaryDirectory() as temporary:
        copy = copytree(site, Path(temporary) / "site")
        subprocess.run([program, "--site", copy, "--quiet"], check=True)
        (Path(temporary) / "pagefind.mjs").write_bytes((copy / "pagefind" / "pagefind.js").read_bytes())
        (Path(temporary) / "ask.mjs").write_text(ASK, encoding="utf-8")
        quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=copy))
        Thread(target=server.serve_forever, daemon=True).start()
        ask = ["node", "ask.mjs", f"http://127.0.0.1:{server.server_port}", json.dumps(questions)]
        found: list[list[str]] = json.loads(
            subprocess.run(ask, cwd=temporary, check=True, stdout=subprocess.PIPE).stdout
        )
        server.shutdown()
    return found
