"""How close 8 bit stays to float32, how long a text takes, and how many texts are embedded a second.

SciFact hardly changes with the precision of a model; a headline's ten nearest neighbours show more.
"""

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import DATA, WORK
from bench.tables import make_provenance, report
from bench.work import (
    ARXIV,
    NAIVE,
    SHIPPED,
    TOP_K,
    Retrieval,
    Texts,
    embed_once,
    make_models,
    ndcg,
    open_embedder,
    peer_python,
    read_headlines,
    read_papers,
    read_scifact,
    read_texts,
)
from semsearch.engine.embedder import Embedder, TokenIds
from semsearch.engine.quantization import Embeddings
from semsearch.indexing.models.source import find_model, read_source
from semsearch.indexing.vectors.device import Device
from semsearch.indexing.vectors.embed import Cores, PassageEmbedder, embed_corpus
from semsearch.indexing.vectors.recall import neighbour_recall

QUERIES, OTHERS = 1_000, 20_000  # headlines: those whose neighbours are looked for, and the corpus
LENGTHS = (8, 16, 32)  # tokens of the timed texts
PEER = "sentence-transformers encode"
# The peer, in an environment of its own. Its arguments are the model's folder, a device, and texts.json. It prints
# "ready", and for each line that it reads the seconds that embedding all texts took.
ENCODE = """
import json, sys, time
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device=sys.argv[2])
texts = json.load(open(sys.argv[3], encoding="utf-8"))
model.encode(texts)
print("ready", flush=True)
for _ in sys.stdin:
    begin = time.perf_counter()
    model.encode(texts)
    print(time.perf_counter() - begin, flush=True)
"""


def accuracy(*, work: Path = WORK, data: Path = DATA) -> None:
    """How close 8 bit stays to float32: a test set, and the nearest neighbours of headlines."""
    headlines = read_headlines(data, QUERIES + OTHERS)
    scifact = read_scifact(data)
    results: dict[str, dict[str, Any]] = {}
    exact: Embeddings | None = None
    for name, path in make_models(work).items():
        print(f"measuring {name} ...", flush=True)
        found = embed_once(work, path, headlines)
        exact = found if exact is None else exact  # float32 is the first
        scores = exact[:QUERIES] @ exact[QUERIES:].T
        results[name] = {
            "megabytes": round(path.stat().st_size / 1e6, 1),
            "scifact_ndcg_at_10": round(scifact_ndcg(work, path, scifact), 5),
            "cosine_mean": round(float((exact * found).sum(axis=1).mean()), 6),
            "recall_both_sides": round(neighbour_recall(scores, found[:QUERIES] @ found[QUERIES:].T, TOP_K), 4),
            "recall_query_alone": round(neighbour_recall(scores, found[:QUERIES] @ exact[QUERIES:].T, TOP_K), 4),
        }
    columns = ["weights", "MB", "SciFact nDCG@10", "cosine to float32", "recall@10 both sides"]
    columns += ["recall@10 query alone"]
    rows = [(name, *row.values()) for name, row in results.items()]
    details = {"results": results, "queries": QUERIES, "others": OTHERS}
    source = make_provenance(f"{len(headlines):,} headlines, and SciFact")
    report("accuracy", columns, rows, details, source)


def scifact_ndcg(work: Path, model: Path, test: Retrieval) -> float:
    """Return the mean nDCG@10 of the exact search over the float32 embeddings of one model."""
    documents = embed_once(work, model, list(test.documents.values()))
    return ndcg(nearest(embed_once(work, model, list(test.queries.values())), documents), test)


def nearest(queries: Embeddings, rows: Embeddings) -> list[list[int]]:
    """Return the TOP_K rows with the best scores of each query."""
    return [np.argsort(-(rows @ query), kind="stable")[:TOP_K].tolist() for query in queries]


def latency(*, rounds: int = 200, work: Path = WORK, data: Path = DATA) -> None:
    """How long one text takes on one thread, by its length and the precision of the model.

    The models take turns: a model that runs alone in a loop keeps its weights in the processor's caches, and a function
    that waits for requests does not.

    Args:
        rounds: timed texts of each length.
    """
    embedders = {name: open_embedder(path) for name, path in make_models(work).items()}
    texts = read_texts(data, OTHERS)
    times = time_in_turn(embedders, texts.texts, rounds)
    medians = {name: {n: statistics.median(times[name][n]) for n in LENGTHS} for name in embedders}
    ratios = {name: {n: found[n] / medians[NAIVE][n] for n in LENGTHS} for name, found in medians.items()}
    rows = [(name, *(f"{found[n]:.2f} ({ratios[name][n]:.2f})" for n in LENGTHS)) for name, found in medians.items()]
    columns = ("weights", *(f"{length} tokens: ms (ratio to naive)" for length in LENGTHS))
    details = {"median": medians, "ratios": ratios}
    report("latency", columns, rows, details, make_provenance(texts.description()))


