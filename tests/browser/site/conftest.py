"""A site with a corpus in several scripts, and the function over the same bundle."""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from semsearch.app.app import App
from semsearch.engine.bundle import ModelInfo, check_bundle
from semsearch.engine.embedder import Embedder
from semsearch.indexing.columns import choose_types
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.documents.folder import Documents
from semsearch.indexing.documents.passages import Splitter
from semsearch.indexing.documents.reading import DocumentOptions, Reading
from semsearch.indexing.facts import read_facts
from semsearch.indexing.make import index
from semsearch.indexing.options import gather, new_options
from semsearch.indexing.texts import write_corpus
from semsearch.site.site import write_site

# ruff: noqa: RUF001 # the texts are in several scripts
from tests.browser.page.browser import Browser, Page
from tests.browser.page.conftest import browser, document_corpus, watched_page
from tests.browser.site.world import make_wordpiece, packages_problem, write_site_bundle
from tests.stand_ins.http import Quiet
from tests.world import DIM, MAX_TOKENS, STORY_COLUMNS, InProcess, add_floor, story_metadata

SCRIPTS = [
    "Zürich liegt an der Limmat. Die STRASSE ist naß, der Kaffee in Łódź stark.",
    *("Ein Café in Zurich, 3 km entfernt.", "東京タワーは港区にあります。高さは333メートル！"),
    *("京都は古い都です。東京から遠い。", "ภาษาไทยไม่มีช่องว่าง", "Ὀδυσσεύς, ΟΔΥΣΣΕΥΣ and Οδυσσεας"),
    "🚒👩\u200d🚒 passed. Forty ducks 🦆🦆 crossed! (The mayor slept.) Then C++ and AB-1234.",
    *("İstanbul ve ısı; ﬁnance ﬀ Ⅷ ²", "हिन्दी में एक वाक्य। दूसरा वाक्य"),
    "one\u0301\u0302 two\u200bthree [SEP] four\x00five",
    "The biologists added internal emergencies of universities in the evening.",  # words whose stems Snowball 3 changed
    "Z" + "\u0301" * 31 + " e" + "\u0316\u0301" * 20 + "x " + "\uff9e" * 33 + "b",  # only 30 marks of a run are read
    "Wi-Fi in a raincoat.",
    "The rain wets a coat, and the wifi shows it in 4 K.",
    *("e-mail: someone@example.com/path_to.file#x", " ".join(["A long text without an end"] * 60)),
]


@pytest.fixture(scope="session", autouse=True)
def _packages() -> None:
    if (problem := packages_problem()) is not None:
        pytest.skip(problem)


@pytest.fixture(scope="session")
def many_scripts(corpus: Corpus) -> Corpus:
    """The stories of all tests and texts in several scripts."""
    ids = [f"script-{number}" for number in range(len(SCRIPTS))]
    metadata = [json.dumps(story_metadata(3 + 7 * number)) for number in range(len(SCRIPTS))]
    texts = [*corpus.texts, *SCRIPTS]
    return Corpus(texts, [*corpus.ids, *ids], [*corpus.metadata, *metadata], columns=STORY_COLUMNS)


@pytest.fixture(scope="session")
def site_bundle(tmp_path_factory: pytest.TempPathFactory, many_scripts: Corpus) -> Path:
    bundle = write_site_bundle(tmp_path_factory.mktemp("site") / "bundle", many_scripts)
    return add_floor(bundle, {"semantic": 0.5, "keyword": 3.0, "hybrid": 0.4})


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, site_bundle: Path) -> Path:
    return make_site(site_bundle, tmp_path_factory.mktemp("stories"))


@pytest.fixture(scope="session")
def documents_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site_bundle(tmp_path_factory.mktemp("documents") / "bundle", document_corpus())


def make_site(bundle: Path, folder: Path) -> Path:
    """Write the site of a bundle into a sub-folder, where sites of projects are; return the site's folder."""
    write_site(bundle, folder / "project" / "search")
    return folder / "project" / "search"


