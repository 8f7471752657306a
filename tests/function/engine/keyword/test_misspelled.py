"""Queries with wrong letters rank nearly as well as without, on two test sets. The constants were chosen on CISI."""

import os
import random
from pathlib import Path

import pytest

from bench.model.modes import make_keywords, misspell
from bench.texts import CISI, SCIFACT, Retrieval, ndcg, read_scifact
from export.index.keywords import KeywordOptions
from function.engine.keyword.keywords import Keywords


def rank(keywords: Keywords, queries: list[str], test: Retrieval) -> float:
    return ndcg([[hit.row for hit in keywords.match(query).best(10)] for query in queries], test)


@pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="BENCH_DATA is not set: it names the folder of SciFact")
@pytest.mark.parametrize(("name", "one", "all_words"), [(SCIFACT, 0.97, 0.9), (CISI, 0.95, 0.65)])
def test_misspelled_queries_rank_nearly_as_well(tmp_path: Path, name: str, one: float, all_words: float) -> None:
    test = read_scifact(Path(os.environ["BENCH_DATA"]), name)
    keywords = make_keywords(tmp_path / "keywords.safetensors", list(test.documents.values()), KeywordOptions())
    queries, choose = list(test.queries.values()), random.Random(7)
    right = rank(keywords, queries, test)
    for every_word, least in ((False, one), (True, all_words)):
        found = rank(keywords, [misspell(query, choose, every_word=every_word) for query in queries], test)
        print(f"{name}, every word {every_word}: {found:.4f} of {right:.4f}, {found / right:.3f}")
        assert found >= least * right
