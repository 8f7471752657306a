"""The modules of a sentence-transformer: modules.json, the routes of a Router, and what follows the pooling.

The export adds Dense, LayerNorm and Normalize to the graph. Models with other modules (a StaticEmbedding, the pooling
of a sparse encoder, LSTM, CNN) are refused by name.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from export.model.source.model_files import ModelError, read_json, reading, weight_files

if TYPE_CHECKING:
    from torch import Tensor

MODULES = "modules.json"
BEFORE = ["Transformer", "Pooling"]
AFTER_POOLING = ("Dense", "LayerNorm", "Normalize")
ROUTER, ROUTES = "Router", ("query", "document")
PACKAGE = "sentence_transformers."  # a class of another package can compute anything
# Classes of torch.nn with their defaults, and the ONNX operator of each. The domain of Gelu is ONNX Runtime's.
ACTIVATIONS = {"ELU": "Elu", "GELU": "Gelu", "Hardswish": "HardSwish", "LeakyReLU": "LeakyRelu", "ReLU": "Relu"}
ACTIVATIONS |= {"SELU": "Selu"} | {
    each: each for each in ("Identity", "Mish", "Sigmoid", "Softplus", "Softsign", "Tanh")
}
EMBEDDING = "sentence_embedding"  # what these modules read and write; another name would be token vectors
SCORES = "scores"  # what the last module of a cross-encoder writes

Modules = list[tuple[str, Path]]  # the class and the folder of each


@dataclass(frozen=True, slots=True)
class Step:
    """One module after pooling. A LayerNorm's epsilon is torch's default, because its config has none."""

    kind: str  # Dense, LayerNorm or Normalize
    folder: Path
    outputs: int  # values of the embedding after this step
    activation: str = "Identity"  # activation of a Dense: a key of ACTIVATIONS


def read_modules(folder: Path) -> dict[str, Modules]:
    """Return the modules of each route: "query" and "document" of a Router, else "query" alone.

    Returns an empty dict for a plain transformers model. Raises ModelError for modules that cannot be exported.
    """
    if not (folder / MODULES).exists():
        return {}
    modules = list_modules(folder)
    routes = {ROUTES[0]: modules}
    if modules and modules[0][0] == ROUTER:
        router = modules[0][1]
        config = read_json(router / "router_config.json")
        with reading(router):
            routes = {
                route: [*(_located(router, config["types"][name], name) for name in names), *modules[1:]]
                for route, names in config["structure"].items()
            }
        if set(routes) != set(ROUTES):
            raise ModelError(
                f"{router}: has routes for {', '.join(routes)}, expected one for query and one for document"
            )
    for listed in routes.values():
        kinds = [kind for kind, _ in listed]
        if kinds[:2] != BEFORE or not set(kinds[2:]) <= set(AFTER_POOLING):
            raise ModelError(
                f"{folder / MODULES}: lists {', '.join(kinds) or 'no modules'}; expected Transformer, Pooling and "
                f"then, in any order, {', '.join(AFTER_POOLING)} or none of them; choose a model made of those"
            )
    return {route: routes[route] for route in ROUTES if route in routes}


def list_modules(folder: Path) -> Modules:
    """Return the modules that modules.json lists."""
    listed = read_json(folder / MODULES)
    with reading(folder / MODULES):
        return [_located(folder, entry["type"], entry["path"]) for entry in listed]


def _located(folder: Path, kind: str, inside: str) -> tuple[str, Path]:
    """Return a module's class and its folder, which is inside `folder`."""
    if not kind.startswith(PACKAGE):
        raise ModelError(f"{folder}: lists {kind}, which is code of its own; choose a model without own code")
    place = folder / inside.replace("\\", "/")
    if not place.resolve().is_relative_to(folder.resolve()):
        raise ModelError(f"{folder}: the path {inside!r} leaves the model's folder; download the model again")
    return kind.rsplit(".", 1)[-1], place


def read_steps(modules: Modules, inputs: int, last_output: str = EMBEDDING) -> tuple[Step, ...]:
    """Return the steps after pooling, whose result has `inputs` values; the last one can write `last_output`.

    Normalize modules at the end are left out, because every exported graph ends with a normalization.
    """
    steps: list[Step] = []
    for place, (kind, folder) in enumerate(modules, 1):
        is_dense, output = kind == "Dense", last_output if place == len(modules) else EMBEDDING
        steps.append(_read_dense(folder, output) if is_dense else Step(kind, folder, inputs))
        inputs = steps[-1].outputs
    while steps and steps[-1].kind == "Normalize":
        steps.pop()
    return tuple(steps)


def _read_dense(folder: Path, output: str) -> Step:
    config = read_json(folder / "config.json")
    with reading(folder):
        outputs, name = int(config["out_features"]), config.get("activation_function", "torch.nn.Tanh")  # the default
        package, _, activation = name.rpartition(".")
        # another input would be token vectors
        named = {config.get("module_input_name") or EMBEDDING, config.get("module_output_name") or output} - {output}
    if (
        not package.startswith("torch.nn")
        or activation not in ACTIVATIONS
        or named - {EMBEDDING}
        or config.get("use_residual")
    ):
        raise ModelError(
            f"{folder}: a Dense with the activation {name}, of {', '.join(named) or output}, residual: "
            f"{config.get('use_residual', False)}; expected a class of torch.nn among {', '.join(ACTIVATIONS)}, of "
            f"{EMBEDDING} alone, and no residual; choose another model"
        )
    return Step("Dense", folder, outputs, activation)


def load_tensors(step: Step) -> "dict[str, Tensor]":
    """Return a step's weights as float32 tensors of torch, by the name of the parameter.

    A Dense has "weight" (outputs, inputs) and perhaps "bias" (outputs,), a LayerNorm both as (outputs,), a Normalize
    none.
    """
    from safetensors.torch import load_file

    if step.kind == "Normalize":
        return {}
    (path,) = weight_files(step.folder)
    with reading(path):
        return {name.rpartition(".")[2]: tensor.float() for name, tensor in load_file(path).items()}
