"""What the tool `fetch` of POST /mcp returns: a section, a document, or a text, with the passages around it."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from semsearch.engine.loading import AnyBundle, LoadedBundle
from semsearch.engine.passages import Lines
from semsearch.search.documents import document_rows, rows_around
from semsearch.search.query import MOST_AROUND, SearchError
from semsearch.search.request import RequestText, StrictRequest, echo, whole_number
from semsearch.search.results import PATH, heading_path, state_lines

if TYPE_CHECKING:
    from semsearch.search.reply_types import InFile

LONGEST_TITLE = 80  # characters of a text that serve as its title if it has none
LONGEST_TEXT = 50_000  # default of `max_characters`; of a longer document, the part around the passage is returned
OF_ONE_PASSAGE = ("start", "end", "passage", "table")  # columns that describe one passage, not its section or document


Around = Annotated[int, Field(ge=0, le=MOST_AROUND), BeforeValidator(whole_number)]


class FetchArguments(StrictRequest):
    """Which text to return, how many passages around it, and how long it can be."""

    id: RequestText = Field(
        description="The id of a result of a search: of a section, a passage or a text. Or the path of a document."
    )
    max_characters: Annotated[int, Field(ge=200, le=1_000_000), BeforeValidator(whole_number)] = Field(
        default=LONGEST_TEXT, description="The maximum length of the text. `cut` says what was left out."
    )
    before: Around = Field(default=0, description="How many passages before it to return.")
    after: Around = Field(default=0, description="How many passages after it to return.")


def fetch(bundle: LoadedBundle, asked: FetchArguments) -> dict[str, Any]:
    """Return the text with an id, its title, address and metadata, and the passages around it.

    For the id of a passage, the text is its document, or the passage itself if passages around it are returned.
    Raises SearchError if there is nothing with this id, or if it is in no document and passages around it are wanted.
    """
    rows = _rows_of_id(bundle, asked.id)
    if not rows:
        raise SearchError(_explain_unknown(bundle, asked.id))
    row = rows[0]
    passage = bundle.passages[row]
    metadata, path = passage.metadata, passage.metadata.get(PATH)
    is_section = has_sections(bundle) and asked.id not in (passage.id, path)
    found = reference(asked.id, passage.text, metadata, is_section=is_section)
    if has_sections(bundle) and asked.id != passage.id:
        metadata = {name: value for name, value in metadata.items() if name not in OF_ONE_PASSAGE}
    if asked.before or asked.after:
        before, after = _texts_around(bundle, rows, asked)
        found |= {"before": before} | _text_within(bundle, rows, row, asked.max_characters) | {"after": after}
        return found | {"metadata": metadata}
    if asked.id == passage.id and isinstance(path, str):
        rows = document_rows(bundle, path).tolist() or rows
    return found | _text_within(bundle, rows, row, asked.max_characters) | {"metadata": metadata}


def reference(id: str, text: str, metadata: Mapping[str, Any], *, is_section: bool = False) -> dict[str, Any]:
    """Return the id, title and address of a text; the title of a section is that of its own heading.

    A text without a title or headings has its beginning as title.
    """
    title, url, headings = metadata.get("title"), metadata.get("url"), heading_path(metadata)
    if headings and (is_section or not title):
        title = headings[-1]
    if not title:
        title = " ".join(text.split())
        if len(title) > LONGEST_TITLE:
            title = f"{title[: LONGEST_TITLE - 1]}…"
    if not isinstance(url, str):
        url = ""
    return {"id": id, "title": str(title), "url": url}


def has_sections(bundle: AnyBundle) -> bool:
    """Return whether the texts are passages of documents, whose ids are those of sections and a number."""
    return bundle.manifest.corpus.heading_prefix


def _rows_of_id(bundle: LoadedBundle, id: str) -> list[int]:
    """Return the rows of a text, of a section or of a document; none if there is nothing with this id."""
    row = bundle.find(id)
    if row is not None:
        return [row]
    is_section = "#" in id and has_sections(bundle)
    first = bundle.find(f"{id}:1") if is_section else None
    if first is None:
        return list(document_rows(bundle, id).tolist())
    rows: list[int] = document_rows(bundle, bundle.passages[first].metadata[PATH]).tolist()
    return [each for each in rows if bundle.passages.id(each).rpartition(":")[0] == id]


def _explain_unknown(bundle: LoadedBundle, id: str) -> str:
    """Return why there is nothing with an id, and what to fetch instead."""
    path, number_sign, _ = id.partition("#")
    if number_sign and len(document_rows(bundle, path)):
        return f"id: found {echo(id)}, which {echo(path)} does not have; fetch {echo(path)}, or search for a section"
    return f"id: found {echo(id)}, expected the id of a result; search for one"


def _texts_around(bundle: LoadedBundle, rows: Sequence[int], asked: FetchArguments) -> list[list[dict[str, Any]]]:
    """Return the passages before the first of the rows and those after the last, in the order of the document.

    Raises SearchError if the rows are in no document.
    """
    before, after = rows_around(bundle, rows[0], asked.before, asked.after)
    if len(rows) > 1:
        _, after = rows_around(bundle, rows[-1], 0, asked.after)
    passages = bundle.passages
    return [
        [{"id": passages.id(row), **_lines_of(bundle, row, row), "text": passages.text(row)} for row in side]
        for side in (before, after)
    ]


def _text_within(bundle: LoadedBundle, rows: Sequence[int], row: int, most: int) -> dict[str, Any]:
    """Return the texts of rows with blank lines between them, at most `most` characters around one of the rows.

    `lines` are those of the file from the first to the last of these texts, and `cut` says what was left out.
    """
    texts, place = [bundle.passages.text(each) for each in rows], rows.index(row)
    ends = [0, *accumulate(len(text) + 2 for text in texts)]
    begin, end = place, place + 1
    for reach in range(1, len(texts)):
        before, after = max(0, place - reach), min(place + reach + 1, len(texts))
        if ends[after] - ends[before] > most:
            break
        begin, end = before, after
    text = "\n\n".join(texts[begin:end])[:most]
    stated = _lines_of(bundle, rows[begin], rows[end - 1])
    whole = len("\n\n".join(texts))
    if len(text) == whole:
        return stated | {"text": text}
    cut = f"{len(text):,} of {whole:,} characters; raise max_characters, or fetch one section or passage by its id"
    return stated | {"text": text, "cut": cut}


def _lines_of(bundle: LoadedBundle, first: int, last: int) -> "InFile":
    """Return the lines of a file from one row to another one; none if they are not known."""
    begin, end = bundle.passages.lines(first), bundle.passages.lines(last)
    found: InFile = {}
    if begin is not None and end is not None:
        state_lines(found, Lines(begin.first, end.last, begin.first_cell, end.last_cell))
    return found
