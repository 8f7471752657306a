"""Several changes to an index make one new bundle, at the end of a block."""

from pathlib import Path
from typing import Any

import pytest

from semsearch import BundleError, OptionError, Search, changing, index, remove
from semsearch.engine.metadata.filters import FilterError
from semsearch.indexing import steps
from semsearch.indexing.modes import Mode
from semsearch.indexing.replacing import replacing
from tests.command_line import contents
from tests.indexing.coats import coats, found

ROWS = coats(8)
BEFORE = {row["sku"]: row["text"] for row in ROWS}


@pytest.fixture(name="coats")
def make_coats(out: Path) -> Path:
    """An index of 8 rows with ids."""
    index(ROWS, out=out, id_column="sku")
    return out


def test_changes_are_made_one_after_the_other_and_searches_find_the_older_texts_until_the_end(coats: Path) -> None:
    with changing(coats, progress=False) as texts:
        texts.add([{"sku": "n-1", "text": "A goose", "price": 50}, {"sku": "n-2", "text": "A swan", "price": 60}])
        texts.upsert([{"sku": "c-2", "text": "A cold coat", "price": 2}, {"sku": "n-2", "text": "A duck", "price": 61}])
        texts.remove(["c-0", "n-1"])
        texts.upsert([{"sku": "c-0", "text": "A coat again", "price": 0}])
        assert texts.summary is None
        assert found(coats) == BEFORE
    assert (
        list(found(coats).items())
        == [
            *{**BEFORE, "c-2": "A cold coat"}.items(),
            ("n-2", "A duck"),
            ("c-0", "A coat again"),
        ][1:]
    )
    assert texts.summary is not None
    assert (texts.summary.manifest.corpus.rows, texts.summary.rows.embedded) == (9, 3)


def test_a_filter_removes_texts_of_the_index_but_none_that_the_block_has_added(coats: Path) -> None:
    with changing(coats, progress=False) as texts:
        texts.upsert([{"sku": "c-1", "text": "A new coat", "price": 1}, {"sku": "n-1", "text": "A goose", "price": 1}])
        texts.remove("c-7", where={"price": {"$lt": 6}})
    assert list(found(coats)) == ["c-1", "c-6", "n-1"]


def test_a_filter_removes_texts_without_a_block(coats: Path) -> None:
    made = remove(bundle=coats, where={"price": {"$gte": 3}}, progress=False)
    assert list(found(coats)) == ["c-0", "c-1", "c-2"]
    assert made.left_out == 5


def test_an_id_that_the_filter_finds_too_is_removed_once_and_a_failed_removal_removes_nothing(coats: Path) -> None:
    with changing(coats, progress=False) as texts:
        with pytest.raises(BundleError, match="found no text with the id 'x'"):
            texts.remove("x", where={"price": {"$gte": 2}})
        texts.remove(["c-6", "c-7"], where={"price": {"$gte": 6}})
    assert list(found(coats)) == [f"c-{number}" for number in range(6)]


def test_documents_are_refused(out: Path, tmp_path: Path) -> None:
    index(["a coat"], out=out, progress=False)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A goose")
    with changing(out, progress=False) as texts, pytest.raises(BundleError, match="mode upsert is for tables"):
        texts.upsert(tmp_path / "docs")


def test_all_passages_of_a_divided_text_are_replaced_also_without_dividing_the_new_one(out: Path) -> None:
    index([{"id": "a", "text": "The angry goose lost a key. " * 9}], out=out, split=True, passage_tokens=12)
    assert len(found(out)) > 2
    index([{"id": "a", "text": "A swan"}], out=out, mode="upsert", split=False)
    assert found(out) == {"a": "A swan"}


