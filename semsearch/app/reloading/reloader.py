"""Serve one bundle after another: of a folder, or, by semsearch/app/reloading/s3.py, of a pointer in S3.

A request keeps the bundle that was current when it began. A poll runs in a thread, opens a new bundle beside the
current one, and makes it current with a single assignment.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, time
from typing import TYPE_CHECKING

from semsearch.app.http import ASGIApp, Message, Receive, Scope, Send
from semsearch.app.telemetry import Log
from semsearch.engine.bundle import MANIFEST, BundleError, Manifest, check_files, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import AnyBundle, load
from semsearch.engine.tensors import TensorsError
from semsearch.search.executor import Executor
from semsearch.search.making import make_search
from semsearch.search.query import Lap, Query, SearchFunction
from semsearch.search.results import Found

if TYPE_CHECKING:
    from semsearch.app.freshness import Since
    from semsearch.app.shared_memory import Handover  # workers of a server have one; a function has none

BundleFiles = dict[str, tuple[int, int, int]]  # by name: inode, bytes, and nanoseconds of the last change

VERSION_CHARACTERS = 12  # first characters of a version in the header `x-bundle`
SECONDS_BETWEEN_LOOKS = 0.5  # between two looks at the files in a folder


@dataclass(eq=False)
class ActiveBundle:
    """One bundle, its version, the SHA-256 of its manifest, and the search over it, made by `connect`.

    A bundle that `is_behind` is older than the one that the process before this one served. Its version is "", and the
    server answers no search until it is replaced.
    """

    bundle: AnyBundle
    version: str
    search: SearchFunction | None
    is_behind: bool = field(default=False, kw_only=True)

    def handover(self) -> bytes:
        """Return what the process that replaces this one needs to serve the same."""
        return self.version.encode()


# the bundle of the request that is being answered; None outside of requests
bundle_of_request: ContextVar[ActiveBundle | None] = ContextVar("bundle of the request", default=None)


@dataclass(slots=True)
class Status:
    """The field `bundle` of GET /info. `error` is the reason why the last poll failed, None if it succeeded.

    `loaded_at` is the time, in Unix seconds, when this process loaded the version. `looked_at` is the time when it last
    found that this is the current one; GET /info shows the seconds since then. `removed` is the number of texts of the
    bundle that were removed after it was published to S3.
    """

    source: str
    version: str = ""
    loaded_at: float = 0.0
    looked_at: float = 0.0
    fetch_milliseconds: float = 0.0
    removed: int = 0
    switches: int = 0
    failures: int = 0
    error: str | None = None


class Reloader:
    """What all reloaders share: a bundle for each request, and a thread that polls. `_look` is the subclass's."""

    served: ActiveBundle  # `load` of the subclass sets it, and a poll replaces it
    # more about where the bundle comes from, for GET /info: such as what `serve --watch` reports
    more_info: Callable[[], Mapping[str, object]] = staticmethod(dict)
    # what has happened since the index was made, if a process updates it
    since: "Callable[[], Since] | None" = None
    on_change: Callable[[Status], None] = staticmethod(lambda _: None)  # called when a field of `status` has changed

    def __init__(self, source: str, poll_seconds: float) -> None:
        self.status: Status = Status(source)
        self._poll_seconds = poll_seconds
        self._executor: Executor | None = None
        self._logger: Log | None = None
        self._is_stopped = False
        self._is_due = Event()
        self._thread: Thread | None = None
        self._handover: Handover | None = None

    def connect(self, executor: Executor, logger: Log) -> None:
        """Search with this executor, and log each switch and each failure."""
        self._executor, self._logger = executor, logger
        self.served.search = make_search(self.served.bundle, executor)

    def follow(self, handover: "Handover") -> None:
        """Serve what the process before this one served, and leave what this one serves to the next one.

        A new worker is a copy of the process that opened the bundle of the server's start. If it cannot open the newer
        one now, its bundle is behind until a poll succeeds.
        """
        self._handover = handover
        left = handover.read()
        if left is None or left == self.served.handover():
            return
        self.served = replace(self.served, version="", is_behind=True)
        self.status.version = ""
        try:
            self._resume(left)
        except Exception as error:  # noqa: BLE001  reported, and a poll can succeed
            self._fail(reason_of(error))

    def _resume(self, left: bytes) -> None:
        """Serve what the process before this one left, if it is on the disk. `left` is b"" if that is not known."""
        raise NotImplementedError

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
        """Switch to another bundle if there is one. Any failure is reported, so that the next poll takes place."""
        try:
            self._look()
        except Exception as error:  # noqa: BLE001  reported, and the next poll can succeed
            self._fail(reason_of(error))
            return
        if self.status.error is None:
            self.status.looked_at = time()
            self.on_change(self.status)

    def _look(self) -> None:
        """Switch to another bundle if there is one; report one that cannot be used."""
        raise NotImplementedError

    def poll_forever(self) -> None:
        """Start a thread that polls at once, then at each interval and after `poll_now`, until `stop`."""

        def run() -> None:
            while not self._is_stopped:
                self.poll()
                self._is_due.wait(self._seconds_to_next_poll())
                self._is_due.clear()

        self._thread = Thread(target=run, name="poll", daemon=True)
        self._thread.start()

    def _seconds_to_next_poll(self) -> float:
        return self._poll_seconds

    def poll_now(self) -> None:
        """Let the thread poll at once, or once more if it polls just now."""
        self._is_due.set()

    def stop(self) -> None:
        """Stop polling."""
        self._is_stopped = True
        self._is_due.set()

    def _serve(self, active: ActiveBundle) -> None:
        """Make a bundle current. It is left to the next process first, so that no reply is newer than what is left."""
        if self._handover is not None:
            self._handover.write(active.handover())
        self.served = active

    def _switched(self, version: str, began: float, removed: int = 0) -> None:
        message = "bundle switched"
        if version == self.status.version:
            message = "texts removed"
        self._set_version(version, began, removed)
        self.status.error = None
        self.status.switches += 1
        self._logger_of_app().info(message, extra=self._log_fields() | {"removed": removed})
        self.on_change(self.status)

    def _set_version(self, version: str, began: float, removed: int = 0) -> None:
        """Note the version that is served now, which took the time since `began`, by perf_counter."""
        self.status.version, self.status.removed, self.status.loaded_at = version, removed, round(time(), 3)
        self.status.looked_at = self.status.loaded_at
        self.status.fetch_milliseconds = round((perf_counter() - began) * 1e3, 2)

    def _check_model(self, manifest: Manifest, advice: str) -> None:
        """Raise BundleError unless the bundle embeds with the files that are open."""
        if not manifest.has_model_of(self.served.bundle.manifest):
            found = f"another model, {manifest.model.name}, or the same converted with other options"
            if not manifest.has_model:
                found = f"embeddings of another model, {manifest.model.name} with {manifest.model.dim} dimensions"
            raise BundleError(f"{self.status.source}: holds {found}, expected the one that is served; {advice}")

    def _fail(self, reason: str) -> None:
        """Count and log a failure, and show it in GET /info."""
        self.status.failures += 1
        self.status.error = reason
        self._logger_of_app().error(self._failure(), extra=self._log_fields() | {"error": self.status.error})
        self.on_change(self.status)

    def _failure(self) -> str:
        """Return the message of the log line of a poll that failed."""
        return "bundle switch failed"

    def _logger_of_app(self) -> Log:
        assert self._logger is not None  # connect set it
        return self._logger

    def _log_fields(self) -> dict[str, object]:
        status = self.status
        return {
            "bundle": status.source,
            "version": status.version[:VERSION_CHARACTERS],
            "milliseconds": status.fetch_milliseconds,
        }

    def info(self) -> dict[str, object]:
        """Return the field `bundle` of GET /info, with the version that answers this request."""
        fields = asdict(self.status)
        del fields["looked_at"]
        fields |= {"version": self.of_request().version, "seconds_since_look": round(self.seconds_since_look(), 3)}
        return {**fields, **self.more_info()}

    def seconds_since_look(self) -> float:
        """Return how many seconds ago a poll last found that the version that is served is the current one."""
        return max(0.0, time() - self.status.looked_at)


