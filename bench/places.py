"""What it costs a month to keep a corpus in the image, in S3 or in S3 Vectors: calculated from prices, not measured.

Prices are those of us-east-1 as of November 2026. What a function costs to run is left out: it is the same for all, and
bench/cost.py has it.
"""

from collections.abc import Sequence

IMAGE_GIGABYTE = 0.10  # a month; https://aws.amazon.com/ecr/pricing/
S3_PAGE = "https://aws.amazon.com/s3/pricing/"
S3_GIGABYTE = 0.023  # S3_PAGE; a month, the first 50 TB
VECTORS_GIGABYTE = 0.06  # S3_PAGE; a month; this and the following: S3 Vectors
WRITTEN_GIGABYTE = 0.20  # S3_PAGE; once
QUERY = 2.50 / 1e6  # S3_PAGE
# S3_PAGE; each query pays for the bytes of all vectors of the index with their keys and filterable metadata
TERABYTE_OF_FIRST, TERABYTE = 0.004, 0.002
FIRST = 100_000  # vectors of an index
MOST_PRICED = 10_000_000  # larger indexes pay less since June 2026

DIM = 384
TEXT_BYTES = 1_000  # of a text with its id and metadata: a paragraph
FILTERABLE_BYTES, KEY_BYTES = 100, 25
BUNDLE_BYTES = DIM + DIM // 8 + 4 + TEXT_BYTES  # codes, signs and a scale; without keywords
LARGEST_PLACE = 10e9  # bytes of an image, and of /tmp

ROWS = (100_000, 1_000_000, 5_000_000, 10_000_000)
QUERIES = (10_000, 1_000_000)  # a month
GIB, TIB = 2**30, 2**40  # S3_PAGE's examples count so


def query_dollars(rows: int, vector_bytes: int) -> float:
    """Return the dollars of one query of an index; vector_bytes is a vector with its key and filterable metadata."""
    first = min(rows, FIRST)
    return QUERY + vector_bytes / TIB * (first * TERABYTE_OF_FIRST + (rows - first) * TERABYTE)


def places_table() -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the columns and the rows of the table of places."""
    columns = ["texts", "image", "S3", "S3 Vectors, stored", "written once"]
    columns += [f"{number:,} queries" for number in QUERIES]
    rows: list[Sequence[str]] = []
    searched = 4 * DIM + KEY_BYTES + FILTERABLE_BYTES
    for count in ROWS:
        bundle = count * BUNDLE_BYTES
        stored = count * (searched + TEXT_BYTES) / GIB
        local = [f"${bundle / 1e9 * price:,.2f}" for price in (IMAGE_GIGABYTE, S3_GIGABYTE)]
        if bundle > LARGEST_PLACE:
            local = ["too large", "too large"]
        dollars = [stored * VECTORS_GIGABYTE, stored * WRITTEN_GIGABYTE]
        dollars += [number * query_dollars(count, searched) for number in QUERIES]
        rows.append((f"{count:,}", *local, *(f"${amount:,.2f}" for amount in dollars)))
    return columns, rows
