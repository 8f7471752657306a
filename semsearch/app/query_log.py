"""A log line for each query, if the operator wants one."""

from semsearch.app.cold_start import ColdStart
from semsearch.app.telemetry import Log
from semsearch.search.query import Lap, Query, SearchFunction
from semsearch.search.results import Found


def log_queries(search: SearchFunction, logger: Log, cold_start: ColdStart) -> SearchFunction:
    """Return a search that logs each query with a text, its number of results and its best score.

    Queries of warm-ups, before the end of the start, are not logged.
    """

    async def logged(query: Query, lap: Lap) -> Found:
        found = await search(query, lap)
        if query.text is not None and cold_start.is_over:
            best = max(found.scores, default=None)
            logger.info("query", extra={"query": query.text, "results": len(found.results), "best_score": best})
        return found

    return logged
