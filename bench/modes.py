"""How well each mode of search ranks SciFact's and CISI's documents.

K1 and B are Lucene's defaults. The texts are documents with their titles. "titles twice" leaves the titles to
--title-column; only SciFact has some. In other cases each query has one letter of a word changed, or an accent on its
first e, or misspelled words are not corrected. The last figure is the share of correct words that are corrected: the
most frequent words of all other texts that headlines lack.
"""

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from string import ascii_lowercase

import numpy as np
from safetensors.numpy import save_file

from bench.report import Missing, console, make_provenance, report
from bench.texts import (
    CISI,
    SCIFACT,
    SEED,
    TOP_K,
    Retrieval,
    add_data_argument,
    ndcg,
    read_headlines,
    read_papers,
    read_scifact,
)
from semsearch.engine.bundle import KEYWORDS, MODEL, RRF, BundleError, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.hits import Hit
from semsearch.engine.hybrid import fuse
from semsearch.engine.keyword.keywords import Keywords
from semsearch.engine.quantization import Embeddings, quantize
from semsearch.engine.semantic.index import Index
from semsearch.indexing.keywords import KeywordOptions, keyword_tensors
from semsearch.indexing.vectors.embed import embed_texts

WORD = re.compile("[A-Za-z]{4,}")  # a word that is misspelled
CORRECT_WORD = re.compile(r"(?<![\w\\$])[a-z]{4,}(?![\w}$])")  # no name, and no part of a formula in LaTeX
HEADLINES, CORRECT_WORDS = 30_000, 1_000
NOT_CORRECTED = "not corrected"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="the bundle whose model is measured")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    tests = {name: read_scifact(options.data, name) for name in (SCIFACT, CISI)}
    try:
        manifest = read_manifest(options.bundle)
    except BundleError as error:
        raise Missing(str(error)) from error
    embedder, model = Embedder.open(options.bundle, manifest.model), manifest.files[MODEL].sha256[:12]
    others = (*(paper["abstract"] for paper in read_papers(options.data)), *tests[SCIFACT].documents.values())
    others = (*others, *tests[CISI].documents.values())
    found = [rank(options.work / Path(name).name, embedder, model, test) for name, test in tests.items()]
    headlines = make_keywords(
        options.work / KEYWORDS, read_headlines(options.data, HEADLINES), KeywordOptions(), None, embedder
    )
    corrected = corrected_share(headlines, others)
    rows = [(name, *(f"{each[name]:.4f}" if name in each else "" for each in found)) for name in found[0]]
    share = f"correct words that are corrected, of {CORRECT_WORDS:,} that headlines lack"
    rows.append((share, f"{corrected:.1%}", ""))
    results = dict(zip(("results", "cisi"), found, strict=True)) | {"corrected": corrected}
    columns = ("search", "SciFact nDCG@10", "CISI nDCG@10")
    report("modes", columns, rows, results, make_provenance("SciFact and CISI"))
    return 0


def corrected_share(keywords: Keywords, texts: Iterable[str]) -> float:
    """Return the share of the CORRECT_WORDS most frequent words of texts that are corrected, of those with no match."""
    counts = Counter(word for text in texts for word in set(CORRECT_WORD.findall(text)))
    unmatched = (word for word, _ in counts.most_common() if not keywords.match(word, correct=False).terms)
    lacking = list(islice(unmatched, CORRECT_WORDS))
    return sum(bool(keywords.match(word).corrected) for word in lacking) / len(lacking)


def rank(folder: Path, embedder: Embedder, model: str, test: Retrieval) -> dict[str, float]:
    """Return the nDCG@10 of each search, without those by title if the documents have none."""
    folder.mkdir(parents=True, exist_ok=True)
    texts, queries = list(test.documents.values()), list(test.queries.values())
    titles = list(test.titles.values()) or [""] * len(texts)
    content = sha256("\0".join(texts).encode()).hexdigest()[:12]
    index = Index(*quantize(embed_once(folder / f"{model}-{content}.npy", embedder, texts)))
    choose, stems = random.Random(SEED), KeywordOptions()
    misspelled = [misspell(query, choose) for query in queries]
    accented = [re.sub("e", "\u00e9", query, count=1) for query in queries]
    bodies = [text.removeprefix(title) for text, title in zip(texts, titles, strict=True)]
    default = f"{stems.stemming} stems"
    cases: list[tuple[str, list[str], KeywordOptions, list[str] | None, list[str]]]
    cases = [(default, texts, stems, None, queries)]
    cases += [("no stems", texts, replace(stems, stemming=None), None, queries)]
    cases += [("titles twice", bodies, stems, titles, queries)] if any(titles) else []
    cases += [("a letter changed", texts, stems, None, misspelled), ("an accent added", texts, stems, None, accented)]
    cases += [(NOT_CORRECTED, texts, stems, None, queries)]
    cases += [(f"a letter changed, {NOT_CORRECTED}", texts, stems, None, misspelled)]
    found: dict[str, list[list[Hit]]] = {}
    for name, documents, keyword_options, own_titles, asked in cases:
        keywords = make_keywords(folder / KEYWORDS, documents, keyword_options, own_titles, embedder)
        correct = NOT_CORRECTED not in name
        embeddings, matches = embed_texts(embedder, asked), [keywords.match(query, correct=correct) for query in asked]
        if not found:
            found["semantic"] = [index.search(embedding, TOP_K) for embedding in embeddings]
        found[f"keyword, {name}"] = [match.best(TOP_K) for match in matches]
        by_ranks = {"hybrid by ranks": replace(keywords.info, fusion=RRF)} if name == default else {}
        for fusion, info in {"hybrid": keywords.info, **by_ranks}.items():
            hits = [fuse(index, *pair, info, TOP_K).hits() for pair in zip(embeddings, matches, strict=True)]
            found[f"{fusion}, {name}"] = hits
    return {name: round(ndcg([[hit.row for hit in own] for own in hits], test), 4) for name, hits in found.items()}


def misspell(text: str, choose: random.Random) -> str:
    """Replace one letter of a word by another; words of three letters or fewer stay."""
    letters, places = list(text), [match.span() for match in WORD.finditer(text)]
    for begin, end in choose.sample(places, min(1, len(places))):
        place = choose.randrange(begin, end)
        letters[place] = choose.choice(ascii_lowercase.replace(letters[place].lower(), ""))
    return "".join(letters)


def embed_once(path: Path, embedder: Embedder, texts: list[str]) -> Embeddings:
    """Return the embeddings of the documents, (n, dim) float32, from the file if they were embedded before."""
    if not path.exists():
        console.print(f"embedding {len(texts):,} documents ...")
        np.save(path, embed_texts(embedder, texts))
    embeddings: Embeddings = np.load(path)
    return embeddings


def make_keywords(
    path: Path,
    texts: list[str],
    options: KeywordOptions,
    titles: list[str] | None = None,
    embedder: Embedder | None = None,
) -> Keywords:
    """Write the postings of the texts and open them. The embedder's tokenizer tells correct words from others."""
    tensors, info = keyword_tensors(texts, options, titles)
    assert info is not None
    save_file(tensors, path)
    return Keywords(path, info, len(texts), list if embedder is None else embedder.split_word)
