"""The texts that latency is measured on, and the whole measurement with a tiny model."""

import argparse
import json
from pathlib import Path

import pytest

from bench import latency
from bench.latency import FEW, of_length
from bench.models import NAIVE
from bench.texts import Texts
from export.corpus import Corpus
from function.engine.embedder import TokenIds
from function.engine.loading import load_bundle


def test_texts_have_the_length_or_are_shortened_to_it_where_few_have_it() -> None:
    short, long = TokenIds([101, 7, 8, 102], False), TokenIds([101, 1, 2, 3, 4, 102], False)
    assert of_length([*[short] * FEW, long], 4) == [short] * FEW
    assert of_length([short, long], 4) == [short, TokenIds([101, 1, 2, 102], False)]


def test_it_measures_every_length_of_every_model(
    bundle: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_bundle(bundle).embedder
    monkeypatch.setattr(latency, "make_models", lambda work: {NAIVE: bundle, "another": bundle})
    monkeypatch.setattr(latency, "open_embedder", lambda path: model)
    monkeypatch.setattr(latency, "read_texts", lambda data, count: Texts("lines", "lines", [" ".join(corpus.texts)]))
    monkeypatch.setattr(latency, "LENGTHS", (8, 16))  # the tiny model reads 24 tokens
    monkeypatch.setattr("bench.report.RESULTS", tmp_path)
    assert latency.run(argparse.Namespace(work=tmp_path, data=tmp_path, rounds=2)) == 0
    medians = json.loads((tmp_path / "latency.json").read_text())["median"]
    assert medians.keys() == {NAIVE, "another"}
    assert all(times.keys() == {"8", "16"} for times in medians.values())
