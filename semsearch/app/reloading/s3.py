"""Serve the bundle that the pointer in S3 names, and switch to another one when the pointer changes.

A poll reads the pointer with `If-None-Match`. If it names another version, the poll fetches that bundle beside the
current one, opens it, and makes it current with a single assignment. It runs in a thread, so requests do not wait.
If the pointer has removed other texts of the current version, the poll opens the files that are there in the same way.
A request keeps the bundle that was current when it began; a later poll removes the files of bundles without requests.

In Lambda a process is frozen between requests. A request starts the poll when it is due, and a poll that is not
finished continues during later requests. It opens new connections in place of those that broke meanwhile. After each
poll, metrics say how long ago one ended well, and whether somebody has to do something about it.
"""

import json
import math
import weakref
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from time import monotonic, perf_counter

from semsearch.app.reloading.reloader import ActiveBundle, Reloader, is_final, reason_of
from semsearch.app.settings import Settings
from semsearch.app.telemetry import make_metrics
from semsearch.aws.s3.fetch import fetch, without_rows
from semsearch.aws.s3.folders import SharedFolder, closed_if_failed, open_shared, own_folder, remove_unused
from semsearch.aws.s3.objects import TIMEOUT, Objects, RemoteError
from semsearch.aws.s3.published import POINTER, Pointer, parse_pointer
from semsearch.engine.bundle import BundleError, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import AnyBundle, load
from semsearch.search.making import make_search

AT_ONCE_TO_START = 8  # requests to S3 at the same time during the start
AT_ONCE_BESIDE = 2  # the same during a switch, when each thread slows down the requests that are answered meanwhile
SECONDS_TO_RETRY = 60.0  # maximum pause after a poll that failed, if the pause between polls is longer
# Metrics report a failure after this many polls in a row that failed, and twice the pause between polls and these
# seconds without a good one. Until then nobody has to do anything: the next poll can succeed.
REPORTED_POLLS, SECONDS_TO_REPORT = 2, 300.0
POLL_SECONDS_TO_STOP = TIMEOUT + 1  # time for a stopped poll to fail and to remove what it has written


@dataclass(eq=False)
class PublishedBundle(ActiveBundle):
    """A bundle without its removed rows, and the pointer that names it."""

    pointer: Pointer

    def handover(self) -> bytes:
        """Return the pointer as `parse_pointer` reads it."""
        return json.dumps(asdict(self.pointer)).encode()


