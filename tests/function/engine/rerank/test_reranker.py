"""A query and texts become logits, which depend on no other pair; and a damaged reranker is reported."""

from pathlib import Path

import numpy as np
import pytest

from export.index.indexer import write_manifest
from function.engine.bundle import RERANK, RERANK_TOKENIZER, BundleError, read_manifest
from function.engine.loading import LoadedBundle, load_bundle
from function.engine.rerank.reranker import Reranker, probabilities
from tests.conftest import WHAT, WHO
from tests.rerankers import MOST_TOKENS, add_reranker, expected_logit

QUERY = "who lost a silver key?"
TEXTS = [f"{who} {what}." for who, what in zip(WHO, [*WHAT, *WHAT], strict=True)]


@pytest.fixture
def reranked(bundle_copy: Path) -> LoadedBundle:
    return load_bundle(add_reranker(bundle_copy))


@pytest.fixture
def reranker(reranked: LoadedBundle) -> Reranker:
    assert reranked.reranker is not None
    return reranked.reranker


def test_the_logits_are_those_of_the_graph(reranker: Reranker) -> None:
    logits = reranker.score(reranker.tokenize_pairs(QUERY, TEXTS))
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, [expected_logit(QUERY, text) for text in TEXTS], atol=1e-4)


def test_a_pair_has_the_same_logit_alone_and_among_others(reranker: Reranker) -> None:
    together = reranker.score(reranker.tokenize_pairs(QUERY, TEXTS))
    alone = [reranker.score(reranker.tokenize_pairs(QUERY, [text]))[0] for text in TEXTS]
    assert together.tolist() == [float(one) for one in alone]


def test_a_pair_has_the_types_of_both_texts_and_at_most_max_tokens(reranker: Reranker) -> None:
    short, long = reranker.tokenize_pairs("the baker", ["the key", "the key " * MOST_TOKENS])
    assert list(short.types) == [0] * 4 + [1] * 3
    assert not short.is_truncated
    assert (len(long.ids), long.is_truncated) == (MOST_TOKENS, True)
    assert long.ids[:4] == short.ids[:4]  # the longer text is truncated, not the query


def test_no_pair_has_no_logit(reranker: Reranker) -> None:
    assert reranker.score([]).shape == (0,)


def test_probabilities_are_the_sigmoid_without_overflow() -> None:
    found = probabilities(np.array([-1000, -1, 0, 2, 1000], np.float32))
    np.testing.assert_allclose(found, [0, 1 / (1 + np.e), 0.5, 1 / (1 + np.exp(-2)), 1], atol=1e-7)


def test_a_bundle_without_a_reranker_has_none(bundle: Path) -> None:
    assert load_bundle(bundle).reranker is None


def test_a_reranker_is_opened_once(reranked: LoadedBundle) -> None:
    assert reranked.reranker is reranked.reranker


def test_a_bundle_that_was_replaced_does_not_open_its_reranker(reranked: LoadedBundle) -> None:
    add_reranker(reranked.folder, weight=0.25)
    with pytest.raises(BundleError, match="was replaced after it was loaded"):
        _ = reranked.reranker


@pytest.mark.parametrize("name", [RERANK, RERANK_TOKENIZER])
def test_a_damaged_file_is_named(reranked: LoadedBundle, name: str) -> None:
    path = reranked.folder / name
    path.write_bytes(path.read_bytes()[:100].ljust(path.stat().st_size, b"x"))
    with pytest.raises(BundleError, match=rf"{name}: .*; run `python -m export` again with --rerank"):
        _ = reranked.reranker


@pytest.mark.parametrize("name", [RERANK, RERANK_TOKENIZER])
def test_a_bundle_without_a_file_of_its_reranker_does_not_load(bundle_copy: Path, name: str) -> None:
    (add_reranker(bundle_copy) / name).unlink()
    with pytest.raises(BundleError, match=f"{name}: is missing"):
        load_bundle(bundle_copy)


def test_a_manifest_with_a_reranker_is_read_again_as_it_was_and_one_without_does_not_name_it(
    bundle: Path, bundle_copy: Path
) -> None:
    manifest = read_manifest(add_reranker(bundle_copy))
    assert manifest.rerank is not None
    write_manifest(bundle_copy, manifest)
    assert read_manifest(bundle_copy) == manifest
    assert '"rerank"' not in (bundle / "manifest.json").read_text()
