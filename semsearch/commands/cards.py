"""The results of `semsearch query` on a terminal as cards: score and heading, the way to the section, and a snippet.

The way ends with the path and the line, such as docs/a.md:12, which most terminals open, or else with the id.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from semsearch.commands.terminal import visible
from semsearch.search.results import PATH, heading_path

BOLD, DIM, NORMAL = "\x1b[1m", "\x1b[2m", "\x1b[0m"
SCORE_WIDTH = 8  # characters of a score and the blanks around it
WIDEST = 100  # characters of a line; longer ones are hard to read
LINES = 2  # maximum lines of a snippet
PRINTED_WORD, SPACES = re.compile(r"\S+"), re.compile(r"\s+")
PARAMETERS = re.compile(r"(?<=\w)\(.*", re.DOTALL)  # the parameters of a function in a heading

ShownResult = Mapping[str, Any]


def print_cards(results: Sequence[ShownResult], columns: int, folder: str = "") -> None:
    """Print each result as a card, on a terminal of this number of columns. folder is that of the documents."""
    room = min(columns, WIDEST) - SCORE_WIDTH
    for number, result in enumerate(results):
        if number > 0:
            print()
        score = "" if result["score"] is None else f"{result['score']:.2f}"
        heading, way = _place(result, folder, room)
        print(f"{score:>6}  {_styled(cut(heading, room), BOLD)}")
        for line in _below(result, way, folder, room):
            print(" " * SCORE_WIDTH + line)


def line_place(result: ShownResult, folder: str) -> str:
    """Return the path of a result and its first line, such as docs/a.md:12; its id if it has no lines.

    folder is that of the documents, as the user wrote it; "" if it is not known.
    """
    lines, cells = result.get("lines"), result.get("cells")
    path = result["metadata"].get(PATH) if lines else None
    if not lines or not isinstance(path, str):
        return str(result["id"])
    cell = f" cell {cells[0]}" if cells else ""
    return f"{Path(folder, path)}{cell}:{lines[0]}"


def _place(result: ShownResult, folder: str, room: int) -> tuple[str, str]:
    """Return the heading of a result and the way to it; for a text without a title its id, and no way."""
    place = line_place(result, folder)
    *above, heading = heading_path(result["metadata"]) or [result["id"]]
    if heading == place:
        return heading, ""
    way = " > ".join(PARAMETERS.sub("", each) for each in above)
    if way:  # the place is whole, so that a terminal can open it
        return heading, f"{cut(way, max(room - len(place) - 3, 4))} > {place}"
    return heading, place


def _below(result: ShownResult, way: str, folder: str, room: int) -> Iterator[str]:
    """Yield the lines of a card below its first one."""
    if way:
        yield _styled(way, DIM)
    copies = result.get("also_in", ())
    if copies:
        places = dict.fromkeys(_copy_name(each, result["metadata"]) for each in copies)
        yield _styled(cut(f"also in {', '.join(places)}", room), DIM)
    yield from _snippet(result, room)
    for other in result.get("other_passages", ()):
        heading, _ = _place(other, folder, room)
        yield f"· {cut(heading, room - 2)}"


def _copy_name(copy: Mapping[str, str], own: Mapping[str, Any]) -> str:
    """Return what differs from the version and the language of the result, or else the path of a copy."""
    differing = [copy[name] for name in ("version", "language") if copy.get(name) not in (None, own.get(name))]
    return " ".join(differing) or copy["path"]


def _snippet(result: ShownResult, room: int) -> Iterator[str]:
    """Yield the first lines of a result's snippet, its highlights in bold."""
    snippet, length = result["snippet"], len(result["text"])
    text: str = snippet["text"]
    lines = list(_wrap(text, room - 2))
    for number, (start, end) in enumerate(lines[:LINES]):
        is_last = number + 1 == min(LINES, len(lines))
        before = "…" * (number == 0 and snippet["start"] > 0)
        after = "…" * (is_last and (snippet["end"] < length or len(lines) > LINES))
        yield f"{before}{_marked(text, start, end, snippet['highlights'])}{after}"


def snippet_line(result: ShownResult, room: int) -> str:
    """Return the beginning of a result's snippet in one line of `room` characters, its highlights in bold."""
    snippet = result["snippet"]
    text: str = snippet["text"].rstrip()
    before = "…" * (snippet["start"] > 0)
    after = "…" * (snippet["end"] < len(result["text"]) or len(text) > room - len(before))
    line = _marked(text, 0, min(len(text), room - len(before) - len(after)), snippet["highlights"])
    return f"{before}{line}{after}"


def _wrap(text: str, room: int) -> Iterator[tuple[int, int]]:
    """Yield where each line of a text begins and ends. A word that is longer than a line is divided."""
    start = end = 0
    for word in PRINTED_WORD.finditer(text):
        if word.end() - start > room and end > start:
            yield start, end
            start = word.start()
        while word.end() - start > room:
            yield start, start + room
            start += room
        end = word.end()
        if not text[start:end].strip():
            start = word.start()
    if end > start:
        yield start, end


def _marked(text: str, start: int, end: int, ranges: Sequence[tuple[int, int]]) -> str:
    """Return a part of a text in one line, with the ranges [first, last] of the whole text in bold."""
    line: str = ""
    place = start
    for first, last in ranges:
        first, last = max(first, start), min(last, end)
        if first < last:
            line += _in_line(text[place:first]) + _styled(text[first:last], BOLD)
            place = last
    line += _in_line(text[place:end])
    return line


def _in_line(text: str) -> str:
    """Return a text with one blank for each run of white space."""
    return visible(SPACES.sub(" ", text))


def cut(text: str, room: int) -> str:
    """Return a text in one line of `room` characters, cut in the middle if it is longer."""
    line = " ".join(text.split())
    if len(line) <= room:
        return line
    kept = max(room - 1, 3)
    return f"{line[: kept - kept // 3]}…{line[-(kept // 3) :]}"


def _styled(text: str, style: str) -> str:
    if os.environ.get("NO_COLOR"):
        return visible(text)
    return f"{style}{visible(text)}{NORMAL}"
