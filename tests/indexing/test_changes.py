"""After each change of its texts and options, an updated index has the bytes of a fresh one.

A failing test prints its steps. tests/indexing/changes/comparison.py says what is compared.
"""

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from semsearch import IndexSummary
from semsearch.engine.bundle import MANIFEST
from semsearch.engine.semantic.index import EXHAUSTIVE_ROWS
from semsearch.indexing.replacing import finish_stopped
from semsearch.indexing.vectors import query_table
from tests.indexing.changes import rows as changing_rows
from tests.indexing.changes import site as changing_site
from tests.indexing.changes.judge import Change, Changing, Judge, MakeSite, Texts, name_of
from tests.indexing.changes.rows import Rows, Table
from tests.indexing.changes.site import Site
from tests.indexing.killing import count_moments, run_until

LENGTH = 8  # changes of a sequence
SEQUENCES = int(os.environ.get("SEQUENCES", "20"))  # sequences of random changes; 100 take ten minutes
CSV, JSON_LINES = "stories.csv", "stories.jsonl"


def there_and_back(change: Change[Texts], two_ways: Sequence[Change[Texts]]) -> list[Change[Texts]]:
    """Return the change, twice if the second one takes the first one back."""
    return [change] * (1 + (change in two_ways))


def some(changes: Sequence[Change[Texts]], seed: int, length: int = LENGTH) -> list[Change[Texts]]:
    """Return changes in a random order, some of them again and again."""
    return Random(seed).choices(changes, k=length)


# --- each change


@pytest.mark.parametrize("change", changing_site.CHANGES, ids=name_of)
def test_a_change_of_documents_leaves_a_fresh_index(make_site: MakeSite, judge: Judge, change: Change[Site]) -> None:
    judge.follow(make_site(1), *there_and_back(change, changing_site.TWO_WAYS))


@pytest.mark.parametrize("change", changing_rows.TABLE_CHANGES, ids=name_of)
def test_a_change_of_a_csv_leaves_a_fresh_index(tmp_path: Path, judge: Judge, change: Change[Table]) -> None:
    judge.follow(Table(tmp_path / CSV, Random(1)), *there_and_back(change, changing_rows.TYPE_CHANGES))


@pytest.mark.parametrize("change", changing_rows.TYPE_CHANGES, ids=name_of)
def test_types_of_json_lines_change_and_leave_a_fresh_index(
    tmp_path: Path, judge: Judge, change: Change[Table]
) -> None:
    judge.follow(Table(tmp_path / JSON_LINES, Random(1)), change, change)


@pytest.mark.parametrize("change", changing_rows.ROW_CHANGES, ids=name_of)
def test_a_change_of_rows_leaves_a_fresh_index(judge: Judge, change: Change[Rows]) -> None:
    judge.follow(Rows(Random(1)), *there_and_back(change, changing_rows.TYPE_CHANGES_OF_ROWS))


def choose_option(texts: Site | Table, name: str, value: object) -> str:
    texts.options[name] = value
    return f"{name}={value}"


@pytest.mark.parametrize("name", changing_site.OPTIONS)
def test_an_option_of_documents_leaves_a_fresh_index(make_site: MakeSite, judge: Judge, name: str) -> None:
    judge.follow(make_site(1), partial(choose_option, name=name, value=changing_site.OPTIONS[name][1]))


@pytest.mark.parametrize("name", changing_rows.TABLE_OPTIONS)
def test_an_option_of_a_table_leaves_a_fresh_index(tmp_path: Path, judge: Judge, name: str) -> None:
    table = Table(tmp_path / CSV, Random(1))
    judge.follow(table, partial(choose_option, name=name, value=changing_rows.TABLE_OPTIONS[name][1]))


# --- many changes


def follow_some(judge: Judge, make_site: MakeSite, folder: Path, seed: int) -> None:
    """Follow a sequence of changes of documents, of a CSV, of JSON lines, or of rows in memory."""
    match seed % 4:
        case 0:
            judge.follow(make_site(seed), *some(changing_site.CHANGES, seed))
        case 1:
            judge.follow(Rows(Random(seed)), *some(changing_rows.ROW_CHANGES, seed))
        case kind:
            name = CSV if kind == 2 else JSON_LINES
            judge.follow(Table(folder / name, Random(seed)), *some(changing_rows.TABLE_CHANGES, seed))


