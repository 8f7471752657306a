"""`semsearch.evaluate`, as its user sees it: the command prints the same figures."""

import json
import math
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot

from semsearch import BundleError, CorpusError, Evaluation, OptionError, PackagesError, evaluate
from semsearch.engine.bundle import FloorInfo, check_bundle
from semsearch.evaluation.advice import advise
from semsearch.evaluation.measures import MEASURES
from semsearch.evaluation.statistics import randomization_test
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.corpus import Corpus
from tests.evaluation.test_evaluate import QUESTIONS, evaluate_json, write_questions
from tests.project import ROOT
from tests.world import write_bundle

AXES = {"title": "Measures of hybrid search", "x": "fusion_weight (0: words alone, 1: meaning alone)"}


@pytest.fixture(scope="module")
def evaluation(bundle: Path) -> Evaluation:
    return evaluate(bundle, QUESTIONS, progress=False)


def test_the_figures_are_those_of_the_command(bundle: Path, evaluation: Evaluation, tmp_path: Path) -> None:
    condition = {"chapter": {"$lt": 5}}
    words = ("--filter", json.dumps(condition), "--compare", bundle)
    printed = evaluate_json(bundle, "--questions", write_questions(tmp_path), *words)
    assert json.loads(json.dumps(asdict(evaluation.subsets[0]))) == printed["subsets"][0]
    filtered = evaluate(bundle, QUESTIONS, filter=condition, mode=["semantic", "keyword", "hybrid"])
    assert json.loads(json.dumps([asdict(subset) for subset in filtered.subsets])) == printed["subsets"]
    assert evaluation.advice is not None
    assert json.loads(json.dumps(asdict(evaluation.advice))) == printed["advice"]
    assert json.loads(json.dumps([asdict(each) for each in evaluation.failures()])) == printed["failures"]
    compared = evaluation.compare(filtered)
    assert json.loads(json.dumps([asdict(each) for each in compared])) == printed["comparisons"]


def test_measures_by_hand(tmp_path: Path) -> None:
    texts = ["a fox and a fox and a fox", "a fox in a very long sentence about a house", "a goose"]
    bundle = write_bundle(tmp_path / "bundle", Corpus(texts, ["a", "b", "c"], ["{}"] * 3))
    asked = [{"query": "fox", "relevant": {"a": 0, "b": 2, "c": 1}}, {"query": "goose", "relevant": ["c"]}]
    rows = evaluate(bundle, asked, mode="keyword").to_dicts()
    assert [row["found"] for row in rows] == [["a", "b"], ["c"]]
    second = 2 / math.log2(3)  # the gain of the grade 2 in the second place
    best = 2 + 1 / math.log2(3)
    assert [rows[0][name] for name in MEASURES] == pytest.approx([second / best, 0.5, 0.5, 0.5, 0.5])
    assert [rows[1][name] for name in MEASURES] == [1.0] * 5
    assert (rows[0]["id"], rows[0]["query"], rows[0]["relevant"]) == ("1", "fox", ["b", "c"])


def test_a_frame_has_a_row_for_each_mode_and_question_and_adds_up_to_the_measures(evaluation: Evaluation) -> None:
    frame, other = evaluation.to_pandas(), evaluation.to_polars()
    assert list(frame.columns) == ["id", "query", "mode", *MEASURES, "relevant", "found"]
    assert other.to_dicts() == evaluation.to_dicts() == frame.to_dict("records")
    assert len(frame) == 3 * len(QUESTIONS)
    for mode, measured in evaluation.measures.items():
        means = frame[frame["mode"] == mode][[*MEASURES]].mean()
        assert means.to_dict() == pytest.approx({name: each.value for name, each in measured.items()})


