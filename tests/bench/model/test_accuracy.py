"""The texts that are timed, and the whole measurement of latency with a tiny model."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from bench.model import accuracy
from bench.model.accuracy import FEW, ranks, texts_of
from bench.model.models import NAIVE
from bench.texts import Texts
from export.corpus import Corpus
from function.engine.embedder import TokenIds
from function.engine.loading import load_bundle


def test_texts_have_the_length_or_are_shortened_to_it_where_few_have_it() -> None:
    short, long = TokenIds([101, 7, 8, 102], False), TokenIds([101, 1, 2, 3, 4, 102], False)
    assert texts_of([*[short] * FEW, long], 4) == [short] * FEW
    assert texts_of([short, long], 4) == [short, TokenIds([101, 1, 2, 102], False)]


def test_equal_values_share_their_mean_rank() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]


def test_it_times_every_length_of_every_model(
    bundle: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_bundle(bundle).embedder
    monkeypatch.setattr(accuracy, "make_models", lambda work: {NAIVE: bundle, "another": bundle})
    monkeypatch.setattr(accuracy, "open_embedder", lambda path: model)
    monkeypatch.setattr(accuracy, "read_texts", lambda data, count: Texts("lines", "lines", [" ".join(corpus.texts)]))
    monkeypatch.setattr(accuracy, "LENGTHS", (8, 16))  # the tiny model reads 24 tokens
    monkeypatch.setattr("bench.report.RESULTS", tmp_path)
    assert accuracy.run(argparse.Namespace(work=tmp_path, data=tmp_path, rounds=2, only="latency")) == 0
    assert not (tmp_path / "accuracy.json").exists()
    medians = json.loads((tmp_path / "latency.json").read_text())["median"]
    assert medians.keys() == {NAIVE, "another"}
    assert all(times.keys() == {"8", "16"} for times in medians.values())
