"""The judge of an update: a fresh index of the same texts and options."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar

import pytest

from semsearch import IndexSummary
from semsearch.indexing.bundles import take_model
from semsearch.indexing.documents.reading import Reading
from tests.command_line import Run
from tests.indexing.changes.comparison import embedded_texts, find_differences, is_large_change
from tests.indexing.changes.site import Site


class Changing(Protocol):
    """Texts that change, with the options of their index."""

    def update(self, out: Path) -> IndexSummary:
        """Update the index in `out`."""

    def make_fresh(self, out: Path) -> IndexSummary:
        """Make an index of the same texts where there is none."""


Texts = TypeVar("Texts", bound=Changing)
Change = Callable[[Texts], str]  # changes the texts, and says what it did


def name_of(change: Callable[..., str]) -> str:
    return getattr(change, "__name__", "option")


class Judge:
    """The index that is updated, and what makes a fresh one after each change."""

    def __init__(self, model: Path, folder: Path) -> None:
        """Take a bundle with the model, and a folder for the indexes."""
        self._model, self._folder = model, folder
        self.out = self.empty("updated")

    def empty(self, name: str) -> Path:
        """Return a bundle with the model and without texts, in a new folder of this name."""
        shutil.rmtree(self._folder / name, ignore_errors=True)
        out = self._folder / name / "bundle"
        out.mkdir(parents=True)
        take_model(self._model, out)
        return out

    def compare(self, texts: Changing) -> IndexSummary:
        """Update the index; fail if it is not as a fresh one, or if other texts were embedded than those that are new.

        Of the new texts, a run before that was killed can have embedded some.
        """
        before = embedded_texts(self.out)
        made = texts.update(self.out)
        after = embedded_texts(self.out)
        fresh = self.empty("fresh")
        texts.make_fresh(fresh)
        differences = find_differences(self.out, fresh, exactly=is_large_change(before, after))
        assert not differences, "\n".join(differences)
        new = len({*after} - {*before})
        assert made.rows.embedded <= new
        assert made.rows.embedded == new or made.rows.resumed
        return made

    def follow(self, texts: Texts, *changes: Change[Texts]) -> None:
        """Index the texts, and compare after each change. The steps are printed: pytest shows them if a test fails."""
        texts.update(self.out)
        for change in changes:
            print(f"{name_of(change)}: {change(texts)}")
            self.compare(texts)


@pytest.fixture
def judge(model_alone: tuple[Path, Run], tmp_path: Path) -> Judge:
    return Judge(model_alone[0], tmp_path)


MakeSite = Callable[[int], Site]


@pytest.fixture
def make_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeSite:
    """Return what makes a site, whose day is today where documents are read."""
    make_reading = Reading.__init__

    def make(seed: int) -> Site:
        site = Site(tmp_path / "site", Random(seed))

        def make_on_its_day(reading: Reading, *arguments: Any, **named: Any) -> None:
            make_reading(reading, *arguments, **{"today": site.today, **named})

        monkeypatch.setattr(Reading, "__init__", make_on_its_day)
        return site

    return make
