"""A static site in Chromium: bytes, time to search by words and by meaning, and equality with the function.

Both embed queries with the same table, which is learned now if the bundle has none. The network is limited by the
server: its replies share 10 or 50 Mbit/s, and each comes 20 ms later. Half of the requests that are compared have a
filter.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.report import Missing, console, make_provenance, report
from bench.texts import add_data_argument, read_texts
from bench.work import make_bundle
from semsearch.engine.embedder import Embedder
from semsearch.engine.hybrid import fuse
from semsearch.engine.loading import LoadedBundle, load_bundle
from semsearch.engine.metadata.filters import allowed_rows
from semsearch.indexing.vectors.query_table import write_table
from semsearch.site.site import write_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RATES = (10, 50)  # Mbit/s that all replies share
QUERY = "unpack all files of an archive"
MODES = ("semantic", "keyword", "hybrid")
TOP_K = 10
SEED = 5
LONGEST = 8  # maximum words of a query
MEGABIT = 125_000  # bytes
CHUNK = 16_384  # bytes that the server sends at a time
LATENCY = 0.02  # seconds that the server waits before each reply, as on a way of 20 ms
PATIENCE = 600_000  # milliseconds until a visit counts as failed
ASK = """async (requests) => {
  const replies = [];
  for (const request of requests) {
    const begin = performance.now();
    const { content } = await ask("similar", { body: JSON.stringify(request) });
    replies.push({ ids: content.results.map((result) => result.id), milliseconds: performance.now() - begin });
  }
  return replies;
}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="the bundle of the demo; default: bundle/")
    parser.add_argument("--packages", type=Path, help="as of `semsearch site`")
    parser.add_argument("--queries", type=int, default=200, help="queries in each mode")
    parser.add_argument("--rows", type=int, default=30_000, help="headlines of the second corpus")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    from tests.browser.page.browser import browser_problem, open_browser

    if (problem := browser_problem()) is not None:
        raise Missing(problem)
    headlines = make_bundle(options.work, read_texts(options.data, options.rows), lots=20)
    details: dict[str, Any] = {}
    with open_browser() as browser:
        for name, source in (("demo", options.bundle), ("headlines", headlines)):
            folder = _with_table(source, options.work / f"table-{name}")
            console.print(f"{name}: writing the site and measuring")
            site = options.work / f"site-{name}"
            sizes = write_site(folder, site, packages=options.packages)
            details[name] = {"bytes": sizes} | _equality(browser, site, load_bundle(folder), options.queries)
        details["demo"] |= _visits(browser, options.work / "site-demo")
    texts = f"{len(load_bundle(options.bundle).passages):,} texts of the demo"
    report("browser", ("what", "measured"), _rows(details), details, make_provenance(texts))
    return 0


def _visits(browser: "Browser", site: Path) -> dict[str, Any]:
    """Return the seconds to results by words and by meaning, of first visits at each rate and of second visits."""
    found: dict[str, Any] = {}
    rate = Rate()
    with serving(site, rate) as address:
        for megabits in RATES:
            rate.bytes = megabits * MEGABIT
            with browser.new_context() as context:
                page = context.new_page()
                found[f"first_{megabits}"] = measure_visit(page, address, QUERY)
                wait_until_kept(page)
                found[f"second_{megabits}"] = measure_visit(page, address, QUERY)
    return found


def _with_table(source: Path, folder: Path) -> Path:
    """Return the folder of a bundle with a query table: the source, or a copy that gets one."""
    if load_bundle(source).table is not None:
        return source
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    manifest = load_bundle(folder).manifest
    write_table(folder, manifest, Embedder.open(folder, manifest.model))
    return folder


def _equality(browser: "Browser", site: Path, bundle: LoadedBundle, count: int) -> dict[str, Any]:
    """Return the share of results that are equal to those of the function, by mode."""
    requests = make_requests(bundle, count)
    with serving(site, Rate()) as address, browser.new_context() as context:
        page = context.new_page()
        page.goto(address)
        wait_until_kept(page)
        before = renderer_bytes()
        replies: list[dict[str, Any]] = page.evaluate(ASK, json.loads(json.dumps(requests)))
        memory = [before / 1e6, renderer_bytes() / 1e6]
    found: dict[str, Any] = {"memory": memory}
    expected = [answer(bundle, request) for request in requests]
    for place, mode in enumerate(MODES):
        part = slice(place * count, (place + 1) * count)
        pairs = [(reply["ids"], ids) for reply, ids in zip(replies[part], expected[part], strict=True)]
        shared = sum(len({*ids} & {*wanted}) for ids, wanted in pairs)
        found[f"function_{mode}"] = {
            "lists": float(np.mean([ids == wanted for ids, wanted in pairs])),
            "results": shared / max(1, sum(len(wanted) for _, wanted in pairs)),
        }
        found[f"milliseconds_{mode}"] = statistics.median(reply["milliseconds"] for reply in replies[part])
    return found


