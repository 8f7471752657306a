"""A query and texts become logits, which depend on no other pair; and a damaged reranker is reported."""

from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.bundle import RERANK, RERANK_TOKENIZER, BundleError
from semsearch.engine.loading import LoadedBundle, load_bundle
from semsearch.engine.rerank.reranker import Reranker
from tests.rerankers import MOST_TOKENS, add_reranker, expected_logit
from tests.world import WHAT, WHO

QUERY = "who lost a silver key?"
TEXTS = [f"{who} {what}." for who, what in zip(WHO, [*WHAT, *WHAT], strict=True)]


@pytest.fixture
def reranked(bundle_copy: Path) -> LoadedBundle:
    return load_bundle(add_reranker(bundle_copy))


@pytest.fixture
def reranker(reranked: LoadedBundle) -> Reranker:
    assert reranked.reranker is not None
    return reranked.reranker


def test_the_logits_are_those_of_the_graph_and_of_each_pair_alone(reranker: Reranker) -> None:
    logits = reranker.score(reranker.tokenize_pairs(QUERY, TEXTS))
    alone = [reranker.score(reranker.tokenize_pairs(QUERY, [text]))[0] for text in TEXTS]
    assert logits.tolist() == [float(one) for one in alone]
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, [expected_logit(QUERY, text) for text in TEXTS], atol=1e-4)


def test_a_pair_has_the_types_of_both_texts_and_at_most_max_tokens(reranker: Reranker) -> None:
    short, long = reranker.tokenize_pairs("the baker", ["the key", "the key " * MOST_TOKENS])
    assert list(short.types) == [0] * 4 + [1] * 3
    assert not short.is_truncated
    assert (len(long.ids), long.is_truncated) == (MOST_TOKENS, True)
    assert long.ids[:4] == short.ids[:4]  # the longer text is truncated, not the query


def test_the_tokens_of_each_text_can_be_limited(reranker: Reranker) -> None:
    whole, longer = reranker.tokenize_pairs("the baker", ["the key", "the key the"])
    short, cut = reranker.tokenize_pairs("the baker", ["the key", "the key the"], 2)
    assert short == whole
    assert (cut.ids, cut.types, cut.is_truncated) == (whole.ids, whole.types, True)
    assert reranker.tokenize_pairs("the baker", ["the key the"], MOST_TOKENS) == [longer]


def test_a_bundle_that_was_replaced_does_not_open_its_reranker(reranked: LoadedBundle) -> None:
    add_reranker(reranked.folder, weight=0.25)
    with pytest.raises(BundleError, match="was replaced after it was loaded"):
        _ = reranked.reranker


@pytest.mark.parametrize("name", [RERANK, RERANK_TOKENIZER])
def test_a_damaged_file_is_named(reranked: LoadedBundle, name: str) -> None:
    path = reranked.folder / name
    path.write_bytes(path.read_bytes()[:100].ljust(path.stat().st_size, b"x"))
    with pytest.raises(BundleError, match=rf"{name}: .*; run `semsearch index` again"):
        _ = reranked.reranker
