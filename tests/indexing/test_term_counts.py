"""An update of the counts of terms equals the counts of all texts."""

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semsearch.engine.tensors import AnyArray, map_tensors
from semsearch.indexing import counting, term_counts
from semsearch.indexing.counting import KeywordText, count_terms
from semsearch.indexing.tensor_files import save_tensors
from semsearch.indexing.term_counts import TermCounts, update_counts


def count(rows: Sequence[KeywordText]) -> TermCounts:
    return count_terms(rows)


def update(older: Sequence[KeywordText], rows: Sequence[int | KeywordText]) -> TermCounts:
    """Return the counts of rows, each of which is new or the number of an older one."""
    numbers = np.array([-1 if isinstance(row, KeywordText) else row for row in rows], np.intp)
    new = [row for row in rows if isinstance(row, KeywordText)]
    removed = [row for number, row in enumerate(older) if number not in rows]
    return update_counts(count(older), numbers, count(new), count(removed))


def all_rows(older: Sequence[KeywordText], rows: Sequence[int | KeywordText]) -> list[KeywordText]:
    return [row if isinstance(row, KeywordText) else older[row] for row in rows]


def bytes_of(counts: TermCounts) -> dict[str, tuple[str, bytes]]:
    return {name: (array.dtype.name, array.tobytes()) for name, array in counts.tensors().items()}


def lines(content: AnyArray) -> list[str]:
    return content.tobytes().decode().splitlines()


def terms_of(counts: TermCounts) -> dict[str, dict[int, int]]:
    """Return for each term the rows that have it, and how often each has it."""
    postings = list(zip(counts.rows.tolist(), counts.counts.tolist(), strict=True))
    places = pairwise(counts.postings.tolist())
    return {term: dict(postings[begin:end]) for term, (begin, end) in zip(lines(counts.terms), places, strict=True)}


def words_of(counts: TermCounts) -> dict[str, int]:
    return dict(zip(lines(counts.words), counts.word_counts.tolist(), strict=True))


def languages_of(counts: TermCounts) -> dict[str, int]:
    return dict(zip(lines(counts.languages), counts.language_counts.tolist(), strict=True))


def test_terms_are_counted_for_each_row_and_words_for_all() -> None:
    geese = KeywordText("geese and Wi-Fi geese", language="english")
    counts = count([geese, KeywordText(""), KeywordText("a T-shirt", "Geese", names=("t-shirt",))])
    assert terms_of(counts) == {
        "=t-shirt": {2: 1},
        "a": {2: 1},
        "and": {0: 1},
        "fi": {0: 1},
        "gees": {0: 2},
        "geese": {2: 2},
        "shirt": {2: 1},
        "t": {2: 1},
        "t-shirt": {2: 1},
        "tshirt": {2: 1},
        "wi": {0: 1},
        "wi-fi": {0: 1},
        "wifi": {0: 1},
    }
    assert counts.lengths.tolist() == [6, 0, 6]
    assert words_of(counts) == {"and": 1, "geese": 4, "shirt": 1, "tshirt": 1, "wifi": 1}
    assert languages_of(counts) == {"english": 1, "none": 2}


def test_a_removed_row_takes_along_the_terms_and_words_that_no_other_row_has() -> None:
    found = update([KeywordText("goose ferry"), KeywordText("goose baker")], [0])
    assert terms_of(found) == {"ferry": {0: 1}, "goose": {0: 1}}
    assert words_of(found) == {"ferry": 1, "goose": 1}


def test_a_new_row_adds_to_known_terms_and_inserts_others_in_order() -> None:
    found = update(
        [KeywordText("baker ferry"), KeywordText("ferry")], [0, KeywordText("zebra ferry ferry and apple"), 1]
    )
    assert list(terms_of(found).items()) == [
        ("and", {1: 1}),
        ("apple", {1: 1}),
        ("baker", {0: 1}),
        ("ferry", {0: 1, 1: 2, 2: 1}),
        ("zebra", {1: 1}),
    ]
    assert words_of(found) == {"and": 1, "apple": 1, "baker": 1, "ferry": 4, "zebra": 1}
    assert found.lengths.tolist() == [2, 5, 1]


def test_the_rows_of_a_term_ascend_after_rows_were_moved() -> None:
    found = update(
        [KeywordText("goose"), KeywordText("goose goose"), KeywordText("ferry")], [2, KeywordText("baker"), 1, 0]
    )
    assert terms_of(found) == {"baker": {1: 1}, "ferry": {0: 1}, "goose": {2: 2, 3: 1}}
    assert found.rows.tolist() == [1, 0, 2, 3]
    assert found.lengths.tolist() == [1, 1, 2, 1]


def test_a_row_that_was_replaced_by_one_with_the_same_terms_leaves_no_trace() -> None:
    older = [KeywordText("goose"), KeywordText("ferry")]
    assert bytes_of(update(older, [0, KeywordText("ferry")])) == bytes_of(count(older))


def test_a_language_that_no_row_has_any_more_is_gone() -> None:
    older = [KeywordText("Häuser", language="german"), KeywordText("houses", language="english"), KeywordText("houses")]
    assert languages_of(update(older, [1, 2])) == {"english": 1, "none": 1}
    found = update(older, [0, 1, KeywordText("Häuser", language="english")])
    assert languages_of(found) == {"english": 2, "german": 1}
    assert terms_of(found) == {"haus": {0: 1}, "hauser": {2: 1}, "hous": {1: 1}, "häuser": {2: 1}}
    assert words_of(found) == {"hauser": 2, "houses": 1, "häuser": 2}


