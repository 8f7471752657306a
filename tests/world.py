"""The world all tests share: one small bundle, written by the export's own writer, and the app over it.

The model is a table of random word vectors and their mean: no torch, two milliseconds to load, and still a real ONNX
graph, a real tokenizer and real files. Texts that share words are alike; that is all the tests need of a meaning.
"""

import asyncio
import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from starlette.types import ASGIApp
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from semsearch.app.app import App, create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.settings import Settings
from semsearch.conversion.quantize import save_ort
from semsearch.engine.bundle import (
    INDEX,
    MODEL,
    PASSAGES,
    QUERY_TABLE,
    TOKENIZER,
    FloorInfo,
    Manifest,
    ModelInfo,
    QueriesInfo,
    check_bundle,
)
from semsearch.engine.embedder import VECTORS, Embedder, QueryTable
from semsearch.engine.loading import LoadedBundle
from semsearch.engine.passages import Passages
from semsearch.engine.quantization import Codes, Embeddings, Scales
from semsearch.engine.semantic.index import Index
from semsearch.engine.tokenizer import read_tokenizer, save_tokenizer
from semsearch.indexing.bundles import write_manifest, write_model
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.facts import read_facts
from semsearch.indexing.keywords import KeywordOptions
from semsearch.indexing.tensor_files import save_tensors
from semsearch.indexing.vectors.embed import Cores, embed_corpus
from semsearch.indexing.vectors.indexer import KEYWORDS_BY_DEFAULT, NO_OPTIONS, write_index
from semsearch.indexing.vectors.query_table import write_queries
from semsearch.indexing.vectors.recall import sample_spans
from semsearch.search.executor import Executor
from tests.bundle_files import write_passages

DIM = 48
MAX_TOKENS = 24
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")

STORY_COLUMNS = {"chapter": "number", "places": "list", "told": "date", "true": "boolean", "who": "string"}

WHO = [
    *("the baker", "a lighthouse keeper", "my grandmother", "the night nurse", "an old sailor", "the chess champion"),
    *("a young violinist", "our neighbour", "the mountain guide", "a retired judge", "the train driver", "his sister"),
    *("the village doctor", "a quiet librarian", "the beekeeper", "an angry goose", "the football coach"),
    *("a travelling salesman", "the museum guard", "her best friend"),
]
WHAT = [
    *("opened the wooden door before sunrise", "lost a silver key in the snow", "wrote a long letter to the mayor"),
    *("repaired the radio with a spoon", "sold forty apples at the market", "missed the last ferry of the year"),
    *("planted cherry trees along the river", "told the same joke twice", "painted the kitchen bright yellow"),
    *("won first prize and gave it back",),
]


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """200 short sentences, all different, one of them in other scripts too; every tenth has no metadata.

    The others have a column of each type.
    """
    return make_stories()


def make_stories() -> Corpus:
    """Return the corpus that all tests share."""
    texts = [f"{who.capitalize()} {what}." for who in WHO for what in WHAT]
    texts[7] += " Żółć, naïve café, 東京, 🦆."
    ids = [f"story-{row:03}" for row in range(len(texts))]
    metadata = [json.dumps(story_metadata(row)) if row % 10 else "{}" for row in range(200)]
    return Corpus(texts, ids, metadata, columns=STORY_COLUMNS)


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> Path:
    """A whole bundle. It is everyone's: a test that breaks something takes `bundle_copy`."""
    return write_bundle(tmp_path_factory.mktemp("world") / "bundle", corpus)


@pytest.fixture
def bundle_copy(bundle: Path, tmp_path: Path) -> Path:
    """A whole bundle that the test may break."""
    return Path(shutil.copytree(bundle, tmp_path / "bundle"))


@pytest.fixture(scope="session")
def manifest(bundle: Path) -> Manifest:
    return check_bundle(bundle)


@pytest.fixture(scope="session")
def embedder(bundle: Path, manifest: Manifest) -> Embedder:
    return Embedder.open(bundle, manifest.model)


@pytest.fixture(scope="session")
def make_app(bundle: Path, embedder: Embedder) -> Callable[..., App]:
    """Return what makes the real app, with other bundles, embedders or settings if asked. It logs to "tests"."""

    def make(
        bundle: Path = bundle,
        embedder: Embedder = embedder,
        settings: Settings | None = None,
        cold_start: ColdStart | None = None,
        executor: Executor | None = None,
    ) -> App:
        manifest = check_bundle(bundle)
        assert manifest.corpus_or_none is not None
        index, passages = Index.open(bundle / INDEX, manifest.corpus_or_none.stages), Passages(bundle / PASSAGES)
        logger = logging.getLogger("tests")
        if cold_start is None:
            cold_start = ColdStart(lambda phases: logger.info("cold start", extra={"milliseconds": dict(phases)}))
            cold_start.end({"imports": 1.0, "model": 2.345678})
        table = None if manifest.queries is None else QueryTable.open(bundle / QUERY_TABLE)
        loaded = LoadedBundle(manifest, embedder, bundle, passages, index, table=table)
        return create_app(loaded, settings or Settings(), logger, cold_start, executor)

    return make


