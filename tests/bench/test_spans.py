"""The ranking by query tables of several numbers of spans, with a tiny model."""

import re
from pathlib import Path

from bench.rewritings import over
from bench.spans import learned
from semsearch.engine.loading import load_bundle
from semsearch.indexing.corpus import Corpus


def test_each_number_of_spans_and_the_model_have_a_cell_and_a_cosine(bundle: Path, corpus: Corpus) -> None:
    opened = load_bundle(bundle)
    questions = dict(zip(corpus.ids[:5], corpus.texts[:5], strict=True))
    judged = over(opened, questions, {id: {id} for id in questions})
    found = learned(opened, judged, (50, 300))
    assert found.keys() == {0, 50, 300}
    assert found[0] == ("1.0000, 1.0000", 1.0)  # each text is its own best hit
    for count in (50, 300):
        cell, cosine = found[count]
        assert re.fullmatch(r"[01]\.\d{4}, [01]\.\d{4}; \d+", cell)
        assert 0 < cosine < 1
