"""Equal texts are found by their digests."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from export.corpus.digests import count_distinct, digest_texts, find_digests, mark_first

texts_that_repeat = st.lists(st.text(max_size=2), max_size=30)


@given(texts=texts_that_repeat)
def test_the_first_of_equal_texts_is_marked(texts: list[str]) -> None:
    expected = [text not in texts[:row] for row, text in enumerate(texts)]
    assert mark_first(digest_texts(texts)).tolist() == expected
    assert count_distinct(texts) == len(set(texts))


@given(wanted=texts_that_repeat, known=texts_that_repeat)
def test_a_text_is_found_at_its_first_place_or_not_at_all(wanted: list[str], known: list[str]) -> None:
    expected = [known.index(text) if text in known else -1 for text in wanted]
    assert find_digests(digest_texts(wanted), digest_texts(known)).tolist() == expected


def test_a_digest_that_ends_with_zeros_is_like_any_other() -> None:
    digests = np.frombuffer(b"a" * 15 + b"\0" + b"a" * 16 + b"\0" * 16, "S16")
    assert mark_first(digests).tolist() == [True, True, True]
    assert find_digests(digests, digests).tolist() == [0, 1, 2]
