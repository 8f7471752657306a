"""Calibrate the 8-bit graph: measure the products of matrices on texts, and round the weights by GPTQ.

GPTQ corrects later weights for the rounding error of each earlier one: Frantar et al., https://arxiv.org/abs/2210.17323
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from semsearch.engine.embedder import TokenIds
from semsearch.indexing.models.nodes import initializers

TOKENS_PER_UPDATE = 512  # tokens between two updates of a Hessian: 33 MB; more would hardly be faster
LARGEST_WEIGHT = 127
DAMPING = 0.01  # share of the mean of the Hessian's diagonal, as in the paper
GPTQ_BLOCK = 128  # inputs rounded between two updates of all later weights; changes the speed alone

Weights = NDArray[np.float32]  # (inputs, outputs)


@dataclass(slots=True)
class Products:
    """The matrix products (MatMul nodes) that read the same activation tensor. They are quantized as one matrix."""

    activation: str
    nodes: list[NodeProto]
    weights: Weights
    hessian: NDArray[np.float64]  # sum of x x^T over the calibration's tokens, (inputs, inputs)
    largest: float = 0.0  # largest |x| over the calibration's tokens


def find_products(model: ModelProto) -> list[Products]:
    """Return the graph's products with constant weights, grouped by the activation that they read."""
    tensors = initializers(model)
    groups: dict[str, list[NodeProto]] = {}
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in tensors and len(tensors[node.input[1]].dims) == 2:
            groups.setdefault(node.input[0], []).append(node)
    found = []
    for activation, nodes in groups.items():
        weights = np.concatenate([numpy_helper.to_array(tensors[node.input[1]]) for node in nodes], axis=1)
        inputs = weights.shape[0]
        found.append(Products(activation, nodes, weights, np.zeros((inputs, inputs))))
    return found


def calibrate(model: ModelProto, groups: list[Products], calibration: Sequence[TokenIds]) -> Iterator[float]:
    """Fill in the groups' hessian and largest from the texts; yield the share done, up to 1, after each text."""
    watched = ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(
        helper.make_tensor_value_info(products.activation, TensorProto.FLOAT, None) for products in groups
    )
    serialized = watched.SerializeToString()
    del watched  # each copy of the weights takes 90 MB for all-MiniLM-L6-v2
    options = ort.SessionOptions()
    options.enable_cpu_mem_arena = False  # the arena keeps the most memory that any text needed
    session = ort.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])
    del serialized
    names = [products.activation for products in groups]
    has_types = "token_type_ids" in [value.name for value in session.get_inputs()]
    # tokens that no hessian includes yet: few large products are faster than many small ones
    waiting: list[list[Weights]] = [[] for _ in groups]
    for done, tokens in enumerate(calibration, 1):
        input_ids = np.array([tokens.ids], np.int64)
        feed = {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids)}
        if has_types:
            feed["token_type_ids"] = np.array([tokens.types], np.int64)
        is_last = done == len(calibration)
        for products, rows, activation in zip(groups, waiting, session.run(names, feed), strict=True):
            rows.append(activation.reshape(-1, activation.shape[-1]))
            if is_last or sum(map(len, rows)) >= TOKENS_PER_UPDATE:
                seen = np.concatenate(rows)
                products.hessian += seen.T @ seen
                products.largest = max(products.largest, float(np.abs(seen).max()))
                rows.clear()
        yield done / len(calibration)


def round_weights(weights: Weights, hessian: NDArray[np.float64]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return the weights as signed bytes and a scale for each output, so that the products change least (GPTQ).

    weights is (inputs, outputs) float32, hessian (inputs, inputs) float64; the result is (inputs, outputs) int8 and
    (outputs,) float32.
    """
    rest = weights.astype(np.float64)
    inputs = len(rest)
    scales = np.abs(rest).max(axis=0) / LARGEST_WEIGHT
    scales[scales == 0] = 1.0
    damped = hessian + np.eye(inputs) * (DAMPING * np.diag(hessian).mean() + np.finfo(np.float64).tiny)
    # upper triangular: row i distributes the error of input i over later inputs
    factor = np.linalg.cholesky(np.linalg.inv(damped)).T
    codes = np.empty(rest.shape, np.int8)
    for begin in range(0, inputs, GPTQ_BLOCK):
        end = min(begin + GPTQ_BLOCK, inputs)
        errors = np.empty((end - begin, rest.shape[1]))
        for i in range(begin, end):
            code = np.rint(rest[i] / scales).clip(-LARGEST_WEIGHT, LARGEST_WEIGHT)
            codes[i] = code
            errors[i - begin] = (rest[i] - code * scales) / factor[i, i]
            rest[i + 1 : end] -= np.outer(factor[i, i + 1 : end], errors[i - begin])
        rest[end:] -= factor[begin:end, end:].T @ errors
    return codes, scales.astype(np.float32)
