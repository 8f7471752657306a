"""Digests of texts, by which equal texts are found without comparing them."""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from semsearch.engine.tensors import Array

BYTES = 16

FEW_WANTED = 8  # up to this many digests, comparing each with all is quicker than sorting

Digests = Array[np.bytes_]  # (n,), each 16 bytes long
Positions = Array[np.intp]


def digest_texts(texts: Iterable[str]) -> Digests:
    """Return the digest of each text, (n,), each 16 bytes long."""
    content = bytearray()
    for text in texts:
        content += digest_bytes(text.encode())
    return np.frombuffer(content, f"S{BYTES}")


def digest_bytes(content: bytes) -> bytes:
    """Return the digest of some bytes, which are often those of a text."""
    return blake2b(content, digest_size=BYTES).digest()


def mark_first(digests: Digests) -> Array[np.bool_]:
    """Return which digests differ from all earlier ones: (n,) bool."""
    is_first = np.zeros(len(digests), bool)
    is_first[np.unique(digests, return_index=True)[1]] = True
    return is_first


def find_digests(wanted: Digests, known: Digests) -> Positions:
    """Return the first place of each wanted digest among the known ones, -1 where it is not: (len(wanted),) intp."""
    if not len(known):
        return np.full(len(wanted), -1, np.intp)
    if len(wanted) <= FEW_WANTED:
        found = [known == each for each in wanted]
        return np.array([is_it.argmax() if is_it.any() else -1 for is_it in found], np.intp)
    order = np.argsort(known, kind="stable")
    places = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    places[known[places] != wanted] = -1
    return places