@pytest.fixture(scope="session")
def connect(make_app: Callable[..., App]) -> Callable[..., httpx.Client]:
    """Return what connects a client to the app that `make_app` makes of the same arguments."""

    def connect_to(**changes: object) -> httpx.Client:
        return httpx.Client(transport=InProcess(make_app(**changes)), base_url="http://tests")

    return connect_to


@pytest.fixture(scope="session")
def client(connect: Callable[..., httpx.Client]) -> httpx.Client:
    """A client of an app that has answered before: the first reply tells of the cold start too."""
    client = connect()
    client.get("/health")
    return client


class InProcess(httpx.BaseTransport):
    """Calls the app without a network. Starlette's TestClient would do, but it warns unless httpx2 is installed."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def answer() -> httpx.Response:
            reply = await httpx.ASGITransport(self.app).handle_async_request(request)
            sent = b"".join([part async for part in reply.aiter_raw()])  # compressed or not, as the app sent it
            return httpx.Response(reply.status_code, headers=reply.headers, stream=httpx.ByteStream(sent))

        # unlike asyncio.run, this lets the thread keep the event loop that it has: Mangum's
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(answer())


def story_metadata(row: int) -> dict[str, object]:
    """Return the metadata of one of the corpus's texts; STORY_COLUMNS has their types."""
    return {
        "chapter": row // 10,
        "who": WHO[row // 10],
        "told": f"2024-{1 + row % 12:02}-05",
        "true": row % 3 == 0,
        "places": ["sea", "village"][: row % 3],
    }


def write_bundle(
    folder: Path,
    corpus: Corpus,
    keywords: KeywordOptions | None = KEYWORDS_BY_DEFAULT,
    tokenizer: Tokenizer | None = None,
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Path:
    """Write a bundle of these texts with the export's own writer, and give its folder."""
    folder.mkdir()
    tokenizer = tokenizer or make_tokenizer()
    save_tokenizer(tokenizer, folder / TOKENIZER)
    save_ort(make_graph(tokenizer.get_vocab_size()), folder / MODEL)
    model = ModelInfo("tests/mean-of-words", None, "0" * 64, "mean", DIM, MAX_TOKENS, {}, "none")
    manifest = write_model(folder, model)
    write_passages(folder / PASSAGES, corpus.texts, corpus.ids, corpus.metadata, corpus.sources)
    embedder = Embedder.open(folder, model)
    spans = embedder.embed(embedder.tokenize(sample_spans(corpus.texts), role="query"))
    rows = embed(embedder, corpus.texts)
    corpus = replace(corpus, facts=read_facts(corpus.metadata))
    write_index(folder, manifest, corpus, rows, spans, "stories.csv", keywords, options=options)
    return folder


def add_table(bundle: Path) -> Path:
    """Add a query table to a bundle of `write_bundle`, that of its model with one token changed; return its folder."""
    manifest = check_bundle(bundle)
    vectors = word_table(read_tokenizer(bundle / TOKENIZER).get_vocab_size())
    vectors[-1] *= -1
    save_tensors(bundle / QUERY_TABLE, {VECTORS: np.rint(vectors * 30).astype(np.int8)})
    write_queries(bundle, manifest, QueriesInfo(spans=0))
    return bundle


def add_floor(bundle: Path, scores: Mapping[str, float | None]) -> Path:
    """State floors in the manifest of a bundle of `write_bundle`, and return its folder."""
    manifest = check_bundle(bundle)
    floor = {mode: FloorInfo(score, kept=1.0) for mode, score in scores.items()}
    write_manifest(bundle, replace(manifest, corpus_or_none=replace(manifest.corpus, floor=floor)))
    return bundle


def embed(embedder: Embedder, texts: Sequence[str]) -> tuple[Codes, Scales]:
    """Return the rows that the export makes of the texts: codes (n, dim) int8 and scales (n,) float32."""
    with TemporaryDirectory() as folder:
        rows = embed_corpus(Cores(embedder), texts, Path(folder), "tests", embedder.model.dim)
    return rows.codes, rows.scales


def make_tokenizer() -> Tokenizer:
    """Return a tokenizer that knows the words of WHO and WHAT, with [CLS] and [SEP] around them as BERT's has."""
    normalizer, pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    words = {
        word for text in [*WHO, *WHAT] for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))
    }
    vocabulary = {word: number for number, word in enumerate([*SPECIAL_TOKENS, *sorted(words)])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    )
    return tokenizer


def word_table(words: int) -> Embeddings:
    """Return the vector of each word of the vocabulary, (words, DIM) float32."""
    return np.random.default_rng(seed=7).standard_normal((words, DIM), np.float32)


def make_graph(words: int) -> ModelProto:
    """Return the graph: each token's vector, their sum where the mask is 1, made a unit vector."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),  # (batch, tokens, dim)
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "axis"], ["weights"]),  # (batch, 1, tokens)
        helper.make_node("MatMul", ["weights", "vectors"], ["sums"]),  # (batch, 1, dim)
        helper.make_node("Squeeze", ["sums", "axis"], ["sum"]),
        helper.make_node("LpNormalization", ["sum"], ["embeddings"], axis=1, p=2),
    ]
    inputs = ("input_ids", "attention_mask")
    graph = helper.make_graph(
        nodes,
        "mean-of-words",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["batch", DIM])],
        [numpy_helper.from_array(word_table(words), "table"), numpy_helper.from_array(np.array([1]), "axis")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
