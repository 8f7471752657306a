"""Milliseconds of one /similar request through the whole handler, beside the bare work inside it.

The bare work is the session's run on ready token ids and the scan of the mapped index: what no handler can do without.
"""

import argparse
import csv
import os
import statistics
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import simsimd

from bench.data import add_data_argument, read_headlines
from bench.events import Context, http_event
from bench.report import report
from function.engine.bundle import INDEX, MODEL, read_manifest
from function.engine.embedder import Embedder, open_session
from function.engine.quantization import quantize
from function.engine.tensors import map_tensors

WARM_UP = 50  # requests that are not counted
TOP_K = 20  # candidates of a request for 5 results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="headlines in the index")
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--words", type=int, default=4, help="words in a query")


def headlines_bundle(work: Path, data: Path, rows: int) -> Path:
    """Give the bundle of the first headlines, exported unless it is there."""
    bundle = work / f"headlines-{rows}"
    if not (bundle / "manifest.json").exists():
        from export.cli import main

        work.mkdir(parents=True, exist_ok=True)
        corpus = work / f"headlines-{rows}.csv"
        with corpus.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["text"])
            writer.writerows([text] for text in read_headlines(data, rows))
        if main(["--corpus", str(corpus), "--out", str(bundle)]) != 0:
            sys.exit("the export failed")
    return bundle


def short_queries(data: Path, words: int, count: int) -> list[str]:
    """Give the first words of headlines that are in no measured index."""
    return [" ".join(text.split()[:words]) for text in read_headlines(data, 190_000 + count)[190_000:]]


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    bundle = headlines_bundle(options.work, options.data, options.rows)
    queries = short_queries(options.data, options.words, 1_000)
    os.environ["BUNDLE_DIR"] = str(bundle)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # log lines are written, as in Lambda
        from function.handler import handler

        embedder = Embedder.open(bundle, read_manifest(bundle).model)
        session, codes = open_session(bundle / MODEL), map_tensors(bundle / INDEX)["codes"]
        phases: dict[str, list[float]] = {"whole handler": [], "bare session.run": [], "bare scan": []}
        for number in range(options.requests + WARM_UP):
            text = queries[number % len(queries)]
            input_ids = np.array([embedder.tokenize([text])[0].ids], np.int64)
            feed = {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids)}
            event = http_event("/similar", {"text": text})

            begin = time.perf_counter()
            (embedding,) = session.run(None, feed)
            embedded = time.perf_counter()
            query, _ = quantize(embedding)
            products = np.asarray(simsimd.cdist(query, codes, metric="dot", out_dtype="float32"))[0]
            np.argpartition(products, len(products) - TOP_K)[-TOP_K:]
            scanned = time.perf_counter()
            reply = handler(event, Context())  # type: ignore[arg-type]
            replied = time.perf_counter()

            if reply["statusCode"] != 200:
                raise SystemExit(f"the handler answered {reply}")
            if number >= WARM_UP:
                phases["bare session.run"].append((embedded - begin) * 1e3)
                phases["bare scan"].append((scanned - embedded) * 1e3)
                phases["whole handler"].append((replied - scanned) * 1e3)
                for entry in reply["headers"]["server-timing"].split(", "):
                    name, duration = entry.split(";dur=")
                    phases.setdefault(f"handler: {name}", []).append(float(duration))
    medians = {name: statistics.median(found) for name, found in phases.items()}
    bare = medians["bare session.run"] + medians["bare scan"]
    ratio = medians["whole handler"] / bare
    rows = [
        (name, f"{medians[name]:.2f}", f"{np.percentile(found, 90):.2f}", f"{np.percentile(found, 99):.2f}")
        for name, found in phases.items()
    ]
    rows.append(("whole handler / bare work", f"{ratio:.2f}", "", ""))
    details = {
        "rows": options.rows,
        "requests": options.requests,
        "words": options.words,
        "p50": medians,
        "ratio": ratio,
    }
    report("warm", ("", "p50 ms", "p90 ms", "p99 ms"), rows, details)
    return 0
