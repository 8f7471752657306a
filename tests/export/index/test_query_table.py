"""Learning a query table: how close it comes, on what, and when an update learns it again."""

from pathlib import Path

import numpy as np

from export.index.query_table import learn_table
from function.engine.bundle import check_bundle
from function.engine.embedder import Embedder


def test_a_table_learns_what_a_model_that_adds_the_vectors_of_words_does(bundle: Path) -> None:
    manifest = check_bundle(bundle)
    embedder = Embedder.open(bundle, manifest.model)
    first, info = learn_table(bundle, manifest, embedder)
    assert info.accuracy["cosine_mean"] > 0.95
    assert info.accuracy["recall_at_10"] > 0.9
    again, _ = learn_table(bundle, manifest, embedder)
    np.testing.assert_array_equal(first, again)  # the same input, the same bytes
