"""A sentence-transformer becomes one float32 ONNX graph: token ids in, unit embeddings out.

Optimum exports the transformer; pooling and normalization are added to the graph; ONNX Runtime's own optimizer fuses
attention and Gelu. SkipLayerNormalization is left unfused: the fused kernel takes ten times as long as an addition
and a LayerNormalization (285 against 32 us a text of 11 tokens, onnxruntime 1.31.1).
"""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from export.checkpoint import silence_transformers
from export.disk_errors import find_disk_error
from export.model_files import ModelError, first_line
from export.source import Source

OPSET = 18  # what optimum-onnx 0.1 chooses for BERT
DOMAIN = "com.microsoft"  # of the operators that ONNX Runtime adds
EMBEDDINGS = "embeddings"  # the graph's output


def export_graph(source: Source, workdir: Path) -> onnx.ModelProto:
    """Return the float32 graph: input_ids and attention_mask, (n, tokens) int64, to embeddings, (n, dim) float32.

    workdir holds intermediate files. Raises ModelError if optimum cannot export the model, OSError if the disk fails.
    """
    raw = _export_transformer(source, workdir)
    _fix_token_types(raw)
    _add_pooling(raw, source.pooling)
    path = workdir / "pooled.onnx"
    onnx.save(raw, path)
    return _fuse(path, source)


def _export_transformer(source: Source, workdir: Path) -> onnx.ModelProto:
    from optimum.exporters.onnx import main_export  # seconds to import: only when it is used

    silence_transformers()
    logging.getLogger("optimum").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer's remarks on code that is not ours
            main_export(
                str(source.folder),
                output=workdir / "transformer",
                task="feature-extraction",
                library_name="transformers",
                opset=OPSET,
                do_validation=False,  # export/original.py compares with the original model
            )
    except (ValueError, KeyError, NotImplementedError, RuntimeError, OSError) as error:
        if find_disk_error(error) is not None:  # not the model's fault
            raise
        raise ModelError(
            f"{source.folder}: optimum cannot export it ({first_line(error)}); expected a model of the BERT family; "
            "choose another model"
        ) from error
    return onnx.load(workdir / "transformer" / "model.onnx")


def _fix_token_types(model: onnx.ModelProto) -> None:
    """Replace the look-up of token types by the row of type 0: one text has no other."""
    graph = model.graph
    names = [value.name for value in graph.input]
    if "token_type_ids" not in names:
        return
    for node in graph.node:
        if "token_type_ids" in node.input:
            if node.op_type != "Gather":
                raise ModelError(f"token_type_ids is read by {node.op_type}, expected a look-up; the model is no BERT")
            table = next(tensor for tensor in graph.initializer if tensor.name == node.input[0])
            row = numpy_helper.to_array(table)[0]
            graph.initializer.append(numpy_helper.from_array(row, "token_type_row"))
            for reader in graph.node:
                for position, name in enumerate(reader.input):
                    if name == node.output[0]:
                        reader.input[position] = "token_type_row"
            graph.node.remove(node)
            break
    del graph.input[names.index("token_type_ids")]


def _add_pooling(model: onnx.ModelProto, pooling: str) -> None:
    """End the graph in unit embeddings instead of one vector a token."""
    graph = model.graph
    tokens = graph.output[0].name  # (n, tokens, dim)
    dim = graph.output[0].type.tensor_type.shape.dim[2].dim_value

    def constant(name: str, values: list[int]) -> str:
        graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def node(op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        graph.node.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    if pooling == "cls":
        first = numpy_helper.from_array(np.array(0, np.int64), "pooling_first")
        graph.initializer.append(first)
        pooled = node("Gather", [tokens, "pooling_first"], "pooled", axis=1)
    elif pooling == "mean":  # a sum: normalization takes the mean's division with it
        mask = node("Cast", ["attention_mask"], "pooling_mask", to=TensorProto.FLOAT)
        row = node("Unsqueeze", [mask, constant("pooling_axis_1", [1])], "pooling_mask_row")
        pooled = node("Squeeze", [node("MatMul", [row, tokens], "pooled_row"), "pooling_axis_1"], "pooled")
    elif pooling == "max":
        mask = node("Cast", ["attention_mask"], "pooling_mask", to=TensorProto.BOOL)
        column = node("Unsqueeze", [mask, constant("pooling_axis_2", [2])], "pooling_mask_column")
        lowest = numpy_helper.from_array(np.array(np.finfo(np.float32).min), "pooling_lowest")
        graph.initializer.append(lowest)
        seen = node("Where", [column, tokens, "pooling_lowest"], "pooling_seen")
        pooled = node("ReduceMax", [seen, constant("pooling_axis_1", [1])], "pooled", keepdims=0)
    else:
        raise ModelError(f"pooling {pooling}: expected mean, cls or max")
    node("LpNormalization", [pooled], EMBEDDINGS, axis=1, p=2)
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(EMBEDDINGS, TensorProto.FLOAT, ["n", dim]))


def _fuse(path: Path, source: Source) -> onnx.ModelProto:
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
    model: onnx.ModelProto = fused.model
    if all(opset.domain != DOMAIN for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model
