"""Whole measurements with a tiny model, and tables of starts and loads."""

import argparse
import gzip
import json
from pathlib import Path

import pytest

from bench import accuracy, cold_start, documents, serve
from bench.serve import Load
from bench.texts import CISI, SCIFACT, Texts
from bench.work import NAIVE
from semsearch.engine.loading import load_bundle
from semsearch.indexing.corpus import Corpus


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


ABSTRACTS = {"a": "A one two", "b": "B three four", "c": "C five six"}


def test_it_ranks_every_set_and_reads_every_format(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path / SCIFACT, tmp_path / CISI):
        folder.mkdir(parents=True)
        with gzip.open(folder / "corpus.jsonl.gz", "wt") as file:
            for id, text in ABSTRACTS.items():
                print(json.dumps({"_id": id, "title": text[0], "text": text[2:]}), file=file)
        (folder / "queries.jsonl").write_text('{"_id": "1", "text": "one two"}\n')
        (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\none two\n")
    (tmp_path / "docs" / "b.txt").write_text("three\n")
    monkeypatch.setattr("bench.report.RESULTS", tmp_path / "results")
    parser = argparse.ArgumentParser()
    documents.add_arguments(parser)
    options = ["--data", str(tmp_path), "--bundle", str(bundle), "--folder", str(tmp_path / "docs")]
    assert documents.run(argparse.Namespace(**vars(parser.parse_args(options)), work=tmp_path / "work")) == 0
    formats = json.loads((tmp_path / "results" / "formats.json").read_text())["results"]
    assert [row[:3] for row in formats] == [["Markdown", 1, 1], ["plain text", 1, 1]]
    rows = json.loads((tmp_path / "results" / "documents.json").read_text())["results"]
    names = [(name, documents) for name in ("scifact", "cisi") for documents in (3, 1)]
    assert [(row[0], row[1]) for row in rows] == [name for name in names for method in range(4)]
    assert [row[3] for row in rows[3::4]] == [3, 3, 3, 3]  # a passage never crosses a heading
    assert all(row[4] == row[5] == "1.0000" for row in rows if row[1] == 1)


def test_without_docker_the_functions_run_on_this_python_and_the_reason_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("function_package", "function_python", "find_emulator"):
        monkeypatch.setattr(cold_start, name, lambda work, *part: work)
    made = cold_start.make_contenders(tmp_path, tmp_path / "bundle")
    assert [*made] == [cold_start.EMPTY, cold_start.OURS]
    assert {contender.place.partition(",")[0] for contender in made.values()} == {"no image"}
    assert capsys.readouterr().out.startswith("docker is not installed on this machine: measuring with Python 3.")


def test_a_row_of_cold_starts_has_the_place_the_medians_and_the_ratio_to_the_empty_handler() -> None:
    seen = {
        cold_start.EMPTY: cold_start.Starts([50, 40], [60, 50], [30, 30], [14, 14], [{}, {}], [2, 2]),
        cold_start.OURS: cold_start.Starts(
            [200, 250], [210, 260], [180, 180], [130, 131], [{"app": 4.0}, {"app": 6.0}], [190, 210]
        ),
        "peer": cold_start.Starts([400, 1000], [500, 1100], [360, 450], [130, 131], [{}, {}], [5, 6]),
    }
    columns, rows = cold_start.table(
        {cold_start.EMPTY: "image", cold_start.OURS: "no image", "peer": "image"}, {"warm": seen}
    )
    ours = dict(zip(columns, rows[1], strict=True))
    assert (ours[""], ours["runs in"], ours["page cache"]) == (cold_start.OURS, "no image", "warm")
    assert (ours["INIT ms"], ours["x empty"], ours["phases ms"]) == ("225 (200 to 250)", "5.0", "app 5")
    assert ours["first GET /info ms"] == "200 (190 to 210)"
    peer = dict(zip(columns, rows[2], strict=True))
    assert (peer["CPU ms"], peer["this function's share of INIT, CPU"]) == (
        "405",
        "0.38, 0.45",
    )  # medians of the rounds


PRINTED = {"requests": 1_000, "seconds": 2.0, "p50": 3.0, "p99": 9.0}
NO_ERRORS = {"statuses": "", "connect": 0, "read": 0, "write": 0, "timeout": 0}


def test_only_requests_that_were_answered_with_200_count() -> None:
    printed = "Running 2s test\n" + json.dumps(PRINTED | NO_ERRORS | {"statuses": "429=100 500=10 429=50 ", "read": 3})
    assert serve.parse(printed) == Load(420.0, 3.0, 9.0, {"429": 150, "500": 10, "read": 3})


def test_a_figure_is_the_median_of_the_rounds_and_errors_add_up() -> None:
    rounds = [Load(10, 1, 5, {"429": 1}), Load(30, 3, 4, {}), Load(20, 2, 6, {"429": 2})]
    assert serve.median(rounds) == Load(20, 2, 5, {"429": 3})


def test_ratios_are_of_the_same_round() -> None:
    case = "/predict, short, 40"
    ours, peer = [Load(100, 1, 1, {}), Load(10, 1, 1, {})], [Load(10, 1, 1, {}), Load(1, 1, 1, {})]
    _, rows = serve.table({serve.OURS: {case: ours}, serve.PEER: {case: peer}}, {serve.OURS: 100.0, serve.PEER: 600.0})
    assert [row[:6] for row in rows] == [
        ("/predict", "short", "40", serve.OURS, "55", "10.0"),
        ("/predict", "short", "40", serve.PEER, "6", "1.0"),
    ]
    assert serve.ratios({serve.OURS: {case: ours}, serve.PEER: {case: peer}}, serve.PEER) == {
        "predict, short, 40": 10.0
    }


def test_a_server_that_answers_nothing_has_no_ratio() -> None:
    case = "/predict, short, 1000"
    _, rows = serve.table(
        {serve.OURS: {case: [Load(9, 1, 1, {})]}, serve.PEER: {case: [Load(0, 1, 1, {})]}},
        {serve.OURS: 1, serve.PEER: 1},
    )
    assert rows[0][5] == ""