def _rows(details: Mapping[str, Any]) -> list[tuple[str, Any]]:
    demo = details["demo"]
    rows = [("MB of a first visit, all files", f"{sum(demo['bytes'].values()) / 1e6:.1f}")]
    for megabits in RATES:
        keyword, semantic = demo[f"first_{megabits}"]
        rows.append((f"first visit at {megabits} Mbit/s: s to words, to meaning", f"{keyword:.1f}, {semantic:.1f}"))
    keyword, semantic = demo[f"second_{RATES[-1]}"]
    rows.append(("second visit: s to words, to meaning", f"{keyword:.1f}, {semantic:.1f}"))
    for name, found in details.items():
        shares = ", ".join(f"{found[f'function_{mode}']['lists']:.2%}" for mode in MODES)
        rows.append((f"{name}: lists as in the function, by meaning, words, both", shares))
    for name, found in details.items():
        times = ", ".join(f"{found[f'milliseconds_{mode}']:.0f}" for mode in MODES)
        rows.append((f"{name}: ms of a query by meaning, words, both", times))
        rows.append((f"{name}: MB of memory before and after the queries", "{:.0f}, {:.0f}".format(*found["memory"])))
    return rows


def make_requests(bundle: LoadedBundle, count: int) -> list[dict[str, Any]]:
    """Return `count` requests in each mode: some words of a text, every second one with a filter that a text passes."""
    generator, passages = random.Random(SEED), bundle.passages
    kinds = bundle.manifest.corpus.columns
    queries = []
    for number in range(count):
        words = passages.text(generator.randrange(len(passages))).split() or ["text"]
        begin = generator.randrange(len(words))
        request: dict[str, Any] = {"text": " ".join(words[begin : begin + generator.randint(1, LONGEST)])}
        if number % 2:
            metadata = passages.metadata(generator.randrange(len(passages)))
            request["filter"] = next(_filters(metadata, kinds, generator), {})
        queries.append(request)
    return [request | {"mode": mode, "num_results": TOP_K} for mode in MODES for request in queries]


def _filters(metadata: dict[str, Any], kinds: Mapping[str, str], generator: random.Random) -> Iterator[dict[str, Any]]:
    """Yield filters that a text with these metadata passes, in random order."""
    for name in generator.sample(sorted(kinds), len(kinds)):
        value = metadata.get(name)
        if value in (None, "", []):
            continue
        match kinds[name]:
            case "string":
                yield {name: generator.choice([value, {"$startsWith": value[:1]}, {"$in": [value, "?"]}])}
            case "list" | "numbers":
                yield {name: value[0]}
            case kind:
                value = float(value) if kind == "number" else value  # a table has its numbers as text
                yield {name: generator.choice([value, {"$lte": value}, {"$gte": value}])}


def answer(bundle: LoadedBundle, request: Mapping[str, Any]) -> list[str]:
    """Return the ids of the engine's results for a request."""
    text, mode = request["text"], request["mode"]
    keywords, table = bundle.keywords, bundle.table
    assert keywords is not None
    assert table is not None
    allowed = allowed_rows(request["filter"], bundle.columns) if "filter" in request else None
    matches = keywords.match(text, allowed)
    (query,) = table.embed(bundle.embedder.tokenize([text], role="query"))
    searches: dict[str, Callable[[], Sequence[Any]]] = {
        "semantic": lambda: bundle.index.search(query, TOP_K, allowed),
        "keyword": lambda: matches.best(TOP_K),
        "hybrid": lambda: fuse(bundle.index, query, matches, keywords.info, TOP_K).hits(),
    }
    return [bundle.passages.id(hit.row) for hit in searches[mode]()]


@dataclass
class Rate:
    """The bytes a second that all replies of a server share, None for no limit; and the bytes that it has sent."""

    bytes: float | None = None
    sent: int = 0


@contextmanager
def serving(folder: Path, rate: Rate, gzipped: Collection[str] = ()) -> Iterator[str]:
    """Serve a folder at this rate, as a static host does; yield its address. gzipped has the suffixes of such files."""
    turn = Lock()

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def end_headers(self) -> None:
            if gzipped:
                self.send_header("cache-control", "max-age=600")  # as GitHub Pages
            if self.path.partition("?")[0].endswith(tuple(gzipped)):
                self.send_header("content-encoding", "gzip")
            super().end_headers()

        def copyfile(self, source: Any, outputfile: Any) -> None:
            if rate.bytes is not None:
                time.sleep(LATENCY)
            while chunk := source.read(CHUNK):
                if rate.bytes is not None:
                    with turn:  # so that the replies share the rate
                        time.sleep(len(chunk) / rate.bytes)
                rate.sent += len(chunk)
                outputfile.write(chunk)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


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


def renderer_bytes() -> int:
    """Return the resident bytes of the largest renderer that this process has started, its workers included."""
    sizes = [0]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended
            if b"--type=renderer" in path.read_bytes() and os.getpid() in _parents(int(path.parent.name)):
                sizes.append(int((path.parent / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return max(sizes)


def _parents(process: int) -> Iterator[int]:
    """Yield the process that started a process, then its own parent, and so on."""
    while process > 1:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        yield process
