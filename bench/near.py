"""The floors of other projects' documentations: what they lose, and what they keep out, also near their field.

floor.tsv has 20 questions that each documentation answers ("own"), and 40 about other programming languages and tools,
which none of them answers ("near"). They were written before any search was run, and no floor was chosen with them.
"""

from functools import partial
from pathlib import Path
from typing import Literal

from bench import DATA, WORK, Missing
from bench.relevance import NEITHER, best_of_each, read_kinds, separation
from bench.tables import make_provenance, report
from bench.work import make_once
from semsearch import Search, index
from semsearch.engine.bundle import read_manifest

DOCUMENTATIONS = ("pytest", "hatch", "sqlite", "fastify")
NEAR = "near"  # kind of the questions that no documentation answers
HYBRID: Literal["hybrid"] = "hybrid"


def near(*, work: Path = WORK, data: Path = DATA) -> None:
    """Which questions about everyday life and other tools reach the floor of a documentation, in hybrid search."""
    questions = read_kinds()
    rows = []
    for name in DOCUMENTATIONS:
        folder = require_folder(data / "documentations" / name)
        bundle = make_once(work / name, partial(index, folder, mode="replace"))
        search, corpus = Search(bundle), read_manifest(bundle).corpus
        own, everyday, others = (best_of_each(search, questions[kind], HYBRID) for kind in (name, NEITHER, NEAR))
        floor, _, lost, everyday_out, _ = separation(corpus.floor[HYBRID], own, everyday)
        _, _, _, near_out, best_lost = separation(corpus.floor[HYBRID], own, others)
        rows.append((name, f"{corpus.rows:,}", floor, lost, everyday_out, near_out, best_lost))
    results = ("everyday without result", "near ones without", "own lost if 90 % of near ones had none")
    columns = ("documentation", "texts", "floor", "own lost", *results)
    report("near", columns, rows, {}, make_provenance("documentations of four projects"))


def require_folder(folder: Path) -> Path:
    """Return a folder of documents. Raises Missing if it is not there."""
    if not folder.is_dir():
        raise Missing(
            f"{folder}: there is no such folder; docs/benchmarks.md says where it comes from: "
            "name the folder that holds it with --data or BENCH_DATA"
        )
    return folder
