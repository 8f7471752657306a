"""What a bundle and the summary say of a model's prompts and similarity, and models that a search by cosine changes."""

import json
import shutil
from pathlib import Path

import pytest

from semsearch.engine.bundle import MANIFEST, check_bundle, read_manifest
from semsearch.indexing.models import placing
from semsearch.indexing.models.cache import MODEL_PACKAGE, cached_folder, models_folder
from semsearch.indexing.models.modules import CONFIG, MODULES
from semsearch.indexing.models.source import DEFAULT_MODEL, read_source
from tests.command_line import Run, error_line, run, summary, write_texts
from tests.export_fixtures import TINY_BERT, edit_json

TRAINED_FOR_DOT = "cosine; the model was trained for dot, which orders texts differently"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "texts.csv", ["the lion", "the wolf", "a raven"])


@pytest.fixture(scope="module")
def dot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT without its Normalize module, as a model that was trained for the dot product."""
    folder = Path(shutil.copytree(TINY_BERT, tmp_path_factory.mktemp("dot") / TINY_BERT.name))
    edit_json(folder / CONFIG, similarity_fn_name="dot")
    modules = json.loads((folder / MODULES).read_bytes())
    kept = [module for module in modules if not module["type"].endswith("Normalize")]
    (folder / MODULES).write_text(json.dumps(kept))
    return folder


def test_the_summary_names_prompts_by_role(
    tiny_copy: Path, bundle_copy: Path, texts: Path, calibration: Path, tmp_path: Path
) -> None:
    edit_json(tiny_copy / CONFIG, prompts={"search_query": "q: ", "search_document": "", "sts": "s: "})
    new = ("--model", tiny_copy, "--calibration", calibration)
    said = '"q: " for queries, none for passages; not used: sts'
    out = tmp_path / "new"
    assert summary(run("index", texts, *new, "--out", out), "prompts") == said
    assert summary(run("index", texts, "--out", out, "--verbose"), "prompts") == said  # the bundle's own model
    assert check_bundle(out).model.unused_prompts == ["sts"]
    converted = run("model", "convert", tiny_copy, "--calibration", calibration, "--out", tmp_path / "model")
    assert summary(converted, "prompts") == said
    assert "\nprompts" not in run("index", texts, "--out", bundle_copy, "--replace").out  # its model has none


def test_a_dot_product_model_is_refused_by_default(dot: Path, texts: Path, calibration: Path, tmp_path: Path) -> None:
    calibrated = (dot, "--calibration", calibration)
    commands: list[tuple[object, ...]] = [("index", texts, "--model", *calibrated), ("model", "convert", *calibrated)]
    for command in commands:
        place = ("--out", tmp_path / str(command[0]))
        line = error_line(run(*command, *place))
        assert f"{dot.name}: {CONFIG} has the similarity_fn_name dot" in line
        assert line.endswith("--similarity cosine")
        assert summary(run(*command, *place, "--similarity", "cosine"), "similarity") == TRAINED_FOR_DOT
        assert read_manifest(tmp_path / str(command[0])).model.similarity == "dot"


def test_an_index_of_a_dot_product_model_is_updated(dot: Path, texts: Path, calibration: Path, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    new = ("--model", dot, "--calibration", calibration, "--out", out)
    assert run("index", texts, *new, "--similarity", "cosine").code == 0
    assert summary(run("index", texts, "--out", out), "similarity") == TRAINED_FOR_DOT
    assert error_line(run("index", texts, *new)).endswith("--similarity cosine")

    stated = json.loads((out / MANIFEST).read_bytes())
    for added in ("similarity", "unused_prompts"):  # older code wrote neither
        del stated["model"][added]
    (out / MANIFEST).write_text(json.dumps(stated))
    done = run("index", texts, "--out", out)
    assert done.code == 0
    assert "\nsimilarity" not in done.out
    assert check_bundle(out).model.similarity is None


def test_a_cached_model_for_the_dot_product_is_refused_too(
    dot: Path, texts: Path, calibration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    new = ("--calibration", calibration, "--similarity", "cosine", "--out", models_folder() / "dot-1")
    assert run("model", "convert", dot, *new).code == 0
    monkeypatch.setattr(placing, "can_convert", lambda: False)  # as without PyTorch
    index = ("index", texts, "--model", dot.name, "--out", tmp_path / "bundle")
    assert error_line(run(*index)).endswith("--similarity cosine")
    assert summary(run(*index, "--similarity", "cosine"), "similarity") == TRAINED_FOR_DOT


def test_a_model_that_was_converted_before_is_taken_from_the_cache(
    model_alone: tuple[Path, Run], texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = cached_folder(read_source(TINY_BERT, TINY_BERT.name), tmp_path, None)
    shutil.copytree(model_alone[0], folder)
    done = run("index", texts, "--model", TINY_BERT, "--out", tmp_path / "bundle", "--verbose")
    assert summary(done, "model from") == str(folder)
    assert check_bundle(tmp_path / "bundle").model == read_manifest(folder).model


@pytest.fixture
def package(model_alone: tuple[Path, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package of the default model, which is the tiny BERT here, on a machine with an empty cache."""
    folder = Path(shutil.copytree(model_alone[0], tmp_path / "packages" / MODEL_PACKAGE))
    manifest = (folder / MANIFEST).read_text(encoding="utf-8")
    (folder / MANIFEST).write_text(manifest.replace(f'"{TINY_BERT.name}"', f'"{DEFAULT_MODEL}"'), encoding="utf-8")
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.mark.parametrize(
    ("converts", "options"), [(True, ()), (False, ("--model", DEFAULT_MODEL, "--pooling", "mean"))]
)
def test_the_default_model_comes_from_its_package_with_pytorch_and_without(
    package: Path,
    texts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    converts: bool,
    options: tuple[str, ...],
) -> None:
    monkeypatch.setattr(placing, "can_convert", lambda: converts)
    monkeypatch.setattr(placing, "find_model", None)  # nothing looks for the float32 model
    done = run("index", texts, *options, "--out", tmp_path / "bundle", "--verbose")
    assert summary(done, "model from") == str(package)
    assert read_manifest(tmp_path / "bundle").model == read_manifest(package).model


@pytest.mark.parametrize(
    "options", [("--no-cache",), ("--dimensions", "3"), ("--revision", "main"), ("--model", "another/model")]
)
def test_without_pytorch_another_model_than_that_of_the_package_is_refused(
    package: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr(placing, "can_convert", lambda: False)
    line = error_line(run("index", texts, *options, "--out", tmp_path / "bundle"))
    remedy = "install the extra `export`, which converts it: pip install '.[export]'"
    assert line.endswith(f"expected a model converted on this machine; {remedy}")


def test_without_pytorch_and_the_package_an_error_names_both_remedies(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "can_convert", lambda: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    line = error_line(run("index", texts, "--out", tmp_path / "bundle"))
    assert line.startswith(f"error: {DEFAULT_MODEL}: found no converted model that this version can use")
    remedies = "install the wheel dist/semsearch_model-*.whl that `make wheels` writes in a clone, or install the extra"
    assert line.endswith(
        f"the package semsearch-model of this version; {remedies} `export`, which converts it: pip install '.[export]'"
    )
