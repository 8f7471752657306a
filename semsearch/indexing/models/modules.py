"""The files of a sentence-transformer: its modules, prompts and weights.

The export adds Dense, LayerNorm and Normalize to the graph, and leaves Dropout out. Models with other modules (a
StaticEmbedding, the pooling of a sparse encoder, LSTM, CNN) are refused by name. What else is wrong with a file, the
library that reads it reports.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsearch.engine.errors import ExpectedError
from semsearch.indexing.errors import first_line

WEIGHTS_FILE = "model.safetensors"
SHARDS = "model.safetensors.index.json"  # lists the files if the weights are in several
CONFIG = "config_sentence_transformers.json"
# The names of each role's prompts, in order of preference. encode_query and encode_document of sentence-transformers
# 6.2 read "query", and "document", "passage" and "corpus". FRIDA and models of Nomic and Jina have the other names.
ROLE_PROMPTS: dict[str, tuple[str, ...]] = {
    "query": ("query", "search_query", "retrieval.query"),
    "document": ("document", "passage", "corpus", "search_document", "retrieval.passage"),
}
# The values of similarity_fn_name in CONFIG that can order texts differently from the cosine, and those of them that
# order embeddings of length 1 as the cosine does
OTHER_SIMILARITIES = ("dot", "euclidean", "manhattan")
COSINE_OF_UNITS = ("dot", "euclidean")
MODULES = "modules.json"
BEFORE = ["Transformer", "Pooling"]
AFTER_POOLING = ("Dense", "LayerNorm", "Normalize")
IDENTITY = "Dropout"  # changes embeddings in training alone
ROUTER, ROUTES = "Router", ("query", "document")
PACKAGE = "sentence_transformers."  # a class of another package can compute anything
# Classes of torch.nn with their defaults, and the ONNX operator of each. The domain of Gelu is ONNX Runtime's.
ONNX_ACTIVATIONS = {"ELU": "Elu", "GELU": "Gelu", "Hardswish": "HardSwish", "LeakyReLU": "LeakyRelu", "ReLU": "Relu"}
ONNX_ACTIVATIONS |= {"SELU": "Selu"} | {
    each: each for each in ("Identity", "Mish", "Sigmoid", "Softplus", "Softsign", "Tanh")
}
EMBEDDING = "sentence_embedding"  # what these modules read and write; another name would be token vectors
SCORES = "scores"  # what the last module of a cross-encoder writes

Modules = list[tuple[str, Path]]  # the class and the folder of each


class ModelError(ExpectedError, ValueError):
    """A model that cannot be exported: the message says where, what was found, what was expected and what to do."""


@dataclass(frozen=True, slots=True)
class Step:
    """One module after pooling. A LayerNorm's epsilon is torch's default, because its config has none."""

    kind: str  # Dense, LayerNorm or Normalize
    folder: Path
    outputs: int  # values of the embedding after this step
    activation: str = "Identity"  # activation of a Dense: a key of ONNX_ACTIVATIONS


@contextmanager
def reading(place: Path) -> Iterator[None]:
    """Raise ModelError, with the message of the library, for whatever the files in this place make it raise."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # a bad value can fail anywhere in transformers, tokenizers and safetensors
        raise ModelError(
            f"{place}: cannot be read as a model ({first_line(error)}); expected a sentence-transformer of the BERT "
            "family with a fast tokenizer; check the path, or download or save the model again"
        ) from error


def read_json(path: Path, optional: bool = False) -> Any:
    """Return what a JSON file holds; an optional file that is missing counts as an empty object."""
    if optional and not path.exists():
        return {}
    with reading(path):
        return json.loads(path.read_bytes())


def choose_prompts(stated: Mapping[str, str], default: str | None) -> dict[str, str]:
    """Return the prompt of each role ("query", "document"), "" for none; `default` names the default prompt.

    A role has the first of its own prompts (ROLE_PROMPTS) that is not empty. If they are all empty, it has none: an
    empty prompt replaces the default one. A role without a prompt of its own has the default prompt, unless this is the
    prompt of the other role.
    """
    of_roles = {name for names in ROLE_PROMPTS.values() for name in names}
    chosen = {}
    for role, names in ROLE_PROMPTS.items():
        own = [stated[name] for name in names if name in stated]
        if not own and default and default not in of_roles:
            own = [stated[default]]
        chosen[role] = next(filter(None, own), "")
    return chosen


