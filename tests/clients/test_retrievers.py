"""The retrievers of LangChain, LlamaIndex and Haystack follow the conventions of their libraries."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.utils import Secret
from haystack.utils.filters import document_matches_filter
from langchain_core.structured_query import Comparator, Comparison, FilterDirective, Operation, Operator
from langchain_tests.integration_tests import RetrieversIntegrationTests
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from semsearch.client import Hits, Search
from semsearch.retrievers import haystack, langchain, llama_index
from semsearch.retrievers.haystack import HaystackRetriever
from semsearch.retrievers.langchain import LangChainRetriever
from semsearch.retrievers.llama_index import LlamaIndexRetriever
from tests.clients.conftest import KEY, on_the_server

WORDS = "the goose at the market"
RANDOM_FILTERS = 150  # number of random filters that are compared with each library's own reading


def all_rows(search: Search, condition: Mapping[str, Any]) -> Hits:
    """Return all of the corpus's 200 texts that pass a filter."""
    first = search.search(top_k=100, filter=condition)
    first.extend(search.search(top_k=100, filter=condition, offset=100))
    return first


class Rows:
    """Stands in for a Search that finds rows with these metadata."""

    def __init__(self, *metadata: dict[str, Any]) -> None:
        self.metadata = metadata

    def search(self, text: str, **arguments: Any) -> Hits:
        results = [{"id": str(row), "score": 0.5, "metadata": each} for row, each in enumerate(self.metadata)]
        return Hits({"results": results, "truncated": False})


# values of columns that random filters compare with, some of which no row has
VALUES: dict[str, list[Any]] = {
    "chapter": list(range(20)),
    "who": ["the baker", "her best friend", "nobody"],
    "told": [f"2024-{month:02}-05" for month in range(1, 13)],
}
COMPARISONS = (">", ">=", "<", "<=")


# LangChain


@pytest.mark.anyio
class TestOfLangChain(RetrieversIntegrationTests):  # type: ignore[misc]  # its types are not installed
    """LangChain's standard tests for retrievers."""

    @pytest.fixture(autouse=True)
    def ask(self, address: str) -> None:
        self.searcher = Search(address)

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @property
    def retriever_constructor(self) -> type[LangChainRetriever]:
        return LangChainRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"searcher": self.searcher}

    @property
    def retriever_query_example(self) -> str:
        return WORDS


def test_an_address_is_searched_as_a_search_of_it_is(address: str) -> None:
    expected = [hit.id for hit in Search(address).search(WORDS)]
    assert [each.id for each in LangChainRetriever(searcher=address).invoke(WORDS)] == expected
    assert [each.node.node_id for each in LlamaIndexRetriever(address).retrieve(WORDS)] == expected
    assert [each.id for each in HaystackRetriever(address).run(WORDS)["documents"]] == expected


def test_the_arguments_of_invoke_replace_those_of_the_retriever(address: str) -> None:
    retriever = LangChainRetriever(searcher=Search(address), k=2, arguments={"filter": {"chapter": 3}})
    assert {found.metadata["chapter"] for found in retriever.invoke(WORDS)} == {3}
    found = retriever.invoke(WORDS, k=4, filter={"chapter": 5})
    assert [each.metadata["chapter"] for each in found] == [5] * 4


@pytest.mark.parametrize("spelling", [{"filter": {"chapter": 3}}, {"top_k": 8}, {"search_kwargs": {"k": 9}}], ids=str)
def test_arguments_as_vector_stores_spell_them_are_refused(spelling: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"{min(spelling)}\n +Extra inputs are not permitted"):
        LangChainRetriever(searcher=Rows({}), **spelling)


@on_the_server
@pytest.mark.parametrize("name", ["topk", "top_k", "search_kwargs"])
def test_an_argument_that_search_does_not_have_is_refused(name: str, address: str) -> None:
    search, unknown = Search(address), {name: 3}
    asks: list[Callable[[], object]] = [
        lambda: LangChainRetriever(searcher=search, arguments=unknown).invoke(WORDS),
        lambda: LangChainRetriever(searcher=search).invoke(WORDS, **unknown),
        lambda: LlamaIndexRetriever(search, **unknown).retrieve(WORDS),
        lambda: HaystackRetriever(address, arguments=unknown).run(WORDS),
    ]
    for ask in asks:
        with pytest.raises(TypeError, match=name):
            ask()


def test_a_column_that_is_called_score_keeps_its_value() -> None:
    stars, none = LangChainRetriever(searcher=Rows({"score": 5}, {})).invoke(WORDS)
    assert stars.metadata == {"score": 5, "search_score": 0.5}
    assert none.metadata == {"search_score": 0.5}
    (plain,) = LangChainRetriever(searcher=Rows({"stars": 5})).invoke(WORDS)
    assert plain.metadata == {"stars": 5, "score": 0.5}


