"""Modules after pooling, fewer dimensions, prompts and models with a Router give sentence-transformers' embeddings.

So does the float model on a device, in batches with padding.
tests/data/make_sentence_transformers.py made these models and embeddings with sentence-transformers 5.7.0.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from safetensors.numpy import load_file, save_file

from semsearch.conversion import device
from semsearch.conversion.device import DeviceModel, find_devices, work
from semsearch.conversion.graph import OPSET, add_steps, export_graph
from semsearch.engine.bundle import INDEX, check_bundle
from semsearch.engine.embedder import Embedder, TokenIds
from semsearch.engine.quantization import Embeddings, dequantize
from semsearch.engine.semantic.index import Index
from semsearch.engine.tensors import AnyArray
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.models.modules import ONNX_ACTIVATIONS, WEIGHTS_FILE, ModelError
from semsearch.indexing.models.nodes import DOMAIN
from semsearch.indexing.models.source import Source, read_source, write_tokenizer
from semsearch.indexing.vectors.device import Ids, Lengths
from semsearch.indexing.verification import verify
from tests.command_line import contents, error_line, run, summary, write_texts
from tests.conversion.test_graph import open_graph
from tests.data.make_sentence_transformers import DATA, DIMENSIONS, TEXTS, add_transformer
from tests.export_fixtures import TINY_BERT, edit_json, embed_with_transformers

MODELS = DATA / "sentence-transformers"
LEAST_COSINE, LEAST_QUANTIZED = 0.9999, 0.999  # cosine to sentence-transformers, in float32 and in 8 bit


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """A model with Normalize, Dense, LayerNorm, another Dense and Normalize after its pooling."""
    folder = Path(shutil.copytree(MODELS / "steps", tmp_path / "steps"))
    return add_transformer(folder)


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a Router: the tiny BERT for queries, its first layer for documents, each with a Dense."""
    folder = Path(shutil.copytree(MODELS / "router", tmp_path_factory.mktemp("model") / "router"))
    add_transformer(folder / "query_0_Transformer")
    add_transformer(folder / "document_0_Transformer", layers=1)
    return folder


def expected(name: str, kind: str) -> Embeddings:
    """Return the unit embeddings that sentence-transformers has for TEXTS."""
    return np.array(json.loads((MODELS / name / "embeddings.json").read_bytes())[kind], np.float32)


def embed(embedder: Embedder, role: str = "") -> Embeddings:
    return embedder.embed(embedder.tokenize(list(TEXTS), role))


def embed_on_device(source: Source, folder: Path, role: str = "document") -> Embeddings:
    """Return the embeddings of TEXTS by the float model, in one batch with padding."""
    write_tokenizer(source, folder / "tokenizer.txt")
    tokenizer = read_tokenizer(folder / "tokenizer.txt")
    tokenizer.enable_truncation(source.max_tokens)
    prompt = source.prompts.get(role, "")
    return embed_batch(source, [encoding.ids for encoding in tokenizer.encode_batch([prompt + text for text in TEXTS])])


def embed_batch(source: Source, tokens: Sequence[Sequence[int]]) -> Embeddings:
    """Return the embeddings of texts in one batch, in the texts' order."""
    order = sorted(range(len(tokens)), key=lambda row: -len(tokens[row]))
    found = np.empty((len(tokens), source.dim), np.float32)
    found[order] = embed_sorted(DeviceModel(source, "float32", "cpu"), [tokens[row] for row in order])
    return found


def embed_sorted(model: DeviceModel, tokens: Sequence[Sequence[int]]) -> Embeddings:
    """Return the embeddings of texts, longest first."""
    return np.asarray(model.embed(np.concatenate(tokens).astype(np.int32), np.array([*map(len, tokens)])), np.float32)


def least_cosine(found: Embeddings, stated: Embeddings) -> float:
    return float((found * stated).sum(axis=1).min())


@pytest.mark.parametrize(("dimensions", "kind"), [(None, "all"), (DIMENSIONS, "first")])
def test_modules_after_pooling_give_the_embeddings_of_sentence_transformers(
    steps: Path, tmp_path: Path, dimensions: int | None, kind: str
) -> None:
    source = read_source(steps, "steps", dimensions=dimensions)
    assert [step.kind for step in source.steps] == ["Normalize", "Dense", "LayerNorm", "Dense"]
    assert (source.full_dim, source.dim) == (40, dimensions or 40)
    exact = open_graph(export_graph(source, tmp_path / "work"), source, tmp_path / "work")
    for found in (embed(exact), embed_on_device(source, tmp_path)):
        assert least_cosine(found, expected("steps", kind)) >= LEAST_COSINE


