"""A browser, and a server with a small corpus in which some texts and metadata would like to be HTML."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import uvicorn

from semsearch.app.app import App
from semsearch.app.http import ASGIApp
from semsearch.indexing.corpus import Corpus
from tests.browser.page.browser import Browser, Page, Response, browser_problem, open_browser
from tests.world import STORY_COLUMNS, WHAT, WHO, write_bundle

ATTACK = '<img src="x" onerror="window.attacked = true"><script>window.attacked = true</script>'
DUCKS = "forty ducks"  # a text that has them after emoji
LONG = " ".join(["An angry goose opened the wooden door before sunrise."] * 40)

SITE = "https://docs.example.com/"
PASSAGES = 5  # passages of each document
DOCUMENT_COLUMNS = {
    **dict.fromkeys(("path", "url", "title", "author"), "string"),
    **dict.fromkeys(("page", "start", "end", "passage"), "number"),
    "headings": "list",
}

Serve = Callable[[App], str]
Open = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if (problem := browser_problem()) is not None:
        pytest.skip(problem)
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def page_corpus(corpus: Corpus) -> Corpus:
    """The stories of all tests, one that attacks, one that is long and one with emoji."""
    ducks = (
        f"🚒👩\u200d🚒 passed. {'The kitchen is 🟡. ' * 20}Forty ducks 🦆🦆 crossed the frozen river. The mayor slept."
    )
    return Corpus(
        [*corpus.texts, f"The retired judge {ATTACK} sold forty apples at the market.", LONG, ducks],
        [*corpus.ids, ATTACK, "long", "ducks"],
        [*corpus.metadata, json.dumps({"who": ATTACK}), "{}", "{}"],
        columns=STORY_COLUMNS,
    )


@pytest.fixture(scope="session")
def page_bundle(tmp_path_factory: pytest.TempPathFactory, page_corpus: Corpus) -> Path:
    return write_bundle(tmp_path_factory.mktemp("page") / "bundle", page_corpus)


@pytest.fixture(scope="session")
def serve() -> Iterator[Serve]:
    """Return what serves an app until the tests end, and returns its address."""
    with ExitStack() as servers:
        yield lambda app: servers.enter_context(serving(app))


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", access_log=False, ws="none", log_level="warning"))
    thread = Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture(scope="session")
def address(serve: Serve, make_app: Callable[..., App], page_bundle: Path) -> str:
    return serve(make_app(bundle=page_bundle))


def passage(row: int) -> dict[str, object]:
    """Return the metadata of a passage, as the export of documents writes them."""
    number = row % PASSAGES
    path, title = f"stories/{row // PASSAGES}.md", f"Story {row // PASSAGES}"
    where = {"path": path, "title": title, "headings": [title, f"Part {number}", "End"], "author": "Ann"}
    return where | {"url": f"{SITE}{path}#part-{number}", "start": 7, "end": 9, "passage": number, "page": number}


def document_corpus() -> Corpus:
    """Return a corpus of 8 documents."""
    texts = [f"{who.capitalize()} {what}." for who in WHO[:4] for what in WHAT]
    ids = [f"passage {row}" for row in range(len(texts))]
    metadata = [json.dumps(passage(row)) for row in range(len(texts))]
    return Corpus(texts, ids, metadata, columns=DOCUMENT_COLUMNS)


@pytest.fixture(scope="session")
def documents(serve: Serve, make_app: Callable[..., App], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a server with a corpus of documents."""
    folder: Path = tmp_path_factory.mktemp("documents") / "bundle"
    return serve(make_app(bundle=write_bundle(folder, document_corpus())))


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Open]:
    """Return what opens the page in a window of its own, and waits until it knows the corpus.

    At the end it fails for any script that did, for a broken policy, and for a request to another server.
    """
    with ExitStack() as contexts:

        def open_one(
            path: str = "/", server: str = address, ready: str = "#corpus:not(:empty)", **options: Any
        ) -> Page:
            page = contexts.enter_context(watched_page(browser, server, **options))
            page.goto(server + path)
            page.wait_for_selector(ready)
            return page

        yield open_one


@contextmanager
def watched_page(browser: Browser, address: str = "", **options: Any) -> Iterator[Page]:
    """Open a window of its own. At the end, fail for any error of a script and for a broken policy.

    With an address, fail for a request to another place too.
    """
    wrong: list[str] = []
    with browser.new_context(**options) as context:
        page = context.new_page()
        page.set_default_timeout(120_000)  # milliseconds; only a test that fails waits so long
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if is_wrong(line.type, line.text) else None)
        page.on("request", lambda one: None if one.url.startswith((address, "data:")) else wrong.append(one.url))
        yield page
    assert wrong == []


def is_wrong(kind: str, text: str) -> bool:
    """Return whether a line of the console is more than a note that a request was refused."""
    return kind in ("error", "warning") and not text.startswith("Failed to load resource")


@pytest.fixture
def page(open_page: Open) -> Page:
    return open_page()


def search(page: Page, text: str) -> dict[str, Any]:
    """Type a text, wait for the reply to it and return what was sent."""
    with page.expect_response(lambda reply: requested(reply).get("text") == text) as seen:
        page.locator("#query").fill(text)
    page.locator("#hits:not([aria-busy])").wait_for(state="attached")
    return requested(seen.value)


def requested(reply: Response) -> dict[str, Any]:
    """Return what was sent to /similar for this reply; {} for a reply of another route."""
    sent: dict[str, Any] = json.loads(reply.request.post_data or "{}")
    return sent


def wait_for_text(page: Page, selector: str, text: str) -> None:
    """Wait until an element has this text and no other."""
    page.locator(selector).filter(has_text=re.compile(f"^{re.escape(text)}$")).wait_for(state="attached")


def texts(page: Page) -> list[str]:
    """Return the texts of the results, in order."""
    shown: list[str] = page.locator("li.hit .text").all_text_contents()
    return shown
