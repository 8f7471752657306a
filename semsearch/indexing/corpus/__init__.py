"""Read passages from CSV, TSV, JSON lines or Parquet, and say where a file is broken.

Python's csv and json modules read CSV and JSON lines row by row: they know the line of every fault and change no
value. polars 2.1 is faster, but it fills a short CSV row with nulls, rejects a lone quote inside a field, rounds
integers beyond 2**53 in a JSON column with floats, and rejects columns of mixed types. Parquet has types already,
so polars reads it, and is imported only then.

Left out: guessing encodings, separators or types, and repairing rows.
"""

from semsearch.indexing.corpus.corpus import Corpus, CorpusError
from semsearch.indexing.corpus.fetching import corpus_place, fetching_corpus
from semsearch.indexing.corpus.reading import Table, read_column

__all__ = ["Corpus", "CorpusError", "Table", "corpus_place", "fetching_corpus", "read_column"]
