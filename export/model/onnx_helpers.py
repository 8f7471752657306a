"""Edit an ONNX graph: find its constants by name, add constants and nodes."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper


def initializers(model: ModelProto) -> dict[str, TensorProto]:
    """Return the graph's constant tensors by name."""
    return {tensor.name: tensor for tensor in model.graph.initializer}


def add_constant(model: ModelProto, name: str, values: NDArray[np.generic] | np.generic) -> str:
    """Add a constant tensor to the graph and return its name."""
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
    return name


def add_node(
    model: ModelProto,
    operator: str,
    inputs: list[str],
    output: str,
    domain: str = "",
    attributes: Mapping[str, int | float] | None = None,
) -> str:
    """Add a node, named like its one output, at the end of the graph; return the output's name."""
    node = helper.make_node(operator, inputs, [output], name=output, domain=domain)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in (attributes or {}).items())
    model.graph.node.append(node)
    return output
