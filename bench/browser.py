"""A static site and the search box of a documentation site in Chromium: bytes, and seconds to results.

The network is limited by the server: its replies share 10 or 50 Mbit/s, and each comes 20 ms later. Queries are
embedded with a query table. Tests compare the results with the function's (tests/browser/site).
"""

import gzip
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import DATA, PROJECT, WORK, Missing
from bench.tables import make_provenance, report
from bench.work import make_bundle, read_texts
from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.site.site import write_site
from tests.browser.page.browser import browser_problem, open_browser
from tests.browser.page.static import Rate, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    SearchPage = Callable[[Page, Rate], tuple[list[float], list[int]]]

ROWS = 30_000  # headlines of the second site
RATES = (10, 50)  # Mbit/s that all replies share
QUERY = "unpack all files of an archive"
MODES = ("semantic", "keyword", "hybrid")
QUERIES = 200  # queries in each mode
SEED = 5
LONGEST = 8  # maximum words of a query
TOP_K = 10  # results of a query
MEGABIT = 125_000  # bytes
PATIENCE = 600_000  # milliseconds until a visit counts as failed
ASK = """async (requests) => {
  const times = [];
  for (const request of requests) {
    const begin = performance.now();
    await ask("similar", { body: JSON.stringify(request) });
    times.push(performance.now() - begin);
  }
  return times;
}"""
QUESTION = "keep the texts private"
REPEATS = 5  # visits of the box and of Pagefind
GZIPPED = (".html", ".js", ".css", ".json")
HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Page</title>'
BOX = '<script type="module" src="find/search.js"></script><semantic-search mode="{}"></semantic-search>'
PAGEFIND = (
    '<link href="pagefind/pagefind-ui.css" rel="stylesheet"><script src="pagefind/pagefind-ui.js"></script>'
    '<div id="search"></div><script>new PagefindUI({ element: "#search" })</script>'
)
LISTEN = """addEventListener("search", ({ detail }) => {
  (globalThis.told ??= []).push([performance.now(), Boolean(detail.results[0]?.scores?.semantic)]);
})"""
TOLD = "(hasMeaning) => globalThis.told?.find(([, is]) => is || !hasMeaning)?.[0]"


def browser(*, work: Path = WORK, data: Path = DATA) -> None:
    """How soon a static site searches, and with how many bytes."""
    require_browser()
    sources = {
        "Python's documentation": make_bundle(work, None, "table"),
        "headlines": make_bundle(work, read_texts(data, ROWS), "table"),
    }
    details: dict[str, Any] = {}
    with open_browser() as program:
        for name, bundle in sources.items():
            print(f"{name}: writing the site and measuring", flush=True)
            site = work / f"site-{bundle.name}"
            sizes = write_site(bundle, site)
            details[name] = {"bytes": sum(sizes.values()), "milliseconds": time_queries(program, site, bundle)}
            details[name] |= visits(program, site)
    report("browser", ("what", *details), browser_rows(details), details, make_provenance())


def require_browser() -> None:
    """Raise Missing if there is no Chromium."""
    if (problem := browser_problem()) is not None:
        raise Missing(problem)


def visits(program: "Browser", site: Path) -> dict[str, tuple[float, float]]:
    """Return the seconds to results by words and by meaning, of first visits at each rate and of a second visit."""
    found = {}
    rate = Rate()
    with serving(site, rate) as address:
        for megabits in RATES:
            rate.bytes = megabits * MEGABIT
            with program.new_context() as context:
                page = context.new_page()
                found[f"first visit at {megabits} Mbit/s"] = measure_visit(page, address, QUERY)
                wait_until_kept(page)
                found["second visit"] = measure_visit(page, address, QUERY)
    return found


def time_queries(program: "Browser", site: Path, bundle: Path) -> dict[str, float]:
    """Return the median milliseconds of QUERIES queries by mode: some words of a text, in a page that has loaded."""
    generator, passages = random.Random(SEED), Passages(bundle / PASSAGES)
    texts = []
    for row in generator.choices(range(len(passages)), k=QUERIES):
        words = passages.text(row).split()
        begin = generator.randrange(len(words))
        texts.append(" ".join(words[begin : begin + generator.randint(1, LONGEST)]))
    medians = {}
    with serving(site, Rate()) as address, program.new_context() as context:
        page = context.new_page()
        measure_visit(page, address, QUERY)  # a page loads its files when somebody searches
        wait_until_kept(page)
        for mode in MODES:
            requests = [{"text": text, "mode": mode, "num_results": TOP_K} for text in texts]
            medians[mode] = statistics.median(page.evaluate(ASK, requests))
    return medians


