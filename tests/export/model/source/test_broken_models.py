"""A model whose files are damaged or contradict each other is refused by name, before any work is done."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from export.model.source.model_files import ModelError
from export.model.source.source import Source, read_source
from tests.export.conftest import edit_json, split_weights


def refusal(folder: Path, **changes: Any) -> str:
    """Return the one line with which the model in the folder is refused."""
    with pytest.raises(ModelError) as caught:
        read_source(folder, "tests/broken", **changes)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(folder))
    assert "expected" in message
    return message


def accepted(folder: Path) -> Source:
    return read_source(folder, "tests/whole")


# config.json


@pytest.mark.parametrize("family", ["t5", "gpt2", "clip", "no-such-model", None, 3, ["bert"]])
def test_a_model_of_another_family_is_refused(tiny_copy: Path, family: object) -> None:
    edit_json(tiny_copy / "config.json", model_type=family)
    found = refusal(tiny_copy)
    assert f"config.json: model_type is {family}, expected a model of the BERT family (albert, bert, " in found


@pytest.mark.parametrize("family", ["bert", "new"])
def test_a_model_with_code_of_its_own_is_refused(tiny_copy: Path, family: str) -> None:
    edit_json(tiny_copy / "config.json", model_type=family, auto_map={"AutoModel": "modeling.NewModel"})
    found = refusal(tiny_copy)
    assert 'config.json: auto_map names Python code that comes with the model ({"AutoModel": "modeling.' in found
    assert "the export runs no code of others: choose another model" in found


SIZES = ["hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings", "vocab_size"]


WRONG_SIZES: list[object] = [-1, 2.5, 32.0, "32", True, [32], {}]


@pytest.mark.parametrize(
    ("size", "value"), [*((size, 0) for size in SIZES), *(("hidden_size", value) for value in WRONG_SIZES)]
)
def test_a_size_that_is_not_a_whole_number_above_zero_is_refused(tiny_copy: Path, size: str, value: object) -> None:
    edit_json(tiny_copy / "config.json", **{size: value})
    assert f"config.json: {size} is {json.dumps(value)}, expected a whole number from 1 up" in refusal(tiny_copy)


@pytest.mark.parametrize("size", SIZES)
def test_a_size_that_is_missing_is_refused(tiny_copy: Path, size: str) -> None:
    edit_json(tiny_copy / "config.json", **{size: None})
    assert re.search(r"config\.json: has no \w+; expected a model of the BERT family", refusal(tiny_copy))


def test_heads_that_do_not_divide_the_hidden_size_are_refused(tiny_copy: Path) -> None:
    edit_json(tiny_copy / "config.json", num_attention_heads=5)
    assert "config.json: a hidden size of 32 and 5 attention heads, expected a hidden size that" in refusal(tiny_copy)


@pytest.mark.parametrize(("padding", "found"), [(63, "more than the 64"), (-1, "from 0 up"), ("1", "from 0 up")])
def test_a_padding_id_that_leaves_no_positions_is_refused(tiny_copy: Path, padding: object, found: str) -> None:
    edit_json(tiny_copy / "config.json", model_type="roberta", pad_token_id=padding)
    assert found in refusal(tiny_copy)


# Length


@pytest.mark.parametrize("value", ["abc", 0])
@pytest.mark.parametrize(
    ("name", "key"), [("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")]
)
def test_a_length_that_is_not_a_whole_number_above_zero_is_refused(
    tiny_copy: Path, name: str, key: str, value: object
) -> None:
    (tiny_copy / "sentence_bert_config.json").write_text("{}")
    edit_json(tiny_copy / name, **{key: value})
    assert f"{name}: {key} is {json.dumps(value)}, expected a whole number from 1 up" in refusal(tiny_copy)


def test_a_length_of_null_is_not_stated(tiny_copy: Path) -> None:
    (tiny_copy / "sentence_bert_config.json").write_text('{"max_seq_length": null}')
    assert accepted(tiny_copy).max_tokens == 64


@pytest.mark.parametrize("value", ["false", 1, None])
def test_lower_casing_that_is_neither_true_nor_false_is_refused(tiny_copy: Path, value: object) -> None:
    (tiny_copy / "sentence_bert_config.json").write_text(json.dumps({"do_lower_case": value}))
    assert f"do_lower_case is {value!r}, expected true or false" in refusal(tiny_copy)


# Modules and pooling


def module(kind: str, path: object = "") -> dict[str, object]:
    return {"type": f"sentence_transformers.models.{kind}", "path": path}


def write_modules(folder: Path, *modules: object) -> None:
    (folder / "modules.json").write_text(json.dumps(modules))


@pytest.mark.parametrize("path", ["/etc", "a/../../b", "..", "\\etc", "..\\other"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_module_outside_of_the_models_folder_is_refused(tiny_copy: Path, path: str, place: int) -> None:
    modules = [module("Transformer"), module("Pooling", "1_Pooling")]
    modules[place]["path"] = path
    write_modules(tiny_copy, *modules)
    assert f"modules.json: the path {path!r} leaves the model's folder, expected a folder inside" in refusal(tiny_copy)


@pytest.mark.parametrize(
    "kinds",
    [
        (),
        ("Pooling",),
        ("Pooling", "Transformer"),
        ("Transformer", "Normalize", "Pooling"),
        ("Transformer", "Pooling", "Pooling"),
        ("Transformer", "Dense", "Pooling"),
        ("Transformer", "Pooling", "LSTM", "Normalize"),
    ],
)
def test_modules_in_another_order_or_number_are_refused(tiny_copy: Path, kinds: tuple[str, ...]) -> None:
    write_modules(tiny_copy, *(module(kind, "1_Pooling") for kind in kinds))
    assert f"modules.json: lists {', '.join(kinds) or 'no modules'}; expected Transformer" in refusal(tiny_copy)


def test_a_class_of_another_package_is_refused_even_if_it_is_called_transformer(tiny_copy: Path) -> None:
    write_modules(tiny_copy, {"type": "custom_st.Transformer", "path": ""}, module("Pooling", "1_Pooling"))
    assert "modules.json: lists custom_st.Transformer, which is code of its own" in refusal(tiny_copy)


@pytest.mark.parametrize(
    "entry", [{"idx": 0}, "Transformer", None, module("Transformer", None), {"type": 1, "path": ""}]
)
def test_a_module_without_type_and_path_is_refused(tiny_copy: Path, entry: object) -> None:
    write_modules(tiny_copy, entry)
    assert "expected a module with type and path" in refusal(tiny_copy)


def test_a_transformer_in_a_folder_of_its_own_is_read_from_there(tiny_copy: Path) -> None:
    inside = tiny_copy / "0_Transformer"
    inside.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        shutil.move(tiny_copy / name, inside / name)
    shutil.move(tiny_copy / "sentence_bert_config.json", inside)
    write_modules(tiny_copy, module("Transformer", "0_Transformer"), module("Pooling", "1_Pooling"))
    found = accepted(tiny_copy)
    assert (found.folder, found.max_tokens) == (inside, 32)
    assert found.prompts == {"query": "query: ", "document": "passage: "}


@pytest.mark.parametrize("key", ["word_embedding_dimension", "embedding_dimension"])
@pytest.mark.parametrize(("value", "found"), [(64, "is 64, expected 32"), ("32", 'is "32", expected a whole number')])
def test_a_pooling_of_another_dimension_is_refused(tiny_copy: Path, key: str, value: object, found: str) -> None:
    edit_json(tiny_copy / "1_Pooling" / "config.json", **{key: value})
    assert f"1_Pooling/config.json: {key} {found}" in refusal(tiny_copy)


def test_a_pooling_that_is_switched_on_by_a_text_is_refused(tiny_copy: Path) -> None:
    edit_json(tiny_copy / "1_Pooling" / "config.json", pooling_mode_cls_token="false")
    assert "pooling_mode_cls_token is 'false', expected true or false" in refusal(tiny_copy)


# Prompts


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"prompts": ["query: "]}, "prompts is a list, expected texts by name"),
        ({"prompts": []}, "prompts is a list, expected texts by name"),
        ({"prompts": "query: "}, "prompts is a str, expected texts by name"),
        ({"prompts": {"query": 5}}, "the prompt 'query' is 5, expected texts by name"),
        ({"prompts": {"query": None}}, "the prompt 'query' is None, expected texts by name"),
        ({"prompts": {"sts": {"text": "S: "}}}, "the prompt 'sts' is {'text': 'S: '}, expected texts by name"),
        ({"prompts": {"query": "\ud800"}}, r"the prompt 'query' is '\ud800', which is not Unicode text; expected"),
        ({"prompts": {"query": "Q: "}, "default_prompt_name": "qeury"}, "is 'qeury', expected null or one of query"),
        ({"default_prompt_name": "query"}, "is 'query', expected null or one of no prompts"),
        ({"prompts": {"query": "Q: "}, "default_prompt_name": 1}, "default_prompt_name is 1, expected null or one of"),
        ({"prompts": {"query": "Q: "}, "default_prompt_name": ["query"]}, "default_prompt_name is ['query'], expected"),
        ({"prompts": {"": "Q: "}, "default_prompt_name": "query"}, "default_prompt_name is 'query', expected null"),
    ],
)
def test_prompts_that_are_not_texts_by_name_are_refused(tiny_copy: Path, config: dict[str, Any], found: str) -> None:
    (tiny_copy / "config_sentence_transformers.json").write_text(json.dumps(config))
    assert f"{tiny_copy / 'config_sentence_transformers.json'}: " in refusal(tiny_copy)
    assert found in refusal(tiny_copy)


# Files that cannot be read


JSON_FILES = [
    *("config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
    "1_Pooling/config.json",
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, content) for name in JSON_FILES for content in (b"{", b"3")),
        *(("config.json", content) for content in (b"", b"\xff\xfe\xfd", b"[" * 100_000, b"[]")),
    ],
)
def test_a_file_that_is_not_json_of_its_kind_is_named(tiny_copy: Path, name: str, content: bytes) -> None:
    (tiny_copy / name).write_bytes(content)
    assert refusal(tiny_copy).startswith(f"{tiny_copy / name}: ")


def test_a_folder_in_the_place_of_a_file_is_named(tiny_copy: Path) -> None:
    (tiny_copy / "config.json").unlink()
    (tiny_copy / "config.json").mkdir()
    found = refusal(tiny_copy)
    assert f"{tiny_copy / 'config.json'}: cannot be read (Is a directory); expected a file" in found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("config.json", "config.json: is missing"),
        ("tokenizer.json", "has no tokenizer.json"),
        ("model.safetensors", "has no model.safetensors; expected weights in safetensors"),
        ("1_Pooling/config.json", "1_Pooling/config.json: is missing"),
    ],
)
def test_a_missing_file_is_named(tiny_copy: Path, name: str, message: str) -> None:
    (tiny_copy / name).unlink()
    assert message in refusal(tiny_copy)


# Weights


def test_a_missing_shard_is_named(tiny_copy: Path) -> None:
    index, shards = split_weights(tiny_copy)
    shards[1].unlink()
    assert f"{index}: lists 2 files, 1 of them missing ({shards[1].name})" in refusal(tiny_copy)


def outside(weight_map: dict[str, Any]) -> object:
    return dict.fromkeys(weight_map, "../model.safetensors")


@pytest.mark.parametrize("change", [outside, list, lambda _: {}, lambda _: None, lambda _: {"a": 5}])
def test_an_index_of_shards_must_name_files_in_its_own_folder(
    tiny_copy: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    index, _ = split_weights(tiny_copy)
    index.write_text(json.dumps({"weight_map": change(json.loads(index.read_text())["weight_map"])}))
    assert f"{index}: has no weight_map from tensors to files beside it" in refusal(tiny_copy)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "tf_model.h5", "flax_model.msgpack", "rust_model.ot"])
def test_a_model_that_has_only_weights_that_can_run_code_is_refused(tiny_copy: Path, name: str) -> None:
    (tiny_copy / "model.safetensors").rename(tiny_copy / name)
    assert f"has no model.safetensors, only {name}; expected weights in safetensors" in refusal(tiny_copy)


def test_other_safetensors_files_are_ignored_as_weights(tiny_copy: Path) -> None:
    before = accepted(tiny_copy).weights_sha256
    shutil.copy(tiny_copy / "model.safetensors", tiny_copy / "adapter_model.safetensors")
    assert accepted(tiny_copy).weights_sha256 == before
    (tiny_copy / "model.safetensors").unlink()
    assert "has no model.safetensors" in refusal(tiny_copy)
