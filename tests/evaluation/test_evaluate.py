"""semsearch evaluate, as its user sees it."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from semsearch.commands.evaluate import _below_floor, _write_run
from semsearch.engine.bundle import BundleError
from semsearch.engine.hits import Hit
from semsearch.engine.hybrid import fuse
from semsearch.engine.keyword.matches import Matches
from semsearch.engine.loading import LoadedBundle, load_bundle, require_embedder
from semsearch.engine.quantization import Embeddings
from semsearch.evaluation.evaluation import find_failures
from semsearch.evaluation.measures import MEASURED_MODES, measure, rank
from semsearch.evaluation.report import JudgedText, Subset
from semsearch.evaluation.search import ModeResults, OpenBundle, _in_mode, _rank, check_ids, choose_modes, open_named
from semsearch.evaluation.statistics import Figure
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.keywords import KeywordOptions
from semsearch.indexing.progress import no_progress
from semsearch.indexing.questions import Question
from semsearch.search.query import Query
from tests.command_line import Run, run
from tests.project import ROOT
from tests.rerankers import add_reranker
from tests.search.searching import find
from tests.world import WHAT, WHO, add_table, make_stories, write_bundle

QUESTIONS: list[dict[str, Any]] = [  # enough for a p below 0.001
    {"query": f"{who} {' '.join(WHAT[row % 10].split()[:2])} ferry", "relevant": {f"story-{10 * row + row % 10:03}": 2}}
    for row, who in enumerate(WHO[:14])
]


def evaluate(*arguments: object) -> Run:
    return run("evaluate", *arguments)


def evaluate_json(*arguments: object) -> dict[str, Any]:
    done = evaluate(*arguments, "--json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def write_questions(folder: Path, questions: list[dict[str, Any]] = QUESTIONS) -> Path:
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(question) + "\n" for question in questions), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_questions(tmp_path_factory.mktemp("questions"))


@pytest.fixture(scope="module")
def plain(bundle: Path, questions: Path) -> dict[str, Any]:
    """What is measured of the bundle that all tests share."""
    return evaluate_json(bundle, "--questions", questions)


def test_a_query_table_has_a_column_beside_the_model(bundle_copy: Path, questions: Path, plain: dict[str, Any]) -> None:
    with_table = add_table(bundle_copy)
    done = evaluate(with_table, "--questions", questions)
    titles = ["semantic by the table", "keyword", "hybrid by the table", "semantic by the model", "hybrid by the model"]
    assert re.split(r" {2,}", done.out.splitlines()[1].strip()) == titles
    modes = evaluate_json(with_table, "--questions", questions)["subsets"][0]["modes"]
    by_model = plain["subsets"][0]["modes"]
    assert modes["semantic+model"] == by_model["semantic"]
    assert modes["hybrid+model"] == by_model["hybrid"]
    assert modes["semantic"] != by_model["semantic"]


def test_a_table_names_the_measures_of_each_mode(bundle: Path, questions: Path) -> None:
    done = evaluate(bundle, "--questions", questions)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == f"14 questions of {questions}, all 200 texts of {bundle}; 95 % intervals in brackets"
    assert lines[1].split() == ["semantic", "keyword", "hybrid"]
    assert [line.split()[0] for line in lines[2:7]] == ["nDCG@10", "recall@5", "recall@10", "recall@100", "MRR@10"]
    assert f"search {bundle}: 100%" in done.err
    assert evaluate(bundle, "--questions", questions).out == done.out


def test_trec_eval_reads_the_run_and_agrees(bundle: Path, questions: Path, tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier has no wheels for this processor")
    path = tmp_path / "out.run"
    report = evaluate_json(bundle, "--questions", questions, "--mode", "keyword", "--run", path)
    hits = [line.split() for line in path.read_text().splitlines()]
    assert {(line[1], line[5]) for line in hits} == {("Q0", "keyword")}
    assert [int(line[3]) for line in hits if line[0] == "1"] == list(range(1, sum(line[0] == "1" for line in hits) + 1))
    scores: dict[str, dict[str, float]] = {}
    for question, _, text, _, score, _ in hits:
        scores.setdefault(question, {})[text] = float(score)
    judged = {str(line): question["relevant"] for line, question in enumerate(QUESTIONS, 1)}
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut_10", "recall_5", "recall_100"}).evaluate(scores)
    ours = report["subsets"][0]["modes"]["keyword"]
    for name, their_name in (("ndcg@10", "ndcg_cut_10"), ("recall@5", "recall_5"), ("recall@100", "recall_100")):
        mean = np.mean([theirs[question][their_name] for question in judged])
        assert 0 < ours[name]["value"] == pytest.approx(mean, abs=5e-7)
        assert ours[name]["low"] <= ours[name]["value"] <= ours[name]["high"]


def _of(loaded: LoadedBundle, text: str) -> tuple[Embeddings, Matches]:
    """Return the embedding and the matches of a query."""
    (embedding,) = require_embedder(loaded).embed(require_embedder(loaded).tokenize([text], role="query"))
    assert loaded.keywords is not None
    return embedding, loaded.keywords.match(text)


def test_documents_are_measured_by_a_column_of_their_passages(bundle: Path, tmp_path: Path) -> None:
    path = write_questions(tmp_path, [{"query": who, "relevant": [who]} for who in WHO])
    report = evaluate_json(bundle, "--questions", path, "--group-by", "who")
    figures = report["subsets"][0]["modes"]["semantic"]
    loaded, places = load_bundle(bundle), []
    for who in WHO:
        (embedding,) = require_embedder(loaded).embed(require_embedder(loaded).tokenize([who]))
        found = [loaded.passages[hit.row] for hit in loaded.index.search(embedding, 200)]
        names = list(dict.fromkeys(passage.metadata.get("who", passage.id) for passage in found))
        places.append(names.index(who) + 1)
    assert figures["mrr@10"]["value"] == pytest.approx(np.mean([1 / place if place <= 10 else 0 for place in places]))
    assert figures["recall@100"]["value"] == 1
    failure = report["failures"][0]
    assert loaded.keywords is not None
    best = fuse(loaded.index, *_of(loaded, failure["query"]), loaded.keywords.info, 1).hits()[0]
    assert failure["returned"][0]["text"] == loaded.passages.text(best.row)  # not the first passage of the document
    by_number = write_questions(tmp_path, [{"query": WHO[1], "relevant": [1]}])
    assert evaluate_json(bundle, "--questions", by_number, "--group-by", "chapter")["questions"] == str(by_number)


def test_of_a_question_that_fails_the_text_with_the_highest_grade_is_displayed_first(
    bundle: Path, tmp_path: Path
) -> None:
    relevant = {"story-001": 1, "story-002": 3, "story-003": 2}
    path = write_questions(tmp_path, [{"query": "nothing of this", "relevant": relevant}])
    (failure,) = evaluate_json(bundle, "--questions", path)["failures"]
    assert [(text["id"], text["grade"]) for text in failure["relevant"]] == [
        ("story-002", 3),
        ("story-003", 2),
        ("story-001", 1),
    ]


def test_a_filter_measures_requests_that_have_it(bundle: Path, questions: Path) -> None:
    condition = {"chapter": {"$lt": 5}}
    report = evaluate_json(bundle, "--questions", questions, "--filter", json.dumps(condition))
    everything, within = report["subsets"]
    # a tenth of the texts has no metadata: the relevant ones of the questions 0 and 10
    assert (everything["filter"], everything["questions"]) == (None, 14)
    assert (within["filter"], within["questions"]) == (condition, 4)
    loaded = load_bundle(bundle)
    allowed = np.array([0 < row < 50 and row % 10 > 0 for row in range(200)])
    reciprocal = []
    for question in QUESTIONS[1:5]:
        (embedding,) = require_embedder(loaded).embed(require_embedder(loaded).tokenize([str(question["query"])]))
        ids = [loaded.passages.id(hit.row) for hit in loaded.index.search(embedding, 10, allowed)]
        reciprocal += [1 / (ids.index(id) + 1) if id in ids else 0 for id in question["relevant"]]
    assert within["modes"]["semantic"]["mrr@10"]["value"] == pytest.approx(np.mean(reciprocal))
    done = evaluate(bundle, "--questions", questions, "--filter", json.dumps(condition))
    assert f"4 questions of {questions}, texts within" in done.out
    assert "note: intervals of fewer than 30 questions are wide and rough" in done.out


def test_the_worst_questions_are_printed_with_what_was_returned(bundle: Path, tmp_path: Path) -> None:
    wrong = {"query": "the baker opened the wooden door before sunrise", "relevant": ["story-199"]}
    done = evaluate(bundle, "--questions", write_questions(tmp_path, [*QUESTIONS, wrong]), "--mode", "keyword")
    lines = done.out.splitlines()
    first = lines.index("the questions that fail most (keyword)") + 1
    assert lines[first] == "0.000  the baker opened the wooden door before sunrise"
    assert "story-199" in lines[first + 1]
    assert lines[first + 2].split()[:4] == ["returned", "hit", "1", "story-000"]
    assert sum(line.startswith("       returned  hit 1 ") for line in lines) <= 5


def test_a_worse_bundle_is_found_by_comparing(bundle: Path, questions: Path, tmp_path: Path) -> None:
    stories = make_stories()
    mixed = replace(stories, texts=[*stories.texts[100:], *stories.texts[:100]])
    other = write_bundle(tmp_path / "other", mixed, keywords=None)
    report = evaluate_json(bundle, "--questions", questions, "--compare", other)
    assert report["other"] == str(other)
    assert {each["mode"] for each in report["comparisons"]} == {"semantic"}  # what both have
    ndcg = report["comparisons"][0]
    assert (ndcg["measure"], ndcg["worse"]) == ("ndcg@10", 0)
    assert ndcg["p"] < 0.001
    assert ndcg["difference"]["low"] > 0.5
    own = report["subsets"][0]["modes"]["semantic"]["ndcg@10"]["value"]
    assert ndcg["difference"]["value"] == pytest.approx(own - ndcg["other"])
    turned = evaluate_json(other, "--questions", questions, "--compare", bundle)["comparisons"][0]
    assert (turned["better"], turned["worse"], turned["other"]) == (0, ndcg["better"], own)
    assert 10 < ndcg["better"] <= 14
    assert "worse" in evaluate(other, "--questions", questions, "--compare", bundle).out


def test_a_floor_ends_with_1_below_it(bundle: Path, questions: Path) -> None:
    assert evaluate(bundle, "--questions", questions, "--floor", "ndcg@10=0.1", "--floor", "MRR@10=0").code == 0
    done = evaluate(bundle, "--questions", questions, "--mode", "semantic", "--floor", "ndcg@10=1", "--json")
    (line,) = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert done.code == 1
    assert line.startswith(f"error: {bundle}: semantic nDCG@10 is 0.")
    assert line.endswith("expected at least 1; look at the questions that fail, or lower --floor")
    assert json.loads(done.out)["below_floor"][0] in line


def test_the_advice_is_for_bundles_with_keywords(bundle: Path, tmp_path: Path) -> None:
    few = write_questions(tmp_path, QUESTIONS[:9])
    assert "fusion weight: no advice with fewer than 10 questions" in evaluate(bundle, "--questions", few).out
    without = write_bundle(tmp_path / "without", make_stories(), None)
    refused = evaluate(without, "--questions", few, "--mode", "hybrid")
    assert refused.code == 1
    assert "found the mode 'hybrid', expected one of its modes semantic; name one, or make" in refused.err


def test_the_best_weight_of_a_set_is_advised(bundle: Path, tmp_path: Path) -> None:
    """The relevant texts are what hybrid search with the weight 0.3 returns first, so that it is the best weight."""
    loaded, lines = load_bundle(bundle), []
    assert loaded.keywords is not None
    info = replace(loaded.keywords.info, fusion_weight=0.3)
    for row, what in enumerate(WHAT * 3):
        query = f"{WHO[(row + row // 10) % 20]} {' '.join(what.split()[1:4])} and {WHO[(row + 7) % 20]}"
        hits = fuse(loaded.index, *_of(loaded, query), info, 3).hits()
        lines.append({"query": query, "relevant": [loaded.passages.id(hit.row) for hit in hits]})
    path = write_questions(tmp_path, lines)
    printed = evaluate(bundle, "--questions", path).out.splitlines()
    assert ["0.3", "1.000", "best"] in [line.split() for line in printed]
    assert any(line.startswith("fusion weight: 0.3 instead of 0.6: +0.") for line in printed)
    assert printed[-1].startswith("To set it: ")
    assert printed[-1].endswith(f"semsearch index PATH --out {bundle} --fusion-weight 0.3")
    tuned = write_bundle(tmp_path / "tuned", make_stories(), KeywordOptions(fusion_weight=0.3))
    assert "fusion weight: keep 0.3; no other is better for these questions" in evaluate(tuned, "--questions", path).out


def test_the_other_bundle_has_all_relevant_ids_or_is_allowed_to_lack_some(
    bundle: Path, questions: Path, tmp_path: Path
) -> None:
    stories = make_stories()
    fewer = replace(stories, texts=stories.texts[:90], ids=stories.ids[:90], metadata=stories.metadata[:90])
    other = write_bundle(tmp_path / "other", fewer)
    compared = (bundle, "--questions", questions, "--mode", "keyword", "--compare", other)
    refused = evaluate(*compared)
    assert refused.code == 1
    assert f"error: {questions}: found " in refused.err
    assert f"relevant ids that {other} does not have" in refused.err
    assert evaluate(*compared, "--allow-missing").code == 0


def test_ids_that_the_bundle_lacks(bundle: Path, tmp_path: Path) -> None:
    lacking = {"query": "lost things", "relevant": ["story-1", "story-2", "story-3", "story-4", "story-001"]}
    path = write_questions(tmp_path, [*QUESTIONS, lacking])
    done = evaluate(bundle, "--questions", path)
    assert done.code == 1
    message = done.err.splitlines()[-1]
    assert f"{path}: found 4 of 19 relevant ids that {bundle} does not have: 'story-1' (question 15)" in message
    assert "'story-3' (question 15), ...; expected such as 'story-000'; correct them, " in message
    assert evaluate(bundle, "--questions", path, "--allow-missing").code == 0
    assert "the bundle lacks it" in evaluate(bundle, "--questions", path, "--allow-missing", "--mode", "keyword").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--group-by", "author"], "found no column 'author', expected one that texts have, such as"),
        (["--group-by", "places"], "found a list or an object in the column 'places' of 'story-001'"),
        (["--filter", '{"chapter": 99}'], "found no question whose relevant texts pass it, in 0 texts that do"),
    ],
)
def test_what_does_not_fit_the_bundle(bundle: Path, questions: Path, words: list[str], message: str) -> None:
    done = evaluate(bundle, "--questions", questions, *words)
    assert done.code == 1
    assert message in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--questions: expected --questions FILE or --make-questions N"),
        *(
            (["--questions", "q", "--floor", floor], f"found '{floor}', expected MEASURE=VALUE with a measure of")
            for floor in ("ndcg=0.6", "ndcg@10=1.01", "ndcg@10=-0.01", "ndcg@10=half")
        ),
    ],
)
def test_options_that_cannot_be_used(words: list[str], message: str) -> None:
    done = evaluate("bundle", *words)
    assert done.code == 2
    assert message in done.err


def test_questions_to_fill_in_are_random_passages(bundle: Path, tmp_path: Path) -> None:
    done = evaluate(bundle, "--make-questions", 30)
    assert done.code == 0
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert len({line["relevant"][0] for line in lines}) == 30
    stories = make_stories()
    for line in lines:
        assert line == {"query": "", "relevant": line["relevant"], "text": line["text"]}
        assert stories.texts[int(line["relevant"][0].removeprefix("story-"))] == line["text"]
    assert evaluate(bundle, "--make-questions", 30).out == done.out
    path = tmp_path / "questions.jsonl"
    path.write_text(done.out)
    assert "line 1: found no question or no relevant ids" in evaluate(bundle, "--questions", path).err
    path.write_text("".join(json.dumps(line | {"query": line["text"]}) + "\n" for line in lines))
    assert evaluate_json(bundle, "--questions", path)["subsets"][0]["modes"]["semantic"]["mrr@10"]["value"] > 0.9
    assert "found 200 texts, expected 201 or more; draw fewer" in evaluate(bundle, "--make-questions", 201).err


def test_passages_and_questions_are_printed_with_their_brackets(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle", Corpus(["a [b]fox[/b]"], ["1"], ["{}"]))
    (tmp_path / "log").write_text(json.dumps({"message": "query", "query": "where is the [red]fox[/red]?"}) + "\n")
    drawn = evaluate(bundle, "--make-questions", 1)
    assert json.loads(drawn.out)["text"] == "a [b]fox[/b]"
    logged = evaluate(bundle, "--make-questions", 1, "--from-log", tmp_path / "log")
    assert json.loads(logged.out)["query"] == "where is the [red]fox[/red]?"


def test_characters_that_a_terminal_obeys_are_escaped_in_a_line(tmp_path: Path) -> None:
    text = "a fox \x9b that \u202e turns"
    bundle = write_bundle(tmp_path / "bundle", Corpus([text], ["1"], ["{}"]))
    drawn = evaluate(bundle, "--make-questions", 1).out
    assert r"a fox \u009b that \u202e turns" in drawn
    assert json.loads(drawn)["text"] == text


def test_neither_torch_nor_transformers_is_imported(bundle: Path, questions: Path) -> None:
    code = (
        "import sys; from semsearch.commands.main import dispatch as main; "
        f"assert main(['evaluate', {str(bundle)!r}, '--questions', {str(questions)!r}, '--json']) == 0; "
        "print({'torch', 'transformers', 'optimum', 'polars', 'onnx'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "set()"


@pytest.fixture(scope="module")
def reranked(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose reranker has all of the weight."""
    folder = tmp_path_factory.mktemp("reranked") / "bundle"
    return add_reranker(Path(shutil.copytree(bundle, folder)), weight=1.0)


