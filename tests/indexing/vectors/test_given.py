"""Embeddings that the caller of `index` has already are taken over, or refused with the row that is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from semsearch import OptionError, Search, index
from semsearch.engine.bundle import BY_CORES, GIVEN, INDEX
from semsearch.engine.embedder import Embedder
from semsearch.engine.quantization import Embeddings, dequantize
from semsearch.engine.tensors import map_tensors
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.verification import verify
from tests.command_line import run, summary

Change = Callable[[Embeddings], Any]


@pytest.fixture
def rows(corpus: Corpus) -> list[dict[str, Any]]:
    """Rows with ids; the text of row 7 is blank, and rows 9 and 10 have the id of another row."""
    rows = [{"id": f"r{number}", "text": text, "day": number} for number, text in enumerate(corpus.texts[:40])]
    rows[7]["text"] = " "
    rows[9]["id"] = rows[10]["id"] = "r1"
    return rows


@pytest.fixture
def embeddings(rows: list[dict[str, Any]], embedder: Embedder) -> Embeddings:
    """The embeddings of all rows."""
    return embedder.embed(embedder.tokenize([row["text"] for row in rows], role="document"))


def stored(bundle: Path) -> Embeddings:
    tensors = map_tensors(bundle / INDEX)
    return dequantize(tensors["codes"], tensors["scales"])


def as_array(rows: Any, embeddings: Embeddings, folder: Path) -> tuple[Any, Any]:
    return rows, embeddings.astype(np.float64)


def as_lists(rows: Any, embeddings: Embeddings, folder: Path) -> tuple[Any, Any]:
    return rows, embeddings.tolist()


def as_npy(rows: Any, embeddings: Embeddings, folder: Path) -> tuple[Any, Any]:
    np.save(folder / "e.npy", embeddings)
    return rows, folder / "e.npy"


def as_safetensors(rows: Any, embeddings: Embeddings, folder: Path) -> tuple[Any, Any]:
    save_file({"embeddings": embeddings.astype(np.float16)}, folder / "e.safetensors")
    return rows, folder / "e.safetensors"


def as_column_of_a_frame(rows: Any, embeddings: Embeddings, folder: Path) -> tuple[Any, Any]:
    frame = with_column(rows, embeddings)
    return frame.drop("vector"), frame["vector"]


def as_parquet_of_the_texts(rows: Any, embeddings: Embeddings, folder: Path) -> tuple[Any, Any]:
    with_column(rows, embeddings).write_parquet(folder / "texts.parquet")
    return folder / "texts.parquet", folder / "texts.parquet"


def with_column(rows: Any, embeddings: Embeddings) -> pl.DataFrame:
    """Return a table whose column `vector` has the embeddings, null for a blank text."""
    lists = [vector.tolist() if row["text"].strip() else None for row, vector in zip(rows, embeddings, strict=True)]
    return pl.DataFrame(rows).with_columns(pl.Series("vector", lists))


@pytest.mark.parametrize(
    "form", [as_array, as_lists, as_npy, as_safetensors, as_column_of_a_frame, as_parquet_of_the_texts]
)
def test_rows_have_their_embeddings_in_each_form(
    form: Callable[..., tuple[Any, Any]], out: Path, rows: list[Any], embeddings: Embeddings, tmp_path: Path
) -> None:
    data, given = form(rows, embeddings, tmp_path)
    made = index(data, out, embeddings=given, progress=False)
    assert (made.rows.embedded, made.rows.given, made.report.empty_texts) == (0, 39, 1)
    assert made.manifest.corpus.embedded_by == [GIVEN]
    assert made.manifest.corpus.columns == {"day": "number"}
    expected = np.delete(embeddings, 7, axis=0)
    assert (stored(out) * expected).sum(axis=1).min() > 0.9999
    assert all(check.passed for check in verify(out))
    assert Search(out).search(rows[20]["text"], mode="semantic")[0].metadata == {"day": 20}


def test_embeddings_of_any_length_are_normalized_and_that_of_a_blank_text_can_be_anything(
    out: Path, rows: list[Any], embeddings: Embeddings
) -> None:
    embeddings[7] = np.nan
    lengths = np.linspace(0.1, 30, len(rows), dtype=np.float32)[:, np.newaxis]
    index(rows, out, embeddings=embeddings * lengths, progress=False)
    assert (stored(out) * np.delete(embeddings, 7, axis=0)).sum(axis=1).min() > 0.9999


def set_row(row: int, value: float) -> Change:
    def change(embeddings: Embeddings) -> Embeddings:
        embeddings[row] = value
        return embeddings

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found[:-1], "found 39 rows, expected 40, one for each row of the texts"),
        (lambda found: found[:, :-1], "found 47 values in a row, expected 48, as of tests/mean-of-words"),
        (lambda found: found[::-1], r"these are not embeddings of this model: row \d+ has a cosine of -?0\.\d\d"),
        (lambda found: -found, r"row \d+ has a cosine of -1\.00"),
        (lambda found: (found * 127).astype(np.int8), "found 40 x 48 values of int8, expected rows of floating-point"),
        (lambda found: found[0], "found 48 values of float32, expected rows of floating-point numbers"),
        (lambda found: [[1.0, 2.0], [1.0]], "expected an array, or a file .npy, .safetensors or .parquet"),
        (set_row(17, np.nan), "row 17 has values that are not finite; expected an embedding"),
        (set_row(18, np.inf), "row 18 has values that are not finite"),
        (set_row(19, 0), "row 19 is zero; expected an embedding; embed its text again"),
        (lambda found: np.array([None] * 40), "found 0 values in a row, expected 48"),
        (lambda found: found[:, :, np.newaxis], "found 40 x 48 x 1 values of float32, expected rows of floating"),
    ],
)
def test_wrong_embeddings_are_refused_with_the_row(
    change: Change, message: str, out: Path, rows: list[Any], embeddings: Embeddings
) -> None:
    with pytest.raises(OptionError, match=message):
        index(rows, out, embeddings=change(embeddings), progress=False)


def test_an_update_with_embeddings_of_the_new_rows_alone(out: Path, rows: list[Any], embeddings: Embeddings) -> None:
    index(rows[:30], out, id_column="id", progress=False)
    new = [row | {"id": f"n{number}"} for number, row in enumerate(rows[30:])]
    made = index(new, out, mode="add", embeddings=embeddings[30:], progress=False)
    assert (made.rows.embedded, made.rows.given, made.rows.updated) == (0, 10, 29)
    assert made.manifest.corpus.embedded_by == [BY_CORES, GIVEN]
    assert (stored(out) * np.delete(embeddings, 7, axis=0)).sum(axis=1).min() > 0.9999


def test_the_command_takes_a_file(out: Path, rows: list[Any], embeddings: Embeddings, tmp_path: Path) -> None:
    pl.DataFrame(rows).write_csv(tmp_path / "texts.csv")
    words = ["index", tmp_path / "texts.csv", "--out", out, "--embeddings"]
    np.save(tmp_path / "e.npy", embeddings)
    done = run(*words, tmp_path / "e.npy", "--verbose")
    assert summary(done, "embedded").endswith("39 rows from the embeddings that were handed in")
    (tmp_path / "e.txt").write_text("1 2 3")
    save_file({"a": embeddings, "b": embeddings}, tmp_path / "two.safetensors")
    pl.DataFrame({"text": ["a"]}).write_parquet(tmp_path / "none.parquet")
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    lists = {"text": ["a"], "one": [[0.5]], "two": [[0.5]], "whole": [[1]], "names": [["a"]]}
    pl.DataFrame(lists).write_parquet(tmp_path / "lists.parquet")
    for broken in ("broken.safetensors", "broken.parquet"):
        (tmp_path / broken).write_text("1 2 3")
    for name, message in (
        ("e.txt", "e.txt has the suffix '.txt'"),
        ("two.safetensors", "has the tensors a, b, expected one"),
        ("none.parquet", "found none; expected one column of lists of floating-point numbers"),
        ("objects.npy", "expected an array, or a file .npy, .safetensors or .parquet"),
        ("missing.npy", "No such file"),
        ("lists.parquet", "found one, two; expected one column of lists of floating-point numbers"),
        ("broken.safetensors", "broken.safetensors: Error while deserializing header"),
        ("broken.parquet", "broken.parquet: found Parquet that cannot be read"),
    ):
        done = run(*words, tmp_path / name)
        assert done.code in (1, 2)
        assert message in done.err
        assert done.err.count("\n") == 1


def test_they_are_refused_for_documents_and_with_options_that_embed(
    out: Path, rows: list[Any], embeddings: Embeddings, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Goose\n\nAn angry goose.\n")
    for data, options in (
        (tmp_path / "docs", {}),
        (rows, {"split": True}),
        (rows, {"device": "cuda"}),
        (rows, {"dtype": "float32"}),
        (rows, {"ray": "auto"}),
    ):
        with pytest.raises(OptionError):
            index(data, out, embeddings=embeddings, progress=False, **options)
