"""The class `Search`, which searches a bundle in this process, or a running function or server by its address."""

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, overload
from weakref import WeakSet

from semsearch.aws.s3.published import S3
from semsearch.client.columns import ColumnSummary, summarize_column
from semsearch.client.frames import FrameColumn, Framed, frame_columns
from semsearch.client.hits import Hit, Hits, ManyHits, hit_of
from semsearch.client.requests import (
    Contents,
    Role,
    check_role,
    checked_id,
    checked_ids,
    checked_texts,
    count_around,
    requested_columns,
    search_body,
    with_ids_as_text,
)
from semsearch.engine.bundle import BundleError
from semsearch.engine.quantization import Embeddings
from semsearch.engine.tensors import AnyArray, TensorsError
from semsearch.engine.values import Id

if TYPE_CHECKING:
    from semsearch.client.folder import LocalBundle
    from semsearch.client.server import RemoteServer

    SearchSource = LocalBundle | RemoteServer  # both have the same methods

Vector = Sequence[float] | AnyArray

REPLY_SECONDS = 60.0  # default of `timeout`
HITS_PER_PAGE = 100  # default hits of a page
KEY_VARIABLE = "SEMSEARCH_KEY"  # environment variable with the key of a Search that was pickled
VERSION_SHOWN = 12  # characters of a version that `repr` shows
ADDRESS = re.compile(r"(localhost|[\w.-]+:\d+|\[[\da-fA-F:]+\]:\d+)(/.*)?", re.ASCII)  # without a scheme
LOCAL_MACHINE = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])([:/]|$)")
VISIBLE = re.compile(r"[!-~]+")


class SearchOptions(TypedDict, total=False):
    """The arguments of `Search.search` besides the text and the id: the type of methods that pass them on."""

    top_k: int
    offset: int
    filter: Mapping[str, Any] | None
    vector: Vector | None
    without: Sequence[str]
    min_score: float | Literal["floor"] | None
    mode: Literal["semantic", "keyword", "hybrid"] | None
    prefix: bool
    correct: bool
    exact: bool
    queries: Literal["model"] | None
    fusion_weight: float | None
    boost: Mapping[str, Any] | None
    rerank: int | None
    sort: Mapping[str, Literal["asc", "desc"]] | None
    group_by: str | None
    group_size: int
    facets: Sequence[str]
    facets_of: Literal["matching", "results"]
    include: Sequence[Literal["text", "metadata", "source"]]
    highlights: bool