def test_questions_of_all_forms_are_equal(evaluation: Evaluation, bundle: Path, tmp_path: Path) -> None:
    frame = pd.DataFrame(QUESTIONS * 2)
    frame = frame[frame.index >= len(QUESTIONS)]
    listed = [{**question, "relevant": list(question["relevant"])} for question in QUESTIONS]
    ones = evaluate(bundle, listed, mode="keyword").to_dicts()
    for same in (frame, pl.DataFrame(QUESTIONS), pl.DataFrame(QUESTIONS).to_arrow(), write_questions(tmp_path)):
        assert evaluate(bundle, same, mode="keyword").to_dicts() == [
            row for row in evaluation.to_dicts() if row["mode"] == "keyword"
        ]
    for same in (pd.DataFrame(listed), pl.DataFrame(listed), str(write_questions(tmp_path, listed))):
        assert evaluate(bundle, same, mode="keyword").to_dicts() == ones
    named = pd.DataFrame(listed, index=pd.Index([f"q{number}" for number in range(len(listed))], name="id"))
    assert [row["id"] for row in evaluate(bundle, named, mode="keyword").to_dicts()][:2] == ["q0", "q1"]


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([], "questions: found no question, expected"),
        (
            [QUESTIONS[0], {"relevant": ["story-001"]}],
            "questions, question 2: found no question or no relevant ids, exp",
        ),
        ([{"query": " ", "relevant": ["story-001"]}], "questions, question 1: found no question or no relevant ids"),
        ([{"query": "goose"}], "questions, question 1: found no question or no relevant ids"),
        ([{"query": "goose", "relevant": []}], "questions, question 1: found the grades []"),
        ([{"query": "goose", "relevant": {"a": None}}], "questions, question 1: found the grades []"),
        (
            [{"query": "goose", "relevant": ["a"], "topic": 1}],
            "questions, question 1: found the field 'topic', expected",
        ),
        ([{"query": "a", "relevant": ["b"], "id": 1}] * 2, "questions, question 2: found the id '1' again"),
        (pd.DataFrame({"query": ["goose"], "relevant": [None]}), "questions, question 1: found no question"),
        (["goose"], "questions, question 1: found no question or no relevant ids"),
        ("nowhere.jsonl", "No such file"),
    ],
)
def test_questions_that_cannot_be_used(bundle: Path, questions: Any, message: str) -> None:
    with pytest.raises((CorpusError, OSError)) as raised:
        evaluate(bundle, questions)
    assert message in str(raised.value)


