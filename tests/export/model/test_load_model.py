"""A checkpoint that does not hold just the model's tensors is refused: transformers would fill in random ones."""

import shutil
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from export.model.load_model import load_model
from export.model.source.model_files import ModelError
from export.model.source.source import read_source
from tests.export.conftest import TINY_BERT, edit_json, split_weights

Tensors = dict[str, NDArray[Any]]
TENSORS: Tensors = load_file(TINY_BERT / "model.safetensors")
WHOLE = (TINY_BERT / "model.safetensors").read_bytes()
WORDS = "embeddings.word_embeddings.weight"
READ = [name for name in TENSORS if not name.startswith("pooler.")]
LAST = "encoder.layer.1.output.dense.weight"


def write(folder: Path, tensors: Tensors) -> Path:
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def load(folder: Path) -> Tensors:
    """Return the tensors of the model in the folder, once its checkpoint was found whole."""
    return {name: tensor.numpy() for name, tensor in load_model(read_source(folder, "t")).state_dict().items()}


def refusal(folder: Path) -> str:
    """Return the one line with which the checkpoint in the folder is refused."""
    source = read_source(folder, "tests/broken")
    with pytest.raises(ModelError) as caught:
        load_model(source)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(folder))
    assert " expected " in message
    return message


def test_a_whole_checkpoint_is_loaded_as_it_is() -> None:
    loaded = load(TINY_BERT)
    assert all(np.array_equal(loaded[name], tensor) for name, tensor in TENSORS.items())


# Every tensor


@pytest.mark.parametrize("name", [WORDS, LAST])
def test_one_tensor_that_is_missing_renamed_or_of_another_shape_is_named(tiny_copy: Path, name: str) -> None:
    tensor = TENSORS[name]
    others = {other: tensor for other, tensor in TENSORS.items() if other != name}
    shapes = f"{[2 * len(tensor), *tensor.shape[1:]]} instead of {list(tensor.shape)}"
    for tensors, found in [
        (others, f"1 missing ({name}); expected exactly the tensors of the bert model"),
        (others | {f"x.{name}": tensor}, f"1 missing ({name}), 1 unexpected (x.{name}); expected"),
        (others | {name: np.concatenate([tensor, tensor])}, f"1 of another shape ({name} {shapes}); expected"),
    ]:
        write(tiny_copy, tensors)
        assert f"model.safetensors: {found}" in refusal(tiny_copy)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [WORDS, LAST, "pooler.dense.bias"])
def test_a_checkpoint_with_a_number_that_is_not_finite_is_refused(tiny_copy: Path, name: str, value: float) -> None:
    tensor = TENSORS[name].copy()
    tensor.flat[-1] = value
    write(tiny_copy, TENSORS | {name: tensor})
    assert f"model.safetensors: NaN or infinity in 1 tensors ({name}); expected finite numbers" in refusal(tiny_copy)


