"""Serve the bundle that the pointer in S3 names, and switch to another one when the pointer changes.

A poll reads the pointer with `If-None-Match`. If it names another version, the poll fetches that bundle beside the
current one, opens it, and makes it current with a single assignment. It runs in a thread, so requests do not wait.
If the pointer has removed other texts of the current version, the poll opens the files that are there in the same way.
active_bundle.py keeps the bundle of each request; a later poll removes the files of bundles without requests.

In Lambda a process is frozen between requests. A request starts the poll when it is due, and a poll that is not
finished continues during later requests. It opens new connections in place of those that broke meanwhile.
"""

import weakref
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

from function.engine.bundle import MODEL, TOKENIZER, BundleError, Manifest, read_manifest
from function.engine.embedder import Embedder
from function.engine.loading import Loaded, LoadedModel, load
from function.engine.published import POINTER, Pointer
from function.engine.tensors import TensorsError
from function.executor import Executor
from function.s3.active_bundle import ActiveBundle, bundle_of_request
from function.s3.fetch import RefusedError, fetch, parse_published
from function.s3.folders import SharedFolder, closed_if_failed, open_shared, own_folder, remove_unused
from function.s3.objects import Objects
from function.s3.polls import Polls
from function.search.not_fetched import is_incomplete
from function.search.query import Found, Lap, Query
from function.search.search import make_search

AT_ONCE_TO_START = 8  # requests to S3 at the same time during the start
AT_ONCE_BESIDE = 2  # the same during a switch, when each thread slows down the requests that are answered meanwhile

Report = Callable[["Status"], None]


@dataclass(frozen=True, slots=True)
class Status:
    """The field `bundle` of GET /info. `error` is the reason why the last poll failed, None if it succeeded.

    `removed` is the number of texts of the bundle that were removed after it was published.
    """

    source: str
    version: str
    fetch_milliseconds: float
    removed: int = 0
    switches: int = 0
    failures: int = 0
    error: str | None = None


