"""The 8-bit graph stays close to the float32 graph, gives the same in any batch, and fits 16-bit sums."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from flatbuffers.number_types import Int8Flags, Uint32Flags
from flatbuffers.table import Table
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from semsearch.conversion import quantize as quantization
from semsearch.conversion.calibration import round_weights
from semsearch.conversion.quantize import (
    COPIES,
    HEADROOM,
    LARGEST_ACTIVATION,
    ORT_ALIGNMENT,
    SMALLEST_TABLE,
    ZERO_POINT,
    count_copies,
    quantize_graph,
    save_ort,
    sort_operators,
    split_outliers,
)
from semsearch.engine.embedder import TokenIds, open_session
from semsearch.indexing.models.cache import CONVERSION_VERSION
from tests.conversion.test_graph import feed, run
from tests.project import ROOT

Floats = NDArray[np.float64]
INPUTS = ("input_ids", "attention_mask")


def initializers(model: ModelProto) -> dict[str, NDArray[Any]]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def count(model: ModelProto, kind: str) -> int:
    return sum(node.op_type == kind for node in model.graph.node)


def correlated_inputs(tokens: int, inputs: int) -> Floats:
    random = np.random.default_rng(7)
    mixed = random.standard_normal((tokens, 6)) @ random.standard_normal((6, inputs))
    return mixed + 0.3 * random.standard_normal((tokens, inputs))


def random_weights(inputs: int, outputs: int, seed: int = 8) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((inputs, outputs)).astype(np.float32)


def round_one_by_one(weights: NDArray[np.float32], hessian: Floats) -> Floats:
    """GPTQ as the paper first states it: round one input, correct the later ones, take it out of the inverse."""
    rest = weights.astype(np.float64)
    scales = np.abs(rest).max(axis=0) / 127
    inverse = np.linalg.inv(hessian + 0.01 * np.diag(hessian).mean() * np.eye(len(hessian)))
    codes = np.zeros_like(rest)
    for i in range(len(rest)):
        codes[i] = np.clip(np.round(rest[i] / scales), -127, 127)
        error = (rest[i] - codes[i] * scales) / inverse[i, i]
        rest[i + 1 :] -= inverse[i + 1 :, i : i + 1] * error
        inverse -= np.outer(inverse[:, i], inverse[i]) / inverse[i, i]
    return codes


@pytest.mark.parametrize("inputs", [16, 128, 300])  # within one block, just one, and over three
def test_rounding_equals_the_papers_algorithm_done_one_input_at_a_time(inputs: int) -> None:
    x, weights = correlated_inputs(1000, inputs), random_weights(inputs, 9)
    codes, _ = round_weights(weights, x.T @ x)
    expected = round_one_by_one(weights, x.T @ x)
    assert (codes == expected).mean() > 0.999  # a tie may fall either way
    assert np.abs(codes - expected).max() <= 1


# Small graphs: a look-up whose rows are the activations, then products


def lookup_graph(table: NDArray[np.float32], nodes: list[Any], outputs: dict[str, int], **weights: Any) -> ModelProto:
    """Return the graph that looks the ids up in the table as "x", then does `nodes`; outputs are names and widths."""
    first = helper.make_node("Gather", ["table", "input_ids"], ["x"])
    last = helper.make_node("Identity", ["attention_mask"], ["mask"])  # so that it is an input at all
    tensors = {"table": table, **weights}
    graph = helper.make_graph(
        [first, *nodes, last],
        "lookup",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "tokens"]) for name in INPUTS],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "tokens", width])
            for name, width in outputs.items()
        ],
        [numpy_helper.from_array(np.asarray(values, np.float32), name) for name, values in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def product(activation: str, weight: str, output: str) -> Any:
    return helper.make_node("MatMul", [activation, weight], [output])


def uniform_table(rows: int, dim: int) -> NDArray[np.float32]:
    return np.random.default_rng(9).uniform(-1, 1, (rows, dim)).astype(np.float32)


def calibration_of(rows: int) -> list[TokenIds]:
    return [TokenIds([row, (row + 1) % rows], False) for row in range(rows)]


def near(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Whether the error is what 8-bit weights leave: about half a hundredth of the values' own size."""
    return bool(np.linalg.norm(found - expected) < 0.006 * np.linalg.norm(expected))


