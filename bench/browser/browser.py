"""A static site in Chromium: bytes, time to search by words and by meaning, equality with the function, relevance.

The network is limited by the server: its replies share 10 or 50 Mbit/s, and each comes 20 ms later. Pagefind searches
the same passages of SciFact by words.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from bench.browser.equality import MODES, answering, compare, make_requests, open_function
from bench.browser.pagefind import ask_pagefind, make_pagefind
from bench.browser.visits import MEGABIT, Rate, ask, measure_visit, renderer_bytes, serving, visiting, wait_until_kept
from bench.bundles import make_bundle
from bench.report import Missing, console, make_provenance, report
from bench.texts import TOP_K, Retrieval, Texts, add_data_argument, ndcg, read_scifact, read_texts
from export.site.browser_model import make_browser_model
from export.site.site import write_site
from function.engine.bundle import TOKENIZER
from function.engine.embedder import Embedder, open_session
from function.engine.loading import LoadedBundle
from function.engine.tokenizer import read_tokenizer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WRITES: tuple[str, ...] = ("browser",)
MEASURES: tuple[str, ...] = ("export.model.export_model", "function.search.search", "export/site/package-lock.json")
RATES = (10, 50)  # Mbit/s
QUERY = "unpack all files of an archive"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="the bundle of the demo; default: bundle/")
    parser.add_argument("--packages", type=Path, help="as of `python -m export site`")
    parser.add_argument("--queries", type=int, default=200, help="queries in each mode")
    parser.add_argument("--rows", type=int, default=30_000, help="headlines of the second corpus")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    from tests.page.browser import browser_problem, open_browser

    if (problem := browser_problem()) is not None:
        raise Missing(problem)
    test = read_scifact(options.data)
    documents = Texts("documents of SciFact", "scifact-site", list(test.documents.values()))
    corpora = {
        "demo": options.bundle,
        "headlines": make_bundle(options.work, read_texts(options.data, options.rows), lots=20),
        "scifact": make_bundle(options.work, documents),
    }
    rows: list[tuple[str, Any]] = []
    details: dict[str, Any] = {}
    with open_browser() as browser:
        for name, bundle in corpora.items():
            console.print(f"{name}: writing the site and measuring")
            site = options.work / f"site-{name}"
            sizes = write_site(bundle, site, packages=options.packages)
            function = open_function(bundle)
            if name == "scifact":
                details[name] = _relevance(browser, site, function, test, options)
                continue
            details[name] = {"bytes": sizes} | _equality(browser, site, function, options.queries)
            if name == "demo":
                details[name] |= _visits(browser, site)
    rows = _rows(details)
    texts = f"{len(open_function(options.bundle).passages):,} texts of the demo, SciFact"
    report("browser", ("what", "measured"), rows, details, make_provenance(texts))
    return 0


def _visits(browser: "Browser", site: Path) -> dict[str, Any]:
    """Return the seconds of first visits at each rate and of a second visit, and the longest task of the page."""
    found: dict[str, Any] = {}
    rate = Rate()
    with serving(site, rate) as address:
        for megabits in RATES:
            rate.bytes = megabits * MEGABIT
            with visiting(browser) as page:
                first = measure_visit(page, address, QUERY)
                wait_until_kept(page)
                second = measure_visit(page, address, QUERY)
            found[f"first_{megabits}"] = [first.keyword, first.semantic]
            found[f"second_{megabits}"] = [second.keyword, second.semantic]
            longest = max(first.longest_task_milliseconds, second.longest_task_milliseconds)
            found["longest_task"] = max(longest, found.get("longest_task", 0))
    return found


def _equality(browser: "Browser", site: Path, function: LoadedBundle, count: int) -> dict[str, Any]:
    """Return how many results are those of the function, with its own model and with the site's, by mode."""
    requests = make_requests(function, count)
    with serving(site, Rate()) as address, visiting(browser) as page:
        page.goto(address)
        wait_until_kept(page)
        before = renderer_bytes()
        replies = ask(page, requests)
        memory = [before / 1e6, renderer_bytes() / 1e6]
    with TemporaryDirectory() as folder:
        onnx.save(make_browser_model(function.folder), f"{folder}/model.onnx")
        session = open_session(Path(folder) / "model.onnx")
    same = Embedder(read_tokenizer(function.folder / TOKENIZER), session, function.manifest.model)
    texts = [request["text"] for request in requests[:count]]
    own, other = (each.embed(each.tokenize(texts)) for each in (function.embedder, same))
    found: dict[str, Any] = {"memory": memory, "model_cosine": float(np.mean((own * other).sum(axis=1)))}
    for label, embedder in (("function", function.embedder), ("same_model", same)):
        answer = answering(open_function(function.folder, embedder))
        expected = [answer(request) for request in requests]
        for place, mode in enumerate(MODES):
            part = slice(place * count, (place + 1) * count)
            found[f"{label}_{mode}"] = compare([reply["ids"] for reply in replies[part]], expected[part])
            found[f"milliseconds_{mode}"] = statistics.median(reply["milliseconds"] for reply in replies[part])
    return found


