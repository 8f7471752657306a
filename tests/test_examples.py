"""The examples in the docstrings of the Python API, run one after the other in a folder with a model."""

import doctest
from pathlib import Path

import pytest

from semsearch import Evaluation, Hits, Search, evaluate, index, load_bundle, remove
from semsearch.indexing.bundles import take_model

OBJECTS = (
    index,
    Search,
    Search.columns,
    Search.search,
    Search.search_many,
    Search.pages,
    Search.embed,
    Hits,
    load_bundle,
    evaluate,
    Evaluation,
    Evaluation.to_dicts,
    Evaluation.compare,
    remove,
    Hits.to_dicts,
)  # index makes the bundle that others open


@pytest.mark.usefixtures("quick_commands")
def test_the_examples_print_what_they_say(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bundle").mkdir()
    take_model(bundle, tmp_path / "bundle")  # so that the tests' model embeds
    monkeypatch.chdir(tmp_path)
    runner, finder = doctest.DocTestRunner(), doctest.DocTestFinder(recurse=False)
    for example in OBJECTS:
        name = getattr(example, "__qualname__", "columns")  # a property has no name before Python 3.13
        (test,) = finder.find(example, name)
        assert test.examples, example
        assert runner.run(test).failed == 0, example
