"""The command `semsearch query`: search from the shell, without a server and without importing one."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from semsearch.commands.cards import print_cards, snippet_line
from semsearch.commands.options import JsonObject, Share
from semsearch.commands.places import bundle_at
from semsearch.commands.terminal import visible
from semsearch.engine.errors import OptionError
from semsearch.engine.hits import MOST_HITS
from semsearch.engine.loading import load
from semsearch.search.executor import Executor, finish
from semsearch.search.making import make_search
from semsearch.search.query import MOST_CANDIDATES, MOST_IN_GROUP, MOST_OFFSET, Query, SearchError
from semsearch.search.results import PATH, Found

NARROWEST_TEXT = 20  # characters of a hit that are displayed even if the terminal is too narrow
EXAMPLES = """\
Examples:

    semsearch query docs/ "how do I roll back"
    semsearch query bundle/ "order AB-1234" --mode keyword --num-results 3
    semsearch query bundle/ --like faq-12
    semsearch query docs/ -- "--dry-run" --num-results 3
    semsearch query bundle/ "elections" --filter '{"date": {"$gte": "2016-01-01"}}'
    semsearch query bundle/ "install" --group-by path
    semsearch query bundle/ --filter '{"price": {"$lt": 50}}' --sort price:desc --facet category
    git log --format=%s | semsearch query bundle/ --file - --json
"""
command: App = App(help_epilogue=EXAMPLES)


@command.default
def query(
    place: str,
    text: str | None = None,
    /,
    *,
    file: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    like: str | None = None,
    num_results: Annotated[int, Parameter(validator=Number(gte=1, lte=MOST_HITS))] = 5,
    mode: Literal["semantic", "keyword", "hybrid"] | None = None,
    filter: JsonObject | None = None,
    sort: Sequence[str] = (),
    facet: Sequence[str] = (),
    offset: Annotated[int, Parameter(validator=Number(gte=0, lte=MOST_OFFSET))] = 0,
    min_score: float | Literal["floor"] | None = None,
    group_by: str | None = None,
    group_size: Annotated[int, Parameter(validator=Number(gte=1, lte=MOST_IN_GROUP))] = 3,
    rerank: Annotated[int | None, Parameter(validator=Number(gte=1, lte=MOST_CANDIDATES))] = None,
    prefix: bool = False,
    correct: bool = True,
    exact: bool = False,
    fusion_weight: Share | None = None,
    highlights: bool = False,
    oneline: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Search an index, and print the texts that are most like a text.

    Without a text, --filter, --sort or --facet list texts.

    Args:
        place: a bundle, or a folder of documents, whose index is kept in a cache and updated when files change.
        text: what to search for. Write -- before a text that begins with a dash.
        file: search for each line of a file; - reads standard input.
        like: id of a text; search for texts that are similar to it.
        num_results: number of texts, or of groups.
        mode: search by meaning, by words or by both. Without it, hybrid; semantic with --like, or without keywords.
        filter: only texts whose metadata pass this filter.
        sort: order by a column, or from high to low by COLUMN:desc; can be repeated.
        facet: count the values of a column among the texts that pass the filter; can be repeated.
        offset: skip the first results.
        min_score: leave out results with a lower score; floor leaves out those that are probably not relevant.
        group_by: one result for each value of this column. Cards of documents are grouped by path.
        group_size: maximum texts of a group.
        rerank: score this number of the best texts again with the reranker of the index, which is slower.
        prefix: find words too that begin with the last word.
        correct: replace misspelled words that no text has by similar ones.
        exact: compare with every text, which is slow in a very large corpus.
        fusion_weight: with --mode hybrid: share of the meaning in the score, from 0 (words alone) to 1.
        highlights: with --json: the parts of each text that answer the query.
        oneline: a line for each text instead of a card; so it is without a terminal.
        json: print one object of JSON for each text, for other programs.
    """
    named = [words for words in (text, file, like) if words is not None]
    if len(named) > 1:
        raise OptionError("text", 'expected one text, --file or --like; put several words into quotes, "like this"')
    if not named and not (filter or sort or facet):
        raise OptionError("text", "missing; expected a text, --file or --like, or --filter, --sort or --facet alone")
    asked = Query(
        id=like,
        num_results=num_results,
        offset=offset,
        mode=mode,
        exact=exact,
        filter=filter,
        min_score=min_score,
        group_by=group_by,
        group_size=group_size,
        sort=dict(map(_sort, sort)) or None,
        facets=tuple(facet),
        fusion_weight=fusion_weight,
        prefix=prefix,
        correct=correct,
        rerank=rerank,
        highlights=highlights or _is_terminal(),
    )
    texts = [None] if text is file is None else _texts(text, file)
    bundle = load(bundle_at(place))
    has_cards = _is_terminal() and not (oneline or json)
    if has_cards and group_by is None and not (sort or texts == [None]) and bundle.column_kinds.get(PATH) == "string":
        asked = replace(asked, group_by=PATH)
    search = make_search(bundle, Executor(bundle.embedder))
    for number, words in enumerate(texts):
        found = finish(search(replace(asked, text=words), lambda phase: None))
        if json:
            print(_json_line({"query": words} | found.reply()))
            continue
        if number > 0:
            print()
        if file is not None:
            print(visible(str(words)))
        _print_found(found, is_oneline=not has_cards)