def test_each_mode_is_measured_with_the_reranker_too(reranked: Path, questions: Path, plain: dict[str, Any]) -> None:
    found = evaluate_json(reranked, "--questions", questions)
    modes, both = plain["subsets"][0]["modes"], found["subsets"][0]["modes"]
    assert [*both] == [*modes, *(f"{mode}+rerank" for mode in modes)]
    assert {mode: both[mode] for mode in modes} == modes
    assert found["failures_of"] == "hybrid"
    assert plain["rerank_advice"] is None
    loaded = load_bundle(reranked)
    for mode in modes:
        own = []
        for question in QUESTIONS:
            query = Query(question["query"], 100, mode, rerank=20)
            hits = find(loaded, query)
            names = rank({hit["id"]: score for hit, score in zip(hits.results, hits.scores, strict=True)})
            own.append(measure(names, question["relevant"])[0])
        assert both[f"{mode}+rerank"]["ndcg@10"]["value"] == pytest.approx(np.mean(own), abs=1e-9)


def test_another_weight_of_the_reranker_is_advised(reranked: Path, questions: Path) -> None:
    hybrid = (reranked, "--questions", questions, "--mode", "hybrid+rerank")
    lines = evaluate(*hybrid).out.splitlines()
    start = lines.index(next(line for line in lines if line.startswith("rerank weight")))
    assert {line.split()[0] for line in lines[start + 1 : start + 12]} == {f"{step / 10:g}" for step in range(11)}
    assert "now" in next(line for line in lines[start:] if line.split()[:1] == ["1"])
    advice = evaluate_json(*hybrid, "--candidates", "1")["rerank_advice"]
    assert advice["current"] == 1.0
    assert len(set(advice["ndcg"].values())) == 1  # one candidate cannot change its place


