"""docs/promises.md: every 1.x searches and updates the bundles of earlier ones. tests/data/bundle-1.0 is one of 1.0.0.

Before 1.0.0 was released, `python -m tests.indexing.test_first_version` wrote it. It is not written again after that.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest

from semsearch import Search, index
from semsearch.engine.bundle import SOURCE, check_files
from semsearch.indexing.corpus import Corpus
from tests.project import ROOT
from tests.world import write_bundle

SearchMode = Literal["semantic", "keyword", "hybrid"]
FIRST = ROOT / "tests" / "data" / "bundle-1.0"
GEESE = """---
year: 2015
tags: [bird, farm]
---
# Geese

An angry goose missed the last ferry of the year.

## Keys

The night nurse lost a silver key in the snow.
"""
TREES = """---
year: 2020
tags: [farm]
---
# Trees

His sister planted cherry trees along the river.
"""


def write_documents(folder: Path) -> Path:
    """Write the documents that FIRST was made of, and return their folder."""
    folder.mkdir()
    (folder / "geese.md").write_text(GEESE, encoding="utf-8")
    (folder / "trees.md").write_text(TREES, encoding="utf-8")
    return folder


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A copy of FIRST."""
    return Path(shutil.copytree(FIRST, tmp_path / "bundle"))


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("semantic", ["geese.md#geese:1", "geese.md#keys:1"]),
        ("keyword", ["geese.md#geese:1"]),
        ("hybrid", ["geese.md#geese:1", "geese.md#keys:1"]),
    ],
)
def test_a_bundle_of_1_0_is_opened_and_searched(first: Path, mode: SearchMode, found: list[str]) -> None:
    check_files(first)
    hits = Search(first).search("an angry goose", mode=mode, filter={"tags": "bird", "year": 2015}, top_k=2)
    assert [hit.id for hit in hits] == found


def test_an_update_of_a_bundle_of_1_0_embeds_only_what_is_new(first: Path, tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "documents")
    (documents / "trees.md").write_text(TREES.replace("sister", "brother"), encoding="utf-8")
    assert index(documents, out=first, mode="replace").rows.embedded == 1
    assert [hit.id for hit in Search(first).search("sister", mode="keyword")] == []
    assert [hit.id for hit in Search(first).search("brother", mode="keyword")] == ["trees.md#trees:1"]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        of_model = write_bundle(Path(folder) / "bundle", Corpus(["The ferry"], ["a"], ["{}"]))
        index(write_documents(Path(folder) / "documents"), out=of_model, mode="replace", title="Stories")
        (of_model / SOURCE).unlink()
        shutil.copytree(of_model, FIRST, dirs_exist_ok=True)
