"""GET /passages/{id} and GET /documents/{path}: texts without a search. Imported by the first request for one."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Path, Query, Response

from semsearch.app.errors import MISSING
from semsearch.app.http import HttpError
from semsearch.app.routes.error_replies import error_replies
from semsearch.app.routes.replies import refuse_bytes, text_reply
from semsearch.app.settings import Settings
from semsearch.engine.loading import AnyBundle, LoadedBundle, RemoteTextsError, require_texts
from semsearch.search.documents import document_rows, show_around, show_passage
from semsearch.search.executor import Executor
from semsearch.search.query import CHARACTERS_PER_TEXT, MOST_AROUND, SearchError
from semsearch.search.reply import json_bytes
from semsearch.search.request_values import echo
from semsearch.search.results import PATH

if TYPE_CHECKING:
    from semsearch.search.reply_types import DocumentReply

MOST_PASSAGES = 1_000  # maximum passages of one reply
REFUSED_IDS = error_replies(MISSING | {413: "the reply is too large", 422: "invalid"})


def add_documents(app: FastAPI, current: Callable[[], AnyBundle], executor: Executor, settings: Settings) -> None:
    """Add the routes to the app; `current` returns the bundle of the request."""

    def texts() -> LoadedBundle:
        try:
            return require_texts(current())
        except RemoteTextsError as error:
            raise HttpError(404, str(error)) from error

    def checked(content: Any, advice: str) -> Response:
        body = json_bytes(content)
        refuse_bytes(body, settings.max_reply_bytes, "text: the reply", advice)
        return text_reply(body)

    @app.get(
        "/passages/{id:path}",
        responses=REFUSED_IDS,
        summary="A text by its id",
        tags=["search"],
    )
    async def passage(
        id: Annotated[str, Path(max_length=CHARACTERS_PER_TEXT)],
        before: Annotated[
            int, Query(ge=0, le=MOST_AROUND, description="How many passages before it in its document to return.")
        ] = 0,
        after: Annotated[
            int, Query(ge=0, le=MOST_AROUND, description="How many passages after it in its document to return.")
        ] = 0,
    ) -> Response:
        bundle = texts()
        row = await executor.run(lambda: bundle.find(id))
        if row is None:
            raise HttpError(404, f"id: found {echo(id)}, expected the id of a text; search for one")
        try:
            content = await executor.run(lambda: show_around(bundle, row, before, after))
        except SearchError as error:
            raise HttpError(422, str(error)) from error
        return checked(content, "split the long texts of the corpus")

    @app.get(
        "/documents/{path:path}",
        responses=REFUSED_IDS,
        summary="The passages of a document, in order",
        tags=["search"],
    )
    async def document(
        path: Annotated[str, Path(max_length=CHARACTERS_PER_TEXT)],
        offset: Annotated[int, Query(ge=0, le=1_000_000_000, description="How many passages to skip.")] = 0,
        num_results: Annotated[int, Query(ge=1, le=MOST_PASSAGES, description="How many passages to return.")] = 100,
    ) -> Response:
        bundle = texts()
        rows = await executor.run(lambda: document_rows(bundle, path))
        if not len(rows):
            found = "a corpus without documents" if PATH not in bundle.columns.kinds else echo(path)
            raise HttpError(404, f"path: found {found}, expected a value of the column 'path'; search for one")
        passages = [show_passage(bundle, int(row)) for row in rows[offset : offset + num_results]]
        content: DocumentReply = {"path": path, "total": len(rows), "passages": passages}
        return checked(content, "ask for fewer passages with num_results")
