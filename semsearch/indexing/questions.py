"""Questions with the ids that answer them: JSON lines, a BEIR folder, lines with tabs and judgements, or in memory."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsearch.engine.errors import OptionError
from semsearch.engine.values import id_of_number
from semsearch.indexing.corpus.corpus import corpus_error, require_unicode
from semsearch.indexing.corpus.formats import json_rows, read_lines
from semsearch.indexing.corpus.rows import NumberedRows, Row, read_rows
from semsearch.indexing.errors import QUOTED_CHARACTERS
from semsearch.indexing.progress import no_progress

FORM = '{"query": "...", "relevant": ["id", ...]} or {"query": "...", "relevant": {"id": grade, ...}}'
FIELDS = ("query", "relevant", "id", "text")  # "text" is a passage, for the person who writes the question
IN_MEMORY = Path("questions")  # what messages call questions that have no file
JUDGEMENT = "query id, iteration, text id and grade, or (as BEIR) query id, text id and grade after a header"

Grades = Mapping[str, int]  # grade of each judged text by its id


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the grade of each text that was judged for it; at least one is above 0."""

    id: str
    text: str
    relevant: Grades


def questions_of(data: Any, qrels: str | Path | None = None) -> tuple[list[Question], list[str]]:
    """Return the questions of a file or a folder, of a DataFrame or of a list of dicts, and notes about them.

    Those in memory have the columns of JSON lines. Raises CorpusError for the first error in them.
    """
    if isinstance(data, str | Path):
        return read_questions(Path(data), None if qrels is None else Path(qrels))
    if qrels is not None:
        raise OptionError("qrels", "has no effect with questions in memory; leave it out")
    if type(data).__module__.partition(".")[0] == "pandas" and data.index.names == [None]:
        data = data.reset_index(drop=True)  # labels without a name are no column
    return list(_questions(IN_MEMORY, "question", _rows_in_memory(data))), []


def _rows_in_memory(data: Any) -> NumberedRows:
    """Yield the rows, counted from 1 as the lines of a file are. Fields of a struct that have no grade are left out."""
    for number, row in read_rows(data).read(no_progress):
        relevant = row.get("relevant")
        if isinstance(relevant, dict):
            row["relevant"] = {id: grade for id, grade in relevant.items() if grade is not None}
        yield number + 1, row


def read_questions(path: Path, qrels: Path | None = None) -> tuple[list[Question], list[str]]:
    """Return the questions of a file or a BEIR folder, and notes about what was left out.

    With qrels, the file is BEIR's queries.jsonl, or each of its lines has an id, a tab and a question.
    Raises CorpusError for the first error in the files.
    """
    if path.is_dir():
        return _judged(path / "queries.jsonl", qrels or _find_qrels(path))
    if qrels is not None:
        return _judged(path, qrels)
    return list(_questions(path, "line", json_rows(path, no_progress))), []


def read_log(path: Path) -> set[str]:
    """Return the different queries of a log with LOG_QUERIES=1. Raises CorpusError if it has none."""
    lines = [line for line in read_lines(path, no_progress) if '"message":"query"' in line.replace(" ", "")]
    found = {json.loads(line[line.index("{") :])["query"] for line in lines}
    if not found:
        raise corpus_error(path, None, "no query", "lines of JSON with the message query", "set LOG_QUERIES=1")
    return found


def _questions(path: Path, unit: str, rows: Iterable[tuple[int, Row]]) -> Iterator[Question]:
    """Yield the questions of numbered rows. The id of a question without an "id" is its number.

    Messages call a row by unit and number, such as "line 3".
    """
    ids: set[str] = set()
    for number, row in rows:
        place = f"{unit} {number}"
        require_unicode(path, place, row)
        for name in row:
            if name not in FIELDS:
                remedy = "correct its name or delete it; a filter is an option of the command"
                raise corpus_error(path, place, f"the field {name!r}", f"only {', '.join(FIELDS)}", remedy)
        text, relevant = row.get("query"), row.get("relevant")
        if not isinstance(text, str) or not text.strip() or not isinstance(relevant, list | dict):
            remedy = "write a question and the ids that answer it, or delete both"
            raise corpus_error(path, place, "no question or no relevant ids", FORM, remedy)
        id = str(number)
        if "id" in row:
            id = _id(path, place, row["id"])
        if id in ids:
            raise corpus_error(path, place, f"the id {id!r} again", "an id for each", "change one of them")
        ids.add(id)
        yield Question(id, text, _grades(path, place, relevant))
    if not ids:
        raise corpus_error(path, None, "no question", FORM, "write at least one")


