"""Rows that are upserted, added or removed leave the index of one table with all rows that there are then."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from semsearch import index, remove
from semsearch.engine.bundle import PASSAGES, read_manifest
from semsearch.indexing.corpus.passages import stored_columns
from tests.indexing.changes.comparison import find_differences
from tests.indexing.changes.judge import Judge, MakeSite
from tests.indexing.changes.rows import Row, write_table
from tests.indexing.changes.site import FRENCH

LONG = "The angry goose lost a silver key in the snow. " * 3


def coat(number: int, price: str) -> Row:
    return {"id": f"c-{number}", "text": f"A coat {number}", "price": price}


def coats(*prices: str) -> list[Row]:
    return [coat(number, price) for number, price in enumerate(prices)]


def differences_after(
    judge: Judge,
    folder: Path,
    older: list[Row],
    mode: Literal["add", "upsert", "remove"],
    sent: list[Row],
    merged: list[Row],
    **options: Any,
) -> list[str]:
    """Index rows of a CSV, and send others, or remove them by their ids; compare with the index of the merged rows."""
    path = folder / "coats.csv"
    index(write_table(path, older), out=judge.out, progress=False, **options)
    if mode == "remove":
        remove([row["id"] for row in sent], judge.out, progress=False)
    else:
        index(write_table(path, sent), out=judge.out, mode=mode, progress=False)
    fresh = judge.empty("fresh")
    index(write_table(path, merged), out=fresh, progress=False, **options)
    return find_differences(judge.out, fresh, exactly=False)


ONE, TWO, CENTS = "1", "2", "3.10"


@pytest.mark.parametrize(
    ("older", "mode", "sent", "merged"),
    [
        pytest.param([ONE, TWO], "upsert", {1: "3", 2: "4"}, [ONE, "3", "4"], id="other-numbers"),
        pytest.param([ONE, TWO], "add", {2: "3"}, [ONE, TWO, "3"], id="more-numbers"),
        pytest.param([ONE, TWO], "remove", {1: TWO}, [ONE], id="fewer-numbers"),
        pytest.param(["a", "b"], "upsert", {1: "c"}, ["a", "c"], id="another-text"),
        pytest.param([ONE, TWO], "upsert", {1: ""}, [ONE, ""], id="a-blank"),
        pytest.param([CENTS, TWO], "upsert", {1: "3"}, [CENTS, "3"], id="a-number-of-the-usual-form"),
        pytest.param([CENTS, TWO], "remove", {1: TWO}, [CENTS], id="a-number-of-another-form-stays"),
    ],
)
def test_merged_rows_of_a_csv_have_the_types_of_one_csv(
    judge: Judge, tmp_path: Path, older: list[str], mode: Any, sent: dict[int, str], merged: list[str]
) -> None:
    rows = [coat(number, price) for number, price in sent.items()]
    assert differences_after(judge, tmp_path, coats(*older), mode, rows, coats(*merged)) == []


@pytest.mark.parametrize(
    ("older", "mode", "sent", "prices", "kind"),
    [
        (["1", "2"], "upsert", {1: "3.10"}, [1, "3.10"], "number"),
        (["1", "2"], "upsert", {1: "dear"}, [1, "dear"], None),
        (["1", "2"], "add", {2: "dear"}, [1, 2, "dear"], None),
        (["1", "dear"], "upsert", {1: "2"}, ["1", "2"], "string"),
        (["1", "dear"], "remove", {1: "dear"}, ["1"], "string"),
    ],
    ids=["another form", "a text among numbers", "one more text", "a number for the only text", "the only text goes"],
)
def test_rows_of_a_csv_are_stored_as_the_index_has_its_columns(
    judge: Judge, tmp_path: Path, older: list[str], mode: Any, sent: dict[int, str], prices: list[Any], kind: str | None
) -> None:
    rows = [coat(number, price) for number, price in sent.items()]
    differences_after(judge, tmp_path, coats(*older), mode, rows, coats("1"))
    metadata = stored_columns(judge.out / PASSAGES)[2]
    assert [json.loads(each)["price"] for each in metadata] == prices
    assert read_manifest(judge.out).corpus.columns.get("price") == kind


@pytest.mark.parametrize(
    "options", [{"title_column": "price"}, {"language_column": "price"}, {"column": {"price": "string"}}], ids=str
)
def test_rows_can_lack_a_column_that_an_option_names_and_older_rows_have(
    judge: Judge, tmp_path: Path, options: dict[str, Any]
) -> None:
    sent: list[Row] = [{"id": "c-1", "text": "A coat"}]
    merged = [*coats("de"), {**sent[0], "price": ""}]
    assert differences_after(judge, tmp_path, coats("de", "en"), "upsert", sent, merged, **options) == []


def test_an_upsert_of_a_divided_text_replaces_all_its_passages(judge: Judge, tmp_path: Path) -> None:
    older = [*coats("1", "2"), {"id": "c-2", "text": LONG}]
    sent = [{"id": "c-2", "text": "A short text"}, {"id": "c-0", "text": LONG}]
    merged = [sent[1], older[1], sent[0]]
    options = {"split": True, "passage_tokens": 20}
    assert differences_after(judge, tmp_path, older, "upsert", sent, merged, **options) == []


def test_rows_without_ids_have_numbers_after_a_removal_and_an_addition(judge: Judge) -> None:
    index(["a goose", "a ferry", "a key"], out=judge.out, progress=False)
    remove("1", judge.out, progress=False)
    index(["a duck"], out=judge.out, mode="add", progress=False)
    fresh = judge.empty("fresh")
    rows = [{"id": "0", "text": "a goose"}, {"id": "2", "text": "a key"}, {"id": "3", "text": "a duck"}]
    index(rows, out=fresh, progress=False)
    assert find_differences(judge.out, fresh, exactly=False) == []


def test_pages_keep_their_stems_while_the_only_page_of_another_language_cannot_be_read(
    judge: Judge, make_site: MakeSite
) -> None:
    site = make_site(1)
    site.update(judge.out)
    site.break_page(FRENCH)
    judge.compare(site)


def test_a_removal_of_all_passages_of_a_page_leaves_the_index_of_the_other_pages(
    judge: Judge, make_site: MakeSite
) -> None:
    site = make_site(1)
    site.update(judge.out)
    remove([id for id in stored_columns(judge.out / PASSAGES)[1] if id.startswith("notes.txt")], judge.out)
    (site.folder / "notes.txt").unlink()
    fresh = judge.empty("fresh")
    site.make_fresh(fresh)
    assert find_differences(judge.out, fresh, exactly=False) == []