def time_in_turn(
    embedders: Mapping[str, Embedder], texts: Sequence[str], rounds: int
) -> dict[str, dict[int, list[float]]]:
    """Return the milliseconds of each text by embedder and by its number of tokens; the embedders take turns.

    It is the processor time of the only thread, so that other programs count less.
    """
    tokens = next(iter(embedders.values())).tokenize(texts)
    by_length = {length: texts_of(tokens, length) for length in LENGTHS}
    times: dict[str, dict[int, list[float]]] = {name: {length: [] for length in LENGTHS} for name in embedders}
    for number in range(rounds):
        for length, chosen in by_length.items():
            text = chosen[number % len(chosen)]
            for name, embedder in embedders.items():
                begin = time.thread_time()
                embedder.embed([text])
                times[name][length].append((time.thread_time() - begin) * 1e3)
    return times


def texts_of(tokens: Sequence[TokenIds], length: int) -> list[TokenIds]:
    """Return the texts with at least this many tokens, cut to this length. The last token marks the end of a text."""
    longer = [text for text in tokens if len(text.ids) >= length]
    return [replace(text, ids=[*text.ids[: length - 1], text.ids[-1]]) for text in longer]


def throughput(
    *,
    texts: int = 3_000,
    passages: int = 300,
    rounds: int = 3,
    device: str = "cpu",
    work: Path = WORK,
    data: Path = DATA,
) -> None:
    """How many texts a second an export embeds, beside sentence-transformers on the same texts in turn.

    The export embeds them with the 8-bit model on all cores, and with the float model on a device. Naive 8 bit,
    embedded by the same code, shows the cost of closeness to float32.

    Args:
        texts: headlines to embed.
        passages: abstracts to embed.
        rounds: times that each embeds all texts.
        device: device of the float model and of the peer, such as cuda:0.
    """
    corpora = [read_texts(data, texts)]
    if (data / ARXIV[0]).is_file():
        papers = zip(read_papers(data), range(passages), strict=False)
        corpora.append(Texts("abstracts", [paper["abstract"] for paper, _ in papers]))
    found = [embed_in_turn(each, rounds, device, work) for each in corpora]
    rows = []
    for name in found[0]:
        row = [name]
        for corpus, seconds in zip(corpora, found, strict=True):
            speed = len(corpus.texts) / statistics.median(seconds[name])
            row += [f"{speed:,.0f}", f"{ratios_to_peer(seconds)[name]:.2f}"]
        rows.append(tuple(row))
    kinds = ("texts/s", "times as fast")
    columns = ("", *(f"{corpus.kind}: {kind}" for corpus in corpora for kind in kinds))
    details = {"ratios": ratios_to_peer(found[0]), "ratios_of_passages": ratios_to_peer(found[-1])}
    source = make_provenance(" and ".join(corpus.description() for corpus in corpora))
    report("throughput", columns, rows, details, source)


def embed_in_turn(texts: Texts, rounds: int, device: str, work: Path) -> dict[str, list[float]]:
    """Return the seconds of each round, by the name of who embeds; all take turns."""
    models = make_models(work)
    embedders = {name: open_embedder(models[name]) for name in (SHIPPED, NAIVE)}
    folder, name, revision = find_model(None, None)
    source = read_source(folder, name, revision)
    dtype = "float32" if device == "cpu" else "float16"
    on_device = Device(device, dtype, lambda: source, embedders[SHIPPED])
    candidates: dict[str, PassageEmbedder] = {name: Cores(embedder) for name, embedder in embedders.items()}
    candidates[f"{dtype} on {device}, with PyTorch's start"] = on_device  # each round is a process of its own
    found: dict[str, list[float]] = {PEER: [], **{name: [] for name in candidates}}
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "texts.json").write_text(json.dumps(texts.texts), encoding="utf-8")
        python = peer_python(work, "sentence-transformers")
        command: list[str | Path] = [python, "-c", ENCODE, folder, device, f"{scratch}/texts.json"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
            assert peer.stdin is not None
            assert peer.stdout is not None
            if peer.stdout.readline().strip() != "ready":
                raise SystemExit(f"{PEER} did not start; its error is above")
            for number in range(rounds):
                print("go", file=peer.stdin, flush=True)
                found[PEER].append(float(peer.stdout.readline()))
                for name, candidate in candidates.items():
                    begin = time.perf_counter()
                    with tempfile.TemporaryDirectory() as fresh:
                        embed_corpus(candidate, texts.texts, Path(fresh), name, source.dim)
                    found[name].append(time.perf_counter() - begin)
                seconds = ", ".join(f"{each[-1]:.1f} s" for each in found.values())
                print(f"{texts.kind}, round {number + 1}: {seconds}", flush=True)
            peer.stdin.close()
    return found


def ratios_to_peer(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return how many times as fast as the peer each is: the median of the rounds."""
    pairs = {name: zip(seconds[PEER], own, strict=True) for name, own in seconds.items()}
    return {name: statistics.median(peer / own for peer, own in rounds) for name, rounds in pairs.items()}