def test_a_dropout_is_left_out(steps: Path) -> None:
    kinds = ["Transformer", "Pooling", "Normalize", "Dense", "LayerNorm", "5_Dense", "Normalize"]
    write_modules(steps, *kinds)
    plain = read_source(steps, "steps")
    write_modules(steps, *kinds[:4], "Dropout", *kinds[4:], "Dropout")
    assert read_source(steps, "steps") == plain


@pytest.mark.parametrize("activation", ONNX_ACTIVATIONS)
def test_each_activation_equals_that_of_torch(steps: Path, activation: str) -> None:
    import torch

    package = "linear" if activation == "Identity" else "activation"
    edit_json(steps / "3_Dense" / "config.json", activation_function=f"torch.nn.modules.{package}.{activation}")
    write_modules(steps, "Transformer", "Pooling", "Dense")
    source = read_source(steps, "steps", pooling="cls")
    graph = helper.make_graph([], "steps", [helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["n", 32])], [])
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    result = add_steps(model, source, "pooled")
    model.graph.output.append(helper.make_tensor_value_info(result, TensorProto.FLOAT, ["n", 48]))

    pooled = np.random.default_rng(7).normal(0, 3, (50, 32)).astype(np.float32)
    (found,) = ort.InferenceSession(model.SerializeToString()).run(None, {"pooled": pooled})
    tensors = {name: torch.from_numpy(each) for name, each in load_file(source.steps[0].folder / WEIGHTS_FILE).items()}
    product = torch.from_numpy(pooled) @ tensors["linear.weight"].T + tensors["linear.bias"]
    np.testing.assert_allclose(found, getattr(torch.nn, activation)()(product).numpy(), atol=1e-5)


def write_modules(folder: Path, *kinds: str) -> None:
    """Write a modules.json with the modules of the model `steps`; 5_Dense is its second Dense."""
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Dense": "3_Dense", "LayerNorm": "4_LayerNorm"}
    modules = [
        {"type": f"sentence_transformers.models.{kind.removeprefix('5_')}", "path": paths.get(kind, kind)}
        for kind in kinds
    ]
    (folder / "modules.json").write_text(json.dumps(modules))


@pytest.mark.parametrize(
    "changes",
    [
        {"activation_function": "torch.nn.modules.activation.SiLU"},
        {"activation_function": "my.Tanh"},
        {"module_input_name": "token_embeddings"},
        {"use_residual": True},
    ],
)
def test_a_dense_that_cannot_be_exported_is_refused(steps: Path, changes: dict[str, Any]) -> None:
    edit_json(steps / "3_Dense" / "config.json", **changes)
    with pytest.raises(ModelError, match=r"3_Dense: found a Dense with .*; expected an activation of torch\.nn"):
        read_source(steps, "steps")


def test_a_dense_without_a_stated_activation_has_tanh(steps: Path) -> None:
    edit_json(steps / "3_Dense" / "config.json", activation_function=None)
    assert read_source(steps, "steps").steps[1].activation == "Tanh"


def test_a_mean_of_another_length_is_refused_before_a_module(steps: Path) -> None:
    mode = {"word_embedding_dimension": 32, "pooling_mode_mean_sqrt_len_tokens": True}
    (steps / "1_Pooling" / "config.json").write_text(json.dumps(mode))
    with pytest.raises(ModelError, match="asks for pooling_mode_mean_sqrt_len_tokens, include_prompt True; expected"):
        read_source(steps, "steps")


def test_the_checksum_covers_the_weights_of_all_modules(steps: Path) -> None:
    before = read_source(steps, "steps").weights_sha256
    path = steps / "5_Dense" / "model.safetensors"
    save_file({name: tensor * 2 for name, tensor in load_file(path).items()}, path)
    assert read_source(steps, "steps").weights_sha256 != before


def test_more_dimensions_than_the_model_has_are_refused(steps: Path) -> None:
    assert read_source(steps, "steps", dimensions=40).dim == 40
    with pytest.raises(ModelError, match="--dimensions: found 41, expected at most 40"):
        read_source(steps, "steps", dimensions=41)


