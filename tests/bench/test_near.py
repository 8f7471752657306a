"""`python -m bench near`: its questions, and the documentations that it needs."""

from pathlib import Path

import pytest

from bench import Missing
from bench.near import DOCUMENTATIONS, NEAR, near
from bench.relevance import NEITHER, read_kinds


def test_each_documentation_has_20_questions_and_none_is_asked_of_two() -> None:
    questions = read_kinds()
    assert {name: len(questions[name]) for name in DOCUMENTATIONS} == dict.fromkeys(DOCUMENTATIONS, 20)
    assert (len(questions[NEAR]), len(questions[NEITHER])) == (40, 50)
    every = [question for each in questions.values() for question in each]
    assert len(set(every)) == len(every)


def test_a_documentation_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"pytest: there is no such folder; docs/benchmarks\.md says where it comes from"):
        near(work=tmp_path / "work", data=tmp_path)
