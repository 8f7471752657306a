"""A converted model is kept, found again, and carried to a machine without PyTorch."""

from argparse import Namespace
from pathlib import Path

import pytest

from export.files import FINISHED
from export.model.model_cache import find_cached, keep_model, models_folder, pack, take_cached, unpack
from function.engine.bundle import MODEL, describe_file

OPTIONS = Namespace(
    model="tests/mean-of-words", revision=None, pooling=None, dimensions=None, query_prompt=None, document_prompt=None
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a machine that has converted the tests' model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("export.model.model_cache.RECIPE", "none")  # how the tests' model is quantized
    fresh = tmp_path / "made"
    (fresh / FINISHED).mkdir(parents=True)
    (fresh / FINISHED / "model-1").symlink_to(bundle)
    keep_model(fresh, models_folder() / "words-1")
    return models_folder()


def test_a_packed_model_is_found_on_another_machine_by_its_name_and_options(
    cache: Path, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(tmp_path / "models.tar")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other machine"))
    assert find_cached(OPTIONS) is None
    unpack(tmp_path / "models.tar")
    found = find_cached(OPTIONS)
    assert found == models_folder() / "words-1" != cache / "words-1"
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert take_cached(found, fresh) is not None
    assert describe_file(fresh / MODEL) == describe_file(bundle / MODEL)


@pytest.mark.parametrize(
    "other", [{"model": "another"}, {"pooling": "cls"}, {"dimensions": 3}, {"query_prompt": "q: "}]
)
def test_a_model_with_other_options_is_another_one(other: dict[str, object]) -> None:
    assert find_cached(Namespace(**vars(OPTIONS) | {"query_prompt": ""})) is not None
    assert find_cached(Namespace(**vars(OPTIONS) | other)) is None


def test_a_damaged_model_is_not_taken(cache: Path, tmp_path: Path) -> None:
    path = cache / "words-1" / MODEL
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert take_cached(cache / "words-1", fresh) is None
    assert list((fresh / FINISHED).iterdir()) == []


def test_a_file_that_holds_no_models_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models.tar").write_bytes(b"no tar")
    with pytest.raises(OSError, match="semsearch model pack"):
        unpack(tmp_path / "models.tar")
