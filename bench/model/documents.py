"""How well passages of documents rank, beside pieces of 1,000 characters, and how fast they are read.

The documents are abstracts, alone or put together to 2,000 words, and count as found at their best passage.
"""

import argparse
import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from bench.model.modes import embed_once, make_keywords
from bench.report import make_provenance, report
from bench.texts import CISI, SCIFACT, TOP_K, Retrieval, add_data_argument, ndcg, read_scifact
from export.corpus.embedded import heading_prefix
from export.corpus.folder import find_files
from export.documents import Splitter
from export.documents.addresses import GITHUB
from export.documents.document import Block, Document, Heading, Part
from export.documents.passages import divide
from export.documents.reading import FORMATS
from export.documents.splitter import PASSAGE_TOKENS
from export.index.embed import embed_texts
from export.index.keywords import KeywordOptions
from function.engine.bundle import TOKENIZER, read_manifest
from function.engine.embedder import Embedder
from function.engine.hybrid import fuse
from function.engine.quantization import quantize
from function.engine.semantic.index import Index
from function.engine.tokenizer import read_tokenizer

WRITES: tuple[str, ...] = ("documents", "formats")
MEASURES: tuple[str, ...] = ("export.model.export_model", "requirements.txt")

LONG = 2_000  # words of a document of several abstracts
NAIVE, OVERLAP = 1_000, 200  # characters of a piece
DEPTH = 500  # passages in which the documents of a query are looked for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--bundle", type=Path, default=Path("bundle"), help="the bundle whose model is measured")
    parser.add_argument("--passage-tokens", type=int, default=PASSAGE_TOKENS, help="tokens of a passage")
    parser.add_argument(
        "--folder", type=Path, default=Path("docs"), help="documents to measure the speed of reading on"
    )


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    formats: dict[str, list[Path]] = {}
    for path in find_files(options.folder)[0]:
        if path.suffix.lower() in FORMATS:
            formats.setdefault(FORMATS[path.suffix.lower()][0], []).append(path)
    measured = []
    for format, files in formats.items():
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            measured.append(process.submit(read, options.bundle, format, files).result())
    columns: Sequence[str] = ("format", "files", "passages", "passages/s", "peak MB")
    report("formats", columns, measured, {"results": measured}, make_provenance(f"documents of {options.folder}"))
    embedder = Embedder.open(options.bundle, read_manifest(options.bundle).model)
    splitter = make_splitter(options.bundle, options.passage_tokens)
    rows = []
    for name, words in ((SCIFACT, 0), (SCIFACT, LONG), (CISI, 0), (CISI, LONG)):
        test = read_scifact(options.data, name)
        groups = group(test, words)
        for method, texts in make_texts(test, groups, splitter):
            found = rank(options.work / "documents", embedder, test, groups, texts)
            rows.append((Path(name).name, len(groups), method, len(texts), *(f"{value:.4f}" for value in found)))
    columns = ("set", "documents", "texts", "number", "semantic nDCG@10", "hybrid nDCG@10")
    report("documents", columns, rows, {"results": rows}, make_provenance("SciFact and CISI, ranked by document"))
    return 0


def group(test: Retrieval, words: int) -> list[list[str]]:
    """Return the ids of the abstracts in each document: in their order, until a document has that many words."""
    groups: list[list[str]] = []
    length = words
    for id, text in test.documents.items():
        if length >= words:
            groups.append([])
            length = 0
        groups[-1].append(id)
        length += len(text.split())
    return groups


def make_texts(
    test: Retrieval, groups: list[list[str]], splitter: Splitter
) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield each way to make texts of documents, and its texts with the numbers of their documents."""
    whole = ["\n\n".join(test.documents[id] for id in ids) for ids in groups]
    yield "whole, truncated", list(enumerate(whole))
    ends = [max(len(text) - OVERLAP, 1) for text in whole]
    starts = [(number, at) for number, end in enumerate(ends) for at in range(0, end, NAIVE - OVERLAP)]
    yield "pieces of 1,000 characters", [(number, whole[number][at : at + NAIVE]) for number, at in starts]
    passages = [(number, each) for number, ids in enumerate(groups) for each in divide(sections(test, ids), splitter)]
    yield "passages without headings", [(number, each.text) for number, each in passages]
    prefixes = (heading_prefix({"headings": each.headings}) for _, each in passages)
    yield "passages", [(number, prefix + each.text) for prefix, (number, each) in zip(prefixes, passages, strict=True)]


def sections(test: Retrieval, ids: list[str]) -> Document:
    """Return abstracts as a document: each is a section under its title, or a paragraph if it has none."""
    text, blocks = "", list[Heading | Block]()
    for id in ids:
        middle, end = len(text) + len(test.titles[id]), len(text) + len(test.documents[id])
        blocks += [Heading(len(text), middle, 1, test.titles[id], "")] if test.titles[id] else []
        blocks += [Block(middle + bool(test.titles[id]), end)] if middle < end else []
        text += test.documents[id] + "\n\n"
    return Document("", [Part(text, blocks)])


def rank(
    work: Path, embedder: Embedder, test: Retrieval, groups: list[list[str]], texts: list[tuple[int, str]]
) -> list[float]:
    """Return the nDCG@10 of semantic and of hybrid search, each document at its best text."""
    work.mkdir(parents=True, exist_ok=True)
    numbers, content = zip(*texts, strict=True)
    name = hashlib.sha256("\0".join(content).encode()).hexdigest()[:12]
    index = Index(*quantize(embed_once(work / f"{name}.npy", embedder, list(content))))
    stored = Retrieval(dict(zip(map(str, range(len(content))), content, strict=True)), {}, {})
    keywords = make_keywords(work / "keywords.safetensors", stored, KeywordOptions().stemming)
    place = {id: str(number) for number, ids in enumerate(groups) for id in ids}
    relevant = {query: {place[id] for id in ids} for query, ids in test.relevant.items()}
    queries = list(zip(embed_texts(embedder, list(test.queries.values())), test.queries.values(), strict=True))
    hits = [[index.search(query, DEPTH) for query, _ in queries]]
    hits.append([fuse(index, query, keywords.match(text), keywords.info, DEPTH) for query, text in queries])
    grouped = [[list(dict.fromkeys(numbers[hit.row] for hit in own))[:TOP_K] for own in mode] for mode in hits]
    joined = Retrieval({str(number): "" for number in range(len(groups))}, test.queries, relevant)
    return [ndcg(mode, joined) for mode in grouped]


def read(bundle: Path, format: str, files: list[Path]) -> tuple[object, ...]:
    """Return the row of a format; run it in a process of its own, because it reports the peak memory of the process."""
    splitter = make_splitter(bundle)
    begin = time.process_time()
    passages = sum(sum(1 for _ in divide(FORMATS[each.suffix.lower()][1](each, GITHUB), splitter)) for each in files)
    speed = passages / (time.process_time() - begin)
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert peak is not None
    return format, len(files), passages, f"{speed:,.0f}", f"{int(peak[1]) / 1000:.0f}"


def make_splitter(bundle: Path, passage_tokens: int = PASSAGE_TOKENS) -> Splitter:
    """Return a splitter with the tokenizer of a bundle."""
    return Splitter(read_tokenizer(bundle / TOKENIZER), read_manifest(bundle).model, passage_tokens, 0)
