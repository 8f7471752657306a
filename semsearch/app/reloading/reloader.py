"""Serve one bundle after another: of a folder, or, by semsearch/app/reloading/s3.py, of a pointer in S3.

A request keeps the bundle that was current when it began. A poll runs in a thread, opens a new bundle beside the
current one, and makes it current with a single assignment.
"""

from contextvars import ContextVar
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

from semsearch.app.http import ASGIApp, Message, Receive, Scope, Send
from semsearch.app.telemetry import Log
from semsearch.aws.search import make_search
from semsearch.engine.bundle import MANIFEST, MODEL, TOKENIZER, BundleError, Manifest, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import Loaded, load
from semsearch.engine.tensors import TensorsError
from semsearch.search.executor import Executor
from semsearch.search.query import Lap, Query, SearchFunction
from semsearch.search.results import Found

VERSION_CHARACTERS = 12  # first characters of a version in the header `x-bundle`
SECONDS_BETWEEN_LOOKS = 1.0  # between two looks at manifest.json in a folder


@dataclass(eq=False)
class ActiveBundle:
    """One bundle, its version, the SHA-256 of its manifest, and the search over it, made by `connect`."""

    bundle: Loaded
    version: str
    search: SearchFunction | None


# the bundle of the request that is being answered; None outside of requests
bundle_of_request: ContextVar[ActiveBundle | None] = ContextVar("bundle of the request", default=None)


@dataclass(slots=True)
class Status:
    """The field `bundle` of GET /info. `error` is the reason why the last poll failed, None if it succeeded.

    `removed` is the number of texts of the bundle that were removed after it was published to S3.
    """

    source: str
    version: str = ""
    fetch_milliseconds: float = 0.0
    removed: int = 0
    switches: int = 0
    failures: int = 0
    error: str | None = None


class Reloader:
    """What all reloaders share: a bundle for each request, and a thread that polls. `poll` is the subclass's."""

    served: ActiveBundle  # `load` of the subclass sets it, and a poll replaces it

    def __init__(self, source: str, poll_seconds: float) -> None:
        self.status = Status(source)
        self._poll_seconds = poll_seconds
        self._executor: Executor | None = None
        self._logger: Log | None = None
        self._is_stopped = Event()
        self._thread: Thread | None = None

    def connect(self, executor: Executor, logger: Log) -> None:
        """Search with this executor, and log each switch and each failure."""
        self._executor, self._logger = executor, logger
        self.served.search = make_search(self.served.bundle, executor)

    def per_request(self, app: ASGIApp) -> ASGIApp:
        """Return an app that assigns one bundle to each request, and names it in the reply's header `x-bundle`."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            served = self._begin_request()
            name = served.version[:VERSION_CHARACTERS].encode()

            async def send_named(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message["headers"], (b"x-bundle", name)]
                await send(message)

            token = bundle_of_request.set(served)
            try:
                await app(scope, receive, send_named)
            finally:
                bundle_of_request.reset(token)

        return answer

    def _begin_request(self) -> ActiveBundle:
        return self.served

    def of_request(self) -> ActiveBundle:
        """Return the bundle of the request that is being answered, or the current one outside of requests."""
        return bundle_of_request.get() or self.served

    async def search(self, query: Query, lap: Lap) -> Found:
        """Search the bundle of the request that is being answered."""
        search = self.of_request().search
        assert search is not None  # connect made it
        return await search(query, lap)

    def poll(self) -> None:
        """Switch to another bundle if there is one; report one that cannot be used."""
        raise NotImplementedError

    def poll_forever(self) -> None:
        """Start a thread that polls at once, and then at each interval until `stop`."""

        def run() -> None:
            self.poll()
            while not self._is_stopped.wait(self._poll_seconds):
                self.poll()

        self._thread = Thread(target=run, name="poll", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop polling."""
        self._is_stopped.set()

    def _switched(self, version: str, began: float, removed: int = 0) -> None:
        self.status.version, self.status.removed, self.status.error = version, removed, None
        self.status.fetch_milliseconds = round((perf_counter() - began) * 1e3, 2)
        self.status.switches += 1
        self._report()

    def _check_model(self, manifest: Manifest, advice: str) -> None:
        """Raise BundleError unless the bundle embeds with the files that are open."""
        is_open = self.served.bundle.manifest
        same = [manifest.files.get(name) == is_open.files[name] for name in (MODEL, TOKENIZER)]
        if manifest.model != is_open.model or not all(same):
            found = f"another model, {manifest.model.name}, or the same converted with other options"
            raise BundleError(f"{self.status.source}: holds {found}, expected the one that is open; {advice}")

    def _fail(self, error: Exception) -> None:
        is_foreseen = isinstance(error, BundleError | TensorsError | OSError)
        self.status.failures += 1
        self.status.error = str(error) if is_foreseen else repr(error)
        self._report()

    def _report(self) -> None:
        """Log a switch or a failure."""
        status, logger = self.status, self._logger
        assert logger is not None  # connect set it
        fields = {"bundle": status.source, "version": status.version[:12], "milliseconds": status.fetch_milliseconds}
        if status.error is None:
            logger.info("bundle switched", extra=fields)
        else:
            logger.info("bundle switch failed", extra=fields | {"error": status.error})

    def info(self) -> dict[str, object]:
        """Return the field `bundle` of GET /info, with the version that answers this request."""
        return asdict(self.status) | {"version": self.of_request().version}


class FolderReloader(Reloader):
    """Serves the bundle in a folder, and each one that `index` puts in its place.

    `index` removes manifest.json before it moves other files, and moves the new one last. So a bundle is whole if its
    manifest is the same before and after the files were opened.
    """

    def __init__(self, folder: Path, poll_seconds: float = SECONDS_BETWEEN_LOOKS) -> None:
        """Serve this folder, after `load`."""
        super().__init__(str(folder), poll_seconds)
        self._folder = folder
        self._seen = ""  # the newest version that was opened or refused

    def load(self) -> Loaded:
        """Open the first bundle, and serve it. Raises BundleError or TensorsError."""
        self.served = self._open(self._version(), None)
        self._seen = self.status.version = self.served.version
        return self.served.bundle

    def poll(self) -> None:
        """Switch to the bundle in the folder if it is another one with the same model."""
        began, version = perf_counter(), self._version()
        if version in ("", self._seen):
            return
        try:
            self._check_model(read_manifest(self._folder), "start this process again")
            served = self._open(version, self.served.bundle.embedder)
        except Exception as error:  # noqa: BLE001  reported
            if self._version() == version:  # otherwise the files were being replaced, and the next poll opens them
                self._seen = version
                self._fail(error)
            return
        if self._version() == version:
            self._seen, self.served = version, served
            self._switched(version, began)

    def _open(self, version: str, embedder: Embedder | None) -> ActiveBundle:
        bundle = load(self._folder, embedder)
        bundle.open_all()
        return ActiveBundle(bundle, version, None if self._executor is None else make_search(bundle, self._executor))

    def _version(self) -> str:
        """Return the version of the bundle in the folder, "" while there is none."""
        try:
            return sha256((self._folder / MANIFEST).read_bytes()).hexdigest()
        except FileNotFoundError:
            return ""
