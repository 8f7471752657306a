"""A bundle opens when it is whole; otherwise the error says where, what was found, what was expected, what to do."""

import __future__

import hashlib
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.corpus import Corpus
from function.engine import bundle as bundle_module
from function.engine.bundle import (
    COLUMNS,
    FORMAT_VERSION,
    INDEX,
    KEYWORDS,
    MANIFEST,
    MODEL,
    PASSAGES,
    TOKENIZER,
    BundleError,
    FileInfo,
    describe_file,
    open_bundle,
    parse_manifest,
    read_manifest,
)

Change = Callable[[dict[str, Any]], object]


def rewrite(bundle: Path, change: Change) -> None:
    """Change the manifest, parsed, in place."""
    found = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    change(found)
    (bundle / MANIFEST).write_text(json.dumps(found), encoding="utf-8")


def refusal(bundle: Path) -> str:
    """Return the text of the error that opening the bundle raises."""
    with pytest.raises(BundleError) as caught:
        open_bundle(bundle)
    return str(caught.value)


def test_a_whole_bundle_opens_and_its_manifest_says_what_is_in_it(bundle: Path, corpus: Corpus) -> None:
    manifest = open_bundle(bundle)
    assert manifest.format_version == FORMAT_VERSION
    assert manifest.index is not None
    assert manifest.index.rows == len(corpus.texts)
    assert manifest.model.name == "tests/mean-of-words"
    assert manifest.files.keys() == {MODEL, TOKENIZER, INDEX, PASSAGES, COLUMNS, KEYWORDS}


