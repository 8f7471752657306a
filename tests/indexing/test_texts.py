"""The one place that all texts of an index pass, and the places that they are from."""

from pathlib import Path
from typing import Any

import pytest

from semsearch import CorpusError, index
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.corpus import PassageRow, PassageRows
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.modes import count_left_out, has_texts_of, read_place
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.texts import write_corpus, write_place
from semsearch.indexing.update_file import RowDigests


class Unwritable:
    """A text that UTF-8 cannot hold, from a source that notes when it is closed, as one with worker processes does."""

    is_closed = False

    def passages(self, on_progress: OnProgress) -> PassageRows:
        try:
            yield PassageRow("a goose", "a", "{}")
            yield PassageRow("\ud800", "b", "{}")
        finally:
            self.is_closed = True

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        return written, ReadReport()


def test_a_source_is_closed_at_once_if_a_text_cannot_be_written(tmp_path: Path) -> None:
    source = Unwritable()
    with pytest.raises(UnicodeEncodeError) as raised:
        write_corpus(source, tmp_path / "passages.safetensors")
    assert raised.value.object == "\ud800"
    assert source.is_closed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["text_column", "id_column"])
def test_documents_have_no_columns_of_texts_and_ids(option: str, out: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A goose")
    options: Any = {option: "name"}
    with pytest.raises(CorpusError) as caught:
        index(tmp_path / "docs", out=out, progress=False, **options)
    assert str(caught.value) == (
        f"{tmp_path}/docs: found documents, and the option text_column or id_column, which the updated index can have "
        "recorded, expected tables with these columns; choose another folder with out=, or leave the columns out: "
        'text_column="" id_column=""'
    )


def test_the_place_of_texts_is_written_and_read_as_it_is(tmp_path: Path) -> None:
    assert read_place(tmp_path) is None
    for place in ("", "s3://bucket/a", "/texts/caf\udce9"):  # a name that is not UTF-8
        write_place(tmp_path, place)
        assert read_place(tmp_path) == place


@pytest.mark.parametrize(
    ("recorded", "place", "name", "is_same"),
    [
        ("/a.csv", "/a.csv", "other", True),
        ("/a.csv", "/b.csv", "stories.csv", False),
        ("", "", "rows", False),
        ("", "/a.csv", "stories.csv", False),
        (None, "/a.csv", "stories.csv", True),  # an index of older code
        (None, "/a.csv", "other", False),
        (None, "", "stories.csv", False),
    ],
)
def test_an_index_is_of_the_place_that_it_records(
    recorded: str | None, place: str, name: str, is_same: bool, bundle_copy: Path
) -> None:
    if recorded is not None:
        write_place(bundle_copy, recorded)
    assert has_texts_of(bundle_copy, place, name) is is_same
    assert not has_texts_of(bundle_copy.parent / "none", place, name)


def test_a_text_is_left_out_if_neither_its_id_nor_its_text_is_there() -> None:
    def digests(*rows: tuple[str, str]) -> RowDigests:
        return RowDigests.of((PassageRow(text, id, "{}") for text, id in rows), has_prefixes=False)

    before = digests(("a goose", "1"), ("a ferry", "2"), ("a judge", "3"))
    now = digests(("a goose", "7"), ("another", "2"))
    assert count_left_out(before, now, has_ids=True) == 1
    assert count_left_out(before, now, has_ids=False) == 2  # numbers of rows are no ids
    assert count_left_out(now, before, has_ids=True) == 0