def test_an_unknown_id_is_refused_with_its_question(bundle: Path) -> None:
    asked = [*QUESTIONS, {"query": "lost things", "relevant": ["story-1"]}]
    with pytest.raises(BundleError) as raised:
        evaluate(bundle, asked)
    message = str(raised.value)
    assert message.startswith(
        f"questions: found 1 of 15 relevant ids that {bundle} does not have: 'story-1' (question 15)"
    )
    assert message.endswith("name their column with group_by=, or count them as not found with allow_missing=True")
    assert evaluate(bundle, asked, mode="keyword", allow_missing=True).to_dicts()[-1]["ndcg@10"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "fusion"}, "found the mode 'fusion', expected one of its modes semantic, keyword, hybrid"),
        ({"candidates": 0}, "candidates: found 0, expected a number from 1 to 100"),
        ({"fusion_weight": 1.5}, "fusion_weight: found 1.5, expected a number from 0 to 1"),
        (
            {"fusion_weight": 0.5, "mode": "keyword"},
            "fusion_weight: has no effect without the mode hybrid; leave it out",
        ),
        ({"qrels": "qrels.txt"}, "qrels: has no effect with questions in memory; leave it out"),
        ({"group_by": "author"}, "correct group_by="),
        ({"filter": {"yeär": 1}}, 'filter={"yeär": 1}: '),
    ],
)
def test_arguments_that_cannot_be_used(bundle: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((OptionError, BundleError)) as raised:
        evaluate(bundle, QUESTIONS, **arguments)
    assert message in str(raised.value)


def test_a_folder_without_an_index_is_told_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as raised:
        evaluate(tmp_path, QUESTIONS)
    assert str(raised.value).endswith(f'make a bundle with `index(PATH, out="{tmp_path}")`')


def test_a_stated_weight_measures_what_the_advice_has_for_it(bundle: Path, evaluation: Evaluation) -> None:
    assert evaluation.advice is not None
    for weight in (0.0, 0.3, 1.0):
        stated = evaluate(bundle, QUESTIONS, mode="hybrid", fusion_weight=weight)
        assert stated.measures["hybrid"]["ndcg@10"].value == pytest.approx(evaluation.advice.ndcg[weight])
        assert stated.advice == evaluation.advice  # about the weight of the index


def test_the_gain_of_the_advice_is_over_the_weight_of_the_index(evaluation: Evaluation) -> None:
    swept, hybrid = evaluation.results.sweeps["fusion"], evaluation.results.measures["hybrid"]
    assert evaluation.advice == advise(swept.measures[:, :, 0], swept.weights, hybrid[:, 0], 0.6)


def test_settings_are_compared_by_the_paired_test(bundle: Path, evaluation: Evaluation) -> None:
    by_words = evaluate(bundle, QUESTIONS, mode="hybrid", fusion_weight=0.0)
    compared = evaluation.compare(by_words)
    assert [(each.mode, each.measure) for each in compared] == [("hybrid", name) for name in MEASURES]
    own, other = evaluation.to_pandas(), by_words.to_pandas()
    changes = own[own["mode"] == "hybrid"]["ndcg@10"].to_numpy() - other["ndcg@10"].to_numpy()
    row = compared.to_dicts()[0]
    assert row["p"] == randomization_test(changes)
    assert (row["better"], row["worse"]) == (sum(changes > 0), sum(changes < 0))
    assert row["value"] == pytest.approx(own[own["mode"] == "hybrid"]["ndcg@10"].mean())
    assert row["other"] == pytest.approx(other["ndcg@10"].mean())
    assert compared.to_polars().to_dicts() == compared.to_dicts() == compared.to_pandas().to_dict("records")
    assert "<th>difference</th>" in compared._repr_html_()


def test_two_modes_are_compared(evaluation: Evaluation, bundle: Path) -> None:
    own, other = (evaluation.results.measures[mode][:, 0] for mode in ("hybrid", "keyword"))
    ndcg = evaluation.compare(evaluation, mode="hybrid", other_mode="keyword")[0]
    assert (ndcg.mode, ndcg.p) == ("hybrid and keyword", randomization_test(own - other))
    assert [each.mode for each in evaluation.compare(evaluation, mode="semantic")] == ["semantic"] * 5
    semantic = evaluate(bundle, QUESTIONS, mode="semantic")
    keyword = evaluate(bundle, QUESTIONS, mode="keyword")
    assert semantic.compare(keyword, mode="semantic", other_mode="keyword")[0].mode == "semantic and keyword"
    with pytest.raises(OptionError, match="other: found the modes keyword, expected one of semantic; compare two"):
        semantic.compare(keyword)
    with pytest.raises(OptionError, match="other_mode: found 'hybrid', expected one that was measured: keyword"):
        semantic.compare(keyword, mode="semantic", other_mode="hybrid")
    with pytest.raises(OptionError, match="other_mode: has no effect without mode"):
        semantic.compare(keyword, other_mode="keyword")
    with pytest.raises(OptionError, match="other: found 13 questions that are not the 14 of this evaluation"):
        evaluation.compare(evaluate(bundle, QUESTIONS[1:], mode="keyword"))


def test_a_notebook_displays_the_measures(evaluation: Evaluation, bundle: Path) -> None:
    shown = evaluation._repr_html_()
    value = evaluation.measures["keyword"]["mrr@10"]
    assert "<th>semantic</th><th>keyword</th><th>hybrid</th>" in shown
    assert f"<td>{value.value:.3f} ({value.low:.3f} to {value.high:.3f})</td>" in shown
    assert repr(evaluation).startswith(f"Evaluation(bundle={str(bundle)!r}, questions=14, nDCG@10: semantic ")


def test_the_plot_has_the_measures_of_each_weight(evaluation: Evaluation) -> None:
    with pyplot.style.context("dark_background"):
        figure = evaluation.plot()
    assert figure.get_facecolor() == (1, 1, 1, 1)
    assert pyplot.get_fignums() == []  # a notebook displays it once
    panels: Any = figure.axes
    weights, _ = panels
    assert (weights.get_title(), weights.get_xlabel()) == (AXES["title"], AXES["x"])
    assert weights.get_ylabel() == "mean of 14 questions (0 to 1)"
    lines = {line.get_label(): line for line in weights.get_lines()}
    assert [*lines] == ["recall@10", "nDCG@10", "MRR@10", "weight of the index (0.6)"]
    assert evaluation.advice is not None
    assert lines["nDCG@10"].get_xydata().tolist() == pytest.approx(np.array([*evaluation.advice.ndcg.items()]))
    now = {name: lines[title].get_ydata()[6] for name, title in (("mrr@10", "MRR@10"), ("recall@10", "recall@10"))}
    assert now == pytest.approx({name: evaluation.measures["hybrid"][name].value for name in now})
    assert lines["weight of the index (0.6)"].get_xdata() == [0.6, 0.6]


@pytest.mark.parametrize(("mode", "panels"), [("hybrid", 2), ("semantic", 1), ("keyword", 1)])
def test_the_plot_has_the_scores_and_the_floor(bundle_copy: Path, mode: Any, panels: int) -> None:
    manifest = check_bundle(bundle_copy)
    floor = {"hybrid": FloorInfo(0.25, 1.0), "semantic": FloorInfo(None, 0.5)}
    write_manifest(bundle_copy, replace(manifest, corpus_or_none=replace(manifest.corpus, floor=floor)))
    evaluation = evaluate(bundle_copy, QUESTIONS, mode=mode)
    axes: Any = evaluation.plot().axes
    assert len(axes) == panels
    scores = axes[-1]
    labels = [text.get_text() for text in scores.get_legend().get_texts()]
    others = int(labels[0].split()[0])
    assert labels[0].endswith("questions about other fields")
    assert 90 <= others <= 180
    assert labels[1] == "14 questions of this evaluation"
    floors = [(line.get_label(), line.get_xdata()) for line in scores.get_lines()]
    if mode == "hybrid":
        assert floors == [("floor (0.25)", [0.25, 0.25])]
        assert scores.get_title() == "Scores in the mode hybrid, and the floor"
    else:
        assert floors == []
        assert scores.get_title() == f"Scores in the mode {mode}, which has no floor"
    own = scores.patches[1].get_xy()  # the outline of the shares
    best = [hits[next(iter(hits))].score for hits in evaluation.results.rankings[mode] if hits]
    filled = own[own[:, 1] > 0][:, 0]
    width = np.diff(np.unique(own[:, 0]))[0]
    assert filled.min() <= min(best) <= filled.min() + width + 1e-9
    assert filled.max() - width - 1e-9 <= max(best) <= filled.max() + 1e-9
    assert (scores.get_xlabel(), scores.get_ylabel()) == (
        "score of the best hit of a question",
        "share of the questions (%)",
    )


def test_without_matplotlib_the_plot_names_the_command_that_installs_it(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semsearch.indexing.errors.find_spec", lambda module: None)
    with pytest.raises(PackagesError, match=r"plot: the package matplotlib is not installed, .*; install it: pip inst"):
        evaluation.plot()


def test_it_imports_no_command_and_no_plot(bundle: Path) -> None:
    code = (
        "import sys; from semsearch import evaluate; "
        f"evaluate({str(bundle)!r}, [{{'query': 'goose', 'relevant': ['story-001']}}]); "
        "print({'torch', 'cyclopts', 'matplotlib', 'polars', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    assert done.stderr == ""