def test_an_index_that_another_command_makes_or_changes_meanwhile_is_not_overwritten(
    coats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new"
    name = "semsearch.indexing.steps.replacing"

    def make_meanwhile(out: Path) -> Any:
        monkeypatch.setattr(name, replacing)
        index(ROWS, out=out, id_column="sku", title="Coats", mode="replace", progress=False)
        return replacing(out)

    for place in (new, coats):
        monkeypatch.setattr(name, make_meanwhile)
        with pytest.raises(BundleError, match="was changed by another command at the same time"):
            index([{"sku": "n", "text": "A goose", "price": 1}], out=place, mode="upsert", id_column="sku")
        assert len(found(place)) == 8
    index(ROWS, out=coats, title="", mode="replace", progress=False)
    name = "semsearch.indexing.changing.replacing"
    monkeypatch.setattr(name, make_meanwhile)
    with (
        pytest.raises(BundleError, match="was changed by another command at the same time"),
        changing(coats, progress=False),
    ):
        pass


@pytest.mark.parametrize("mode", ["replace", "upsert"])
def test_an_index_that_is_replaced_while_another_is_made_of_it_is_refused(
    coats: Path, tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_older = steps.open_older

    def replace_meanwhile(*arguments: Any) -> Any:
        opened = open_older(*arguments)
        monkeypatch.setattr(steps, "open_older", open_older)
        index(ROWS[5:], out=coats, mode="replace", progress=False)
        return opened

    monkeypatch.setattr(steps, "open_older", replace_meanwhile)
    with pytest.raises(BundleError, match="was replaced while it was read"):
        index(ROWS[:1], out=tmp_path / "new", update=coats, mode=mode, progress=False)
    assert not (tmp_path / "new" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda texts: texts.remove("c-9"), BundleError, "found no text with the id 'c-9'"),
        (lambda texts: texts.remove([None]), OptionError, "found None, expected text or a number"),
        (lambda texts: texts.remove(where={"prize": 1}), FilterError, "prize"),
        (lambda texts: texts.add([ROWS[0]]), BundleError, "mode add found the id 'c-0'"),
        (lambda texts: texts.remove(list(BEFORE)), BundleError, "would have no text left"),
        (lambda texts: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_a_block_that_raises_changes_nothing(coats: Path, change: Any, error: type[Exception], message: str) -> None:
    before = contents(coats)

    def change_twice() -> None:
        with changing(coats, progress=False) as texts:
            texts.upsert([{"sku": "c-1", "text": "A new coat", "price": 1}])
            change(texts)

    with pytest.raises(error, match=message):
        change_twice()
    assert contents(coats) == before


def test_a_block_without_a_change_makes_no_bundle_and_keeps_the_pieces_of_a_stopped_run(coats: Path) -> None:
    piece = coats / ".partial" / "finished" / "piece"
    piece.parent.mkdir(parents=True)
    piece.touch()
    before = (coats / "manifest.json").stat().st_mtime_ns
    with changing(coats, progress=False) as texts:
        pass
    assert texts.summary is None
    assert piece.exists()
    assert (coats / "manifest.json").stat().st_mtime_ns == before


def test_a_second_writer_is_refused_during_a_block(coats: Path) -> None:
    with changing(coats, progress=False) as texts:
        texts.remove("c-0")
        with pytest.raises(BundleError, match="another command writes into it"):
            index(ROWS, out=coats, mode="replace", progress=False)
    assert len(found(coats)) == 7


def test_options_stay_and_so_does_the_place_of_the_texts_until_others_are_added(tmp_path: Path, out: Path) -> None:
    table, more = tmp_path / "coats.csv", tmp_path / "more.csv"
    table.write_text("sku,text,price\nc-1,A warm coat,12\nc-2,A cold coat,13\n")
    more.write_text("sku,text,price\nm-1,A gander,14\n")
    index(table, out=out, id_column="sku", progress=False)
    with changing(out, progress=False) as texts:
        texts.remove("c-1")
    assert (out / "source.txt").read_text() == str(table)
    with changing(out, progress=False) as texts:
        texts.add(more)
    (hit,) = Search(out).search(filter={"price": {"$gt": 13}})
    assert (hit.id, hit.metadata) == ("m-1", {"price": 14})
    assert (out / "source.txt").read_text() == ""
