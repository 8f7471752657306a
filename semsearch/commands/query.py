"""python -m function query: search a bundle from the shell, without a server and without importing one."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from semsearch.app.settings import SettingsError, read_settings
from semsearch.commands.options import filter_object, number_option, share
from semsearch.commands.terminal import fail, visible
from semsearch.engine.bundle import BundleError
from semsearch.engine.loading import Loaded, load
from semsearch.engine.semantic.index import MOST_HITS
from semsearch.engine.tensors import TensorsError
from semsearch.search.executor import Executor, finish
from semsearch.search.query import MOST_CANDIDATES, MOST_IN_GROUP, MOST_OFFSET, BackendError, Found, Query, SearchError
from semsearch.search.search import make_search

MODES = ("semantic", "keyword", "hybrid")
BOLD, NORMAL = "\x1b[1m", "\x1b[0m"
NARROWEST_TEXT = 20  # characters of a hit that are displayed even if the terminal is too narrow
EXAMPLES = """\
examples:
  python -m function query "self driving cars"
  python -m function query "order AB-1234" --mode keyword --num-results 3
  python -m function query --like faq-12
  python -m function query "elections" --filter '{"date": {"$gte": "2016-01-01"}}'
  python -m function query --file queries.txt --json > results.jsonl
  python -m function query "install" --group-by path
  python -m function query "reset my password" --rerank 20
  python -m function query --filter '{"price": {"$lt": 50}}' --sort price:desc --facet category
  git log --format=%s | python -m function query --file - --json
