"""Questions with the ids that answer them: JSON lines, a BEIR folder, or TREC topics with judgements (qrels)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from export.corpus.corpus import corpus_error
from export.corpus.formats import json_rows, read_lines
from export.corpus.ids import id_of_number
from export.evaluation.measures import Grades
from export.progress import no_progress

SHOWN = 40  # characters of a wrong value that a message repeats
FORM = '{"query": "...", "relevant": ["id", ...]} or {"query": "...", "relevant": {"id": grade, ...}}'
JUDGEMENT = "query id, iteration, text id and grade, or (as BEIR) query id, text id and grade after a header"
TOPIC = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
TITLE = re.compile(r"<title>\s*(?:Topic:)?\s*([^<]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the grade of each text that was judged for it; at least one is above 0."""

    id: str
    text: str
    relevant: Grades


def read_questions(path: Path, qrels: Path | None = None) -> tuple[list[Question], list[str]]:
    """Return the questions of a file or a BEIR folder, and notes about what was left out.

    With qrels, the file has topics: TREC's, BEIR's queries.jsonl, or an id, a tab and a question on each line.
    Raises CorpusError for the first fault.
    """
    if path.is_dir():
        return _judged(path / "queries.jsonl", qrels or _find_qrels(path))
    if qrels is not None:
        return _judged(path, qrels)
    _require_file(path, "a file of questions")
    if _first_character(path) == "<":
        remedy = "name the file of judgements too, with --qrels FILE"
        raise corpus_error(path, None, "TREC topics without judgements", FORM, remedy)
    return list(_json_questions(path)), []


def _json_questions(path: Path) -> Iterator[Question]:
    """Yield the questions of JSON lines; the id of one without an "id" is the number of its line."""
    ids: dict[str, int] = {}
    lines: dict[str, int] = {}
    empty = []
    for line, row in json_rows(path, no_progress):
        place = f"line {line}"
        text, relevant = row.get("query"), row.get("relevant")
        if not isinstance(text, str) or not isinstance(relevant, list | dict):
            kinds = {name: type(value).__name__ for name, value in row.items() if name in ("query", "relevant")}
            raise corpus_error(path, place, f"{kinds or 'neither query nor relevant'}", FORM, "correct that line")
        if not text.strip():
            empty.append(line)
            continue
        if text in lines:
            found = f"the question of line {lines[text]} again ({text[:SHOWN]!r})"
            raise corpus_error(path, place, found, "each question once", "write all its ids into one line")
        lines[text] = line
        id = _id(path, place, row["id"], "a question's id") if "id" in row else str(line)
        if id in ids:
            raise corpus_error(path, place, f"the id {id!r} of line {ids[id]}", "an id for each", "change one of them")
        ids[id] = line
        grades = _grades(path, place, relevant)
        if not any(grades.values()):
            found = "no id in relevant" if not grades else "only grades of 0 in relevant"
            raise corpus_error(path, place, found, "at least one text that answers", "add its id, or delete that line")
        yield Question(id, text, grades)
    if empty:
        found = f"an empty query in {len(empty):,} lines"
        raise corpus_error(path, f"line {empty[0]}", found, "a question", "write one into each, or delete the lines")
    if not lines:
        raise corpus_error(path, None, "no question", FORM, "write one line for each question")


def _grades(path: Path, place: str, relevant: list[object] | Mapping[str, object]) -> dict[str, int]:
    if isinstance(relevant, list):
        return {_id(path, place, id, "an id in relevant"): 1 for id in relevant}
    for id, grade in relevant.items():
        if type(grade) is not int or grade < 0:
            found = f"the grade {str(grade)[:SHOWN]!r} of {id!r}"
            raise corpus_error(
                path, place, found, "a whole number of 0 or more", "write 0 for a text that is no answer"
            )
    return {id: grade for id, grade in relevant.items() if isinstance(grade, int)}


