"""Export a sentence-transformer as one float32 ONNX graph: token ids in, unit embeddings out.

Optimum exports the transformer, this module adds pooling, the modules after it and a normalization, and ONNX Runtime's
optimizer fuses attention and Gelu. SkipLayerNormalization stays unfused, because in onnxruntime 1.31.1 the fused kernel
is slower than an addition and a LayerNormalization.
"""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from semsearch.conversion.reference import load_tensors, silence_transformers
from semsearch.indexing.errors import first_line
from semsearch.indexing.models.modules import ONNX_ACTIVATIONS, ModelError
from semsearch.indexing.models.nodes import DOMAIN, add_constant, add_node, initializers
from semsearch.indexing.models.source import Source

OPSET = 18  # what optimum-onnx 0.1 chooses for BERT
EMBEDDINGS = "embeddings"  # the graph's output

Returned = TypeVar("Returned")


def write_exact(
    run: Callable[[Source], Returned], export: Callable[[Source, Path], ModelProto], source: Source, path: Path
) -> Returned:
    """Write the float32 graph that `export` makes, and return what the original model computes. Both need torch."""
    original = run(source)
    onnx.save(export(source, path.parent), path)
    return original


def export_graph(source: Source, workdir: Path) -> ModelProto:
    """Return the float32 graph: input_ids and attention_mask, (n, tokens) int64, to embeddings, (n, dim) float32.

    workdir holds intermediate files. Raises ModelError if optimum cannot export the model, OSError if the disk fails.
    """
    raw = export_transformer(source, workdir)
    _fix_token_types(raw)
    _add_normalization(raw, source, add_steps(raw, source, add_pooling(raw, source.pooling)))
    path = workdir / "pooled.onnx"
    onnx.save(raw, path)
    return fuse(path, source)


