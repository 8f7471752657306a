"""What the tool `fetch` of POST /mcp returns: sections, documents, or texts, with the passages around them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from semsearch.engine.loading import AnyBundle, LoadedBundle
from semsearch.engine.passages import Lines
from semsearch.search.documents import document_rows, rows_around, section_of, section_rows
from semsearch.search.query import MOST_AROUND, SearchError
from semsearch.search.request import RequestText, StrictRequest
from semsearch.search.request_values import echo, whole_number
from semsearch.search.results import PAGE_COLUMN, PATH, heading_path, state_lines

if TYPE_CHECKING:
    from semsearch.search.reply_types import InFile

LONGEST_TITLE = 80  # characters of a text that serve as its title if it has none
LONGEST_TEXT = 50_000  # default of `max_characters`; of a longer document, the part around the passage is returned
MOST_IDS = 20  # ids of one call
LOWEST_HEADING = 6  # level of the lowest heading in Markdown
OF_ONE_PASSAGE = ("start", "end", "passage", "table")  # columns that describe one passage, not its section or document


Around = Annotated[int, Field(ge=0, le=MOST_AROUND), BeforeValidator(whole_number)]


class FetchArguments(StrictRequest):
    """Which text to return, how many passages around it, and how long it can be."""

    id: RequestText = Field(
        default_factory=str,  # the schema does not show it
        description="The id of a result of a search: of a section, a passage or a text. Or the path of a document.",
    )
    ids: Annotated[list[RequestText], Field(max_length=MOST_IDS)] = Field(
        default_factory=list,
        description="Several of them instead of `id`. `max_characters` is then the length of all texts together.",
    )
    max_characters: Annotated[int, Field(ge=200, le=1_000_000), BeforeValidator(whole_number)] = Field(
        default=LONGEST_TEXT, description="The maximum length of the text. `cut` says what was left out."
    )
    before: Around = Field(default=0, description="How many passages before it to return.")
    after: Around = Field(default=0, description="How many passages after it to return.")

    @model_validator(mode="after")
    def check_ids(self) -> Self:
        """Raise an error unless there is either `id` or `ids`."""
        if bool(self.id) == bool(self.ids):
            raise PydanticCustomError("ids", "expected either id or ids")
        return self


@dataclass(frozen=True, slots=True)
class _Place:
    """The rows that an id names, and the text of each row, which can begin with headings."""

    id: str
    rows: list[int]
    row: int  # the one of the id, or the first
    texts: list[str]

    @property
    def length(self) -> int:
        """Return the number of characters of the whole text."""
        return len("\n\n".join(self.texts))


def fetch(bundle: LoadedBundle, asked: FetchArguments) -> dict[str, Any]:
    """Return the text with an id, its title, address and metadata, and the passages around it. For `ids`, list these.

    For the id of a passage, the text is its document, or the passage itself if passages around it are returned.
    Raises SearchError if there is nothing with this id, or if it is in no document and passages around it are wanted;
    of several ids, one without a text has an `error` in the list.
    """
    if asked.id:
        return _reply(bundle, _find(bundle, asked.id, asked), asked, asked.max_characters)
    found: list[_Place | SearchError] = []
    for id in asked.ids:
        try:
            found.append(_find(bundle, id, asked))
        except SearchError as error:
            found.append(error)
    lengths = [each.length if isinstance(each, _Place) else 0 for each in found]
    results: list[dict[str, Any]] = [{} for _ in found]
    left = asked.max_characters
    # the shortest first: what they leave is for the longer ones
    for place, number in enumerate(sorted(range(len(found)), key=lambda number: lengths[number])):
        each = found[number]
        try:
            if isinstance(each, SearchError):
                raise each
            results[number] = _reply(bundle, each, asked, left // (len(found) - place))
            left -= len(results[number]["text"])
        except SearchError as error:
            results[number] = {"id": asked.ids[number], "error": str(error)}
    return {"results": results}


def text_below(bundle: LoadedBundle, id: str, most: int) -> str:
    """Return the beginning of what is below a heading that is a passage with this id; "" for any other passage."""
    row = bundle.find(id)
    if row is None or not _is_heading(bundle, row):
        return ""
    rows = section_rows(bundle, section_of(id))
    if row not in rows:
        return ""
    first = rows.index(row)
    below = "\n\n".join(_texts(bundle, rows[first : first + most])[1:])  # no text is shorter than a character
    if len(below) > most:
        return f"{below[: most - 1].rstrip()}…"
    return below


def _find(bundle: LoadedBundle, id: str, asked: FetchArguments) -> _Place:
    """Return the place with an id. Raises SearchError if there is nothing with this id."""
    rows = _rows_of_id(bundle, id)
    if not rows:
        raise SearchError(_explain_unknown(bundle, id))
    row = rows[0]
    passage = bundle.passages[row]
    path = passage.metadata.get(PATH)
    if id == passage.id:
        if not (asked.before or asked.after) and isinstance(path, str):
            rows = document_rows(bundle, path).tolist() or rows
        if len(rows) == 1:
            return _Place(id, rows, row, [passage.text])
    return _Place(id, rows, row, _texts(bundle, rows, is_section=id not in (passage.id, path)))


def _reply(bundle: LoadedBundle, place: _Place, asked: FetchArguments, most: int) -> dict[str, Any]:
    """Return what is at a place, whose text has at most `most` characters.

    Raises SearchError if it is in no document and passages around it are wanted.
    """
    passage = bundle.passages[place.row]
    metadata = passage.metadata
    is_section = has_sections(bundle) and place.id not in (passage.id, metadata.get(PATH))
    found = reference(place.id, passage.text, metadata, is_section=is_section)
    if has_sections(bundle) and place.id != passage.id:
        metadata = {name: value for name, value in metadata.items() if name not in OF_ONE_PASSAGE}
    text: dict[str, Any] = _text_within(bundle, place, most)
    if asked.before or asked.after:
        before, after = _texts_around(bundle, place.rows, asked)
        text = {"before": before} | text | {"after": after}
    return found | text | {"metadata": metadata}


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
    if "#" in id and has_sections(bundle):
        rows = section_rows(bundle, id)
        if rows:
            return rows
    return list(document_rows(bundle, id).tolist())


def _is_heading(bundle: LoadedBundle, row: int) -> bool:
    passage = bundle.passages[row]
    return is_heading(passage.text, passage.metadata)


def is_heading(text: str, metadata: Mapping[str, Any]) -> bool:
    """Return whether a passage with this text is a heading without a text of its own."""
    path = heading_path(metadata)
    return bool(path) and " ".join(text.split()) == path[-1]


def _texts(bundle: LoadedBundle, rows: Sequence[int], *, is_section: bool = True) -> list[str]:
    """Return the text of each row, after the headings that begin with it, as Markdown has them.

    The heading of the section itself or, without is_section, the title of the document is not repeated.
    """
    passages = bundle.passages
    if not has_sections(bundle):
        return [passages.text(row) for row in rows]
    texts: list[str] = []
    known: list[str] = []
    section = ""
    for place, row in enumerate(rows):
        metadata, id = passages.metadata(row), section_of(passages.id(row))
        path = heading_path(metadata)
        if not place:
            known, section = path if is_section else path[:1], id
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(known, path, strict=False)))
        # it goes on after a section below it, or it is another one of the same headings
        if path and shared == len(path) and id != section and PAGE_COLUMN not in metadata:
            shared -= 1
        headings = [f"{'#' * min(level + 1, LOWEST_HEADING)} {path[level]}" for level in range(shared, len(path))]
        if not (headings and _is_heading(bundle, row)):
            headings.append(passages.text(row))
        texts.append("\n\n".join(headings))
        known, section = path, id
    return texts


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


def _text_within(bundle: LoadedBundle, place: _Place, most: int) -> dict[str, Any]:
    """Return the texts of a place with blank lines between them, at most `most` characters around its row.

    `lines` are those of the file from the first to the last of these texts, and `cut` says what was left out.
    """
    rows, texts, number = place.rows, place.texts, place.rows.index(place.row)
    ends = [0, *accumulate(len(text) + 2 for text in texts)]
    begin, end = number, number + 1
    for reach in range(1, len(texts)):
        before, after = max(0, number - reach), min(number + reach + 1, len(texts))
        if ends[after] - ends[before] - 2 > most:
            break
        begin, end = before, after
    text = "\n\n".join(texts[begin:end])[:most]
    stated = _lines_of(bundle, rows[begin], rows[end - 1])
    if len(text) == place.length:
        return stated | {"text": text}
    cut = f"{len(text):,} of {place.length:,} characters; raise max_characters, or fetch "
    following = end
    if len(text) < ends[end] - ends[begin] - 2:  # the passage alone is longer
        following -= 1
    if following < len(rows):
        cut += f"{bundle.passages.id(rows[following])} with `after` for what follows"
    else:
        cut += "one section or passage by its id"
    return stated | {"text": text, "cut": cut}


def _lines_of(bundle: LoadedBundle, first: int, last: int) -> "InFile":
    """Return the lines of a file from one row to another one; none if they are not known."""
    begin, end = bundle.passages.lines(first), bundle.passages.lines(last)
    found: InFile = {}
    if begin is not None and end is not None:
        state_lines(found, Lines(begin.first, end.last, begin.first_cell, end.last_cell))
    return found
