"""python -m export ends with one line and exit code 1 for a broken model, and leaves no bundle."""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from export.cli import main
from export.corpus import Corpus
from tests.export.conftest import edit_json

WORDS = "embeddings.word_embeddings.weight"


def without_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def with_foreign_names(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    renamed = {f"other.{name}": tensor for name, tensor in tensors.items()}
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})


def with_nan(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors[WORDS] = np.where(tensors[WORDS] > 0.9, np.nan, tensors[WORDS])
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def with_weights_cut_short(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def with_fewer_layers_in_its_config(folder: Path) -> None:
    edit_json(folder / "config.json", num_hidden_layers=1)


def with_a_tokenizer_that_is_not_json(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("<html>")


def with_a_tokenizer_that_contradicts_its_settings(folder: Path) -> None:
    edit_json(folder / "tokenizer_config.json", do_lower_case=False)


def with_a_prompt_that_is_a_number(folder: Path) -> None:
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": 5}}))


def of_another_family(folder: Path) -> None:
    edit_json(folder / "config.json", model_type="gpt2")


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (without_a_tensor, "model.safetensors: 1 missing (encoder.layer.1.output.dense.weight); expected"),
        (with_foreign_names, "model.safetensors: 37 missing (embeddings."),
        (with_nan, f"model.safetensors: NaN or infinity in 1 tensors ({WORDS}); expected"),
        (with_weights_cut_short, "bytes that cannot be read (SafetensorError: "),
        (with_fewer_layers_in_its_config, "model.safetensors: 16 unexpected (encoder.layer.1."),
        (with_a_tokenizer_that_is_not_json, "tokenizer.json: cannot be read ("),
        (with_a_tokenizer_that_contradicts_its_settings, "tokenizer.json contradicts tokenizer_config.json"),
        (with_a_prompt_that_is_a_number, "config_sentence_transformers.json: the prompt 'query' is 5, expected"),
        (of_another_family, "config.json: model_type is gpt2, expected a model of the BERT family"),
    ],
)
def test_a_broken_model_ends_with_one_line_and_leaves_no_bundle(
    damage: Callable[[Path], None],
    found: str,
    tiny_copy: Path,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    damage(tiny_copy)
    calibration = tmp_path / "calibration.jsonl"
    calibration.write_text("".join(json.dumps({"text": text}) + "\n" for text in corpus.texts[:80]))
    monkeypatch.setenv("COLUMNS", "1000")
    errors = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        code = main(
            ["model", str(tiny_copy), "--calibration", str(calibration), "--out", str(tmp_path / "out" / "bundle")]
        )
    assert code == 1
    (line,) = errors.getvalue().splitlines()
    assert line.startswith(f"error: {tiny_copy}")
    assert found in line
    assert "--calibration" not in line
    assert not list((tmp_path / "out").glob("*"))
