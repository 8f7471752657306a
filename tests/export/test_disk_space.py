"""How much an export writes is known before it starts, and disks without room for it are named."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from export.corpus import Corpus
from export.disk_space import (
    MODEL_MARGIN,
    check_space,
    corpus_bytes,
    folder_bytes,
    keywords_bytes,
    model_bytes,
    shards_bytes,
    temporary_bytes,
)
from export.files.disk_errors import DiskError
from export.files.resume import FINISHED
from export.index.embed import embed_corpus
from export.model.source.source import Source
from function.engine.bundle import COLUMNS, INDEX, KEYWORDS, MODEL, PASSAGES, TOKENIZER, ModelInfo
from function.engine.embedder import Embedder
from tests.conftest import DIM
from tests.export.disks import Usage

MEGABYTE = 1_000_000


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[Path, int]], None]:
    """Let the folders have so many bytes free."""

    def set_free(free: dict[Path, int]) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 10**12 - free[path], free[path]))

    return set_free


def test_a_corpus_takes_the_estimated_space(corpus: Corpus, bundle: Path) -> None:
    written = (bundle / INDEX).stat().st_size + (bundle / PASSAGES).stat().st_size
    without_columns = corpus_bytes(replace(corpus, columns={}), bundle / PASSAGES, DIM)
    assert without_columns == pytest.approx(written, abs=2_000)  # the two headers
    assert corpus_bytes(corpus, bundle / PASSAGES, DIM) >= written + (bundle / COLUMNS).stat().st_size


def test_keywords_take_at_most_the_estimated_space(bundle: Path) -> None:
    written = (bundle / KEYWORDS).stat().st_size
    assert written < keywords_bytes(bundle / PASSAGES) < 3 * written


def test_a_model_takes_at_most_the_estimated_space(tiny_source: Source, tiny_export: tuple[Path, ModelInfo]) -> None:
    weights = (tiny_source.folder / "model.safetensors").stat().st_size
    written = sum((tiny_export[0] / name).stat().st_size for name in (MODEL, TOKENIZER))
    assert written < model_bytes(tiny_source) == weights // 4 + MODEL_MARGIN
    assert temporary_bytes(tiny_source) > 3 * weights


def test_a_disk_with_room_is_accepted(tmp_path: Path, disks: Callable[[dict[Path, int]], None]) -> None:
    disks({tmp_path: 30 * MEGABYTE})
    check_space(tmp_path, 30 * MEGABYTE)


def test_a_disk_without_room_for_the_bundle_is_named_with_what_is_free_and_what_is_needed(
    tmp_path: Path, disks: Callable[[dict[Path, int]], None]
) -> None:
    disks({tmp_path: 30 * MEGABYTE - 1})
    with pytest.raises(DiskError) as caught:
        check_space(tmp_path, 1_234 * MEGABYTE)
    assert str(caught.value) == (
        f"{tmp_path}: 30.0 MB are free, expected 1,234.0 MB for the new bundle; delete what you no longer need there "
        "or choose another folder with --out"
    )


def test_a_file_system_that_does_not_tell_its_size_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 0))
    check_space(tmp_path, 30 * MEGABYTE)


def test_shards_and_gathered_codes_take_the_estimated_space(embedder: Embedder, corpus: Corpus, tmp_path: Path) -> None:
    rows = embed_corpus(embedder, corpus.texts, tmp_path, "tests")
    written = folder_bytes(tmp_path / FINISHED) + rows.codes.nbytes
    assert shards_bytes(len(corpus.texts), DIM) == pytest.approx(written, abs=500)  # the header
    assert folder_bytes(tmp_path / "none") == 0