def compared(comparator: str, attribute: str, value: object) -> FilterDirective:
    return Comparison(Comparator(comparator), attribute, value)


def combined(operator: str, *parts: FilterDirective) -> FilterDirective:
    return Operation(Operator(operator), list(parts))


SEA = compared("contain", "places", "sea")
JUNE = {"date": "2024-06-01", "type": "date"}  # as the parser of LangChain writes dates

# each filter of LangChain, and a function that says whether the metadata of a row passes it
DIRECTIVES: dict[str, tuple[FilterDirective, Callable[[dict[str, Any]], bool]]] = {
    "eq": (compared("eq", "chapter", 3), lambda row: row.get("chapter") == 3),
    "ne": (compared("ne", "chapter", 3), lambda row: row.get("chapter") != 3),
    "gt": (compared("gt", "chapter", 3), lambda row: row.get("chapter", 0) > 3),
    "gte": (compared("gte", "chapter", 3), lambda row: row.get("chapter", 0) >= 3),
    "lt": (compared("lt", "chapter", 3), lambda row: row.get("chapter", 9) < 3),
    "lte": (compared("lte", "chapter", 3), lambda row: row.get("chapter", 9) <= 3),
    "in": (compared("in", "chapter", [3, 5]), lambda row: row.get("chapter") in (3, 5)),
    "nin": (compared("nin", "chapter", [3, 5]), lambda row: row.get("chapter") not in (3, 5)),
    "contain": (SEA, lambda row: "sea" in row.get("places", ())),
    "date": (compared("gte", "told", JUNE), lambda row: row.get("told", "") >= "2024-06-01"),
    "or": (
        combined("or", compared("eq", "chapter", 3), SEA),
        lambda row: row.get("chapter") == 3 or "sea" in row.get("places", ()),
    ),
    "not": (
        combined("not", combined("and", compared("eq", "chapter", 3), SEA)),
        lambda row: not (row.get("chapter") == 3 and "sea" in row.get("places", ())),
    ),
}


@on_the_server
@pytest.mark.parametrize("name", DIRECTIVES)
def test_a_directive_of_langchain_keeps_the_rows_that_it_describes(name: str, address: str) -> None:
    (directive, passes), search = DIRECTIVES[name], Search(address)
    expected = [hit.id for hit in all_rows(search, {}) if passes(hit.metadata)]
    assert [hit.id for hit in all_rows(search, langchain.translated(directive))] == expected
    found = LangChainRetriever(searcher=search, k=100).invoke(WORDS, filter=directive)
    assert found
    assert {each.id for each in found} <= set(expected)


# LlamaIndex


def test_llama_index_names_the_number_of_results_its_own_way(address: str) -> None:
    retriever = LlamaIndexRetriever(Search(address), similarity_top_k=3)
    assert len(retriever.retrieve(WORDS)) == 3
    assert len(LlamaIndexRetriever(Search(address)).retrieve(WORDS)) == 5


def test_nodes_pass_the_filters_of_llama_index_and_the_filter_of_the_search(address: str) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="chapter", value=3)])
    retriever = LlamaIndexRetriever(Search(address), similarity_top_k=100, filters=filters, filter={"true": True})
    found = [node.node.metadata for node in retriever.retrieve(WORDS)]
    assert found
    assert {(each["chapter"], each["true"]) for each in found} == {(3, True)}


def test_no_filters_of_llama_index_keep_all_nodes(address: str) -> None:
    assert len(LlamaIndexRetriever(Search(address), filters=MetadataFilters(filters=[])).retrieve(WORDS)) == 5


def random_metadata_filter(rng: random.Random) -> MetadataFilter:
    values = VALUES | {"places": ["sea", "village", "desert"]}
    key = rng.choice(list(values))
    one, several = rng.choice(values[key]), rng.sample(values[key], 2)
    operators: dict[str, Any] = {"==": one, "!=": one, "in": several, "nin": several}
    if key in ("chapter", "told"):
        operators |= dict.fromkeys(COMPARISONS, one)
    if key == "places":
        operators = {"contains": one, "any": several, "all": several}
    operator = rng.choice(list(operators))
    return MetadataFilter(key=key, operator=FilterOperator(operator), value=operators[operator])


