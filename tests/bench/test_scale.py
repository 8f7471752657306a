"""The whole measurement over a tiny corpus."""

import csv
import json
from pathlib import Path

import pytest

from bench import cold_start, scale
from bench.cold_start import DROPPED, WARM, Starts
from bench.work import Retrieval
from semsearch.engine.loading import load_bundle
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.make import index


@pytest.fixture
def work(tmp_path: Path, bundle: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work folder whose bundle "with all embeddings" has the tiny model, and 100 passages."""
    monkeypatch.setattr("bench.tables.RESULTS", tmp_path)
    monkeypatch.setattr(scale, "QUERIES", 12)
    monkeypatch.setattr(scale, "read_scifact", lambda data: Retrieval({}, {"1": "a goose at sea", "2": "a ferry"}, {}))
    monkeypatch.setattr(scale, "read_headlines", lambda data: corpus.texts[:60])
    papers = [{"title": text, "abstract": f"{text} indeed, it is so."} for text in corpus.texts[60:90]]
    monkeypatch.setattr(scale, "read_papers", lambda data: papers)
    monkeypatch.setattr(scale, "make_once", lambda embedded, make, is_kept: embedded)
    rows = [{"text": text, "lot": number} for number, text in enumerate(corpus.texts[:60])]
    (tmp_path / "scale").mkdir()
    index(rows, tmp_path / "scale" / "embedded-100", update=bundle, column={"lot": "number"})
    monkeypatch.setattr(cold_start, "make_function", lambda work, bundle: None)
    monkeypatch.setattr(cold_start, "available_states", lambda: (WARM, DROPPED))
    starts = Starts([300.0, 320.0], [310.0, 330.0])
    monkeypatch.setattr(cold_start, "measure", lambda work, functions, count, cache: dict.fromkeys(functions, starts))
    return tmp_path


@pytest.mark.slow  # runs a whole measurement with small sizes
def test_it_measures_every_size_and_writes_a_table(work: Path) -> None:
    scale.scale(sizes=(50, 100), work=work, data=work)
    found = json.loads((work / "scale.json").read_text())
    searches = found["sizes"]["100"]["searches"]
    assert all((searches[kind]["recall"], searches[kind]["first"]) == (1, 1) for kind in (scale.WORDS, scale.CLAIMS))
    assert searches[scale.WORDS]["resident_megabytes"] > searches[scale.WORDS]["own_megabytes"] > 0
    kinds = (scale.EXACT, scale.HYBRID, *scale.FILTERS.values())
    assert all(0 < searches[kind]["p50"] <= searches[kind]["p99"] for kind in kinds)
    assert "| INIT ms, page cache dropped | 310 | 310 |" in (work / "scale.md").read_text()
    assert len(load_bundle(work / "scale" / "passages-50").passages) == 50


def test_smaller_sizes_are_the_first_passages_and_none_comes_twice(work: Path) -> None:
    scale.write_corpora(work, work, (50, 130))
    files = ((work / f"passages-{size}.csv").read_text().splitlines() for size in (50, 130))
    small, large = (list(csv.DictReader(lines)) for lines in files)
    assert small == large[:50]
    assert len({row["text"] for row in large}) == len(large) > 100
