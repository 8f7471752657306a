"""python -m function query: search a bundle from the shell, without a server and without importing one."""

import argparse
import codecs
import json
import os
import shutil
import sys
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from function.commands.terminal import UNSAFE, fail, visible
from function.engine.bundle import BundleError
from function.engine.inputs import S3, number_option
from function.engine.keyword.analyzer import WORD, Stem, find_stemmer, split_terms
from function.engine.loading import Loaded, load
from function.engine.semantic.index import MOST_HITS
from function.engine.tensors import TensorsError
from function.executor import InlineExecutor
from function.routes.repeated_keys import RepeatedKeyError, refuse_repeated_keys
from function.search.query import BackendError, Found, Query, SearchError
from function.search.search import make_search
from function.settings import CHARACTERS_PER_TEXT, SettingsError, read_settings

MODES = ("semantic", "keyword", "hybrid")
BOLD, NORMAL = "\x1b[1m", "\x1b[0m"
NARROWEST_TEXT = 20  # characters of a hit that are displayed even if the terminal is too narrow
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
    `function.commands.terminal.run` adds 130 and 141. Raises OSError if standard output cannot be written.
    """
    options = parse_arguments(arguments)
    try:
        texts = _texts(options)
        _search_all(options, load(_bundle_folder(options.bundle)), texts)
    except (BundleError, TensorsError, SettingsError, SearchError, BackendError, _QueryError) as error:
        return fail(error)
    return 0


class _QueryError(ValueError):
    """The text or the file of queries cannot be used."""


def _bundle_folder(option: str | None) -> Path:
    """Return the folder that --bundle or BUNDLE_DIR names. Raises SettingsError if it is in S3."""
    settings = read_settings()
    where, url = ("BUNDLE_DIR", settings.bundle_url) if option is None else ("--bundle", option)
    if url.startswith(S3):
        advice = f"name a folder with --bundle, or serve the bundle with `python -m function --bundle {url}`"
        raise SettingsError(f"{where}: found {url}, expected a folder, because a query reads nothing from S3; {advice}")
    return settings.bundle_dir if option is None else Path(option)


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
    parser.add_argument("--bundle", help="the bundle's folder (default: BUNDLE_DIR, or bundle/ beside function/)")
    count = number_option(1, MOST_HITS)
    parser.add_argument("--num-results", type=count, default=5, metavar="N", help=f"1 to {MOST_HITS} (default: 5)")
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
    """Return the texts to search for. Raises _QueryError if they cannot be read, are blank or are too long."""
    if options.file is None:
        texts, where = [options.text], "text"
    else:
        where = "standard input" if options.file == "-" else options.file
        try:
            content = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
            # str.splitlines would also split at form feeds and at U+0085, U+2028 and others
            texts = [line.removesuffix("\r") for line in content.decode("utf-8-sig").split("\n")]
        except OSError as error:
            raise _QueryError(f"{where}: cannot be read ({error.strerror}); name a file with a text a line") from error
        except UnicodeDecodeError as error:
            raise _QueryError(f"{where}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    if not any(text.strip() for text in texts):
        raise _QueryError(f"{where}: expected words, found none")
    for number, text in enumerate(texts, start=1):
        if len(text) > CHARACTERS_PER_TEXT:
            line = where if options.file is None else f"{where}: line {number}"
            raise _QueryError(f"{line}: found {len(text)} characters, expected at most {CHARACTERS_PER_TEXT}; split it")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:  # the shell passes bytes that are not UTF-8 as halves of surrogate pairs
        raise _QueryError(f"{where}: character {error.start} is not valid Unicode; write it in UTF-8") from error
    return [text for text in texts if text.strip()]


def _search_all(options: argparse.Namespace, bundle: Loaded, texts: Iterable[str]) -> None:
    search = make_search(bundle, InlineExecutor(bundle.embedder))
    printed_before = False
    for text in texts:
        query = Query(text, options.num_results, options.mode, options.exact, options.filter)
        found = _finish(search(query, lambda phase: None))
        if options.json:
            reply = {"query": text, "results": found.results, "truncated": found.is_truncated}
            print(_json_line(reply))
            continue
        if printed_before:
            print()
        if options.file is not None:
            print(visible(text))
        _print_table(found, text, bundle)
        printed_before = True


def _json_line(reply: Mapping[str, Any]) -> str:
    """Return a reply as a line of JSON that any stdout can write and no terminal obeys.

    NaN and infinity become null, as in a reply of /similar.
    """
    is_ascii = codecs.lookup(sys.stdout.encoding).name != "utf-8"
    try:
        line = json.dumps(reply, ensure_ascii=is_ascii, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(reply), parse_constant=lambda name: None)
        line = json.dumps(finite, ensure_ascii=is_ascii)
    return UNSAFE.sub(lambda character: f"\\u{ord(character[0]):04x}", line)


def _finish(work: Awaitable[Result]) -> Result:
    """Return the result of work that never waits, as with InlineExecutor, without importing an event loop."""
    try:
        next(iter(work.__await__()))
    except StopIteration as finished:
        result: Result = finished.value
        return result
    raise AssertionError("an InlineExecutor does not wait")


def _print_table(found: Found, text: str, bundle: Loaded) -> None:
    """Print a line for each hit; on a terminal, cut the lines to its width and print the query's words in bold."""
    if not found.results:
        print("no text was found")
    room = None
    ids = [visible(result["id"]) for result in found.results]
    id_width = max(map(len, ids), default=0)
    if _is_terminal():
        room = max(shutil.get_terminal_size().columns - id_width - 10, NARROWEST_TEXT)
    is_marked = _is_terminal() and not os.environ.get("NO_COLOR")
    info = bundle.manifest.index and bundle.manifest.index.keywords
    stem = find_stemmer(info.stemming) if info and is_marked else None
    for result, id in zip(found.results, ids, strict=True):
        line = visible(" ".join(result["text"].split()))
        if room is not None and len(line) > room:
            line = line[: room - 1] + "…"
        line = mark_words(line, text, stem) if is_marked else line
        print(f"{result['score']:6.2f}  {id:{id_width}}  {line}")
    if found.is_truncated:
        print("the text is longer than the search reads; its end was left out")


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def mark_words(line: str, text: str, stem: Stem | None) -> str:
    """Return a line with each word in bold that is also in the text; stem is that of keyword search, or None."""
    wanted = set(split_terms(text, stem))
    return WORD.sub(
        lambda word: f"{BOLD}{word[0]}{NORMAL}" if wanted.intersection(split_terms(word[0], stem)) else word[0], line
    )
