"""Texts embedded a second: the export against sentence-transformers' encode, on the same texts in turn.

The export embeds them with the 8-bit model on all cores, and with the float model on a device. Naive 8 bit, embedded by
the same code, shows the cost of closeness to float32. Recall is the share of sentence-transformers' ten nearest texts
that a query in 8 bit finds among the rows of each.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.report import console, make_provenance, report
from bench.texts import ARXIV, QUERY_WORDS, SEED, Texts, add_data_argument, read_papers, read_texts
from bench.work import NAIVE, SHIPPED, make_models, open_embedder, peer_python
from semsearch.engine.quantization import Embeddings, dequantize
from semsearch.indexing.models.source import find_model, read_source
from semsearch.indexing.vectors.device import Device
from semsearch.indexing.vectors.embed import Cores, PassageEmbedder, embed_corpus, embed_texts

PEER = "sentence-transformers encode"
QUERIES, NEAREST = 300, 10
# The peer, in an environment of its own. Its arguments are the model's folder, a device, and a folder with texts.json
# and queries.json. It writes the embeddings of both, prints "ready", and for each line that it reads the seconds that
# embedding all texts took.
ENCODE = """
import json, sys, time
import numpy as np
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device=sys.argv[2])
for name in ("queries", "texts"):
    texts = json.load(open(f"{sys.argv[3]}/{name}.json", encoding="utf-8"))
    np.save(f"{sys.argv[3]}/{name}.npy", model.encode(texts, normalize_embeddings=True))
print("ready", flush=True)
for _ in sys.stdin:
    begin = time.perf_counter()
    model.encode(texts)
    print(time.perf_counter() - begin, flush=True)
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one corpus gave, by the name of who embeds: seconds of each round, and recall."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    recall: dict[str, float] = field(default_factory=dict)

    def ratios(self) -> dict[str, float]:
        """Return how many times as fast as the peer each is: the median of the rounds."""
        peer = self.seconds[PEER]
        return {
            name: statistics.median(a / b for a, b in zip(peer, found, strict=True))
            for name, found in self.seconds.items()
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--texts", type=int, default=10_000, help="headlines to embed")
    parser.add_argument("--passages", type=int, default=1_000, help="abstracts to embed")
    parser.add_argument("--rounds", type=int, default=5, help="times that each embeds all texts")
    parser.add_argument("--device", default="cpu", help="device of the float model and of the peer, such as cuda:0")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    corpora = [read_texts(options.data, options.texts)]
    if (options.data / ARXIV[0]).is_file():
        papers = zip(read_papers(options.data), range(options.passages), strict=False)
        corpora.append(Texts("abstracts", "abstracts", [paper["abstract"] for paper, _ in papers]))
    measured = [measure(texts, options) for texts in corpora]
    rows = []
    for name in measured[0].seconds:
        row = [name]
        for texts, each in zip(corpora, measured, strict=True):
            speed = len(texts.texts) / statistics.median(each.seconds[name])
            row += [f"{speed:,.0f}", f"{each.ratios()[name]:.2f}", f"{each.recall[name]:.3f}"]
        rows.append(tuple(row))
    kinds = ("texts/s", "times as fast", "recall@10")
    columns = ("", *(f"{texts.kind}: {kind}" for texts in corpora for kind in kinds))
    details = {
        "number_of_texts": len(corpora[0].texts),
        "device": options.device,
        "seconds": [each.seconds for each in measured],
        "ratios": measured[0].ratios(),
        "recall": [each.recall for each in measured],
    }
    report(
        "throughput", columns, rows, details, make_provenance(" and ".join(texts.description() for texts in corpora))
    )
    return 0


def measure(texts: Texts, options: argparse.Namespace) -> Measured:
    """Embed one corpus with each in turn."""
    models = make_models(options.work)
    embedders = {name: open_embedder(models[name]) for name in (SHIPPED, NAIVE)}
    folder, name, revision = find_model(None, None)
    source = read_source(folder, name, revision)
    dtype = "float32" if options.device == "cpu" else "float16"
    device = Device(options.device, dtype, lambda: source, embedders[SHIPPED])
    candidates: dict[str, PassageEmbedder] = {name: Cores(embedder) for name, embedder in embedders.items()}
    candidates[f"{dtype} on {options.device}, with PyTorch's start"] = device  # each round is a process of its own
    chosen = np.random.default_rng(SEED).permutation(len(texts.texts))[:QUERIES]
    queries = [" ".join(texts.texts[row].split()[:QUERY_WORDS]) for row in chosen]
    found = Measured({PEER: [], **{name: [] for name in candidates}}, {PEER: 1.0})
    with tempfile.TemporaryDirectory() as scratch:
        for file, content in (("texts", texts.texts), ("queries", queries)):
            (Path(scratch) / f"{file}.json").write_text(json.dumps(content), encoding="utf-8")
        python = peer_python(options.work, "sentence-transformers")
        command: list[str | Path] = [python, "-c", ENCODE, folder, options.device, scratch]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
            assert peer.stdin is not None
            assert peer.stdout is not None
            if peer.stdout.readline().strip() != "ready":
                raise SystemExit(f"{PEER} did not start; its error is above")
            wanted = nearest(*(np.load(f"{scratch}/{file}.npy") for file in ("queries", "texts")))
            asked = embed_texts(embedders[SHIPPED], queries, role="query")
            for number in range(options.rounds):
                print("go", file=peer.stdin, flush=True)
                found.seconds[PEER].append(float(peer.stdout.readline()))
                for name, candidate in candidates.items():
                    begin = time.perf_counter()
                    with tempfile.TemporaryDirectory() as fresh:
                        rows = embed_corpus(candidate, texts.texts, Path(fresh), name, source.dim)
                    found.seconds[name].append(time.perf_counter() - begin)
                    pairs = zip(nearest(asked, dequantize(rows.codes, rows.scales)), wanted, strict=True)
                    found.recall[name] = float(np.mean([len(set(a) & set(b)) / NEAREST for a, b in pairs]))
                seconds = ", ".join(f"{each[-1]:.1f} s" for each in found.seconds.values())
                console.print(f"{texts.kind}, round {number + 1}:", seconds)
            peer.stdin.close()
    return found


def nearest(queries: Embeddings, rows: Embeddings) -> list[list[int]]:
    """Return the rows of the NEAREST best scores of each query."""
    return [np.argsort(-(rows @ query), kind="stable")[:NEAREST].tolist() for query in queries]
