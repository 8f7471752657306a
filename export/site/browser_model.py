"""The model that runs in the browser: the bundle's own 8-bit weights, with activations in float32.

The bundle's graph rounds activations to integers. Whether a value is rounded up or down can depend on the order of a
float sum, which differs between processors. WebAssembly would embed some texts slightly differently than the function.
This graph rounds nothing: it embeds a text the same natively and in a browser, up to the last digits of float32. It is
made from model.ort, because ONNX Runtime writes a graph that it has read as ONNX too: no bundle holds a second model,
and PyTorch is not needed.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import onnxruntime as ort
from onnx import ModelProto, NodeProto, TensorProto
from onnxruntime.transformers.onnx_model import OnnxModel

from export.model.graph import DOMAIN, add_node
from export.model.quantize import sort_nodes
from export.model.source import RECIPE
from export.site.files import find_program
from function.engine.bundle import MODEL, TOKENIZER, BundleError, ModelInfo
from function.engine.keyword.analyzer import find_codes, find_stemmer
from function.engine.tokenizer import read_tokenizer

STEMS = """
const { stem } = require(process.argv[1]);
const words = JSON.parse(require("fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(words.map((word) => stem(word))));
"""


def folded_letters() -> dict[str, str]:
    """Return the letters whose case folding is not their lower case, with their case folding."""
    letters = map(chr, range(sys.maxunicode + 1))
    return {letter: letter.casefold() for letter in letters if letter.casefold() != letter.lower()}


def different_stems(texts: Iterable[str], stemmer: Path) -> dict[str, str]:
    """Return the words of the texts for which the stemmer, a JavaScript module, and PyStemmer have different stems.

    Each comes with the stem that PyStemmer returns. Raises PackagesError if Node.js is missing.
    """
    stem = find_stemmer("english")
    assert stem is not None
    found = {word for text in texts for _, words in find_codes(text) for word in words if word.isalpha()}
    words = sorted(found)
    node = [find_program("node"), "-e", STEMS, str(stemmer.resolve())]
    done = subprocess.run(node, input=json.dumps(words), capture_output=True, text=True, check=True)  # noqa: S603
    pairs = zip(words, json.loads(done.stdout), strict=True)
    return {word: expected for word, other in pairs if (expected := stem(word)) != other}


MODELS = "use a BERT model with a WordPiece tokenizer, such as all-MiniLM-L6-v2, or serve this bundle with the function"
BERT = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}


def read_wordpiece(bundle: Path, model: ModelInfo) -> tuple[dict[str, Any], list[str]]:
    """Return the options of the bundle's tokenizer for the browser, and its tokens in the order of their ids.

    Raises BundleError if the tokenizer is not BERT's kind of WordPiece.
    """
    path = bundle / TOKENIZER
    first, *vocabulary = path.read_text(encoding="utf-8").split("\n")
    described = json.loads(first)
    for part, expected in BERT.items():
        found = (described[part] or {}).get("type")
        if found != expected:
            raise BundleError(f"{path}: its {part} is {found}, expected {expected}; {MODELS}")
    if not vocabulary:
        raise BundleError(f"{path}: ids of its tokens are not consecutive, expected 0, 1, 2 and so on; {MODELS}")
    added = described["added_tokens"]
    for token in added:
        if token["single_word"] or token["normalized"]:
            raise BundleError(f"{path}: the added token {token['content']!r} depends on the text around it; {MODELS}")
    pieces, normalizer = described["model"], described["normalizer"]
    encoding = read_tokenizer(path).encode("a")
    plain = encoding.special_tokens_mask.index(0)
    strip_accents = normalizer["strip_accents"]
    options = {
        "unknown": pieces["unk_token"],
        "prefix": pieces["continuing_subword_prefix"],
        "longest": pieces["max_input_chars_per_word"],
        "cleans": normalizer["clean_text"],
        "splits_chinese": normalizer["handle_chinese_chars"],
        "strips_accents": normalizer["lowercase"] if strip_accents is None else strip_accents,
        "lowercases": normalizer["lowercase"],
        "added": {token["content"]: token["id"] for token in added},
        "before": encoding.ids[:plain],
        "after": encoding.ids[plain + 1 :],
        "max_tokens": model.max_tokens,
        "prompt": model.prompts.get("query", ""),
    }
    return options, vocabulary


PRODUCT = "MatMulIntegerToFloat"
DOMAINS = ("", DOMAIN)  # domains of the operators that the graph uses; ONNX Runtime lists all that it knows


def make_browser_model(bundle: Path) -> ModelProto:
    """Return the graph for the browser: input_ids and attention_mask, (n, tokens) int64, to embeddings, (n, dim).

    Raises BundleError if the bundle's model has other products than `quantize_graph` makes.
    """
    model = _read_ort(bundle / MODEL)
    graph = model.graph
    makers = {output: node for node in graph.node for output in node.output}
    sums = [node for node in graph.node if all(_is_product(makers.get(name)) for name in node.input)]
    for total in [node for node in sums if node.op_type == "Add"]:
        _replace_sum(model, total, makers)
    sort_nodes(model)
    OnnxModel(model).prune_graph()
    if any(node.op_type == PRODUCT for node in graph.node):
        raise BundleError(f"{bundle / MODEL}: holds another {PRODUCT} than {RECIPE} has; run `python -m export` again")
    return model


def _read_ort(path: Path) -> ModelProto:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.save_model_format", "ONNX")
    with TemporaryDirectory() as folder:
        options.optimized_model_filepath = f"{folder}/model.onnx"
        ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        model: ModelProto = onnx.load(options.optimized_model_filepath)
    for opset in [opset for opset in model.opset_import if opset.domain not in DOMAINS]:
        model.opset_import.remove(opset)
    return model


def _is_product(node: NodeProto | None) -> bool:
    return node is not None and node.op_type == PRODUCT


def _replace_sum(model: ModelProto, total: NodeProto, makers: dict[str, NodeProto]) -> None:
    """Replace the sum of the products of an activation's high and low half by a product with the activation itself."""
    high, low = (makers[name] for name in total.input)
    activation, weight, scales = makers[high.input[0]].input[0], high.input[1], high.input[3]
    assert (low.input[1], low.input[3]) == (weight, scales)
    result = total.output[0]
    model.graph.node.remove(total)
    values = add_node(model, "Cast", [weight], f"{weight}/float", attributes={"to": TensorProto.FLOAT})
    weights = add_node(model, "Mul", [values, scales], f"{weight}/scaled")
    bias = high.input[6] if len(high.input) > 6 else ""
    product = add_node(model, "MatMul", [activation, weights], f"{result}/product" if bias else result)
    if bias:
        add_node(model, "Add", [product, bias], result)
