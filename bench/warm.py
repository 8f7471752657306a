"""Requests through the real handler in this process: the demo, and the milliseconds of a warm request.

`warm` compares the handler with the bare work inside it: the session's run on ready token ids, and its own search.
`memory` has warm requests under Lambda's emulator.
"""

import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from bench import DATA, WORK
from bench.emulator import CONTEXT, sample_event
from semsearch.commands.console import suggested

QUESTIONS = (
    "unpack all files of an archive",
    "how many seconds until the program continues",
    "square root of a number",
    "split a text at white space",
    "run another program and read what it prints",
)
SHOWN = 3  # maximum hits of a question that are printed
ROWS = 30_000  # texts in the index
WARM_UP = 50  # first requests, which are not counted

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def demo(*questions: str, bundle: Path = Path("bundle")) -> None:
    """Search a bundle with the events that API Gateway sends, and print questions and answers.

    Args:
        questions: five about Python, if there are none.
        bundle: what `make demo` made, or another one.
    """
    os.environ["BUNDLE_DIR"] = str(bundle)
    os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "WARNING")  # no log line for each request
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"  # Lambda reads the cold start's metrics from standard output
    begin = time.perf_counter()
    from function.handler import handler  # nothing of it was imported before, so this is a start

    loaded = (time.perf_counter() - begin) * 1e3
    info = json.loads(handle(handler, "/info"))
    model, index = info["model"], info["index"]
    print(f"{index['rows']:,} texts of {index['corpus']}, {model['name']}, ready in {loaded:.0f} ms\n")
    for question in questions or QUESTIONS:
        begin = time.perf_counter()
        reply = json.loads(handle(handler, "/similar", {"text": question, "num_results": SHOWN}))
        took = (time.perf_counter() - begin) * 1e3
        print(f"{question}  {took:.1f} ms")
        for result in reply["results"]:
            print(f"  {result['score']:.2f}  {result['text'][:110]}")
    print(f"\nServe it: {suggested('serve', bundle)}")


def handle(handler: Handler, path: str, body: dict[str, Any] | None = None) -> str:
    """Send one event and return the reply's body; exit with the body if it is an error."""
    reply = handler(sample_event(path, body), CONTEXT)
    if reply["statusCode"] != 200:
        raise SystemExit(f"{path}: {reply['body']}")
    return str(reply["body"])


def warm(*, requests: int = 1_000, work: Path = WORK, data: Path = DATA) -> None:
    """How long a warm request takes, and how much of that is the model and the search."""
    import numpy as np

    from bench.tables import make_provenance, report
    from bench.work import QUERY_WORDS, make_bundle, read_texts, short_queries

    texts = read_texts(data, ROWS)
    phases = measure(make_bundle(work, texts), short_queries(data), requests)
    medians = {name: statistics.median(found) for name, found in phases.items()}
    rows = [(name, *(f"{np.percentile(found, share):.2f}" for share in (50, 90, 99))) for name, found in phases.items()]
    bare = medians["bare session.run"] + medians["handler: search"]
    rows.append(
        ("whole handler / (bare session.run + its own search)", f"{medians['whole handler'] / bare:.2f}", "", "")
    )
    details = {"rows": len(texts.texts), "words": QUERY_WORDS, "p50": medians}
    report("warm", ("", "p50 ms", "p90 ms", "p99 ms"), rows, details, make_provenance(texts.description()))


def measure(bundle: Path, queries: Sequence[str], requests: int) -> dict[str, list[float]]:
    """Return the milliseconds of bare work and of the whole handler, one request of each in turn."""
    import numpy as np

    from semsearch.engine.bundle import MODEL, read_manifest
    from semsearch.engine.embedder import Embedder, open_session

    os.environ["BUNDLE_DIR"] = str(bundle)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # log lines are written, as in Lambda
        from function.handler import handler

        embedder = Embedder.open(bundle, read_manifest(bundle).model)
        session = open_session(bundle / MODEL)
        phases: dict[str, list[float]] = {"whole handler": [], "bare session.run": []}
        for number in range(requests + WARM_UP):
            text = queries[number % len(queries)]
            input_ids = np.array([embedder.tokenize([text])[0].ids], np.int64)
            feed = {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids)}
            event = sample_event("/similar", {"text": text, "mode": "semantic"})

            begin = time.perf_counter()
            session.run(None, feed)
            embedded = time.perf_counter()
            reply = handler(event, CONTEXT)
            replied = time.perf_counter()

            if reply["statusCode"] != 200:
                raise SystemExit(f"the handler answered {reply}")
            if number >= WARM_UP:
                phases["bare session.run"].append((embedded - begin) * 1e3)
                phases["whole handler"].append((replied - embedded) * 1e3)
                for entry in reply["headers"]["server-timing"].split(", "):
                    name, duration = entry.split(";dur=")
                    phases.setdefault(f"handler: {name}", []).append(float(duration))
    return phases