@pytest.mark.parametrize("seed", range(4))
def test_many_changes_leave_a_fresh_index(make_site: MakeSite, tmp_path: Path, judge: Judge, seed: int) -> None:
    follow_some(judge, make_site, tmp_path, seed)


@pytest.mark.slow  # the test above has the first of these sequences
@pytest.mark.parametrize("seed", range(4, SEQUENCES))
def test_more_changes_leave_a_fresh_index(make_site: MakeSite, tmp_path: Path, judge: Judge, seed: int) -> None:
    follow_some(judge, make_site, tmp_path, seed)


def test_a_query_table_is_that_of_a_fresh_index_or_an_older_one(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in {"STEPS": 3, "FITTED_SPANS": 60, "UNSEEN_SPANS": 20}.items():
        monkeypatch.setattr(query_table, name, few)
    rows = Rows(Random(1))
    rows.options["queries"] = "table"
    judge.follow(rows, Rows.upsert_a_row_as_it_is, Rows.remove_rows, Rows.upsert_rows, Rows.replace_all_rows)


@pytest.mark.slow  # tries stages six times, and finds none that are good enough for texts that are nearly all equal
def test_changes_of_an_index_that_is_large_enough_for_stages_leave_a_fresh_one(judge: Judge) -> None:
    rows = Rows(Random(1), count=EXHAUSTIVE_ROWS)
    for row in rows.rows:
        row["text"] = row["text"].partition(".")[0]  # one of 200
    rows.update(judge.out)
    is_large = []
    for change in (Rows.add_rows, Rows.upsert_a_row_as_it_is, Rows.remove_rows):
        print(f"{name_of(change)}: {change(rows)}")
        is_large.append(judge.compare(rows).manifest.corpus.rows > EXHAUSTIVE_ROWS)
    assert is_large == [True, True, False]


# --- what an update does after one that was killed


def kill(update: Callable[[], IndexSummary], out: Path, choose: Random) -> None:
    """Kill an update of the bundle in `out` at a random moment."""
    before = Path(shutil.copytree(out, out.with_name("before")))
    moments = count_moments(out, update)
    shutil.rmtree(out)
    before.rename(out)
    moment = choose.randrange(moments)
    print(f"killed at moment {moment} of {moments}")
    assert run_until(moment, out, update).returncode == -signal.SIGKILL


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize("seed", range(10))
def test_an_update_after_a_killed_one_leaves_a_fresh_index(
    make_site: MakeSite, tmp_path: Path, judge: Judge, seed: int
) -> None:
    choose = Random(seed)
    texts: Changing
    changes: list[Callable[[Any], str]]
    match seed % 3:
        case 0:
            texts, changes = make_site(seed), some(changing_site.LASTING, seed, length=3)
        case 1:
            texts = Table(tmp_path / CSV, choose)
            changes = some(changing_rows.TABLE_CHANGES, seed, length=3)
        case _:
            texts, changes = Rows(choose), some(changing_rows.REPEATABLE, seed, length=3)
    texts.update(judge.out)
    killed = choose.randrange(len(changes))
    for number, change in enumerate(changes):
        print(f"{name_of(change)}: {change(texts)}")
        if number == killed:
            kill(partial(texts.update, judge.out), judge.out, choose)
            finish_stopped(judge.out)  # the judge reads the index before it updates it
            if not isinstance(texts, Rows) and choose.randrange(2):  # nobody sends the rows again that were not stored
                print(f"{name_of(change)}: {change(texts)}")
        judge.compare(texts)


@pytest.mark.slow  # starts processes
def test_an_upsert_after_one_that_was_killed_while_files_moved_keeps_the_other_rows(judge: Judge) -> None:
    rows = Rows(Random(1))
    rows.update(judge.out)
    before = Path(shutil.copytree(judge.out, judge.out.with_name("before")))
    rows.upsert_rows()
    update = partial(rows.update, judge.out)
    moment = count_moments(judge.out, update)
    while (judge.out / MANIFEST).exists():
        moment -= 4
        shutil.rmtree(judge.out)
        shutil.copytree(before, judge.out)
        run_until(moment, judge.out, update)
    assert update().manifest.corpus.rows == len(rows.rows)
