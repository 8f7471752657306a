"""The one place that all texts of an index pass."""

from pathlib import Path

import pytest

from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.corpus import PassageRow, PassageRows
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.texts import write_corpus


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