def browser_rows(details: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the table, with a cell for each site."""
    sites = details.values()
    rows = [("MB of a first visit, all files", *(f"{site['bytes'] / 1e6:.1f}" for site in sites))]
    for visit in (*(f"first visit at {megabits} Mbit/s" for megabits in RATES), "second visit"):
        cells = (", ".join(f"{seconds:.1f}" for seconds in site[visit]) for site in sites)
        rows.append((f"{visit}: s to words, to meaning", *cells))
    times = (", ".join(f"{site['milliseconds'][mode]:.0f}" for mode in MODES) for site in sites)
    rows.append(("ms of a query by meaning, words, both", *times))
    return rows


def measure_visit(page: "Page", address: str, text: str) -> tuple[float, float]:
    """Open a page that searches for a text at once; return the seconds to results by words and by meaning."""
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}?q={text.replace(' ', '+')}")
    page.wait_for_selector("li.hit")
    keyword = page.evaluate("performance.now()")
    page.wait_for_function("() => shown?.request.mode === 'hybrid'")
    return keyword / 1e3, page.evaluate("performance.now()") / 1e3


def wait_until_kept(page: "Page") -> None:
    """Wait until the browser has everything that it keeps for the next visit."""
    page.set_default_timeout(PATIENCE)
    page.wait_for_selector("#loading[data-ready=offline], #loading[data-ready=partly]", state="attached")
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")


def box(*, work: Path = WORK) -> None:
    """How soon the search box of a site answers, and with how many bytes, beside Pagefind.

    The site is that of `make docs`. The pages of this measurement have nothing but a search. Text files are sent
    gzipped. The page has loaded before the search. Seconds count from the key that opens the box, or from the first key
    in Pagefind's field.
    """
    require_browser()
    built, pagefind = PROJECT / "build/docs-site", PROJECT / "build/pagefind/node_modules/.bin/pagefind"
    if not ((built / "find").is_dir() and pagefind.is_file()):
        raise Missing("box needs `make docs`, and `npm install --prefix build/pagefind pagefind`")
    site = work / "site-box"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(built, site)
    subprocess.run([pagefind, "--site", site], check=True, capture_output=True)
    pages = {"box": BOX.format("hybrid"), "words": BOX.format("keyword"), "pagefind": PAGEFIND}
    for name, content in pages.items():
        for number in (1, 2):
            (site / f"{name}-{number}.html").write_text(HEAD + content)
    for path in [path for path in site.rglob("*") if path.suffix in GZIPPED]:
        path.write_bytes(gzip.compress(path.read_bytes()))
    details: dict[str, Any] = {}
    with open_browser() as program:
        searches: dict[str, SearchPage] = {
            "box": search_box,
            "words": partial(search_box, wanted=(False,)),
            "pagefind": search_pagefind,
        }
        for name, search in searches.items():
            print(f"{name}: measuring", flush=True)
            details[name] = {megabits: box_visits(program, site, name, search, megabits) for megabits in RATES}
    report("box", ("what", "this box: words, meaning", "Pagefind"), box_rows(details), details, make_provenance())


def search_box(page: "Page", rate: Rate, wanted: tuple[bool, ...] = (False, True)) -> tuple[list[float], list[int]]:
    """Search; return the seconds to results by words and by meaning, and the bytes that were sent until then.

    wanted has a bool for each kind of results to wait for: whether they are by meaning.
    """
    begin = page.evaluate("performance.now()")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(QUESTION)
    seconds, sent = [], []
    for has_meaning in wanted:
        told = page.wait_for_function(TOLD, arg=has_meaning).json_value()
        seconds.append((told - begin) / 1000)
        sent.append(rate.sent)
    return seconds, sent


def search_pagefind(page: "Page", rate: Rate) -> tuple[list[float], list[int]]:
    """Search; return the seconds to results, and the bytes that were sent until then."""
    begin = page.evaluate("performance.now()")
    page.locator("#search input").fill(QUESTION)
    page.wait_for_selector(".pagefind-ui__result-excerpt")
    return [(page.evaluate("performance.now()") - begin) / 1000], [rate.sent]


def box_visits(program: "Browser", site: Path, name: str, search: "SearchPage", megabits: int) -> dict[str, Any]:
    """Return the medians of visits of two pages: seconds to results, and bytes before and after the first search."""
    found: dict[str, list[list[float]]] = {"first": [], "second": [], "bytes": []}
    for _ in range(REPEATS):
        rate = Rate(megabits * MEGABIT)
        with serving(site, rate, GZIPPED) as address, program.new_context() as context:
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.add_init_script(LISTEN)
            for number, visit in enumerate(("first", "second"), 1):
                before = rate.sent
                page.goto(f"{address}{name}-{number}.html", wait_until="networkidle")
                loaded = rate.sent - before - (site / f"{name}-{number}.html").stat().st_size
                seconds, sent = search(page, rate)
                found[visit].append(seconds)
                if number == 1:
                    found["bytes"].append([loaded, *sent])
    return {key: [statistics.median(values) for values in zip(*rows, strict=True)] for key, rows in found.items()}


def box_rows(details: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the table: kilobytes, and seconds to results by words and by meaning."""
    box, other = details["box"], details["pagefind"]
    sizes = {name: [f"{size / 1000:,.1f}" for size in found[RATES[0]]["bytes"]] for name, found in details.items()}
    rows: list[tuple[str, ...]] = [
        ("kB before the first key", sizes["box"][0], sizes["pagefind"][0]),
        ("kB to results", f"{sizes['words'][1]}, {sizes['box'][2]}", sizes["pagefind"][1]),
    ]
    for visit in ("first", "second"):
        for megabits in RATES:
            cells = (", ".join(f"{value:.2f}" for value in each[megabits][visit]) for each in (box, other))
            rows.append((f"s on the {visit} page at {megabits} Mbit/s", *cells))
    return rows
