"""The floor: the score of a best hit below which nothing relevant was found, measured for each mode of a search.

It is measured with questions that the texts cannot answer: for 95 of 100, the best hit has a lower score than the
floor. other_fields.txt has the questions, 9 about each of 20 fields of everyday life. The texts can be about some of
these fields, so a field is left out if its questions get much higher scores than those of the others.

The questions are written as people ask. Spans of Python's documentation, another choice, share words with texts about
any software: with them, the floor of this project's documentation lost 10 of 50 questions that it answers, and 0 with
these (`python -m bench floor`).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files
from math import ceil, comb, floor
from pathlib import Path

import numpy as np

from semsearch.engine.bundle import PASSAGES, FloorInfo, Manifest
from semsearch.engine.cores import usable_cores
from semsearch.engine.loading import LoadedBundle, load_bundle, require_embedder
from semsearch.engine.tensors import Array
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.corpus.passages import stored_columns
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.tensor_files import release
from semsearch.indexing.vectors.recall import SEARCHES_AT_ONCE, sample_spans
from semsearch.search.executor import BatchedExecutor, finish
from semsearch.search.query import Query, SearchFunction
from semsearch.search.search import BundleSearch

SHARE_BELOW = 0.95  # share of the questions about other fields whose best hit is below the floor
# Minimum share of the questions from the texts whose best hit reaches the floor. It is lower in the mode keyword, which
# would lose a fifth of the questions in bench/floor.tsv, and in all modes for abstracts of SciFact, which share the
# words of medicine and animals with some of the other fields, and would lose a sixth of their claims.
LEAST_KEPT = 0.9
# Minimum share that is certain, except for an error with the probability CHANCE. It needs 19 questions, so an index of
# fewer texts has no floor. With 250 questions, LEAST_KEPT decides alone. Without this, small indexes had floors by
# chance in the mode keyword, which lost up to half of the questions (`python -m bench few`).
LEAST_SURE = 0.85
CHANCE = 0.05
FLOOR_DECIMALS = 4
FIELD_MARK = "# "  # begins the line with the name of a field
MEASURING = "measure the floor"

BestScores = Array[np.float64]  # the score of the best hit of each question, 0 without a hit


def measure_floor(folder: Path, manifest: Manifest, on_progress: OnProgress = no_progress) -> Manifest:
    """Measure the floor of each mode of the bundle in a folder. Write the new manifest, and return it."""
    measured = floors_of(load_bundle(folder), on_progress)
    manifest = replace(manifest, corpus_or_none=replace(manifest.corpus, floor=measured))
    write_manifest(folder, manifest)
    return manifest


def floors_of(bundle: LoadedBundle, on_progress: OnProgress = no_progress) -> dict[str, FloorInfo]:
    """Return the floor of each mode of a bundle. Its query table embeds the questions if it has one."""
    on_progress(MEASURING, 0)
    own = sample_spans(stored_columns(bundle.folder / PASSAGES)[0])
    fields = read_fields()
    others = [question for field in fields for question in field]
    embedded = [] if bundle.table is not None else [*own, *others]
    with ThreadPoolExecutor(usable_cores()) as pool:
        search = BundleSearch(bundle, BatchedExecutor(require_embedder(bundle), embedded, pool.map)).search
    modes = ["semantic"]
    if bundle.keywords is not None:
        modes += ["keyword", "hybrid"]
    measured = {}
    for number, mode in enumerate(modes):
        on_progress(MEASURING, number / len(modes))
        scores = best_scores(bundle, search, others, mode)
        measured[mode] = find_floor(best_scores(bundle, search, own, mode), scores.reshape(len(fields), -1))
    on_progress(MEASURING, 1)
    return measured


def read_fields() -> list[list[str]]:
    """Return the questions about each field; all fields have the same number of them."""
    text = files("semsearch.indexing.vectors").joinpath("other_fields.txt").read_text("utf-8")
    _, *fields = f"\n{text}".split(f"\n{FIELD_MARK}")
    return [field.splitlines()[1:] for field in fields]


def best_scores(bundle: LoadedBundle, search: SearchFunction, questions: Sequence[str], mode: str) -> BestScores:
    """Return the score of the best hit of each question in a mode, (questions,), before boosts."""
    best = np.zeros(len(questions))
    for number, text in enumerate(questions):
        query = Query(text, num_results=1, mode=mode, include=(), boost={})
        for result in finish(search(query, lambda phase: None)).results:
            best[number] = result["score"]
        if number % SEARCHES_AT_ONCE == 0:
            release(bundle.index.codes)  # or the searches would bring nearly the whole index into memory
    return best


def find_floor(own: BestScores, by_field: BestScores, least_sure: float = LEAST_SURE) -> FloorInfo:
    """Return the floor for the best scores of questions from the texts, (n,), and of others, (fields, questions)."""
    others = np.sort(leave_out_own(by_field), axis=None)
    last = float(others[ceil(SHARE_BELOW * len(others)) - 1])  # the floor is the next number above it
    score = round((floor(last * 10**FLOOR_DECIMALS) + 1) / 10**FLOOR_DECIMALS, FLOOR_DECIMALS)
    reached = int(np.count_nonzero(own >= score))
    kept = reached / len(own)
    if kept < LEAST_KEPT or probability(reached, len(own), least_sure) >= CHANCE:
        return FloorInfo(None, round(kept, FLOOR_DECIMALS))
    return FloorInfo(score, round(kept, FLOOR_DECIMALS))


def probability(reached: int, questions: int, share: float) -> float:
    """Return the probability that at least `reached` of the questions reach the floor, if each one does so by `share`.

    share is the probability of one question, from 0 to 1. The result is the p-value of the exact binomial test.
    """
    counts = range(reached, questions + 1)
    return sum(comb(questions, count) * share**count * (1 - share) ** (questions - count) for count in counts)


def leave_out_own(by_field: BestScores) -> BestScores:
    """Return the scores without fields that the texts are about, (fields left, questions).

    The half of the fields with the lowest medians is about something else. A field is left out if half of its questions
    score above nearly all questions of that half.
    """
    medians = np.median(by_field, axis=1)
    farthest = by_field[np.argsort(medians)[: len(by_field) // 2]]
    return by_field[medians <= np.quantile(farthest, SHARE_BELOW)]
