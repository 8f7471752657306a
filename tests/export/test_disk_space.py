"""How much an export writes is known before it starts, and disks without room for it are named."""

import shutil
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
from export.model import cached_model
from export.model.export_model import export_model
from export.model.source.source import Source
from function.engine.bundle import COLUMNS, INDEX, KEYWORDS, MODEL, PASSAGES, TOKENIZER, ModelInfo
from function.engine.embedder import Embedder
from tests.conftest import DIM
from tests.export.command_line import STORY_COLUMNS, Run, contents, error_line, export_texts, run
from tests.export.conftest import TINY_BERT
from tests.export.disks import mounted, set_free, small_disk

MEGABYTE = 1_000_000


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


def test_a_disk_needs_room_for_the_bundle_and_says_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_free(monkeypatch, 30 * MEGABYTE)
    check_space(tmp_path, 30 * MEGABYTE)
    set_free(monkeypatch, 30 * MEGABYTE - 1)
    with pytest.raises(DiskError) as caught:
        check_space(tmp_path, 1_234 * MEGABYTE)
    assert str(caught.value) == (
        f"{tmp_path}: 30.0 MB are free, expected 1,234.0 MB for the new bundle; delete what you no longer need there "
        "or choose another folder with --out"
    )


def test_a_file_system_that_does_not_tell_its_size_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_free(monkeypatch, 0, total=0)
    check_space(tmp_path, 30 * MEGABYTE)


def test_shards_and_gathered_codes_take_the_estimated_space(embedder: Embedder, corpus: Corpus, tmp_path: Path) -> None:
    rows = embed_corpus(embedder, corpus.texts, tmp_path, "tests")
    written = folder_bytes(tmp_path / FINISHED) + rows.codes.nbytes
    assert shards_bytes(len(corpus.texts), DIM) == pytest.approx(written, abs=500)  # the header
    assert folder_bytes(tmp_path / "none") == 0


# On the command line


def test_a_disk_without_room_is_an_error_before_any_work_and_leaves_nothing(
    calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_model, "export_model", None)  # an error of another kind if it were called
    set_free(monkeypatch, 2 * MEGABYTE)
    out = tmp_path / "new" / "bundle"
    line = error_line(run("model", TINY_BERT, "--calibration", calibration, "--out", out))
    assert line.startswith(f"error: {out}: 2.0 MB are free, expected ")
    assert list(tmp_path.iterdir()) == []


def test_new_texts_without_room_are_an_error_before_they_are_embedded(
    story_bundle: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(story_bundle)
    monkeypatch.setattr("export.index.embed.embed_corpus", None)  # an error of another kind if it were called
    set_free(monkeypatch, 2_000)
    line = error_line(run("corpus", "--corpus", stories, *STORY_COLUMNS, "--out", story_bundle))
    assert line.startswith(f"error: {story_bundle}: 2.0 kB are free, expected ")
    assert contents(story_bundle) == before


def test_room_is_asked_for_all_that_is_not_yet_written(
    story_bundle: Path, stories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("export.cli.check_space", lambda out, needed: asked.append(needed))
    export_texts(stories, story_bundle, *STORY_COLUMNS)
    headers, shards = 1_000, 147 * (2 * 32 + 21)
    written = sum((story_bundle / name).stat().st_size for name in (INDEX, COLUMNS, KEYWORDS))
    assert written + shards - headers < asked[0] < 3 * (written + shards)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.9])
def test_a_disk_that_fills_up_is_one_line_and_leaves_the_old_bundle(
    whole: tuple[Path, Run], stories: Path, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for more and more of the new files, which come in the order model, tokenizer, index, passages."""
    monkeypatch.setattr("export.cli.check_space", lambda *arguments: None)  # room that vanished since
    kilobytes = sum(-(-path.stat().st_size // 4096) * 4 for path in whole[0].iterdir())
    with mounted(tmp_path / "disk", *small_disk(int(kilobytes * (1 + share)))) as disk:
        out = Path(shutil.copytree(whole[0], disk / "bundle"))
        before = contents(out)
        line = error_line(run("corpus", "--corpus", stories, *STORY_COLUMNS, "--out", out))
        assert line.startswith(f"error: {out}: No space left on device, ")
        assert "choose another folder with --out" in line
        assert contents(out) == before


@pytest.mark.parametrize("kilobytes", [4, 40, 150])
def test_a_disk_that_fills_up_while_the_model_is_written_is_one_line_and_leaves_nothing(
    calibration: Path, kilobytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.cli.check_space", lambda *arguments: None)
    monkeypatch.setattr(cached_model, "export_model", export_model)
    with mounted(tmp_path / "disk", *small_disk(kilobytes)) as disk:
        line = error_line(run("model", TINY_BERT, "--calibration", calibration, "--out", disk / "bundle"))
        assert line.startswith(f"error: {disk / 'bundle'}: No space left on device, ")
        assert list(disk.iterdir()) == []
