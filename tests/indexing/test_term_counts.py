"""An update of the counts of terms equals the counts of all texts."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semsearch.engine.tensors import AnyArray, map_tensors
from semsearch.indexing import counting, term_counts
from semsearch.indexing.counting import count_terms
from semsearch.indexing.tensor_files import save_tensors
from semsearch.indexing.term_counts import TermCounts, update_counts


@dataclass(frozen=True, slots=True)
class Row:
    text: str
    title: str = ""
    language: str | None = None
    names: tuple[str, ...] = ()


def count(rows: Sequence[Row]) -> TermCounts:
    return count_terms(
        [row.text for row in rows],
        [row.title for row in rows],
        [row.language for row in rows],
        [row.names for row in rows],
        None,
    )


def update(older: Sequence[Row], rows: Sequence[int | Row]) -> TermCounts:
    """Return the counts of rows, each of which is new or the number of an older one."""
    numbers = np.array([-1 if isinstance(row, Row) else row for row in rows], np.intp)
    new = [row for row in rows if isinstance(row, Row)]
    removed = [row for number, row in enumerate(older) if number not in rows]
    return update_counts(count(older), numbers, count(new), count(removed))


def all_rows(older: Sequence[Row], rows: Sequence[int | Row]) -> list[Row]:
    return [row if isinstance(row, Row) else older[row] for row in rows]


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
    geese = Row("geese and Wi-Fi geese", language="english")
    counts = count([geese, Row(""), Row("a T-shirt", "Geese", names=("t-shirt",))])
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
    found = update([Row("goose ferry"), Row("goose baker")], [0])
    assert terms_of(found) == {"ferry": {0: 1}, "goose": {0: 1}}
    assert words_of(found) == {"ferry": 1, "goose": 1}


def test_a_new_row_adds_to_known_terms_and_inserts_others_in_order() -> None:
    found = update([Row("baker ferry"), Row("ferry")], [0, Row("zebra ferry ferry and apple"), 1])
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
    found = update([Row("goose"), Row("goose goose"), Row("ferry")], [2, Row("baker"), 1, 0])
    assert terms_of(found) == {"baker": {1: 1}, "ferry": {0: 1}, "goose": {2: 2, 3: 1}}
    assert found.rows.tolist() == [1, 0, 2, 3]
    assert found.lengths.tolist() == [1, 1, 2, 1]


def test_a_row_that_was_replaced_by_one_with_the_same_terms_leaves_no_trace() -> None:
    older = [Row("goose"), Row("ferry")]
    assert bytes_of(update(older, [0, Row("ferry")])) == bytes_of(count(older))


def test_a_language_that_no_row_has_any_more_is_gone() -> None:
    older = [Row("Häuser", language="german"), Row("houses", language="english"), Row("houses")]
    assert languages_of(update(older, [1, 2])) == {"english": 1, "none": 1}
    found = update(older, [0, 1, Row("Häuser", language="english")])
    assert languages_of(found) == {"english": 2, "german": 1}
    assert terms_of(found) == {"haus": {0: 1}, "hauser": {2: 1}, "hous": {1: 1}, "häuser": {2: 1}}
    assert words_of(found) == {"hauser": 2, "houses": 1, "häuser": 2}


def test_names_are_terms_but_no_words_and_have_no_length() -> None:
    older = [Row("goose", names=("click.option", "option")), Row("a --no-cache")]
    found = update(older, [1, Row("ferry", names=("option",))])
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
    found = update([Row("ferry"), Row("goose", "The goose")], [1, Row("ferry", "Ferry")])
    assert terms_of(found) == {"ferry": {1: 3}, "goose": {0: 3}, "the": {0: 2}}
    assert found.lengths.tolist() == [5, 3]


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0, 1], [1], [], [Row("zebra")], [Row("")], [0, 1, 2, Row("")]])
def test_rows_can_be_kept_or_removed_or_replaced_all_together(rows: list[int | Row]) -> None:
    older = [Row("goose and ferry", language="english"), Row("🦆"), Row("a goose", "A title", names=("goose",))]
    assert bytes_of(update(older, rows)) == bytes_of(count(all_rows(older, rows)))


def test_counts_that_begin_without_rows_are_those_of_the_new_ones() -> None:
    assert bytes_of(update([], [Row("goose")])) == bytes_of(count([Row("goose")]))
    assert bytes_of(update([Row("🦆")], [0, Row("goose")])) == bytes_of(count([Row("🦆"), Row("goose")]))


@pytest.mark.parametrize(("times", "dtype"), [(255, np.uint8), (256, np.uint16), (65_536, np.uint32)])
def test_counts_have_the_smallest_dtype_that_holds_them(times: int, dtype: type[np.generic]) -> None:
    many, few = Row("goose " * times), Row("goose")
    assert count([few, many]).counts.dtype == update([few], [0, many]).counts.dtype == dtype
    assert update([few, many], [0, Row("ferry")]).counts.dtype == np.uint8


def test_counts_from_a_file_are_updated_as_those_in_memory(tmp_path: Path) -> None:
    older, new, nothing = [Row("goose"), Row("ferry", language="english")], Row("a goose"), count([])
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
    Row,
    text=TEXTS,
    title=st.sampled_from(["", "", "Goose", "A T-shirt"]),
    language=st.sampled_from([None, "english", "german"]),
    names=st.sampled_from([(), (), ("goose",), ("goose", "a.goose")]),
)


@st.composite
def updates(draw: st.DrawFn) -> tuple[list[Row], list[int | Row]]:
    """Draw older rows, and the rows after an update: some of the older ones and new ones, in any order."""
    older = draw(st.lists(ROWS, min_size=1, max_size=6))
    kept = draw(st.lists(st.sampled_from(range(len(older))), unique=True))
    new = draw(st.lists(ROWS, max_size=4))
    return older, draw(st.permutations([*kept, *new]))


@given(updates())
@example(([Row("goose"), Row("a goose")], [1]))
def test_an_update_equals_the_counts_of_all_rows(change: tuple[list[Row], list[int | Row]]) -> None:
    older, rows = change
    assert bytes_of(update(older, rows)) == bytes_of(count(all_rows(older, rows)))


@pytest.mark.parametrize("block", [1, 7, 100])
def test_counts_and_updates_do_not_depend_on_the_size_of_their_blocks(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = random.Random(block)
    older, new = ([Row(" ".join(choose.choices(WORDS, k=choose.randint(0, 12)))) for _ in range(40)] for _ in range(2))
    rows: list[int | Row] = [*range(0, 40, 2), *new]
    choose.shuffle(rows)
    expected = bytes_of(count(all_rows(older, rows)))
    monkeypatch.setattr(term_counts, "SORTED_AT_ONCE", block)
    monkeypatch.setattr(counting, "BLOCK_CHARACTERS", block)
    monkeypatch.setattr(counting, "REMEMBERED_TERMS", block)
    assert bytes_of(count(all_rows(older, rows))) == expected
    assert bytes_of(update(older, rows)) == expected