def export_transformer(source: Source, workdir: Path, task: str = "feature-extraction") -> ModelProto:
    """Return the transformer's own graph. Raises ModelError if optimum cannot export it for this task."""
    from optimum.exporters.onnx import main_export  # takes seconds to import

    silence_transformers()
    logging.getLogger("optimum").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer warns about the code of transformers
            main_export(
                str(source.folder),
                output=workdir / "transformer",
                task=task,
                library_name="transformers",
                opset=OPSET,
                do_validation=False,  # semsearch/conversion/reference.py compares with the original model
            )
    except (ValueError, KeyError, NotImplementedError, RuntimeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk failed, not the model
            raise
        raise ModelError(
            f"{source.folder}: optimum cannot export it ({first_line(error)}); expected a model of the BERT family; "
            "choose another model"
        ) from error
    return onnx.load(workdir / "transformer" / "model.onnx")


def _fix_token_types(model: ModelProto) -> None:
    """Replace the look-up of token types by the row of type 0, since a text alone has only that type."""
    graph = model.graph
    names = [value.name for value in graph.input]
    if "token_type_ids" not in names:
        return
    (look_up,) = (node for node in graph.node if "token_type_ids" in node.input)
    table = numpy_helper.to_array(initializers(model)[look_up.input[0]])
    row = add_constant(model, "token_type_row", table[0])
    for reader in graph.node:
        for position, name in enumerate(reader.input):
            if name == look_up.output[0]:
                reader.input[position] = row
    graph.node.remove(look_up)
    del graph.input[names.index("token_type_ids")]


def add_pooling(model: ModelProto, pooling: str) -> str:
    """Add pooling to the end of the graph, and return the name of its result; mean pooling returns the sum."""
    tokens = model.graph.output[0].name  # (n, tokens, hidden size)
    if pooling == "cls":
        first = add_constant(model, "pooling_first", np.array(0, np.int64))
        pooled = add_node(model, "Gather", [tokens, first], "pooled", attributes={"axis": 1})
    elif pooling == "mean":  # the sum, which normalization scales to the same unit vector as the mean
        mask = add_node(model, "Cast", ["attention_mask"], "pooling_mask", attributes={"to": TensorProto.FLOAT})
        axis = add_constant(model, "pooling_axis_1", np.array([1], np.int64))
        row = add_node(model, "Unsqueeze", [mask, axis], "pooling_mask_row")
        pooled_row = add_node(model, "MatMul", [row, tokens], "pooled_row")
        pooled = add_node(model, "Squeeze", [pooled_row, axis], "pooled")
    else:
        mask = add_node(model, "Cast", ["attention_mask"], "pooling_mask", attributes={"to": TensorProto.BOOL})
        last_axis = add_constant(model, "pooling_axis_2", np.array([2], np.int64))
        column = add_node(model, "Unsqueeze", [mask, last_axis], "pooling_mask_column")
        lowest = add_constant(model, "pooling_lowest", np.array(np.finfo(np.float32).min))
        seen = add_node(model, "Where", [column, tokens, lowest], "pooling_seen")
        axis = add_constant(model, "pooling_axis_1", np.array([1], np.int64))
        pooled = add_node(model, "ReduceMax", [seen, axis], "pooled", attributes={"keepdims": 0})
    return pooled


def add_steps(model: ModelProto, source: Source, pooled: str) -> str:
    """Add the modules after pooling, and return the name of the result, (n, source.full_dim).

    A Dense is a MatMul, which `quantize_graph` replaces. Its products of integers are the same for a text alone and in
    a batch, and those of a float32 Gemm are not.
    """
    if not source.steps:
        return pooled
    if source.pooling == "mean":
        axis = add_constant(model, "pooling_axis_2", np.array([2], np.int64))
        count = add_node(model, "ReduceSum", ["pooling_mask_row", axis], "pooling_count", attributes={"keepdims": 0})
        pooled = add_node(model, "Div", [pooled, count], "pooled_mean")
    for number, step in enumerate(source.steps):
        name = f"step_{number}"
        tensors = {key: tensor.numpy() for key, tensor in load_tensors(step).items()}
        if step.kind == "Dense":
            weight = add_constant(model, f"{name}/weight", tensors["weight"].T)
            pooled = add_node(model, "MatMul", [pooled, weight], f"{name}/product")
            if "bias" in tensors:
                pooled = add_node(model, "Add", [pooled, add_constant(model, f"{name}/bias", tensors["bias"])], name)
            operator = ONNX_ACTIVATIONS[step.activation]
            pooled = add_node(model, operator, [pooled], f"{name}/activation", DOMAIN if operator == "Gelu" else "")
        elif step.kind == "LayerNorm":
            constants = [add_constant(model, f"{name}/{key}", tensors[key]) for key in ("weight", "bias")]
            pooled = add_node(model, "LayerNormalization", [pooled, *constants], name)
        else:
            pooled = add_node(model, "LpNormalization", [pooled], name, attributes={"axis": 1, "p": 2})
    return pooled


def _add_normalization(model: ModelProto, source: Source, result: str) -> None:
    """Make the first source.dim values of the result, normalized, the only output of the graph."""
    graph = model.graph
    if source.dim < source.full_dim:
        parts = {"start": 0, "end": source.dim, "axis": 1}
        constants = [add_constant(model, f"slice_{key}", np.array([at], np.int64)) for key, at in parts.items()]
        result = add_node(model, "Slice", [result, *constants], "first_values")
    add_node(model, "LpNormalization", [result], EMBEDDINGS, attributes={"axis": 1, "p": 2})
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(EMBEDDINGS, TensorProto.FLOAT, ["n", source.dim]))


def fuse(path: Path, source: Source) -> ModelProto:
    """Return the graph in a file with fused attention and Gelu."""
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    options = FusionOptions("bert")
    options.use_multi_head_attention = True
    options.enable_embed_layer_norm = False
    options.enable_skip_layer_norm = False
    options.enable_bias_skip_layer_norm = False
    options.enable_bias_gelu = False
    logging.getLogger("onnxruntime.transformers").setLevel(logging.ERROR)
    fused = optimize_model(
        str(path),
        model_type="bert",
        num_heads=source.attention_heads,
        hidden_size=source.hidden_size,
        optimization_options=options,
        opt_level=0,
    )
    model: ModelProto = fused.model
    if all(opset.domain != DOMAIN for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model
