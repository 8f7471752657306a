"""Read passages from CSV, TSV, JSON lines or Parquet, and say where a file is broken.

CSV and JSON lines are read row by row by Python's own csv and json modules, which know the line of every fault
and change no value. polars 2.1 is faster (0.1 s instead of 1 s for 194,182 headlines), but it fills a CSV row
that is too short with nulls, accepts no lone quote inside a field, rounds integers beyond 2**53 that share a
JSON column with floats, and refuses columns of mixed types. Parquet is typed already: polars reads it whole,
and is imported only then.

Left out: guessing encodings, separators or types, and repairing rows.
"""

from export.corpus.corpus import Corpus, CorpusError
from export.corpus.reading import read_corpus, read_texts

__all__ = ["Corpus", "CorpusError", "read_corpus", "read_texts"]