def opened_with(texts: list[str]) -> Any:
    """Return an open bundle of texts whose names are their numbers."""
    rows = {str(row): row for row in range(len(texts))}
    loaded = SimpleNamespace(passages=SimpleNamespace(text=texts.__getitem__), columns=SimpleNamespace(kinds={}))
    return SimpleNamespace(folder=Path("bundle"), rows=rows, names=[*rows], loaded=loaded)


def test_failures_are_the_questions_with_the_lowest_measures_and_the_latest_relevant_texts() -> None:
    opened = opened_with(["zero", "one", "two", "three", "four"])
    hits: Any = {str(row): Hit(row, 1 - row / 10) for row in (2, 0, 1, 3)}
    relevant = [
        {"2": 1},
        {"0": 1, "4": 3, "x": 2, "1": 1, "3": 0},
        {"3": 1},
        {"1": 1},
        {"x": 1},
        {"0": 1},
        {"1": 1},
        {"3": 1},
    ]
    measured = [1.0, 0.5, 0.2, 0.2, 0.2, 0.9, 0.99, 0.98]
    asked = [Question(f"q{number}", f"text {number}", each) for number, each in enumerate(relevant)]
    results = ModeResults(asked, {"keyword": [hits] * 8}, {"keyword": np.array(measured)[:, None]}, {})
    found = find_failures(opened, results, "keyword")
    assert [(failure.id, failure.query, failure.ndcg) for failure in found] == [
        ("q4", "text 4", 0.2),
        ("q2", "text 2", 0.2),
        ("q3", "text 3", 0.2),
        ("q1", "text 1", 0.5),
        ("q5", "text 5", 0.9),
    ]
    assert found[3].relevant == [
        JudgedText("4", None, 3, "four"),
        JudgedText("x", None, 2, None),
        JudgedText("0", 2, 1, "zero"),
    ]
    assert found[3].returned == [
        JudgedText("2", 1, 0, "two"),
        JudgedText("0", 2, 1, "zero"),
        JudgedText("1", 3, 1, "one"),
    ]
    best = ModeResults(asked[:2], {"keyword": [hits] * 2}, {"keyword": np.array([[1.0], [0.99]])}, {})
    assert [failure.id for failure in find_failures(opened, best, "keyword")] == ["q1"]


