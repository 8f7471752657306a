"""A bundle opens when it is whole; otherwise the error says where, what was found, what was expected, what to do."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.bundle import (
    COLUMNS,
    FORMAT_VERSION,
    INDEX,
    KEYWORDS,
    MANIFEST,
    MODEL,
    PASSAGES,
    TOKENIZER,
    BundleError,
    Manifest,
    VectorsInfo,
    check_bundle,
    check_files,
    describe_file,
    read_manifest,
)
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import RemoteBundle, load_bundle
from semsearch.engine.tensors import TensorsError
from tests.bundle_files import damage
from tests.world import STORY_COLUMNS

Change = Callable[[dict[str, Any]], object]


def rewrite(bundle: Path, change: Change) -> None:
    found = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    change(found)
    (bundle / MANIFEST).write_text(json.dumps(found), encoding="utf-8")


def refusal(bundle: Path) -> str:
    with pytest.raises(BundleError) as caught:
        check_bundle(bundle)
    return str(caught.value)


def test_a_missing_or_empty_folder_is_refused_with_the_command_that_makes_a_bundle(tmp_path: Path) -> None:
    missing, make = tmp_path / "none", "make a bundle with `semsearch index PATH --out"
    assert refusal(missing) == f"{missing}: is not a folder; {make} {missing}`"
    assert refusal(tmp_path) == f"{tmp_path}: holds no manifest.json; {make} {tmp_path}`"


def test_a_manifest_that_cannot_be_read_is_named(bundle_copy: Path) -> None:
    (bundle_copy / MANIFEST).unlink()
    (bundle_copy / MANIFEST).mkdir()
    assert re.fullmatch(rf"{bundle_copy / MANIFEST}: .*{MANIFEST}'{AGAIN}", refusal(bundle_copy))


def test_people_can_read_a_manifest(manifest: Manifest) -> None:
    corpus = replace(manifest.corpus, title="Żółw")
    written = replace(manifest, corpus_or_none=corpus).to_json()
    assert written.startswith('{\n  "model": {\n    "name": ')
    assert written.endswith("\n}\n")
    assert '"title": "Żółw"' in written


AGAIN = "; run `semsearch index` again"
OTHER_VERSION = f", this code reads {FORMAT_VERSION}{AGAIN}"
NEWER = "install that here, or `semsearch rollback` to an older bundle"


@pytest.mark.parametrize(
    ("content", "begin", "end"),
    [
        (b"{", "", AGAIN),
        (b'{"format_version": 4}', "format_version is 4", OTHER_VERSION),
        (b'{"format_version": "5"}', "format_version is 5", OTHER_VERSION),
        (b"[]", "format_version is None", OTHER_VERSION),
        (f'{{"format_version": {FORMAT_VERSION + 1}}}'.encode(), f"format_version is {FORMAT_VERSION + 1}", NEWER),
    ],
)
def test_what_is_no_manifest_of_this_version_is_refused(
    bundle_copy: Path, content: bytes, begin: str, end: str
) -> None:
    (bundle_copy / MANIFEST).write_bytes(content)
    assert refusal(bundle_copy).startswith(f"{bundle_copy / MANIFEST}: {begin}")
    assert refusal(bundle_copy).endswith(end)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda found: found.pop("model"), "model"),
        (lambda found: found["index"].pop("keywords"), "keywords"),
        (lambda found: found["model"].update(colour="red"), "colour"),
        (lambda found: found.update(files=[]), "is missing or wrong"),
        (lambda found: found["files"].pop(COLUMNS), f": lists no {COLUMNS}"),
    ],
)
def test_a_manifest_with_other_fields_is_refused_and_the_field_named(
    bundle_copy: Path, change: Change, found: str
) -> None:
    rewrite(bundle_copy, change)
    message = refusal(bundle_copy)
    assert message.startswith(f"{bundle_copy / MANIFEST}: ")
    assert found in message
    assert message.endswith(AGAIN)


def test_a_missing_file_and_a_manifest_that_does_not_fit_the_files_are_refused(bundle_copy: Path) -> None:
    rewrite(bundle_copy, lambda found: found["index"].update(rows=7))
    with pytest.raises(BundleError, match=AGAIN):
        load_bundle(bundle_copy)
    (bundle_copy / KEYWORDS).unlink()
    assert refusal(bundle_copy) == f"{bundle_copy / KEYWORDS}: is missing{AGAIN}"


@pytest.mark.parametrize("difference", [-1, 1])
def test_a_file_of_another_length_is_refused(bundle_copy: Path, difference: int) -> None:
    path = bundle_copy / COLUMNS
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size + difference)
    expected = f"{size + difference} bytes, the manifest says {size}; run `semsearch index` again"
    assert refusal(bundle_copy) == f"{path}: {expected}"


@pytest.mark.parametrize(("name", "field"), [(MODEL, "model_sha256"), (TOKENIZER, "tokenizer_sha256")])
def test_an_index_of_another_model_or_tokenizer_is_refused(bundle_copy: Path, name: str, field: str) -> None:
    rewrite(bundle_copy, lambda found: found["index"].update({field: "f" * 64}))
    held = describe_file(bundle_copy / name).sha256[:12]
    assert refusal(bundle_copy) == (
        f"{bundle_copy / INDEX}: was embedded by {name} ffffffffffff, the bundle holds {held}; "
        f"run `semsearch index PATH --out {bundle_copy}`"
    )


def test_a_bundle_that_combines_ranks_is_refused_with_the_command_that_repairs_it(bundle_copy: Path) -> None:
    rewrite(bundle_copy, lambda found: found["index"]["keywords"].update(fusion="rrf"))
    expected = f"fusion is rrf, this code reads convex; run `semsearch index PATH --out {bundle_copy}`"
    assert refusal(bundle_copy) == f"{bundle_copy / MANIFEST}: {expected}"


def test_a_bundle_of_1_0_0_in_s3_vectors_opens_unless_it_kept_its_texts(bundle_copy: Path) -> None:
    vectors: dict[str, Any] = {"bucket": "bucket", "index": "index", "region": "eu-central-1", "keys": "abc"}
    rewrite(bundle_copy, lambda found: found["index"].update(vectors=vectors | {"keeps_texts": False}))
    assert check_bundle(bundle_copy).corpus.vectors == VectorsInfo(**vectors)
    rewrite(bundle_copy, lambda found: found["index"].update(vectors=vectors | {"keeps_texts": True}))
    expected = (
        "only the embeddings are in S3 Vectors, expected the texts too; publish the bundle with its embeddings again"
    )
    assert refusal(bundle_copy) == f"{bundle_copy / MANIFEST}: {expected}"


def test_a_model_without_texts_is_refused_with_the_command_that_adds_them(bundle_copy: Path) -> None:
    rewrite(bundle_copy, lambda found: found.update(index=None))
    assert read_manifest(bundle_copy).corpus_or_none is None
    expected = f"holds a model and no texts; run `semsearch index PATH --out {bundle_copy}`"
    assert refusal(bundle_copy) == f"{bundle_copy}: {expected}"
    with pytest.raises(BundleError, match=r"^the bundle holds a model and no texts; add texts with `semsearch index "):
        _ = read_manifest(bundle_copy).corpus


def test_a_bundle_without_texts_of_its_own_has_the_rows_and_columns_of_its_manifest(
    manifest: Manifest, embedder: Embedder
) -> None:
    remote = RemoteBundle(manifest, embedder, Path())
    assert (remote.is_view, remote.rows, remote.column_kinds) == (False, 200, STORY_COLUMNS)


def test_a_byte_that_differs_in_any_file_is_found_by_its_checksum(bundle_copy: Path) -> None:
    for name in (MODEL, TOKENIZER, INDEX, COLUMNS, KEYWORDS, PASSAGES):
        check_files(bundle_copy)
        damage(bundle_copy / name)
        with pytest.raises(BundleError, match=f"{name}: is damaged: SHA-256"):
            check_files(bundle_copy)
        damage(bundle_copy / name)  # this restores it


@pytest.mark.parametrize("name", [INDEX, PASSAGES])
def test_a_damaged_file_of_the_right_length_is_refused_by_name(bundle_copy: Path, name: str) -> None:
    with (bundle_copy / name).open("r+b") as file:
        file.write(b"\xff" * 8)  # the length of the header
    with pytest.raises(TensorsError, match=name):
        load_bundle(bundle_copy)


@pytest.mark.parametrize("name", [TOKENIZER, MODEL])
def test_a_damaged_model_or_tokenizer_is_refused_by_name_and_reason(bundle_copy: Path, name: str) -> None:
    path = bundle_copy / name
    path.write_bytes(b"}" * path.stat().st_size)
    with pytest.raises(BundleError) as refused:
        load_bundle(bundle_copy)
    reason = str(refused.value.__cause__)
    assert reason
    assert str(refused.value) == f"{path}: {reason}; run `semsearch index` again"
