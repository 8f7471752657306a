"""Seconds and dollars of the costliest requests to /predict, with MAX_TOKENS and before it existed, beside a /similar.

A token of a long text costs more than one of a short text, so the costliest texts are as long as the model reads. The
tokenizer reads all of a text before it cuts the text to that length, so long texts cost more than their tokens.
All run on one core, which is what a function of 1,769 MB has. The seconds are those of the processor, because the
requests wait for nothing else, and what other programs on this machine take does not count.
"""

import argparse
import os
import statistics
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.bundles import make_bundle
from bench.function.emulator import Context, compute, sample_event
from bench.report import make_provenance, report
from bench.texts import add_data_argument, read_texts, short_queries
from function.engine.bundle import read_manifest
from function.engine.embedder import Embedder
from function.settings import LAMBDA_TOKENS, Settings

WRITES: tuple[str, ...] = ("limits",)
MEASURES: tuple[str, ...] = ("function.handler", "requirements.txt")
MEMORY = 1_769  # megabytes: one core; https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
WORDS = 4  # in the ordinary search, as in `warm`
JSON_AROUND_A_TEXT = 8  # bytes, rounded up: quotes, a comma, and a share of the braces
# WordPiece splits words of up to 100 characters and looks for each piece from the longest one down. The vocabulary has
# only single letters of this word, so the tokenizer looks up 5,050 pieces (100 + 99 + ... + 1).
SLOWEST_WORD = "q" * 100 + " "
FORMER_BODY_LIMIT = 1024 * 1024  # bytes; these two were the only limits before tokens and characters had limits
FORMER_TEXTS = 256
ORDINARY = "an ordinary search"
SEARCHES = 50  # in each round: the first ones after a costly request find the processor's caches full of other things


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its route, and its text or texts."""

    path: str
    text: str | list[str]

    def event(self) -> dict[str, Any]:
        """Return the event that carries the request."""
        return sample_event(self.path, {"text": self.text})


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one request: its tokens as the model reads them, and the processor's seconds in each round."""

    tokens: int
    seconds: list[float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--rounds", type=int, default=5, help="costly requests of each kind, in turn")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    texts = read_texts(options.data, options.rows)
    bundle = make_bundle(options.work, texts)
    (query,) = short_queries(options.data, WORDS, 1)
    requests = make_requests(query, read_manifest(bundle).model.max_tokens)
    seen = measure(bundle, requests, options.rounds)
    medians = {name: statistics.median(one.seconds) for name, one in seen.items()}
    dollars = {name: compute(seconds * 1e3, MEMORY) for name, seconds in medians.items()}
    rows = [
        (
            name,
            f"`{request.path}`",
            len(request.text) if isinstance(request.text, list) else 1,
            f"{seen[name].tokens:,}",
            f"{len(request.event()['body']):,}",
            f"{medians[name]:.3f}",
            f"{dollars[name] * 1e6:,.2f}",
            f"{medians[name] / medians[ORDINARY]:,.0f}",
        )
        for name, request in requests.items()
    ]
    columns = ("request", "route", "texts", "tokens", "bytes", "seconds", "$ of computing per million", "times as long")
    details = {
        "rows": len(texts.texts),
        "memory": MEMORY,
        "tokens": {name: one.tokens for name, one in seen.items()},
        "seconds": {name: one.seconds for name, one in seen.items()},
        "dollars": dollars,
    }
    report("limits", columns, rows, details, make_provenance(texts.description()))
    return 0


def make_requests(query: str, max_tokens: int, limit: int = LAMBDA_TOKENS) -> dict[str, Request]:
    """Return the requests by name, for a model that reads max_tokens tokens of a text, and a limit of MAX_TOKENS.

    Those "before" were accepted when tokens and characters were not limited; now they need a larger MAX_TOKENS.
    """
    full = "word " * max_tokens  # cut to max_tokens, because special tokens come to it
    allowed = limit // max_tokens
    return {
        ORDINARY: Request("/similar", query),
        "as many tokens as are allowed": Request("/predict", [full] * allowed),
        "and as many characters": Request(
            "/predict", [slowest(Settings(max_tokens=limit).max_characters // allowed)] * allowed
        ),
        "before: as many bytes": Request(
            "/predict", [slowest(FORMER_BODY_LIMIT // allowed - JSON_AROUND_A_TEXT)] * allowed
        ),
        "before: as many texts": Request("/predict", [full] * FORMER_TEXTS),
    }


def slowest(length: int) -> str:
    """Return the text of this many characters that takes the tokenizer longest."""
    return (SLOWEST_WORD * length)[:length]


def measure(bundle: Path, requests: dict[str, Request], rounds: int) -> dict[str, Seen]:
    """Return what was seen of each request through the whole handler.

    Each round sends the ordinary search SEARCHES times and every other request once.
    Raises SystemExit if a reply's status is not 200.
    """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, for the tokenizer's threads too
    os.environ["BUNDLE_DIR"] = str(bundle)
    os.environ["MAX_TOKENS"] = str(FORMER_TEXTS * read_manifest(bundle).model.max_tokens)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # log lines are written, as in Lambda
        from function.handler import handler

        embedder = Embedder.open(bundle, read_manifest(bundle).model)
        seen = {}
        for name, request in requests.items():
            texts = request.text if isinstance(request.text, list) else [request.text]
            seen[name] = Seen(sum(len(tokens.ids) for tokens in embedder.tokenize(texts)), [])
        for _ in range(rounds):
            for name in [ORDINARY] * (SEARCHES - 1) + list(requests):
                event = requests[name].event()
                begin = time.process_time()
                reply = handler(event, Context())  # type: ignore[arg-type]
                seen[name].seconds.append(time.process_time() - begin)
                if reply["statusCode"] != 200:
                    raise SystemExit(f"{name}: the handler answered {reply['statusCode']}: {reply['body'][:200]}")
    return seen
