"""python -m function query: search a bundle from the shell, without a server and without importing one."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from function.engine.bundle import BundleError
from function.engine.index import MOST_HITS
from function.engine.loading import Loaded, load
from function.engine.tensors import TensorsError
from function.engine.words import WORD, Stem, find_stemmer, split_terms
from function.execution import InlineExecution
from function.repeated_keys import RepeatedKeyError, refuse_repeated_keys
from function.search import BackendError, Found, Query, SearchError, make_search
from function.settings import SettingsError, read_settings

MODES = ("semantic", "keyword", "hybrid")
BOLD, NORMAL = "\x1b[1m", "\x1b[0m"
NARROWEST_TEXT = 20  # characters of a hit that are shown even where the terminal has no room for them
EXAMPLES = """\
examples:
  python -m function query "self driving cars" --bundle bundle/
  python -m function query "order AB-1234" --mode keyword --num-results 3
  python -m function query "elections" --filter '{"date": {"$gte": "2016-01-01"}}'
  python -m function query --file queries.txt --json > results.jsonl
  git log --format=%s | python -m function query --file - --json
"""

Result = TypeVar("Result")


def main(arguments: Sequence[str]) -> int:
    """Search and print; return the exit code.

    0: searched, 1: the bundle or the file of queries cannot be used, or not for this search, 2: unusable arguments.
    """
    options = parse_arguments(arguments)
    try:
        texts = _texts(options)
        settings = read_settings()
        if settings.bundle_url and options.bundle is None:
            raise SettingsError(
                f"BUNDLE_DIR: {settings.bundle_url} cannot be searched here; name a folder with --bundle"
            )
        _search_all(options, load(options.bundle or settings.bundle_dir), texts)
        sys.stdout.flush()
    except (BundleError, TensorsError, SettingsError, SearchError, BackendError, _QueryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `| head` ended; what is left to write goes nowhere (docs.python.org, "Note on SIGPIPE")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


class _QueryError(ValueError):
    """Texts that cannot be searched for."""


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options. Ends the program with 2 if they cannot be used."""
    parser = argparse.ArgumentParser(
        "python -m function query",
        description="Print the texts of a bundle that are most like a text.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", nargs="?", help="what to search for")
    parser.add_argument("--file", metavar="FILE", help="search for each line of a file; - reads standard input")
    parser.add_argument(
        "--bundle", type=Path, help="the bundle's folder (default: BUNDLE_DIR, or bundle/ beside function/)"
    )
    parser.add_argument("--num-results", type=_count, default=5, metavar="N", help=f"1 to {MOST_HITS} (default: 5)")
    parser.add_argument("--mode", choices=MODES, default="semantic", help="search by meaning, by words or by both")
    parser.add_argument("--filter", type=_filter, metavar="JSON", help="only texts whose metadata pass this filter")
    parser.add_argument(
        "--exact", action="store_true", help="compare with every text, which is slow in a very large corpus"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one object of JSON for each text, for other programs"
    )
    options = parser.parse_args(arguments)
    if (options.text is None) == (options.file is None):
        parser.error('expected one text or --file; put a text of several words into quotation marks, "like this"')
    return options


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 3 and 1 <= int(text) <= MOST_HITS):
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number from 1 to {MOST_HITS}")
    return int(text)


def _filter(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
        refuse_repeated_keys(text.encode())
    except RepeatedKeyError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}; expected such as '{{\"year\": 2014}}'") from error
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError("expected an object of JSON, such as '{\"year\": 2014}'")
    return found


def _texts(options: argparse.Namespace) -> list[str]:
    """Return what to search for. Raises _QueryError if the file cannot be read or if there are no words."""
    if options.file is None:
        texts, where = [options.text], "text"
    else:
        where = "standard input" if options.file == "-" else options.file
        try:
            content = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
            texts = [line for line in content.decode("utf-8-sig").splitlines() if line.strip()]
        except OSError as error:
            raise _QueryError(f"{where}: cannot be read ({error.strerror}); name a file with a text a line") from error
        except UnicodeDecodeError as error:
            raise _QueryError(f"{where}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    if not any(text.strip() for text in texts):
        raise _QueryError(f"{where}: expected words, found none")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:  # the shell passes bytes that are not UTF-8 as halves of surrogate pairs
        raise _QueryError(f"{where}: character {error.start} is not valid Unicode; write it in UTF-8") from error
    return texts


def _search_all(options: argparse.Namespace, bundle: Loaded, texts: Iterable[str]) -> None:
    search = make_search(bundle, InlineExecution(bundle.embedder))
    printed_before = False
    for text in texts:
        query = Query(text, options.num_results, options.mode, options.exact, options.filter)
        found = _finish(search(query, lambda phase: None))
        if options.json:
            reply = {"query": text, "results": found.results, "truncated": found.is_truncated}
            print(json.dumps(reply, ensure_ascii=False))
            continue
        if printed_before:
            print()
        if options.file is not None:
            print(text)
        _print_table(found, text, bundle)
        printed_before = True


def _finish(work: Awaitable[Result]) -> Result:
    """Return the result of work that never waits, as with InlineExecution: no event loop need be imported."""
    try:
        next(iter(work.__await__()))
    except StopIteration as finished:
        result: Result = finished.value
        return result
    raise AssertionError("an InlineExecution does not wait")


def _print_table(found: Found, text: str, bundle: Loaded) -> None:
    """Print a line for each hit; on a terminal the lines are cut to its width, and the query's words are bold."""
    if not found.results:
        print("no text was found")
    room = None
    id_width = max((len(result["id"]) for result in found.results), default=0)
    if _is_terminal():
        room = max(shutil.get_terminal_size().columns - id_width - 10, NARROWEST_TEXT)
    is_marked = _is_terminal() and not os.environ.get("NO_COLOR")
    info = bundle.manifest.index and bundle.manifest.index.keywords
    stem = find_stemmer(info.stemming) if info and is_marked else None
    for result in found.results:
        line = " ".join(result["text"].split())
        if room is not None and len(line) > room:
            line = line[: room - 1] + "…"
        line = mark_words(line, text, stem) if is_marked else line
        print(f"{result['score']:6.2f}  {result['id']:{id_width}}  {line}")
    if found.is_truncated:
        print("the text is longer than the search reads; its end was left out")


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def mark_words(line: str, text: str, stem: Stem | None) -> str:
    """Return a line in which each word that the text has too is bold; stem is that of keyword search, or None."""
    wanted = set(split_terms(text, stem))
    return WORD.sub(
        lambda word: f"{BOLD}{word[0]}{NORMAL}" if wanted.intersection(split_terms(word[0], stem)) else word[0], line
    )
