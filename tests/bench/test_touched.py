"""Which pages of a file are in memory, and what a first query brings there."""

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from bench.touched import CHUNK, PAGE, RandomMap, cached_pages, first_query, forget, measure
from function.engine.bundle import INDEX, PASSAGES

PAGES = 600


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pages"
    path.write_bytes(os.urandom(PAGES * PAGE))
    forget(path)
    if cached_pages(path).any():
        pytest.skip("this file system is in memory")
    return path


def test_only_the_pages_that_were_read_are_in_memory(file: Path) -> None:
    with file.open("rb") as opened, RandomMap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for page in (3, 4, 500):
            mapped[page * PAGE + 7]
        assert np.flatnonzero(cached_pages(file)).tolist() == [3, 4, 500]


def test_pages_are_counted_in_megabytes_and_in_the_chunks_that_they_are_in() -> None:
    pages = np.zeros(PAGES, np.bool_)
    assert measure(pages) == {"megabytes": 0, "chunks": 0}
    pages[[0, CHUNK // PAGE - 1, CHUNK // PAGE, 500]] = True
    assert measure(pages) == {"megabytes": 4 * PAGE / 1e6, "chunks": 3}


def test_a_first_query_touches_the_index_and_the_passages_that_it_returns(bundle_copy: Path, file: Path) -> None:
    seen = first_query(bundle_copy, {"text": "an old sailor"}, readahead=False)
    before, after = seen["INIT"], seen["first query"]
    assert before[INDEX]["megabytes"] > 0
    assert (
        0
        < before[PASSAGES]["megabytes"]
        < after[PASSAGES]["megabytes"]
        <= (bundle_copy / PASSAGES).stat().st_size / 1e6 + 1
    )