def _grades(path: Path, place: str, relevant: list[object] | dict[str, int]) -> Grades:
    """Return the grade of each id; each id of a list has the grade 1. Raises CorpusError."""
    if isinstance(relevant, list):
        relevant = {_id(path, place, name): 1 for name in relevant}
    if not any(relevant.values()) or any(type(grade) is not int or grade < 0 for grade in relevant.values()):
        found = f"the grades {str(list(relevant.values()))[:QUOTED_CHARACTERS]}"
        expected = "whole numbers of 0 or more, and one above 0"
        raise corpus_error(path, place, found, expected, "add an id that answers, or delete the question")
    return relevant


def _id(path: Path, place: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise corpus_error(path, place, f"the id {str(value)[:QUOTED_CHARACTERS]!r}", "a string", "correct it")
    if isinstance(value, str):
        return value
    return id_of_number(value)


def _find_qrels(folder: Path) -> Path:
    for place in (folder / "qrels" / "test.tsv", folder / "qrels.tsv"):
        if place.is_file():
            return place
    others = sorted((folder / "qrels").glob("*.tsv"))
    if len(others) != 1:
        found = f"{len(others)} files in qrels"
        raise corpus_error(folder, None, found, "qrels/test.tsv or one file", "name one with --qrels FILE")
    return others[0]


def _judged(path: Path, qrels: Path) -> tuple[list[Question], list[str]]:
    topics, judgements = _read_topics(path), _read_qrels(qrels)
    relevant = {id: grades for id, grades in judgements.items() if any(grades.values())}
    questions = [Question(id, text, relevant[id]) for id, text in topics.items() if id in relevant]
    if not questions:
        found = f"no relevant text for any of {len(topics):,} questions in {path}"
        remedy = f"compare their ids: {next(iter(topics), '')!r} there, {next(iter(judgements), '')!r} here"
        raise corpus_error(qrels, None, found, "judgements of these questions", remedy)
    counts = {
        f"questions of {path.name} have no judgement": len(topics.keys() - judgements.keys()),
        "questions have no relevant text": len((topics.keys() & judgements.keys()) - relevant.keys()),
        f"questions of {qrels.name} are not in {path.name}": len(judgements.keys() - topics.keys()),
    }
    return questions, [f"{count:,} {what}; left out" for what, count in counts.items() if count]


def _read_topics(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, id, text in _topics(path):
        if not id or not text.strip() or id in found:
            expected = "a new id and a question: BEIR's _id and text, or both with a tab between"
            raise corpus_error(path, place, f"the id {id!r} and the question {text!r}", expected, "correct it")
        found[id] = text.strip()
    return found


def _topics(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the place, the id and the question of each topic. An id or a question that is missing is empty."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        for line, row in json_rows(path, no_progress):
            place, text = f"line {line}", row.get("text")
            require_unicode(path, place, row)
            if not isinstance(text, str):
                text = ""
            yield place, _id(path, place, row.get("_id")), text
        return
    for line, words in enumerate(read_lines(path, no_progress), 1):
        if words.strip():
            id, _, text = words.partition("\t")
            yield f"line {line}", id.strip(), text


def _read_qrels(path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line, words in enumerate(read_lines(path, no_progress), 1):
        fields = words.split()
        if "\t" in words:
            fields = words.strip().split("\t")
        if not fields or (line == 1 and len(fields) == 3 and not fields[2].lstrip("-").isdecimal()):
            continue
        if len(fields) not in (3, 4):
            raise corpus_error(path, f"line {line}", f"{len(fields)} fields", JUDGEMENT, "correct that line")
        id, name, grade = fields[0], fields[-2], fields[-1]
        if not (grade.isascii() and grade.isdecimal() and len(grade) < 10):
            found_grade = f"the grade {grade[:QUOTED_CHARACTERS]!r}"
            remedy = "write 0 for a text that is no answer"
            raise corpus_error(path, f"line {line}", found_grade, "a whole number of 0 or more", remedy)
        if found.setdefault(id, {}).setdefault(name, int(grade)) != int(grade):
            twice = f"the grade {grade} of {name!r} for question {id!r}, which had {found[id][name]} before"
            raise corpus_error(path, f"line {line}", twice, "one grade", "delete one of the lines")
    return found
