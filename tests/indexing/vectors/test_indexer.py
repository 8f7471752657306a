"""Passages become an index, and a damaged model is not copied."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from semsearch.engine.bundle import INDEX, MANIFEST, PASSAGES
from semsearch.engine.keyword.analyzer import find_stemmer, split_terms
from semsearch.engine.quantization import dequantize, quantize
from semsearch.engine.semantic.index import EXHAUSTIVE_ROWS, Index
from semsearch.indexing.bundles import take_model
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.vectors.indexer import write_index
from semsearch.indexing.vectors.recall import QUERIES, sample_rows
from tests.bundle_files import write_passages
from tests.export_fixtures import clustered_rows
from tests.world import STORY_COLUMNS


def test_the_manifest_says_of_the_index_what_is_in_the_files(bundle: Path, corpus: Corpus) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text())
    terms = [set(split_terms(text, find_stemmer("english"))) for text in corpus.texts]
    assert manifest["index"] == {
        "rows": len(corpus.texts),
        "stages": None,
        "recall": {"queries": 200, "spans": 1, "rows": 1, "spans_first": 1, "rows_first": 1},
        "model_sha256": manifest["files"]["model.ort"]["sha256"],
        "tokenizer_sha256": manifest["files"]["tokenizer.txt"]["sha256"],
        "corpus": "stories.csv",
        "columns": STORY_COLUMNS,
        "keywords": {
            "terms": len(set().union(*terms)),
            "postings": sum(map(len, terms)),
            "stemming": "english",
            "k1": 1.2,
            "b": 0.75,
            "fusion": "convex",
            "fusion_weight": 0.6,
            "languages": [],
            "known_words": 0.9974,  # three words with accents are no tokens
            "synonyms": {},
        },
        "vectors": None,
        "untyped": [],
        "heading_prefix": False,
        "title": "",
        "description": "",
        "options": {},
        "boost": {},
        "floor": {},
        "embedded_by": ["cpu int8"],
        "other_suffixes": {},
    }
    assert manifest["files"].keys() == {path.name for path in bundle.iterdir()} - {"manifest.json"}


@pytest.mark.parametrize(("offset", "has_bits"), [(0.0, True), (0.3, False)])
def test_signs_are_stored_if_they_find_neighbours(bundle: Path, tmp_path: Path, offset: float, has_bits: bool) -> None:
    rows = EXHAUSTIVE_ROWS + 1_000
    codes, scales = quantize(clustered_rows(rows, offset))
    corpus = Corpus(["x"] * rows, ["x"] * rows, ["{}"] * rows)
    write_passages(tmp_path / PASSAGES, corpus.texts, corpus.ids, corpus.metadata)
    spans = sample_rows(codes, scales)
    written = write_index(tmp_path, take_model(bundle, tmp_path), corpus, (codes, scales), spans, "x.csv")
    manifest = written.manifest
    assert (manifest.corpus.stages is not None) == has_bits
    assert manifest.corpus.recall["queries"] == QUERIES
    assert (manifest.corpus.recall["rows"] == 1) == (not has_bits)
    assert ("bits" in load_file(tmp_path / INDEX)) == has_bits
    index, query = Index.open(tmp_path / INDEX, manifest.corpus.stages), dequantize(codes[:1], scales[:1])[0]
    query /= np.linalg.norm(query)
    scores = dequantize(codes, scales) @ query
    assert [hit.row for hit in index.search(query, 5)] == np.argsort(-scores, kind="stable")[:5].tolist()


def test_every_file_of_a_bundle_can_be_read_by_another_user(bundle: Path) -> None:
    assert [oct(path.stat().st_mode & 0o444) for path in bundle.iterdir()] == ["0o444"] * 7