def test_a_manifest_comes_back_from_its_own_text(bundle: Path, bundle_copy: Path) -> None:
    manifest = open_bundle(bundle)
    (bundle_copy / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    assert open_bundle(bundle_copy) == manifest


def test_the_manifest_states_fewer_dimensions_and_another_model_for_passages_only_where_there_are_any(
    bundle: Path,
) -> None:
    manifest = open_bundle(bundle)
    assert not {"full_dim", "documents"} & json.loads(manifest.to_json())["model"].keys()
    changed = replace(manifest, model=replace(manifest.model, full_dim=768, documents="0123456789abcdef"))
    assert parse_manifest(changed.to_json().encode(), "here") == changed
    for name, value in (("full_dim", 0), ("full_dim", True), ("documents", None)):
        content = json.loads(changed.to_json())
        content["model"][name] = value
        with pytest.raises(BundleError, match=f"here: {name} .* is missing or wrong"):
            parse_manifest(json.dumps(content).encode(), "here")


def test_the_manifest_states_the_bytes_and_the_checksum_of_each_file(bundle: Path) -> None:
    for name, stated in open_bundle(bundle).files.items():
        content = (bundle / name).read_bytes()
        assert stated == FileInfo(len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "file"


@given(st.binary(max_size=2000))
def test_a_file_is_described_by_its_length_and_sha_256(scratch: Path, content: bytes) -> None:
    scratch.write_bytes(content)
    assert describe_file(scratch) == FileInfo(len(content), hashlib.sha256(content).hexdigest())


def test_a_missing_folder_is_refused_with_the_command_that_makes_a_bundle(tmp_path: Path) -> None:
    bundle = tmp_path / "none"
    assert refusal(bundle) == f"{bundle}: is not a folder; make a bundle with `python -m export --out {bundle}`"


def test_a_command_in_a_message_can_be_pasted_whatever_the_folder_is_called(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "it's $HOME (old)"
    assert shlex.split(refusal(folder).split("`")[1]) == ["python", "-m", "export", "--out", str(folder)]
    shutil.copytree(bundle, folder)
    rewrite(folder, lambda found: found["index"].update(model_sha256="f" * 64))
    corpus = ["python", "-m", "export", "corpus", "--corpus", "FILE", "--out", str(folder)]
    assert shlex.split(refusal(folder).split("`")[1]) == corpus
    rewrite(folder, lambda found: found.update(index=None))
    assert shlex.split(refusal(folder).split("`")[1]) == corpus


def test_a_folder_without_a_manifest_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    expected = f"{tmp_path}: holds no manifest.json; make a bundle with `python -m export --out {tmp_path}`"
    assert refusal(tmp_path) == expected


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bundle").write_text("no folder")
    assert str(tmp_path / "bundle") in refusal(tmp_path / "bundle")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"not json"])
def test_a_manifest_that_is_not_json_is_refused(bundle_copy: Path, content: bytes) -> None:
    (bundle_copy / MANIFEST).write_bytes(content)
    message = refusal(bundle_copy)
    assert message.startswith(f"{bundle_copy / MANIFEST}: ")
    assert message.endswith("run `python -m export` again")


@pytest.mark.parametrize("version", [4, 6, "5", None, [5], "a manifest that is no object"])
def test_another_format_version_is_refused(bundle_copy: Path, version: object) -> None:
    rewrite(bundle_copy, lambda found: found.update(format_version=version))
    if version == "a manifest that is no object":
        (bundle_copy / MANIFEST).write_text("[]")
        version = None
    expected = f"format_version is {version}, this code reads {FORMAT_VERSION}; run `python -m export` again"
    assert refusal(bundle_copy) == f"{bundle_copy / MANIFEST}: {expected}"


CHANGES: dict[str, tuple[Change, str]] = {
    "no model": (lambda found: found.pop("model"), "model"),
    "no index": (lambda found: found.pop("index"), "index"),
    "no files": (lambda found: found.pop("files"), "files"),
    "no dim": (lambda found: found["model"].pop("dim"), "dim"),
    "no rows": (lambda found: found["index"].pop("rows"), "rows"),
    "no sha256": (lambda found: found["files"][MODEL].pop("sha256"), "sha256"),
    "no keywords": (lambda found: found["index"].pop("keywords"), "keywords"),
    "keywords as a truth": (lambda found: found["index"].update(keywords=True), "'bool'"),
    "no stemming": (lambda found: found["index"]["keywords"].pop("stemming"), "stemming"),
    "weight in words": (lambda found: found["index"]["keywords"].update(fusion_weight="0.6"), "fusion_weight '0.6'"),
    "one field more in the model": (lambda found: found["model"].update(colour="red"), "colour"),
    "one field more in the index": (lambda found: found["index"].update(colour="red"), "colour"),
    "one field more in a file": (lambda found: found["files"][INDEX].update(colour="red"), "colour"),
    "dim in words": (lambda found: found["model"].update(dim="48"), "dim '48'"),
    "dim as a fraction": (lambda found: found["model"].update(dim=48.0), "dim 48.0"),
    "dim as a truth": (lambda found: found["model"].update(dim=True), "dim True"),
    "max_tokens null": (lambda found: found["model"].update(max_tokens=None), "max_tokens None"),
    "name as a number": (lambda found: found["model"].update(name=5), "name 5"),
    "revision as a number": (lambda found: found["model"].update(revision=5), "revision 5"),
    "a prompt as a number": (lambda found: found["model"].update(prompts={"query": 5}), "prompts {'query': 5}"),
    "accuracy as a number": (lambda found: found["model"].update(accuracy=1), "accuracy 1"),
    "accuracy in words": (lambda found: found["model"].update(accuracy={"texts": "9"}), "accuracy {'texts': '9'}"),
    "rows as a list": (lambda found: found["index"].update(rows=[200]), "rows [200]"),
    "bytes in words": (lambda found: found["files"][PASSAGES].update(bytes="9"), "bytes '9'"),
    "the model as a list": (lambda found: found.update(model=[]), ""),
    "the files as a list": (lambda found: found.update(files=[]), ""),
    "a file as a number": (lambda found: found["files"].update({INDEX: 7}), ""),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_manifest_with_other_fields_is_refused_and_the_field_named(bundle_copy: Path, kind: str) -> None:
    change, found = CHANGES[kind]
    rewrite(bundle_copy, change)
    message = refusal(bundle_copy)
    assert message.startswith(f"{bundle_copy / MANIFEST}: ")
    assert found in message
    assert message.endswith("is missing or wrong; run `python -m export` again")


@pytest.mark.parametrize("kind", ["dim in words", "name as a number", "bytes in words", "accuracy in words"])
def test_types_are_checked_where_annotations_are_strings_too(
    bundle_copy: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quoted = ModuleType("bundle_with_quoted_annotations")
    monkeypatch.setitem(sys.modules, quoted.__name__, quoted)
    code = compile(
        Path(str(bundle_module.__file__)).read_text(), quoted.__name__, "exec", __future__.annotations.compiler_flag
    )
    exec(code, quoted.__dict__)
    assert {entry.type for entry in fields(quoted.FileInfo)} == {"int", "str"}
    quoted.read_manifest(bundle_copy)
    rewrite(bundle_copy, CHANGES[kind][0])
    with pytest.raises(quoted.BundleError, match=re.escape(CHANGES[kind][1])):
        quoted.read_manifest(bundle_copy)


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, INDEX, PASSAGES, COLUMNS, KEYWORDS])
def test_a_missing_file_is_refused(bundle_copy: Path, name: str) -> None:
    (bundle_copy / name).unlink()
    assert refusal(bundle_copy) == f"{bundle_copy / name}: is missing; run `python -m export` again"


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, INDEX, PASSAGES, COLUMNS])
@pytest.mark.parametrize("difference", [-1, 1])
def test_a_file_of_another_length_is_refused(bundle_copy: Path, name: str, difference: int) -> None:
    path = bundle_copy / name
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size + difference)
    expected = f"{size + difference} bytes, the manifest says {size}; run `python -m export` again"
    assert refusal(bundle_copy) == f"{path}: {expected}"


@pytest.mark.parametrize("name", [MODEL, TOKENIZER, INDEX, PASSAGES, COLUMNS])
def test_a_file_the_manifest_does_not_list_is_refused(bundle_copy: Path, name: str) -> None:
    rewrite(bundle_copy, lambda found: found["files"].pop(name))
    assert refusal(bundle_copy) == f"{bundle_copy / MANIFEST}: lists no {name}; run `python -m export` again"


@pytest.mark.parametrize(("name", "field"), [(MODEL, "model_sha256"), (TOKENIZER, "tokenizer_sha256")])
def test_an_index_of_another_model_or_tokenizer_is_refused(bundle_copy: Path, name: str, field: str) -> None:
    rewrite(bundle_copy, lambda found: found["index"].update({field: "f" * 64}))
    held = describe_file(bundle_copy / name).sha256[:12]
    assert refusal(bundle_copy) == (
        f"{bundle_copy / INDEX}: was embedded by {name} ffffffffffff, the bundle holds {held}; "
        f"run `python -m export corpus --corpus FILE --out {bundle_copy}`"
    )


def test_a_model_without_texts_is_refused_with_the_command_that_adds_them(bundle_copy: Path) -> None:
    rewrite(bundle_copy, lambda found: found.update(index=None))
    assert read_manifest(bundle_copy).index is None
    expected = f"holds a model and no texts; run `python -m export corpus --corpus FILE --out {bundle_copy}`"
    assert refusal(bundle_copy) == f"{bundle_copy}: {expected}"