def _id(path: Path, place: str, value: object, what: str) -> str:
    """Return an id as the bundle has it. Raises CorpusError unless it is a string or a number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise corpus_error(path, place, f"{what} that is {str(value)[:SHOWN]!r}", "a string", "correct that line")
    return value if isinstance(value, str) else id_of_number(value)


def _find_qrels(folder: Path) -> Path:
    """Return the judgements of a BEIR folder: those of its test, or the only ones."""
    places = [folder / "qrels" / "test.tsv", folder / "qrels.tsv", *sorted((folder / "qrels").glob("*.tsv"))]
    there = list(dict.fromkeys(place for place in places if place.is_file()))
    if not there:
        expected = "a BEIR folder with queries.jsonl and qrels/test.tsv"
        raise corpus_error(folder, None, "no qrels", expected, "name the file of judgements with --qrels FILE")
    if len(there) > 1 and there[0] not in places[:2]:
        names = ", ".join(place.name for place in there)
        raise corpus_error(folder / "qrels", None, names, "test.tsv or one file", "name one with --qrels FILE")
    return there[0]


def _judged(path: Path, qrels: Path) -> tuple[list[Question], list[str]]:
    """Return the topics that have a relevant text, and notes about the others."""
    _require_file(path, "the questions")
    _require_file(qrels, "judgements")
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
    """Return the questions by their ids."""
    found: dict[str, str] = {}
    for place, id, text in _topics(path):
        if not id or not text.strip():
            expected = "an id and a question: a TREC topic, BEIR's _id and text, or both with a tab between"
            raise corpus_error(path, place, f"the id {id!r} and the question {text!r}", expected, "correct it")
        if id in found:
            raise corpus_error(path, place, f"the id {id!r} again", "each question once", "delete one of them")
        found[id] = text.strip()
    return found


def _topics(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the place, the id and the question of each topic; the latter two are empty where they are missing."""
    match _first_character(path):
        case "{":
            for line, row in json_rows(path, no_progress):
                text = row.get("text")
                id = _id(path, f"line {line}", row.get("_id"), "an _id")
                yield f"line {line}", id, text if isinstance(text, str) else ""
        case "<":
            topics = TOPIC.findall("".join(read_lines(path, no_progress)))
            if not topics:
                raise corpus_error(path, None, "no <top>", "TREC topics, <top> to </top>", "convert the file")
            for number, topic in enumerate(topics, 1):
                name, title = NUMBER.search(topic), TITLE.search(topic)
                yield f"topic {number}", name[1] if name else "", " ".join(title[1].split()) if title else ""
        case _:
            for line, words in enumerate(read_lines(path, no_progress), 1):
                if words.strip():
                    id, _, text = words.partition("\t")
                    yield f"line {line}", id.strip(), text


def _read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return the grades of each question's texts."""
    found: dict[str, dict[str, int]] = {}
    for line, words in enumerate(read_lines(path, no_progress), 1):
        fields = words.strip().split("\t") if "\t" in words else words.split()
        if not fields or (line == 1 and len(fields) == 3 and not fields[2].lstrip("-").isdecimal()):
            continue
        if len(fields) not in (3, 4):
            raise corpus_error(path, f"line {line}", f"{len(fields)} fields", JUDGEMENT, "correct that line")
        id, name, grade = fields[0], fields[-2], fields[-1]
        if not (grade.isascii() and grade.isdecimal() and len(grade) < 10):
            found_grade = f"the grade {grade[:SHOWN]!r}"
            remedy = "write 0 for a text that is no answer"
            raise corpus_error(path, f"line {line}", found_grade, "a whole number of 0 or more", remedy)
        if found.setdefault(id, {}).setdefault(name, int(grade)) != int(grade):
            twice = f"the grade {grade} of {name!r} for question {id!r}, which had {found[id][name]} before"
            raise corpus_error(path, f"line {line}", twice, "one grade", "delete one of the lines")
    return found


def _require_file(path: Path, what: str) -> None:
    if not path.is_file():
        raise corpus_error(path, None, "no file", what, "check the path")


def _first_character(path: Path) -> str:
    """Return the first character that is not white space, empty if there is none."""
    return next((line.strip()[0] for line in read_lines(path, no_progress) if line.strip()), "")
