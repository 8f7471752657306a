"""An index without a model: its embeddings are made elsewhere, and belong to rows."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from semsearch import OptionError, changing, index, remove
from semsearch.engine.bundle import (
    GIVEN,
    INDEX,
    KEYWORDS,
    MANIFEST,
    PASSAGES,
    ModelInfo,
    VectorsInfo,
    check_bundle,
    is_bundle,
    read_manifest,
)
from semsearch.engine.keyword.keywords import Keywords
from semsearch.engine.quantization import Embeddings, dequantize
from semsearch.engine.semantic.index import EXHAUSTIVE_ROWS, Index
from semsearch.engine.tensors import map_tensors
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.passages import stored_columns
from semsearch.indexing.make import IndexSummary
from semsearch.indexing.options import Topic, options_of
from semsearch.indexing.vectors.given import known_embeddings, read_embeddings
from semsearch.indexing.vectors.recall import TOP_K
from semsearch.indexing.verification import verify
from tests.command_line import run, summary
from tests.export_fixtures import clustered_rows
from tests.indexing.memory import peak_of
from tests.indexing.test_verification import change_tensors

MAKER = "openai/text-embedding-3-small"
DIM = 7


def rows_of(*numbers: int) -> list[dict[str, Any]]:
    """Return rows of which two successive ones have the same text."""
    return [{"id": f"r{number}", "text": f"A goose of the year {number // 2}", "year": number} for number in numbers]


def embeddings_of(*numbers: int, seed: int = 7) -> Embeddings:
    """Return an embedding for each number, of any length."""
    found = np.random.default_rng(seed).standard_normal((100, DIM)).astype(np.float32)
    return found[list(numbers)]


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """The folder of an index that is not there yet."""
    return tmp_path / "new"


@pytest.fixture
def bundle_of_ten(new: Path) -> Path:
    """An index of ten rows without a model."""
    index(rows_of(*range(10)), new, embeddings=embeddings_of(*range(10)), embedded_by=MAKER, progress=False)
    return new


def update(bundle: Path, numbers: list[int], mode: Any, *, seed: int = 8) -> IndexSummary:
    """Upsert rows with other embeddings than those of the fixture."""
    return index(rows_of(*numbers), bundle, embeddings=embeddings_of(*numbers, seed=seed), mode=mode, progress=False)


def stored(bundle: Path) -> dict[str, Embeddings]:
    """Return the unit embeddings of a bundle by their ids, in the order of its rows."""
    tensors = map_tensors(bundle / INDEX)
    ids = list(stored_columns(bundle / PASSAGES)[1])
    return dict(zip(ids, dequantize(tensors["codes"], tensors["scales"]), strict=True))


def require_stored(bundle: Path, expected: dict[str, Embeddings]) -> None:
    """Compare what is stored with embeddings by their ids. A step of 8 bit is a 127th of the largest value."""
    found = stored(bundle)
    assert list(found) == list(expected)
    for id, embedding in expected.items():
        unit = embedding / np.linalg.norm(embedding)
        assert np.abs(found[id] - unit).max() <= np.abs(unit).max() / 127, id


def by_id(*numbers: int, seed: int = 7) -> dict[str, Embeddings]:
    return {f"r{number}": row for number, row in zip(numbers, embeddings_of(*numbers, seed=seed), strict=True)}


def codes(bundle: Path) -> dict[str, bytes]:
    """Return the bytes of each row by its id."""
    tensors = map_tensors(bundle / INDEX)
    ids = stored_columns(bundle / PASSAGES)[1]
    pairs = zip(tensors["codes"], tensors["scales"], strict=True)
    return {id: code.tobytes() + scale.tobytes() for id, (code, scale) in zip(ids, pairs, strict=True)}


def test_the_bundle_has_no_model_and_says_so(bundle_of_ten: Path) -> None:
    manifest = check_bundle(bundle_of_ten)
    assert (manifest.has_model, manifest.model.name, manifest.model.dim) == (False, MAKER, DIM)
    names = {"columns.safetensors", "index.safetensors", "keywords.safetensors", "passages.safetensors"}
    assert manifest.files.keys() == names
    assert {path.name for path in bundle_of_ten.iterdir()} == {*names, MANIFEST, "source.txt", "update.safetensors"}
    info = manifest.corpus
    assert (info.model_sha256, info.tokenizer_sha256, info.embedded_by, info.floor) == ("", "", [GIVEN], {})
    assert info.recall == {
        "queries": 10,
        "neighbours": 1.0,
        "mixtures": 1.0,
        "neighbours_first": 1.0,
        "mixtures_first": 1.0,
    }
    assert is_bundle(bundle_of_ten)


def test_equal_texts_keep_their_own_embeddings(bundle_of_ten: Path) -> None:
    require_stored(bundle_of_ten, by_id(*range(10)))


def test_equal_rows_keep_their_own_embeddings_beside_an_update(new: Path) -> None:
    rows = [{"id": "same", "text": "one"}, {"id": "same", "text": "one"}, {"id": "other", "text": "two"}]
    given = embeddings_of(0, 1, 2)
    index(rows, new, embeddings=given, embedded_by=MAKER, progress=False)
    remove("other", new, progress=False)
    tensors = map_tensors(new / INDEX)
    found = dequantize(tensors["codes"], tensors["scales"])
    unit = given[:2] / np.linalg.norm(given[:2], axis=1, keepdims=True)
    assert np.abs(found - unit).max() < 0.01


def test_the_summary_names_what_made_the_embeddings(bundle_of_ten: Path) -> None:
    made = update(bundle_of_ten, [3, 20], "upsert")
    assert (made.rows.embedded, made.rows.given, made.rows.updated, made.embedded_by) == (0, 2, 9, MAKER)
    assert f"embedded_by='{MAKER}'" in repr(made)
    assert "model=" not in repr(made)
    assert f"<th>embedded_by</th><td>{MAKER}</td>" in made._repr_html_()


def test_an_upsert_takes_the_given_embedding_and_the_other_rows_keep_their_bytes(bundle_of_ten: Path) -> None:
    before = codes(bundle_of_ten)
    update(bundle_of_ten, [9, 3, 20], "upsert")  # the first two are as before, but for their embeddings
    require_stored(bundle_of_ten, {**by_id(*range(10)), **by_id(9, 3, 20, seed=8)})
    after = codes(bundle_of_ten)
    assert {id for id in before if before[id] != after[id]} == {"r3", "r9"}


def test_rows_are_added_at_the_end(bundle_of_ten: Path) -> None:
    update(bundle_of_ten, [12, 11], "add")
    require_stored(bundle_of_ten, {**by_id(*range(10)), **by_id(12, 11, seed=8)})


@pytest.mark.parametrize("mode", [None, "replace"])
def test_a_whole_table_takes_all_given_embeddings(mode: str | None, bundle_of_ten: Path) -> None:
    update(bundle_of_ten, [*range(10), 20], mode)
    require_stored(bundle_of_ten, by_id(*range(10), 20, seed=8))


def test_without_embeddings_rows_can_only_be_left_out(bundle_of_ten: Path) -> None:
    made = index(rows_of(8, 2), bundle_of_ten, mode="replace", progress=False)
    assert (made.rows.given, made.rows.updated, made.embedded_by) == (0, 2, MAKER)
    require_stored(bundle_of_ten, by_id(8, 2))
    index(rows_of(2, 8), bundle_of_ten, embedded_by=MAKER, progress=False)
    require_stored(bundle_of_ten, by_id(2, 8))
    for rows in (rows_of(2, 8, 3, 4), [rows_of(2)[0], {"id": "r3", "text": "Another"}, {"id": "r4", "text": "One"}]):
        with pytest.raises(OptionError, match="found none, and 2 rows are new or have changed, such as 'r3'; give"):
            index(rows, bundle_of_ten, mode="replace", progress=False)
    require_stored(bundle_of_ten, by_id(2, 8))


@pytest.mark.parametrize("mode", ["add", "upsert"])
def test_rows_are_added_only_with_embeddings(mode: Any, bundle_of_ten: Path) -> None:
    with pytest.raises(OptionError, match=f"found none, expected a row by {MAKER} for each row that mode {mode} takes"):
        index(rows_of(20), bundle_of_ten, mode=mode, progress=False)
    with pytest.raises(OptionError, match="found 2 rows, expected 1, one for each row of the texts"):
        index(rows_of(20), bundle_of_ten, mode=mode, embeddings=embeddings_of(1, 2), progress=False)


def test_removals_need_no_embeddings(bundle_of_ten: Path) -> None:
    remove(["r0", "r9"], bundle_of_ten, progress=False)
    remove(bundle=bundle_of_ten, where={"year": {"$gt": 6}}, progress=False)
    require_stored(bundle_of_ten, by_id(*range(1, 7)))


def test_a_block_of_changes_keeps_the_last_embedding_of_each_row(bundle_of_ten: Path) -> None:
    with changing(bundle_of_ten, progress=False) as texts:
        texts.upsert(rows_of(5, 21, 6), embeddings=embeddings_of(5, 21, 6, seed=8))
        texts.remove(["r0", "r6"])
        texts.add(rows_of(30, 6), embeddings=embeddings_of(30, 6, seed=9))
        texts.upsert(rows_of(21), embeddings=embeddings_of(21, seed=10))
        with pytest.raises(OptionError, match=f"found none, expected a row by {MAKER} for each row that add takes"):
            texts.add(rows_of(40))
        with pytest.raises(OptionError, match="found 2 rows, expected 1"):
            texts.upsert(rows_of(1), embeddings=embeddings_of(1, 2))
    assert texts.summary is not None
    assert (texts.summary.rows.given, texts.summary.rows.updated) == (4, 7)
    expected = {**by_id(1, 2, 3, 4), **by_id(5, seed=8), **by_id(7, 8, 9), **by_id(21, seed=10), **by_id(30, 6, seed=9)}
    require_stored(bundle_of_ten, expected)
    assert all(check.passed for check in texts.summary.checks)


def test_an_array_that_changes_within_a_block_of_changes_is_read_before(bundle_of_ten: Path) -> None:
    given = embeddings_of(5)
    with changing(bundle_of_ten, progress=False) as texts:
        texts.upsert(rows_of(5), embeddings=given)
        given[:] = embeddings_of(6, seed=8)
        texts.upsert(rows_of(6), embeddings=given)
        given[:] = 1
    require_stored(bundle_of_ten, {**by_id(*range(10)), **by_id(6, seed=8)})


def test_each_row_has_its_last_embedding_after_any_changes(new: Path) -> None:
    """The oracle is a dict. There are three texts and five embeddings, so that rows often differ in one part alone."""
    random = np.random.default_rng(7)
    texts: dict[str, str] = {}
    expected: dict[str, Embeddings] = {}

    def draw(ids: list[str]) -> tuple[list[dict[str, Any]], Embeddings]:
        """Return new texts and embeddings of some of the ids."""
        chosen = random.permutation(ids)[: int(random.integers(1, 7))].tolist()
        texts.update((id, f"text {random.integers(3)}") for id in chosen)
        given = embeddings_of(*random.integers(5, size=len(chosen)).tolist())
        return [{"id": id, "text": texts[id]} for id in chosen], given

    def take(rows: list[dict[str, Any]], given: Embeddings) -> None:
        expected.update((row["id"], embedding) for row, embedding in zip(rows, given, strict=True))

    rows, given = draw([f"r{number}" for number in range(20)])
    take(rows, given)
    index(rows, new, embeddings=given, embedded_by=MAKER, progress=False)
    for number in range(40):
        kind = random.choice(["upsert", "add", "remove", "leave out", "replace", "block"])
        if kind in ("remove", "leave out"):
            gone = set(random.permutation(list(expected))[: len(expected) // 2].tolist())
            for id in gone:
                del expected[id]
            if kind == "remove" and gone:
                remove(gone, new, progress=False)
            else:
                index([{"id": id, "text": texts[id]} for id in expected], new, mode="replace", progress=False)
        else:
            ids = [f"n{number}-{each}" for each in range(6)]
            if kind != "add":
                ids += expected
            rows, given = draw(ids)
            if kind == "replace":
                expected.clear()
            take(rows, given)
            if kind == "block":
                with changing(new, progress=False) as block:
                    block.upsert(rows, embeddings=given)
                    block.upsert(rows[:1], embeddings=-given[:1])
                take(rows[:1], -given[:1])
            else:
                mode: Any = str(kind)
                index(rows, new, embeddings=given, mode=mode, progress=False)
        require_stored(new, expected)


def test_a_damaged_index_is_made_again_of_given_embeddings_alone(bundle_of_ten: Path) -> None:
    (bundle_of_ten / PASSAGES).write_bytes(bytes((bundle_of_ten / PASSAGES).stat().st_size))
    with pytest.raises(OptionError, match="found none, and 2 rows are new or have changed"):
        index(rows_of(1, 2), bundle_of_ten, mode="replace", progress=False)
    made = update(bundle_of_ten, [1, 2], "replace")
    assert any("is damaged, so nothing of it was taken over" in warning for warning in made.warnings)
    require_stored(bundle_of_ten, by_id(1, 2, seed=8))


def test_with_a_model_a_block_of_changes_takes_no_embeddings(bundle_copy: Path) -> None:
    with (
        pytest.raises(OptionError, match="is for an index without a model here; use `index`"),
        changing(bundle_copy, progress=False) as texts,
    ):
        texts.add(rows_of(1), embeddings=embeddings_of(1))


def test_a_blank_text_is_skipped_with_its_embedding(new: Path) -> None:
    rows, given = rows_of(0, 1, 2, 3), embeddings_of(0, 1, 2, 3)
    rows[1]["text"], given[1] = " ", np.nan
    made = index(rows, new, embeddings=given, embedded_by=MAKER, progress=False)
    assert made.report.empty_texts == 1
    require_stored(new, by_id(0, 2, 3))


@pytest.mark.parametrize(("dim", "is_refused"), [(1, True), (2, False), (4_096, False), (4_097, True)])
def test_an_embedding_has_2_to_4096_values(dim: int, is_refused: bool, new: Path) -> None:
    given = np.eye(3, dim, dtype=np.float64) + 1
    if is_refused:
        with pytest.raises(OptionError, match=f"found {dim} values in a row, expected 2 to 4,096"):
            index(rows_of(0, 1, 2), new, embeddings=given, embedded_by=MAKER, progress=False)
        assert not is_bundle(new)
    else:
        index(rows_of(0, 1, 2), new, embeddings=given, embedded_by=MAKER, progress=False)
        require_stored(new, dict(zip(("r0", "r1", "r2"), given, strict=True)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found[:-1], "found 9 rows, expected 10, one for each row of the texts"),
        (
            lambda found: np.where(np.arange(10)[:, np.newaxis] == 0, np.nan, found),
            "row 0 has values that are not finite",
        ),
        (lambda found: np.where(np.arange(10)[:, np.newaxis] == 3, np.inf, found), "row 3 has values that are not fin"),
        (lambda found: np.where(np.arange(10)[:, np.newaxis] == 4, 0, found), "row 4 is zero; expected an embedding"),
        (lambda found: found[:, :-1], f"found {DIM - 1} values in a row, expected {DIM}, as of {MAKER}"),
    ],
)
def test_wrong_embeddings_are_refused_with_the_row(
    change: Callable[[Embeddings], Any], message: str, bundle_of_ten: Path
) -> None:
    given = change(embeddings_of(*range(10)))
    with pytest.raises(OptionError, match=message):
        index(rows_of(*range(10)), bundle_of_ten, embeddings=given, progress=False)
    require_stored(bundle_of_ten, by_id(*range(10)))


OF_A_MODEL: dict[str, Any] = {  # a value of each option that is about a model
    "split": True,
    "passage_tokens": 100,
    "overlap": 10,
    "model": "m",
    "revision": "v1",
    "pooling": "cls",
    "dimensions": 2,
    "query_prompt": "query: ",
    "document_prompt": "",
    "similarity": "cosine",
    "calibration": Path("texts.csv"),
    "calibration_column": "text",
    "cache": False,
    "rerank": "m",
    "rerank_revision": "v1",
    "rerank_weight": 0.5,
    "queries": "table",
    "questions": Path("questions.jsonl"),
    "learn": True,
    "ray": "auto",
    "device": "cuda",
    "dtype": "float32",
}


@pytest.mark.parametrize("name", OF_A_MODEL)
def test_options_of_a_model_are_refused(name: str, bundle_of_ten: Path, tmp_path: Path) -> None:
    given = {"embeddings": embeddings_of(1), name: OF_A_MODEL[name]}
    with pytest.raises(OptionError, match=f"{name}: is for a model, and an index of embeddings by {MAKER} has none"):
        index(rows_of(1), tmp_path / "another", embedded_by=MAKER, progress=False, **given)
    with pytest.raises(OptionError, match=f"{name}: .* has no.* model|{name}: is for a model"):
        index(rows_of(1), bundle_of_ten, mode="upsert", progress=False, **given)
    assert not (tmp_path / "another").exists()


def test_each_option_of_a_model_is_one_of_these_and_its_default_can_be_stated(new: Path) -> None:
    topics = (Topic.MODEL, Topic.RERANKER)
    assert {name for name, option in options_of(index).items() if option.topic in topics} - {"embedded_by"} <= (
        OF_A_MODEL.keys()
    )
    defaults = {name: each.default for name, each in inspect.signature(index).parameters.items() if name in OF_A_MODEL}
    index(rows_of(1), new, embeddings=embeddings_of(1), embedded_by=MAKER, progress=False, **defaults)
    require_stored(new, by_id(1))


def test_one_row_is_an_index(new: Path) -> None:
    made = index(rows_of(1), new, embeddings=embeddings_of(1), embedded_by=MAKER, progress=False)
    assert made.manifest.corpus.recall == {}
    assert all(check.passed for check in verify(new))


def test_embedded_by_needs_embeddings_and_a_name(new: Path) -> None:
    with pytest.raises(OptionError, match="embedded_by: has no effect without embeddings; add it"):
        index(rows_of(1), new, embedded_by=MAKER, progress=False)
    for wrong in ("", " ", "two\nlines"):
        with pytest.raises(OptionError, match=r"embedded_by: found .*, expected"):
            index(rows_of(1), new, embeddings=embeddings_of(1), embedded_by=wrong, progress=False)
    assert not new.exists()


def test_an_index_with_a_model_is_not_mixed_with_other_embeddings(bundle_copy: Path, new: Path) -> None:
    before = codes(bundle_copy)
    name = read_manifest(bundle_copy).model.name
    message = f"embedded_by: found '{MAKER}', and .* has the model {name}; make a new index in another folder"
    both: list[dict[str, Any]] = [{"out": bundle_copy}, {"out": new, "update": bundle_copy}]
    for places in both:
        with pytest.raises(OptionError, match=message):
            index(rows_of(1), embeddings=embeddings_of(1), embedded_by=MAKER, mode="replace", progress=False, **places)
    assert codes(bundle_copy) == before


def test_other_embeddings_are_not_mixed_with_those_of_another_maker(bundle_of_ten: Path, new: Path) -> None:
    given: dict[str, Any] = {"embeddings": embeddings_of(1), "mode": "upsert", "progress": False}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"embedded_by": "voyage"}, f"found 'voyage', expected '{MAKER}', which made the embeddings in .*new; make a"),
        ({"model": "m"}, f"model: .*new has no model, and embeddings by {MAKER}; make a new index in another folder"),
    ]
    for stated, message in cases:
        with pytest.raises(OptionError, match=message):
            index(rows_of(1), bundle_of_ten, **stated, **given)
    require_stored(bundle_of_ten, by_id(*range(10)))


def test_an_update_into_another_folder_takes_the_rows_along(bundle_of_ten: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    rows, given = rows_of(3), embeddings_of(3, seed=8)
    index(rows, newer, update=bundle_of_ten, mode="upsert", embeddings=given, progress=False)
    require_stored(newer, {**by_id(*range(10)), **by_id(3, seed=8)})
    require_stored(bundle_of_ten, by_id(*range(10)))


def test_documents_are_refused(bundle_of_ten: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Goose\n\nAn angry goose.\n")
    with pytest.raises(OptionError, match="embedded_by: is for the rows of a table; these texts are documents"):
        index(tmp_path / "docs", bundle_of_ten, mode="replace", progress=False)


def test_the_command_makes_updates_and_verifies_it(new: Path, tmp_path: Path) -> None:
    pl.DataFrame(rows_of(*range(10))).write_csv(tmp_path / "texts.csv")
    np.save(tmp_path / "e.npy", embeddings_of(*range(10)))
    words = ["index", tmp_path / "texts.csv", "--out", new]
    done = run(*words, "--embeddings", tmp_path / "e.npy", "--embedded-by", MAKER)
    assert (done.code, done.err) == (0, "")
    assert summary(done, "embeddings") == f"by {MAKER}, {DIM} dimensions; the index has no model"
    assert summary(done, "accuracy") == "recall@10 1 for neighbours, recall@10 1 for mixtures"
    done = run(*words, "--verbose")
    assert summary(done, "embeddings") == f"by {MAKER}, {DIM} dimensions; the index has no model"
    assert summary(done, "embedded").endswith("0 texts, 10 rows taken over from the older index")
    done = run("verify", new)
    assert done.code == 0
    assert "greatest difference of the lengths of 10 rows to 1" in done.out
    assert f"--model: {new} has no model, and embeddings by {MAKER}" in run("verify", new, "--model", "m").err


def test_a_row_of_another_length_is_noticed(bundle_of_ten: Path) -> None:
    assert all(check.passed for check in verify(bundle_of_ten))
    change_tensors(bundle_of_ten / INDEX, lambda tensors: tensors["scales"].__setitem__(4, 0.5))
    assert [check.name for check in verify(bundle_of_ten) if not check.passed] == [
        "greatest difference of the lengths of 10 rows to 1"
    ]


def test_the_stages_are_chosen_with_neighbours_of_rows(new: Path) -> None:
    """The oracle: the ten nearest others of a row, and the ten nearest of a mixture, by all products."""
    given = clustered_rows(EXHAUSTIVE_ROWS + 500)
    rows = [{"id": str(number), "text": f"text {number % 50}"} for number in range(len(given))]
    made = index(rows, new, embeddings=given, embedded_by=MAKER, progress=False)
    info = made.manifest.corpus
    assert info.stages is not None
    assert info.recall["queries"] == 250
    assert info.recall["neighbours"] >= 0.995
    assert info.recall["mixtures"] >= 0.995
    tensors = map_tensors(new / INDEX)
    unit = dequantize(tensors["codes"], tensors["scales"])
    opened = Index.open(new / INDEX, info.stages)
    rows_as_queries = np.linspace(0, len(given) - 1, 250).astype(int)

    def share_found(query: Embeddings, own: set[int]) -> float:
        count = TOP_K + len(own)
        nearest = set(np.argsort(-(unit @ query))[:count].tolist()) - own
        return len({hit.row for hit in opened.search(query, count)} & nearest) / TOP_K

    neighbours = [share_found(unit[row], {row}) for row in rows_as_queries.tolist()]
    assert np.mean(neighbours) == pytest.approx(info.recall["neighbours"], abs=1e-3)
    sums = 2 * unit[rows_as_queries] + unit[np.roll(rows_as_queries, 125)]
    mixtures = [share_found(each / np.linalg.norm(each), set()) for each in sums]
    assert np.mean(mixtures) == pytest.approx(info.recall["mixtures"], abs=1e-3)
    for kind in ("neighbours", "mixtures"):
        assert f"recall@10, first hits of 250 {kind}" in {check.name for check in made.checks if check.passed}
    assert all(check.passed for check in verify(new))


def test_the_recall_is_measured_again_when_a_tenth_has_other_embeddings(new: Path) -> None:
    count = EXHAUSTIVE_ROWS + 8
    given = clustered_rows(count)
    rows = [{"id": str(number), "text": f"text {number % 50}"} for number in range(count)]
    index(rows, new, embeddings=given, embedded_by=MAKER, progress=False)
    few, many = count // 40, count // 20
    made = index(rows[:few], new, embeddings=-given[:few], mode="upsert", progress=False)
    assert len(made.checks) == 2  # the number of rows, and their codes
    made = index(rows[:many], new, embeddings=-given[:many], mode="upsert", progress=False)
    assert len(made.checks) == 4  # and two kinds of recall


def test_a_misspelled_word_is_corrected_without_a_tokenizer(bundle_of_ten: Path) -> None:
    info = read_manifest(bundle_of_ten).corpus
    assert info.keywords is not None
    assert info.keywords.known_words == 0
    keywords = Keywords(bundle_of_ten / KEYWORDS, info.keywords, info.rows)
    assert list(keywords.match("gose").corrected) == ["gose"]
    # a word that no text has is left as it is beside words that find texts
    assert list(keywords.match("gose of the year").corrected) == []


def test_two_indexes_have_the_same_model_if_name_and_dimensions_are_equal(bundle_of_ten: Path, tmp_path: Path) -> None:
    def made(name: str, maker: str, dim: int) -> Any:
        given = embeddings_of(1)[:, :dim]
        return index(rows_of(1), tmp_path / name, embeddings=given, embedded_by=maker, progress=False).manifest

    ten = read_manifest(bundle_of_ten)
    assert ten.has_model_of(made("equal", MAKER, DIM))
    assert not ten.has_model_of(made("other maker", "voyage", DIM))
    assert not ten.has_model_of(made("other dimensions", MAKER, DIM - 1))


def test_a_manifest_alone_is_a_bundle_if_its_texts_are_elsewhere(bundle_of_ten: Path) -> None:
    manifest = read_manifest(bundle_of_ten)
    info = replace(manifest.corpus, vectors=VectorsInfo("b", "i", "eu-central-1", "k"))
    for path in bundle_of_ten.iterdir():
        path.unlink()
    (bundle_of_ten / MANIFEST).write_text(replace(manifest, corpus_or_none=info, files={}).to_json())
    assert is_bundle(bundle_of_ten)
    (bundle_of_ten / MANIFEST).write_text("{}")
    assert not is_bundle(bundle_of_ten)


def test_a_file_of_embeddings_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    rows, dim = 32_000, 512
    np.save(tmp_path / "e.npy", np.random.default_rng(7).standard_normal((rows, dim)).astype(np.float32))
    corpus = Corpus(["x"] * rows, ["x"] * rows, ["{}"] * rows, rows=range(rows))

    def read() -> None:
        given = read_embeddings(tmp_path / "e.npy")
        known_embeddings(given, corpus, 0, ModelInfo.elsewhere(MAKER, dim), None).read(np.arange(rows))

    assert peak_of(read) < rows * dim * 4  # bytes of the file; the codes are a quarter of it
