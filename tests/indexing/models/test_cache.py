"""A converted model is kept, found again, and carried to a machine without PyTorch."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.bundle import MANIFEST, MODEL, TOKENIZER, describe_file
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.models.cache import (
    cached_folder,
    cached_models,
    find_converted,
    models_folder,
    pack,
    take_cached,
    unpack,
)
from semsearch.indexing.models.calibration import split_texts
from semsearch.indexing.models.source import read_source
from tests.export_fixtures import edit_json

STATED: dict[str, Any] = {"name": "tests/mean-of-words", "revision": None, "pooling": None, "dimensions": None}
STATED |= {"prompts": {}}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a machine that has converted the tests' model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("semsearch.indexing.models.cache.RECIPE", "none")  # how the tests' model is quantized
    (models_folder() / "words-1").mkdir(parents=True)
    for name in (MANIFEST, MODEL, TOKENIZER):
        shutil.copyfile(bundle / name, models_folder() / "words-1" / name)
    return models_folder()


def test_a_packed_model_is_found_on_another_machine_by_its_name_and_options(
    cache: Path, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(tmp_path / "models.tar")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other machine"))
    assert find_converted(cached_models(), **STATED) is None
    unpack(tmp_path / "models.tar")
    found = find_converted(cached_models(), **STATED)
    assert found == models_folder() / "words-1" != cache / "words-1"
    assert take_cached(found, tmp_path) is not None
    assert describe_file(tmp_path / MODEL) == describe_file(bundle / MODEL)


@pytest.mark.parametrize(
    "other", [{"name": "another"}, {"pooling": "cls"}, {"dimensions": 3}, {"prompts": {"query": "q: "}}]
)
def test_a_model_with_other_options_is_another_one(other: dict[str, Any]) -> None:
    assert find_converted(cached_models(), **STATED | {"prompts": {"query": ""}}) is not None
    assert find_converted(cached_models(), **STATED | other) is None


@pytest.mark.parametrize(
    ("field", "other"),
    [('"format_version": 5', '"format_version": 6'), ('"quantization": "none"', '"quantization": "x"')],
)
def test_a_model_of_another_version_is_not_found(cache: Path, field: str, other: str) -> None:
    manifest = cache / "words-1" / MANIFEST
    stated = manifest.read_text(encoding="utf-8")
    assert stated.count(field) == 1
    manifest.write_text(stated.replace(field, other), encoding="utf-8")
    assert find_converted(cached_models(), **STATED) is None


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, MANIFEST])
def test_a_damaged_model_is_not_taken(cache: Path, name: str, tmp_path: Path) -> None:
    path = cache / "words-1" / name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert take_cached(cache / "words-1", tmp_path) is None


def test_other_settings_texts_libraries_and_files_make_another_model(
    tiny_copy: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = read_source(tiny_copy, "tiny")
    found = [cached_folder(source, tmp_path, None)]
    assert cached_folder(read_source(tiny_copy, "tiny"), tmp_path, None) == found[0]
    found += [cached_folder(replace(source, pooling="cls"), tmp_path, None)]
    found += [cached_folder(source, tmp_path, split_texts(corpus.texts[first:])) for first in (0, 1)]
    edit_json(tiny_copy / "config.json", layer_norm_eps=1e-6)
    found += [cached_folder(read_source(tiny_copy, "tiny"), tmp_path, None)]
    monkeypatch.setattr("semsearch.indexing.models.cache.CONVERSION_VERSION", 0)
    found += [cached_folder(source, tmp_path, None)]
    monkeypatch.setattr("semsearch.indexing.models.cache.version", lambda package: "0")
    found += [cached_folder(source, tmp_path, None)]
    assert len({folder.name for folder in found}) == len(found)


def test_a_file_that_holds_no_models_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models.tar").write_bytes(b"no tar")
    with pytest.raises(OSError, match="semsearch model pack"):
        unpack(tmp_path / "models.tar")


def test_of_no_models_there_is_no_tar_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other machine"))
    with pytest.raises(FileNotFoundError, match="there is no model; run `semsearch index` first"):
        pack(tmp_path / "models.tar")
    assert not (tmp_path / "models.tar").exists()
