"""How many spans a query table needs: the ranking and the time of learning by the number of spans.

The spans of the smaller tables are the first of the largest. `semsearch/indexing/vectors/query_table.py::count_spans`
is the rule that follows.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench import DATA, PROJECT, WORK
from bench.rewritings import Judged, over, own_set
from bench.tables import make_provenance, report
from bench.work import CISI, SCIFACT, TOP_K, make_once, read_scifact
from semsearch import index
from semsearch.engine.embedder import QueryTable, TokenIds
from semsearch.engine.loading import LoadedBundle, load_bundle, require_embedder
from semsearch.evaluation.measures import measure
from semsearch.indexing.progress import no_progress
from semsearch.indexing.vectors.query_table import (
    FEW_SPANS,
    FITTED_SPANS,
    UNSEEN_SPANS,
    compare,
    draw_spans,
    embed_tokens,
    first_vectors,
    fit,
    rounded,
    single_tokens,
)

COUNTS = (2_000, 4_000, 8_000, FEW_SPANS, 16_000, FITTED_SPANS)
DEPTH = 4 * TOP_K  # rows in which the sections of a question are looked for


def spans(*, work: Path = WORK, data: Path = DATA, counts: Sequence[int] = COUNTS) -> None:
    """How well a query table ranks, and how long it takes to learn, by the number of spans that it is learned from."""
    sets = {"docs": docs_set(work)} | {Path(name).name: public_set(work, data, name) for name in (SCIFACT, CISI)}
    found = {name: learned(bundle, judged, counts) for name, (bundle, judged) in sets.items()}
    named = {count: f"{count:,}" for count in counts} | {0: "the model"}
    rows = [(name, *(each[count][0] for each in found.values())) for count, name in named.items()]
    columns = ("spans", *(f"{name}: semantic, hybrid nDCG@10; seconds" for name in found))
    details = {name: {named[count]: [*each[count]] for count in named} for name, each in found.items()}
    report("spans", columns, rows, {"results": details}, make_provenance("docs/, SciFact and CISI"))


def docs_set(work: Path) -> tuple[LoadedBundle, Judged]:
    """Return this documentation and its questions."""
    bundle = load_bundle(make_once(work / "docs", lambda out: index(PROJECT / "docs", out, mode="replace")))
    return bundle, own_set(bundle, "docs")


def public_set(work: Path, data: Path, name: str) -> tuple[LoadedBundle, Judged]:
    """Return SciFact or CISI and its questions."""
    test = read_scifact(data, name)
    texts = [{"text": text, "id": id} for id, text in test.documents.items()]
    place = make_once(work / f"{Path(name).name}-texts", lambda out: index(texts, out, mode="replace"))
    bundle = load_bundle(place)
    return bundle, over(bundle, test.queries, test.relevant)


def learned(bundle: LoadedBundle, judged: Judged, counts: Sequence[int]) -> dict[int, tuple[str, float]]:
    """Return the cell of the table for each number of spans, and the cosine to the model; 0 is the model itself.

    Seconds are those of the processor, for embedding the spans and for fitting, without the vectors of single tokens.
    """
    embedder = require_embedder(bundle)
    drawn = embedder.tokenize(draw_spans(bundle.passages, max(counts) + UNSEEN_SPANS), role="query")
    begin = time.process_time()
    wanted = embed_tokens(drawn, embedder, no_progress)
    seconds_of_one = (time.process_time() - begin) / len(drawn)
    alone = embed_tokens(single_tokens(embedder), embedder, no_progress)
    questions = embedder.tokenize(list(judged.questions.values()), role="query")
    found = {0: (cell(judged, 0), 1.0)}
    for count in counts:
        part = slice(UNSEEN_SPANS, UNSEEN_SPANS + count)
        start = first_vectors(alone, drawn[: part.stop])
        begin = time.process_time()
        vectors = rounded(fit(start, drawn[part], wanted[part], no_progress))
        seconds = time.process_time() - begin + count * seconds_of_one
        table = QueryTable(vectors)
        unseen: list[TokenIds] = drawn[:UNSEEN_SPANS]
        accuracy = compare(bundle.index, wanted[:UNSEEN_SPANS], table.embed(unseen))
        by_table = replace(judged, embeddings=table.embed(questions))
        found[count] = (cell(by_table, seconds), accuracy["cosine_mean"])
    return found


def cell(judged: Judged, seconds: float) -> str:
    """Return the mean nDCG@10 of semantic and of hybrid search, and the seconds if there are any."""
    total = 0.0
    for id, embedding in zip(judged.questions, judged.embeddings, strict=True):
        hits = judged.index.search(embedding, DEPTH)
        best = list(dict.fromkeys(judged.keys[hit.row] for hit in hits))[:TOP_K]
        total += measure(best, dict.fromkeys(judged.relevant[id], 1))[0]
    shown = f"{total / len(judged.questions):.4f}, {judged.rank()[1]:.4f}"
    if seconds:
        return f"{shown}; {seconds:.0f}"
    return shown