@hypothesis.given(
    dropped=st.sets(st.sampled_from(READ)),
    renamed=st.sets(st.sampled_from(READ)),
    doubled=st.sets(st.sampled_from(sorted(TENSORS))),
)
def test_only_the_unchanged_checkpoint_is_accepted(
    dropped: set[str], renamed: set[str], doubled: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    shutil.copytree(TINY_BERT, folder, dirs_exist_ok=True)
    tensors = {name: np.stack([tensor] * 2) if name in doubled else tensor for name, tensor in TENSORS.items()}
    tensors = {f"other.{name}" if name in renamed else name: tensor for name, tensor in tensors.items()}
    write(folder, {name: tensor for name, tensor in tensors.items() if name not in dropped})
    if dropped or renamed or doubled:
        refusal(folder)
    else:
        load(folder)


# What may be missing or left over


def test_the_pooler_may_be_missing_because_nothing_reads_it(tiny_copy: Path) -> None:
    write(tiny_copy, {name: tensor for name, tensor in TENSORS.items() if name in READ})
    assert np.array_equal(load(tiny_copy)[LAST], TENSORS[LAST])


HEADS = [
    "cls.predictions.transform.dense.weight",
    "cls.seq_relationship.weight",
    "lm_head.dense.weight",
    "classifier.weight",
    "qa_outputs.bias",
    "vocab_transform.weight",
    "vocab_projector.bias",
    "discriminator_predictions.dense.weight",
    "embeddings.position_ids",
]


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_heads_of_other_tasks_and_old_buffers_may_be_left_over(tiny_copy: Path, prefix: str) -> None:
    """As AutoModelForMaskedLM and the like save them, with the model's name before the names of its own tensors."""
    heads = {name: np.zeros((1, 64), np.int64 if name.endswith("_ids") else np.float32) for name in HEADS}
    write(tiny_copy, {f"{prefix}{name}": tensor for name, tensor in TENSORS.items()} | heads)
    assert np.array_equal(load(tiny_copy)[LAST], TENSORS[LAST])


def test_the_old_names_of_a_layer_norm_are_understood(tiny_copy: Path) -> None:
    write(tiny_copy, {name.replace("Norm.weight", "Norm.gamma"): tensor for name, tensor in TENSORS.items()})
    name = "embeddings.LayerNorm.weight"
    assert np.array_equal(load(tiny_copy)[name], TENSORS[name])


def test_weights_of_16_bits_are_accepted(tiny_copy: Path) -> None:
    write(tiny_copy, {name: tensor.astype(np.float16) for name, tensor in TENSORS.items()})
    assert np.abs(load(tiny_copy)[LAST] - TENSORS[LAST]).max() < 1e-3


@pytest.mark.parametrize(
    ("size", "value", "found"),
    [
        ("num_hidden_layers", 1, "model.safetensors: 16 unexpected (encoder.layer.1."),
        ("num_hidden_layers", 3, "model.safetensors: 16 missing (encoder.layer.2."),
        ("vocab_size", 600, f"({WORDS} [591, 32] instead of [600, 32])"),
        ("intermediate_size", 99, "6 of another shape (encoder.layer.0.intermediate.dense.bias [64] instead of [99], "),
        ("max_position_embeddings", 65, "(embeddings.position_embeddings.weight [64, 32] instead of [65, 32])"),
        ("type_vocab_size", 1, "(embeddings.token_type_embeddings.weight [2, 32] instead of [1, 32])"),
    ],
)
def test_a_config_of_another_size_is_refused(tiny_copy: Path, size: str, value: int, found: str) -> None:
    edit_json(tiny_copy / "config.json", **{size: value})
    assert found in refusal(tiny_copy)


def test_a_checkpoint_of_another_family_is_refused(tiny_copy: Path) -> None:
    edit_json(tiny_copy / "config.json", model_type="mpnet", pad_token_id=1)
    found = refusal(tiny_copy)
    assert "missing (" in found
    assert "unexpected (" in found
    assert "expected exactly the tensors of the mpnet model" in found


def test_quantized_weights_are_refused(tiny_copy: Path) -> None:
    write(tiny_copy, TENSORS | {WORDS: TENSORS[WORDS].astype(np.int8)})
    assert f"model.safetensors: {WORDS} is of type I8, expected floating-point numbers" in refusal(tiny_copy)


# Damaged files and values


@pytest.mark.parametrize("damaged", [b"", WHOLE[:200], WHOLE[:-1], b"version https://git-lfs.github.com/spec/v1\n"])
def test_a_damaged_file_is_named(tiny_copy: Path, damaged: bytes) -> None:
    path = tiny_copy / "model.safetensors"
    path.write_bytes(damaged)
    assert f"{path}: {len(damaged)} bytes that cannot be read (SafetensorError: " in refusal(tiny_copy)


@pytest.mark.parametrize(
    "config",
    [
        {"hidden_act": "no-such-function"},
        {"intermediate_size": -4},
        {"intermediate_size": "many"},
        {"quantization_config": {"quant_method": "gptq", "bits": 4}},
    ],
)
def test_a_config_that_transformers_cannot_use_is_refused(tiny_copy: Path, config: dict[str, Any]) -> None:
    edit_json(tiny_copy / "config.json", **config)
    refusal(tiny_copy)


def test_a_model_in_shards_is_checked_as_one(tiny_copy: Path) -> None:
    _, shards = split_weights(tiny_copy)
    assert np.array_equal(load(tiny_copy)[LAST], TENSORS[LAST])
    tensors = load_file(shards[0])
    name = min(tensors)
    del tensors[name]
    save_file(tensors, shards[0], metadata={"format": "pt"})
    assert f"model.safetensors.index.json: 1 missing ({name}); expected" in refusal(tiny_copy)
