"""What becomes of the texts of an index when it gets others: nothing is lost that nobody wanted to lose."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pytest

from semsearch import Search, index, remove
from semsearch.engine.bundle import PASSAGES, BundleError, read_manifest
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.modes import Mode, resolve_place
from tests.bundle_files import damage
from tests.command_line import error_line, run, summary, write_texts
from tests.indexing.coats import coats, found

ROWS = coats(20)
NEW = [{"sku": "c-20", "text": "An angry goose", "price": 90}]
CHANGED = [{"sku": "c-3", "text": "A cold goose", "price": 1}, *NEW]


@pytest.fixture(name="coats")
def make_coats(out: Path) -> Path:
    """An index of 20 rows with ids."""
    index(ROWS, out=out, id_column="sku")
    return out


BEFORE = {row["sku"]: row["text"] for row in ROWS}


@pytest.mark.parametrize(("rows", "left"), [(NEW, 20), (ROWS[:10], 10)])
def test_rows_that_would_push_others_out_are_refused_with_their_number(coats: Path, rows: list[Any], left: int) -> None:
    with pytest.raises(BundleError, match=f"has 20 texts, of which {left} are not among the new ones"):
        index(rows, out=coats)
    assert found(coats) == BEFORE


def test_rows_that_leave_none_out_need_no_mode(coats: Path) -> None:
    assert index([*ROWS, *NEW], out=coats).left_out == 0
    assert found(coats) == BEFORE | {"c-20": "An angry goose"}


def test_add_keeps_the_others_with_what_they_have_and_refuses_ids_that_exist(coats: Path) -> None:
    made = index(NEW, out=coats, mode="add")
    assert found(coats) == BEFORE | {"c-20": "An angry goose"}
    assert made.rows.embedded == 1
    hits = Search(coats).search(filter={"price": {"$gte": 19}})
    assert [hit.metadata for hit in hits] == [{"price": 19}, {"price": 90}]
    with pytest.raises(BundleError, match="mode add found the id 'c-3', which it has already"):
        index(CHANGED[:1], out=coats, mode="add")
    assert len(found(coats)) == 21


def test_upsert_puts_texts_in_the_place_of_those_with_their_ids(coats: Path) -> None:
    assert index(CHANGED, out=coats, mode="upsert").left_out == 0
    expected = BEFORE | {"c-3": "A cold goose", "c-20": "An angry goose"}
    assert found(coats) == expected
    assert list(found(coats)) == list(expected)
    with pytest.raises(BundleError, match="these have none; name a column of ids"):
        index(["a text without an id"], out=coats, mode="upsert", id_column=None)


@pytest.mark.parametrize("mode", ["add", "upsert"])
def test_texts_are_not_added_to_a_damaged_index(coats: Path, mode: Mode) -> None:
    damage(coats / PASSAGES)
    with pytest.raises(BundleError, match="is damaged"):
        index(NEW, out=coats, mode=mode)


def test_added_texts_without_ids_are_numbered_on(out: Path) -> None:
    index(["a goose", "", "a ferry"], out=out)
    index(["a judge", "a baker"], out=out, mode="add")
    assert found(out) == {"0": "a goose", "2": "a ferry", "3": "a judge", "4": "a baker"}


def test_texts_without_ids_that_are_added_to_others_with_ids_are_numbered_from_0(coats: Path) -> None:
    index(["a goose", "a ferry"], out=coats, mode="add", id_column=None)
    assert found(coats) == BEFORE | {"0": "a goose", "1": "a ferry"}


def test_an_index_can_be_added_to_in_another_folder(coats: Path, tmp_path: Path) -> None:
    index(NEW, out=tmp_path / "more", update=coats, mode="add")
    assert found(tmp_path / "more") == BEFORE | {"c-20": "An angry goose"}
    assert found(coats) == BEFORE


@pytest.mark.parametrize("mode", ["add", "upsert"])
def test_a_mode_that_keeps_the_texts_of_another_index_loses_none_of_the_folder(
    coats: Path, tmp_path: Path, mode: Mode
) -> None:
    other = tmp_path / "other"
    index(ROWS[:2], out=other, update=coats, id_column="sku", mode="replace")
    with pytest.raises(BundleError, match=f"has 18 texts that mode {mode} would leave out, because it keeps those of"):
        index(NEW, out=coats, update=other, mode=mode)
    assert found(coats) == BEFORE
    index(NEW, out=other, update=coats, mode=mode)
    assert found(other) == BEFORE | {"c-20": "An angry goose"}


def test_the_texts_of_another_index_in_the_folder_are_not_lost_either(coats: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    index(["a goose", "a ferry", ROWS[0]["text"]], out=other, update=coats, id_column=None)
    with pytest.raises(BundleError, match="other: has 3 texts, of which 2 are not among the new ones"):
        index(ROWS[:5], out=other, update=coats)
    assert index(ROWS[:5], out=other, update=coats, mode="replace").left_out == 2
    (other / PASSAGES).write_bytes(b"damaged")
    assert index(ROWS[:5], out=other, update=coats).left_out == 0  # nobody knows


def test_the_file_of_an_index_may_leave_texts_out_and_another_may_not(out: Path, tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.csv", ["a goose", "a ferry", "a judge"])
    assert run("index", texts, "--out", out).code == 0
    write_texts(texts, ["a goose"])
    assert summary(run("index", texts, "--out", out), "left out").startswith("2 texts of the older index")
    other = write_texts(tmp_path / "other.csv", ["a baker"])
    assert "--replace leaves them out" in error_line(run("index", other, "--out", out))
    assert run("index", other, "--out", out, "--add").code == 0
    assert read_manifest(out).corpus.rows == 2
    assert run("index", other, "--out", out, "--add", "--replace").code == 2
    for part in (texts, other):  # neither has all texts now
        assert "of which 1 are not among the new ones" in error_line(run("index", part, "--out", out))
    assert read_manifest(out).corpus.rows == 2
    assert run("index", other, "--out", out, "--replace").code == 0
    assert found(out) == {"0": "a baker"}
    write_texts(other, ["another baker"])
    assert run("index", other, "--out", out).code == 0


def test_texts_are_removed_by_their_ids(coats: Path) -> None:
    made = remove(["c-3", "c-19"], coats)
    assert (made.left_out, made.rows.embedded) == (2, 0)
    assert found(coats) == {id: text for id, text in BEFORE.items() if id not in ("c-3", "c-19")}
    assert [hit.metadata for hit in Search(coats).search(filter={"price": {"$gte": 18}})] == [{"price": 18}]
    with pytest.raises(BundleError, match="found no text with the id 'c-3', 1 in all; check them"):
        remove(["c-3", "c-4"], coats)
    with pytest.raises(BundleError, match="found no text with the id '1', '2', '3', '4', '5', 6 in all"):
        remove(list("635142"), coats)
    assert run("remove", coats, "c-4").code == 0
    assert len(found(coats)) == 17
    with pytest.raises(BundleError, match="would have no text left"):
        remove(list(found(coats)), coats)


def test_a_text_among_the_numbers_of_a_column_is_warned_of(coats: Path) -> None:
    made = index([{"sku": "c-9", "text": "A dear coat", "price": "dear"}], out=coats, mode="upsert")
    (warning,) = made.warnings
    assert warning.startswith("price has numbers in 19 of 20 rows, and row 9 (id c-9) has 'dear', so filters, sort")


def test_what_nobody_asked_for_is_warned_of(out: Path, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": id, "text": f"A coat {place}"} for place, id in enumerate("aabb")]
    made = index(pd.DataFrame(rows).assign(raw=b"x"), out=out)
    assert made.warnings == (
        "raw is left out, because JSON cannot hold the values of such a column",
        "2 texts have the id of an earlier one: `get` finds the first, and a removal or an upsert changes all",
    )
    assert remove("b", out).warnings == (made.warnings[1].replace("2 texts", "1 texts"),)
    path = write_texts(tmp_path / "texts.csv", ["a goose", "a ferry"])
    assert index(path, out=out, mode="replace").warnings == ()  # somebody asked for it
    write_texts(path, ["a goose"])
    left_out = "1 texts of the older index are left out, because they are not among the new ones"
    assert index(path, out=out).warnings == (left_out,)
    write_texts(path, ["a goose", "a judge"])
    index(path, out=out)
    write_texts(path, ["a judge"])
    assert run("index", path, "--out", out).err == f"warning: {left_out}\n"


@pytest.mark.parametrize(
    "ids",
    [
        "12",
        12,
        12.0,
        np.int64(12),
        *([12], (id for id in ["12"]), {"12"}, np.array([12.0]), pd.Series([12.0]), pl.Series([12]), {"12": "a key"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_removed_ids_are_those_that_index_made(ids: Any, out: Path) -> None:
    index([f"A warm coat {number}" for number in range(14)], out=out)
    remove(ids, out)
    assert list(found(out)) == [str(number) for number in range(14) if number != 12]


@pytest.mark.parametrize("ids", [b"12", [b"12"], None, [None], [float("nan")], [True], [[1]]], ids=repr)
def test_what_is_no_id_removes_nothing(ids: Any, coats: Path) -> None:
    with pytest.raises(ValueError, match=r"found .*, expected"):
        remove(ids, coats)
    assert found(coats) == BEFORE


def test_a_bundle_without_texts_has_none_to_remove(out: Path) -> None:
    for bundle in (out, out.parent / "none"):
        with pytest.raises(BundleError) as caught:
            remove("1", bundle)
        assert str(caught.value) == f"{bundle}: holds no texts to change; name another bundle"


def test_a_uuid_is_an_id(out: Path) -> None:
    keys = [UUID(int=1), UUID(int=2)]
    index([{"id": key, "text": f"A warm coat {key.int}"} for key in keys], out=out)
    remove(keys[0], out)
    assert list(found(out)) == [str(keys[1])]


def test_documents_stay_documents_when_some_of_their_passages_are_removed(out: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("goose", "ferry"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"# {name}\n\nThe old {name}.\n", encoding="utf-8")
    index(tmp_path / "docs", out=out)
    first, second = found(out)
    made = remove([first], out)
    assert (list(found(out)), made.manifest.corpus.heading_prefix) == ([second], True)
    assert index(tmp_path / "docs", out=out).manifest.corpus.rows == 2  # its source is known


def test_documents_are_not_added_to_an_index(coats: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Goose\n\nAn angry goose.\n", encoding="utf-8")
    with pytest.raises(BundleError, match="mode add is for tables, and these are documents"):
        index(tmp_path / "docs", out=coats, mode="add", id_column=None)


def test_the_place_of_a_corpus_is_its_address_or_its_path_from_the_root(
    bundle_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = write_texts(tmp_path / "texts.csv", ["a goose"])
    monkeypatch.chdir(tmp_path)
    assert run("index", "texts.csv", "--out", bundle_copy, "--replace").code == 0
    assert (bundle_copy / "source.txt").read_text() == str(texts)
    assert resolve_place(["s3://bucket/texts.csv"]) == "s3://bucket/texts.csv"


def test_rows_in_memory_are_never_the_place_that_an_index_of_older_code_was_made_from(bundle_copy: Path) -> None:
    manifest = read_manifest(bundle_copy)
    write_manifest(bundle_copy, replace(manifest, corpus_or_none=replace(manifest.corpus, source="rows")))
    assert not (bundle_copy / "source.txt").exists()
    with pytest.raises(BundleError, match="200 are not among the new ones"):
        index(["a goose"], out=bundle_copy)


def test_an_index_of_older_code_knows_its_source_by_its_name(bundle_copy: Path, tmp_path: Path) -> None:
    assert not (bundle_copy / "source.txt").exists()
    texts = write_texts(tmp_path / read_manifest(bundle_copy).corpus.source, ["a goose"])
    assert run("index", texts, "--out", bundle_copy).code == 0
    assert (bundle_copy / "source.txt").read_text() == str(texts)
