"""Answer requests for embeddings before the rest of a large bundle has arrived from S3.

Lambda stops a start after 10 seconds, and a function fetches some 78 MB a second unless AWS grants it more. So a start
waits up to START_SECONDS for the files. After that it serves the model, whose files are fetched first. The fetch goes
on in its thread, and a poll makes the bundle the current one when it is open.

In Lambda a thread runs only during requests. So a search waits some seconds for the bundle before it is refused.
"""

from concurrent.futures import Future, wait
from time import monotonic, sleep

from function.engine.loading import Loaded
from function.engine.published import START_SECONDS
from function.executor import Executor
from function.s3.active_bundle import ActiveBundle
from function.s3.reloader import BundleReloader, Report
from function.search.not_fetched import NotFetchedError, is_incomplete
from function.search.query import Found, Lap, Query

WAIT_SECONDS = 5.0  # time that a search waits for the bundle
SECONDS_BETWEEN_LOOKS = 0.02  # pause between two checks while a search or a start waits


class EarlyReloader(BundleReloader):
    """A BundleReloader that can serve the model of its first bundle before the other files have arrived."""

    _late: tuple[Future[None], Future[Loaded]] | None = None

    def wait_for_files(self, fetching: Future[None], elapsed: float, kind: str) -> None:
        """Wait until the files have arrived or START_SECONDS are over, of which `elapsed` seconds have passed.

        `kind` is AWS_LAMBDA_INITIALIZATION_TYPE: only "on-demand" limits a start to 10 seconds.
        """
        wait([fetching], START_SECONDS - elapsed if kind == "on-demand" else None)

    def serve_first(self, fetching: Future[None], opening: Future[Loaded]) -> Loaded:
        """Serve the first bundle or, while that is being fetched, its model alone. Return what is served.

        The futures are those of `fetch` and `open_fetched`. If the model has not arrived, this waits for it.
        Raises BundleError or TensorsError.
        """
        while self._model is None and not fetching.done():
            sleep(SECONDS_BETWEEN_LOOKS)
        model = None if fetching.done() else self.open_model()
        if model is None:
            fetching.result()
            return self.serve(opening.result())
        self._late = fetching, opening
        self.served = ActiveBundle(model, "", None, self._unused)
        return model

    @property
    def is_early(self) -> bool:
        """Return whether the model is served alone."""
        return is_incomplete(self.served.bundle)

    def connect(self, executor: Executor, report: Report) -> None:
        """Search with this executor, and call `report` with the status after each switch and each failure."""
        if self.is_early:
            self._executor, self._report = executor, report
        else:
            super().connect(executor, report)

    def begin_request(self) -> ActiveBundle:
        """Return the current bundle, and start a poll if one is due; while the model is alone, one always is."""
        if self.is_early:
            self.polls.make_due()
        return super().begin_request()

    async def search(self, query: Query, lap: Lap) -> Found:
        """Search the bundle of the request. Raises NotFetchedError if it does not arrive in WAIT_SECONDS."""
        if not is_incomplete(self.of_request().bundle):
            return await super().search(query, lap)
        assert self._executor is not None  # connect set it
        await self._executor.wait(self._wait_for_corpus)
        lap("fetch")
        if self.served.search is None:
            raise NotFetchedError(self.status.error)
        return await self.served.search(query, lap)

    def _poll(self) -> None:
        if self._late is None:
            super()._poll()
        else:
            (fetching, opening), self._late = self._late, None
            try:
                fetching.result()
                self.serve(opening.result())
                self._report(self.status)
            except Exception as error:  # noqa: BLE001  reported, and the next poll fetches again
                self._fail(error)

    def _wait_for_corpus(self) -> None:
        end = monotonic() + WAIT_SECONDS
        while self.is_early and monotonic() < end:
            sleep(SECONDS_BETWEEN_LOOKS)