def test_stated_dimensions_and_prompts_are_kept(steps: Path, calibration: Path, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    options = ["--dimensions", DIMENSIONS, "--query-prompt", "ask: ", "--document-prompt", "read: "]
    corpus = write_texts(tmp_path / "texts.csv", list(TEXTS))
    done = run("index", corpus, "--model", steps, *options, "--calibration", calibration, "--out", out, "--verbose")
    assert done.code == 0
    assert summary(done, "model").startswith("steps, 16 of 40 dimensions, mean pooling")
    model = check_bundle(out).model
    assert (model.dim, model.full_dim) == (16, 40)
    assert model.prompts == {"query": "ask: ", "document": "read: "}
    assert least_cosine(embed(Embedder.open(out, model)), expected("steps", "first")) >= LEAST_QUANTIZED
    source = read_source(steps, "steps", dimensions=16, prompts={"document": "read: "})
    assert least_cosine(stored(out), embed_on_device(source, tmp_path)) >= LEAST_QUANTIZED
    assert run("verify", out, "--model", steps).code == 0  # 16 values of the original model too
    assert run("index", corpus, "--out", out).code == 0
    assert check_bundle(out).model == model


def test_a_prompt_can_be_replaced_and_left_out(router: Path) -> None:
    tiny = DATA / "tiny-bert"
    assert read_source(tiny, "t", prompts={"query": "q: ", "document": None}).prompts == {
        "query": "q: ",
        "document": "passage: ",
    }
    assert read_source(tiny, "t", prompts={"query": "", "document": ""}).prompts == {}
    found = read_source(router, "t", prompts={"document": "d: "})
    assert found.unused_prompts == ["document"]
    assert found.documents is not None
    assert (found.prompts, found.documents.prompts) == ({"query": "query: "}, {"document": "d: "})


def stored(bundle: Path) -> Embeddings:
    """Return the embeddings in a bundle's index, in the order of the corpus."""
    index = Index.open(bundle / INDEX, check_bundle(bundle).corpus.stages)
    return dequantize(*index.codes_of(np.arange(len(index))))


@pytest.fixture(scope="module")
def routed(router: Path, calibration: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of TEXTS by the model with a Router."""
    folder = tmp_path_factory.mktemp("routed")
    corpus, bundle = write_texts(folder / "texts.csv", list(TEXTS)), folder / "bundle"
    done = run("index", corpus, "--model", router, "--calibration", calibration, "--out", bundle, "--verbose")
    assert done.code == 0, done.err
    assert "another model for the passages" in done.out
    assert summary(done, "prompts") == '"query: " for queries, "passage: " for passages'
    return bundle


def test_a_router_embeds_queries_and_passages_apart(router: Path, routed: Path, tmp_path: Path) -> None:
    query = read_source(router, "router")
    assert query.documents is not None
    for source, role in ((query, "query"), (query.documents, "document")):
        assert least_cosine(embed_on_device(source, tmp_path, role), expected("router", role)) >= LEAST_COSINE
    model = check_bundle(routed).model
    assert model.prompts == {"query": "query: "}
    assert least_cosine(embed(Embedder.open(routed, model), "query"), expected("router", "query")) >= LEAST_QUANTIZED
    assert least_cosine(stored(routed), expected("router", "document")) >= LEAST_QUANTIZED
    assert [path.name for path in routed.iterdir() if path.is_dir()] == []


def test_with_a_dense_a_text_embeds_the_same_alone_and_in_a_batch(routed: Path, corpus: Corpus) -> None:
    embedder = Embedder.open(routed, check_bundle(routed).model)
    same_length = [TokenIds([*text.ids[:9], text.ids[-1]], True) for text in embedder.tokenize(corpus.texts[:7])]
    alone = np.concatenate([embedder.embed([text]) for text in same_length])
    np.testing.assert_array_equal(embedder.embed(same_length), alone)


def test_a_bundle_of_a_router_is_verified_without_its_passage_model(router: Path, routed: Path) -> None:
    checks = list(verify(routed))
    assert all(check.passed for check in checks)
    assert not any("rows to their texts" in check.name for check in checks)
    assert any(check.name.startswith("recall@10") for check in checks)
    assert run("verify", routed, "--model", router).code == 0


def test_new_texts_for_a_router_need_the_model_again(
    router: Path, routed: Path, calibration: Path, tmp_path: Path
) -> None:
    before = contents(routed)
    corpus = write_texts(tmp_path / "more.csv", [*TEXTS, "the tortoise"])
    alone = run("index", corpus, "--update", routed, "--out", tmp_path / "out")
    assert error_line(alone).startswith(f"error: {routed}: holds the model for queries of router, and its passages")
    assert "state it again with --model" in error_line(alone)
    assert error_line(run("index", corpus, "--out", routed)) == error_line(alone)
    assert contents(routed) == before

    options = ["--calibration", calibration, "--out", tmp_path / "out", "--verbose"]
    done = run("index", corpus, "--model", router, "--update", routed, *options)
    assert (done.code, done.err) == (0, "")
    assert summary(done, "embedded") == f"1 texts, {len(TEXTS)} rows taken over from the older index"
    np.testing.assert_array_equal(stored(tmp_path / "out")[: len(TEXTS)], stored(routed))


def test_a_router_without_a_route_for_documents_is_refused(router: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(router, tmp_path / "router"))
    edit_json(folder / "router_config.json", structure={"query": []})
    with pytest.raises(ModelError, match=r"router: cannot be read as a model .*KeyError: 'document'"):
        read_source(folder, "router")


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_a_padded_batch_embeds_like_texts_alone(tiny_source: Source, tiny_tokens: list[TokenIds], pooling: str) -> None:
    tokens = [text.ids for text in tiny_tokens[::9]]
    assert len(set(map(len, tokens))) > 5
    found = embed_batch(replace(tiny_source, pooling=pooling), tokens)
    np.testing.assert_allclose(found, embed_with_transformers(TINY_BERT, tokens, pooling, batch=1), atol=1e-5)


class SmallDevice(DeviceModel):
    """A device whose memory is full at this number of tokens."""

    most = 200

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.batches: list[int] = []  # numbers of texts

    def _run(self, ids: Ids, lengths: Lengths) -> AnyArray:
        import torch

        if len(lengths) * lengths[0] > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.batches.append(len(lengths))
        return super()._run(ids, lengths)


def test_when_memory_runs_out_a_batch_is_halved_and_stays_small(tiny_source: Source) -> None:
    small = SmallDevice(tiny_source, "float32", "cpu")
    texts = [range(2, 22)] * 30
    found = embed_sorted(small, texts)
    np.testing.assert_allclose(found, embed_sorted(DeviceModel(tiny_source, "float32", "cpu"), texts), atol=1e-6)
    assert small.batches == [7, 7, 7, 7, 2]  # 600 tokens failed, then 300; 150 are 7 texts
    small.batches.clear()
    embed_sorted(small, texts)
    assert small.batches == [7, 7, 7, 7, 2]
    small.most = 19
    with pytest.raises(ModelError, match="memory runs out with one text of 20 tokens; expected room for it"):
        embed_sorted(small, texts)


def test_values_that_are_not_finite_are_refused(tiny_source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceModel, "_run", lambda self, ids, lengths: np.full((len(lengths), 2), np.nan))
    with pytest.raises(ModelError, match="not finite; expected numbers; choose --dtype float32"):
        embed_sorted(DeviceModel(tiny_source, "float32", "cpu"), [[2, 3]])


def test_without_pytorch_auto_is_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("semsearch.conversion.device.find_spec", lambda name: None)
    assert find_devices("auto") == {"cpu": "cpu"}


def test_cuda_means_all_gpus_and_auto_prefers_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    assert find_devices("cpu") == {"cpu": "cpu"}
    with pytest.raises(ModelError, match=r"--device cuda: PyTorch .* sees .*cpu; expected one of these"):
        find_devices("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: f"card {number}")
    assert find_devices("cuda") == find_devices("auto") == {"cuda:0": "card 0", "cuda:1": "card 1"}
    assert find_devices("cuda:1") == {"cuda:1": "card 1"}
    with pytest.raises(ModelError, match="sees cuda:0, cuda:1, "):
        find_devices("cuda:2")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_devices("mps") == {"mps": "mps"}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert work("find", "auto") == {"mps": "mps"}


def test_a_worker_loads_the_model_of_a_device_once(tiny_source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_opened", {})
    ids, lengths = np.array([2, 3, 2], np.int32), np.array([2, 1])
    found = [work("embed", tiny_source, "float32", "cpu", ids, lengths) for _ in range(2)]
    assert list(device._opened) == ["cpu"]
    model = device._opened["cpu"]
    assert work("embed", tiny_source, "float32", "cpu", ids, lengths).shape == (2, tiny_source.dim)
    assert device._opened["cpu"] is model
    np.testing.assert_array_equal(found[0], found[1])