def reason_of(error: Exception) -> str:
    """Return the reason of a failed poll for people: an unforeseen error is shown with its type."""
    if isinstance(error, BundleError | TensorsError | OSError):
        return str(error)
    return repr(error)


def is_final(error: Exception) -> bool:
    """Return whether a bundle that could not be opened would fail again: not if the disk or a limit was the reason."""
    return isinstance(error, BundleError | TensorsError) and not isinstance(error.__cause__, OSError)


class FolderReloader(Reloader):
    """Serves the bundle in a folder, and each one that takes its place.

    `index` removes manifest.json before it moves other files, and moves the new one last. A copy can write the files in
    any order, and takes its time. So they are opened when two looks have found the same, and again when one of them has
    changed. A bundle is whole if its files are the same before and after they were opened.
    """

    def __init__(self, folder: Path, poll_seconds: float = SECONDS_BETWEEN_LOOKS, *, verify: bool = False) -> None:
        """Serve this folder, after `load`. With `verify`, each file of a bundle is compared with its SHA-256 first."""
        super().__init__(str(folder), poll_seconds)
        self._folder = folder
        self._verify = verify
        self._served_files: BundleFiles | None = None
        self._refused_files: BundleFiles | None = None
        self._last_files: BundleFiles | None = None  # at the last look

    def load(self) -> AnyBundle:
        """Open the first bundle, and serve it. Raises BundleError or TensorsError."""
        began = perf_counter()
        self._served_files = self._files()
        self.served = self._open(self._version(), None)
        self._set_version(self.served.version, began)
        return self.served.bundle

    def _resume(self, left: bytes) -> None:
        """Serve the bundle in the folder, which is that of the process before this one or a newer one."""
        self._served_files = None
        self._switch(self._files())

    def _look(self) -> None:
        """Switch to the bundle in the folder if its files are other ones, and hold the same model."""
        files = self._files()
        are_written = files != self._last_files
        self._last_files = files
        if files == self._served_files:
            self.status.error = self._refused_files = None
        elif not are_written and files != self._refused_files:
            self._switch(files)

    def _switch(self, files: BundleFiles) -> None:
        """Open these files, and serve them. Raises BundleError and other errors if that is not possible."""
        began = perf_counter()
        try:
            version = self._version()
            if not version:
                raise BundleError(f"{self._folder}: holds no {MANIFEST}; a process that starts now would fail")
            self._check_model(read_manifest(self._folder), "start this process again")
            active = self._open(version, self.served.bundle.embedder)
        except Exception as error:
            if self._files() != files:  # they are being replaced, and a later look opens them
                return
            if is_final(error):
                self._refused_files = files
            raise
        if self._files() != files:
            return
        self._served_files, self._refused_files = files, None
        is_other = version != self.status.version
        self._serve(active)
        self.status.error = None
        if is_other:
            self._switched(version, began)

    def _fail(self, reason: str) -> None:
        """Report a failure, but not again at each look."""
        if self.status.error != reason:
            super()._fail(reason)

    def _open(self, version: str, embedder: Embedder | None) -> ActiveBundle:
        if self._verify:
            check_files(self._folder)
        bundle = load(self._folder, embedder)
        bundle.open_all()
        return ActiveBundle(bundle, version, None if self._executor is None else make_search(bundle, self._executor))

    def _version(self) -> str:
        """Return the version of the bundle in the folder, "" while there is none."""
        try:
            return sha256((self._folder / MANIFEST).read_bytes()).hexdigest()
        except FileNotFoundError:
            return ""

    def _files(self) -> BundleFiles:
        """Return the states of the files in the folder, none while there is no folder."""
        found = {}
        with suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it has just been removed
                    status = entry.stat()
                    found[entry.name] = status.st_ino, status.st_size, status.st_mtime_ns
        return found
