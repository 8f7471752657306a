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

from function.commands.options import filter_object, share
from function.commands.terminal import UNSAFE, fail, visible
from function.engine.bundle import BundleError
from function.engine.inputs import S3, number_option
from function.engine.loading import Loaded, load
from function.engine.semantic.index import MOST_HITS
from function.engine.tensors import TensorsError
from function.executor import InlineExecutor
from function.search.query import MOST_CANDIDATES, MOST_IN_GROUP, MOST_OFFSET, BackendError, Found, Query, SearchError
from function.search.search import make_search
from function.settings import CHARACTERS_PER_TEXT, SettingsError, read_settings

MODES = ("semantic", "keyword", "hybrid")
BOLD, NORMAL = "\x1b[1m", "\x1b[0m"
MARKS = " \t\n*_`~#>|:=()[]-"  # marks of Markdown: a snippet leaves out nothing if it leaves out nothing else
NARROWEST_TEXT = 20  # characters of a hit that are displayed even if the terminal is too narrow
EXAMPLES = """\
examples:
  python -m function query "self driving cars" --bundle bundle/
  python -m function query "order AB-1234" --mode keyword --num-results 3
  python -m function query --like faq-12
  python -m function query "elections" --filter '{"date": {"$gte": "2016-01-01"}}'
  python -m function query --file queries.txt --json > results.jsonl
  python -m function query "install" --group-by path
  python -m function query "reset my password" --rerank 20
  python -m function query --filter '{"price": {"$lt": 50}}' --sort price:desc --facet category
  git log --format=%s | python -m function query --file - --json
"""

Result = TypeVar("Result")


def main(arguments: Sequence[str]) -> int:
    """Search, print the results and return the exit code.

    0: searched, 1: the bundle or the file of queries cannot be used, or not for this search, 2: wrong arguments.
    `function.commands.terminal.run` adds 130 and 141. Raises OSError if the file or standard output cannot be used.
    """
    options = parse_arguments(arguments)
    try:
        texts = [None] if options.text is options.file is None else _texts(options)
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
    """Return the options. Raises SystemExit with 2 for wrong arguments."""
    parser = argparse.ArgumentParser(
        "python -m function query",
        description="Print the texts of a bundle that are most like a text.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", nargs="?", help="what to search for")
    parser.add_argument("--file", metavar="FILE", help="search for each line of a file; - reads standard input")
    parser.add_argument("--bundle", help="the bundle's folder (default: BUNDLE_DIR, or bundle/)")
    count = number_option(1, MOST_HITS)
    parser.add_argument("--num-results", type=count, default=5, metavar="N", help=f"1 to {MOST_HITS} (default: 5)")
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="search by meaning, by words or by both (default: hybrid; semantic with --like, or without keywords)",
    )
    parser.add_argument("--prefix", action="store_true", help="find words too that begin with the last word")
    parser.add_argument(
        "--fusion-weight",
        type=share,
        metavar="WEIGHT",
        help="with --mode hybrid: share of the meaning in the score, from 0 (words alone) to 1 (default: the bundle's)",
    )
    parser.add_argument(
        "--rerank",
        type=number_option(1, MOST_CANDIDATES),
        metavar="N",
        help=f"score the best N texts again with the bundle's reranker, which is slower: 1 to {MOST_CANDIDATES}",
    )
    parser.add_argument(
        "--filter", type=filter_object, metavar="JSON", help="only texts whose metadata pass this filter"
    )
    parser.add_argument("--like", metavar="ID", help="texts that are similar to the text with this id, without a text")
    number = number_option(0, MOST_OFFSET)
    parser.add_argument("--offset", type=number, default=0, metavar="N", help="skip the first N results")
    parser.add_argument("--min-score", type=float, metavar="SCORE", help="leave out results with a lower score")
    parser.add_argument("--group-by", metavar="COLUMN", help="one result for each value of this column, such as path")
    group = number_option(1, MOST_IN_GROUP)
    parser.add_argument("--group-size", type=group, default=3, metavar="N", help="texts of a group (default: 3)")
    parser.add_argument(
        "--sort",
        type=_sort,
        action="append",
        default=[],
        metavar="COLUMN",
        help="order by a column, or from high to low by COLUMN:desc; may be repeated; needs no text",
    )
    parser.add_argument(
        "--facet",
        action="append",
        default=[],
        metavar="COLUMN",
        help="count the values of a column among the texts that pass the filter; may be repeated; needs no text",
    )
    parser.add_argument(
        "--no-correct", action="store_true", help="search for misspelled words as they are, instead of similar ones"
    )
    parser.add_argument(
        "--exact", action="store_true", help="compare with every text, which is slow in a very large corpus"
    )
    parser.add_argument(
        "--highlights", action="store_true", help="with --json: the parts of each text that answer the query"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one object of JSON for each text, for other programs"
    )
    options = parser.parse_args(arguments)
    named = [option for option in (options.text, options.file, options.like) if option is not None]
    if len(named) > 1 or not (named or options.filter or options.sort or options.facet):
        parser.error(
            "expected one text, --file or --like, or --filter, --sort or --facet alone; put a text of several words "
            'into quotation marks, "like this"'
        )
    return options