@pytest.mark.parametrize("id", ["", "a b", " a", "a\n"])
def test_ids_with_white_space_are_not_written_into_a_run(id: str, tmp_path: Path) -> None:
    path, hits = tmp_path / "run", {"a": Hit(0, 0.5), "b": Hit(1, 0.25)}
    asked = [Question("q", "text", {"a": 1})]
    _write_run(path, ModeResults(asked, {"keyword": [hits]}, {}, {}), "keyword")
    assert path.read_text() == "q Q0 a 1 0.5 keyword\nq Q0 b 2 0.25 keyword\n"
    with pytest.raises(BundleError, match=re.escape(f"{path}: found the id {id!r}, expected no white")):
        _write_run(path, ModeResults(asked, {"keyword": [{id: Hit(0, 0.5)}]}, {}, {}), "keyword")
    with pytest.raises(BundleError, match="found the id"):
        _write_run(path, ModeResults([replace(asked[0], id=id)], {"keyword": [hits]}, {}, {}), "keyword")


@pytest.mark.parametrize(
    ("missing", "listed"), [(3, "'x2' (question q); expected"), (4, "'x2' (question q), ...; exp")]
)
def test_at_most_three_missing_ids_are_listed(missing: int, listed: str) -> None:
    relevant = {f"x{number}": 1 for number in range(missing)} | {"0": 1, "unjudged": 0}
    with pytest.raises(BundleError) as raised:
        check_ids(opened_with(["a"]), [Question("q", "text", relevant)], Path("questions"))
    assert f"questions: found {missing} of {missing + 1} relevant ids that bundle does not have: " in str(raised.value)
    assert listed in str(raised.value)
    check_ids(opened_with(["a"]), [Question("q", "text", {"0": 1, "unjudged": 0})], Path("questions"))


