"""Learning a query table: how close it comes, on what, and when an update learns it again."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from semsearch.engine.bundle import (
    INDEX,
    PASSAGES,
    QUERY_TABLE,
    Manifest,
    QueriesInfo,
    check_bundle,
    describe_file,
    read_manifest,
)
from semsearch.engine.embedder import Embedder, QueryTable, TokenIds
from semsearch.engine.passages import Passages
from semsearch.engine.quantization import Embeddings
from semsearch.engine.semantic.index import Index
from semsearch.engine.tensors import map_tensors
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.progress import no_progress
from semsearch.indexing.vectors import query_table
from semsearch.indexing.vectors.query_table import (
    QueryOptions,
    compare,
    count_spans,
    draw_spans,
    fit,
    keep_table,
    learn_queries,
    learn_table,
    write_queries,
    write_table,
)
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
    texts = [" ".join(f"w{row}x{place}" for place in range(120)) for row in range(50)]
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
    assert (min(lengths), max(lengths)) == (2, 96)
    places = [(int(span.split()[0].split("x")[1]), int(span.split()[-1].split("x")[1])) for span in others]
    assert min(place for place, _ in places) == 0
    assert max(place for _, place in places) == 119
    assert {span.split("x")[0] for span in others} == {f"w{row}" for row in range(50)}
    write_passages(tmp_path / "short", ["word", "?!", ""], ["a", "b", "c"], ["{}"] * 3)
    assert set(draw_spans(Passages(tmp_path / "short"), 40)) == {"word", "?!", ""}


@pytest.mark.parametrize(
    ("passages", "size", "spans"),
    [
        *((1, 999, 20), (599, 10**9, 11_980), (600, 0, 12_000), (601, 0, 12_000)),
        *((5_000, 4_800_399, 12_000), (5_000, 4_800_400, 12_001), (9_000, 16_000_000, 40_000)),
        *((9_000, 16_000_400, 40_000), (2_000, 16_000_400, 40_000), (1_999, 16_000_400, 39_980)),
    ],
)
def test_a_table_is_fitted_to_a_span_for_each_400_bytes_within_limits(passages: int, size: int, spans: int) -> None:
    assert count_spans(passages, size) == spans


@pytest.mark.parametrize(
    ("spans", "steps"), [(10, 100), (5_120, 100), (5_171, 100), (5_172, 101), (20_480, 400), (40_000, 400)]
)
def test_more_spans_are_fitted_in_more_steps_within_limits(spans: int, steps: int) -> None:
    told: list[float] = []
    start, wanted = np.ones((2, 2), np.float32), np.full((spans, 2), 0.5**0.5, np.float32)
    fit(start, [TokenIds([0, 1], False)] * spans, wanted, lambda step, share, texts=0: told.append(share))
    assert len(told) == steps


def fit_by_hand(start: Embeddings, texts: list[list[int]], wanted: Embeddings, order: list[int]) -> Embeddings:
    """Return what Adam makes of all vectors, with three texts in each of four steps."""
    vectors = start.astype(np.float64)
    mean, square = np.zeros_like(vectors), np.zeros_like(vectors)
    for step in range(4):
        rows = order[3 * step : 3 * step + 3]
        gradient = np.zeros_like(vectors)
        for row in rows:
            total = sum(vectors[token] for token in texts[row])
            length = np.linalg.norm(total)
            unit = total / length
            for token in texts[row]:
                gradient[token] += (unit * (unit @ wanted[row]) - wanted[row]) / length / len(rows)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = 0.002 * (1 - step / 4)
        vectors -= rate * mean / (1 - 0.9 ** (step + 1)) / (np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8)
    return vectors.astype(np.float32)


def test_vectors_are_fitted_as_adam_does_also_beside_a_text_without_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_table, "STEPS", 4)
    monkeypatch.setattr(query_table, "TEXTS_PER_STEP", 3)
    random = np.random.default_rng(0)
    start = random.standard_normal((6, 4), np.float32)
    wanted = random.standard_normal((6, 4), np.float32)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    texts = [[0, 1, 1], [2], [], [3, 0], [1, 3, 5], [5, 5]]
    told: list[float] = []
    found = fit(start, [TokenIds(ids, False) for ids in texts], wanted, lambda step, share, texts=0: told.append(share))
    chosen = np.random.default_rng(7)
    order = [row for _ in range(3) for row in chosen.permutation([0, 1, 3, 4, 5]).tolist()]
    np.testing.assert_allclose(found, fit_by_hand(start, texts, wanted, order), rtol=0, atol=1e-6)
    assert np.array_equal(found[4], start[4])  # no text has it
    assert told == pytest.approx([0.8, 0.8475, 0.895, 0.9425])


def test_a_table_begins_with_the_embeddings_of_the_tokens_and_frequent_ones_count_less(
    bundle: Path, embedder: Embedder, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("STEPS", 1), ("LEARNING_RATE", 0.0), ("FITTED_SPANS", 300), ("UNSEEN_SPANS", 20)):
        monkeypatch.setattr(query_table, name, value)
    codes, info = learn_table(bundle, manifest, embedder, ["the goose"])
    spans = embedder.tokenize([*draw_spans(Passages(bundle / PASSAGES), 320), "the goose"])
    counts = np.bincount(np.concatenate([span.ids for span in spans]), minlength=embedder.vocabulary_size)
    alone = embedder.embed([TokenIds([2, token, 3], False) for token in range(embedder.vocabulary_size)])
    vectors = alone * (0.001 / (0.001 + counts / counts.sum()))[:, np.newaxis]
    assert np.abs(codes - np.rint(vectors * 1.2 / vectors.std()).clip(-127, 127)).max() <= 1  # rounded otherwise
    assert codes.dtype == np.int8
    unseen = spans[:20]
    expected = compare(
        Index.open(bundle / INDEX, manifest.corpus.stages), embedder.embed(unseen), QueryTable(codes).embed(unseen)
    )
    assert info == QueriesInfo(spans=301, accuracy=expected)


def test_a_table_is_compared_by_its_cosines_and_by_the_hits_of_the_model() -> None:
    def search(query: Embeddings, count: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(row=row) for row in range(int(query[0]), int(query[0]) + count)]

    wanted, found = (np.array(rows, np.float32) for rows in ([[0, 1], [3, 0]], [[5, 0.5], [3, 0.25]]))
    index: Any = SimpleNamespace(search=search)
    assert compare(index, wanted, found) == {"texts": 2.0, "cosine_mean": 4.75, "recall_at_10": 0.75}


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


@pytest.mark.parametrize(
    ("options", "has_older", "is_kept", "called"),
    [
        (QueryOptions("model", None, False), True, True, []),
        (QueryOptions("table", None, False), False, True, [[]]),
        (QueryOptions("table", None, False), True, True, ["older"]),
        (QueryOptions("table", None, False), True, False, ["older", []]),
        (QueryOptions("table", None, True), True, True, [[]]),
        (QueryOptions("table", Path("questions.jsonl"), False), True, True, [["one", "two"]]),
    ],
)
def test_a_table_is_learned_if_it_is_wanted_and_the_older_one_is_not_kept(
    options: QueryOptions,
    has_older: bool,
    is_kept: bool,
    called: list[Any],
    bundle: Path,
    manifest: Manifest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []
    kept, learned = (replace(manifest, queries=QueriesInfo(spans)) for spans in (1, 2))

    def keep(older: Path, folder: Path, given: Manifest, new_rows: int) -> Manifest | None:
        assert (older, folder, given, new_rows) == (tmp_path, bundle, manifest, 7)
        calls.append("older")
        return kept if is_kept else None

    def learn(folder: Path, given: Manifest, embedder: Embedder, questions: list[str], on_progress: Any) -> Manifest:
        assert (folder, given, embedder.model, on_progress) == (bundle, manifest, manifest.model, no_progress)
        calls.append(questions)
        return learned

    monkeypatch.setattr(query_table, "keep_table", keep)
    monkeypatch.setattr(query_table, "write_table", learn)
    monkeypatch.chdir(tmp_path)
    Path("questions.jsonl").write_text(
        "".join(f'{{"query": "{text}", "relevant": ["1"]}}\n' for text in ("one", "two"))
    )
    older = tmp_path if has_older else None
    found = learn_queries(bundle, manifest, options, older=older, new_rows=7, on_progress=no_progress)
    assert calls == called
    assert found == (manifest if not called else kept if called[-1] == "older" else learned)


def test_a_table_without_an_older_one_is_not_kept(bundle: Path, manifest: Manifest, tmp_path: Path) -> None:
    assert keep_table(bundle, tmp_path, manifest, new_rows=0) is None
    assert list(tmp_path.iterdir()) == []


def test_a_learned_table_is_written_with_its_description(
    bundle_copy: Path, embedder: Embedder, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, info = np.arange(8, dtype=np.int8).reshape(4, 2), QueriesInfo(9, 0, {"texts": 1.0})
    monkeypatch.setattr(query_table, "learn_table", lambda *arguments: (codes, info))
    written = write_table(bundle_copy, manifest, embedder)
    assert written == read_manifest(bundle_copy)
    assert written.queries == info
    assert written.files == manifest.files | {QUERY_TABLE: describe_file(bundle_copy / QUERY_TABLE)}
    assert np.array_equal(map_tensors(bundle_copy / QUERY_TABLE)["vectors"], codes)
