"""POST /similar: the texts that are closest to a text, in meaning, in words or in both."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from semsearch.app.errors import BACKEND, MISSING, REFUSED
from semsearch.app.http import HttpError
from semsearch.app.routes.direct import DirectRoute
from semsearch.app.routes.replies import refuse_bytes
from semsearch.app.routes.texts import refuse_query
from semsearch.app.settings import Settings
from semsearch.app.telemetry import Stopwatch
from semsearch.engine.errors import BackendError
from semsearch.search.query import SearchError, SearchFunction, UnknownIdError, query_of
from semsearch.search.reply import json_bytes

if TYPE_CHECKING:
    from semsearch.search.request import SimilarRequest


def similar_route(search: SearchFunction, settings: Settings, note: Callable[[], str] | None = None) -> DirectRoute:
    """Return the route. A text with too many characters and a reply with too many bytes are answered with 413.

    note returns what the field `index` of a reply says, "" if it is left out. Without `note`, no reply has the field.
    """

    async def similar(body: "SimilarRequest", stopwatch: Stopwatch) -> bytes:
        stopwatch.lap("parse")
        refuse_query(body, settings)
        try:
            found = await search(query_of(body), stopwatch.lap)
        except SearchError as error:
            raise HttpError(404 if isinstance(error, UnknownIdError) else 422, str(error)) from None
        except BackendError as error:
            if error.seconds is None:
                raise HttpError(502, str(error)) from error
            raise HttpError(429, str(error), {"retry-after": str(error.seconds)}) from error
        content = found.reply()
        if note is not None and (said := note()):
            content["index"] = said
        reply = json_bytes(content)
        refuse_large_reply(reply, len(found.results), settings)
        stopwatch.lap("reply")
        return reply

    return DirectRoute(
        "POST",
        "/similar",
        similar,
        summary="The texts closest to a text",
        responses=REFUSED | BACKEND | MISSING,
        tag="search",
    )


def refuse_large_reply(body: bytes, results: int, settings: Settings) -> None:
    """Raise HttpError with status 413 if a reply with this number of results is too large."""
    advice = "split the long texts of the corpus"
    if results > 1:
        advice = "ask for fewer"
    refuse_bytes(body, settings.max_reply_bytes, f"num_results: the reply with {results}", advice)
