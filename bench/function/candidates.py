"""The functions that are compared: this function, an empty one and the peer. With Docker the first two run in images.

The peer, FastAPI with sentence-transformers, needs torch's CPU build for the Python that runs this, not for the
image's. So it always runs under the emulator, outside an image.
"""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bench.environments import emulator, function_package, function_python, peer_python
from bench.function.emulator import TASK, LocalFunction, Running, emulated
from bench.function.image import (
    EMPTY_HANDLER,
    HANDLER,
    IMAGE,
    base_image,
    build_empty_image,
    build_image,
    image_python,
    started,
)
from bench.report import PEERS, console, docker_problem
from bench.texts import Texts

OURS, EMPTY, PEER = "this function", "empty handler", "FastAPI + sentence-transformers"
EMPTY_IN_BASE = "empty handler in Lambda's base image"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function under test: where it runs, on which Python, and how it is started."""

    place: str
    python: str
    start: Callable[[], AbstractContextManager[Running]]


def make_candidates(work: Path, bundle: Path) -> dict[str, Candidate]:
    """Return this function with this bundle and the empty one, in images if there is Docker, by name."""
    if docker_problem() is not None:
        ours = make_functions(work, {OURS: bundle})
        return {EMPTY: outside_an_image(work, LocalFunction(function_python(work), EMPTY_HANDLER, PEERS, {}))} | ours
    build_image(work, bundle)
    candidates = {}
    for name, base in ((EMPTY_IN_BASE, base_image()), (EMPTY, IMAGE)):
        tag = f"{IMAGE}-{'empty' if base == IMAGE else 'base'}"
        build_empty_image(base, tag)
        candidates[name] = in_an_image(tag, EMPTY_HANDLER)
    return candidates | {OURS: in_an_image(IMAGE, HANDLER)}


def make_functions(work: Path, bundles: Mapping[str, Path]) -> dict[str, Candidate]:
    """Return this function with each of these bundles, by their names; one image serves all of them."""
    problem = docker_problem()
    if problem is not None:
        console.print(f"{problem}: measuring with Python {platform.python_version()} and without an image")
        package, python = function_package(work), function_python(work)
        return {
            name: outside_an_image(
                work, LocalFunction(python, HANDLER, package, {"BUNDLE_DIR": str(bundle.absolute())})
            )
            for name, bundle in bundles.items()
        }
    build_image(work, next(iter(bundles.values())))
    volumes = {name: ("--volume", f"{bundle.absolute()}:{TASK}/bundle:ro") for name, bundle in bundles.items()}
    return {name: in_an_image(IMAGE, HANDLER, options) for name, options in volumes.items()}


def make_peer(work: Path, bundle: Path, texts: Texts) -> Candidate:
    """Return the peer over the texts of this bundle."""
    handler, environment = "fastapi_sentence_transformers.handler", peer_environment(work, bundle, texts)
    return outside_an_image(work, LocalFunction(peer_python(work), handler, PEERS, environment))


def peer_environment(work: Path, bundle: Path, texts: Texts) -> dict[str, str]:
    """Return the environment variables of the peer over the texts of this bundle, whose files are written first."""
    from export.model.source.source import find_model
    from function.engine.bundle import INDEX
    from function.engine.quantization import dequantize
    from function.engine.tensors import map_tensors

    corpus = work / f"peer-of-{bundle.name}"
    if not (corpus / "texts.json").exists():
        corpus.mkdir(parents=True, exist_ok=True)
        tensors = map_tensors(bundle / INDEX)
        np.save(corpus / "embeddings.npy", dequantize(tensors["codes"], tensors["scales"]))
        (corpus / "texts.json").write_text(json.dumps(texts.texts), encoding="utf-8")
    return {"PEER_MODEL": str(find_model(None, None)[0]), "PEER_CORPUS": str(corpus), "HF_HUB_OFFLINE": "1"}


def in_an_image(image: str, handler: str, options: Sequence[str] = ()) -> Candidate:
    """Return the candidate that an image starts, from the image's own file system; `options` are docker's."""
    python = image_python(image)
    return Candidate(f"image, Python {python}", python, partial(started, options, handler, image))


def outside_an_image(work: Path, function: LocalFunction) -> Candidate:
    """Return the candidate that runs on this machine's own Python."""
    python = platform.python_version()
    return Candidate(f"no image, Python {python}", python, partial(emulated, emulator(work), function))
