"""Which rows of documents are of one section, by digests of the rows, so that an update reads only the new ones."""

import json
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import numpy as np

from semsearch.engine.tensors import AnyArray
from semsearch.indexing.digests import Digests, digest_texts


def digest_sections(passages: Iterable[tuple[str, str]]) -> tuple[Digests, Digests]:
    """Return digests of rows for `section_tensor`, (rows,) each: of their sections and of their contents.

    Each row comes as its text and the JSON of its metadata.

    A section is a document and an anchor in it. Where there is no anchor, it is a document and the headings. The
    content is the title, the headings and the text.
    """
    digests = digest_texts(_describe(passages))
    return digests[::2], digests[1::2]


def _describe(passages: Iterable[tuple[str, str]]) -> Iterator[str]:
    for text, metadata in passages:
        values = json.loads(metadata)
        headings = values.get("headings", [])
        anchor = urlsplit(values.get("url", "")).fragment
        yield json.dumps([values["path"], anchor or headings])
        yield json.dumps([values.get("title"), headings, text])


def section_tensor(sections: Digests, contents: Digests) -> AnyArray:
    """Return the tensor `sections` of a corpus of documents, (rows,) uint32, from what `digest_sections` returns."""
    _, first, numbers = np.unique(sections, return_index=True, return_inverse=True)
    rows = first[numbers]  # the first row of each row's section
    _, groups, sizes = np.unique(contents[first], return_inverse=True, return_counts=True)
    may_repeat = np.sort(first[sizes[groups] > 1])  # the first rows of sections that begin alike
    order = np.argsort(rows, kind="stable")
    begins = np.searchsorted(rows, may_repeat, "left", sorter=order).tolist()
    ends = np.searchsorted(rows, may_repeat, "right", sorter=order).tolist()
    shared = np.arange(len(rows), dtype=np.uint32)
    alike: dict[bytes, int] = {}  # the first row of the first section with these contents
    for row, begin, end in zip(may_repeat.tolist(), begins, ends, strict=True):
        shared[row] = alike.setdefault(contents[order[begin:end]].tobytes(), row)
    return shared[rows]
