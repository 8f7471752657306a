"""The functions that are compared: this function, an empty one and the peers, in images if there is Docker.

sentence-transformers needs torch's CPU build for the Python that runs this, not for the image's. So that peer always
runs under the emulator, outside an image.
"""

import json
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bench.environments import emulator, function_package, function_python, library_python, peer_python
from bench.function.emulator import TASK, LocalFunction, Running, emulated
from bench.function.image import (
    EMPTY_HANDLER,
    HANDLER,
    IMAGE,
    base_image,
    build_handler_image,
    build_image,
    image_python,
    started,
)
from bench.model.models import EXACT, NAIVE, make_models
from bench.report import PEERS, console, docker_problem
from bench.texts import Texts

OURS, EMPTY = "this function", "empty handler"
IN_BASE = " in Lambda's base image"
TRANSFORMERS, RUNTIME, FASTEMBED = "sentence-transformers", "ONNX Runtime", "fastembed"
PEERS_BY_LIBRARY = {library: f"FastAPI + {library}" for library in (RUNTIME, FASTEMBED, TRANSFORMERS)}
PRECISIONS = {RUNTIME: NAIVE, FASTEMBED: EXACT}  # fastembed's own models are float32
PEER_HANDLER = "fastapi_peer.handler"


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
    for name, base in ((EMPTY + IN_BASE, base_image()), (EMPTY, IMAGE)):
        tag = f"{IMAGE}-{'empty' if base == IMAGE else 'base'}"
        build_handler_image(base, tag, make_context(work / "empty-context", "empty_handler.py"))
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


def make_peers(work: Path, bundle: Path, texts: Texts, libraries: Sequence[str]) -> dict[str, Candidate]:
    """Return the peers with these libraries over the texts of this bundle, by name.

    An image of a peer is Lambda's base image with the newest packages. ONNX Runtime has a second one: this function's
    image, with its packages and the bytecode of all modules.
    """
    peers = {}
    for library in libraries:
        name, environment = PEERS_BY_LIBRARY[library], peer_environment(work, bundle, texts, library)
        if library == TRANSFORMERS or docker_problem() is not None:
            python = peer_python(work) if library == TRANSFORMERS else library_python(work, requirements_of(library))
            peers[name] = outside_an_image(work, LocalFunction(python, PEER_HANDLER, PEERS, environment))
            continue
        for base in (base_image(), IMAGE) if library == RUNTIME else (base_image(),):
            context = make_context(work / "peer-context", "fastapi_peer.py", environment)
            if base != IMAGE:
                shutil.copy2(requirements_of(library), context / "requirements.txt")
            suffix = "" if base == IMAGE else IN_BASE
            tag = f"{IMAGE}-{requirements_of(library).stem}{'' if base == IMAGE else '-base'}"
            build_handler_image(base, tag, context)
            inside = {"PEER_LIBRARY": library, "PEER_MODEL": f"{TASK}/PEER_MODEL", "PEER_CORPUS": f"{TASK}/PEER_CORPUS"}
            options = [word for key, value in inside.items() for word in ("--env", f"{key}={value}")]
            peers[name + suffix] = in_an_image(tag, PEER_HANDLER, options)
    return peers


def requirements_of(library: str) -> Path:
    """Return the file with the packages of the peer with this library."""
    return PEERS / f"{library.replace(' ', '').lower()}.txt"


def make_context(folder: Path, handler: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return a folder, made afresh, to build the image of a handler from.

    Folders that the environment variables name are copied under the names of the variables.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy2(PEERS / handler, folder)
    (folder / "requirements.txt").touch()
    for name, value in (environment or {}).items():
        if Path(value).is_dir():
            shutil.copytree(value, folder / name)
    return folder


def peer_environment(work: Path, bundle: Path, texts: Texts, library: str) -> dict[str, str]:
    """Return the environment variables of a peer over the texts of this bundle, whose files are written first."""
    from export.model.source.source import find_model
    from function.engine.bundle import INDEX
    from function.engine.quantization import dequantize
    from function.engine.tensors import map_tensors

    corpus, model = work / f"peer-of-{bundle.name}", find_model(None, None)[0]
    if not (corpus / "texts.json").exists():
        corpus.mkdir(parents=True, exist_ok=True)
        tensors = map_tensors(bundle / INDEX)
        np.save(corpus / "embeddings.npy", dequantize(tensors["codes"], tensors["scales"]))
        (corpus / "texts.json").write_text(json.dumps(texts.texts), encoding="utf-8")
    if library in PRECISIONS:
        folder = work / f"peer-{requirements_of(library).stem}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(make_models(work)[PRECISIONS[library]], folder / "model.onnx")
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            shutil.copyfile(model / file, folder / file)
        model = folder
    return {"PEER_LIBRARY": library, "PEER_MODEL": str(model), "PEER_CORPUS": str(corpus), "HF_HUB_OFFLINE": "1"}


def in_an_image(image: str, handler: str, options: Sequence[str] = ()) -> Candidate:
    """Return the candidate that an image starts, from the image's own file system; `options` are docker's."""
    python = image_python(image)
    return Candidate(f"image, Python {python}", python, partial(started, options, handler, image))


def outside_an_image(work: Path, function: LocalFunction) -> Candidate:
    """Return the candidate that runs on this machine's own Python."""
    python = platform.python_version()
    return Candidate(f"no image, Python {python}", python, partial(emulated, emulator(work), function))
