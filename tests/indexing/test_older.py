"""What an update takes from the older index, and when it measures again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.bundle import MODEL, PASSAGES, TOKENIZER, FileInfo, Manifest, VectorsInfo
from semsearch.engine.errors import ExpectedError
from semsearch.engine.semantic.index import EXHAUSTIVE_ROWS
from semsearch.engine.tensors import Tensors
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.digests import digest_texts
from semsearch.indexing.facts import read_facts
from semsearch.indexing.older import OlderIndex
from semsearch.indexing.row_changes import RowChanges, match_rows
from semsearch.indexing.update_file import MEASURED, RowDigests, facts_tensors
from tests.bundle_files import write_passages

NOTHING = RowDigests.of((), has_prefixes=False)


def changes(
    manifest: Manifest, before: int, stay: int, new: int, measured: int = 0, *, is_kept: bool = True
) -> RowChanges:
    """Return the changes of an index of `before` rows, of which the first ones stay, to one with new ones at the end.

    measured is the number of rows that earlier updates have added or removed since the recall was measured.
    """
    kept = Tensors(Path("update"))
    kept[MEASURED] = np.array([measured], np.uint64)
    described = replace(manifest, corpus_or_none=replace(manifest.corpus, rows=before))
    older = OlderIndex(Path("older"), described, NOTHING, kept if is_kept else None)
    return RowChanges(older, np.array([*range(stay), *[-1] * new], np.intp), NOTHING)


@pytest.mark.parametrize(
    ("numbers", "is_measured"),
    [
        ((100, 100, 0), False),
        ((100, 100, 10), False),  # 10 of 110
        ((90, 90, 10), False),  # 10 of 100
        ((89, 89, 11), True),  # 11 of 100
        ((105, 95, 5), True),  # 10 are gone and 5 are new, of 100
        ((105, 99, 1), False),  # 6 are gone and 1 is new, of 100
        ((99, 99, 1, 9), False),  # 9 were changed before
        ((99, 99, 1, 10), True),
        ((EXHAUSTIVE_ROWS, EXHAUSTIVE_ROWS, 0), False),
        ((EXHAUSTIVE_ROWS, EXHAUSTIVE_ROWS, 1), True),  # searches do not look at all rows now
        ((EXHAUSTIVE_ROWS + 1, EXHAUSTIVE_ROWS, 0), True),
        ((EXHAUSTIVE_ROWS + 1, EXHAUSTIVE_ROWS + 1, 1), False),
    ],
    ids=str,
)
def test_the_recall_is_measured_again_after_a_tenth_of_changes(
    manifest: Manifest, numbers: tuple[int, ...], is_measured: bool
) -> None:
    assert changes(manifest, *numbers).need_measurement(manifest) is is_measured


def test_the_recall_of_another_model_is_measured(manifest: Manifest) -> None:
    same = changes(manifest, 100, 100, 0)
    for name in (MODEL, TOKENIZER):
        files = {**manifest.files, name: FileInfo(1, "0" * 64)}
        assert same.need_measurement(replace(manifest, files=files))
    assert same.need_measurement(replace(manifest, model=replace(manifest.model, max_tokens=7)))
    assert same.need_measurement(replace(manifest, files={**manifest.files, "other": FileInfo(1, "")})) is False
    assert changes(manifest, 100, 100, 0, is_kept=False).need_measurement(manifest)
    assert RowChanges(None, np.array([-1]), NOTHING).need_measurement(manifest)


def test_rows_that_were_added_or_removed_are_counted(manifest: Manifest) -> None:
    changed = changes(manifest, 10, 7, 2, 5)
    assert (changed.new.tolist(), changed.gone.tolist(), changed.count_since_measured()) == ([7, 8], [7, 8, 9], 10)
    unknown = changes(manifest, 10, 7, 2, 5, is_kept=False)
    assert (unknown.new.tolist(), unknown.gone.tolist()) == ([*range(9)], [*range(10)])
    assert unknown.count_since_measured() == 19
    first = RowChanges(None, np.array([-1, -1]), NOTHING)
    assert (first.new.tolist(), first.gone.tolist(), first.count_since_measured()) == ([0, 1], [], 2)


def test_a_new_row_is_the_first_equal_older_row_that_is_free() -> None:
    older = digest_texts(["a", "b", "a", "a", "c"])
    known = np.array([-1, 0, -1, -1, -1], np.intp)
    new = digest_texts(["a", "a", "x", "c"])
    assert match_rows(older, new, known).tolist() == [2, 0, -1, -1, 4]


def test_texts_in_s3_vectors_are_not_updated_here(bundle_copy: Path, manifest: Manifest) -> None:
    vectors = VectorsInfo(bucket="vectors", index="texts", region="eu-central-1", keys="a-")
    write_manifest(bundle_copy, replace(manifest, corpus_or_none=replace(manifest.corpus, vectors=vectors)))
    with pytest.raises(ExpectedError) as caught:
        OlderIndex.open(bundle_copy, "")
    assert str(caught.value) == (
        f"{bundle_copy}: its texts are in S3 Vectors; name the bundle that was published there"
    )


def test_a_column_of_numbers_is_stored_as_strings_if_one_of_its_values_is(
    bundle_copy: Path, manifest: Manifest
) -> None:
    lines = ['{"a": 1, "b": 2, "c": "x"}', '{"a": "5"}']
    kept = Tensors(Path("update"))
    kept.update(facts_tensors(read_facts(lines)))
    described = replace(manifest.corpus, columns={"a": "number", "b": "number", "c": "string"})
    older = OlderIndex(bundle_copy, replace(manifest, corpus_or_none=described), NOTHING, kept)
    assert older.stored_kinds() == {"a": "string", "b": "number", "c": "string"}
    write_passages(bundle_copy / PASSAGES, ["x"] * 2, ["0", "1"], lines)
    assert replace(older, kept=None).stored_kinds() == older.stored_kinds()
