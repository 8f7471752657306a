"""The bundle that is served now, and the newer one that takes its place.

A poll asks for the pointer with `If-None-Match`; a newer bundle is fetched beside the one that is served, opened, and
becomes the current one by one assignment. It runs in a thread, so requests never wait for it. A request uses the bundle
that was current when it began. The folder of a former bundle is removed after the last of its requests.

In Lambda a process stands still between requests. There a request starts the poll when it is due, and what a poll does
not finish goes on during the next requests: connections that broke meanwhile are made again.
"""

import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic, perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from function.engine.bundle import MODEL, TOKENIZER, BundleError, Manifest
from function.engine.loading import Loaded, load
from function.engine.tensors import TensorsError
from function.execution import Execution
from function.remote.fetch import POINTER, Fetched, RefusedError, cache_folder, fetch, parse_version, remove_unused
from function.remote.objects import Objects, RemoteError
from function.search import Found, Lap, Query, Search, make_search

SHOWN = 12  # characters of a version

Report = Callable[["Status"], None]


@dataclass(frozen=True, slots=True)
class Status:
    """What GET /info shows of the bundle. `error` says why the last poll changed nothing, None if all is well."""

    source: str
    version: str
    fetch_milliseconds: float
    switches: int = 0
    failures: int = 0
    error: str | None = None


class Served:
    """One bundle, and the search over it."""

    def __init__(self, bundle: Loaded, version: str, fetched: Fetched, search: Search | None = None) -> None:
        """Give the bundle's folder up when nothing refers to this object any more."""
        self.bundle = bundle
        self.version = version
        self.search = search
        weakref.finalize(self, fetched.close)


class Switch:
    """Fetches and opens the bundle that the pointer names, at the start and whenever the pointer has changed."""

    def __init__(
        self, url: str, local: Path, seconds: float, environment: Mapping[str, str], by_requests: bool
    ) -> None:
        """Poll every so many seconds, started by_requests or by a thread of its own.

        `local` may be a bundle with the same model; then only the rest is fetched.
        """
        self.by_requests = by_requests
        self._objects = Objects(url, environment)
        self._cache = cache_folder(environment)
        self._local = local
        self._seconds = seconds
        self._etag: str | None = None
        self._polled = monotonic()
        self._one_poll = Lock()
        self._report: Report = lambda status: None
        self._execution: Execution | None = None
        self._fetched: Fetched | None = None
        self.served: Served
        self.status = Status(url, "", 0.0)

    def fetch(self) -> None:
        """Fetch the bundle to start with. Raises BundleError or RemoteError."""
        began = perf_counter()
        remove_unused(self._cache)
        try:
            answer = self._objects.read(POINTER)
            assert answer is not None  # it was asked for without a condition
            version = parse_version(answer.content, self._objects.url)
            self._fetched = fetch(self._objects, version, self._cache, self._local)
        finally:
            self._objects.close()
        self._etag = answer.etag
        self.status = replace(self.status, version=version, fetch_milliseconds=_milliseconds(began))

    def load(self) -> Loaded:
        """Open the bundle to start with. Raises BundleError or TensorsError."""
        assert self._fetched is not None  # fetch comes first
        bundle = load(self._fetched.folder)
        self.served = Served(bundle, self.status.version, self._fetched)
        self._fetched = None
        self._polled = monotonic()
        return bundle

    def connect(self, execution: Execution, report: Report) -> None:
        """Search with this execution from now on, and report the status after each switch and each failure."""
        self._execution, self._report = execution, report
        self.served.search = make_search(self.served.bundle, execution)

    async def search(self, query: Query, lap: Lap) -> Found:
        """Search the bundle of the request that asks."""
        search = self.of_request().search
        assert search is not None  # connect made it
        return await search(query, lap)

    def of_request(self) -> Served:
        """Return the bundle of the request that asks, or the current one outside of requests."""
        return _of_request.get() or self.served

    def poll_if_due(self) -> None:
        """Start a poll in a thread, unless the last one was not long ago or is still running."""
        if monotonic() - self._polled >= self._seconds and not self._one_poll.locked():
            self._polled = monotonic()
            Thread(target=self.poll, name="poll", daemon=True).start()

    def poll_forever(self) -> None:
        """Start a thread that polls until the process ends."""

        def run() -> None:
            pause = Event()
            while not pause.wait(self._seconds):
                self.poll()

        Thread(target=run, name="poll", daemon=True).start()

    def poll(self) -> None:
        """Switch to the bundle that the pointer names, if it is another one; report one that cannot be used."""
        if not self._one_poll.acquire(blocking=False):
            return
        try:
            answer = self._objects.read(POINTER, self._etag)
            if answer is None:
                return
            try:
                self._switch(parse_version(answer.content, self._objects.url))
            except (RefusedError, TensorsError) as error:  # the next poll would find the same
                self._fail(error)
            self._etag = answer.etag
        except (RemoteError, BundleError, OSError) as error:
            self._fail(error)
        finally:
            self._objects.close()
            self._polled = monotonic()
            self._one_poll.release()

    def _switch(self, version: str) -> None:
        if version != self.served.version:
            began = perf_counter()
            before = self.served.bundle
            fetched = fetch(self._objects, version, self._cache, before.folder, self._check)
            try:
                assert self._execution is not None  # connect comes first
                bundle = load(fetched.folder, before.embedder)
                served = Served(bundle, version, fetched, make_search(bundle, self._execution))
            except BaseException:
                fetched.close()
                raise
            self.served = served
            milliseconds, switches = _milliseconds(began), self.status.switches + 1
            self.status = replace(
                self.status, version=version, fetch_milliseconds=milliseconds, switches=switches, error=None
            )
            self._report(self.status)
        self.status = replace(self.status, error=None)

    def _check(self, manifest: Manifest) -> None:
        """Raise RefusedError unless the bundle has the model that is open, and texts."""
        open_now = self.served.bundle.manifest
        if manifest.index is None:
            raise RefusedError(f"{self._objects.url}: the bundle holds a model and no texts; publish one with texts")
        same = [manifest.files.get(name) == open_now.files[name] for name in (MODEL, TOKENIZER)]
        if manifest.model != open_now.model or not all(same):
            found = f"the bundle's model is {manifest.model.name} or was exported otherwise"
            advice = f"expected {open_now.model.name} as it is open here; start the function again to change the model"
            raise RefusedError(f"{self._objects.url}: {found}, {advice}")

    def _fail(self, error: Exception) -> None:
        self.status = replace(self.status, failures=self.status.failures + 1, error=f"{error}")
        self._report(self.status)

    def info(self) -> dict[str, object]:
        """Return what GET /info shows; the version is that of the request that asks."""
        return asdict(replace(self.status, version=self.of_request().version))


class BundleOfRequest:
    """Gives each request one bundle, names it in the reply's header `x-bundle`, and starts polls that are due."""

    def __init__(self, app: ASGIApp, switch: Switch) -> None:
        self._app = app
        self._switch = switch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._switch.by_requests:
            self._switch.poll_if_due()
        served = self._switch.served
        name = served.version[:SHOWN].encode()

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-bundle", name)]
            await send(message)

        token = _of_request.set(served)
        try:
            await self._app(scope, receive, send_named)
        finally:
            _of_request.reset(token)


_of_request: ContextVar[Served | None] = ContextVar("bundle of the request", default=None)


def _milliseconds(began: float) -> float:
    return round((perf_counter() - began) * 1e3, 2)
