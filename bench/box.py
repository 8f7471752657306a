"""The search box in a documentation site beside Pagefind: kilobytes, and seconds on a first and on a second page.

The site is that of `make docs`. The pages of this measurement have nothing but a search. Text files are sent gzipped,
and the network is limited as in `python -m bench browser`. The page has loaded before the search. Seconds count from
the key that opens the box, or from the first key in Pagefind's field.
"""

import argparse
import gzip
import shutil
import statistics
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.browser import MEGABIT, PATIENCE, RATES, Rate, serving
from bench.report import Missing, console, make_provenance, report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    Search = Callable[[Page, Rate], tuple[list[float], list[int]]]

QUERY = "keep the texts private"
REPEATS = 5
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--site", type=Path, default=Path("build/docs-site"), help="default: that of `make docs`")
    program = Path("build/pagefind/node_modules/.bin/pagefind")
    parser.add_argument("--pagefind", type=Path, default=program, help=f"its program; default: {program}")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    from tests.browser.page.browser import browser_problem, open_browser

    if (problem := browser_problem()) is not None:
        raise Missing(problem)
    if not (options.site / "find").is_dir():
        raise Missing(f"{options.site}: has no search box; run `make docs`")
    if not options.pagefind.is_file():
        raise Missing(f"{options.pagefind}: is not there; run `npm install --prefix build/pagefind pagefind`")
    site = options.work / "site-box"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(options.site, site)
    subprocess.run([options.pagefind, "--site", site], check=True, capture_output=True)
    pages = {"box": BOX.format("hybrid"), "words": BOX.format("keyword"), "pagefind": PAGEFIND}
    for name, content in pages.items():
        for number in (1, 2):
            (site / f"{name}-{number}.html").write_text(HEAD + content)
    for path in [path for path in site.rglob("*") if path.suffix in GZIPPED]:
        path.write_bytes(gzip.compress(path.read_bytes()))
    details: dict[str, Any] = {}
    with open_browser() as browser:
        searches: dict[str, Search] = {
            "box": _search_box,
            "words": partial(_search_box, wanted=(False,)),
            "pagefind": _search_pagefind,
        }
        for name, search in searches.items():
            console.print(f"{name}: measuring")
            details[name] = {megabits: _visits(browser, site, name, search, megabits) for megabits in RATES}
    report("box", ("what", "this box: words, meaning", "Pagefind"), _rows(details), details, make_provenance())
    return 0


def _search_box(page: "Page", rate: Rate, wanted: tuple[bool, ...] = (False, True)) -> tuple[list[float], list[int]]:
    """Search; return the seconds to results by words and by meaning, and the bytes that were sent until then.

    wanted has a bool for each kind of results to wait for: whether they are by meaning.
    """
    begin = page.evaluate("performance.now()")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(QUERY)
    seconds, sent = [], []
    for has_meaning in wanted:
        told = page.wait_for_function(TOLD, arg=has_meaning).json_value()
        seconds.append((told - begin) / 1000)
        sent.append(rate.sent)
    return seconds, sent


def _search_pagefind(page: "Page", rate: Rate) -> tuple[list[float], list[int]]:
    """Search; return the seconds to results, and the bytes that were sent until then."""
    begin = page.evaluate("performance.now()")
    page.locator("#search input").fill(QUERY)
    page.wait_for_selector(".pagefind-ui__result-excerpt")
    return [(page.evaluate("performance.now()") - begin) / 1000], [rate.sent]


def _visits(browser: "Browser", site: Path, name: str, search: "Search", megabits: int) -> dict[str, Any]:
    """Return the medians of visits of two pages: seconds to results, and bytes before and after the first search."""
    found: dict[str, list[list[float]]] = {"first": [], "second": [], "bytes": []}
    for _ in range(REPEATS):
        rate = Rate(megabits * MEGABIT)
        with serving(site, rate, GZIPPED) as address, browser.new_context() as context:
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


def _rows(details: dict[str, Any]) -> list[tuple[str, ...]]:
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
