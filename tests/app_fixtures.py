"""A process that has not imported anything yet, to look at imports; and the app behind Lambda's events, in this one."""

import asyncio
import fcntl
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from bench.emulator import copy_function
from function.events import make_handler
from function.image import build_archive
from semsearch.app.app import App, create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.reloading.reloader import Reloader
from semsearch.app.settings import Settings
from semsearch.engine.embedder import Embedder, TokenIds
from semsearch.engine.loading import AnyBundle
from tests.function.events.event_makers import http_api
from tests.project import ROOT, folder_of_run
from tests.rerankers import add_reranker
from tests.world import InProcess


class BrokenEmbedder(Embedder):
    """An embedder whose model is gone."""

    def __init__(self, whole: Embedder) -> None:
        self.model, self._session = whole.model, whole._session

    def tokenize(self, texts: object, role: str = "") -> list[TokenIds]:
        raise RuntimeError("the model is gone")


@pytest.fixture(scope="session")
def rerank_bundle(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole bundle with a reranker. It is everyone's, like `bundle`."""
    return add_reranker(Path(shutil.copytree(bundle, tmp_path_factory.mktemp("reranker") / "bundle")))


@pytest.fixture(scope="session")
def in_a_new_process() -> Callable[..., Any]:
    """Return what runs a script in a new process, where warnings are errors, and reads its last line as JSON."""

    def run(script: str, folder: Path = ROOT, **environment: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            cwd=folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def image_environment() -> dict[str, str]:
    """The environment variables that the Dockerfile sets for the function."""
    (line,) = re.findall(r"^ENV (HOME=.*)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    return dict(setting.split("=", 1) for setting in line.split() if not setting.startswith("HOME="))


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The function as an image has it: a folder with a copy of it, and the archive of its imports.

    It takes seconds, so all processes of a run share it. Tests do not change it.
    """
    folder = folder_of_run(tmp_path_factory) / "task"
    with folder.with_name("task.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "is-whole").exists():
            copy_function(folder)
            with pytest.MonkeyPatch.context() as patch, (folder / "printed").open("w") as printed:
                patch.setattr(build_archive, "PROJECT", folder)
                patch.setattr(sys, "stdout", printed)
                assert build_archive.main(["--out", str(folder / "function" / "archive.bin")]) == 0
            packages = ("function", "semsearch")
            compile_all = [sys.executable, "-m", "compileall", "-q", *packages]
            subprocess.run(compile_all, cwd=folder, check=True, timeout=60)
            (folder / "is-whole").touch()
    return folder


def connect_app(bundle: AnyBundle, reloader: Reloader | None = None) -> httpx.Client:
    """Return a client of the app over a bundle, whose start is over."""
    cold_start = ColdStart(lambda phases: None)
    cold_start.end({})
    app = create_app(bundle, Settings(), logging.getLogger("tests"), cold_start, reloader=reloader)
    return httpx.Client(transport=InProcess(app), base_url="http://tests")


@contextmanager
def answering(app: App) -> Iterator[Callable[[object], dict[str, Any]]]:
    """Yield what answers an event with an app, as Lambda's handler does."""
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)  # Mangum would make one, and leave it open
        handler = make_handler(app, base_path="/", is_closed=app.filters is not None)
        context: Any = SimpleNamespace(aws_request_id="c6af9ac6")

        def answer(event: object) -> dict[str, Any]:
            asyncio.set_event_loop(loop)  # another app may have answered meanwhile
            return handler(event, context)

        yield answer
        asyncio.set_event_loop(None)


@pytest.fixture(scope="module")
def answer(make_app: Callable[..., App]) -> Iterator[Callable[[object], dict[str, Any]]]:
    """Return what answers an event with the real app. It logs to the logger "tests"."""
    with answering(make_app()) as answer:
        answer(http_api("GET", "/health", None))  # the first reply has the phases of the start too
        yield answer