def test_a_product_becomes_two_8_bit_products_close_to_it() -> None:
    table, weights = uniform_table(200, 24), random_weights(24, 10)
    model = lookup_graph(table, [product("x", "w", "y")], {"y": 10}, w=weights)
    before = model.SerializeToString(deterministic=True)
    quantized = quantize_graph(model, calibration_of(200))
    assert model.SerializeToString(deterministic=True) == before
    assert (count(quantized, "MatMul"), count(quantized, "MatMulIntegerToFloat")) == (0, 2)
    ids = [list(range(50)), list(range(100, 150))]
    assert near(run(quantized, feed(ids), "y")[0], table[ids] @ weights)


def test_activations_keep_14_bits() -> None:
    table = uniform_table(300, 16)
    model = lookup_graph(table, [product("x", "w", "y")], {"y": 16}, w=np.eye(16))  # 127 steps of 1 / 127: exact
    (found,) = run(quantize_graph(model, calibration_of(300)), feed([list(range(300))]), "y")
    step = np.abs(table).max() * HEADROOM / LARGEST_ACTIVATION
    assert np.abs(found[0] - table).max() <= step * 0.51


def test_products_of_one_input_are_done_as_one_and_split_again_in_their_order() -> None:
    table = uniform_table(200, 24)
    weights = {
        name: random_weights(24, width, seed) for seed, (name, width) in enumerate({"a": 8, "b": 5, "c": 12}.items())
    }
    nodes = [product("x", name, f"y_{name}") for name in weights]
    model = lookup_graph(table, nodes, {f"y_{name}": one.shape[1] for name, one in weights.items()}, **weights)
    quantized = quantize_graph(model, calibration_of(200))
    assert (count(quantized, "MatMulIntegerToFloat"), count(quantized, "Split")) == (2, 1)
    for name, one in weights.items():
        (found,) = run(quantized, feed([list(range(60))]), f"y_{name}")
        assert found.shape == (1, 60, one.shape[1])
        assert near(found[0], table[:60] @ one), name


@pytest.mark.parametrize("names", [["b", "xw"], ["xw", "b"]])
def test_a_bias_is_added_by_the_product_itself(names: list[str]) -> None:
    table, weights = uniform_table(200, 24), random_weights(24, 10)
    bias = random_weights(10, 1)[:, 0] * 9
    nodes = [product("x", "w", "xw"), helper.make_node("Add", names, ["y"])]
    quantized = quantize_graph(lookup_graph(table, nodes, {"y": 10}, w=weights, b=bias), calibration_of(200))
    assert count(quantized, "Add") == 1  # the sum of the two halves
    (found,) = run(quantized, feed([list(range(60))]), "y")
    assert near(found[0] - bias, table[:60] @ weights)


def test_an_activation_beyond_the_range_is_clipped_and_not_wrapped() -> None:
    table = uniform_table(64, 16)
    table[32:] = table[:32] * 100
    model = lookup_graph(table, [product("x", "w", "y")], {"y": 16}, w=np.eye(16))
    (found,) = run(quantize_graph(model, calibration_of(32)), feed([list(range(64))]), "y")
    largest = HEADROOM * np.abs(table[:32]).max()
    beyond = np.abs(table[32:]) > 4 * largest
    assert beyond.sum() > 300
    clipped = found[0, 32:][beyond]
    np.testing.assert_array_equal(np.sign(clipped), np.sign(table[32:][beyond]))
    assert 0.99 * largest < np.abs(clipped).min() <= np.abs(clipped).max() < 4 * largest


def test_no_pair_of_products_leaves_16_bits_whatever_the_halves_are(tiny_quantized: ModelProto) -> None:
    weights = {name: one for name, one in initializers(tiny_quantized).items() if name.endswith("/codes")}
    assert len(weights) == 8  # query, key and value as one, and three more, in two layers
    for name, codes in weights.items():
        pairs = codes.astype(np.int64).reshape(-1, 2, codes.shape[1])
        largest = (
            2 * ZERO_POINT * np.maximum(pairs.clip(min=0).sum(axis=1), -pairs.clip(max=0).sum(axis=1))
        )  # halves of all or nothing make the extremes
        assert largest.max() <= np.iinfo(np.int16).max, name


def quantized_look_up(table: NDArray[np.float32]) -> ModelProto:
    dim = table.shape[1]
    nodes = [product("x", "w", "y"), helper.make_node("Identity", ["x"], ["row"])]
    model = lookup_graph(table, nodes, {"y": 2, "row": dim}, w=random_weights(dim, 2))
    return quantize_graph(model, calibration_of(32))


