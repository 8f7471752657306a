"""The files of a model's weights: find them, check that they are whole, and hash them."""

import hashlib
from pathlib import Path

from export.error_text import first_line
from export.model.source.model_files import ModelError, read_json

WEIGHTS = "model.safetensors"
SHARDS = "model.safetensors.index.json"  # lists the files if the weights are in several
OTHER_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack", "*.ot")


def weight_files(folder: Path) -> list[Path]:
    """Return the files that transformers reads weights from: model.safetensors, or the shards that its index names.

    Raises ModelError if there are none, or if a shard is missing.
    """
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    index = folder / SHARDS
    if not index.is_file():
        others = sorted(path.name for pattern in OTHER_WEIGHTS for path in folder.glob(pattern))
        found = f", only {', '.join(others)}" if others else ""
        raise ModelError(
            f"{folder}: has no {WEIGHTS}{found}; expected weights in safetensors, which run no code when "
            "they are read; save the model again with save_pretrained(folder, safe_serialization=True)"
        )
    shards = read_json(index).get("weight_map")
    names = list(shards.values()) if isinstance(shards, dict) else []
    if not names or not all(isinstance(name, str) and name == Path(name).name for name in names):
        raise ModelError(
            f"{index}: has no weight_map from tensors to files beside it, expected one; download the model again"
        )
    files = [folder / name for name in sorted(set(names))]
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        raise ModelError(
            f"{index}: lists {len(files)} files, {len(missing)} of them missing ({', '.join(missing)}); expected all "
            f"of them in {folder}; download the model again"
        )
    return files


def hash_weights(*folders: Path) -> str:
    """Return the SHA-256 of the weights in these folders, over the files of each in the order of their names."""
    digest = hashlib.sha256()
    for path in (path for folder in folders for path in weight_files(folder)):
        try:
            digest.update(path.read_bytes())
        except OSError as error:
            raise ModelError(
                f"{path}: cannot be read ({error.strerror}); expected a readable file; check permissions and disk"
            ) from error
    return digest.hexdigest()


def read_shapes(folder: Path) -> dict[str, list[int]]:
    """Return the shape of each tensor in the model's weights, by name, from the headers alone.

    Raises ModelError if a file is empty, cut short or not safetensors, or if it holds weights that are not
    floating-point numbers.
    """
    from safetensors import SafetensorError, safe_open

    shapes: dict[str, list[int]] = {}
    for path in weight_files(folder):
        try:
            with safe_open(path, "numpy") as file:
                tensors = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # not a dict
                found = {name: (tensor.get_dtype(), list(tensor.get_shape())) for name, tensor in tensors.items()}
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelError(
                f"{path}: {path.stat().st_size} bytes that cannot be read ({first_line(error)}); expected a whole "
                "safetensors file; download the model again"
            ) from error
        for name, (dtype, shape) in found.items():
            if name.endswith(".weight") and dtype not in ("F64", "F32", "F16", "BF16"):
                raise ModelError(
                    f"{path}: {name} is of type {dtype}, expected floating-point numbers of 16 to 64 bits; choose "
                    "the model before it was quantized"
                )
            shapes[name] = shape
    return shapes
