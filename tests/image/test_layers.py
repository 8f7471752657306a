"""What is in the image, in which layer, and which layers a change rebuilds."""

import hashlib
import json
import re
import shutil
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from semsearch.engine.bundle import MANIFEST, TRUNCATED, describe_file, read_manifest
from semsearch.version import VERSION
from tests.image.docker import TAG, Layer, build, description, diff_ids, docker
from tests.project import ROOT

CODE_LIMIT = 143  # MB of dependencies and function over the base, unpacked; the bundle can be anyone's
TASK = "var/task/"


def test_the_code_over_the_base_is_small(over_base: list[Layer]) -> None:
    sizes = [layer.megabytes for layer in over_base]
    print("MB by layer:", ", ".join(f"{size:.1f}" for size in sizes), f"together {sum(sizes):.1f}")
    assert sum(sizes[:2]) <= CODE_LIMIT


def test_the_layers_are_dependencies_function_model_corpus_and_description(over_base: list[Layer]) -> None:
    dependencies, function, model, corpus, described = ([*layer.files] for layer in over_base)
    assert {f"{TASK}onnxruntime/__init__.py", f"{TASK}sbom.cdx.json"} <= set(dependencies)
    assert not [
        name for name in dependencies if name.startswith((f"{TASK}function", f"{TASK}semsearch", f"{TASK}bundle"))
    ]
    assert f"{TASK}function/handler.py" in function
    assert all(name.startswith((f"{TASK}function/", f"{TASK}semsearch/")) for name in function)
    names = read_manifest(ROOT / "bundle").files.keys() - {TRUNCATED} | {MANIFEST}
    of_models = {name for name in names if name.endswith((".ort", "tokenizer.txt"))}
    assert set(model) == {f"{TASK}bundle/{name}" for name in of_models}
    assert set(corpus) == {f"{TASK}bundle/{name}" for name in names - of_models}
    assert described == [f"{TASK}image.json"]


FOREIGN = {
    *("export", "indexing", "conversion", "bench", "tests", "test", "deploy", "image", ".git", ".ci", "bin", ".cache"),
    *("pip", "build", "tmp", "root"),
}


def test_nothing_is_there_that_a_function_does_not_need(over_base: list[Layer]) -> None:
    for layer in over_base:
        for name in layer.files:
            folders = set(Path(name).parent.parts)
            assert not folders & FOREIGN, name
            assert not name.endswith((".whl", ".tar.gz", ".pyi", ".pxd", ".pyx", ".h", ".c", ".a", ".o")), name


def test_the_user_is_not_root_and_the_command_is_the_handler(image: str) -> None:
    config = json.loads(docker("image", "inspect", "--format", "{{json .Config}}", image))
    assert config["User"] == "993:990"
    assert config["Cmd"] == ["function.handler.handler"]
    assert {"HOME=/tmp", "ORT_DISABLE_TELEMETRY=1"} <= set(config["Env"])


def test_the_image_says_its_version_its_revision_and_its_bundle(image: str) -> None:
    found, digest = description(image), hashlib.sha256((ROOT / "bundle" / MANIFEST).read_bytes()).hexdigest()
    assert re.fullmatch("[0-9a-f]{40}", found["revision"])
    assert found == {"version": VERSION, "revision": found["revision"], "bundle": digest}
    assert docker("image", "inspect", "--format", "{{.Id}}", f"{TAG}:{VERSION}")


def test_the_labels_name_the_licence_of_what_the_image_has_of_the_project(image: str) -> None:
    labels = json.loads(docker("image", "inspect", "--format", "{{json .Config.Labels}}", image))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "MIT AND PSF-2.0 AND BSD-3-Clause"
    assert labels["org.opencontainers.image.licenses"] == "MIT"  # the texts of Python's documentation are not in it


@pytest.mark.parametrize("is_folder", [False, True])
def test_without_a_bundle_the_build_says_how_to_make_one(context: Path, is_folder: bool) -> None:
    shutil.rmtree(context / "bundle")
    if is_folder:
        (context / "bundle").mkdir()
    with pytest.raises(AssertionError, match="make a bundle first: semsearch index PATH --out bundle/"):
        docker("build", str(context))


def state_files(bundle: Path) -> None:
    """Let the manifest state the files of a bundle as they are: the image's build checks them."""
    manifest = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    manifest["files"] = {name: asdict(describe_file(bundle / name)) for name in manifest["files"]}
    (bundle / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize(
    ("changed", "rebuilt"),
    [
        ((), 1),
        (("bundle/index.safetensors", "bundle/passages.safetensors", "bundle/manifest.json"), 2),
        (("bundle/model.ort", "bundle/index.safetensors", "bundle/manifest.json"), 3),
        (("semsearch/app/app.py",), 4),
    ],
    ids=["another revision", "a new corpus", "a new model", "new code"],
)
def test_a_change_rebuilds_only_its_own_layer_and_those_after_it(
    image: str, context: Path, tag: str, changed: tuple[str, ...], rebuilt: int
) -> None:
    for name in changed:
        with (context / name).open("ab") as file:
            file.write(b"\n")
    if changed:
        state_files(context / "bundle")
    before, after = diff_ids(image), diff_ids(build(context, tag))
    assert len(after) == len(before)
    same = len(before) - rebuilt
    assert after[:same] == before[:same]
    assert not set(after[same:]) & set(before[same:])


def test_the_list_of_packages_names_every_package_of_the_lock_with_version_and_hashes(image: str) -> None:
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    locked = {}
    for entry in re.split(r"^(?=[\w-]+==)", lock, flags=re.MULTILINE)[1:]:
        name, version = re.findall(r"[^\s=]+", entry)[:2]
        locked[name, version] = set(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry))
    named = {
        (one["name"], one["version"]): {
            entry["content"]
            for reference in one["externalReferences"]
            for entry in reference["hashes"]
            if entry["alg"] == "SHA-256"
        }
        for one in json.loads(docker("run", "--rm", "--entrypoint", "cat", image, "sbom.cdx.json"))["components"]
    }
    assert len(locked) > 10
    assert named == locked
