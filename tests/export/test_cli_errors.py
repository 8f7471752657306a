"""An error of any command is one line and exit code 1, and the old bundle stays byte for byte."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from export.model import cached_model
from export.model.export_model import export_model
from function.engine.bundle import INDEX
from tests.export.command_line import STORY_COLUMNS, Run, contents, error_line, names, run, write_texts
from tests.export.conftest import TINY_BERT, edit_json
from tests.export.disks import mounted, small_disk


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tiny}", "--corpus", "{here}/none.csv"], "none.csv: found no file, expected a file ending in .csv"),
        (["corpus", "--corpus", "{stories}"], "found the columns 'number', 'title', 'teller', expected one named"),
        (["{tiny}", "--corpus", "{stories}", "--text-column", "titel"], "did you mean --text-column 'title'?"),
        (["{tiny}", "--corpus", "{few}", "--calibration", "{few}"], "3 calibration texts; expected at least 64"),
        (["{tiny}", "--corpus", "{few}", "--calibration", "{here}/none.csv"], "none.csv: found no file"),
        (["{here}/no/model", "--corpus", "{few}", "--calibration", "{few}"], "no/model: expected a folder, or a name"),
        (["{here}", "--corpus", "{few}", "--calibration", "{few}"], "config.json: cannot be read as a model"),
    ],
)
def test_an_error_is_one_line_and_leaves_the_old_bundle_byte_for_byte(
    arguments: list[str], message: str, story_bundle: Path, stories: Path, tmp_path: Path
) -> None:
    few = write_texts(tmp_path / "few.csv", ["one", "two", "three"])
    before = contents(story_bundle)
    places = {"tiny": TINY_BERT, "here": tmp_path, "stories": stories, "few": few}
    done = run(*[argument.format(**places) for argument in arguments], "--out", story_bundle)
    assert message in error_line(done)
    assert contents(story_bundle) == before
    assert names(story_bundle.parent) == ["bundle"]


def without_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def with_a_tokenizer_that_is_not_json(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("<html>")


def with_a_tokenizer_that_contradicts_its_settings(folder: Path) -> None:
    edit_json(folder / "tokenizer_config.json", do_lower_case=False)


def with_a_prompt_that_is_a_number(folder: Path) -> None:
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": 5}}))


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (without_a_tensor, "the weights lack 1 tensors, such as "),
        (with_a_tokenizer_that_is_not_json, "tokenizer.json: cannot be read as a model ("),
        (with_a_tokenizer_that_contradicts_its_settings, "tokenizer.json contradicts tokenizer_config.json"),
        (with_a_prompt_that_is_a_number, "config_sentence_transformers.json: cannot be read as a model ("),
    ],
)
def test_a_broken_model_ends_with_one_line_and_leaves_no_bundle(
    damage: Callable[[Path], None], found: str, tiny_copy: Path, calibration: Path, tmp_path: Path
) -> None:
    damage(tiny_copy)
    line = error_line(run("model", tiny_copy, "--calibration", calibration, "--out", tmp_path / "out" / "bundle"))
    assert line.startswith(f"error: {tiny_copy}")
    assert found in line
    assert not (tmp_path / "out").exists()


def test_an_error_of_the_disk_is_one_line_that_names_the_place(
    story_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(story_bundle / INDEX))

    monkeypatch.setattr("export.index.verify.verify", fail)
    assert error_line(run("verify", story_bundle)) == f"error: {story_bundle / INDEX}: {os.strerror(errno.EIO)}"


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_disk_that_fills_up_is_one_line_and_leaves_the_old_bundle(
    whole: tuple[Path, Run], stories: Path, share: float, tmp_path: Path
) -> None:
    """There is room for more and more of the new files, which come in the order model, tokenizer, index, passages."""
    kilobytes = sum(-(-path.stat().st_size // 4096) * 4 for path in whole[0].iterdir())
    with mounted(tmp_path / "disk", *small_disk(int(kilobytes * (1 + share)))) as disk:
        out = Path(shutil.copytree(whole[0], disk / "bundle"))
        line = error_line(run("corpus", "--corpus", stories, *STORY_COLUMNS, "--out", out))
        assert line.startswith(f"error: {out}")
        assert "No space left on device" in line
        assert contents(out) == contents(whole[0])


@pytest.mark.parametrize("kilobytes", [40, 500])
def test_a_disk_that_fills_up_while_the_model_is_written_is_one_line_and_leaves_nothing(
    calibration: Path, kilobytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_model, "export_model", export_model)
    with mounted(tmp_path / "disk", *small_disk(kilobytes)) as disk:
        line = error_line(run("model", TINY_BERT, "--calibration", calibration, "--out", disk / "bundle"))
        assert line.startswith(f"error: {disk / 'bundle'}")
        assert "No space left on device" in line
        assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("verify",), "holds no manifest.json; make a bundle with"),
        (("corpus", "--corpus", "any.csv", "--out"), "is not a folder; make a bundle with `python -m export --out"),
    ],
)
def test_a_command_for_a_bundle_that_is_not_there_is_an_error(
    command: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    out = tmp_path if command == ("verify",) else tmp_path / "new"
    assert f"{out}: {message}" in error_line(run(*command, out))
    assert names(tmp_path) == []
