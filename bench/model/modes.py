"""How well semantic, keyword and hybrid search rank SciFact's documents, with the export's own defaults and without.

No parameter was chosen on SciFact: K1 and B are Lucene's defaults, the weight and the stems are the export's.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from bench.report import Missing, console, make_provenance, report
from bench.texts import TOP_K, Retrieval, add_data_argument, ndcg, read_scifact
from export.index.embed import embed_texts
from export.index.keywords import KeywordOptions, keyword_tensors
from function.engine.bundle import KEYWORDS, MODEL, RRF, BundleError, read_manifest
from function.engine.embedder import Embedder
from function.engine.hybrid import fuse
from function.engine.keyword.keywords import Keywords
from function.engine.quantization import Embeddings, quantize
from function.engine.semantic.index import Index

WRITES: tuple[str, ...] = ("modes",)
MEASURES: tuple[str, ...] = ("export.model.export_model", "requirements.txt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="the bundle whose model is measured")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    test = read_scifact(options.data)
    try:
        manifest = read_manifest(options.bundle)
    except BundleError as error:
        raise Missing(str(error)) from error
    embedder = Embedder.open(options.bundle, manifest.model)
    folder = options.work / "scifact"
    folder.mkdir(parents=True, exist_ok=True)
    documents = embed_once(folder / f"{manifest.files[MODEL].sha256[:12]}.npy", embedder, list(test.documents.values()))
    codes, scales = quantize(documents)
    index = Index(codes, scales)
    queries = list(zip(embed_texts(embedder, list(test.queries.values())), test.queries.values(), strict=True))
    found = {"semantic": ndcg([[hit.row for hit in index.search(query, TOP_K)] for query, _ in queries], test)}
    for stemming in (KeywordOptions().stemming, None):
        keywords = make_keywords(folder / KEYWORDS, test, stemming)
        matches = [(query, keywords.match(text)) for query, text in queries]
        stems = f"{stemming} stems" if stemming else "no stems"
        found[f"keyword, {stems}"] = ndcg([[hit.row for hit in match.best(TOP_K)] for _, match in matches], test)

        for name, info in (("hybrid", keywords.info), ("hybrid by ranks", replace(keywords.info, fusion=RRF))):
            hits = [fuse(index, query, match, info, TOP_K) for query, match in matches]
            found[f"{name}, {stems}"] = ndcg([[hit.row for hit in own] for own in hits], test)
    results = {name: round(value, 4) for name, value in found.items()}
    rows = [(name, f"{value:.4f}") for name, value in results.items()]
    source = make_provenance(f"SciFact: {len(documents):,} documents and {len(queries):,} queries")
    report("modes", ("search", "SciFact nDCG@10"), rows, {"results": results}, source)
    return 0


def embed_once(path: Path, embedder: Embedder, texts: list[str]) -> Embeddings:
    """Return the embeddings of the documents, (n, dim) float32, from the file if they were embedded before."""
    if not path.exists():
        console.print(f"embedding {len(texts):,} documents ...")
        np.save(path, embed_texts(embedder, texts))
    embeddings: Embeddings = np.load(path)
    return embeddings


def make_keywords(path: Path, test: Retrieval, stemming: str | None) -> Keywords:
    """Write the postings of the documents and open them."""
    tensors, info = keyword_tensors(list(test.documents.values()), KeywordOptions(stemming))
    assert info is not None
    save_file(tensors, path)
    return Keywords(path, info, len(test.documents))
