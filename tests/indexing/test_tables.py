"""index: rows of a program become a bundle."""

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import polars
import pytest

from semsearch import Search, index

ROWS: list[dict[str, Any]] = [
    {"name": "a", "about": "An angry goose", "price": 5.5, "day": date(2024, 5, 31)},
    {"name": "b", "about": "The ferry", "price": None, "day": date(2024, 6, 1)},
]


@pytest.mark.parametrize("data", [ROWS, polars.DataFrame(ROWS)], ids=["dicts", "polars"])
def test_rows_are_indexed_with_their_metadata(data: Any, bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "b")  # so that the tests' model embeds them
    columns = {"price": "number", "day": "date"}
    index(
        data, text_column="about", id_column="name", out=tmp_path / "b", title="Animals", column=columns, mode="replace"
    )
    found = Search(tmp_path / "b").search("goose", filter={"day": {"$lt": "2024-06-01"}})
    assert [(hit.id, hit.text, hit.metadata["price"]) for hit in found] == [("a", "An angry goose", 5.5)]


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv"):
        index(tmp_path / "nothing.csv", out=tmp_path / "b")


def test_the_progress_goes_to_a_function_or_to_nobody_where_there_is_no_terminal(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(bundle, tmp_path / "b")
    steps: list[str] = []
    index(["a goose"], out=tmp_path / "b", mode="replace", progress=lambda step, share, texts=0: steps.append(step))
    assert {"read texts", "embed texts", "check files"} <= set(steps)
    for progress in (True, False):
        index(["a goose"], out=tmp_path / "b", mode="replace", progress=progress)
    assert capsys.readouterr() == ("", "")