class BundleReloader(Reloader):
    """Fetches and opens the bundle that the pointer names, at the start and each time that the pointer changes."""

    served: PublishedBundle
    _fetched: tuple[Pointer, SharedFolder, Embedder | None]  # from `fetch`; None: no model is open yet

    def __init__(self, settings: Settings, environment: Mapping[str, str], *, by_requests: bool) -> None:
        """Poll the `bundle_url` of the settings every `bundle_poll_seconds`, started by_requests or by a thread.

        If `bundle_dir` is a bundle with the same model, the model is not fetched. The environment has the endpoint and
        the credentials.
        """
        super().__init__(settings.bundle_url, settings.bundle_poll_seconds)
        self._settings, self._by_requests = settings, by_requests
        self._objects = Objects(settings.bundle_url, environment)
        self._make_own_folder = partial(own_folder, environment)
        self._own_folder = self._make_own_folder()
        self._etag: str | None = None
        self._refused: str | None = None  # why the bundle that the pointer names cannot be served
        # whether the last poll failed because of the bundle; otherwise nobody could look for one
        self._cannot_use = False
        self._failed_polls = 0  # in a row
        self._unused: deque[SharedFolder] = deque()
        # Finalizers run newest first at exit, so this one runs after each ActiveBundle has queued its folder.
        weakref.finalize(self, _leave_nothing, self._unused, self._own_folder)
        self._polling = Lock()
        self._last_poll = monotonic()

    def fetch(self) -> None:
        """Fetch the first bundle, and open its model meanwhile. Raises BundleError."""
        began = perf_counter()
        remove_unused(self._own_folder)
        local, embedder = self._settings.bundle_dir, None
        with closing(self._objects), self._objects.limited():
            answer = self._objects.read(POINTER)
            assert answer is not None  # only a conditional request returns None
            content, self._etag = answer
            pointer = parse_pointer(content, f"{self._objects.url}/{POINTER}")

            def fill(folder: Path) -> None:
                nonlocal embedder
                embedder = fetch(self._objects, pointer.version, folder, local, AT_ONCE_TO_START, Embedder.open)

            self._fetched = pointer, open_shared(self._own_folder / pointer.version, fill), embedder
        self._set_version(pointer.version, began, len(pointer.removed_rows))

    def load(self) -> AnyBundle:
        """Open the first bundle, after `fetch`, and serve it. Raises BundleError or TensorsError."""
        self.served = self._open(*self._fetched)
        del self._fetched  # from now on only `served` keeps the folder
        return self.served.bundle

    def _resume(self, left: bytes) -> None:
        """Open the bundle that the process before this one served, unless its files are gone."""
        self._etag = self._refused = None  # the next poll reads the pointer, also if it is that of the server's start
        if not left:
            raise BundleError(
                f"{self.status.source}: the version that was served is not known; a poll takes the current"
            )
        pointer = parse_pointer(left, "the pointer of the worker before this one")
        folder = self._own_folder / pointer.version
        if not folder.is_dir():
            raise BundleError(f"{folder}: is gone, expected the bundle that was served; a poll fetches the current one")
        self._switch(pointer)

    def _begin_request(self) -> PublishedBundle:
        is_due = monotonic() - self._last_poll >= self._seconds_to_next_poll()
        if self._by_requests and is_due and not self._polling.locked():
            self._last_poll = monotonic()
            Thread(target=self.poll, name="poll", daemon=True).start()
        return self.served

    def make_poll_due(self) -> None:
        """Let the next request start a poll."""
        self._last_poll = -math.inf

    def stop(self) -> None:
        """Stop polling: otherwise the process would end only when everything is fetched."""
        self._objects.stop()
        super().stop()
        if self._thread is not None:
            self._thread.join(POLL_SECONDS_TO_STOP)

    def _seconds_to_next_poll(self) -> float:
        if self._failed_polls:
            return min(self._poll_seconds, SECONDS_TO_RETRY)
        return self._poll_seconds

    def poll(self) -> None:
        """Poll once, and report what was found. Returns at once if another thread polls."""
        if not self._polling.acquire(blocking=False):
            return
        try:
            super().poll()
            if self.status.error is None:
                self._failed_polls = 0
            if self._by_requests:
                self._send_metrics()
        finally:
            self._last_poll = monotonic()
            self._polling.release()

    def _look(self) -> None:
        """Switch to the bundle that the pointer names unless it is the current one.

        Raises RemoteError if S3 cannot be read, and BundleError, again at each poll, for a bundle that is refused.
        """
        with closing(self._objects), self._objects.limited():
            _remove_all(self._unused)  # their last requests have ended, and a newer bundle needs the room
            self._follow_pointer()
        _remove_all(self._unused)

    def _follow_pointer(self) -> None:
        self._cannot_use = False
        answer = self._objects.read(POINTER, self._etag)
        if answer is None and self._refused is not None:
            self._cannot_use = True
            raise BundleError(self._refused)
        if answer is None:
            self.status.error = None
            return
        content, etag = answer
        self._refused = None
        try:
            self._switch(parse_pointer(content, f"{self._objects.url}/{POINTER}"))
        except RemoteError:
            raise
        except Exception as error:
            # an OSError is a lack of this machine, such as of free file descriptors
            self._cannot_use = not isinstance(error.__cause__ or error, OSError)
            if is_final(error):
                self._refused, self._etag = reason_of(error), etag
            raise
        self._etag = etag

    def _switch(self, pointer: Pointer) -> None:
        served = self.served.pointer
        is_other = (pointer.version, pointer.removed_rows) != (served.version, served.removed_rows)
        if is_other or self.served.is_behind:
            began = perf_counter()
            self._serve(self._open_beside(pointer))
            self._switched(pointer.version, began, len(pointer.removed_rows))
        self.status.error = None

    def _open_beside(self, pointer: Pointer) -> PublishedBundle:
        current = self.served.bundle

        def fill(folder: Path) -> None:
            fetch(self._objects, pointer.version, folder, current.folder, AT_ONCE_BESIDE)

        # made again here: systems remove folders below /tmp that have been unused for some days
        folder = open_shared(self._make_own_folder() / pointer.version, fill)
        with closed_if_failed(folder):
            advice = "start this process again if that one is meant, otherwise roll back to a version of this model"
            self._check_model(read_manifest(folder.path), advice)
        return self._open(pointer, folder, current.embedder)

    def _open(self, pointer: Pointer, folder: SharedFolder, embedder: Embedder | None) -> PublishedBundle:
        """Open a fetched bundle without its removed rows, with its search once there is an executor.

        Raises BundleError if the bundle lacks one of these rows. After any error the folder is closed.
        """
        with closed_if_failed(folder):
            bundle = load(folder.path, embedder)
            if pointer.removed_rows:
                bundle = without_rows(bundle, pointer.removed_rows)
            search = None if self._executor is None else make_search(bundle, self._executor)
            active = PublishedBundle(bundle, pointer.version, search, pointer)
        # When nothing, such as a request, refers to this object any more, only queue its folder: deleting is slow, and
        # the last reference is often dropped inside a request.
        weakref.finalize(active, self._unused.append, folder)
        return active

    def _fail(self, reason: str) -> None:
        self._failed_polls += 1
        super()._fail(reason)

    def _failure(self) -> str:
        if self._cannot_use:
            return super()._failure()
        return "bundle look failed"

    def _send_metrics(self) -> None:
        """Send how many seconds ago the last poll ended well, and what somebody has to do something about."""
        seconds = self.seconds_since_look()
        has_lasted = seconds >= 2 * self._poll_seconds + SECONDS_TO_REPORT
        is_reported = has_lasted and self._failed_polls >= REPORTED_POLLS
        metrics = make_metrics(self._settings)
        metrics.add_metric("SecondsSinceLook", "Seconds", seconds)
        metrics.add_metric("LookFailed", "Count", float(is_reported and not self._cannot_use))
        metrics.add_metric("SwitchFailed", "Count", float(is_reported and self._cannot_use))
        metrics.flush_metrics()


def _leave_nothing(unused: deque[SharedFolder], own_folder: Path) -> None:
    """Remove the folders of this process, and those of its workers, which have ended."""
    _remove_all(unused)
    remove_unused(own_folder)


def _remove_all(unused: deque[SharedFolder]) -> None:
    while unused:
        unused.popleft().close()