@on_the_server
def test_filters_of_llama_index_keep_the_rows_that_llama_index_keeps(address: str) -> None:
    search, rng = Search(address), random.Random(0)
    metadata = {hit.id: hit.metadata for hit in all_rows(search, {})}
    kept = set()
    for _ in range(RANDOM_FILTERS):
        condition = rng.choice(list(FilterCondition))
        parts = [random_metadata_filter(rng) for _ in range(rng.randint(1, 3))]
        filters = MetadataFilters(filters=parts, condition=condition)
        passes = build_metadata_filter_fn(metadata.__getitem__, filters)
        expected = [each for each in metadata if passes(each)]
        assert [hit.id for hit in all_rows(search, llama_index.translated(filters))] == expected, filters
        kept.add(len(expected))
    assert len(kept) > 20  # many of the filters keep some rows


# Haystack


def test_top_k_and_filters_are_inputs_of_haystacks_retriever(address: str) -> None:
    chapter = {"field": "meta.chapter", "operator": "==", "value": 3}
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackRetriever(address, top_k=2, filters=chapter))
    assert {"query", "filters", "top_k"} <= set(pipeline.inputs()["retriever"])

    def found(**inputs: Any) -> list[int]:
        documents = pipeline.run({"retriever": {"query": WORDS, **inputs}})["retriever"]["documents"]
        return [document.meta["chapter"] for document in documents]

    assert found() == [3, 3]
    assert found(top_k=4, filters={**chapter, "value": 5}) == [5] * 4
    assert found(arguments={"filter": {"true": True}}) == [3, 3]


def test_a_saved_pipeline_holds_the_name_of_the_key(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_KEY", KEY)
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackRetriever(closed, Secret.from_env_var("SEARCH_KEY"), top_k=3))
    saved = pipeline.dumps()
    assert KEY not in saved
    loaded = Pipeline.loads(saved, allowed_modules=["semsearch"])
    assert len(loaded.run({"retriever": {"query": WORDS}})["retriever"]["documents"]) == 3


def random_filters(rng: random.Random, levels: int) -> dict[str, Any]:
    if levels and rng.random() < 0.7:
        operator = rng.choice(["AND", "OR", "NOT"])
        conditions = [random_filters(rng, levels - 1) for _ in range(rng.randint(1, 3))]
        return {"operator": operator, "conditions": conditions}
    values = VALUES | {"true": [True, False], "id": [f"story-{row:03}" for row in range(200)]}
    name = rng.choice(list(values))
    one, several = rng.choice(values[name]), rng.sample(values[name], 2)
    operators: dict[str, Any] = {"==": one, "!=": one, "in": several, "not in": several}
    if name != "id":
        operators |= rng.choice([{}, {"==": None, "!=": None}])
    if name in ("chapter", "told"):
        operators |= dict.fromkeys(COMPARISONS, one)
    operator = rng.choice(list(operators))
    field = name if name == "id" else f"meta.{name}"
    return {"field": field, "operator": operator, "value": operators[operator]}


@on_the_server
def test_filters_of_haystack_keep_the_rows_that_haystack_keeps(address: str) -> None:
    search, rng = Search(address), random.Random(0)
    documents = [Document(id=hit.id, meta=hit.metadata) for hit in all_rows(search, {})]
    kept = set()
    for _ in range(RANDOM_FILTERS):
        filters = random_filters(rng, levels=3)
        expected = [document.id for document in documents if document_matches_filter(filters, document)]
        assert [hit.id for hit in all_rows(search, haystack.translated(filters))] == expected, filters
        kept.add(len(expected))
    assert len(kept) > 20  # many of the filters keep some rows


# What has no translation


def one_of_llama_index(operator: str, value: Any, condition: str = "and") -> MetadataFilters:
    part = MetadataFilter(key="who", operator=FilterOperator(operator), value=value)
    return MetadataFilters(filters=[part], condition=FilterCondition(condition))


@pytest.mark.parametrize(
    ("translate", "condition", "named"),
    [
        (langchain.translated, compared("like", "who", "baker"), "'like' of 'who'"),
        (llama_index.translated, one_of_llama_index("text_match", "baker"), "'text_match' of 'who'"),
        (llama_index.translated, one_of_llama_index("is_empty", None), "'is_empty' of 'who'"),
        (haystack.translated, {"field": "meta.who", "operator": "like", "value": "b"}, "'like' of 'who'"),
        (haystack.translated, {"operator": "XOR", "conditions": []}, "'XOR'"),
        (haystack.translated, {"operator": "AND"}, "an object with 'conditions'"),
        (haystack.translated, {"field": "meta.who", "operator": "=="}, "an object with 'value'"),
    ],
)
def test_an_error_names_what_has_no_translation(translate: Any, condition: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        translate(condition)
