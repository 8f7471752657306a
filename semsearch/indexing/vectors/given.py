"""Embeddings that the caller of `index` has already: how they are read, and that they are those of the model.

With a model in the bundle, they are those of texts: equal texts get the embedding of the first one, and rows of the
older index keep theirs. Without one, they are those of rows: see `take_rows` in semsearch/indexing/embedding.py.

They come as an array, or from a file: .npy, .safetensors with one tensor, or .parquet with one column of lists.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from semsearch.engine.bundle import GIVEN, ModelInfo
from semsearch.engine.embedder import Embedder
from semsearch.engine.errors import OptionError
from semsearch.engine.quantization import Codes, Embeddings, Scales, quantize
from semsearch.engine.tensors import AnyArray, Array
from semsearch.indexing.corpus.corpus import Corpus
from semsearch.indexing.corpus.formats import reading_parquet
from semsearch.indexing.digests import Positions, digest_texts
from semsearch.indexing.tensor_files import release
from semsearch.indexing.vectors.embed import embed_texts
from semsearch.indexing.vectors.shards import KnownRows
from semsearch.indexing.verification import least_cosine

FORMS_OF_EMBEDDINGS = "an array, or a file .npy, .safetensors or .parquet"
EMBEDDED_AGAIN = 256  # maximum texts that are embedded again
LEAST_DIM, MOST_DIM = 2, 4_096  # values of an embedding in an index without a model
VALUES_AT_ONCE = 1 << 20  # values of the embeddings that are copied at a time: some 30 MB while they are quantized


def read_embeddings(embeddings: Any) -> AnyArray:
    """Return the embeddings that `index` takes, (rows, values) of a floating-point dtype; .npy is memory-mapped.

    Raises OptionError if they are something else, or if the file cannot be read.
    """
    try:
        found = _read_file(Path(embeddings)) if isinstance(embeddings, str | Path) else np.asarray(embeddings)
        if found.dtype == object:  # a column of lists of a DataFrame, null for a text without embedding
            width = next((len(row) for row in found if row is not None), 0)
            found = np.array([np.full(width, np.nan) if row is None else row for row in found], np.float32)
    except (ValueError, TypeError) as error:
        said = str(error).partition("\n")[0]
        raise _refused(f"{said}; expected {FORMS_OF_EMBEDDINGS}, with a row of numbers for each text") from error
    if found.ndim != 2 or not np.issubdtype(found.dtype, np.floating):
        shape = " x ".join(map(str, found.shape))
        raise _refused(f"found {shape} values of {found.dtype}, expected rows of floating-point numbers")
    return found


def _read_file(path: Path) -> AnyArray:
    """Return the array of a file. Raises ValueError if it has none, or several."""
    if path.suffix == ".npy":
        array: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    if path.suffix == ".safetensors":
        try:
            tensors = load_file(path)
        except SafetensorError as error:
            raise ValueError(f"{path}: {error}") from error
        if len(tensors) != 1:
            raise ValueError(f"{path} has the tensors {', '.join(sorted(tensors))}, expected one")
        return next(iter(tensors.values()))
    if path.suffix == ".parquet":
        import polars as pl

        column = embedding_column(path)
        with reading_parquet(path):
            return pl.scan_parquet(path, glob=False).select(column).collect()[column].to_numpy()
    raise ValueError(f"{path} has the suffix {path.suffix!r}")


def embedding_column(path: Path) -> str:
    """Return the name of the column of lists of numbers of a Parquet file. Raises OptionError unless there is one."""
    import polars as pl

    with reading_parquet(path):
        schema = pl.scan_parquet(path, glob=False).collect_schema()
    found = [name for name, kind in schema.items() if isinstance(kind, pl.List | pl.Array) and kind.inner.is_float()]
    if len(found) != 1:
        described = ", ".join(found) or "none"
        raise _refused(f"found {described}; expected one column of lists of floating-point numbers in {path}")
    return found[0]


def known_embeddings(
    embeddings: AnyArray, corpus: Corpus, empty_texts: int, model: ModelInfo, embedder: Embedder | None
) -> KnownRows:
    """Return the rows of a corpus whose embeddings are given, one for each row of its source, also for blank texts.

    They are scaled to unit length, and may have the values that the option `dimensions` leaves out. empty_texts is the
    number of rows without a text. model is that of the index. embedder is the bundle's own model, which embeds a sample
    again; None if it is elsewhere.
    Raises OptionError if their number or length is another one, if a value is not finite, if an embedding is zero, or
    if they are not embeddings of this model.
    """
    numbers, values = np.asarray(corpus.rows, np.intp), embeddings.shape[1]
    if len(embeddings) != len(numbers) + empty_texts:
        found, expected = f"{len(embeddings):,} rows", f"{len(numbers) + empty_texts:,}, one for each row of the texts"
        raise _refused(f"found {found}, expected {expected}")
    if values not in (model.dim, model.full_dim):
        raise _refused(f"found {values} values in a row, expected {model.dim}, as of {model.name}")
    if embedder is None and not LEAST_DIM <= values <= MOST_DIM:
        raise _refused(f"found {values} values in a row, expected {LEAST_DIM} to {MOST_DIM:,}")
    for block in _blocks(numbers, model.dim):
        found_values = embeddings[block, : model.dim].astype(np.float32)
        for is_wrong, said in (
            (~np.isfinite(found_values).all(axis=1), "has values that are not finite"),
            (~found_values.any(axis=1), "is zero"),
        ):
            if is_wrong.any():
                raise _refused(f"row {block[is_wrong][0]} {said}; expected an embedding; embed its text again")
        release(embeddings)

    def unit(places: Positions) -> Embeddings:
        return unit_rows(embeddings, model.dim, numbers[places])

    def read(places: Positions) -> tuple[Codes, Scales]:
        codes, scales = np.empty((len(places), model.dim), np.int8), np.empty(len(places), np.float32)
        for block in _blocks(np.arange(len(places)), model.dim):
            codes[block], scales[block] = quantize(unit(places[block]))
            release(embeddings)
        return codes, scales

    known = KnownRows(digest_texts(corpus.texts), np.zeros(len(numbers), bool), read, [GIVEN], unit)
    if embedder is not None:
        _require_same_model(known, corpus, embedder)
    return known


def _blocks(rows: Positions, dim: int) -> Iterator[Positions]:
    """Yield rows in blocks that have at most VALUES_AT_ONCE values, or one row."""
    step = max(1, VALUES_AT_ONCE // dim)
    for begin in range(0, len(rows), step):
        yield rows[begin : begin + step]


def _require_same_model(given: KnownRows, corpus: Corpus, embedder: Embedder) -> None:
    """Raise OptionError if a sample of texts, embedded again, has other embeddings than the given ones."""
    assert given.unit is not None
    model, texts = embedder.model, list(corpus.texts)
    sample = np.sort(np.random.default_rng(7).permutation(len(texts))[:EMBEDDED_AGAIN])
    again = embed_texts(embedder, [texts[place] for place in sample], role="document")
    cosines = (again * given.unit(sample)).sum(axis=1)
    least = least_cosine(model, [GIVEN])
    if not cosines.min() >= least:
        row, cosine = corpus.rows[sample[cosines.argmin()]], cosines.min()
        raise _refused(
            f"these are not embeddings of this model: row {row} has a cosine of {cosine:.2f} to the embedding of its "
            f"text by {model.name}, expected {least:g} or more; check the model, its prompts and the order of the rows"
        )


def unit_rows(embeddings: AnyArray, dim: int, rows: Array[np.intp]) -> Embeddings:
    """Return the first `dim` values of some rows, scaled to unit length: (n, dim) float32."""
    found = embeddings[rows, :dim].astype(np.float64)  # the square of a float32 can be infinite
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def _refused(message: str) -> OptionError:
    return OptionError("embeddings", message)
