"""What is kept for an update is used only by the same code, with the same options, for the same files."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.bundle import COLUMNS, INDEX, KEYWORDS, MODEL, PASSAGES, UPDATE, FileInfo, Manifest
from semsearch.engine.passages import Lines
from semsearch.engine.tensors import AnyArray, map_tensors
from semsearch.indexing.corpus.corpus import PassageRow
from semsearch.indexing.digests import digest_texts
from semsearch.indexing.tensor_files import save_tensors
from semsearch.indexing.update_file import (
    MEASURED,
    RowDigests,
    kept_records,
    read_update,
    recipe_of,
    records_tensors,
    write_update,
)
from semsearch.version import VERSION
from tests.bundle_files import damage

PARTS: dict[str, AnyArray] = {"facts.a": np.array([1, 2], np.uint16), "digests.rows": np.zeros((2, 16), np.uint8)}
RECIPE = recipe_of({})


def test_parts_are_read_as_they_were_written(manifest: Manifest, tmp_path: Path) -> None:
    write_update(tmp_path, manifest, RECIPE, PARTS, changed_rows=7)
    found = read_update(tmp_path, manifest, RECIPE)
    assert found is not None
    assert found.keys() == {*PARTS, MEASURED, "recipe", "checksum"}
    assert all(np.array_equal(found[name], part) for name, part in PARTS.items())
    assert found[MEASURED].dtype == np.uint64
    assert found[MEASURED].tolist() == [7]


@pytest.mark.parametrize("name", [INDEX, PASSAGES, COLUMNS, KEYWORDS])
def test_parts_of_other_rows_do_not_fit(name: str, manifest: Manifest, tmp_path: Path) -> None:
    write_update(tmp_path, manifest, RECIPE, PARTS, changed_rows=0)
    other = {**manifest.files, name: FileInfo(manifest.files[name].bytes, "0" * 64)}
    missing = {each: info for each, info in manifest.files.items() if each != name}
    for files in (other, missing):
        assert read_update(tmp_path, replace(manifest, files=files), RECIPE) is None
    others = {**manifest.files, MODEL: FileInfo(0, "")}  # which has no rows
    assert read_update(tmp_path, replace(manifest, files=others), RECIPE) is not None


def test_parts_of_another_recipe_and_damaged_ones_do_not_fit(manifest: Manifest, tmp_path: Path) -> None:
    assert read_update(tmp_path, manifest, RECIPE) is None
    write_update(tmp_path, manifest, RECIPE, PARTS, changed_rows=0)
    assert read_update(tmp_path, manifest, recipe_of({"stem": "german"})) is None
    found = read_update(tmp_path, manifest, RECIPE)
    assert found is not None
    tensors = {name: tensor.copy() for name, tensor in found.items()}  # the file is written again
    for changed in ({"facts.a": PARTS["facts.a"] + np.uint16(1)}, {"facts.b": PARTS["facts.a"]}):
        save_tensors(tmp_path / UPDATE, tensors | changed)
        assert read_update(tmp_path, manifest, RECIPE) is None
    for missing in ("checksum", "recipe", "facts.a"):
        save_tensors(tmp_path / UPDATE, {name: tensor for name, tensor in tensors.items() if name != missing})
        assert read_update(tmp_path, manifest, RECIPE) is None
    damage(tmp_path / UPDATE)
    assert read_update(tmp_path, manifest, RECIPE) is None


def test_a_recipe_has_versions_and_options() -> None:
    assert json.loads(recipe_of({"b": 1, "a": "ü"})) == {"version": VERSION, "kept": 1, "options": {"a": "ü", "b": 1}}
    assert recipe_of({"b": 1, "a": "ü"}) == recipe_of({"a": "ü", "b": 1})
    assert "ü" in recipe_of({"a": "ü"})


def test_records_are_kept_for_the_same_way_of_reading(tmp_path: Path) -> None:
    tensors = records_tensors({}, "key")
    save_tensors(tmp_path / UPDATE, tensors)
    kept = map_tensors(tmp_path / UPDATE)
    assert kept_records(kept, "key") == {}
    assert kept_records(kept, "other") is None
    assert kept_records(None, "key") is None
    save_tensors(tmp_path / "none", {"facts.a": PARTS["facts.a"]})
    assert kept_records(map_tensors(tmp_path / "none"), "key") is None


def test_digests_of_rows_tell_apart_what_differs() -> None:
    rows = [PassageRow("text", "id", '{"title":"T"}', "*text*"), PassageRow("other", "id", "{}")]
    found = RowDigests.of(rows, has_prefixes=False)
    assert found.texts.tolist() == found.embedded.tolist() == digest_texts(["text", "other"]).tolist()
    assert found.ids.tolist() == digest_texts(["id", "id"]).tolist()
    prefixed = RowDigests.of(rows, has_prefixes=True)
    assert prefixed.embedded.tolist() == digest_texts(["T\n*text*", "other"]).tolist()
    assert prefixed.rows.tolist() == found.rows.tolist()
    others = [
        rows[0],
        rows[0]._replace(text="texti", id="d"),
        rows[0]._replace(id="other"),
        rows[0]._replace(metadata="{}"),
        rows[0]._replace(source=""),
    ]
    assert len(set(RowDigests.of(others, has_prefixes=False).rows.tolist())) == 5
    moved = RowDigests.of([rows[0]._replace(lines=Lines(3, 4))], has_prefixes=False)
    assert moved.rows.tolist() == found.rows[:1].tolist()  # a text that has only moved is the same


def test_digests_of_an_update_are_those_of_its_rows() -> None:
    rows = [PassageRow(f"text {number}", f"id {number}", f'{{"a":{number}}}') for number in range(5)]

    def digests(*numbers: int) -> RowDigests:
        return RowDigests.of((rows[number] for number in numbers), has_prefixes=True)

    def tensors(of: RowDigests) -> dict[str, bytes]:
        return {name: tensor.tobytes() for name, tensor in of.tensors().items()}

    updated = digests(0, 1, 2).updated(np.array([2, -1, 0, -1]), digests(3, 4))
    assert tensors(updated) == tensors(digests(2, 3, 0, 4))
    assert tensors(digests(0, 1, 2).at(np.array([2, 0]))) == tensors(digests(2, 0))
    assert updated.tensors()["digests.rows"].shape == (4, 16)
