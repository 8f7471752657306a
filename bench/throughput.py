"""Texts embedded a second on all cores: the export against sentence-transformers' encode, on the same texts in turn.

Naive int8, embedded by the same code, shows the cost of closeness to float32.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench.report import console, make_provenance, report
from bench.texts import add_data_argument, read_texts
from bench.work import NAIVE, SHIPPED, make_models, open_embedder, peer_python
from semsearch.indexing.models.source import find_model
from semsearch.indexing.vectors.embed import Cores, embed_corpus

PEER = "sentence-transformers encode"
# The peer, in an environment of its own. Its arguments are the model's folder and a JSON list of texts. It prints
# "ready", and for each line that it reads the seconds that embedding all texts took.
ENCODE = """
import json, sys, time
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
texts = json.load(open(sys.argv[2], encoding="utf-8"))
model.encode(texts[:64])
print("ready", flush=True)
for _ in sys.stdin:
    begin = time.perf_counter()
    model.encode(texts)
    print(time.perf_counter() - begin, flush=True)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--texts", type=int, default=10_000, help="texts to embed")
    parser.add_argument("--rounds", type=int, default=5, help="times that each embeds all texts")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    chosen = read_texts(options.data, options.texts)
    texts, models = chosen.texts, make_models(options.work)
    embedders = {name: open_embedder(models[name]) for name in (SHIPPED, NAIVE)}
    folder, *_ = find_model(None, None)
    seconds: dict[str, list[float]] = {PEER: [], **{name: [] for name in embedders}}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "texts.json"
        file.write_text(json.dumps(texts), encoding="utf-8")
        command: list[str | Path] = [peer_python(options.work, "sentence-transformers"), "-c", ENCODE, folder, file]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
            assert peer.stdin is not None
            assert peer.stdout is not None
            if peer.stdout.readline().strip() != "ready":
                raise SystemExit(f"{PEER} did not start; its error is above")
            for number in range(options.rounds):
                print("go", file=peer.stdin, flush=True)
                seconds[PEER].append(float(peer.stdout.readline()))
                for name, embedder in embedders.items():
                    begin = time.perf_counter()
                    with tempfile.TemporaryDirectory() as fresh:
                        embed_corpus(Cores(embedder), texts, Path(fresh), name, embedder.model.dim)
                    seconds[name].append(time.perf_counter() - begin)
                console.print(f"round {number + 1}:", ", ".join(f"{found[-1]:.1f} s" for found in seconds.values()))
            peer.stdin.close()
    ratios = {
        name: statistics.median(a / b for a, b in zip(seconds[PEER], found, strict=True))
        for name, found in seconds.items()
    }
    speeds = {name: len(texts) / statistics.median(found) for name, found in seconds.items()}
    rows = [(name, f"{speeds[name]:,.0f}", f"{ratios[name]:.2f}") for name in seconds]
    columns = ("", "texts/s", "times as fast, median of the rounds")
    details = {"number_of_texts": len(texts), "seconds": seconds, "ratios": ratios}
    report("throughput", columns, rows, details, make_provenance(chosen.description()))
    return 0
