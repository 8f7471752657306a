"""The bundle and the search of each request, limited to the texts that pass the filter that is bound to it."""

import json
from collections.abc import Callable
from typing import Any

from semsearch.app.access.binding import bound_filter
from semsearch.app.http import HttpError
from semsearch.engine.loading import AnyBundle, LoadedBundle, RemoteTextsError, require_texts
from semsearch.engine.metadata.filters import FilterError
from semsearch.search.executor import Executor
from semsearch.search.making import make_search
from semsearch.search.query import Lap, Query, SearchFunction
from semsearch.search.results import Found

ASK = "ask the operator of this server"
UNFIT = "key: its filter does not fit this bundle"  # what a caller reads, who must not learn the columns
MOST_VIEWS = 64  # maximum number of views that are kept open; each takes one byte for each text of the corpus


class Views:
    """Returns the bundle and the search for each request, limited to the texts that match its bound filter."""

    def __init__(self, current: Callable[[], AnyBundle], search: SearchFunction, executor: Executor) -> None:
        """Take the function that returns the whole bundle of the current request, and the search over that bundle."""
        self._whole, self._search, self._executor = current, search, executor
        self._open: dict[str, tuple[AnyBundle, LoadedBundle, SearchFunction]] = {}

    def current(self) -> AnyBundle:
        """Return the bundle for the current request, or a view of it if a filter is bound.

        Raises HttpError with 503 if the filter does not fit the bundle.
        """
        condition = bound_filter.get()
        if condition is None:
            return self._whole()
        return self._view(condition)[0]

    async def search(self, query: Query, lap: Lap) -> Found:
        """Search the bundle, or the view of it that the current request may see."""
        condition = bound_filter.get()
        if condition is None:
            return await self._search(query, lap)
        view, search = self._view(condition)
        found = await search(query, lap)
        for result in found.results:
            for each in (result, *result.get("other_passages", ())):
                each["index"] = view.number(each["index"])
        return found

    def _view(self, condition: dict[str, Any]) -> tuple[LoadedBundle, SearchFunction]:
        whole, name = self._whole(), json.dumps(condition, sort_keys=True)
        if (known := self._open.get(name)) is None or known[0] is not whole:
            try:
                view = require_texts(whole).view(condition)
            except RemoteTextsError as error:
                found = "key: its filter needs texts in the bundle, found them in S3 Vectors"
                raise HttpError(503, f"{found}; {ASK}") from error
            except FilterError as error:
                # without the filter's values, which can be those of a token's claim
                reason = (
                    f"a filter over {', '.join(condition)} does not fit the columns {', '.join(whole.column_kinds)}"
                )
                raise HttpError(503, f"{UNFIT}; {ASK}", reason=reason) from error
            known = whole, view, make_search(view, self._executor)
            # drop the views of a bundle that was replaced
            kept = [each for each in self._open.items() if each[1][0] is whole][1 - MOST_VIEWS :]
            self._open = {**dict(kept), name: known}
        return known[1:]
