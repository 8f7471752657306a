"""modules.json: the steps of a sentence-transformer and the folder of each."""

from pathlib import Path, PurePosixPath
from typing import Any

from export.model.source.model_files import ModelError, read_any_json

KINDS = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
EXPECTED = "expected Transformer, Pooling and, if at all, Normalize, in this order"
REMEDY = "choose a model made of those"
PACKAGE = "sentence_transformers."  # a class of another package can compute anything


def read_modules(folder: Path) -> dict[str, Path]:
    """Return the folder of each module by its class, or an empty dict for a plain transformers model.

    Raises ModelError if modules.json cannot be read, lists modules that cannot be exported, or names a folder outside
    the model's folder.
    """
    path = folder / "modules.json"
    if not path.exists():
        return {}
    listed = read_any_json(path)
    if not isinstance(listed, list):
        raise ModelError(f"{path}: holds a {type(listed).__name__}, expected a list of modules; download it again")
    modules = [_read_module(path, entry) for entry in listed]
    kinds = [kind for kind, _ in modules]
    if kinds not in KINDS:
        raise ModelError(f"{path}: lists {', '.join(kinds) or 'no modules'}; {EXPECTED}; {REMEDY}")
    return {kind: folder / inside for kind, inside in modules}


def _read_module(path: Path, entry: Any) -> tuple[str, str]:
    """Return a module's class and its folder relative to the model's."""
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
    return kind.rsplit(".", 1)[-1], inside