def _relevance(
    browser: "Browser", site: Path, function: LoadedBundle, test: Retrieval, options: argparse.Namespace
) -> dict[str, Any]:
    """Return nDCG@10 of the site, of the function and of Pagefind, and Pagefind's bytes and milliseconds."""
    queries = list(test.queries.values())
    requests = [{"text": text, "mode": "hybrid", "num_results": TOP_K} for text in queries]
    with serving(site, Rate()) as address, visiting(browser) as page:
        page.goto(address)
        wait_until_kept(page)
        found = [reply["ids"] for reply in ask(page, requests)]
    answer = answering(function)
    results = {"site": _ndcg(found, test), "function": _ndcg([answer(request) for request in requests], test)}
    peer = make_pagefind(options.work, [(str(row), text) for row, text in enumerate(test.documents.values())])
    sent: list[int] = []
    with serving(peer, Rate()) as address, visiting(browser) as page:
        page.goto(address)
        page.on("response", lambda reply: sent.append(int(reply.headers.get("content-length", 0))))
        replies = ask_pagefind(page, queries, TOP_K)
    results["pagefind"] = _ndcg([reply["ids"] for reply in replies], test)
    milliseconds = statistics.median(reply["milliseconds"] for reply in replies)
    return {"ndcg": results, "pagefind": {"milliseconds": milliseconds, "bytes": sum(sent), "queries": len(queries)}}


def _ndcg(found: Sequence[Sequence[str]], test: Retrieval) -> float:
    """Return nDCG@10 of ranked lists of ids. An id is the number of a document."""
    return ndcg([[int(id) for id in ids] for ids in found], test)


def _rows(details: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the table's rows."""
    demo, headlines, scifact = (details[name] for name in ("demo", "headlines", "scifact"))
    rows = [("MB of a first visit, all files", f"{sum(demo['bytes'].values()) / 1e6:.1f}")]
    for megabits in RATES:
        keyword, semantic = demo[f"first_{megabits}"]
        rows.append((f"first visit at {megabits} Mbit/s: s to words, to meaning", f"{keyword:.1f}, {semantic:.1f}"))
    keyword, semantic = demo[f"second_{RATES[-1]}"]
    rows.append(("second visit: s to words, to meaning", f"{keyword:.1f}, {semantic:.1f}"))
    rows.append(("longest task of the page, ms", f"{demo['longest_task']:.0f}"))
    corpora = (("demo", demo), ("headlines", headlines))

    def shares(found: Mapping[str, Any], label: str) -> str:
        return ", ".join(f"{found[f'{label}_{mode}']['results']:.2%}" for mode in MODES)

    for name, found in corpora:
        rows.append((f"{name}: results as in the function, by meaning, words, both", shares(found, "function")))
    scores, peer = scifact["ndcg"], scifact["pagefind"]
    rows.append(("SciFact nDCG@10: site, function, Pagefind", ", ".join(f"{scores[one]:.4f}" for one in scores)))
    for name, found in corpora:
        times = ", ".join(f"{found[f'milliseconds_{mode}']:.0f}" for mode in MODES)
        rows.append((f"{name}: ms of a query by meaning, words, both", times))
    for name, found in corpora:
        rows.append((f"{name}: results with the same model, by meaning, words, both", shares(found, "same_model")))
        rows.append((f"{name}: MB of memory before and after the queries", "{:.0f}, {:.0f}".format(*found["memory"])))
    size = f"{peer['milliseconds']:.0f}, {peer['bytes'] / 1e6:.1f}"
    rows.append((f"Pagefind: ms of a query, MB for {peer['queries']} queries", size))
    return rows
