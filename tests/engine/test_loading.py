"""A bundle opened in one piece: all its parts, or the error of the part that is broken."""

import json
from pathlib import Path

import pytest

from semsearch.engine.bundle import INDEX, MODEL, PASSAGES, TOKENIZER, BundleError
from semsearch.engine.loading import load_bundle
from semsearch.engine.tensors import TensorsError


@pytest.mark.parametrize("name", [INDEX, PASSAGES])
def test_a_damaged_file_of_the_right_length_is_refused_by_name(bundle_copy: Path, name: str) -> None:
    with (bundle_copy / name).open("r+b") as file:
        file.write(b"\xff" * 8)  # the length of the header
    with pytest.raises(TensorsError, match=name):
        load_bundle(bundle_copy)


@pytest.mark.parametrize("name", [TOKENIZER, MODEL])
def test_a_damaged_model_or_tokenizer_of_the_right_length_is_refused_by_name_and_reason(
    bundle_copy: Path, name: str
) -> None:
    path = bundle_copy / name
    path.write_bytes(b"}" * path.stat().st_size)
    with pytest.raises(BundleError) as refused:
        load_bundle(bundle_copy)
    reason = str(refused.value.__cause__)
    assert reason
    assert str(refused.value) == f"{path}: {reason}; run `semsearch index` again"


def test_a_manifest_that_does_not_fit_the_files_is_refused(bundle_copy: Path) -> None:
    path = bundle_copy / "manifest.json"
    content = json.loads(path.read_text())
    content["index"]["rows"] = 7
    path.write_text(json.dumps(content))
    with pytest.raises(BundleError, match="run `semsearch index` again"):
        load_bundle(bundle_copy)