def read_similarity(config: Mapping[str, Any], routes: Mapping[str, Modules]) -> str | None:
    """Return the similarity that a model was trained for, None if the cosine orders texts in the same way.

    config is the content of CONFIG. A Normalize module at the end makes all embeddings equally long.
    """
    stated = config.get("similarity_fn_name")
    has_units = bool(routes) and all(modules[-1][0] == "Normalize" for modules in routes.values())
    if stated not in OTHER_SIMILARITIES or (has_units and stated in COSINE_OF_UNITS):
        return None
    return str(stated)


def weight_files(folder: Path) -> list[Path]:
    """Return the files that transformers reads weights from: model.safetensors, or the shards that its index names."""
    if (folder / WEIGHTS_FILE).is_file():
        return [folder / WEIGHTS_FILE]
    if not (folder / SHARDS).is_file():
        raise ModelError(f"{folder}: has no {WEIGHTS_FILE}, expected one; save the model with safe_serialization=True")
    return [folder / name for name in sorted(set(read_json(folder / SHARDS)["weight_map"].values()))]


def hash_weights(*folders: Path) -> str:
    """Return the SHA-256 of the weights in these folders, over the files of each in the order of their names."""
    digest = hashlib.sha256()
    for path in (path for folder in folders for path in weight_files(folder)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def read_modules(folder: Path) -> dict[str, Modules]:
    """Return the modules of each route: "query" and "document" of a Router, else "query" alone.

    Returns an empty dict for a plain transformers model. Raises ModelError for modules that cannot be exported.
    """
    if not (folder / MODULES).exists():
        return {}
    modules = list_modules(folder)
    routes = {ROUTES[0]: modules}
    if modules[0][0] == ROUTER:
        router = modules[0][1]
        config = read_json(router / "router_config.json")
        kinds, structure = config["types"], config["structure"]
        routes = {
            route: [
                *_without_identities(_located(router, kinds[name], name) for name in structure[route]),
                *modules[1:],
            ]
            for route in ROUTES
        }
    for listed in routes.values():
        names = [name for name, _ in listed]
        if names[:2] != BEFORE or not set(names[2:]) <= set(AFTER_POOLING):
            raise ModelError(
                f"{folder / MODULES}: lists {', '.join(names)}; expected Transformer, Pooling and then, in any order, "
                f"{', '.join(AFTER_POOLING)} or none of them; choose a model made of those"
            )
    return routes


def list_modules(folder: Path) -> Modules:
    """Return the modules that modules.json lists, without those that leave an embedding as it is."""
    return _without_identities(_located(folder, entry["type"], entry["path"]) for entry in read_json(folder / MODULES))


def _without_identities(modules: Iterable[tuple[str, Path]]) -> Modules:
    return [(kind, folder) for kind, folder in modules if kind != IDENTITY]


def _located(folder: Path, kind: str, inside: str) -> tuple[str, Path]:
    """Return a module's class, which keeps the name of its package if that is not PACKAGE, and its folder."""
    return kind.rpartition(".")[2] if kind.startswith(PACKAGE) else kind, folder / inside


def read_steps(modules: Modules, inputs: int, last_output: str = EMBEDDING) -> tuple[Step, ...]:
    """Return the steps after pooling, whose result has `inputs` values; the last one can write `last_output`.

    Normalize modules at the end are left out, because every exported graph ends with a normalization.
    """
    steps: list[Step] = []
    for place, (kind, folder) in enumerate(modules, 1):
        output = last_output if place == len(modules) else EMBEDDING
        steps.append(_read_dense(folder, output) if kind == "Dense" else Step(kind, folder, inputs))
        inputs = steps[-1].outputs
    while steps and steps[-1].kind == "Normalize":
        steps.pop()
    return tuple(steps)


def _read_dense(folder: Path, output: str) -> Step:
    config = read_json(folder / "config.json")
    package, _, activation = config.get("activation_function", "torch.nn.Tanh").rpartition(".")  # the library's default
    named = {config.get("module_input_name") or EMBEDDING, config.get("module_output_name") or output}
    is_known = package.startswith("torch.nn") and activation in ONNX_ACTIVATIONS
    if not is_known or not named <= {EMBEDDING, output} or config.get("use_residual"):
        raise ModelError(
            f"{folder}: found a Dense with {config}; expected an activation of torch.nn "
            f"({', '.join(ONNX_ACTIVATIONS)}), {EMBEDDING} as its only input, and no residual; choose another model"
        )
    return Step("Dense", folder, int(config["out_features"]), activation)
