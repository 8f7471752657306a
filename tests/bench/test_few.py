"""`python -m bench few`: which texts and questions an index of few texts gets."""

import random

import pytest

from bench.few import Judged, choose

TEXTS = {"a": ["a 1", "a 2", "a 3"], "b": ["b"], "c": ["c"], "d": ["d 1", "d 2"]}
QUESTIONS = {"asks a": {"a"}, "asks a or b": {"a", "b"}, "asks c": {"c"}}


@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_texts_that_answer_come_first_and_the_others_of_a_set_are_near(size: int) -> None:
    for seed in range(20):
        texts, questions = choose(Judged(TEXTS, QUESTIONS), size, random.Random(seed))
        assert len(set(texts)) == len(texts) == size
        answering = {text[0] for text in texts} - {"d"}
        assert set(questions["own"]) == {each for each, names in QUESTIONS.items() if names & answering}
        assert set(questions["own"]) | set(questions["near"]) == set(QUESTIONS)
        assert len(questions["own"]) + len(questions["near"]) == len(QUESTIONS)
        assert ("d" in {text[0] for text in texts}) is (size == 7)
