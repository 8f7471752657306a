"""The command `semsearch query`: search from the shell, without a server and without importing one."""

import inspect
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from cyclopts import App, Group, Parameter
from cyclopts.validators import Number
from docstring_parser import parse

from semsearch.client.search import Search
from semsearch.commands.cards import line_place, print_cards, snippet_line
from semsearch.commands.options import FolderOptions, JsonObject, NotBlank, Share, as_command
from semsearch.commands.places import bundle_at
from semsearch.commands.terminal import visible
from semsearch.engine.errors import OptionError
from semsearch.engine.loading import load
from semsearch.search.executor import Executor, finish
from semsearch.search.making import make_search
from semsearch.search.query import MOST_CANDIDATES, MOST_IN_GROUP, Query, SearchError, query_with
from semsearch.search.relevance import nothing_relevant
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
FINDING, SEARCHING, ORDERING, SHOWING = (
    Group(title, sort_key=place)
    for place, title in enumerate(("What to find", "How to search", "Order, groups and counts", "Output"))
)
PANELS = {"id": FINDING, "mode": SEARCHING, "sort": ORDERING, "include": SHOWING}  # by the first option of each
# what a command line cannot have in the form that Python has, and limits: nothing else checks them before the search
OPTION_FORMS: dict[str, Any] = {
    "id": Annotated[str | None, Parameter(name="--like")],
    "top_k": Annotated[int, Parameter(name="--num-results", validator=Number(gte=1))],
    "offset": Annotated[int, Parameter(validator=Number(gte=0))],
    "filter": JsonObject | None,
    "without": NotBlank,
    "fusion_weight": Share | None,
    "boost": JsonObject | None,
    "rerank": Annotated[int | None, Parameter(validator=Number(gte=1, lte=MOST_CANDIDATES))],
    "sort": Sequence[str] | None,
    "group_size": Annotated[int, Parameter(validator=Number(gte=1, lte=MOST_IN_GROUP))],
    "facets": Annotated[Sequence[str], Parameter(name="--facet")],
    "include": Annotated[Sequence[Literal["text", "metadata", "source"]], Parameter(name="--fields")],
}
SENTENCES = {  # sentences for options that mean something else on a command line
    "sort": "order by a column, or from high to low by COLUMN:desc.",
    "group_by": "one result for each value of this column. Cards of documents are grouped by path.",
    "include": "with --json: the fields of each result; source is the text with its Markdown.",
    "highlights": "with --json: a snippet of each text, and the parts of it that answer the query.",
}
NOT_OPTIONS = ("self", "text", "vector")  # parameters of `Search.search` that are no options


def options_of_search() -> Iterator[inspect.Parameter]:
    """Yield the arguments of `Search.search` as options: with their sentences, in groups."""
    hints = get_type_hints(Search.search) | OPTION_FORMS
    sentences = {each.arg_name: each.description or "" for each in parse(Search.search.__doc__ or "").params}
    group = FINDING
    for name, parameter in inspect.signature(Search.search).parameters.items():
        if name in NOT_OPTIONS:
            continue
        group = PANELS.get(name, group)
        sentence = SENTENCES.get(name, sentences[name])
        if isinstance(parameter.default, tuple) or name == "sort":
            sentence = f"{sentence.removesuffix('.')}; can be repeated."
        stated = Parameter(group=group, help=sentence)
        yield parameter.replace(annotation=Annotated[hints[name], stated])


