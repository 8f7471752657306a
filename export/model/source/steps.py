"""The modules after pooling, which change a text's embedding: Dense, LayerNorm and Normalize."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from export.error_text import first_line
from export.model.source.model_files import ModelError, read_json, whole_number
from export.model.source.modules import Modules
from export.model.source.weights import weight_files

if TYPE_CHECKING:
    from torch import Tensor

# Classes of torch.nn with their defaults, by name, and the ONNX operator of each. The domain of Gelu is ONNX Runtime's.
ACTIVATIONS: dict[str, tuple[str, dict[str, float]]] = {
    "Identity": ("Identity", {}),
    "ELU": ("Elu", {}),
    "GELU": ("Gelu", {}),
    "Hardswish": ("HardSwish", {}),
    "LeakyReLU": ("LeakyRelu", {"alpha": 0.01}),
    "Mish": ("Mish", {}),
    "ReLU": ("Relu", {}),
    "SELU": ("Selu", {}),
    "Sigmoid": ("Sigmoid", {}),
    "Softplus": ("Softplus", {}),
    "Softsign": ("Softsign", {}),
    "Tanh": ("Tanh", {}),
}
TORCH = "torch.nn."
INPUT, OUTPUT = "module_input_name", "module_output_name"
EMBEDDING = "sentence_embedding"  # what these modules read and write; another name would be token vectors
SCORES = "scores"  # what the last module of a cross-encoder writes


@dataclass(frozen=True, slots=True)
class Step:
    """One module after pooling. A LayerNorm's epsilon is torch's default, because its config has none."""

    kind: str  # Dense, LayerNorm or Normalize
    folder: Path
    outputs: int  # values of the embedding after this step
    activation: str = "Identity"  # activation of a Dense: a key of ACTIVATIONS
    has_bias: bool = True


def read_steps(modules: Modules, inputs: int, last_output: str = EMBEDDING) -> tuple[Step, ...]:
    """Return the steps after pooling, whose result has `inputs` values; the last one can write `last_output`.

    Normalize modules at the end are left out, because every exported graph ends with a normalization.
    Raises ModelError if a config states something that the export does not support.
    """
    steps = []
    for place, (kind, folder) in enumerate(modules, 1):
        if kind == "Dense":
            steps.append(_read_dense(folder, inputs, last_output if place == len(modules) else EMBEDDING))
        else:
            if kind == "LayerNorm":
                _check_inputs(folder / "config.json", "dimension", inputs)
            steps.append(Step(kind, folder, inputs))
        inputs = steps[-1].outputs
    while steps and steps[-1].kind == "Normalize":
        steps.pop()
    return tuple(steps)


def _read_dense(folder: Path, inputs: int, output: str) -> Step:
    path = folder / "config.json"
    config = _check_inputs(path, "in_features", inputs)
    name = config.get("activation_function", f"{TORCH}Tanh")  # sentence-transformers' default
    activation = name.rsplit(".", 1)[-1] if isinstance(name, str) and name.startswith(TORCH) else None
    if activation not in ACTIVATIONS:
        raise ModelError(
            f"{path}: activation_function is {name!r}, expected a class of torch.nn among {', '.join(ACTIVATIONS)}; "
            "choose another model"
        )
    for key, name in ((INPUT, EMBEDDING), (OUTPUT, output)):
        if config.get(key) not in (None, EMBEDDING, name):
            raise ModelError(f"{path}: {key} is {config[key]!r}, expected {name}; choose another model")
    if config.get("use_residual"):
        raise ModelError(f"{path}: use_residual is true, expected false; choose another model")
    has_bias = config.get("bias", True)
    if not isinstance(has_bias, bool):
        raise ModelError(f"{path}: bias is {has_bias!r}, expected true or false; download the model again")
    return Step("Dense", folder, whole_number(path, config, "out_features"), activation, has_bias)


def _check_inputs(path: Path, key: str, inputs: int) -> dict[str, Any]:
    """Return a module's config. Raises ModelError unless the module takes embeddings of `inputs` values."""
    config = read_json(path)
    if whole_number(path, config, key) != inputs:
        raise ModelError(
            f"{path}: {key} is {config[key]}, expected {inputs}, the values that the step before returns; the files "
            "are of two models: download the model again"
        )
    return config


def load_tensors(step: Step, inputs: int) -> "dict[str, Tensor]":
    """Return a step's weights as float32 tensors of torch, by the name of the parameter.

    A Dense has "weight" (outputs, inputs) and perhaps "bias" (outputs,), a LayerNorm both as (outputs,), a Normalize
    none. Raises ModelError if the file is damaged, or holds other tensors than the step needs or a NaN.
    """
    import torch
    from safetensors.torch import load_file

    if step.kind == "Normalize":
        return {}
    (path,) = weight_files(step.folder)
    try:
        found = load_file(path)
    except Exception as error:  # the library raises nothing more specific
        raise ModelError(
            f"{path}: cannot be read ({first_line(error)}); expected a safetensors file; download the model again"
        ) from error
    prefix = "linear" if step.kind == "Dense" else "norm"
    expected = {f"{prefix}.weight": [step.outputs, inputs] if step.kind == "Dense" else [step.outputs]}
    if step.has_bias:
        expected[f"{prefix}.bias"] = [step.outputs]
    shapes = {name: list(tensor.shape) for name, tensor in found.items()}
    if shapes != expected or not all(bool(torch.isfinite(tensor).all()) for tensor in found.values()):
        raise ModelError(
            f"{path}: has tensors of the shapes {shapes}, expected {expected} and finite numbers; download the model "
            "again"
        )
    return {name.removeprefix(f"{prefix}."): tensor.float() for name, tensor in found.items()}