"""


def main(arguments: Sequence[str], prog: str = "python -m function query") -> int:
    """Search, print the results and return the exit code.

    0: searched, 1: the bundle or the file of queries cannot be used, or not for this search, 2: wrong arguments.
    `semsearch.commands.terminal.run` adds 130 and 141. Raises OSError if the file or standard output cannot be used.
    """
    options = parse_arguments(arguments, prog)
    try:
        texts = [None] if options.text is options.file is None else _texts(options)
        _search_all(options, load(_bundle_folder(options.bundle)), texts)
    except (BundleError, TensorsError, SettingsError, SearchError, BackendError) as error:
        return fail(error)
    except UnicodeError as error:
        return fail(f"{options.file or 'text'}: {error}; write it in UTF-8")
    return 0


def _bundle_folder(option: str | None) -> Path:
    """Return the folder that --bundle or BUNDLE_DIR names. Raises SettingsError if it is in S3."""
    settings = read_settings(os.environ if option is None else {**os.environ, "BUNDLE_DIR": option})
    if url := settings.bundle_url:
        advice = f"name a folder with --bundle, or serve the bundle with `python -m function --bundle {url}`"
        raise SettingsError(
            f"--bundle: found {url}, expected a folder, because a query reads nothing from S3; {advice}"
        )
    return settings.bundle_dir


def parse_arguments(arguments: Sequence[str], prog: str = "python -m function query") -> argparse.Namespace:
    """Return the options. Raises SystemExit with 2 for wrong arguments."""
    parser = argparse.ArgumentParser(
        prog,
        description="Print the texts of a bundle that are most like a text.",
        epilog=EXAMPLES.replace("python -m function query", prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("text", nargs="?", help="what to search for")
    add("--file", metavar="FILE", help="search for each line of a file; - reads standard input")
    add("--bundle", help="the bundle's folder (default: BUNDLE_DIR, or bundle/)")
    count = number_option(1, MOST_HITS)
    add("--num-results", type=count, default=5, metavar="N", help=f"1 to {MOST_HITS} (default: 5)")
    add(
        "--mode",
        choices=MODES,
        help="search by meaning, by words or by both (default: hybrid; semantic with --like, or without keywords)",
    )
    add("--prefix", action="store_true", help="find words too that begin with the last word")
    add(
        "--fusion-weight",
        type=share,
        metavar="WEIGHT",
        help="with --mode hybrid: share of the meaning in the score, from 0 (words alone) to 1 (default: the bundle's)",
    )
    add(
        "--rerank",
        type=number_option(1, MOST_CANDIDATES),
        metavar="N",
        help=f"score the best N texts again with the bundle's reranker, which is slower: 1 to {MOST_CANDIDATES}",
    )
    add("--filter", type=filter_object, metavar="JSON", help="only texts whose metadata pass this filter")
    add("--like", metavar="ID", help="texts that are similar to the text with this id, without a text")
    number = number_option(0, MOST_OFFSET)
    add("--offset", type=number, default=0, metavar="N", help="skip the first N results")
    add("--min-score", type=float, metavar="SCORE", help="leave out results with a lower score")
    add("--group-by", metavar="COLUMN", help="one result for each value of this column, such as path")
    group = number_option(1, MOST_IN_GROUP)
    add("--group-size", type=group, default=3, metavar="N", help="texts of a group (default: 3)")
    add(
        "--sort",
        type=_sort,
        action="append",
        default=[],
        metavar="COLUMN",
        help="order by a column, or from high to low by COLUMN:desc; may be repeated; needs no text",
    )
    add(
        "--facet",
        action="append",
        default=[],
        metavar="COLUMN",
        help="count the values of a column among the texts that pass the filter; may be repeated; needs no text",
    )
    add("--no-correct", action="store_true", help="search for misspelled words as they are, instead of similar ones")
    add("--exact", action="store_true", help="compare with every text, which is slow in a very large corpus")
    add("--highlights", action="store_true", help="with --json: the parts of each text that answer the query")
    add("--json", action="store_true", help="print one object of JSON for each text, for other programs")
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
    """Return the texts to search for. Raises OSError, UnicodeError if one is not UTF-8, or SearchError without any."""
    if options.file is None:
        texts = [os.fsencode(options.text).decode()]
    else:
        file = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
        texts = file.decode("utf-8-sig").split("\n")  # str.splitlines would also split at form feeds and others
    if not (found := [text.removesuffix("\r") for text in texts if text.strip()]):
        raise SearchError(f"{options.file or 'text'}: found no words, expected a text to search for; write some")
    return found


def _search_all(options: argparse.Namespace, bundle: Loaded, texts: Iterable[str | None]) -> None:
    search = make_search(bundle, Executor(bundle.embedder))
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
        found = finish(search(query, lambda phase: None))
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
    """Return a reply as a line of JSON in ASCII, which any stdout can write and which cannot control a terminal.

    NaN and infinity become null, as in a reply of /similar.
    """
    finite = json.loads(json.dumps(reply), parse_constant=lambda name: None)
    return json.dumps(finite).replace("\x7f", "\\u007f")


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
        shown = [each.get("value", f"{each.get('from', '')} to {each.get('to', '')}") for each in values]
        counts = [f"{value} ({each['count']:,})" for value, each in zip(shown, values, strict=True)]
        print(f"{name}: " + ", ".join(map(visible, counts)))
    if found.is_truncated:
        print("the text is longer than the search reads; its end was left out")


def _snippet(result: Mapping[str, Any], room: int) -> str:
    """Return the beginning of a result's snippet in one line of `room` characters, its highlights in bold."""
    whole: str = result["text"]
    snippet = result.get("snippet", {"start": 0, "end": len(whole), "text": whole, "highlights": []})
    text: str = snippet["text"].rstrip()
    start = "…" * (snippet["start"] > 0)
    end = "…" * (snippet["end"] < len(whole) or len(text) > room)
    text = text[: room - len(start) - len(end)]
    line: str = start
    place = 0
    for first, last in [] if os.environ.get("NO_COLOR") else snippet["highlights"]:
        if first < len(text):
            line += f"{visible(text[place:first])}{BOLD}{visible(text[first:last])}{NORMAL}"
            place = last
    return line + visible(text[place:]) + end


def _is_terminal() -> bool:
    return sys.stdout.isatty()