def _sort(text: str) -> tuple[str, str]:
    column, _, way = text.rpartition(":")
    return (column, way) if column and way in ("asc", "desc") else (text, "asc")


def _texts(options: argparse.Namespace) -> list[str]:
    """Return the texts to search for. Raises OSError, or _QueryError if they are not UTF-8, blank or too long."""
    if options.file is None:
        where, content = "text", os.fsencode(options.text)
    elif options.file == "-":
        where, content = "standard input", sys.stdin.buffer.read()
    else:
        where, content = options.file, Path(options.file).read_bytes()
    try:
        whole = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _QueryError(f"{where}: byte {error.start} is not UTF-8; write it in UTF-8") from error
    # str.splitlines would also split at form feeds and at U+0085, U+2028 and others
    texts = [whole] if options.file is None else [line.removesuffix("\r") for line in whole.split("\n")]
    if not any(text.strip() for text in texts):
        raise _QueryError(f"{where}: expected words, found none")
    for number, text in enumerate(texts, start=1):
        if len(text) > CHARACTERS_PER_TEXT:
            line = where if options.file is None else f"{where}: line {number}"
            raise _QueryError(f"{line}: found {len(text)} characters, expected at most {CHARACTERS_PER_TEXT}; split it")
    return [text for text in texts if text.strip()]


def _search_all(options: argparse.Namespace, bundle: Loaded, texts: Iterable[str | None]) -> None:
    search = make_search(bundle, InlineExecutor(bundle.embedder))
    printed_before = False
    for text in texts:
        query = Query(
            text=text,
            id=options.like,
            num_results=options.num_results,
            offset=options.offset,
            mode=options.mode,
            exact=options.exact,
            filter=options.filter,
            min_score=options.min_score,
            group_by=options.group_by,
            group_size=options.group_size,
            sort=dict(options.sort) or None,
            facets=options.facet,
            fusion_weight=options.fusion_weight,
            prefix=options.prefix,
            correct=not options.no_correct,
            rerank=options.rerank,
            highlights=options.highlights if options.json else _is_terminal(),
        )
        found = _finish(search(query, lambda phase: None))
        if options.json:
            print(_json_line({"query": text} | found.reply()))
            continue
        if printed_before:
            print()
        if options.file is not None:
            print(visible(str(text)))
        _print_table(found)
        printed_before = True


def _json_line(reply: Mapping[str, Any]) -> str:
    """Return a reply as a line of JSON. NaN and infinity become null, as in a reply of /similar.

    Any stdout can write the line, and it cannot control a terminal.
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


def _print_table(found: Found) -> None:
    """Print a line for each hit, then the facets. On a terminal, a line is a snippet in which the answer is bold."""
    for word, corrections in found.reply().get("corrected", {}).items():
        print(visible(f"no text has {word!r}; searched for {' and '.join(corrections)}"))
    if not found.results:
        print("no text was found")
    lines = []
    for result in found.results:
        lines.append((visible(result["id"]), result))
        lines += [(f"  {visible(other['id'])}", other) for other in result.get("other_passages", ())]
    id_width = max((len(id) for id, _ in lines), default=0)
    room = max(shutil.get_terminal_size().columns - id_width - 10, NARROWEST_TEXT) if _is_terminal() else None
    for id, result in lines:
        score = "" if result["score"] is None else f"{result['score']:.2f}"
        line = visible(" ".join(result["text"].split())) if room is None else _snippet(result, room)
        print(f"{score:>6}  {id:{id_width}}  {line}")
    for name, values in (found.facets or {}).items():
        print(f"{name}: " + ", ".join(visible(f"{each['value']} ({each['count']:,})") for each in values))
    if found.is_truncated:
        print("the text is longer than the search reads; its end was left out")


def _snippet(result: Mapping[str, Any], room: int) -> str:
    """Return the beginning of a result's snippet in one line of `room` characters, its highlights in bold."""
    whole: str = result["text"]
    snippet = result.get("snippet", {"start": 0, "end": len(whole), "text": whole, "highlights": []})
    text: str = snippet["text"]
    is_later = bool(whole[: snippet["start"]].strip(MARKS))
    is_sooner = bool(whole[snippet["end"] :].strip(MARKS)) or len(text.rstrip()) > room
    end = room - is_later - is_sooner if is_later or is_sooner else room  # room for the ellipses
    ranges = [] if os.environ.get("NO_COLOR") else snippet["highlights"]
    line, place = "…" if is_later else "", 0
    for first, last in [[first, min(last, end)] for first, last in ranges]:
        if first < last and last - first < len(whole.strip()):  # a text that is all highlighted needs no bold
            line += f"{visible(text[place:first])}{BOLD}{visible(text[first:last])}{NORMAL}"
            place = last
    return line + visible(text[place:end]) + ("…" if is_sooner else "")


def _is_terminal() -> bool:
    return sys.stdout.isatty()