def run_query(
    place: str,
    text: str | None = None,
    /,
    *,
    file: Annotated[str | None, Parameter(group=FINDING, allow_leading_hyphen=True)] = None,
    exclude: Annotated[Sequence[str], Parameter(group=FINDING)] = (),
    include_files: Annotated[Sequence[str], Parameter(name="--include", group=FINDING)] = (),
    oneline: Annotated[bool, Parameter(group=SHOWING, negative=())] = False,
    json: Annotated[bool, Parameter(group=SHOWING, negative=())] = False,
    **options: Any,
) -> None:
    """Search an index, and print the texts that are most like a text.

    Without a text, --filter, --sort or --facet list texts. A line on standard error says if nothing relevant was found;
    the nearest texts are still printed.

    Args:
        place: a bundle, or a folder of documents, whose index is kept in a cache and updated when files change.
        text: what to search for. Write -- before a text that begins with a dash.
        file: search for each line of a file; - reads standard input.
        exclude: leave out documents of a folder whose path ends in this form, such as drafts/*; can be repeated.
        include_files: read files of a folder of other suffixes too, as plain text, whose path ends in this form, such
            as *.py; can be repeated.
        oneline: a line for each text instead of a card; so it is without a terminal.
        json: print one object of JSON for each text, for other programs.
    """
    named = [words for words in (text, file, options.get("id")) if words is not None]
    if len(named) > 1:
        raise OptionError("text", 'expected one text, --file or --like; put several words into quotes, "like this"')
    if not named and not any(options.get(name) for name in ("filter", "sort", "facets")):
        raise OptionError("text", "missing; expected a text, --file or --like, or --filter, --sort or --facet alone")
    if not json:
        options.pop("include", None)  # a card shows the text and the metadata
    options["highlights"] = options.get("highlights", False) or _is_terminal()
    asked = _query(options)
    texts = [None] if text is file is None else _texts(text, file)
    index = bundle_at(place, FolderOptions(exclude, include_files), can_be_older=True)
    folder = ""
    if index != Path(place):  # documents
        folder = str(Path(place) if Path(place).is_dir() else Path(place).parent)
    bundle = load(index)
    has_cards = _is_terminal() and not (oneline or json)
    is_listed = asked.sort is not None or texts == [None]
    if has_cards and asked.group_by is None and not is_listed and bundle.column_kinds.get(PATH) == "string":
        asked = replace(asked, group_by=PATH)
    search = make_search(bundle, Executor(bundle.embedder))
    for number, words in enumerate(texts):
        query = replace(asked, text=words)
        found = finish(search(query, lambda phase: None))
        if (note := finish(nothing_relevant(query, found, bundle, search))) is not None:
            sys.stderr.write(f"{note}\n" if file is None else f"{visible(str(words))}: {note}\n")
        if json:
            print(_json_line({"query": words} | found.reply()))
            continue
        if number > 0:
            print()
        if file is not None:
            print(visible(str(words)))
        _print_found(found, is_oneline=not has_cards, folder=folder)


def _options() -> list[inspect.Parameter]:
    place, text, file, exclude, include, oneline, json, _ = inspect.signature(run_query).parameters.values()
    return [place, text, file, exclude, include, *options_of_search(), oneline, json]


command: App = as_command(run_query, _options(), EXAMPLES, "query")


def _query(options: Mapping[str, Any]) -> Query:
    """Return the query of options, which have the names of the arguments of `Search.search`."""
    fields = dict(options)
    if "top_k" in fields:
        fields["num_results"] = fields.pop("top_k")
    if "sort" in fields:
        fields["sort"] = dict(map(_sort, fields["sort"]))
    return query_with(fields)


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


def _print_found(found: Found, *, is_oneline: bool, folder: str = "") -> None:
    """Print cards on a terminal, or a line for each hit, then the facets."""
    for word, corrections in found.reply().get("corrected", {}).items():
        print(visible(f"no text has {word!r}; searched for {' and '.join(corrections)}"))
    if not found.results:
        print("no text was found")
    if is_oneline:
        _print_lines(found.results, folder)
    else:
        print_cards(found.results, shutil.get_terminal_size().columns, folder)
    for name, values in (found.facets or {}).items():
        shown = [each.get("value", f"{each.get('from', '')} to {each.get('to', '')}") for each in values]
        counts = [f"{value} ({each['count']:,})" for value, each in zip(shown, values, strict=True)]
        print(f"{name}: " + ", ".join(map(visible, counts)))
    if found.is_truncated:
        print("the text is longer than the search reads; its end was left out")


def _print_lines(results: Sequence[Mapping[str, Any]], folder: str = "") -> None:
    """Print a line for each hit; on a terminal as much of the snippet as there is room for."""
    lines = []
    for result in results:
        lines.append((visible(line_place(result, folder)), result))
        lines += [(f"  {visible(line_place(other, folder))}", other) for other in result.get("other_passages", ())]
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
