"""Exported cross-encoders have the logits of transformers and of sentence-transformers, and come into a bundle."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from semsearch.conversion.reference import reference_texts
from semsearch.conversion.reranker import (
    HELD_OUT_QUERIES,
    HELD_OUT_TEXTS,
    _held_out,
    calibration_pairs,
    check_pairs,
    compare_logits,
    export_rerank_graph,
    export_reranker,
    rank_correlation,
    reference_pairs,
    run_original_pairs,
)
from semsearch.engine.bundle import RERANK, RERANK_TOKENIZER, TOKENIZER, RerankInfo, read_manifest
from semsearch.engine.embedder import open_session
from semsearch.engine.loading import load_bundle
from semsearch.engine.rerank.reranker import Reranker
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.models.calibration import split_texts
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.models.source import Source, read_cross_encoder, write_tokenizer
from tests.command_line import STORY_COLUMNS, contents, error_line, run, summary
from tests.conversion.test_graph import MODERNBERT_SIZES, SIZES
from tests.data.make_sentence_transformers import DATA, TEXTS, add_transformer
from tests.export_fixtures import TINY_BERT, edit_json

pytestmark = pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script(_method)?` is deprecated:DeprecationWarning")

LARGEST_DIFFERENCE = 1e-3  # between the scores of the float32 graph and of the original model
LEAST_CORRELATION = 0.99  # rank correlation of the 8-bit scores with the original model's
QUERIES = ("who lost a key?", "A RAVEN STOLE", "twelve hares and the lion " * 4)
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Return what makes a tiny cross-encoder of a family, with random weights and the tiny BERT's tokenizer."""

    def make_model(family: str = "bert", labels: int = 1, **config: Any) -> Path:
        import torch
        from transformers import AutoConfig, AutoModelForSequenceClassification

        sizes: dict[str, Any] = {"modernbert": MODERNBERT_SIZES, "roberta": SIZES | {"type_vocab_size": 1}}.get(
            family, SIZES
        )
        stated = AutoConfig.for_model(
            family, vocab_size=591, max_position_embeddings=66, initializer_range=0.3, num_labels=labels, **sizes
        )
        torch.manual_seed(7)
        folder = tmp_path_factory.mktemp(family) / f"{family}-{labels}"
        AutoModelForSequenceClassification.from_config(stated).save_pretrained(folder)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(TINY_BERT / name, folder / name)
        if family == "roberta":  # as its own tokenizer says
            edit_json(folder / "tokenizer_config.json", model_input_names=["input_ids", "attention_mask"])
        edit_json(folder / "config.json", **config)
        return folder

    return make_model


