"""The measurement of the largest values: it has each field of each request, and it runs."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bench.limits import Cost, Values, largest_values
from semsearch.app.mcp.fetching import FetchArguments
from semsearch.app.mcp.messages import RpcMessage
from semsearch.app.mcp.tools import ListArguments, SearchArguments
from semsearch.app.routes.body_models import PredictRequest
from semsearch.app.routes.clients.openai import EmbeddingsRequest
from semsearch.app.routes.clients.rerank import DocumentsRequest, RerankRequest
from semsearch.app.routes.clients.tei import EmbedRequest, SimilarityRequest, TokenizeRequest
from semsearch.engine.loading import load_bundle
from semsearch.indexing.corpus import Corpus
from semsearch.search.request import SimilarRequest
from tests.project import ROOT
from tests.rerankers import add_reranker
from tests.world import write_bundle

MODELS: dict[str, type[BaseModel]] = {
    "/similar": SimilarRequest,
    "search": SearchArguments,
    "fetch": FetchArguments,
    "list_documents": ListArguments,
    "/mcp": RpcMessage,
    "/predict": PredictRequest,
    "/v1/embeddings": EmbeddingsRequest,
    "/embed": EmbedRequest,
    "/similarity": SimilarityRequest,
    "/tokenize": TokenizeRequest,
    "/rerank": RerankRequest,
    "/v2/rerank": DocumentsRequest,
}
SIZED = ("string", "array", "object", "number", "integer")
LEFT_OUT = {"/similar": {"group_size"}, "/mcp": {"method"}, "/similarity": {"parameters"}}  # sent with others, or short


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of two documents, with a reranker."""
    texts = ["The angry goose chased the sailor.", "The baker painted the kitchen."]
    metadata = [json.dumps({"path": f"{row}.md", "passage": 0}) for row in range(2)]
    corpus = Corpus(texts, ["0.md#a:1", "1.md#a:1"], metadata, columns={"path": "string", "passage": "number"})
    return add_reranker(write_bundle(tmp_path_factory.mktemp("limits") / "bundle", corpus))


def has_size(schema: dict[str, Any]) -> bool:
    """Return whether values of a field can be larger and smaller, unlike true and false, or one of a few words."""
    forms = schema.get("anyOf") or schema.get("oneOf") or [schema]
    forms = [form for form in forms if not form.keys() & {"enum", "const"}]
    return any("$ref" in form or form.get("type") in SIZED for form in forms)


def fields_of(values: Values) -> Iterator[str]:
    for name in values.largest:
        yield name.partition(",")[0].partition(" ")[0]


def test_each_field_that_can_be_large_is_measured(documents: Path) -> None:
    found = {values.tool or values.path: set(fields_of(values)) for values in largest_values(load_bundle(documents))}
    for name, model in MODELS.items():
        schema = model.model_json_schema()
        fields = {field for field, described in schema["properties"].items() if has_size(described)}
        assert fields - found[name] <= LEFT_OUT.get(name, set()), name


def test_it_sends_all_values_and_prints_what_each_costs(documents: Path) -> None:
    command = [sys.executable, "-m", "bench", "limits", "--bundle", str(documents)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert next(line for line in lines if line.startswith("/similar             text ")).endswith("1.00")
    assert {line.split()[0] for line in lines} >= {name for name in MODELS if name.startswith("/")}


def test_a_long_value_is_compared_by_its_bytes_and_a_short_one_as_a_whole() -> None:
    text = Cost("/similar", "text", 10_000, 100.0)
    assert Cost("/similar", "without", 20_000, 50.0).beside(text) == 0.25
    assert Cost("/similar", "offset", 10, 50.0).beside(text) == 0.5
