"""How well passages of documents rank, beside pieces of 1,000 characters, and how fast each format is read."""

import argparse
import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from bench.modes import embed_once, make_keywords
from bench.report import make_provenance, report
from bench.texts import CISI, SCIFACT, TOP_K, Retrieval, add_data_argument, ndcg, read_scifact
from semsearch.engine.bundle import TOKENIZER, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.hybrid import fuse
from semsearch.engine.quantization import quantize
from semsearch.engine.semantic.index import Index
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.corpus.corpus import heading_prefix
from semsearch.indexing.corpus.folder import find_files
from semsearch.indexing.documents import Splitter
from semsearch.indexing.documents.document import Block, Document, DocumentPart, Heading
from semsearch.indexing.documents.passages import PASSAGE_TOKENS, divide
from semsearch.indexing.documents.reading import FORMATS
from semsearch.indexing.keywords import KeywordOptions
from semsearch.indexing.vectors.embed import embed_texts
from semsearch.walking import WalkRules

# each test with the minimum words of a document: one abstract, or several
SETS = ((SCIFACT, 1), (SCIFACT, 2_000), (CISI, 1), (CISI, 2_000))
NAIVE, OVERLAP = 1_000, 200  # characters of a piece, and those that it shares with the next one
DEPTH = 500  # texts in which the documents of a query are looked for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="the bundle whose model is measured")
    parser.add_argument("--passage-tokens", type=int, default=PASSAGE_TOKENS, help="tokens of a passage")
    parser.add_argument("--folder", type=Path, default=Path("docs"), help="documents for the speed of reading")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    model = read_manifest(options.bundle).model
    embedder = Embedder.open(options.bundle, model)
    splitter = Splitter(read_tokenizer(options.bundle / TOKENIZER), model, options.passage_tokens, 0)
    files, measured, rows = find_files(options.folder, WalkRules(options.folder))[0], [], []
    for format in dict.fromkeys(name for name, _ in FORMATS.values()):
        if own := [path for path in files if FORMATS.get(path.suffix.lower(), ("",))[0] == format]:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:  # its peak memory is that of one format
                measured.append((format, len(own), *process.submit(read, splitter, own).result()))
    names: Sequence[str] = ("format", "files", "passages", "passages/s", "peak MB")
    report("formats", names, measured, {"results": measured}, make_provenance(f"documents of {options.folder.name}"))
    for name, words in SETS:
        test, groups = join(read_scifact(options.data, name), words)
        for method, texts in make_texts(groups, splitter):
            found = rank(options.work, embedder, test, texts)
            rows.append((Path(name).name, len(groups), method, len(texts), *(f"{value:.4f}" for value in found)))
    names = ("set", "documents", "texts", "number", "semantic nDCG@10", "hybrid nDCG@10")
    report("documents", names, rows, {"results": rows}, make_provenance("SciFact and CISI, ranked by document"))
    return 0


def read(splitter: Splitter, paths: Sequence[Path]) -> tuple[int, int, int]:
    """Return the passages of documents, how many were read in a second of processor time, and the peak memory in MB."""
    begin = time.process_time()
    passages = sum(len(list(divide(FORMATS[path.suffix.lower()][1](path, "github"), splitter))) for path in paths)
    peak = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return passages, round(passages / (time.process_time() - begin)), int(peak[0]) // 1000


def join(test: Retrieval, words: int) -> tuple[Retrieval, list[Document]]:
    """Return a test of documents with at least `words` words, and the documents: a section for each abstract."""
    texts, blocks, place = [""], list[list[Heading | Block]]([[]]), {}
    for id, text in test.documents.items():
        if len(texts[-1].split()) >= words:
            texts.append("")
            blocks.append([])
        start, middle, end = (len(texts[-1]) + length for length in (0, len(test.titles[id]), len(text)))
        blocks[-1] += [Heading(start, middle, 1, test.titles[id], "")] if test.titles[id] else []
        blocks[-1] += [Block(middle, end)]
        texts[-1] += text + "\n\n"
        place[id] = str(len(texts) - 1)
    relevant = {query: {place[id] for id in ids} for query, ids in test.relevant.items()}
    documents = [Document("", [DocumentPart(*each)]) for each in zip(texts, blocks, strict=True)]
    return Retrieval(dict.fromkeys(place.values(), ""), test.queries, relevant), documents


def make_texts(documents: Sequence[Document], splitter: Splitter) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield each way to make texts of documents, and its texts with the numbers of their documents."""
    whole = ["".join(part.text for part in each.parts).strip() for each in documents]
    yield "whole, truncated", list(enumerate(whole))
    pieces = [(n, at) for n, text in enumerate(whole) for at in range(0, max(len(text) - OVERLAP, 1), NAIVE - OVERLAP)]
    yield "pieces of 1,000 characters", [(number, whole[number][at : at + NAIVE]) for number, at in pieces]
    passages = [(number, each) for number, document in enumerate(documents) for each in divide(document, splitter)]
    yield "passages without headings", [(number, each.text) for number, each in passages]
    yield "passages", [(number, heading_prefix({"headings": each.headings}) + each.text) for number, each in passages]


def rank(work: Path, embedder: Embedder, test: Retrieval, texts: Sequence[tuple[int, str]]) -> list[float]:
    """Return the nDCG@10 of semantic and of hybrid search, each document at its best text."""
    work.mkdir(parents=True, exist_ok=True)
    contents = [text for _, text in texts]
    name = hashlib.sha256("\0".join(contents).encode()).hexdigest()[:12]
    index = Index(*quantize(embed_once(work / f"documents-{name}.npy", embedder, contents)))
    keywords = make_keywords(work / "documents.safetensors", contents, KeywordOptions())
    queries = list(zip(embed_texts(embedder, list(test.queries.values())), test.queries.values(), strict=True))
    semantic = [index.search(query, DEPTH) for query, _ in queries]
    hybrid = [fuse(index, query, keywords.match(text), keywords.info, DEPTH).hits() for query, text in queries]
    best = (
        [list(dict.fromkeys(texts[hit.row][0] for hit in own))[:TOP_K] for own in each] for each in (semantic, hybrid)
    )
    return [ndcg(each, test) for each in best]