class BundleReloader:
    """Fetches and opens the bundle that the pointer names, at the start and each time that the pointer changes."""

    served: ActiveBundle  # `serve` sets it, and a poll replaces it
    _fetched: SharedFolder  # set by `fetch` and deleted by `serve`
    _removed: tuple[int, ...]  # set by `fetch`: the removed rows of the first bundle
    _model: tuple[Path, Manifest] | None = None  # the folder and the manifest of the model that `_opening` opens

    def __init__(
        self, url: str, local: Path, seconds: float, environment: Mapping[str, str], by_requests: bool
    ) -> None:
        """Poll every `seconds`, started by_requests or by a thread.

        If `local` is a bundle with the same model, the model is not fetched.
        """
        self.by_requests = by_requests
        self.status = Status(url, "", 0.0)
        self._objects = Objects(url, environment)
        self._own_folder = own_folder(environment)
        self._local = local
        self._etag: str | None = None
        self._refused: str | None = None  # why the bundle that the pointer names cannot be served
        self.polls = Polls(self._poll, seconds)
        self._report: Report = lambda status: None
        self._executor: Executor | None = None
        self._opening: Future[Embedder] | None = None
        self._unused: deque[SharedFolder] = deque()
        # Runs last at exit, because the newest finalizers run first: by then each ActiveBundle has queued its folder.
        weakref.finalize(self, _leave_nothing, self._unused, self._own_folder)

    def fetch(self) -> None:
        """Fetch the first bundle, and open its model as soon as that is complete. Raises BundleError.

        If another process has fetched the bundle, `open_fetched` opens the model.
        """
        began = perf_counter()
        remove_unused(self._own_folder)
        try:
            pointer, etag = self._read_pointer()
            version, self._removed = pointer.version, pointer.removed_rows
            self._fetched = open_shared(self._own_folder / version, partial(self._fill, version))
        finally:
            self._objects.close()
        self._etag = etag
        milliseconds, removed = _milliseconds(began), len(self._removed)
        self.status = replace(self.status, version=version, fetch_milliseconds=milliseconds, removed=removed)

    def _read_pointer(self) -> tuple[Pointer, str]:
        """Return the pointer and its ETag."""
        answer = self._objects.read(POINTER)
        assert answer is not None  # only a conditional request returns None
        return parse_published(answer.content, self._objects.url), answer.etag

    def _fill(self, version: str, folder: Path) -> None:
        """Fetch a version and open its model meanwhile. Wait for both, because the caller then renames the folder."""
        with ThreadPoolExecutor(1, "model") as opener:

            def open_model(folder: Path, manifest: Manifest) -> None:
                self._opening = opener.submit(Embedder.open, folder, manifest.model)
                self._model = folder, manifest

            fetch(self._objects, version, folder, self._local, AT_ONCE_TO_START, use_model=open_model)

    def load(self) -> Loaded:
        """Open the first bundle, after `fetch`, and serve it. Raises BundleError or TensorsError."""
        return self.serve(self.open_fetched())

    def open_fetched(self) -> Loaded:
        """Open the first bundle, after `fetch`. Raises BundleError or TensorsError."""
        with closed_if_failed(self._fetched):
            embedder = None if self._opening is None else self._opening.result()
            return load(self._fetched.path, embedder)

    def open_model(self) -> LoadedModel | None:
        """Return the model alone while `fetch` runs, None if it has not arrived or if the bundle has nothing else."""
        if self._model is None or self._opening is None:
            return None
        folder, manifest = self._model
        if manifest.index is None:
            return None
        model = LoadedModel(manifest, self._opening.result(), folder)
        return model if is_incomplete(model) else None

    def serve(self, bundle: Loaded) -> Loaded:
        """Serve the bundle that `open_fetched` returned, and return it without its removed rows.

        Raises BundleError if it lacks one of these rows.
        """
        with closed_if_failed(self._fetched):
            self.served = self._activate(bundle, self.status.version, self._fetched, self._removed)
        del self._fetched  # from now on only `served` keeps the folder
        self._opening = self._model = None
        return self.served.bundle

    def connect(self, executor: Executor, report: Report) -> None:
        """Search with this executor, and call `report` with the status after each switch and each failure."""
        self._executor, self._report = executor, report
        self.served.search = make_search(self.served.bundle, executor)

    def begin_request(self) -> ActiveBundle:
        """Return the current bundle, and start a poll if requests start them and one is due."""
        if self.by_requests:
            self.polls.start_if_due()
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
        """Switch to the bundle that the pointer names unless it is the current one; report one that cannot be used."""
        self.polls.run()

    def stop(self) -> None:
        """Abort a running poll: otherwise the process would end only when everything is fetched."""
        self._objects.abort()
        self.polls.stop()

    @property
    def _serves(self) -> tuple[str, tuple[int, ...]]:
        """Return the version that is served, and its removed rows."""
        return self.served.version, self.served.removed

    def _poll(self) -> None:
        try:
            _remove_all(self._unused)  # their last requests have ended, and a newer bundle needs the room
            answer = self._objects.read(POINTER, self._etag)
            if answer is None:
                self.status = replace(self.status, error=self._refused)
            else:
                self._refused = None
                try:
                    pointer = parse_published(answer.content, self._objects.url)
                    self._switch(pointer.version, pointer.removed_rows)
                except (RefusedError, TensorsError) as error:  # the next poll would find the same
                    self._fail(error)
                    self._refused = self.status.error
                self._etag = answer.etag
        except Exception as error:  # noqa: BLE001  reported, and the next poll can succeed
            self._fail(error)
        finally:
            self._objects.close()
            _remove_all(self._unused)

    def _switch(self, version: str, removed: tuple[int, ...]) -> None:
        """Serve another version, or the same one with other removed rows."""
        if (version, removed) != self._serves:
            began = perf_counter()
            self.served = self._open_beside(version, removed)
            self.status = replace(
                self.status,
                version=version,
                fetch_milliseconds=_milliseconds(began),
                removed=len(removed),
                switches=self.status.switches + 1,
                error=None,
            )
            self._report(self.status)
        self.status = replace(self.status, error=None)

    def _fill_beside(self, version: str, folder: Path) -> None:
        local = self.served.bundle.folder
        fetch(self._objects, version, folder, local, AT_ONCE_BESIDE, self._check)

    def _open_beside(self, version: str, removed: tuple[int, ...]) -> ActiveBundle:
        """Open another bundle, or the same one again, with the model that is open already."""
        folder = open_shared(self._own_folder / version, partial(self._fill_beside, version))
        with closed_if_failed(folder):
            try:
                self._check(read_manifest(folder.path))  # a server with another model can have fetched it
                bundle = load(folder.path, self.served.bundle.embedder)
                return self._activate(bundle, version, folder, removed)
            except BundleError as error:  # the files are those that were published: fetching again would not help
                raise RefusedError(str(error)) from error

    def _activate(self, bundle: Loaded, version: str, folder: SharedFolder, removed: tuple[int, ...]) -> ActiveBundle:
        """Return a bundle without its removed rows, with its search once there is an executor.

        Raises BundleError if the bundle lacks one of these rows. The folder is the caller's until this returns.
        """
        if removed:
            from function.s3.removed import without_rows  # few bundles have removed rows

            bundle = without_rows(bundle, removed)
        search = None if self._executor is None else make_search(bundle, self._executor)
        return ActiveBundle(bundle, version, folder, self._unused, removed, search)

    def _check(self, manifest: Manifest) -> None:
        """Raise RefusedError unless the bundle has the model that is open, and texts."""
        open_now = self.served.bundle.manifest
        if manifest.index is None:
            raise RefusedError(f"{self._objects.url}: the bundle holds a model and no texts; publish one with texts")
        same = [manifest.files.get(name) == open_now.files[name] for name in (MODEL, TOKENIZER)]
        if manifest.model != open_now.model or not all(same):
            found = f"the bundle's model is {manifest.model.name} or was exported otherwise"
            expected = f"expected {open_now.model.name} as it is open here"
            advice = "roll back, and publish another model under another prefix"
            raise RefusedError(f"{self._objects.url}: {found}, {expected}; {advice}")

    def _fail(self, error: Exception) -> None:
        is_foreseen = isinstance(error, BundleError | TensorsError | OSError)
        text = str(error) if is_foreseen else repr(error)
        self.status = replace(self.status, failures=self.status.failures + 1, error=text)
        self._report(self.status)

    def info(self) -> dict[str, object]:
        """Return the field `bundle` of GET /info, with the version that answers this request."""
        return asdict(replace(self.status, version=self.of_request().version))


def _leave_nothing(unused: deque[SharedFolder], own_folder: Path) -> None:
    """Remove the folders of this process, and those of its workers, which have ended."""
    _remove_all(unused)
    remove_unused(own_folder)


def _remove_all(unused: deque[SharedFolder]) -> None:
    """Remove the folders that nothing in this process uses any more."""
    while unused:
        unused.popleft().close()


def _milliseconds(began: float) -> float:
    return round((perf_counter() - began) * 1e3, 2)
