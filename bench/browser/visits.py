"""Visits of a static site in Chromium, over a network whose speed is limited, and questions to its worker."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MEGABIT = 125_000  # bytes
CHUNK = 16_384  # bytes that the server sends at a time
LATENCY = 0.02  # seconds that the server waits before each reply, as on a way of 20 ms
PATIENCE = 600_000  # milliseconds
# starts before the page's own scripts; a task of more than 50 ms is a long one to browsers
OBSERVE = """
globalThis.longTasks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) longTasks.push(entry.duration);
}).observe({ type: "longtask", buffered: true });
"""
ASK = """async (requests) => {
  const replies = [];
  for (const request of requests) {
    const begin = performance.now();
    const { content } = await ask("similar", { body: JSON.stringify(request) });
    replies.push({ ids: content.results.map((result) => result.id), milliseconds: performance.now() - begin });
  }
  return replies;
}"""


@dataclass
class Rate:
    """The bytes a second that all replies of a server share; None for no limit."""

    bytes: float | None = None


@contextmanager
def serving(folder: Path, rate: Rate) -> Iterator[str]:
    """Serve a folder at this rate, as a static host does; yield its address."""
    turn = Lock()

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def copyfile(self, source: Any, outputfile: Any) -> None:
            if rate.bytes is not None:
                time.sleep(LATENCY)
            while chunk := source.read(CHUNK):
                if rate.bytes is not None:
                    with turn:  # so that replies share the rate
                        time.sleep(len(chunk) / rate.bytes)
                outputfile.write(chunk)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True, slots=True)
class Visit:
    """Seconds from the navigation to results by words and to results by meaning, and the longest task of the page."""

    keyword: float
    semantic: float
    longest_task_milliseconds: float


def measure_visit(page: "Page", address: str, text: str) -> Visit:
    """Open a page that searches for a text at once, and measure until the results are shown."""
    page.goto(f"{address}?q={text.replace(' ', '+')}")
    page.wait_for_selector("li.hit", timeout=PATIENCE)
    keyword = page.evaluate("performance.now()")
    page.wait_for_function("() => shown?.request.mode === 'hybrid'", timeout=PATIENCE)
    semantic = page.evaluate("performance.now()")
    return Visit(keyword / 1e3, semantic / 1e3, max(page.evaluate("longTasks"), default=0.0))


@contextmanager
def visiting(browser: "Browser") -> Iterator["Page"]:
    """Yield a page of a browser that has kept nothing yet."""
    with ExitStack() as stack:
        context = stack.enter_context(browser.new_context())
        context.add_init_script(OBSERVE)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        yield page


def wait_until_kept(page: "Page") -> None:
    """Wait until the browser has everything that it keeps for the next visit."""
    page.wait_for_selector("#loading[data-ready=offline], #loading[data-ready=partly]", state="attached")
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")


def ask(page: "Page", requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the ids of the results of each request and the milliseconds that it took, one after the other."""
    replies: list[dict[str, Any]] = page.evaluate(ASK, json.loads(json.dumps(requests)))
    return replies


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
