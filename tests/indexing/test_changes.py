"""Changes of texts leave, after each update, the bytes of a fresh index of the same texts and options.

A failing test prints its steps.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Protocol, TypeVar

import pytest

from semsearch import IndexSummary
from semsearch.indexing.bundles import take_model
from semsearch.indexing.documents.reading import Reading
from tests.command_line import Run
from tests.indexing.changes import rows
from tests.indexing.changes import site as changing_site
from tests.indexing.changes.comparison import embedded_texts, find_differences, is_large_change
from tests.indexing.changes.rows import Rows, Table
from tests.indexing.changes.site import Site

LENGTH = 8  # changes of a sequence


class Changing(Protocol):
    """Texts that change, with the options of their index."""

    def update(self, out: Path) -> IndexSummary:
        """Update the index in `out`."""

    def make_fresh(self, out: Path) -> IndexSummary:
        """Make an index of the same texts where there is none."""


Texts = TypeVar("Texts", bound=Changing)


class Judge:
    """Two folders: the index that is updated, and after each change a fresh one."""

    def __init__(self, model: Path, folder: Path) -> None:
        """Take a bundle with the model, and a folder for the indexes."""
        self._model, self._folder = model, folder
        self.out = self._empty("updated")

    def _empty(self, name: str) -> Path:
        """Return a bundle with the model and without texts."""
        shutil.rmtree(self._folder / name, ignore_errors=True)
        out = self._folder / name / "bundle"
        out.mkdir(parents=True)
        take_model(self._model, out)
        return out

    def compare(self, texts: Changing) -> None:
        """Update the index, and fail if it differs from a fresh one, or if other texts were embedded than new ones."""
        before = embedded_texts(self.out)
        made = texts.update(self.out)
        after = embedded_texts(self.out)
        fresh = self._empty("fresh")
        texts.make_fresh(fresh)
        assert find_differences(self.out, fresh, exactly=is_large_change(before, after)) == []
        assert made.rows.embedded == len({*after} - {*before})

    def follow(self, texts: Texts, *changes: Callable[[Texts], str]) -> None:
        """Compare the indexes before and after each change. Steps are printed, which pytest shows of a failed test."""
        self.compare(texts)
        for number, change in enumerate(changes, 1):
            print(f"step {number}: {change.__name__}: {change(texts)}")
            self.compare(texts)


@pytest.fixture
def judge(model_alone: tuple[Path, Run], tmp_path: Path) -> Judge:
    return Judge(model_alone[0], tmp_path)


@pytest.fixture
def make_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Site]:
    """Return what makes a site, on whose day documents are read."""
    make_reading = Reading.__init__

    def make(seed: int) -> Site:
        site = Site(tmp_path / "site", Random(seed))

        def on_its_day(reading: Reading, *arguments: object, **named: object) -> None:
            make_reading(reading, *arguments, **{"today": site.today, **named})  # type: ignore[arg-type]

        monkeypatch.setattr(Reading, "__init__", on_its_day)
        return site

    return make


def sequence(changes: tuple[Callable[[Texts], str], ...], seed: int) -> list[Callable[[Texts], str]]:
    return Random(seed).choices(changes, k=LENGTH)


@pytest.mark.parametrize("change", changing_site.CHANGES, ids=lambda change: change.__name__)
def test_a_change_of_documents_leaves_a_fresh_index(
    make_site: Callable[[int], Site], judge: Judge, change: Callable[[Site], str]
) -> None:
    judge.follow(make_site(1), change, change)


@pytest.mark.parametrize("seed", range(2))
def test_many_changes_of_documents_leave_a_fresh_index(
    make_site: Callable[[int], Site], judge: Judge, seed: int
) -> None:
    judge.follow(make_site(seed), *sequence(changing_site.CHANGES, seed))


TABLES = ("stories.csv", "stories.jsonl")


@pytest.mark.parametrize("change", rows.TABLE_CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", TABLES)
def test_a_change_of_a_table_leaves_a_fresh_index(
    tmp_path: Path, judge: Judge, name: str, change: Callable[[Table], str]
) -> None:
    judge.follow(Table(tmp_path / name, Random(1)), change, change)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("seed", range(2))
def test_many_changes_of_a_table_leave_a_fresh_index(tmp_path: Path, judge: Judge, name: str, seed: int) -> None:
    judge.follow(Table(tmp_path / name, Random(seed)), *sequence(rows.TABLE_CHANGES, seed))


@pytest.mark.parametrize("change", rows.ROW_CHANGES, ids=lambda change: change.__name__)
def test_a_change_of_rows_leaves_a_fresh_index(judge: Judge, change: Callable[[Rows], str]) -> None:
    judge.follow(Rows(Random(1)), change, change)


@pytest.mark.parametrize("seed", range(2))
def test_many_changes_of_rows_leave_a_fresh_index(judge: Judge, seed: int) -> None:
    judge.follow(Rows(Random(seed)), *sequence(rows.ROW_CHANGES, seed))
