"""Milliseconds of one /similar request through the whole handler, beside the bare work inside it.

The bare work is the session's run on ready token ids and a scan of all rows in 8 bit, the plain way to search. The
handler scans signs first, which is quicker: the stricter ratio takes its own search in the place of the scan.
`memory` has warm requests in the image, under Lambda's emulator.
"""

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from bench.emulator import Context, sample_event
from bench.report import make_provenance, report
from bench.texts import add_data_argument, read_texts, short_queries
from bench.work import make_bundle

WARM_UP = 50  # first requests, which are not counted
TOP_K = 20  # candidates of a request for 5 results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--requests", type=int, default=1_000)


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    texts = read_texts(options.data, options.rows)
    bundle = make_bundle(options.work, texts)
    queries = short_queries(options.data, 1_000)
    phases = in_process(bundle, queries, options.requests)
    medians = {name: statistics.median(found) for name, found in phases.items()}
    bare = medians["bare session.run"] + medians["bare scan"]
    ratio = medians["whole handler"] / bare
    own = medians["whole handler"] / (medians["bare session.run"] + medians["handler: search"])
    rows = [(name, *(f"{np.percentile(found, share):.2f}" for share in (50, 90, 99))) for name, found in phases.items()]
    rows.append(("whole handler / bare work", f"{ratio:.2f}", "", ""))
    rows.append(("whole handler / (bare session.run + its own search)", f"{own:.2f}", "", ""))
    details = {"rows": len(texts.texts), "requests": options.requests, "p50": medians, "ratio": ratio}
    report("warm", ("", "p50 ms", "p90 ms", "p99 ms"), rows, details, make_provenance(texts.description()))
    return 0


def in_process(bundle: Path, queries: Sequence[str], requests: int) -> dict[str, list[float]]:
    """Return the milliseconds of bare work and of the whole handler, one request of each in turn."""
    import simsimd

    from semsearch.engine.bundle import INDEX, MODEL, read_manifest
    from semsearch.engine.embedder import Embedder, open_session
    from semsearch.engine.quantization import quantize
    from semsearch.engine.tensors import map_tensors

    os.environ["BUNDLE_DIR"] = str(bundle)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # log lines are written, as in Lambda
        from function.handler import handler

        embedder = Embedder.open(bundle, read_manifest(bundle).model)
        session, codes = open_session(bundle / MODEL), map_tensors(bundle / INDEX)["codes"]
        phases: dict[str, list[float]] = {"whole handler": [], "bare session.run": [], "bare scan": []}
        for number in range(requests + WARM_UP):
            text = queries[number % len(queries)]
            input_ids = np.array([embedder.tokenize([text])[0].ids], np.int64)
            feed = {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids)}
            event = sample_event("/similar", {"text": text, "mode": "semantic"})

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
    return phases
