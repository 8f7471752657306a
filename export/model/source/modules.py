"""modules.json and router_config.json: the steps of a sentence-transformer and the folder of each."""

from pathlib import Path, PurePosixPath
from typing import Any

from export.model.source.model_files import ModelError, read_any_json, read_json

MODULES = "modules.json"
BEFORE = ["Transformer", "Pooling"]
AFTER_POOLING = ("Dense", "LayerNorm", "Normalize")
ROUTER, ROUTES = "Router", ("query", "document")
EXPECTED = f"expected Transformer, Pooling and then, in any order, {', '.join(AFTER_POOLING)} or none of them"
REMEDY = "choose a model made of those"
PACKAGE = "sentence_transformers."  # a class of another package can compute anything

Modules = list[tuple[str, Path]]  # the class and the folder of each


def read_modules(folder: Path) -> dict[str, Modules]:
    """Return the modules of each route: "query" and "document" of a Router, else "query" alone.

    Returns an empty dict for a plain transformers model. Raises ModelError if a file cannot be read, lists modules that
    cannot be exported, or names a folder outside the model's folder.
    """
    path = folder / MODULES
    if not path.exists():
        return {}
    modules = list_modules(folder)
    if not modules or modules[0][0] != ROUTER:
        return {ROUTES[0]: _checked(path, modules)}
    return _read_routes(modules[0][1], modules[1:])


def list_modules(folder: Path) -> Modules:
    """Return the modules that modules.json lists. Raises ModelError if it is missing or damaged."""
    path = folder / MODULES
    listed = read_any_json(path)
    if not isinstance(listed, list):
        raise ModelError(f"{path}: holds a {type(listed).__name__}, expected a list of modules; download it again")
    return [_read_module(path, folder, entry) for entry in listed]


def _read_routes(router: Path, after: Modules) -> dict[str, Modules]:
    """Return the modules of the routes for queries and documents; `after` follow both of them."""
    path = router / "router_config.json"
    config = read_json(path)
    types, structure = config.get("types"), config.get("structure")
    if not isinstance(types, dict) or not isinstance(structure, dict) or set(structure) != set(ROUTES):
        found = ", ".join(map(str, structure)) if isinstance(structure, dict) else "no structure"
        raise ModelError(
            f"{path}: has routes for {found}, expected one for query and one for document, and the types of their "
            "modules; choose another model"
        )
    routes = {}
    for route in ROUTES:
        names = structure[route] if isinstance(structure[route], list) else []
        entries = [{"type": types.get(name) if isinstance(name, str) else None, "path": name} for name in names]
        routes[route] = _checked(path, [*(_read_module(path, router, entry) for entry in entries), *after])
    return routes


def _checked(path: Path, modules: Modules) -> Modules:
    """Return the modules. Raises ModelError if the export cannot combine them."""
    kinds = [kind for kind, _ in modules]
    if kinds[:2] != BEFORE or not set(kinds[2:]) <= set(AFTER_POOLING):
        raise ModelError(f"{path}: lists {', '.join(kinds) or 'no modules'}; {EXPECTED}; {REMEDY}")
    return modules


def _read_module(path: Path, folder: Path, entry: Any) -> tuple[str, Path]:
    """Return a module's class and its folder, which is inside `folder`."""
    kind, inside = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(inside, str):
        raise ModelError(f"{path}: lists {entry!r}, expected a module with type and path; download the model again")
    if not kind.startswith(PACKAGE):
        raise ModelError(f"{path}: lists {kind}, which is code of its own; {EXPECTED}; {REMEDY}")
    parts = PurePosixPath(inside.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or Path(inside).is_absolute() or "\0" in inside:
        raise ModelError(
            f"{path}: the path {inside!r} leaves the model's folder, expected a folder inside it; correct the file or "
            "download the model again"
        )
    return kind.rsplit(".", 1)[-1], folder / inside
