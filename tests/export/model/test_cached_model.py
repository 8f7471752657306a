"""A model that an export has finished is not made again, unless something that it depends on is different."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from export.corpus import Corpus
from export.files import FINISHED
from export.model import cached_model
from export.model.cached_model import make_model
from export.model.calibration import split_texts
from export.model.source import Source, read_source
from function.engine.bundle import MANIFEST, MODEL, TOKENIZER, ModelInfo, read_manifest
from tests.export.conftest import edit_json

Made = list[str]


@pytest.fixture
def made(tiny_export: tuple[Path, ModelInfo], monkeypatch: pytest.MonkeyPatch) -> Made:
    """The sources that were exported: an export copies the files of another one, to save time."""
    found: Made = []

    def copy(source: Source, texts: Sequence[str], folder: Path, progress: object) -> ModelInfo:
        found.append(source.pooling)
        for name in (MODEL, TOKENIZER):
            shutil.copyfile(tiny_export[0] / name, folder / name)
        return tiny_export[1]

    monkeypatch.setattr(cached_model, "export_model", copy)
    return found


def test_a_finished_model_is_taken_over(made: Made, tiny_source: Source, corpus: Corpus, tmp_path: Path) -> None:
    first, was_there = make_model(tiny_source, split_texts(corpus.texts), tmp_path)
    assert not was_there
    for name in (MODEL, TOKENIZER, MANIFEST):
        (tmp_path / name).unlink()
    assert make_model(tiny_source, split_texts(corpus.texts), tmp_path) == (first, True)
    assert made == ["mean"]
    assert read_manifest(tmp_path) == first
    assert (tmp_path / MODEL).is_file()


def test_another_pooling_other_texts_and_another_library_make_another_model(
    made: Made, tiny_source: Source, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_model(tiny_source, split_texts(corpus.texts), tmp_path)
    make_model(tiny_source, split_texts(corpus.texts[1:]), tmp_path)
    other = replace(tiny_source, pooling="cls")
    make_model(other, split_texts(corpus.texts[1:]), tmp_path)
    monkeypatch.setattr("export.model.model_cache.version", lambda package: "0")
    make_model(other, split_texts(corpus.texts[1:]), tmp_path)
    assert made == ["mean", "mean", "cls", "cls"]
    assert len(list((tmp_path / FINISHED).iterdir())) == 1  # the last one


def test_another_file_of_the_source_makes_another_model(
    made: Made, tiny_copy: Path, corpus: Corpus, tmp_path: Path
) -> None:
    (tmp_path / "fresh").mkdir()
    make_model(read_source(tiny_copy, "tiny"), split_texts(corpus.texts), tmp_path / "fresh")
    edit_json(tiny_copy / "config.json", layer_norm_eps=1e-6)
    make_model(read_source(tiny_copy, "tiny"), split_texts(corpus.texts), tmp_path / "fresh")
    assert len(made) == 2


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, MANIFEST])
def test_a_damaged_model_is_made_again(
    made: Made, tiny_source: Source, corpus: Corpus, name: str, tmp_path: Path
) -> None:
    make_model(tiny_source, split_texts(corpus.texts), tmp_path)
    (kept,) = (tmp_path / FINISHED).iterdir()
    (kept / name).write_bytes(b"")
    manifest, was_there = make_model(tiny_source, split_texts(corpus.texts), tmp_path)
    assert not was_there
    assert len(made) == 2
    assert read_manifest(kept) == manifest
