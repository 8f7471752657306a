"""python -m bench.peers.stores STORE FOLDER ROWS.csv EMBEDDINGS.npy: what one upserted row costs in LanceDB or Chroma.

It prints the cost of the second upsert of a process as JSON. The first run fills the store in FOLDER with all rows. The
embeddings are given, so the cost has no embedding. The stores keep no index of words, and LanceDB none of the
embeddings: its users make one when they choose.
"""

import csv
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.costs import measure_second

Row = dict[str, Any]  # values by column
Upsert = Callable[[Row, Any], object]  # takes a row and its embedding, (dim,) float32


def open_lancedb(folder: Path, rows: list[Row], embeddings: Any) -> Upsert:
    """Return what upserts a row into a table of LanceDB, in which the ids have an index."""
    import lancedb
    import pyarrow
    from lancedb.index import BTree

    database = lancedb.connect(folder)
    if "rows" not in database.list_tables().tables:
        vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(embeddings.ravel()), embeddings.shape[1])
        filled = database.create_table("rows", pyarrow.Table.from_pylist(rows).append_column("vector", vectors))
        filled.create_index("id", config=BTree())
    merge = database.open_table("rows").merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return lambda row, embedding: merge.execute([{**row, "vector": embedding.tolist()}])


def open_chroma(folder: Path, rows: list[Row], embeddings: Any) -> Upsert:
    """Return what upserts a row into a collection of Chroma, whose graph of the embeddings is in memory and on disk."""
    import chromadb

    client = chromadb.PersistentClient(folder, chromadb.Settings(anonymized_telemetry=False))
    collection = client.get_or_create_collection("rows", embedding_function=None)

    def upsert(some: list[Row], vectors: Any) -> None:
        columns = [{name: value for name, value in row.items() if name not in ("id", "text")} for row in some]
        ids, texts = [row["id"] for row in some], [row["text"] for row in some]
        collection.upsert(ids=ids, documents=texts, metadatas=columns, embeddings=vectors)

    if collection.count() < len(rows):
        size = client.get_max_batch_size()
        for begin in range(0, len(rows), size):
            upsert(rows[begin : begin + size], embeddings[begin : begin + size])
    return lambda row, embedding: upsert([row], embedding[np.newaxis])


STORES = {"LanceDB": open_lancedb, "Chroma": open_chroma}


def main(store: str, folder: Path, table: Path, embeddings: Path) -> None:
    """Upsert one row twice, each time with another text, and print the cost of the second time."""
    with table.open(newline="", encoding="utf-8") as file:
        rows: list[Row] = [{**row, "characters": int(row["characters"])} for row in csv.DictReader(file)]
    vectors = np.load(embeddings)
    upsert = STORES[store](folder, rows, vectors)
    place = len(rows) // 2
    cost = measure_second(lambda: upsert({**rows[place], "text": f"edited at {time.time_ns()}"}, vectors[0]))
    print(json.dumps({f"{store}, one row upserted": cost}))


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