def test_a_filter_that_cannot_be_used_is_told_with_the_columns(bundle: Path, questions: Path) -> None:
    done = evaluate(bundle, "--questions", questions, "--filter", '{"yeär": 1}')
    assert done.err.splitlines()[-1].startswith('error: --filter {"yeär": 1}: ')
    assert "; correct it: the columns are id (string), chapter (number), " in done.err


def test_values_equal_to_a_floor_are_not_below_it() -> None:
    modes = {"keyword": {"mrr@10": Figure(0.5, 0, 1), "ndcg@10": Figure(0.25, 0, 1)}}
    measured = Subset(None, 3, modes)
    assert _below_floor([("mrr@10", 0.5), ("ndcg@10", 0.25)], measured) == []
    assert _below_floor([("mrr@10", 0.6), ("ndcg@10", 0.2)], measured) == [
        "keyword MRR@10 is 0.5000, expected at least 0.6"
    ]


def test_questions_are_drawn_from_a_log_once_each(bundle: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines = [{"message": "query", "query": f"where is [b]{number}[/b] ü"} for number in (3, 1, 2, 1)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = evaluate(bundle, "--make-questions", 9, "--from-log", log)
    assert sorted(done.out.splitlines()) == [
        json.dumps({"query": f"where is [b]{number}[/b] ü", "relevant": []}, ensure_ascii=False) for number in (1, 2, 3)
    ]
    assert done.err.splitlines()[-1] == 'Write the ids of the texts that answer each question into "relevant".'
    assert len(evaluate(bundle, "--make-questions", 2, "--from-log", log).out.splitlines()) == 2
    drawn = evaluate(bundle, "--make-questions", 200)
    assert len(drawn.out.splitlines()) == 200
    expected = 'Write a question that the text answers into each "query", and add other ids that answer it too.'
    assert drawn.err.splitlines()[-1] == expected


def modes_of(named: list[str], **parts: Any) -> list[str]:
    """Return the chosen modes of a bundle that has some parts."""
    has = {
        "keywords": None,
        "table": None,
        "embedder": 1,
        "manifest": SimpleNamespace(rerank=parts.pop("rerank", None)),
    } | parts
    return choose_modes(OpenBundle(Path("bundle"), SimpleNamespace(**has), [], {}), named)  # type: ignore[arg-type]


def test_the_modes_of_a_bundle_are_those_that_its_parts_make() -> None:
    assert modes_of([]) == ["semantic"]
    assert modes_of([], keywords=1) == ["semantic", "keyword", "hybrid"]
    assert modes_of([], table=1) == ["semantic", "semantic+model"]
    assert modes_of([], rerank=1) == ["semantic", "semantic+rerank"]
    assert modes_of([], keywords=1, table=1, rerank=1) == [*MEASURED_MODES]
    assert modes_of(["hybrid", "semantic", "hybrid"], keywords=1) == ["semantic", "hybrid"]
    message = r"^bundle: found the mode 'hybrid', expected one of its modes semantic; name one, or make the bundle with"
    with pytest.raises(BundleError, match=message):
        modes_of(["semantic", "hybrid"])


def test_without_a_model_only_words_are_measured(no_model: Path, no_model_no_words: Path, tmp_path: Path) -> None:
    path = write_questions(
        tmp_path, [{"query": "angry goose", "relevant": [f"story-{row}" for row in range(150, 160)]}]
    )
    report = evaluate_json(no_model, "--questions", path)
    assert {mode: measured["recall@10"]["value"] for mode, measured in report["subsets"][0]["modes"].items()} == {
        "keyword": 1
    }
    reason = "expected the mode 'keyword', because the bundle has no model to embed the questions$"
    for mode in ("semantic", "hybrid"):
        with pytest.raises(BundleError, match=f"^{no_model}: found the mode {mode!r}, {reason}"):
            choose_modes(open_named(no_model, None, no_progress), ["keyword", mode])
    with pytest.raises(BundleError, match=f"found no keywords, {reason}"):
        choose_modes(open_named(no_model_no_words, None, no_progress), [])


def test_a_mode_is_a_query_with_its_fields() -> None:
    plain = Query("goose")
    assert _in_mode(plain, "keyword", 5) == replace(plain, mode="keyword")
    assert _in_mode(plain, "hybrid+rerank", 5) == replace(plain, mode="hybrid", rerank=5)
    assert _in_mode(plain, "semantic+model", 5) == replace(plain, mode="semantic", queries="model")


def test_hits_are_searched_until_a_hundred_names_are_found() -> None:
    """Each name has three rows, so that 100 and 400 hits are needed."""
    counts: list[int] = []

    def search(query: Query, on_phase: object) -> Iterator[Any]:
        counts.append(query.num_results)
        rows = range(min(query.num_results, 1_000))
        return iter([SimpleNamespace(results=[{"index": row} for row in rows], scores=[-row // 3 for row in rows])])

    opened = SimpleNamespace(names=[f"{row // 3:03}" for row in range(1_000)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("semsearch.evaluation.search.finish", next)
        found = _rank(opened, search, Query("goose"))  # type: ignore[arg-type]
    assert counts == [100, 400]
    assert list(found) == [f"{name:03}" for name in range(100)]
    assert (found["000"].row, found["099"].row, found["099"].score) == (0, 297, -99)