def test_a_large_table_becomes_bytes_with_a_scale_a_row_and_a_small_one_stays() -> None:
    table = uniform_table(8192, 128)
    table[5] *= 100  # its own scale: the others lose nothing
    table[6] = 0
    quantized = quantized_look_up(table)
    stored = initializers(quantized)
    assert "table" not in stored
    assert (stored["table/codes"].dtype, stored["table/codes"].shape) == (np.dtype(np.int8), table.shape)
    assert stored["table/scales"].shape == (8192, 1)
    ids = [[0, 5, 6, 8191]]
    (found,) = run(quantized, feed(ids), "row")
    steps = np.abs(table[ids[0]]).max(axis=1, keepdims=True) / 127
    assert (np.abs(found[0] - table[ids[0]]) <= steps * 1.01).all()
    assert np.linalg.norm(found[0] - table[ids[0]]) < 0.01 * np.linalg.norm(table[ids[0]])
    assert not found[0, 2].any()
    small = table[:-1]
    assert small.size < SMALLEST_TABLE <= table.size
    np.testing.assert_array_equal(initializers(quantized_look_up(small))["table"], small)


# Outlier weights: their neurons are split


def with_outlier() -> NDArray[np.float32]:
    outgoing = random_weights(40, 6, seed=4)
    outgoing[7, 2] = 60
    return outgoing


def feed_forward(bias: str = "second") -> ModelProto:
    """Return a layer of 40 neurons; bias is its place in the addition, or "none"."""
    nodes = [product("x", "u", "xu"), helper.make_node("Relu", ["xu"], ["bent"]), product("bent", "d", "y")]
    weights = {"u": random_weights(12, 40), "d": with_outlier()}
    if bias != "none":
        summands = ["b", "xu"] if bias == "first" else ["xu", "b"]
        nodes[1:2] = [helper.make_node("Add", summands, ["sum"]), helper.make_node("Relu", ["sum"], ["bent"])]
        weights["b"] = random_weights(40, 1)[:, 0]
    return lookup_graph(uniform_table(30, 12), nodes, {"y": 6}, **weights)


def assert_computes_the_same_when_split(model: ModelProto, tolerance: float) -> None:
    inputs = feed([list(range(30))])
    (before,) = run(model, inputs)
    split_outliers(model)
    (after,) = run(model, inputs)
    np.testing.assert_allclose(after, before, atol=tolerance * np.abs(before).max())


def weights_of(model: ModelProto, output: str) -> NDArray[Any]:
    """Return the weights of the product with this output."""
    (node,) = (node for node in model.graph.node if output in node.output)
    return initializers(model)[node.input[1]]


@pytest.mark.parametrize("bias", ["none", "first", "second"])
def test_a_split_layer_computes_the_same(bias: str) -> None:
    model = feed_forward(bias)
    assert_computes_the_same_when_split(model, 2e-5)
    assert weights_of(model, "xu").shape == (12, 40 + COPIES)
    assert weights_of(model, "y").shape == (40 + COPIES, 6)


def test_in_8_bit_the_other_weights_of_that_output_are_no_longer_rounded_away() -> None:
    x = np.maximum(np.random.default_rng(8).standard_normal((500, 40)), 0)
    outgoing = with_outlier()
    counts = count_copies(outgoing, COPIES)
    wide, shares = np.repeat(x, counts, axis=1), np.repeat(outgoing / counts[:, np.newaxis], counts, axis=0)

    def error(inputs: NDArray[Any], values: NDArray[Any]) -> float:
        codes, scales = round_weights(values.astype(np.float32), inputs.T @ inputs)
        return float(np.linalg.norm(inputs @ (codes * scales) - x @ outgoing))

    assert error(wide, shares) < 0.25 * error(x, outgoing)


@pytest.mark.parametrize("copies", [0, 1, 12])
def test_copies_go_where_they_make_the_largest_weights_of_the_outputs_smallest(copies: int) -> None:
    weights = np.random.default_rng(3).standard_normal((6, 4)).astype(np.float32)

    def squares(counts: NDArray[np.int64]) -> float:
        return float((np.abs(weights / counts[:, np.newaxis]).max(axis=0) ** 2).sum())

    expected = np.ones(6, np.int64)
    for _ in range(copies):
        expected = min((expected + row for row in np.eye(6, dtype=np.int64)), key=squares)
    np.testing.assert_array_equal(count_copies(weights, copies), expected)
    for alike in (np.full((2, 2), 2), np.ones((1, 3)), np.zeros((3, 3))):  # nothing is smaller with another copy
        np.testing.assert_array_equal(count_copies(alike.astype(np.float32), copies), np.ones(len(alike)))


