"""One class that searches: a bundle in this process, or a running function or server by its URL."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np

from function.engine.quantization import Embeddings

if TYPE_CHECKING:
    import pandas

SECONDS = 60.0  # that a request waits for an answer

Post = Callable[[str, Mapping[str, Any]], Any]  # sends JSON to a path, and returns the JSON of the reply


class RemoteError(RuntimeError):
    """A function or server refused a request. `status` is the HTTP status, and the message is the server's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Hit:
    """A text that was found. Fields that were not asked for are empty, as in a reply of /similar."""

    id: str
    score: float | None  # None where texts are listed without a search
    text: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    index: int = 0  # row of the corpus
    scores: dict[str, float] | None = None
    highlights: list[list[int]] = field(default_factory=list)
    snippet: dict[str, Any] | None = None
    group: str | None = None
    other_passages: list["Hit"] = field(default_factory=list)


class Hits(list[Hit]):
    """The hits of a search, best first, with `facets`, `total`, `corrected` and `truncated` of the reply."""

    def __init__(self, reply: Mapping[str, Any]) -> None:
        """Take a reply of /similar."""
        super().__init__(map(_hit, reply["results"]))
        self.truncated: bool = reply["truncated"]
        self.facets: dict[str, list[dict[str, Any]]] = reply.get("facets") or {}
        self.total: int | None = reply.get("total")
        self.corrected: dict[str, list[str]] = reply.get("corrected") or {}

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a row for each hit: id, score, text, and a column for each field of the metadata."""
        import pandas

        return pandas.DataFrame([{**hit.metadata, "id": hit.id, "score": hit.score, "text": hit.text} for hit in self])


def _hit(result: Mapping[str, Any]) -> Hit:
    others = [_hit(other) for other in result.get("other_passages", ())]
    return Hit(**{**result, "other_passages": others})


class Search:
    """Search a bundle's folder in this process, or a function or server by its URL. Both return the same objects.

    >>> search = Search("bundle/")  # doctest: +SKIP
    >>> search.search("warm coat", filter={"price": {"$lt": 100}}, top_k=3)[0].text  # doctest: +SKIP
    """

    def __init__(self, place: str | Path, *, key: str | None = None, region: str | None = None) -> None:
        """Open a folder, or take an address that begins with http:// or https://.

        key is an API key of the function. With region, requests are signed with the credentials of the environment
        variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, as a function needs whose
        authorization is IAM. Raises BundleError or TensorsError if the folder cannot be used.
        """
        self._post: Post
        if str(place).startswith(("http://", "https://")):
            self._post = _Remote(str(place).rstrip("/"), key, region).post
        else:
            self._post = _Local(Path(place)).post

    def search(
        self,
        text: str | None = None,
        *,
        top_k: int = 5,
        mode: Literal["semantic", "keyword", "hybrid"] | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: Mapping[str, Literal["asc", "desc"]] | None = None,
        facets: Sequence[str] = (),
        offset: int = 0,
        min_score: float | None = None,
        group_by: str | None = None,
        group_size: int = 3,
        highlights: bool = False,
        include: Sequence[Literal["text", "metadata"]] = ("text", "metadata"),
        fusion_weight: float | None = None,
        prefix: bool = False,
        correct: bool = True,
        rerank: int | None = None,
        exact: bool = False,
        id: str | None = None,
    ) -> Hits:
        """Return the texts that are closest to a text, or to the text with an id; with neither, list texts.

        top_k is `num_results` of /similar, and rerank the number of its candidates; docs/api.md explains each argument.
        Raises ValueError for an argument that this bundle or any other cannot use, and RemoteError for any other
        error of a server.
        """
        stated = {name: value for name, value in locals().items() if name not in ("self", "top_k", "rerank")}
        body = {name: value for name, value in stated.items() if value is not None}
        body |= {"num_results": top_k} | ({} if rerank is None else {"rerank": {"candidates": rerank}})
        return Hits(self._post("/similar", body))

    def similar_to(self, id: str, **arguments: Any) -> Hits:
        """Return the texts that are similar to the text with this id; the arguments are those of `search`."""
        return self.search(id=id, **arguments)

    def embed(self, texts: Sequence[str], role: Literal["query", "document"] | None = None) -> Embeddings:
        """Return the unit embeddings of texts, (texts, dim) float32; role is for models with prompts."""
        reply = self._post("/predict", {"text": list(texts), "prompt_name": role})
        return np.array(reply["embeddings"], np.float32)

    async def asearch(self, text: str | None = None, **arguments: Any) -> Hits:
        """Return what `search` returns, from a thread, so that the event loop continues."""
        return await asyncio.to_thread(self.search, text, **arguments)


class _Local:
    """Answers /similar and /predict from an open bundle, with the checks and the JSON of the function's own routes."""

    def __init__(self, folder: Path) -> None:
        from function.engine.loading import load_bundle
        from function.executor import InlineExecutor
        from function.routes.direct import DirectRoute
        from function.routes.predict import TextEmbedding, predict_route
        from function.routes.similar import similar_route
        from function.search.search import make_search
        from function.settings import Settings

        bundle = load_bundle(folder)
        bundle.open_all()  # several threads can search, and an export can replace the folder
        executor, settings = InlineExecutor(bundle.embedder), Settings()
        routes = (
            similar_route(make_search(bundle, executor), settings),
            predict_route(TextEmbedding(bundle.embedder, executor, settings)),
        )
        self._routes: dict[str, DirectRoute] = {route.path: route for route in routes}

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        from pydantic import ValidationError

        from function.errors import describe_errors
        from function.executor import finish
        from function.http import HttpError
        from function.telemetry import Stopwatch

        route = self._routes[path]
        assert route.model is not None
        try:
            # as JSON, as the function reads it: a tuple is not a list
            request = route.model.model_validate_json(json.dumps(body))
            return json.loads(finish(route.answer(request, Stopwatch())))
        except ValidationError as error:
            raise ValueError(describe_errors(error.errors(), "search")) from None
        except HttpError as error:
            raise ValueError(error.detail) from None


class _Remote:
    """Sends requests to a function or server."""

    def __init__(self, url: str, key: str | None, region: str | None) -> None:
        self._url, self._key, self._region = url, key, region

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        content = json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        if self._region is not None:
            headers = self._sign(path, headers, content)
        try:
            with urlopen(Request(self._url + path, content, headers), timeout=SECONDS) as reply:  # noqa: S310
                return json.load(reply)
        except HTTPError as error:
            message = f"{self._url}{path}: {error.code}: {error.read(1_000).decode(errors='replace')}"
            raise (ValueError(message) if error.code in (404, 413, 422) else RemoteError(error.code, message)) from None

    def _sign(self, path: str, headers: dict[str, str], content: bytes) -> dict[str, str]:
        from function.aws import Credentials, sign

        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        if missing := [name for name in names if not os.environ.get(name)]:
            raise ValueError(f"{missing[0]}: not set, expected the credentials that sign requests; set it")
        found = Credentials(*(os.environ[name] for name in names), os.environ.get("AWS_SESSION_TOKEN"))
        url = urlsplit(self._url)
        service = "lambda" if ".lambda-url." in url.netloc else "execute-api"
        assert self._region is not None
        path = url.path + path
        return sign("POST", url.netloc, path, headers, content, found, self._region, service, datetime.now(UTC))
