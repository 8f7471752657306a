"""How close the 8-bit model of a bundle is to the float32 model that it was exported from."""

from pathlib import Path

from export.corpus.python_documentation import python_documentation
from export.index.verify import Check
from export.model.calibration_texts import split_documentation
from export.model.export_model import LEAST_QUANTIZED_COSINE, measure_closeness
from export.model.source.model_files import ModelError
from export.model.source.source import find_model, read_source
from function.engine.bundle import read_manifest


def check_closeness(bundle: Path, model: str) -> Check:
    """Compare a bundle's model with its source, a folder or a name on the hub, on Python's own documentation.

    Raises ModelError if the bundle was exported from another model, BundleError if there is no bundle.
    """
    manifest = read_manifest(bundle)
    folder, name, revision = find_model(model, None)
    source = read_source(folder, name, revision, manifest.model.pooling)
    if source.weights_sha256 != manifest.model.source_sha256:
        raise ModelError(
            f"{folder}: weights with sha256 {source.weights_sha256[:12]}, those of the bundle's model have "
            f"{manifest.model.source_sha256[:12]}; name the model that it was exported from"
        )
    held_out = split_documentation(python_documentation()).held_out
    accuracy = measure_closeness(source, held_out, bundle, manifest.model)
    found = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in accuracy.items())
    return Check(
        "model against float32",
        found,
        f"cosine mean >= {LEAST_QUANTIZED_COSINE}",
        accuracy["cosine_mean"] >= LEAST_QUANTIZED_COSINE,
    )
