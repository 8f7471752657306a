"""Rows of an older index are copied into the next one, with the rows that are new."""

from pathlib import Path

import pytest

from semsearch.engine.passages import Lines
from semsearch.indexing.corpus.corpus import OlderRows, PassageRow
from semsearch.indexing.corpus.passages import stored_rows, writing_passages

ROWS = [
    PassageRow("a goose", "a", "{}"),
    PassageRow("eine Gänsemagd", "b", '{"year":1815}', "eine *Gänsemagd*", Lines(3, 2**32 - 1)),
    PassageRow("", "", "{}"),
    PassageRow("a swan", "c", "{}", lines=Lines(3, 1, 1, 2)),
]
NEW = PassageRow("a new text", "n", '{"year":2026}')


@pytest.fixture
def older(tmp_path: Path) -> Path:
    path = tmp_path / "older.safetensors"
    with writing_passages(path) as written:
        for row in ROWS:
            written.append(row)
        assert written.older_rows() is None
    return path


@pytest.mark.parametrize(
    ("taken", "numbers"),
    [
        ([OlderRows(0, 4)], [0, 1, 2, 3]),
        ([OlderRows(0, 1), NEW, OlderRows(1, 3)], [0, -1, 1, 2]),
        ([OlderRows(3, 4), OlderRows(1, 2), NEW], [3, 1, -1]),
        ([OlderRows(2, 2), NEW], [-1]),
    ],
    ids=["all", "one between", "another order", "none"],
)
def test_rows_that_stay_are_copied_between_new_ones(
    older: Path, taken: list[PassageRow | OlderRows], numbers: list[int], tmp_path: Path
) -> None:
    copied, written_anew = tmp_path / "copied.safetensors", tmp_path / "anew.safetensors"
    with writing_passages(copied, older) as written:
        for each in taken:
            written.append(each)
        rows = written.older_rows()
    assert rows is not None
    assert rows.tolist() == numbers
    expected = [ROWS[number] if number >= 0 else NEW for number in numbers]
    with writing_passages(written_anew) as written:
        for row in expected:
            written.append(row)
    assert list(stored_rows(copied)) == expected
    assert copied.read_bytes() == written_anew.read_bytes()


def test_an_older_file_without_sources_and_lines_has_empty_ones(tmp_path: Path) -> None:
    older, path = tmp_path / "older.safetensors", tmp_path / "new.safetensors"
    with writing_passages(older) as written:
        written.append(NEW)
    with writing_passages(path, older) as written:
        written.append(ROWS[1])
        written.append(OlderRows(0, 1))
    assert list(stored_rows(path)) == [ROWS[1], NEW]