class Search(Framed):
    """Search a bundle in this process, or a function or server by its address. Both return the same objects.

    Several threads can use it. `len` is the number of texts.

    Example:
        >>> from semsearch import Search
        >>> coats = Search("bundle")
        >>> for hit in coats.search("something against the cold", top_k=1):
        ...     print(hit.id, hit.text)
        c-1 A warm coat
        >>> len(coats), coats.columns["price"].highest, coats.get("c-1").text
        (2, 140, 'A warm coat')
    """

    def __init__(
        self,
        place: str | Path,
        *,
        key: str | None = None,
        region: str | None = None,
        verify: bool = False,
        timeout: float = REPLY_SECONDS,
    ) -> None:
        """Open a bundle's folder or s3://BUCKET/PREFIX, or take an address such as https://HOST or localhost:8000.

        key is an API key. With an AWS region, requests are signed with the credentials of the environment variables, as
        Authorization=IAM requires. With verify, each file of the folder is compared with its SHA-256 first, which reads
        all of it. timeout is how many seconds a server can be silent.
        Raises BundleError or TensorsError if the bundle cannot be used, and ValueError for other arguments.
        """
        self._place = str(place)
        if key is not None and not VISIBLE.fullmatch(key):  # the error of http.client would hold it
            raise ValueError("key: found blanks or characters that are not ASCII, expected an API key; remove them")
        self._open = opener(place, key, region, verify, timeout)
        self._reopened = (_whole(place), region, verify, timeout, key is not None)  # what a pickle has
        self._source: SearchSource | None = self._open()
        self._opening = Lock()
        _searches.add(self)

    def search(
        self,
        text: str | None = None,
        *,
        id: Id | None = None,
        vector: Vector | None = None,
        top_k: int = 5,
        offset: int = 0,
        filter: Mapping[str, Any] | None = None,
        without: Sequence[str] = (),
        min_score: float | Literal["floor"] | None = None,
        mode: Literal["semantic", "keyword", "hybrid"] | None = None,
        prefix: bool = False,
        correct: bool = True,
        exact: bool = False,
        queries: Literal["model"] | None = None,
        fusion_weight: float | None = None,
        boost: Mapping[str, Any] | None = None,
        rerank: int | None = None,
        sort: Mapping[str, Literal["asc", "desc"]] | None = None,
        group_by: str | None = None,
        group_size: int = 3,
        facets: Sequence[str] = (),
        facets_of: Literal["matching", "results"] = "matching",
        include: Sequence[Literal["text", "metadata", "source"]] = ("text", "metadata"),
        highlights: bool = False,
    ) -> Hits:
        """Return the texts that are closest to `text`, `vector` or the text with an id; without these, list texts.

        docs/api.md explains the arguments: top_k is `num_results` of /similar, and rerank the number of its candidates.
        Values of `filter` can be scalars of NumPy, dates, Decimals and any collection.

        Example:
            >>> from semsearch import Search
            >>> cheap = Search("bundle").search("coat", filter={"price": {"$lt": 100}}, facets=["brand"])
            >>> cheap[0].metadata["price"], cheap.total, cheap.facets["brand"]
            (90, 1, [{'value': 'North', 'count': 1}])

        Args:
            text: what to search for.
            id: id of a text; search for texts that are similar to it.
            vector: the embedding of the query, (dim,), made elsewhere with the model of the index. With a text, the
                mode is hybrid: the text gives the words, and the vector the meaning.
            top_k: number of texts, or of groups; from a server at most 100.
            offset: skip the first results; of a server at most 10,000.
            filter: only texts whose metadata pass this filter, such as {"price": {"$lt": 100}}.
            without: leave out texts with one of these words, or with all words of one of these texts, in the modes
                keyword and hybrid.
            min_score: leave out results with a lower score; floor leaves out those that are probably not relevant.
            mode: search by meaning, by words or by both. Without it, hybrid; semantic for an id, or without keywords.
            prefix: find words too that begin with the last word, in the modes keyword and hybrid.
            correct: replace misspelled words that no text has by similar ones, in the modes keyword and hybrid.
            exact: compare with every text, which is slow in a very large corpus.
            queries: let the model embed the text, although the index has a query table; slower, and better for long
                questions.
            fusion_weight: in the mode hybrid: share of the meaning in the score, from 0 (words alone) to 1.
            boost: what columns add to the score, instead of the boosts of the index, such as
                {"date": {"half_life": "30d", "weight": 0.2}}; {} adds nothing.
            rerank: score this number of the best texts again with the reranker of the index, which is slower.
            sort: order by columns instead of by score, such as {"price": "asc"}.
            group_by: one result for each value of this column.
            group_size: maximum texts of a group.
            facets: count the values of these columns among the texts that pass the filter.
            facets_of: which texts are counted: all that pass the filter and, in the mode keyword, have a word of the
                text (matching), or the best 100 (results).
            include: the fields of each result; source is the text with its Markdown.
            highlights: return a snippet of each text, and the parts of it that answer the query.

        Raises ValueError for an argument that the bundle cannot use, and ServerError, an OSError, if a server fails.
        """
        source = self._opened
        body = self._body(text, id, locals())
        return Hits(source.search(body), source.types, requested_columns(body))

    def similar_to(self, id: Id, **arguments: Unpack[SearchOptions]) -> Hits:
        """Return the texts that are similar to the text with this id; the arguments are those of `search`."""
        return self.search(id=id, **arguments)

    async def asearch(
        self, text: str | None = None, *, id: Id | None = None, **arguments: Unpack[SearchOptions]
    ) -> Hits:
        """Return what `search` returns. The search runs in a thread."""
        import asyncio

        return await asyncio.to_thread(self.search, text, id=id, **arguments)

    def search_many(
        self,
        texts: Sequence[str] | None = None,
        *,
        vectors: Sequence[Vector] | AnyArray | None = None,
        **arguments: Unpack[SearchOptions],
    ) -> ManyHits:
        """Return the hits of each text, as `search` returns them, in less time: the texts are embedded together.

        The result is a list, which can become one frame. vectors (queries, dim) are embeddings of the queries, one for
        each text, or without texts.

        Example:
            >>> from semsearch import Search
            >>> [hits[0].id for hits in Search("bundle").search_many(["warm coat", "light coat"], top_k=1)]
            ['c-1', 'c-2']

        Raises ValueError if one of the texts, a vector or an argument cannot be used.
        """
        if unknown := arguments.keys() - SEARCH_DEFAULTS.keys() | arguments.keys() & {"vector"}:
            raise TypeError(f"search_many() got an unexpected keyword argument {min(unknown)!r}")
        if vectors is None:
            bodies = [self._body(text, None, arguments) for text in checked_texts(texts)]
        else:
            words = [None] * len(vectors) if texts is None else checked_texts(texts)
            if len(words) != len(vectors):
                raise ValueError(f"vectors: found {len(vectors)} for {len(words)} texts, expected one for each")
            pairs = zip(words, vectors, strict=True)
            bodies = [self._body(text, None, {**arguments, "vector": vector}) for text, vector in pairs]
        source, requested = self._opened, requested_columns(bodies[0]) if bodies else []
        none = Hits({"results": [], "truncated": False}, source.types, requested)
        return ManyHits((Hits(reply, source.types, requested) for reply in source.search_many(bodies)), none)

    def pages(
        self, text: str | None = None, *, id: Id | None = None, **arguments: Unpack[SearchOptions]
    ) -> Iterator[Hits]:
        """Yield the hits of a search in pages of `top_k`, 100 if it is not given.

        The arguments are those of `search`. Raises ValueError after the 10,000 hits of a server that `offset` can skip.

        Example:
            >>> from semsearch import Search
            >>> [hit.id for page in Search("bundle").pages(sort={"price": "asc"}, top_k=1) for hit in page]
            ['c-1', 'c-2']
        """
        size = arguments["top_k"] = arguments.get("top_k", HITS_PER_PAGE)
        arguments["offset"] = arguments.get("offset", 0)
        while True:
            page = self.search(text, id=id, **arguments)
            yield page
            if len(page) < size:
                return
            arguments["offset"] += size

    def embed(self, texts: str | Sequence[str], role: Role | None = None) -> Embeddings:
        """Return the embeddings of texts, (texts, dim) float32, of unit length; that of one string is (dim,).

        role selects the model's prompt. A server gets many texts in several requests.

        Example:
            >>> from semsearch import Search
            >>> warm, light = Search("bundle").embed(["a warm coat", "a light coat"])
            >>> bool(-1 <= warm @ light <= 1)  # their cosine similarity
            True

        Raises ValueError for a blank text, another type, a role that the model does not have, or if the index has none.
        """
        check_role(role)
        if isinstance(texts, str):
            embedding: Embeddings = self._opened.embed(checked_texts([texts]), role)[0]
            return embedding
        return self._opened.embed(checked_texts(texts), role)

    @overload  # a string is one id, although it is an iterable of strings too
    def get(self, id: Id, *, before: int = 0, after: int = 0) -> Hit | None: ...  # type: ignore[overload-overlap]
    @overload
    def get(self, id: Iterable[Id], *, before: int = 0, after: int = 0) -> list[Hit | None]: ...
    def get(self, id: Id | Iterable[Id], *, before: int = 0, after: int = 0) -> Hit | list[Hit | None] | None:
        """Return the text with an id, without a score, or None if there is none; of several ids a list in their order.

        `before` and `after` are how many passages around it in its document, at most 10 each, the hit's fields of these
        names have. Raises ValueError if one is not 0 and the text is in no document, such as a row of a table.

        Example:
            >>> from semsearch import Search
            >>> [hit and hit.text for hit in Search("bundle").get(["c-2", "c-9"])]
            ['A light coat', None]
        """
        around = count_around(before, "before"), count_around(after, "after")
        if isinstance(id, Iterable) and not isinstance(id, str | bytes | Mapping):
            found = self._opened.get_many(checked_ids(id), *around)
            return [None if each is None else hit_of(each) for each in found]
        one = self._opened.get(checked_id(id) or "", *around)
        if one is None:
            return None
        return hit_of(one)

    def texts(self) -> Iterator[Hit]:
        """Return an iterator over all texts in the order of the index, without scores and without removed texts.

        Some thousand texts are in memory at the same time. All are of the index that was there at the call, also if
        another one takes its place meanwhile. A server lets the first 10,100 be read, in many requests; if it has more
        texts, ValueError is raised after these, and so it is if their number changes meanwhile.

        Example:
            >>> from semsearch import Search
            >>> [(hit.id, hit.metadata["price"]) for hit in Search("bundle").texts()]
            [('c-1', 90), ('c-2', 140)]

        Raises BundleError if the texts are in S3 Vectors.
        """
        return (
            Hit(id=id, score=None, text=text, metadata=metadata, index=row)
            for part in self._opened.read()
            for row, id, text, metadata in zip(*part, strict=True)
        )

    def embeddings(self, ids: Iterable[Id] | None = None) -> Embeddings:
        """Return the stored embeddings of texts, (texts, dim) float32, of all in the order of `texts` without ids.

        They are 8-bit numbers with a scale for each text. So each has the length of the embedding that the model or the
        caller of `index` made, usually 1, and each number differs from the original by less than a 127th of the largest
        one of its row. The cosine to the original is above 0.9999 for random directions.

        Example:
            >>> from semsearch import Search
            >>> (warm,) = Search("bundle").embeddings(["c-1"])
            >>> round(float(warm @ warm), 4)
            1.0

        Raises ValueError for an id that no text has, and for the address of a server, which does not return them.
        """
        return self._opened.embeddings(None if ids is None else checked_ids(ids))

    def _frame(self) -> list[FrameColumn]:
        """Return the columns of all texts: id, text, and the metadata."""
        source = self._opened
        ids, texts, metadata = list[str](), list[str](), list[dict[str, Any]]()
        for part in source.read():
            ids += part.ids
            texts += part.texts
            metadata += part.metadata
        return frame_columns({"id": ids, "text": texts}, metadata, source.types())

    @property
    def columns(self) -> dict[str, ColumnSummary]:
        """The columns that filters can name, with their types, and their ranges or most frequent values.

        A server is asked once or twice for each column.

        Example:
            >>> from semsearch import Search
            >>> columns = Search("bundle").columns
            >>> columns["price"].type, columns["price"].lowest, columns["price"].highest
            ('number', 90, 140)
            >>> columns["brand"].values
            {'North': 2}
        """
        held = self._opened.contents()
        if not held.has_texts:
            return {name: ColumnSummary(kind) for name, kind in held.columns.items()}
        return {name: summarize_column(self.search, name, kind) for name, kind in held.columns.items()}

    def reload(self) -> None:
        """Open the bundle again, to search what `publish` has put in its place meanwhile.

        What `index` puts into a folder is opened by the next search anyway.
        """
        before, self._source = self._source, self._open()
        if before is not None:
            before.close()

    def close(self) -> None:
        """Release the bundle or the connections; later searches raise ValueError."""
        before, self._source = self._source, None
        if before is not None:
            before.close()

    @property
    def _opened(self) -> "SearchSource":
        with self._opening:  # while a thread opens a new bundle, others wait: the older one has removed texts
            if self._source is None:
                raise ValueError(f"{self._place}: this Search is closed; call `reload`, or make another one")
            if self._source.has_changed():
                try:
                    self.reload()
                except (BundleError, TensorsError) as error:
                    warnings.warn(f"the older bundle is searched, because the new one cannot be: {error}", stacklevel=3)
            return self._source

    def _body(self, text: str | None, id: Id | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
        values = {name: arguments.get(name, default) for name, default in SEARCH_DEFAULTS.items()}
        stated = {name: value for name, value in values.items() if value is not SEARCH_DEFAULTS[name]}
        body = search_body(text, id, stated)
        changed = with_ids_as_text(body.get("filter"))
        # a column of the metadata can have the name `id`, and then its own type
        if changed != body.get("filter") and self._opened.contents().columns.get("id", "string") == "string":
            body["filter"] = changed
        return body

    def __len__(self) -> int:
        return self._opened.contents().rows

    def __bool__(self) -> bool:
        return True  # instead of whether there are texts, which a server would be asked for

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Return the place, and what it holds unless it is closed or a server does not answer."""
        try:
            held = self._opened.contents()
        except (OSError, ValueError):
            return f"Search({self._place!r})"
        return f"Search({self._place!r}, {_describe(held)})"

    def __reduce__(self) -> tuple[Callable[..., "Search"], tuple[object, ...]]:
        """Pickle the place. A key is not in the pickle."""
        return _reopen, self._reopened


_searches: WeakSet[Search] = WeakSet()
_held: list[Lock] = []  # locks that a fork holds


def _hold_locks() -> None:
    """Wait until no thread opens a bundle: in a forked process, a held lock and half a reload would stay for ever."""
    for search in list(_searches):
        search._opening.acquire()
        _held.append(search._opening)


def _release_locks() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_hold_locks, after_in_parent=_release_locks, after_in_child=_release_locks)

# the arguments of `search` besides the text and the id, with their defaults
SEARCH_DEFAULTS = {name: value for name, value in (Search.search.__kwdefaults__ or {}).items() if name != "id"}


def opener(
    place: str | Path, key: str | None, region: str | None, verify: bool, timeout: float
) -> "Callable[[], SearchSource]":
    """Return the function that opens the place of a Search. Raises ValueError for an address that cannot be used."""
    if str(place).startswith(S3):
        from semsearch.client.folder import open_published

        return lambda: open_published(str(place))
    url = address_of(place)
    if url is None:
        from semsearch.client.folder import open_folder  # a client of a server needs neither this nor the engine

        return lambda: open_folder(Path(place).expanduser(), verify=verify)
    if verify:
        raise ValueError(f"verify: {place} is an address; `semsearch serve --verify` checks the files there")
    from semsearch.client.server import RemoteServer

    return lambda: RemoteServer(url, key, region, timeout)


def address_of(place: str | Path) -> str | None:
    """Return the URL that a place names, None for a folder. localhost:8000 is http://, any other HOST:PORT https://.

    Raises ValueError for another scheme, and for a user or a password in it.
    """
    if isinstance(place, Path):
        return None
    text = place
    if "://" not in text:
        if not ADDRESS.fullmatch(text) or Path(text).exists():
            return None
        if LOCAL_MACHINE.match(text):
            return f"http://{text}"
        return f"https://{text}"
    scheme, _, rest = text.partition("://")
    if scheme not in ("http", "https"):
        raise ValueError(f"place: found {scheme}://, expected a folder, http://, https:// or s3://BUCKET/PREFIX")
    if "@" in rest.partition("/")[0]:
        raise ValueError(
            "place: found a user or a password in the address; leave them out, and pass an API key as `key`"
        )
    return text


def _whole(place: str | Path) -> str:
    """Return a place that means the same in another process: a folder with its whole path."""
    if str(place).startswith(S3) or address_of(place) is not None:
        return str(place)
    return str(Path(place).expanduser().resolve())


def _reopen(place: str, region: str | None, verify: bool, timeout: float, has_key: bool) -> Search:
    """Return a Search that was pickled. Its key is that of the environment. Raises ValueError if there is none."""
    key = None
    if has_key:
        key = os.environ.get(KEY_VARIABLE)
        if not key:
            found = f"{KEY_VARIABLE}: is not set, and a pickled Search does not hold its key"
            raise ValueError(f"{found}; set it to the API key for {place}")
    return Search(place, key=key, region=region, verify=verify, timeout=timeout)


def _describe(held: Contents) -> str:
    version = "" if held.version is None else held.version[:VERSION_SHOWN]
    return f"model={held.model!r}, version={version!r}, made={held.made!r}, rows={held.rows}, columns={held.columns}"