def test_names_are_terms_but_no_words_and_have_no_length() -> None:
    older = [KeywordText("goose", names=("click.option", "option")), KeywordText("a --no-cache")]
    found = update(older, [1, KeywordText("ferry", names=("option",))])
    assert terms_of(found) == {
        "=option": {1: 1},
        "a": {0: 1},
        "cache": {0: 1},
        "ferry": {1: 1},
        "no": {0: 1},
        "no-cache": {0: 1},
        "nocache": {0: 1},
        "~--no-cache": {0: 1},
    }
    assert found.lengths.tolist() == [4, 1]
    assert words_of(found) == {"cache": 1, "ferry": 1, "nocache": 1}


def test_a_word_of_a_title_counts_twice() -> None:
    found = update([KeywordText("ferry"), KeywordText("goose", "The goose")], [1, KeywordText("ferry", "Ferry")])
    assert terms_of(found) == {"ferry": {1: 3}, "goose": {0: 3}, "the": {0: 2}}
    assert found.lengths.tolist() == [5, 3]


@pytest.mark.parametrize(
    "rows", [[0, 1, 2], [2, 0, 1], [1], [], [KeywordText("zebra")], [KeywordText("")], [0, 1, 2, KeywordText("")]]
)
def test_rows_can_be_kept_or_removed_or_replaced_all_together(rows: list[int | KeywordText]) -> None:
    older = [
        KeywordText("goose and ferry", language="english"),
        KeywordText("🦆"),
        KeywordText("a goose", "A title", names=("goose",)),
    ]
    assert bytes_of(update(older, rows)) == bytes_of(count(all_rows(older, rows)))


def test_counts_that_begin_without_rows_are_those_of_the_new_ones() -> None:
    assert bytes_of(update([], [KeywordText("goose")])) == bytes_of(count([KeywordText("goose")]))
    assert bytes_of(update([KeywordText("🦆")], [0, KeywordText("goose")])) == bytes_of(
        count([KeywordText("🦆"), KeywordText("goose")])
    )


@pytest.mark.parametrize(("times", "dtype"), [(255, np.uint8), (256, np.uint16), (65_536, np.uint32)])
def test_counts_have_the_smallest_dtype_that_holds_them(times: int, dtype: type[np.generic]) -> None:
    many, few = KeywordText("goose " * times), KeywordText("goose")
    assert count([few, many]).counts.dtype == update([few], [0, many]).counts.dtype == dtype
    assert update([few, many], [0, KeywordText("ferry")]).counts.dtype == np.uint8


def test_counts_from_a_file_are_updated_as_those_in_memory(tmp_path: Path) -> None:
    older, new, nothing = (
        [KeywordText("goose"), KeywordText("ferry", language="english")],
        KeywordText("a goose"),
        count([]),
    )
    mapped = []
    for number, counts in enumerate((count(older), count([new]), nothing)):
        path = tmp_path / f"{number}.safetensors"
        save_tensors(path, {**counts.tensors(), "other": np.zeros(1, np.float32)})
        mapped.append(TermCounts.from_tensors(map_tensors(path)))
    found = update_counts(mapped[0], np.array([0, -1, 1]), *mapped[1:])
    assert bytes_of(found) == bytes_of(count([older[0], new, older[1]]))


WORDS = ["goose", "geese", "a", "T-shirt", "tshirt", "Häuser", "東京", "--no-cache", "🦆", "goosey", "goo"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
ROWS = st.builds(
    KeywordText,
    text=TEXTS,
    title=st.sampled_from(["", "", "Goose", "A T-shirt"]),
    language=st.sampled_from([None, "english", "german"]),
    names=st.sampled_from([(), (), ("goose",), ("goose", "a.goose")]),
)


@st.composite
def updates(draw: st.DrawFn) -> tuple[list[KeywordText], list[int | KeywordText]]:
    """Draw older rows, and the rows after an update: some of the older ones and new ones, in any order."""
    older = draw(st.lists(ROWS, min_size=1, max_size=6))
    kept = draw(st.lists(st.sampled_from(range(len(older))), unique=True))
    new = draw(st.lists(ROWS, max_size=4))
    return older, draw(st.permutations([*kept, *new]))


@given(updates())
@example(([KeywordText("goose"), KeywordText("a goose")], [1]))
def test_an_update_equals_the_counts_of_all_rows(change: tuple[list[KeywordText], list[int | KeywordText]]) -> None:
    older, rows = change
    assert bytes_of(update(older, rows)) == bytes_of(count(all_rows(older, rows)))


@pytest.mark.parametrize("block", [1, 7, 100])
def test_counts_and_updates_do_not_depend_on_the_size_of_their_blocks(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = random.Random(block)
    older, new = (
        [KeywordText(" ".join(choose.choices(WORDS, k=choose.randint(0, 12)))) for _ in range(40)] for _ in range(2)
    )
    rows: list[int | KeywordText] = [*range(0, 40, 2), *new]
    choose.shuffle(rows)
    expected = bytes_of(count(all_rows(older, rows)))
    monkeypatch.setattr(term_counts, "SORTED_AT_ONCE", block)
    monkeypatch.setattr(counting, "BLOCK_CHARACTERS", block)
    monkeypatch.setattr(counting, "REMEMBERED_TERMS", block)
    assert bytes_of(count(all_rows(older, rows))) == expected
    assert bytes_of(update(older, rows)) == expected
