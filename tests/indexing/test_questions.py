"""Questions are read from JSON lines, BEIR folders and TREC files, and every fault says where it is and what to do."""

import json
from pathlib import Path

import pytest

from semsearch.indexing.corpus import CorpusError
from semsearch.indexing.questions import Question, read_log, read_questions


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
        ('{"query": " ", "relevant": ["a"]}\n', "line 1: found no question or no relevant ids, expected {"),
        ('{"query": "one", "relevant": []}\n', "line 1: found the grades [], expected whole numbers"),
        ('{"query": "one", "relevant": {"a": true}}\n', "line 1: found the grades [True], expected whole numbers"),
        ('{"query": "one", "relevant": [true]}\n', "line 1: found the id 'True', expected a string"),
        ('{"query": "one", "relevant": [""]}\n', "line 1: found the id '', expected a string"),
        ('{"query": "one", "relevant": ["a"], "id": ["b"]}\n', "line 1: found the id \"['b']\", expected a string"),
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
        ("1\tone\n1\ttwo\n", "1 0 a 1\n", "topics.txt, line 2: found the id '1' and the question 'two"),
        ("1\t \n", "1 0 a 1\n", "topics.txt, line 1: found the id '1' and the question ' "),
        ("\tone\n", "1 0 a 1\n", "topics.txt, line 1: found the id '' and the question 'one"),
        ("1\tone\n", "1 0 a 1\n1 0 a b 1\n", "qrels.txt, line 2: found 5 fields, expected query id, iteration"),
        ("1\tone\n", "1 a -1\n", "qrels.txt, line 1: found the grade '-1', expected a whole number of 0 or more"),
        ("1\tone\n", "1 a 1\n1 a x\n", "qrels.txt, line 2: found the grade 'x', expected a whole number"),
        ("1\tone\n", "1 0 a \u0663\n", "qrels.txt, line 1: found the grade '\u0663', expected a whole number"),
        ("1\tone\n", "1 0 a 1000000000\n", "qrels.txt, line 1: found the grade '1000000000', expected a whole"),
        (
            "1\tone\n",
            "1 0 a 1\n1 0 a 1\n1 0 a 2\n",
            "qrels.txt, line 3: found the grade 2 of 'a' for question '1', which had 1 before, expected one grade",
        ),
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


def test_one_file_of_judgements_needs_no_certain_name(tmp_path: Path) -> None:
    questions, _ = read_questions(write_beir(tmp_path, "qrels/dev.tsv"))
    assert questions == [Question("q1", "one", {"d 1": 2, "d2": 0})]


def test_blank_lines_and_a_first_line_of_names_are_no_judgements(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.txt", "\n 1 \t one \n\n2\ttwo\n")
    qrels = write(tmp_path / "qrels.txt", "query-id corpus-id score\n\n1 a 999999999\n2 a 0\n2 b 3\n")
    assert read_questions(topics, qrels) == (
        [Question("1", "one", {"a": 999_999_999}), Question("2", "two", {"a": 0, "b": 3})],
        [],
    )


def test_a_judged_question_and_one_without_an_answer_are_counted_once(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.jsonl", "".join(f'{{"_id": {n}, "text": "t{n}"}}\n' for n in range(1, 7)))
    qrels = write(tmp_path / "qrels.txt", "1 0 a 1\n2 0 a 0\n3 0 a 0\n7 0 a 1\n8 0 a 1\n9 0 a 1\n10 0 a 1\n")
    assert read_questions(topics, qrels) == (
        [Question("1", "t1", {"a": 1})],
        [
            "3 questions of topics.jsonl have no judgement; left out",
            "2 questions have no relevant text; left out",
            "4 questions of qrels.txt are not in topics.jsonl; left out",
        ],
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [('{"_id": "1"}', "the id '1' and the question ''"), ('{"_id": "1", "text": 7}', "the id '1' and the question ''")],
)
def test_a_topic_without_a_question_is_refused(line: str, found: str, tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels.txt", "1 0 a 1\n")
    with pytest.raises(CorpusError) as error:
        read_questions(write(tmp_path / "topics.jsonl", line), qrels)
    assert f"topics.jsonl, line 1: found {found}, expected a new id and a question" in str(error.value)


def test_half_a_surrogate_pair_of_a_topic_is_refused(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.jsonl", '{"_id": "1", "text": "\\ud83e"}\n')
    with pytest.raises(CorpusError, match="line 1: found half a surrogate pair in the column 'text'"):
        read_questions(topics, write(tmp_path / "qrels.txt", "1 0 a 1\n"))


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_questions(tmp_path / "questions.jsonl")


def test_the_different_queries_of_a_log_are_read(tmp_path: Path) -> None:
    start = "2026-11-29T10:00:00Z INFO "
    lines = [f'{start}{{"message": "query", "query": "{query}"}}' for query in ("goose", "ferry", "goose")]
    other = f'{start}{{"message": "request", "query": "swan"}}'
    log = write(tmp_path / "log", "\n".join([*lines, other, '{"message":"query","query":"duck"}']))
    assert read_log(log) == {"goose", "ferry", "duck"}
    with pytest.raises(CorpusError) as error:
        read_log(write(tmp_path / "log", other))
    assert str(error.value) == (
        f"{log}: found no query, expected lines of JSON with the message query; set LOG_QUERIES=1"
    )
