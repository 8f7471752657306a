"""Queries with wrong letters rank nearly as well as without, on two test sets. The constants were chosen on CISI."""

import os
import random
import re
from pathlib import Path
from string import ascii_lowercase

import pytest
from safetensors.numpy import save_file

from bench.texts import CISI, SCIFACT, Retrieval, ndcg, read_scifact
from export.index.keywords import KeywordOptions, keyword_tensors
from function.engine.keyword.keywords import Keywords

WORD = re.compile("[A-Za-z]{4,}")


def misspell(text: str, choose: random.Random, *, every_word: bool) -> str:
    """Replace one letter of a word, or of every word, by another; words of three letters or fewer stay."""
    letters, places = list(text), [match.span() for match in WORD.finditer(text)]
    for begin, end in places if every_word else choose.sample(places, min(1, len(places))):
        place = choose.randrange(begin, end)
        letters[place] = choose.choice(ascii_lowercase.replace(letters[place].lower(), ""))
    return "".join(letters)


def rank(keywords: Keywords, queries: list[str], test: Retrieval) -> float:
    return ndcg([[hit.row for hit in keywords.match(query).best(10)] for query in queries], test)


@pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="BENCH_DATA is not set: it names the folder of SciFact")
@pytest.mark.parametrize(("name", "one", "all_words"), [(SCIFACT, 0.97, 0.9), (CISI, 0.95, 0.65)])
def test_misspelled_queries_rank_nearly_as_well(tmp_path: Path, name: str, one: float, all_words: float) -> None:
    test = read_scifact(Path(os.environ["BENCH_DATA"]), name)
    tensors, info = keyword_tensors(list(test.documents.values()), KeywordOptions())
    assert info is not None
    save_file(tensors, tmp_path / "keywords.safetensors")
    keywords = Keywords(tmp_path / "keywords.safetensors", info, len(test.documents))
    queries, choose = list(test.queries.values()), random.Random(7)
    right = rank(keywords, queries, test)
    for every_word, least in ((False, one), (True, all_words)):
        found = rank(keywords, [misspell(query, choose, every_word=every_word) for query in queries], test)
        print(f"{name}, every word {every_word}: {found:.4f} of {right:.4f}, {found / right:.3f}")
        assert found >= least * right
