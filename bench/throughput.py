"""Texts embedded a second on all cores: the export against sentence-transformers' encode, on the same texts in turn."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.data import add_data_argument, read_headlines
from bench.embed import open_embedder
from bench.environments import PEERS, peer_python
from bench.models import SHIPPED, make_models
from bench.report import console, report
from export.indexer import embed_corpus
from export.source import find_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--texts", type=int, default=10_000, help="headlines to embed (194182 are there)")
    parser.add_argument("--rounds", type=int, default=5)


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    texts = read_headlines(options.data, options.texts)
    embedder = open_embedder(make_models(options.work)[SHIPPED])
    folder, *_ = find_model(None, None)
    seconds: dict[str, list[float]] = {"sentence-transformers encode": [], "export (w8a14)": []}
    peer_seconds, our_seconds = seconds.values()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "texts.json"
        file.write_text(json.dumps(texts), encoding="utf-8")
        command = [peer_python(options.work), PEERS / "sentence_transformers_encode.py", folder, file]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
            assert peer.stdin is not None
            assert peer.stdout is not None
            if peer.stdout.readline().strip() != "ready":
                sys.exit("the peer did not start")
            for round_number in range(options.rounds):
                print("go", file=peer.stdin, flush=True)
                peer_seconds.append(float(peer.stdout.readline()))
                begin = time.perf_counter()
                embed_corpus(embedder, texts)
                our_seconds.append(time.perf_counter() - begin)
                console.print(f"round {round_number + 1}: {peer_seconds[-1]:.1f} s, {our_seconds[-1]:.1f} s")
            peer.stdin.close()
    ratio = statistics.median(a / b for a, b in zip(peer_seconds, our_seconds, strict=True))
    rows = [(name, f"{len(texts) / statistics.median(found):,.0f}") for name, found in seconds.items()]
    rows.append(("times as fast, median of the rounds", f"{ratio:.2f}"))
    report("throughput", ("", "texts/s"), rows, {"texts": len(texts), "seconds": seconds, "ratio": ratio})
    return 0
