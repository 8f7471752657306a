"""The class `Search`, which searches a bundle in this process, or a running function or server by its address."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from semsearch.client.hits import Hits
from semsearch.engine.bundle import check_files
from semsearch.engine.quantization import Embeddings

REPLY_SECONDS = 60.0  # timeout of a request to a function or server
Post = Callable[[str, Mapping[str, Any]], Any]  # sends JSON to a route, and returns the parsed JSON of the reply


class Search:
    """Search a bundle in this process, or a function or server by its URL. Both return the same objects.

    Example:
        >>> from semsearch import Search
        >>> coats = Search("bundle")
        >>> for hit in coats.search("something against the cold", top_k=1):
        ...     print(hit.id, hit.text)
        c-1 A warm coat
    """

    def __init__(
        self, place: str | Path, *, key: str | None = None, region: str | None = None, verify: bool = False
    ) -> None:
        """Open a bundle's folder, or take an address that begins with http:// or https://.

        key is an API key. With an AWS region, requests are signed with the credentials of the environment variables, as
        Authorization=IAM requires. With verify, each file of the folder is compared with its SHA-256 first, which reads
        all of it. Raises BundleError or TensorsError if the folder cannot be used.
        """
        if "://" in str(place):
            if verify:
                raise ValueError(f"verify: {place} is an address; `semsearch serve --verify` checks the files there")
            self._post = _remote(str(place).rstrip("/"), key, region)
        else:
            if verify:
                check_files(Path(place))
            self._post = _local(Path(place))

    def search(
        self,
        text: str | None = None,
        *,
        top_k: int = 5,
        mode: Literal["semantic", "keyword", "hybrid"] | None = None,
        filter: Mapping[str, Any] | None = None,
        sort: Mapping[str, Literal["asc", "desc"]] | None = None,
        facets: Sequence[str] = (),
        facets_of: Literal["matching", "results"] = "matching",
        offset: int = 0,
        min_score: float | None = None,
        group_by: str | None = None,
        group_size: int = 3,
        highlights: bool = False,
        include: Sequence[Literal["text", "metadata"]] = ("text", "metadata"),
        fusion_weight: float | None = None,
        prefix: bool = False,
        correct: bool = True,
        queries: Literal["model"] | None = None,
        boost: Mapping[str, Any] | None = None,
        rerank: int | None = None,
        exact: bool = False,
        id: str | None = None,
    ) -> Hits:
        """Return the texts that are closest to `text`, or to the text with the id `id`; without both, list texts.

        docs/api.md explains the arguments: top_k is `num_results` of /similar, and rerank the number of its candidates.

        Example:
            >>> from semsearch import Search
            >>> cheap = Search("bundle").search("coat", filter={"price": {"$lt": 100}}, facets=["brand"])
            >>> cheap[0].metadata["price"], cheap.total, cheap.facets["brand"]
            (90, 1, [{'value': 'North', 'count': 1}])

        Raises ValueError for an argument that the bundle cannot use, and OSError for any other error of a server.
        """
        named = {name: value for name, value in locals().items() if name not in ("self", "top_k", "rerank")}
        candidates = None if rerank is None else {"candidates": rerank}
        return Hits(self._post("/similar", {**named, "num_results": top_k, "rerank": candidates}))

    def similar_to(self, id: str, **arguments: Any) -> Hits:
        """Return the texts that are similar to the text with this id; the arguments are those of `search`."""
        return self.search(id=id, **arguments)

    def embed(self, texts: Sequence[str], role: Literal["query", "document"] | None = None) -> Embeddings:
        """Return the embeddings of texts, (texts, dim) float32, of unit length; role selects the model's prompt.

        Example:
            >>> from semsearch import Search
            >>> warm, light = Search("bundle").embed(["a warm coat", "a light coat"])
            >>> bool(-1 <= warm @ light <= 1)  # their cosine similarity
            True
        """
        return np.array(self._post("/predict", {"text": list(texts), "prompt_name": role})["embeddings"], np.float32)

    async def asearch(self, text: str | None = None, **arguments: Any) -> Hits:
        """Return what `search` returns. The search runs in a thread."""
        import asyncio

        return await asyncio.to_thread(self.search, text, **arguments)


def _local(folder: Path) -> Post:
    """Open a bundle, and return the function that answers requests from it as the routes of a server do."""
    from semsearch.aws.search import make_search
    from semsearch.engine.loading import load_bundle
    from semsearch.search.executor import Executor, finish
    from semsearch.search.reply import json_bytes
    from semsearch.search.request import SimilarRequest

    bundle = load_bundle(folder)
    bundle.open_all()  # now, because several threads can search and `index` can replace the folder later
    search = make_search(bundle, Executor(bundle.embedder))

    def post(path: str, body: Mapping[str, Any]) -> Any:
        if path == "/predict":
            tokens = bundle.embedder.tokenize(body["text"], role=body["prompt_name"] or "")
            return {"embeddings": bundle.embedder.embed(tokens)}
        request = SimilarRequest.model_validate_json(json.dumps(body))  # by way of JSON, which turns tuples into lists
        return json.loads(json_bytes(finish(search(request.query(), lambda phase: None)).reply()))

    return post


def _remote(url: str, key: str | None, region: str | None) -> Post:
    """Return the function that sends requests to a function or server on the network."""
    import os
    from datetime import UTC, datetime
    from urllib.error import HTTPError
    from urllib.parse import urlsplit
    from urllib.request import Request, urlopen

    from semsearch.aws.requests import CredentialSource, sign

    address, credentials = urlsplit(url), CredentialSource(os.environ)
    service = "execute-api"
    if ".lambda-url." in address.netloc:
        service = "lambda"

    def post(path: str, body: Mapping[str, Any]) -> Any:
        content, headers = json.dumps(body).encode(), {"content-type": "application/json"}
        if region is not None:
            now, place = datetime.now(UTC), (address.netloc, address.path + path)
            headers = sign("POST", *place, headers, content, credentials.get(now), region, service, now)
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        try:
            with urlopen(Request(url + path, content, headers), timeout=REPLY_SECONDS) as reply:  # noqa: S310  the user's URL
                return json.load(reply)
        except HTTPError as error:
            is_named = error.code in (404, 413, 422)  # with these, the reply names the argument that cannot be used
            raise (ValueError(json.load(error)["error"]) if is_named else error) from None

    return post