def make_site_of_pages(
    pages: dict[str, str], folder: Path, anchors: str = "github", floor: Mapping[str, float] | None = None
) -> Path:
    """Write pages, their bundle in folder/bundle, and the site for searching them beside them; return its folder."""
    project = folder / "project"
    for name, content in pages.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content)
    model = ModelInfo("tests/words", None, "0" * 64, "mean", DIM, MAX_TOKENS, {}, "none")
    options = gather(DocumentOptions, new_options(index, {"anchors": anchors}))
    reading = Reading(Splitter(make_wordpiece(), model, 20, 0), options)
    corpus, _ = write_corpus(Documents(project, reading), folder / "passages")
    corpus = replace(corpus, facts=read_facts(corpus.metadata))
    bundle = write_site_bundle(folder / "bundle", replace(corpus, columns=choose_types(corpus, {}, project)))
    return make_site(add_floor(bundle, floor or {}), folder)


Function = Callable[[dict[str, Any]], dict[str, Any]]
Connect = Callable[[Path], Function]


@pytest.fixture(scope="session")
def function_over(make_app: Callable[..., App]) -> Connect:
    """Return what makes a function that answers the requests for /similar as the real app over a bundle does."""

    def connect(bundle: Path) -> Function:
        embedder = Embedder.open(bundle, check_bundle(bundle).model)
        client = httpx.Client(transport=InProcess(make_app(bundle=bundle, embedder=embedder)), base_url="http://tests")

        def answer(request: dict[str, Any]) -> dict[str, Any]:
            with ThreadPoolExecutor() as threads:  # Playwright runs an event loop in this thread
                reply: dict[str, Any] = threads.submit(client.post, "/similar", json=request).result().json()
            return reply

        return answer

    return connect


class StaticHost:
    """Serves the folder around a site as any static host does. Tests hold back, damage or remove files of it."""

    def __init__(self, site: Path) -> None:
        """Take the site's folder, two levels below the folder that is served."""
        self.held: dict[str, Event] = {}  # by the beginning of a file's name: it is sent when the event is set
        self.damaged: set[str] = set()
        self.asked: list[str] = []  # paths, in order
        self.policy = ""  # Content-Security-Policy of the pages around the site
        self.has_page_for_all = False  # whether a page is sent in place of each file that is not there
        self.caching = ""  # the header cache-control of every reply, also of a refusal
        host = self

        class Files(Quiet, SimpleHTTPRequestHandler):
            def end_headers(self) -> None:
                if host.policy and self.path.endswith(".html"):
                    self.send_header("content-security-policy", host.policy)
                if host.caching:
                    self.send_header("cache-control", host.caching)
                super().end_headers()

            def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
                if not host.has_page_for_all:
                    return super().send_error(code, message, explain)
                self.send_response(200)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(b"<!doctype html>")
                return None

            def do_GET(self) -> None:
                host.asked.append(self.path)
                name = self.path.rpartition("/")[2]
                for beginning, event in list(host.held.items()):
                    if name.startswith(beginning):
                        event.wait(30)
                if any(name.startswith(beginning) for beginning in list(host.damaged)):
                    content = bytearray((site.parents[1] / self.path.lstrip("/")).read_bytes())
                    content[len(content) // 2] ^= 1
                    self.send_response(200)
                    self.send_header("content-length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                else:
                    super().do_GET()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=site.parents[1]))
        self.place = f"{self._server.server_port}/project/search/"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Answer no further request."""
        for event in self.held.values():
            event.set()
        self._server.shutdown()
        self._server.server_close()


Host = Callable[[Path], StaticHost]
Visit = Callable[..., Page]


@pytest.fixture
def host() -> Iterator[Host]:
    """Return what serves a site until the test ends."""
    hosts: list[StaticHost] = []

    def serve(site: Path) -> StaticHost:
        hosts.append(StaticHost(site))
        return hosts[-1]

    yield serve
    for each in hosts:
        with suppress(OSError):  # the test has stopped it
            each.stop()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Return what opens a site's page in a window of its own, and waits until it knows the corpus.

    At the end it fails for any error of a script, for a broken policy, and for a request to another host.
    """
    with ExitStack() as contexts:

        def open_one(host: StaticHost, name: str = "127.0.0.1", query: str = "", **options: Any) -> Page:
            address = f"http://{name}:{host.place}"
            page = contexts.enter_context(watched_page(browser, address, **options))
            page.goto(address + query)
            page.wait_for_selector("#corpus:not(:empty)")
            return page

        yield open_one


def wait_until(page: Page, part: str) -> None:
    """Wait until the site has loaded a part: keyword, semantic or offline; each comes after the one before."""
    parts = ("keyword", "semantic", "offline")
    later = ", ".join(f"#loading[data-ready={each}]" for each in parts[parts.index(part) :])
    page.wait_for_selector(later, state="attached")


__all__ = ["browser"]
