"""A tiny reranker over the words that all tests share: texts with the words of the query get a high logit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tokenizers.processors import TemplateProcessing

from semsearch.conversion.quantize import save_ort
from semsearch.engine.bundle import RERANK, RERANK_TOKENIZER, RerankInfo, describe_file, read_manifest
from semsearch.engine.tokenizer import save_tokenizer
from semsearch.indexing.bundles import write_manifest
from tests.world import DIM, make_tokenizer, word_table

MOST_TOKENS = 40  # maximum tokens of a pair


def add_reranker(bundle: Path, weight: float = 0.5) -> Path:
    """Write a reranker into a bundle, and return the bundle's folder."""
    tokenizer = make_tokenizer()
    special = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
    )
    save_tokenizer(tokenizer, bundle / RERANK_TOKENIZER)
    save_ort(make_rerank_graph(tokenizer.get_vocab_size()), bundle / RERANK)
    info = RerankInfo("tests/shared-words", None, "0" * 64, MOST_TOKENS, weight, "none")
    manifest = read_manifest(bundle)
    files = {name: describe_file(bundle / name) for name in (RERANK, RERANK_TOKENIZER)}
    write_manifest(bundle, replace(manifest, files=manifest.files | files, rerank=info))
    return bundle


def make_rerank_graph(words: int) -> ModelProto:
    """Return the graph: the sum of the query's vectors times that of the text's, divided by 100."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),  # (batch, tokens, dim)
        helper.make_node("Mul", ["attention_mask", "token_type_ids"], ["of_text"]),
        helper.make_node("Sub", ["attention_mask", "of_text"], ["of_query"]),
    ]
    for part in ("query", "text"):
        nodes += [
            helper.make_node("Cast", [f"of_{part}"], [f"{part}_mask"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", [f"{part}_mask", "axis"], [f"{part}_weights"]),
            helper.make_node("MatMul", [f"{part}_weights", "vectors"], [f"{part}_sum"]),  # (batch, 1, dim)
        ]
    nodes += [
        helper.make_node("Mul", ["query_sum", "text_sum"], ["products"]),
        helper.make_node("ReduceSum", ["products", "axes"], ["sum"], keepdims=0),
        helper.make_node("Div", ["sum", "hundred"], ["logit"]),
    ]
    constants = {
        "axis": np.array([1]),
        "axes": np.array([1, 2]),
        "hundred": np.float32(100),
        "table": word_table(words),
    }
    graph = helper.make_graph(
        nodes,
        "shared-words",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info("logit", TensorProto.FLOAT, ["batch"])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    assert word_table(words).shape[1] == DIM
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expected_logit(query: str, text: str) -> float:
    """Return the logit, computed without the graph. Both texts together have at most MOST_TOKENS tokens."""
    tokenizer = make_tokenizer()
    table = word_table(tokenizer.get_vocab_size())
    cls = tokenizer.token_to_id("[CLS]")
    of_query = tokenizer.encode(query).ids
    of_text = [id for id in tokenizer.encode(text).ids if id != cls]
    return float(table[of_query].sum(axis=0) @ table[of_text].sum(axis=0) / 100)
