"""Whole measurements with a tiny model, and tables of starts and loads."""

import gzip
import json
import sys
from pathlib import Path

import pytest

from bench import accuracy, cold_start, other_routes, relevance, serve, work
from bench.emulator import HANDLER, LocalFunction
from bench.serve import Load
from bench.work import CISI, NAIVE, SCIFACT, SHIPPED, Texts
from semsearch.engine.bundle import MODEL
from semsearch.engine.loading import load_bundle
from semsearch.indexing.corpus import Corpus
from tests.project import needs_linux


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("bench.tables.RESULTS", tmp_path / "results")
    return tmp_path / "results"


def test_it_times_every_length_of_every_model(
    bundle: Path, corpus: Corpus, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_bundle(bundle).embedder
    monkeypatch.setattr(accuracy, "make_models", lambda work: {NAIVE: bundle, "another": bundle})
    monkeypatch.setattr(accuracy, "open_embedder", lambda path: model)
    monkeypatch.setattr(accuracy, "read_texts", lambda data, count: Texts("lines", [" ".join(corpus.texts)]))
    monkeypatch.setattr(accuracy, "LENGTHS", (8, 16))  # the tiny model reads 24 tokens
    accuracy.latency(rounds=2, work=tmp_path, data=tmp_path)
    medians = json.loads((results / "latency.json").read_text())["median"]
    assert medians.keys() == {NAIVE, "another"}
    assert all(times.keys() == {"8", "16"} for times in medians.values())


ABSTRACTS = {"a": "A one two", "b": "B three four", "c": "C five six"}


def test_documents_are_ranked_by_their_best_text(
    bundle: Path, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path / SCIFACT, tmp_path / CISI):
        folder.mkdir(parents=True)
        with gzip.open(folder / "corpus.jsonl.gz", "wt") as file:
            for id, text in ABSTRACTS.items():
                print(json.dumps({"_id": id, "title": text[0], "text": text[2:]}), file=file)
        (folder / "queries.jsonl").write_text('{"_id": "1", "text": "one two"}\n')
        (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    monkeypatch.setattr(relevance, "make_models", lambda work: {SHIPPED: bundle / MODEL})
    model = load_bundle(bundle).embedder
    for module in (relevance, work):
        monkeypatch.setattr(module, "open_embedder", lambda path: model)
    monkeypatch.setattr(relevance, "WORDS", 4)  # two abstracts make a document
    relevance.documents(work=tmp_path / "work", data=tmp_path)
    rows = json.loads((results / "documents.json").read_text())["results"]
    assert [row[:2] for row in rows] == [[name, 2] for name in ("scifact", "cisi") for method in range(3)]
    assert [row[3] for row in rows[2::3]] == [3, 3]  # a passage never crosses a heading
    assert all(row[5] == "1.0000" for row in rows)


def test_a_row_of_cold_starts_has_the_medians_and_the_share_of_this_function() -> None:
    seen = {
        cold_start.EMPTY: cold_start.Starts([50, 40], [60, 50], [14, 14], [{}, {}]),
        cold_start.OURS: cold_start.Starts([200, 250], [210, 260], [130, 131], [{"app": 4.0}, {"app": 6.0}]),
        "peer": cold_start.Starts([400, 1000], [500, 1100], [130, 131], [{}, {}]),
    }
    columns, rows = cold_start.table({"warm": seen})
    ours, peer = (dict(zip(columns, row, strict=True)) for row in rows[1:])
    assert (ours["INIT ms"], ours["phases ms"]) == ("225 (200 to 250)", "app 5")
    assert peer["this function's share"] == "0.38"  # the median of the rounds


PRINTED = {"requests": 1_000, "seconds": 2.0, "p50": 3.0, "p99": 9.0}
NO_ERRORS = {"statuses": "", "connect": 0, "read": 0, "write": 0, "timeout": 0}


def test_a_load_is_what_was_printed_last_and_has_no_errors() -> None:
    printed = "Running 2s test\n" + json.dumps(PRINTED | NO_ERRORS)
    assert serve.parse(printed) == Load(500.0, 3.0, 9.0)
    with pytest.raises(SystemExit, match="429=100"):
        serve.parse(json.dumps(PRINTED | NO_ERRORS | {"statuses": "429=100 ", "read": 3}))


def test_the_peer_answers_each_route_and_a_tool_gets_its_arguments_in_a_message() -> None:
    assert serve.PEER_ROUTES.keys() == serve.ROUTES.keys()
    params = {"name": "search", "arguments": {"query": "a goose"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    assert serve.tool_call({"query": "a goose"}) == message


def test_a_figure_is_the_median_of_the_rounds_and_a_ratio_that_of_the_ratios_of_each_round() -> None:
    case = "/predict, short, 40"
    ours = [Load(100, 1, 5), Load(10, 3, 4), Load(50, 2, 6)]
    seen = {serve.OURS: {case: ours}, serve.PEER: {case: [Load(10, 1, 1), Load(1, 1, 1), Load(50, 1, 1)]}}
    _, rows = serve.table(seen, {serve.OURS: 100.0, serve.PEER: 600.0})
    assert rows == [
        ("/predict", "short", "40", serve.OURS, "50", "10.0", "2.0", "5.0", "100"),
        ("/predict", "short", "40", serve.PEER, "10", "1.0", "1.0", "1.0", "600"),
    ]
    assert serve.ratios(seen, serve.PEER) == {"predict, short, 40": 10.0}


@needs_linux("/proc")
def test_each_kind_of_start_is_measured_with_both_first_requests(
    bundle: Path, shipped: Path, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = LocalFunction(Path(sys.executable), HANDLER, shipped, {"BUNDLE_DIR": str(bundle)})
    monkeypatch.setattr(other_routes, "read_texts", lambda data, count: Texts("lines", ["a"]))
    monkeypatch.setattr(other_routes, "make_bundle", lambda work, texts: bundle)
    monkeypatch.setattr(other_routes, "make_function", lambda work, bundle: function)
    other_routes.other_routes(starts=1, work=tmp_path, data=tmp_path)
    seen = json.loads((results / "other_routes.json").read_text())["seen"]
    assert [*seen] == [other_routes.ON_DEMAND, other_routes.ALL_ROUTES]
    counts = {"init": 2, "touched": 2, "peak": 2, "MCP": 1, "422": 1}
    assert [{what: len(values) for what, values in each.items()} for each in seen.values()] == [counts] * 2
    assert (results / "other_routes.md").read_text().count("| `WARM_UP_ALL_ROUTES=1` |") == 1
