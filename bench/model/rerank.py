"""How long a search with rerank takes with models of the shapes of ms-marco-TinyBERT-L2 and ms-marco-MiniLM-L6.

The weights are random, because they do not change the time. A pair has as many tokens as the table says. A plain search
of the bundle alternates with the pairs. Times are those that one core works, so other programs change them little.
"""

import argparse
import shutil
from pathlib import Path
from statistics import median
from time import thread_time_ns

from bench.report import Missing, make_provenance, report
from bench.texts import add_data_argument, documentation, short_queries
from function.engine.bundle import RERANK, RERANK_TOKENIZER, BundleError
from function.engine.embedder import TokenIds, open_session
from function.engine.loading import LoadedBundle, load_bundle
from function.engine.rerank.reranker import Reranker
from function.engine.tokenizer import read_tokenizer

WRITES: tuple[str, ...] = ("rerank",)
MEASURES: tuple[str, ...] = ("export.model.rerank.reranker", "requirements.txt")
SHAPES = {"TinyBERT-L2": (2, 128, 2, 512), "MiniLM-L6": (6, 384, 12, 1536)}  # layers, hidden size, heads, intermediate
CANDIDATES, TOKENS = (20, 50), (30, 40, 150)
TEXTS = 400  # texts that calibrate a random model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="the bundle whose plain search is measured")
    parser.add_argument("--requests", type=int, default=30)


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    try:
        bundle = load_bundle(options.bundle)
    except BundleError as error:
        raise Missing(str(error)) from error
    queries = short_queries(options.data, 4, options.requests)
    results: dict[str, dict[str, float]] = {}
    for name in SHAPES:
        reranker = make_shape(name, options.work / "rerank" / name)
        for count in CANDIDATES:
            for tokens in TOKENS:
                found = measure(bundle, reranker, queries, count, tokens)
                results[f"{name}, {count} pairs of {tokens} tokens"] = found
    rows = [
        (name, f"{each['pairs']:.1f}", f"{each['plain']:.1f}", f"{each['ratio']:.2f}") for name, each in results.items()
    ]
    source = make_provenance(f"{len(bundle.index):,} texts, {options.requests} queries of 4 words")
    report("rerank", ("reranker", "pairs ms", "plain search ms", "pairs / plain"), rows, {"p50": results}, source)
    return 0


def measure(bundle: LoadedBundle, reranker: Reranker, queries: list[str], count: int, tokens: int) -> dict[str, float]:
    """Return the median milliseconds of scoring pairs and of a plain search, and the median of their ratios."""
    pairs = [
        TokenIds([1000 + (place * row) % 20_000 for place in range(tokens)], False, [0] * tokens)
        for row in range(count)
    ]
    laps: list[tuple[float, float]] = []
    for query in queries:
        begin = thread_time_ns()
        (embedding,) = bundle.embedder.embed(bundle.embedder.tokenize([query], role="query"))
        for hit in bundle.index.search(embedding, 5):
            bundle.passages[hit.row]
        middle = thread_time_ns()
        reranker.score(pairs)
        laps.append(((thread_time_ns() - middle) / 1e6, (middle - begin) / 1e6))
    scored, plain = zip(*laps, strict=True)
    return {"pairs": median(scored), "plain": median(plain), "ratio": median(one / other for one, other in laps)}


def make_shape(name: str, folder: Path) -> Reranker:
    """Return a reranker of this shape with random weights and the default model's tokenizer."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from export.model.calibration_texts import split_texts
    from export.model.rerank.reranker import export_reranker
    from export.model.source.cross_encoder import read_cross_encoder
    from export.model.source.source import find_model

    shutil.rmtree(folder, ignore_errors=True)
    layers, hidden, heads, inner = SHAPES[name]
    torch.manual_seed(7)
    config = BertConfig(30_522, hidden, layers, heads, inner, num_labels=1, initializer_range=0.1)
    BertForSequenceClassification(config).save_pretrained(folder / "model")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(find_model(None, None)[0] / file, folder / "model" / file)
    info = export_reranker(read_cross_encoder(folder / "model", name), split_texts(documentation()[:TEXTS]), folder)
    return Reranker(read_tokenizer(folder / RERANK_TOKENIZER), open_session(folder / RERANK), info)
