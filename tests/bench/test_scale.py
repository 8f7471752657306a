"""The whole measurement over a tiny corpus, its bundles and its table."""

import argparse
import csv
import json
import sys
from pathlib import Path

import pytest

from bench import scale, scale_bundles, searches
from bench.cold_start import DROPPED, WARM, Starts
from bench.scale_bundles import LOT, make_bundles, run_measured
from bench.texts import Retrieval
from semsearch.engine.bundle import INDEX
from semsearch.engine.loading import load_bundle
from semsearch.indexing.corpus import Corpus

EXPORT = {"seconds": 10.0, "processor_seconds": 18.0, "peak_megabytes": 700.0}


@pytest.fixture
def work(tmp_path: Path, bundle: Path, corpus: Corpus) -> Path:
    """A work folder with a "largest" bundle of 100 passages, and the figures of its export beside it."""
    folder = tmp_path / "scale"
    folder.mkdir()
    with (folder / "passages-100.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "lot"], *([text, row] for row, text in enumerate(corpus.texts[:100]))])
    export: list[str | Path] = [sys.executable, "-m", "semsearch", "index", folder / "passages-100.csv", *LOT]
    run_measured([*export, "--update", bundle, "--out", folder / "passages-100"])
    (folder / "passages-100.export.json").write_text(json.dumps(EXPORT))
    (folder / "passages-100.description.txt").write_text("100 stories")
    return tmp_path


def test_it_measures_every_size_and_writes_a_table(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = Retrieval({}, {"1": "a goose at sea", "2": "a ferry"}, {})
    monkeypatch.setattr(scale, "read_scifact", lambda data: claims)
    monkeypatch.setattr("bench.report.RESULTS", work)
    monkeypatch.setattr(scale, "make_functions", lambda work, bundles: dict.fromkeys(bundles))
    monkeypatch.setattr(scale, "available_states", lambda: (WARM, DROPPED))
    starts = {"100": Starts([300.0, 320.0], [310.0, 330.0])}
    monkeypatch.setattr(scale, "measure", lambda functions, count, cache: starts)
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path)
    scale.add_arguments(parser)
    words = ["--work", str(work), "--keep", "--queries", "12", "--sizes", "100"]
    assert scale.run(parser.parse_args(words)) == 0
    found = json.loads((work / "scale.json").read_text())
    assert found["texts"] == "100 stories"
    seen = found["sizes"]["100"]["searches"]
    assert all(
        (seen[kind]["recall"], seen[kind]["first"]) == (1, 1)
        for kind in (searches.WHOLE, searches.WORDS, searches.HALVES, searches.CLAIMS)
    )
    assert seen[searches.SEMANTIC]["resident_megabytes"] > seen[searches.SEMANTIC]["own_megabytes"] > 0
    assert all(
        0 < seen[kind]["p50"] <= seen[kind]["p99"]
        for kind in (searches.EXACT, searches.HYBRID, *searches.FILTERS.values())
    )
    table = (work / "scale.md").read_text()
    assert "| passages | 100 |" in table
    assert "| export (the smaller sizes with --update): seconds, peak MB, busy cores | 10, 700, 1.80 |" in table
    assert "| INIT ms, page cache dropped | 310 |" in table
    assert "| a filter keeps 0.01 %: p50, p99 ms |" in table


def test_a_smaller_bundle_holds_the_first_rows_of_the_largest_and_is_made_again_only_if_the_code_changed(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, description = make_bundles(work / "scale", work, [50, 100], keep=True)
    assert description == "100 stories"
    small, large = (load_bundle(made[size]) for size in (50, 100))
    assert [small.passages[row] for row in range(50)] == [large.passages[row] for row in range(50)]
    query = large.embedder.embed(large.embedder.tokenize([large.passages.text(30)], role="query"))[0]
    kept = [(hit.row, hit.score) for hit in large.index.search(query, 100) if hit.row < 50]
    assert [(hit.row, hit.score) for hit in small.index.search(query, 50)] == kept
    assert small.manifest.index is not None
    assert small.manifest.index.columns == {"lot": "number"}

    written = (made[50] / INDEX).stat().st_mtime_ns
    monkeypatch.setattr(scale_bundles, "is_current", lambda mark: mark.name != "passages-50.made-from.txt")
    make_bundles(work / "scale", work, [50, 100], keep=True)
    assert (made[50] / INDEX).stat().st_mtime_ns == written
    make_bundles(work / "scale", work, [50, 100], keep=False)
    assert (made[50] / INDEX).stat().st_mtime_ns > written
