"""A site with a corpus in several scripts, and the function over the same bundle."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from fastapi import FastAPI

from export.corpus import Corpus
from export.site.site import write_site
from function.engine.bundle import open_bundle
from function.engine.embedder import Embedder
from tests.conftest import STORY_COLUMNS, WHAT, WHO, InProcess, story_metadata

# ruff: noqa: RUF001 # the texts are in several scripts
from tests.page.conftest import DOCUMENT_COLUMNS, browser, passage
from tests.site.world import PACKAGES, packages_problem, write_site_bundle

SCRIPTS = [
    *(
        "Zürich liegt an der Limmat. Die STRASSE ist naß, der Kaffee in Łódź stark.",
        "Ein Café in Zurich, 3 km entfernt.",
    ),
    *("東京タワーは港区にあります。高さは333メートル！", "京都は古い都です。東京から遠い。", "ภาษาไทยไม่มีช่องว่าง"),
    *(
        "Ὀδυσσεύς, ΟΔΥΣΣΕΥΣ and Οδυσσεας",
        "🚒👩\u200d🚒 passed. Forty ducks 🦆🦆 crossed! (The mayor slept.) Then C++ and AB-1234.",
    ),
    *(
        "İstanbul ve ısı; ﬁnance ﬀ Ⅷ ²",
        "हिन्दी में एक वाक्य। दूसरा वाक्य",
        "one\u0301\u0302 two\u200bthree [SEP] four\x00five",
    ),
    "The biologists added internal emergencies of universities in the evening.",  # words whose stems Snowball 3 changed
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
    return Corpus(texts, [*corpus.ids, *ids], [*corpus.metadata, *metadata], empty_texts=0, columns=STORY_COLUMNS)


@pytest.fixture(scope="session")
def site_bundle(tmp_path_factory: pytest.TempPathFactory, many_scripts: Corpus) -> Path:
    return write_site_bundle(tmp_path_factory.mktemp("site") / "bundle", many_scripts)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, site_bundle: Path) -> Path:
    return make_site(site_bundle, tmp_path_factory.mktemp("stories"))


@pytest.fixture(scope="session")
def documents_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 8 documents with 5 passages each."""
    texts = [f"{who.capitalize()} {what}." for who in WHO[:4] for what in WHAT]
    ids = [f"passage {row}" for row in range(len(texts))]
    metadata = [json.dumps(passage(row)) for row in range(len(texts))]
    corpus = Corpus(texts, ids, metadata, empty_texts=0, columns=DOCUMENT_COLUMNS)
    return write_site_bundle(tmp_path_factory.mktemp("documents") / "bundle", corpus)


def make_site(bundle: Path, folder: Path) -> Path:
    """Write the site of a bundle into a sub-folder, where sites of projects are; return the site's folder."""
    write_site(bundle, folder / "project" / "search", packages=PACKAGES)
    return folder / "project" / "search"


@pytest.fixture(scope="session")
def function_over(make_app: Callable[..., FastAPI]) -> Callable[[Path], httpx.Client]:
    """Return what connects to the function over a bundle."""

    def connect(bundle: Path) -> httpx.Client:
        embedder = Embedder.open(bundle, open_bundle(bundle).model)
        return httpx.Client(transport=InProcess(make_app(bundle=bundle, embedder=embedder)), base_url="http://tests")

    return connect


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve the folder around a site as any static host would; yield the site's path on port PORT of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder.parents[1]))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{server.server_port}/project/search/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


__all__ = ["browser"]