def original_logits(folder: Path, pairs: list[tuple[str, str]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the logits that transformers computes for all pairs in one padded batch, (n, labels)."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    tokens = AutoTokenizer.from_pretrained(folder)(pairs, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        return np.asarray(model(**tokens).logits.numpy(), np.float32)


def open_exact(source: Source, folder: Path) -> Reranker:
    onnx.save(export_rerank_graph(source, folder / "work"), folder / "exact.onnx")
    write_tokenizer(source, folder / RERANK_TOKENIZER)
    return open_reranker(source, folder, folder / "exact.onnx")


def open_reranker(source: Source, folder: Path, graph: Path) -> Reranker:
    info = RerankInfo("tiny", None, "0" * 64, source.max_tokens, 0.5, "none")
    return Reranker(read_tokenizer(folder / RERANK_TOKENIZER), open_session(graph), info)


def score(reranker: Reranker, pairs: list[tuple[str, str]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array([reranker.score(reranker.tokenize_pairs(query, [text]))[0] for query, text in pairs])


def test_of_two_labels_the_difference_is_compared(make: Make, tmp_path: Path) -> None:
    source = read_cross_encoder(make("bert", 2), "two labels")
    original = run_original_pairs(source)
    assert original.std() > 20 * LARGEST_DIFFERENCE
    check_pairs(source, original, open_exact(source, tmp_path))


def test_half_of_the_pairs_that_choose_the_8_bit_steps_are_a_text_with_its_own_beginning(
    make: Make, tmp_path: Path
) -> None:
    reranker = open_exact(read_cross_encoder(make(), "bert"), tmp_path)
    texts = ["a fox", "a raven", "a hare"]
    expected = [("a fox", "a fox"), ("a hare", "a raven"), ("a hare", "a hare")]
    long = "one two three four five six seven eight nine"
    assert calibration_pairs(reranker, [long]) == reranker.tokenize_pairs(long.removesuffix(" nine"), [long])
    assert calibration_pairs(reranker, texts) == [reranker.tokenize_pairs(query, [text])[0] for query, text in expected]


@pytest.mark.parametrize(
    ("family", "labels"),
    [
        ("bert", 1),
        pytest.param("bert", 2, marks=pytest.mark.slow),
        pytest.param("modernbert", 1, marks=pytest.mark.slow),
    ],
)
def test_float32_and_8_bit_have_the_logits_of_transformers(
    make: Make, corpus: Corpus, tmp_path: Path, family: str, labels: int
) -> None:
    texts = split_texts(corpus.texts)
    folder = make(family, labels)
    source = read_cross_encoder(folder, folder.name)
    pairs = [(query, text) for query in QUERIES for text in texts.held_out[:40]]
    theirs = original_logits(folder, pairs)
    expected = theirs[:, 0] if labels == 1 else theirs[:, 1] - theirs[:, 0]  # the second label means relevant
    assert expected.std() > 20 * LARGEST_DIFFERENCE
    np.testing.assert_allclose(score(open_exact(source, tmp_path), pairs), expected, atol=LARGEST_DIFFERENCE)
    info = export_reranker(source, texts, tmp_path)
    found = score(open_reranker(source, tmp_path, tmp_path / RERANK), pairs)
    assert rank_correlation(found, expected) >= LEAST_CORRELATION
    assert info.accuracy["rank_correlation"] >= LEAST_CORRELATION
    assert info.accuracy["pairs"] == 50 * 20
    assert (info.max_tokens, info.weight, info.quantization) == (64, 0.5, "w8a14")


@pytest.mark.slow  # the test above has the head of BERT
@pytest.mark.parametrize("family", ["roberta", "electra", "distilbert"])
def test_other_heads_agree_with_transformers_in_float32(make: Make, tmp_path: Path, family: str) -> None:
    source = read_cross_encoder(make(family), family)
    check_pairs(source, run_original_pairs(source), open_exact(source, tmp_path))


def test_a_cross_encoder_of_modules_has_the_scores_of_sentence_transformers_and_others_are_refused(
    tmp_path: Path,
) -> None:
    folder = add_transformer(
        Path(shutil.copytree(DATA / "sentence-transformers" / "cross-encoder", tmp_path / "model"))
    )
    source = read_cross_encoder(folder, "modules")
    assert (source.pooling, source.dim, source.max_tokens) == ("cls", 1, 32)
    exact, original = open_exact(source, tmp_path), run_original_pairs(source)
    check_pairs(source, original, exact)
    (theirs,) = json.loads((folder / "embeddings.json").read_text())["scores"]
    found = score(exact, [(query, text) for query in TEXTS for text in TEXTS])
    np.testing.assert_allclose(found, theirs, atol=LARGEST_DIFFERENCE)
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    edit_json(other / "4_Dense" / "config.json", activation_function="torch.nn.modules.activation.Tanh")
    with pytest.raises(ModelError, match=r"the activations {.*linear\.Tanh.*}; expected"):
        read_cross_encoder(other, "modules")
    original[3] += 0.01
    with pytest.raises(ModelError, match=r"differ by up to 0\.0\d+, expected at most 0\.001"):
        check_pairs(source, original, exact)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architectures": ["BertModel"]}, "has 0 labels"),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}}, "has 3 labels, .*expected a cross-encoder with one label, or"),
        ({"sentence_transformers": {"activation_fn": "torch.nn.Tanh"}}, "the activations {'torch.nn.Tanh'}; expected"),
    ],
)
def test_what_cannot_be_exported_is_refused(make: Make, config: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_cross_encoder(make(**config), "refused")


def test_a_bundle_gets_a_reranker_keeps_it_and_gets_another_weight_without_a_new_embedding(
    make: Make, stories: Path, story_bundle: Path, calibration: Path
) -> None:
    before = contents(story_bundle)
    command = ("index", stories, *STORY_COLUMNS, "--out", story_bundle, "--verbose")
    done = run(*command, "--rerank", make(), "--calibration", calibration)
    assert (done.code, done.err) == (0, "")
    assert "0 texts, " in summary(done, "embedded")
    assert summary(done, "reranker").startswith("bert-1, 64 tokens, weight 0.5; against float32: pairs ")
    after = contents(story_bundle)
    # the tokenizers of both models are equal, so there is one file
    assert after.keys() - before.keys() == {RERANK}
    assert {name for name in before if before[name] != after[name]} == {"manifest.json"}
    bundle = load_bundle(story_bundle)
    assert bundle.reranker is not None
    assert len(bundle.reranker.score(bundle.reranker.tokenize_pairs("a key", ["a door", "a ferry"]))) == 2
    assert run("verify", story_bundle).code == 0

    assert run(*command, "--rerank-weight", "0.25").code == 0
    again = read_manifest(story_bundle)
    assert again.rerank is not None
    assert (again.rerank.weight, contents(story_bundle)[RERANK]) == (0.25, after[RERANK])

    assert run(*command, "--model", TINY_BERT, "--calibration", calibration).code == 0
    assert read_manifest(story_bundle).rerank == again.rerank


def test_a_tokenizer_of_its_own_has_its_own_file(make: Make, calibration: Path, tmp_path: Path) -> None:
    folder = make()
    normalizer = json.loads((folder / "tokenizer.json").read_text())["normalizer"]
    edit_json(folder / "tokenizer.json", normalizer=normalizer | {"lowercase": False})
    edit_json(folder / "tokenizer_config.json", do_lower_case=False)
    out = tmp_path / "bundle"
    done = run("model", "convert", TINY_BERT, "--rerank", folder, "--calibration", calibration, "--out", out)
    assert (done.code, done.err) == (0, "")
    files = contents(out)
    assert files[RERANK_TOKENIZER] != files[TOKENIZER]
    assert {RERANK, RERANK_TOKENIZER} <= read_manifest(out).files.keys()


def test_a_model_that_is_no_cross_encoder_is_refused_before_any_work(stories: Path, story_bundle: Path) -> None:
    before = contents(story_bundle)
    done = run("index", stories, *STORY_COLUMNS, "--rerank", TINY_BERT, "--out", story_bundle)
    assert "lists Transformer, Pooling, Normalize; expected a cross-encoder" in error_line(done)
    assert contents(story_bundle) == before


def test_a_weight_without_a_reranker_is_refused(stories: Path, story_bundle: Path) -> None:
    done = run("index", stories, *STORY_COLUMNS, "--rerank-weight", "0.3", "--out", story_bundle)
    assert done.code == 1
    assert "rerank_weight found no reranker; add one with the option rerank" in done.err


def test_the_rank_correlation_is_spearmans() -> None:
    first, second = np.array([1, 2, 2, 5, 4], np.float32), np.array([10, 20, 30, 40, 40], np.float32)
    # ranks 1, 2.5, 2.5, 5, 4 and 1, 2, 3, 4.5, 4.5
    assert rank_correlation(first, second) == pytest.approx(9.0 / np.sqrt(9.5 * 9.5))
    assert rank_correlation(first, -first) == pytest.approx(-1.0)


def test_logits_are_compared_by_their_order_and_their_scores() -> None:
    exact, found = np.array([0, 2, 4], np.float32), np.array([0, 4, 2], np.float32)
    expected = {
        "pairs": 3,
        "rank_correlation": 0.5,
        "score_difference_mean": 0.067478,
        "score_difference_max": 0.101217,
    }
    assert compare_logits(exact, found) == expected


def test_the_accuracy_is_measured_on_queries_from_everywhere_each_with_the_texts_that_follow() -> None:
    count = 2 * HELD_OUT_QUERIES + 1
    pairs = _held_out([f"t{number} a coat" for number in range(count)])
    assert [query.split()[0] for query, _ in pairs] == [f"t{2 * number}" for number in range(HELD_OUT_QUERIES)]
    followed = [[text.split()[0] for text in texts] for _, texts in pairs]
    expected = [[(2 * number + other) % count for other in range(HELD_OUT_TEXTS)] for number in range(HELD_OUT_QUERIES)]
    assert followed == [[f"t{place}" for place in places] for places in expected]


def test_the_pairs_of_reference_have_short_and_long_queries(tiny_source: Source) -> None:
    pairs, texts = reference_pairs(tiny_source), reference_texts(tiny_source)
    assert [text for _, text in pairs] == texts * 4
    assert [query for query, _ in pairs[:: len(texts)]] == [*texts[:3], texts[-1]]