# what is added to a product, and is no bias that the product can add: what else is read, the sum, and what is summed
OTHER_SUMS = {
    "what another node reads too": ("xw", "Add", ["xw", "b"]),
    "an activation": ("x", "Add", ["xw", "x"]),
    "a matrix": ("x", "Add", ["xw", "m"]),
    "no addition": ("x", "Mul", ["xw", "b"]),
}


@pytest.mark.parametrize("case", OTHER_SUMS)
def test_other_sums_than_that_of_a_bias_stay(case: str) -> None:
    read, kind, names = OTHER_SUMS[case]
    table, weights = uniform_table(200, 24), {"w": random_weights(24, 24), "b": random_weights(24, 1)[:, 0] + 3}
    nodes = [product("x", "w", "xw"), helper.make_node("Identity", [read], ["z"]), helper.make_node(kind, names, ["y"])]
    model = lookup_graph(table, nodes, {"y": 24, "z": 24}, **weights, m=random_weights(1, 24))
    quantized = quantize_graph(model, calibration_of(200))
    assert (count(quantized, "Add"), count(quantized, "Mul")) == ((2, 0) if kind == "Add" else (1, 1))
    inputs = feed([list(range(60))])
    for found, expected in zip(run(quantized, inputs, "y", "z"), run(model, inputs, "y", "z"), strict=True):
        assert near(found, expected)


