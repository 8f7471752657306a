"""The functions that are compared: this function, an empty one and the peer. With Docker the first two run in images.

The peer, FastAPI with sentence-transformers, needs torch's CPU build, which comes for the Python that runs this, not
for the image's. So it always runs under the emulator, outside an image.
"""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.emulator import LocalFunction, emulated
from bench.environments import emulator, function_package, function_python, peer_python
from bench.folders import PEERS
from bench.footprint import footprint_here, footprint_in_image
from bench.image import (
    EMPTY_HANDLER,
    HANDLER,
    IMAGE,
    TASK,
    base_image,
    build_empty_image,
    build_image,
    image_python,
    started,
)
from bench.needs import docker_problem
from bench.report import console
from bench.revision import check_out, export_there
from bench.texts import Texts
from export.model.source.source import find_model
from function.engine.bundle import INDEX
from function.engine.quantization import dequantize
from function.engine.tensors import map_tensors

OURS, EMPTY, PEER = "this function", "empty handler", "FastAPI + sentence-transformers"
EMPTY_IN_BASE = "empty handler in Lambda's base image"


class Running(Protocol):
    """A started function."""

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Send one event and return the reply; the first one starts INIT."""

    def init_milliseconds(self) -> float:
        """Return how long INIT took."""

    def request_milliseconds(self) -> list[float]:
        """Return how long each request took."""

    def peak_megabytes(self) -> float:
        """Return the largest resident memory of the function's process."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function under test: where it runs, how it is started, and how its footprint is taken."""

    place: str
    python: str
    start: Callable[[], AbstractContextManager[Running]]
    footprint: Callable[[], dict[str, float]]


def make_candidates(work: Path, bundle: Path) -> dict[str, Candidate]:
    """Return this function with this bundle and the empty one, in images if there is Docker, by name."""
    problem = docker_problem()
    if problem is not None:
        console.print(f"{problem}: measuring with Python {platform.python_version()} and without an image")
        package, environment = function_package(work), {"BUNDLE_DIR": str(bundle.absolute())}
        python = function_python(work)
        return {
            EMPTY: outside_an_image(work, LocalFunction(python, EMPTY_HANDLER, PEERS, {})),
            OURS: outside_an_image(work, LocalFunction(python, HANDLER, package, environment)),
        }
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
        environments = {name: {"BUNDLE_DIR": str(bundle.absolute())} for name, bundle in bundles.items()}
        return {
            name: outside_an_image(work, LocalFunction(python, HANDLER, package, environment))
            for name, environment in environments.items()
        }
    build_image(work, next(iter(bundles.values())))
    volumes = {name: ("--volume", f"{bundle.absolute()}:{TASK}/bundle:ro") for name, bundle in bundles.items()}
    return {name: in_an_image(IMAGE, HANDLER, options) for name, options in volumes.items()}


def make_former(work: Path, revision: str, corpus: Path) -> Candidate:
    """Return the function of another revision, in an image if there is Docker, with a bundle that its export made."""
    project = check_out(work, revision)
    bundle = export_there(project, corpus)
    if docker_problem() is None:
        tag = f"{IMAGE}-{project.name}"
        build_image(work, bundle, project, tag)
        return in_an_image(tag, HANDLER)
    package = function_package(work, project)
    function = LocalFunction(function_python(work), HANDLER, package, {"BUNDLE_DIR": str(bundle.absolute())})
    return outside_an_image(work, function)


def make_peer(work: Path, bundle: Path, texts: Texts) -> Candidate:
    """Return the peer over the texts of this bundle."""
    handler, environment = "fastapi_sentence_transformers.handler", peer_environment(work, bundle, texts)
    return outside_an_image(work, LocalFunction(peer_python(work), handler, PEERS, environment))


def peer_environment(work: Path, bundle: Path, texts: Texts) -> dict[str, str]:
    """Return the environment variables of the peer over the texts of this bundle, whose files are written first."""
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
    start = partial(started, options, handler, image)
    return Candidate(f"image, Python {python}", python, start, partial(footprint_in_image, image, handler))


def outside_an_image(work: Path, function: LocalFunction) -> Candidate:
    """Return the candidate that runs on this machine's own Python."""
    python = platform.python_version()
    start = partial(emulated, emulator(work), function)
    return Candidate(f"no image, Python {python}", python, start, partial(footprint_here, function))
