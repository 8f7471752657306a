"""A model whose files are damaged, or that the export cannot run, is refused in one line that begins with its path."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from export.model.load_model import load_model
from export.model.source.model_files import ModelError
from export.model.source.source import read_source
from tests.export.conftest import edit_json, split_weights

Damage = Callable[[Path], object]


def refusal(folder: Path) -> str:
    """Return the one line with which the model in the folder is refused."""
    with pytest.raises(ModelError) as caught:
        load_model(read_source(folder, "tests/broken"))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(folder))
    return message


def edited(name: str, **values: Any) -> Damage:
    return lambda folder: edit_json(folder / name, **values)


def written(name: str, content: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content)


def missing(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def modules(*listed: object) -> Damage:
    return written("modules.json", json.dumps(listed).encode())


def module(kind: str, path: str = "") -> dict[str, str]:
    return {"type": f"sentence_transformers.models.{kind}", "path": path}


def without_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def without_a_shard(folder: Path) -> None:
    _, shards = split_weights(folder)
    shards[1].unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            edited("config.json", model_type="t5"),
            "model_type is t5, expected a model of the BERT family (albert, bert, ",
        ),
        (edited("config.json", auto_map={"AutoModel": "modeling.NewModel"}), "the export runs no code of others"),
        (edited("config.json", hidden_size=None), "KeyError"),
        (edited("config.json", vocab_size=600), "expected a sentence-transformer of the BERT family"),
        (edited("config.json", num_hidden_layers=3), "the weights lack 16 tensors, such as encoder.layer.2."),
        (edited("config.json", hidden_act="no-such-function"), "KeyError"),
        (edited("sentence_bert_config.json", max_seq_length="abc"), "ValueError: invalid literal for int()"),
        (written("config.json", b"["), "config.json: cannot be read as a model (JSONDecodeError"),
        (written("modules.json", b"3"), "modules.json: cannot be read as a model (TypeError"),
        (written("model.safetensors", b"version https://git-lfs.github.com/spec/v1\n"), "SafetensorError"),
        (missing("config.json"), "config.json: cannot be read as a model (FileNotFoundError"),
        (missing("tokenizer.json"), "has no tokenizer.json"),
        (missing("1_Pooling/config.json"), "1_Pooling/config.json: cannot be read as a model (FileNotFoundError"),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            "has no model.safetensors",
        ),
        (without_a_tensor, "the weights lack 1 tensors, such as encoder.layer.1.output.dense.weight"),
        (without_a_shard, "FileNotFoundError"),
        (modules(module("Transformer"), module("Pooling", "../1_Pooling")), "leaves the model's folder"),
        (
            modules({"type": "custom_st.Transformer", "path": ""}),
            "lists custom_st.Transformer, which is code of its own",
        ),
        (
            modules(module("Transformer"), module("LSTM"), module("Pooling")),
            "lists Transformer, LSTM, Pooling; expected",
        ),
        (modules(module("StaticEmbedding")), "lists StaticEmbedding; expected Transformer, Pooling and then"),
        (modules(module("MLMTransformer"), module("SpladePooling")), "lists MLMTransformer, SpladePooling; expected"),
        (written("config_sentence_transformers.json", b'{"prompts": ["query: "]}'), "AttributeError"),
        (written("config_sentence_transformers.json", b'{"default_prompt_name": "query"}'), "KeyError"),
    ],
)
def test_a_model_that_cannot_be_exported_is_refused(tiny_copy: Path, damage: Damage, message: str) -> None:
    damage(tiny_copy)
    assert message in refusal(tiny_copy)


def test_a_checkpoint_without_pooler_in_16_bits_and_in_shards_is_loaded(tiny_copy: Path) -> None:
    tensors = load_file(tiny_copy / "model.safetensors")
    kept = {name: tensor.astype(np.float16) for name, tensor in tensors.items() if not name.startswith("pooler.")}
    save_file(kept, tiny_copy / "model.safetensors", metadata={"format": "pt"})
    split_weights(tiny_copy)
    loaded = load_model(read_source(tiny_copy, "tests/whole")).state_dict()
    assert max(np.abs(loaded[name].numpy() - tensors[name]).max() for name in kept) < 1e-3


def test_a_transformer_in_a_folder_of_its_own_is_read_from_there(tiny_copy: Path) -> None:
    inside = tiny_copy / "0_Transformer"
    inside.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        shutil.move(tiny_copy / name, inside / name)
    shutil.move(tiny_copy / "sentence_bert_config.json", inside)
    modules(module("Transformer", "0_Transformer"), module("Pooling", "1_Pooling"))(tiny_copy)
    found = read_source(tiny_copy, "tests/whole")
    assert (found.folder, found.max_tokens) == (inside, 32)
    assert found.prompts == {"query": "query: ", "document": "passage: "}
