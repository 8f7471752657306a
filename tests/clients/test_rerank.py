"""The clients of rerank: Cohere's own, and LlamaIndex's of Cohere, Jina and text-embeddings-inference."""

import cohere
import httpx
import pytest
from cohere.core.api_error import ApiError
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.cohere_rerank import CohereRerank
from llama_index.postprocessor.jinaai_rerank import JinaRerank
from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

QUERY = "an angry goose"
TEXTS = ["the last ferry of the year", "an angry goose won first prize", "the goose"]
ORDER = [1, 2, 0]
TOKENS = 3 * (3 + 3) + 6 + 6 + 2  # three times [CLS], the query and two [SEP]; and the words of the texts


@pytest.fixture
def client(address: str) -> cohere.ClientV2:
    return cohere.ClientV2(base_url=address, api_key="none")


def scores(address: str) -> list[float]:
    """Return the score of each of TEXTS in ORDER, as TEI's route returns them."""
    found = httpx.post(f"{address}/rerank", json={"query": QUERY, "texts": TEXTS}).json()
    assert [each["index"] for each in found] == ORDER
    return [each["score"] for each in found]


def test_cohere_reranks(client: cohere.ClientV2, address: str) -> None:
    found = client.rerank(model="rerank-v3.5", query=QUERY, documents=TEXTS)
    assert [each.index for each in found.results] == ORDER
    assert [each.relevance_score for each in found.results] == scores(address)
    assert found.meta is not None
    assert found.meta.tokens is not None
    assert found.meta.tokens.input_tokens == TOKENS
    assert found.meta.warnings is None
    assert [each.index for each in client.rerank(model="any", query=QUERY, documents=TEXTS, top_n=2).results] == [1, 2]


def test_coheres_errors_have_the_status_and_the_message(client: cohere.ClientV2) -> None:
    with pytest.raises(cohere.UnprocessableEntityError) as caught:
        client.rerank(model="any", query=QUERY, documents=[])
    assert caught.value.body["message"].startswith("documents: list should have at least 1 item")
    with pytest.raises(ApiError) as too_large:
        client.rerank(model="any", query=QUERY, documents=["q" * 60_000] * 100)
    assert too_large.value.status_code == 413
    assert "at most" in too_large.value.body["message"]


@pytest.mark.parametrize("kind", ["cohere", "jina", "tei"])
def test_llama_index_reranks_nodes(address: str, kind: str) -> None:
    reranker: BaseNodePostprocessor
    if kind == "cohere":
        reranker = CohereRerank(base_url=address, api_key="none", top_n=2)
    elif kind == "jina":
        reranker = JinaRerank(base_url=f"{address}/v1", api_key="none", top_n=2)
    else:
        reranker = TextEmbeddingInference(base_url=address, top_n=2)
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    found = reranker.postprocess_nodes(nodes, query_str=QUERY)
    assert [(each.node.get_content(), each.score) for each in found] == [
        (TEXTS[place], score) for place, score in zip(ORDER[:2], scores(address), strict=False)
    ]
