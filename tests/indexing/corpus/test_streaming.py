"""A corpus is read, kept and embedded some rows at a time, and its file must not change meanwhile."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.indexing.corpus import CorpusError, Table
from semsearch.indexing.corpus.passages import STRINGS_AT_ONCE, stored_columns, strings_at
from semsearch.indexing.digests import digest_texts, find_digests, mark_first
from semsearch.indexing.texts import write_corpus
from tests.bundle_files import write_passages
from tests.indexing.corpus.files import write
from tests.indexing.memory import peak_of

LINES = "".join(f'{{"text":"story {row}","id":"s{row}","chapter":{row}}}\n' for row in range(5_000))


def test_a_column_reads_like_a_list(tmp_path: Path) -> None:
    texts = [f"{row} Żółć 🦆" * (row % 3) for row in range(STRINGS_AT_ONCE + 10)]
    write_passages(tmp_path / "passages.safetensors", texts, ["x"] * len(texts), ["{}"] * len(texts))
    column, ids, _ = stored_columns(tmp_path / "passages.safetensors")
    assert list(column) == texts
    assert (column[-1], column[3], ids[0]) == (texts[-1], texts[3], "x")
    for rows in (slice(5, 9), slice(20, 10, -3), slice(-4, None)):
        assert column[rows] == texts[rows]
    with pytest.raises(IndexError):
        column[len(texts)]


def test_some_rows_of_a_column_are_read() -> None:
    column = [str(row) for row in range(3 * STRINGS_AT_ONCE)]
    borders = [STRINGS_AT_ONCE - 1, STRINGS_AT_ONCE, 3 * STRINGS_AT_ONCE - 1]
    for rows in ([], [0], [5, 7], borders, [*range(len(column))]):
        assert list(strings_at(column, np.array(rows, np.intp))) == [str(row) for row in rows]


def test_reading_takes_much_less_memory_than_the_texts(tmp_path: Path) -> None:
    line = '{"text":"%s","id":"%d"}\n'
    content = "".join(line % ("word " * 2_000, row) for row in range(400))  # 4 MB
    path = write(tmp_path, "a.jsonl", content.encode())
    size = len(content)
    del content

    def read_all() -> None:
        corpus, _ = write_corpus(Table(path), tmp_path / "passages.safetensors")
        assert list(corpus.ids) == [str(row) for row in range(400)]

    read_all()  # imports modules, whose memory is not that of the texts
    assert peak_of(read_all) < size / 4


def lengthen(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"text":"one more"}\n')


def exchange(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    other.rename(path)


@pytest.mark.parametrize("change", [lengthen, exchange])
def test_a_file_that_changes_while_it_is_read_is_an_error(change: Callable[[Path], object], tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", LINES.encode())
    steps: list[str] = []

    def change_once(step: str, share: float, texts: int = 0) -> None:
        if not steps:
            change(path)
        steps.append(step)

    with pytest.raises(CorpusError) as caught:
        write_corpus(Table(path), tmp_path / "passages.safetensors", change_once)
    assert str(caught.value).startswith(f"{path}: found another file than at the start, expected the same until it is")
    assert not (tmp_path / "passages.safetensors").exists()


texts_that_repeat = st.lists(st.text(max_size=2), max_size=30)


@given(texts=texts_that_repeat)
def test_the_first_of_equal_texts_is_marked(texts: list[str]) -> None:
    expected = [text not in texts[:row] for row, text in enumerate(texts)]
    assert mark_first(digest_texts(texts)).tolist() == expected


@given(wanted=texts_that_repeat, known=texts_that_repeat)
def test_a_text_is_found_at_its_first_place_or_not_at_all(wanted: list[str], known: list[str]) -> None:
    expected = [known.index(text) if text in known else -1 for text in wanted]
    assert find_digests(digest_texts(wanted), digest_texts(known)).tolist() == expected


def test_a_digest_that_ends_with_zeros_is_like_any_other() -> None:
    digests = np.frombuffer(b"a" * 15 + b"\0" + b"a" * 16 + b"\0" * 16, "S16")
    assert mark_first(digests).tolist() == [True, True, True]
    assert find_digests(digests, digests).tolist() == [0, 1, 2]
