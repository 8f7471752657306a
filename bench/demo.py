"""Search a bundle through the real handler, with the events that API Gateway sends."""

import argparse
import json
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from bench.emulator import Context, sample_event

QUESTIONS = (
    "unpack all files of an archive",
    "how many seconds until the program continues",
    "square root of a number",
    "split a text at white space",
    "run another program and read what it prints",
)
SHOWN = 3  # maximum hits of a question that are printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "questions", nargs="*", default=QUESTIONS, metavar="QUESTION", help="default: five about Python"
    )
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="default: bundle/")


def run(options: argparse.Namespace) -> int:
    """Ask and print."""
    console = Console(highlight=False, soft_wrap=True)
    os.environ["BUNDLE_DIR"] = str(options.bundle)
    os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "WARNING")  # no log line for each request
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"  # Lambda reads the cold start's metrics from standard output
    begin = time.perf_counter()
    from function.handler import handler

    loaded = (time.perf_counter() - begin) * 1e3
    info = json.loads(handle(handler, "/info"))
    model, index = info["model"], info["index"]
    texts = f"{index['rows']:,} texts of {index['corpus']}"
    console.print(f"{texts}, {model['name']}, ready in {loaded:.0f} ms\n", markup=False)
    for question in options.questions:
        begin = time.perf_counter()
        reply = json.loads(handle(handler, "/similar", {"text": question, "num_results": SHOWN}))
        took = (time.perf_counter() - begin) * 1e3
        console.print(f"[bold]{escape(question)}[/]  [dim]{took:.1f} ms[/]")
        for result in reply["results"]:
            console.print(f"  {result['score']:.2f}  {result['text'][:110]}", markup=False)
    serve = shlex.join(["semsearch", "serve", str(options.bundle)])
    console.print(f"\nServe it: {serve}", markup=False)
    return 0


def handle(
    handler: Callable[[dict[str, Any], Any], dict[str, Any]], path: str, body: dict[str, Any] | None = None
) -> str:
    """Send one event and return the reply's body; exit with the body if it is an error."""
    reply = handler(sample_event(path, body), Context())
    if reply["statusCode"] != 200:
        raise SystemExit(f"{path}: {reply['body']}")
    return str(reply["body"])