def _sort(text: str) -> tuple[str, str]:
    column, _, way = text.rpartition(":")
    if column and way in ("asc", "desc"):
        return (column, way)
    return (text, "asc")


def _texts(text: str | None, file: str | None) -> list[str | None]:
    """Return the texts to search for. Raises OSError, or SearchError without a text or for bytes that are no UTF-8."""
    if text is not None:
        content = os.fsencode(text)
    elif file == "-":
        content = sys.stdin.buffer.read()
    else:
        content = Path(str(file)).read_bytes()
    try:
        lines = content.decode("utf-8-sig").split("\n")  # str.splitlines would also split at form feeds and others
    except UnicodeError as error:
        raise SearchError(f"{file or 'text'}: {error}; write it in UTF-8") from error
    if text is not None:
        lines = ["\n".join(lines)]
    if not (found := [line.removesuffix("\r") for line in lines if line.strip()]):
        raise SearchError(f"{file or 'text'}: found no words, expected a text to search for; write some")
    return [*found]


def _json_line(reply: Mapping[str, Any]) -> str:
    """Return a reply as a line of JSON in ASCII, which any stdout can write and which cannot control a terminal.

    NaN and infinity become null, as in a reply of /similar.
    """
    finite = loads(dumps(reply), parse_constant=lambda name: None)
    return dumps(finite).replace("\x7f", "\\u007f")


def _print_found(found: Found, *, is_oneline: bool) -> None:
    """Print cards on a terminal, or a line for each hit, then the facets."""
    for word, corrections in found.reply().get("corrected", {}).items():
        print(visible(f"no text has {word!r}; searched for {' and '.join(corrections)}"))
    if not found.results:
        print("no text was found")
    if is_oneline:
        _print_lines(found.results)
    else:
        print_cards(found.results, shutil.get_terminal_size().columns)
    for name, values in (found.facets or {}).items():
        shown = [each.get("value", f"{each.get('from', '')} to {each.get('to', '')}") for each in values]
        counts = [f"{value} ({each['count']:,})" for value, each in zip(shown, values, strict=True)]
        print(f"{name}: " + ", ".join(map(visible, counts)))
    if found.is_truncated:
        print("the text is longer than the search reads; its end was left out")


def _print_lines(results: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each hit; on a terminal as much of the snippet as there is room for."""
    lines = []
    for result in results:
        lines.append((visible(result["id"]), result))
        lines += [(f"  {visible(other['id'])}", other) for other in result.get("other_passages", ())]
    id_width = max((len(id) for id, _ in lines), default=0)
    for id, result in lines:
        score = "" if result["score"] is None else f"{result['score']:.2f}"
        if _is_terminal():
            line = snippet_line(result, max(shutil.get_terminal_size().columns - id_width - 10, NARROWEST_TEXT))
        else:
            line = visible(" ".join(result["text"].split()))
        print(f"{score:>6}  {id:{id_width}}  {line}")


def _is_terminal() -> bool:
    return sys.stdout.isatty()