def test_neurons_that_something_else_reads_are_left_alone() -> None:
    model = feed_forward()
    model.graph.node.append(helper.make_node("Identity", ["bent"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    before = model.SerializeToString(deterministic=True)
    split_outliers(model)
    assert model.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("summands", [["xu", "m"], ["m", "xu"], ["b", "b"]])
def test_a_layer_to_which_something_else_than_a_bias_is_added_is_left_alone(summands: list[str]) -> None:
    model = feed_forward()
    model.graph.initializer.append(numpy_helper.from_array(random_weights(1, 40), "m"))
    (addition,) = (node for node in model.graph.node if node.op_type == "Add")
    addition.input[:] = summands
    before = model.SerializeToString(deterministic=True)
    split_outliers(model)
    assert model.SerializeToString(deterministic=True) == before


def test_layers_that_share_their_weights_stay_layers_of_the_same_function() -> None:
    nodes = []
    for number, (first, last) in enumerate([("x", "middle"), ("middle", "y")]):
        nodes += [
            product(first, "u", f"xu{number}"),
            helper.make_node("Add", [f"xu{number}", "b"], [f"sum{number}"]),
            helper.make_node("Relu", [f"sum{number}"], [f"bent{number}"]),
            product(f"bent{number}", "d", last),
        ]
    outgoing = random_weights(40, 12, seed=4)
    outgoing[3, 5] = 40
    weights = {"u": random_weights(12, 40), "b": random_weights(40, 1)[:, 0], "d": outgoing}
    model = lookup_graph(uniform_table(30, 12), nodes, {"y": 12}, **weights)
    assert_computes_the_same_when_split(model, 1e-4)
    assert weights_of(model, "xu0").shape == weights_of(model, "xu1").shape == (12, 40 + COPIES)


def test_the_feed_forward_layers_of_a_bert_are_split(tiny_quantized: ModelProto) -> None:
    shapes = [codes.shape for name, codes in initializers(tiny_quantized).items() if name.endswith("/codes")]
    intermediate, hidden = 64, 32
    assert shapes.count((intermediate + COPIES, hidden)) == 2


# The tiny BERT


@pytest.fixture(scope="module")
def tiny_quantized(tiny_graph: ModelProto, tiny_tokens: list[TokenIds]) -> ModelProto:
    """The tiny BERT in 8 bit, calibrated with every other text of the corpus."""
    return quantize_graph(tiny_graph, tiny_tokens[::2])


@pytest.fixture(scope="module")
def held_out(tiny_tokens: list[TokenIds]) -> list[list[int]]:
    return [tokens.ids for tokens in tiny_tokens[1::2]]


def test_the_version_of_the_conversion_was_raised_with_each_change_of_a_converted_model(
    tiny_quantized: ModelProto, tmp_path: Path
) -> None:
    """Codes can differ by rounding: the processor's instructions round the activations of the calibration texts."""
    onnx.save(tiny_quantized, tmp_path / "found.onnx")
    path = ROOT / f"tests/data/tiny-bert-conversion-{CONVERSION_VERSION}.onnx"
    remedy = f"raise CONVERSION_VERSION, and keep {tmp_path / 'found.onnx'} as tests/data/tiny-bert-conversion-N.onnx"
    assert path.is_file(), remedy
    stored = onnx.load(path)
    assert list(tiny_quantized.graph.node) == list(stored.graph.node), remedy
    found, expected = initializers(tiny_quantized), initializers(stored)
    assert {name: (each.dtype, each.shape) for name, each in found.items()} == {
        name: (each.dtype, each.shape) for name, each in expected.items()
    }, remedy
    for name, values in found.items():
        if values.dtype in (np.int8, np.uint8):
            differences = np.abs(values.astype(int) - expected[name])
            assert differences.max(initial=0) <= 1, remedy
            assert np.mean(differences > 0) < 0.01, remedy
        else:
            np.testing.assert_allclose(values, expected[name], rtol=1e-4, atol=1e-6, err_msg=remedy)


def test_a_text_embeds_the_same_alone_and_in_a_batch(tiny_quantized: ModelProto, held_out: list[list[int]]) -> None:
    assert len({len(one) for one in held_out}) > 5
    (together,) = run(tiny_quantized, feed(held_out))
    alone = np.concatenate([run(tiny_quantized, feed([one]))[0] for one in held_out[::10]])
    assert np.abs(together[::10] - alone).max() < 1e-6


def test_the_ort_file_answers_as_the_graph_it_was_made_of(
    tiny_quantized: ModelProto, held_out: list[list[int]], tmp_path: Path
) -> None:
    save_ort(tiny_quantized, tmp_path / "model.ort")
    assert (tmp_path / "model.ort").read_bytes()[4:8] == b"ORTM"  # file_identifier of onnxruntime's ort.fbs
    (found,) = open_session(tmp_path / "model.ort").run(None, feed(held_out))
    np.testing.assert_allclose(found, run(tiny_quantized, feed(held_out))[0], atol=2e-6)


def operators(content: bytes) -> list[tuple[str, list[tuple[str, list[tuple[int, int]]]]]]:
    """Return the operators in an .ort file: of each its name and its types, of each type its name and its places."""

    def target(table: Table, slot: int) -> Table:
        return Table(content, table.Indirect(table.Pos + table.Offset(slot)))

    def members(table: Table, slot: int) -> list[Table]:
        offset = table.Offset(slot)
        begin = table.Vector(offset) if offset else 0
        return [
            Table(content, table.Indirect(begin + 4 * row)) for row in range(table.VectorLen(offset) if offset else 0)
        ]

    def name(table: Table) -> str:
        return bytes(table.String(table.Pos + table.Offset(4))).decode()

    def places(table: Table) -> list[tuple[int, int]]:
        return [(each.GetSlot(4, 0, Int8Flags), each.GetSlot(6, 0, Uint32Flags)) for each in members(table, 6)]

    types = target(Table(content, int.from_bytes(content[:4], "little")), 10)
    return [(name(each), [(name(kind), places(kind)) for kind in members(each, 6)]) for each in members(types, 4)]


def test_an_ort_file_has_its_operators_sorted(
    tiny_quantized: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(quantization, "sort_operators", bytes)
        save_ort(tiny_quantized, tmp_path / "model.ort")
    written = (tmp_path / "model.ort").read_bytes()
    found = sort_operators(written)
    assert operators(found) == sorted(
        (name, sorted((kind, sorted(places)) for kind, places in types)) for name, types in operators(written)
    )
    assert {place[0] for _, types in operators(found) for _, places in types for place in places} == {0, 1}
    assert sort_operators(found) == found
    assert found[4:8] == b"ORTM"
    assert len(found) % ORT_ALIGNMENT == len(written) % ORT_ALIGNMENT == 0
    assert found.endswith(written[-len(found) // 2 :])  # the bytes of the model


def test_a_model_that_the_disk_has_no_room_for_is_an_error_of_the_disk(
    tiny_quantized: ModelProto, tmp_path: Path
) -> None:
    with pytest.raises(OSError, match=r"model\.ort: ONNX Runtime cannot write the model; check the free space"):
        save_ort(tiny_quantized, tmp_path / "missing" / "model.ort")
    with pytest.raises(Exception, match="graph"):
        save_ort(ModelProto(), tmp_path / "model.ort")
