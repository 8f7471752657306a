"""An export does not remove the user's own texts unless --remove-corpus says so."""

from pathlib import Path

import pytest

from export.corpus import Corpus
from export.corpus.python_documentation import NAME
from function.engine.bundle import MANIFEST, MODEL, PASSAGES, TOKENIZER, open_bundle, read_manifest
from tests.export.command_line import contents, error_line, names, run
from tests.export.conftest import TINY_BERT


@pytest.mark.parametrize("step", [["model", "{tiny}"], ["{tiny}"], ["model", "{here}/no/model"], []])
def test_texts_are_not_removed_unless_that_is_asked_for(step: list[str], story_bundle: Path, tmp_path: Path) -> None:
    before = contents(story_bundle)
    places = {"tiny": TINY_BERT, "here": tmp_path}
    line = error_line(run(*[word.format(**places) for word in step], "--out", story_bundle))
    assert f"{story_bundle}: holds 147 texts from stories.csv; this command would remove" in line
    assert line.endswith("choose another folder with --out, or add --remove-corpus")
    assert ("--corpus FILE" in line) == (step[:1] != ["model"])
    assert contents(story_bundle) == before
    assert names(story_bundle.parent) == ["bundle"]


@pytest.mark.parametrize("manifest", ['{"format_version": 1}', None])
def test_texts_without_a_readable_manifest_are_not_removed(manifest: str | None, story_bundle: Path) -> None:
    (story_bundle / MANIFEST).unlink()
    if manifest is not None:
        (story_bundle / MANIFEST).write_text(manifest)
    before = contents(story_bundle)
    line = error_line(run(TINY_BERT, "--out", story_bundle))
    assert f"holds {PASSAGES}; this command would remove them" in line
    assert contents(story_bundle) == before


def test_a_new_model_removes_the_texts_when_that_is_asked_for(story_bundle: Path, calibration: Path) -> None:
    options = ("--calibration", calibration, "--out", story_bundle, "--remove-corpus")
    assert run("model", TINY_BERT, *options).code == 0
    assert read_manifest(story_bundle).index is None
    assert names(story_bundle) == sorted([MANIFEST, MODEL, TOKENIZER])


def test_a_corpus_file_replaces_other_texts_without_a_question(story_bundle: Path, calibration: Path) -> None:
    options = ("--calibration", calibration, "--corpus", calibration, "--out", story_bundle)
    assert run(TINY_BERT, *options).code == 0
    assert open_bundle(story_bundle).index.corpus == calibration.name  # type: ignore[union-attr]


def test_pythons_own_documentation_is_replaced_by_itself_but_not_removed(
    story_bundle: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.corpus.python_documentation.python_documentation", lambda: corpus)
    assert run(TINY_BERT, "--out", story_bundle, "--remove-corpus").code == 0
    assert run(TINY_BERT, "--out", story_bundle).code == 0
    line = error_line(run("model", TINY_BERT, "--out", story_bundle))
    assert f"holds 200 texts from {NAME}" in line
