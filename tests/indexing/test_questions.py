"""Questions are read from JSON lines, BEIR folders and TREC files, and every fault says where it is and what to do."""

import json
from pathlib import Path

import pytest

from semsearch.indexing.corpus import CorpusError
from semsearch.indexing.questions import Question, read_questions


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def write_beir(folder: Path, qrels: str = "qrels/test.tsv") -> Path:
    write(folder / "queries.jsonl", '{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n')
    write(folder / qrels, "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td2\t0\n")
    return folder


def test_json_lines_have_lists_or_grades(tmp_path: Path) -> None:
    lines = [
        {"query": "one", "relevant": ["a", 7]},
        {"query": "two", "relevant": {"b": 2, "c": 0}, "id": "second", "text": "ignored"},
    ]
    path = write(tmp_path / "questions.jsonl", "".join(json.dumps(line) + "\n\n" for line in lines))
    assert read_questions(path) == (
        [Question("1", "one", {"a": 1, "7": 1}), Question("second", "two", {"b": 2, "c": 0})],
        [],
    )


@pytest.mark.parametrize("qrels", ["qrels/test.tsv", "qrels.tsv"])
def test_a_beir_folder_has_queries_and_qrels(tmp_path: Path, qrels: str) -> None:
    questions, notes = read_questions(write_beir(tmp_path, qrels))
    assert questions == [Question("q1", "one", {"d 1": 2, "d2": 0})]
    assert notes == ["1 questions of queries.jsonl have no judgement; left out"]


def test_the_test_split_is_taken_unless_qrels_names_another(tmp_path: Path) -> None:
    folder = write_beir(tmp_path)
    dev = write(tmp_path / "qrels" / "dev.tsv", "query-id\tcorpus-id\tscore\nq2\td2\t1\n")
    assert [question.id for question in read_questions(folder)[0]] == ["q1"]
    assert [question.id for question in read_questions(folder, dev)[0]] == ["q2"]


def test_lines_with_tabs_and_qrels_of_trec(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.txt", "301\tInternational organized crime\n302\tPolio\n")
    qrels = write(tmp_path / "qrels.txt", "301 0 FR-1 1\n301 0 FR-2 0\n302 0 FR-3 0\n303 0 FR-4 1\n")
    questions, notes = read_questions(topics, qrels)
    assert questions == [Question("301", "International organized crime", {"FR-1": 1, "FR-2": 0})]
    assert notes == [
        "1 questions have no relevant text; left out",
        "1 questions of qrels.txt are not in topics.txt; left out",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found no question, expected"),
        ('{"query": 3, "relevant": "a"}\n', "line 1: found no question or no relevant ids, expected {"),
        ('{"query": "one", "relevant": {"a": 0}}\n', "line 1: found the grades [0], expected whole numbers"),
        ('{"query": "one", "relevant": {"a": 1, "b": -1}}\n', "line 1: found the grades [1, -1], expected whole"),
        ('{"query": "one", "relevant": ["a"], "id": "x"}\n' * 2, "line 2: found the id 'x' again"),
        ('{"query": "one", "relevant": ["a"], "filter": {}}\n', "line 1: found the field 'filter', expected only"),
        ('{"query": "\\ud83e", "relevant": ["a"]}\n', "line 1: found half a surrogate pair in the column 'query'"),
    ],
)
def test_faults_of_json_lines(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path / "questions.jsonl", content)
    with pytest.raises(CorpusError) as error:
        read_questions(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)
    assert ";" in str(error.value)


@pytest.mark.parametrize(
    ("topics", "qrels", "message"),
    [
        ("1\tone\n", "1 0 a -1\n", "qrels.txt, line 1: found the grade '-1', expected a whole number of 0 or more"),
        ("1\tone\n", "1 0 a 1\n1 a\n", "qrels.txt, line 2: found 2 fields, expected query id, iteration"),
        ("1\tone\n", "2 0 a 1\n", "found no relevant text for any of 1 questions in"),
        ("1\tone\n1\ttwo\n", "1 0 a 1\n", "topics.txt, line 2: found the id '1' and the question"),
    ],
)
def test_faults_of_topics_and_judgements(tmp_path: Path, topics: str, qrels: str, message: str) -> None:
    with pytest.raises(CorpusError) as error:
        read_questions(write(tmp_path / "topics.txt", topics), write(tmp_path / "qrels.txt", qrels))
    assert message in str(error.value)
    assert ";" in str(error.value)


def test_a_beir_folder_without_judgements(tmp_path: Path) -> None:
    (write_beir(tmp_path) / "qrels" / "test.tsv").unlink()
    for name in ("dev", "train"):
        write(tmp_path / "qrels" / f"{name}.tsv", "q1\td1\t1\n")
    with pytest.raises(CorpusError, match=r"found 2 files in qrels, expected qrels/test.tsv or one file; name one"):
        read_questions(tmp_path)
