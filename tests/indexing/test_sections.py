"""The sections of documents, which rows share, against a comparison of each row with each other."""

import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semsearch.indexing.sections import digest_sections, section_tensor


def sections_of(*rows: dict[str, Any]) -> list[int]:
    """Return the section of each row; a row without a path is of a.md."""
    texts = [row.pop("text", "x") for row in rows]
    metadata = [json.dumps({"path": "a.md"} | row) for row in rows]
    tensor = section_tensor(*digest_sections(zip(texts, metadata, strict=True)))
    assert tensor.dtype == np.uint32
    return [int(row) for row in tensor]


def test_rows_of_a_document_with_the_same_anchor_share_a_section() -> None:
    there, elsewhere = {"url": "https://a/b#birds"}, {"url": "https://a/b#fish"}
    assert sections_of(there | {"text": "1"}, elsewhere, there | {"text": "2", "headings": ["Birds"]}) == [0, 1, 0]
    assert sections_of(there | {"text": "1"}, there | {"path": "b.md", "text": "2"}) == [0, 1]


def test_rows_without_an_anchor_share_a_section_by_their_headings() -> None:
    assert sections_of({"text": "1"}, {"text": "2", "headings": ["A"]}, {"text": "3"}) == [0, 1, 0]
    assert sections_of({"headings": ["A", "B"]}, {"headings": ["A"], "text": "2"}) == [0, 1]


def test_equal_sections_of_several_documents_share_the_first_row_of_the_first() -> None:
    pages = [{"path": path, "text": text} for path in ("a.md", "b.md", "c.md") for text in ("1", "2")]
    assert sections_of(*map(dict, pages)) == [0] * 6
    assert sections_of(*(page | {"title": page["path"]} for page in pages)) == [0, 0, 2, 2, 4, 4]


def test_sections_that_only_begin_alike_differ() -> None:
    rows = [("a.md", "1"), ("a.md", "2"), ("b.md", "1"), ("c.md", "1"), ("c.md", "3"), ("d.md", "1"), ("d.md", "2")]
    assert sections_of(*({"path": path, "text": text} for path, text in rows)) == [0, 0, 2, 3, 3, 0, 0]


@given(st.lists(st.tuples(*map(st.sampled_from, ("ab", ["", "#x", "#y"], [[], ["h"]], "tu", "pq"))), max_size=12))
def test_rows_share_a_number_where_the_contents_of_their_sections_are_equal(rows: list[tuple[Any, ...]]) -> None:
    keys = [(path, url or tuple(headings)) for path, url, headings, _, _ in rows]
    contents = [(headings, title, text) for _, _, headings, title, text in rows]
    whole = [[one for other, one in zip(keys, contents, strict=True) if other == key] for key in keys]
    names = ("path", "url", "headings", "title", "text")
    assert sections_of(*(dict(zip(names, row, strict=True)) for row in rows)) == [whole.index(each) for each in whole]
