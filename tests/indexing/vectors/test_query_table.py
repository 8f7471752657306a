"""Learning a query table: how close it comes, on what, and when an update learns it again."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.bundle import PASSAGES, QUERY_TABLE, QueriesInfo, check_bundle
from semsearch.engine.embedder import Embedder
from semsearch.engine.passages import Passages
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.vectors.query_table import draw_spans, keep_table, learn_table, write_queries
from tests.bundle_files import write_passages
from tests.command_line import export_texts, run, summary, write_csv
from tests.world import add_table


@pytest.mark.slow  # the tests below learn tables too
def test_a_table_learns_what_a_model_that_adds_the_vectors_of_words_does(bundle: Path) -> None:
    manifest = check_bundle(bundle)
    embedder = Embedder.open(bundle, manifest.model)
    first, info = learn_table(bundle, manifest, embedder)
    assert info.accuracy["cosine_mean"] > 0.95  # 0.61 before anything is learned
    assert info.accuracy["recall_at_10"] > 0.85  # 0.31 before
    again, _ = learn_table(bundle, manifest, embedder)
    np.testing.assert_array_equal(first, again)  # the same input, the same bytes


def test_spans_have_all_lengths_and_come_from_texts_and_headings(tmp_path: Path) -> None:
    texts = [" ".join(f"w{row}-{place}" for place in range(120)) for row in range(50)]
    metadata = [json.dumps({"title": f"Title {row}", "headings": ["One", "Two"]}) for row in range(50)]
    write_passages(tmp_path / PASSAGES, texts, [str(row) for row in range(50)], metadata)
    spans = draw_spans(Passages(tmp_path / PASSAGES), 2_000)
    assert len(spans) == 2_000
    headings = [span for span in spans if span.startswith("Title ")]
    assert 100 < len(headings) < 300
    assert headings[0].endswith("> One > Two")
    others = [span for span in spans if not span.startswith("Title ")]
    assert all(any(span in text for text in texts) for span in others)
    lengths = [len(span.split()) for span in others]
    assert min(lengths) <= 2
    assert max(lengths) > 30


def test_an_update_keeps_the_table_until_a_tenth_of_the_passages_are_newer(bundle_copy: Path, tmp_path: Path) -> None:
    add_table(bundle_copy)
    older, fresh = check_bundle(bundle_copy), tmp_path / "fresh"
    fresh.mkdir()
    without = replace(older, queries=None)
    kept = keep_table(bundle_copy, fresh, without, new_rows=15)
    assert kept is not None
    assert kept.queries == QueriesInfo(spans=0, new_rows=15)
    assert (fresh / QUERY_TABLE).read_bytes() == (bundle_copy / QUERY_TABLE).read_bytes()
    write_queries(bundle_copy, without, QueriesInfo(spans=0, new_rows=15))
    assert keep_table(bundle_copy, fresh, without, new_rows=5) is not None  # 20 of 200
    (fresh / QUERY_TABLE).unlink()
    assert keep_table(bundle_copy, fresh, without, new_rows=6) is None
    assert not (fresh / QUERY_TABLE).exists()


def test_the_command_learns_a_table_and_an_update_keeps_it(
    bundle_copy: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stories = write_csv(tmp_path / "stories.csv", [{"text": text} for text in corpus.texts])
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"query": "who lost a key?", "relevant": ["1"]}\n')
    done = export_texts(stories, bundle_copy, "--queries", "table", "--questions", questions)
    assert summary(done, "queries").startswith("a table learned from 4,001 spans: cosine to the model 0.9")
    learned = (bundle_copy / QUERY_TABLE).read_bytes()
    export_texts(stories, bundle_copy, "--update", bundle_copy)
    assert (bundle_copy / QUERY_TABLE).read_bytes() == learned
    monkeypatch.setattr("semsearch.indexing.vectors.query_table.STEPS", 10)
    export_texts(stories, bundle_copy, "--update", bundle_copy, "--learn")  # now without the question
    again = check_bundle(bundle_copy).queries
    assert again is not None
    assert again.spans == 4_000
    assert run("index", stories, "--queries", "model", "--learn", "--out", bundle_copy).code == 2
