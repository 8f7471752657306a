"""How a corpus is stored in Amazon S3 Vectors: the keys of its vectors, and their metadata.

Each vector's key is the bundle's prefix, a dash and the row. Its metadata are the columns that filters compare, and
what a hit shows, which no filter can name (NOT_FILTERED). Left out: reading and writing.
"""

from semsearch.engine.metadata.columns import Stored

TEXT_KEY, ID_KEY, METADATA_KEY = NOT_FILTERED = (
    "_text",
    "_id",
    "_metadata",
)  # METADATA_KEY is the JSON of all metadata, if there are any
LARGEST_NUMBER = 2**53  # S3 Vectors holds numbers as float64, which has every whole number up to here
EMPTY = "_empty"  # names the columns in which the row has a list without strings, since such a list is not stored


def key_of(keys: str, row: int) -> str:
    """Return the key of a row; keys is how all keys of the bundle begin."""
    return f"{keys}-{row}"


def row_of(keys: str, key: str) -> int:
    """Return the row of a key. Raises ValueError if the key is not one of this bundle."""
    beginning, _, row = key.rpartition("-")
    if beginning != keys:
        raise ValueError(f"{key!r} does not begin with {keys}")
    return int(row)


def metadata_value(kind: str, stored: Stored) -> str | int | float | bool:
    """Return what a column of this type stores as S3 Vectors stores it. A date stays microseconds since 1970."""
    if isinstance(stored, bytes):
        return stored.decode("utf-8", "surrogatepass")
    if kind == "boolean":
        return bool(stored)
    return stored
