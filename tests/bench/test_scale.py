"""The whole measurement over a tiny corpus, and its bundles and tables."""

import argparse
import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import scale, scale_bundles, scale_contest
from bench.child import run_measured
from bench.data import Retrieval
from bench.page_cache import DROPPED, WARM
from bench.scale_bundles import CODES, EMBEDDINGS, export_figures, make_bundles, take_first_rows, write_stored_rows
from bench.scale_contest import FILTERS, with_less_recall
from bench.scale_tables import peers_table, sizes_table
from bench.searches import HYBRID, SEMANTIC, with_stages
from export.corpus import Corpus
from export.files.replace import replacing
from export.index.index_file import write_index_file
from export.index.recall import LEAST_RECALL, own_queries, search_exactly
from function.engine.loading import load_bundle
from function.engine.quantization import quantize
from tests.export.conftest import clustered_rows

EXPORT = {"seconds": 10.0, "processor_seconds": 18.0, "peak_megabytes": 700.0}


@pytest.fixture
def work(tmp_path: Path, bundle: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work folder with a "largest" bundle of 100 passages, and the export's figures beside it."""
    folder = tmp_path / "scale"
    folder.mkdir()
    with (folder / "passages-100.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "lot"], *([text, row] for row, text in enumerate(corpus.texts[:100]))])
    take_first_rows(bundle, folder / "passages-100.csv", folder / "passages-100")
    export_figures(folder, 100).write_text(json.dumps(EXPORT))
    (folder / "passages-100.mixed.json").write_text("20")
    claims = Retrieval({}, {"1": "a goose at sea", "2": "a ferry"}, {})
    monkeypatch.setattr(scale, "read_scifact", lambda data: claims)
    return tmp_path


def options(work: Path, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path)
    scale.add_arguments(parser)
    return parser.parse_args(["--work", str(work), "--keep", "--peers", "", "--queries", "12", *arguments])


def test_a_smaller_bundle_holds_the_first_rows_of_the_largest(work: Path) -> None:
    bundles = make_bundles(work / "scale", work, [50, 100], keep=True)
    small, large = (load_bundle(bundles[size]) for size in (50, 100))
    assert [small.passages[row] for row in range(50)] == [large.passages[row] for row in range(50)]
    query = large.embedder.embed(large.embedder.tokenize([large.passages.text(30)], role="query"))[0]
    kept = [(hit.row, hit.score) for hit in large.index.search(query, 100) if hit.row < 50]
    assert [(hit.row, hit.score) for hit in small.index.search(query, 50)] == kept
    assert small.manifest.index is not None
    assert small.manifest.index.columns == {"lot": "number"}


def test_kept_bundles_are_made_again_only_if_the_code_changed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_bundles(work / "scale", work, [50, 100], keep=True)
    manifest = made[50] / "manifest.json"
    written = manifest.stat().st_mtime_ns
    make_bundles(work / "scale", work, [50, 100], keep=True)
    assert manifest.stat().st_mtime_ns == written
    monkeypatch.setattr(scale_bundles, "is_current", lambda mark: mark.name != "passages-50.made-from.txt")
    make_bundles(work / "scale", work, [50, 100], keep=False)
    assert manifest.stat().st_mtime_ns > written


def test_the_pieces_of_an_export_that_was_stopped_or_runs_are_not_deleted(work: Path) -> None:
    folder = work / "scale" / "passages-70"
    folder.mkdir()
    with (
        replacing(folder),
        pytest.raises(SystemExit, match=r"partial: an export runs or was stopped; finish it"),
    ):
        make_bundles(work / "scale", work, [70, 100], keep=True)


def test_stored_rows_are_written_again_for_another_bundle(work: Path, bundle: Path) -> None:
    folder = work / "rows"
    write_stored_rows(folder, work / "scale" / "passages-100")
    embeddings = np.load(folder / EMBEDDINGS)
    assert embeddings.shape == (100, load_bundle(bundle).index.dim)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-6)
    write_stored_rows(folder, bundle)
    assert np.load(folder / CODES).shape[0] == 200


def test_it_measures_every_size_and_writes_tables_and_a_picture(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.report.RESULTS", work)
    monkeypatch.setattr("bench.scale_picture.RESULTS", work)
    starts = {"init": [300.0, 320.0], "first_response": [310.0, 330.0]}
    monkeypatch.setattr(scale, "start_in_turn", lambda work, bundles, count: {100: {WARM: starts, DROPPED: starts}})
    monkeypatch.setattr("bench.touched.BODIES", {SEMANTIC: {"text": "goose"}})
    monkeypatch.setattr(scale_contest, "KINDS", {"filters": [FILTERS[0.0001]], "modes": [HYBRID]})
    pytest.importorskip("matplotlib")
    assert scale.run(options(work, "--sizes", "100")) == 0
    found = json.loads((work / "scale.json").read_text())
    assert found["texts"] == "80 headlines, titles and sentences of abstracts, and 20 mixed of two headlines each"
    assert found["sizes"]["100"]["searches"][SEMANTIC]["recall"] == 1
    assert found["sizes"]["100"]["touched"]["semantic"].keys() == {"touched", "read ahead"}
    table = (work / "scale.md").read_text()
    assert "| passages | 100 |" in table
    assert "| export (with --update but for the largest): seconds, peak MB, busy cores | 10, 700, 1.80 |" in table
    assert "| hybrid p50, p99 ms |" in table
    assert "| INIT ms, page cache dropped | 310 |" in table
    assert "| a filter keeps 0.01 %: p50, p99 ms |" in table
    assert (work / "scale.svg").read_text().startswith("<?xml")
    assert "| 100 | this project |" in (work / "scale_peers.md").read_text()


def test_one_part_alone_is_printed_and_writes_no_result(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.report.RESULTS", work / "results")
    assert scale.run(options(work, "--sizes", "100", "--only", "search")) == 0
    assert not (work / "results").exists()
    printed = capsys.readouterr().out
    assert "all rows in 8 bit, simsimd" in printed
    assert "keyword" not in printed.replace("keywords, columns on disk", "")
    with pytest.raises(SystemExit, match="--only: found speed, expected some of search, filters"):
        scale.run(options(work, "--only", "speed"))


def test_stages_that_miss_more_are_measured_beside_the_bundles_own(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("export.index.index_file.LEAST_ROWS_OF_LISTS", 10_000)
    codes, scales = quantize(clustered_rows(10_000))
    stages, recall = write_index_file(tmp_path / "index.safetensors", codes, scales)
    loaded = load_bundle(bundle)
    assert loaded.manifest.index is not None
    described = replace(loaded.manifest.index, rows=len(codes), stages=stages)
    many = replace(loaded, manifest=replace(loaded.manifest, index=described), folder=tmp_path)
    monkeypatch.setattr(scale_contest, "read_manifest", lambda folder: many.manifest)
    [kind] = with_less_recall(tmp_path, codes, scales)
    exact = search_exactly(own_queries(codes, scales), codes, scales)
    assert LEAST_RECALL <= exact.recall_of(with_stages(many, kind)) < recall
    monkeypatch.setattr(scale_contest, "read_manifest", lambda folder: loaded.manifest)
    assert with_less_recall(bundle, codes, scales) == []


def test_a_row_without_figures_is_left_out_of_the_table() -> None:
    searched = {"recall": 0.98, "recall_of_claims": 0.97, "p50": 1.0, "p99": 2.0, "two_threads": 0.6, "times_ours": 1}
    memory = {"resident_megabytes": 90.0, "own_megabytes": 50.0, "load_seconds": 0.1, "effort": []}
    seen = {10: {"bytes": {}, "searches": {SEMANTIC: searched | memory, "lot<100": {"p50": 3.0, "p99": 4.0}}}}
    columns, rows = sizes_table(seen)
    assert columns == ["passages", "10"]
    assert ("a filter keeps 1 %: p50, p99 ms", "3.00, 4.00") in rows
    assert ("resident MB after the searches (of mapped files)", "90 (40)") in rows
    assert not [row for row in rows if row[0].startswith(("INIT", "keyword", "index", "export"))]
    seen[10]["searches"]["stages:9,500,100"] = searched | memory
    assert [row[1] for row in peers_table(seen)[1]] == ["this project", "this project, narrower (9, 500, 100)"]


def test_a_programs_memory_is_its_own_and_not_that_of_the_process_that_starts_it() -> None:
    held = np.ones(30_000_000)  # 240 MB in this process
    script = "import time; begin = time.process_time()\nwhile time.process_time() < begin + 0.2: pass"
    spent = run_measured([sys.executable, "-c", script])
    assert spent.peak_megabytes < 60
    assert spent.seconds >= spent.processor_seconds * 0.5 > 0.1
    assert held[-1] == 1
    with pytest.raises(SystemExit, match="exit 1; its error is above"):
        run_measured([sys.executable, "-c", "raise SystemExit(4)"])
