"""How well search ranks: the modes on two test sets, the measured floor, and passages beside whole documents.

In `modes`, K1 and B are Lucene's defaults, and the texts are documents with their titles. "titles twice" leaves the
titles to --title-column; only SciFact has some. In other cases each query has one letter of a word changed, or an
accent on its first e, or misspelled words are not corrected. The last figure is the share of correct words that are
corrected: the most frequent words of all other texts that headlines lack.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path
from string import ascii_lowercase
from typing import Literal

from safetensors.numpy import save_file

from bench import DATA, PROJECT, WORK
from bench.tables import make_provenance, report
from bench.work import (
    CISI,
    SCIFACT,
    SEED,
    SHIPPED,
    TOP_K,
    Retrieval,
    embed_once,
    make_bundle,
    make_models,
    make_once,
    ndcg,
    open_embedder,
    read_headlines,
    read_papers,
    read_scifact,
)
from semsearch import Search, index
from semsearch.engine.bundle import KEYWORDS, TOKENIZER, FloorInfo, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.hits import Hit
from semsearch.engine.hybrid import fuse
from semsearch.engine.keyword.keywords import Keywords
from semsearch.engine.quantization import quantize
from semsearch.engine.semantic.index import Index
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.corpus.corpus import heading_prefix
from semsearch.indexing.counting import KeywordText, count_terms
from semsearch.indexing.documents.document import Block, Document, DocumentPart, Heading
from semsearch.indexing.documents.passages import PASSAGE_TOKENS, Splitter, divide
from semsearch.indexing.keywords import KeywordOptions, keyword_tensors
from semsearch.indexing.vectors.embed import embed_texts

WORD = re.compile("[A-Za-z]{4,}")  # a word that is misspelled
CORRECT_WORD = re.compile(r"(?<![\w\\$])[a-z]{4,}(?![\w}$])")  # no name, and no part of a formula in LaTeX
HEADLINES, CORRECT_WORDS = 30_000, 1_000
NOT_CORRECTED = "not corrected"
QUESTIONS_OF = Path(__file__).with_name("floor.tsv")  # what answers a question, and the question
NEITHER = "neither"  # kind of the questions about everyday life
SEARCHED: tuple[Literal["hybrid", "semantic", "keyword"], ...] = ("hybrid", "semantic", "keyword")
ALLOWED = 0.9  # share of the other questions that should find nothing
WORDS = 2_000  # minimum words of a document that is joined from abstracts
PIECE, OVERLAP = 1_000, 200  # characters of a piece, and those that it shares with the next one
DEPTH = 500  # texts in which the documents of a query are looked for


def modes(*, work: Path = WORK, data: Path = DATA) -> None:
    """How well semantic, keyword and hybrid search rank the documents of SciFact and CISI."""
    tests = {name: read_scifact(data, name) for name in (SCIFACT, CISI)}
    others = [paper["abstract"] for paper in read_papers(data)]
    for test in tests.values():
        others += test.documents.values()
    model = make_models(work)[SHIPPED]
    embedder = open_embedder(model)
    found = [rank(work, model, embedder, test) for test in tests.values()]
    headlines = make_keywords(work / KEYWORDS, read_headlines(data, HEADLINES), KeywordOptions(), None, embedder)
    corrected = corrected_share(headlines, others)
    rows = [(name, *(f"{each[name]:.4f}" if name in each else "" for each in found)) for name in found[0]]
    share = f"correct words that are corrected, of {CORRECT_WORDS:,} that headlines lack"
    rows.append((share, f"{corrected:.1%}", ""))
    details = dict(zip(("results", "cisi"), found, strict=True)) | {"corrected": corrected}
    columns = ("search", "SciFact nDCG@10", "CISI nDCG@10")
    report("modes", columns, rows, details, make_provenance("SciFact and CISI"))


def corrected_share(keywords: Keywords, texts: Iterable[str]) -> float:
    """Return the share of the CORRECT_WORDS most frequent words of texts that are corrected, of those with no match."""
    counts = Counter(word for text in texts for word in set(CORRECT_WORD.findall(text)))
    unmatched = (word for word, _ in counts.most_common() if not keywords.match(word, correct=False).terms)
    lacking = list(islice(unmatched, CORRECT_WORDS))
    return sum(bool(keywords.match(word).corrected) for word in lacking) / len(lacking)


def rank(work: Path, model: Path, embedder: Embedder, test: Retrieval) -> dict[str, float]:
    """Return the nDCG@10 of each search, without those by title if the documents have none."""
    texts, queries = list(test.documents.values()), list(test.queries.values())
    titles = list(test.titles.values()) or [""] * len(texts)
    rows = Index(*quantize(embed_once(work, model, texts)))
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
        keywords = make_keywords(work / KEYWORDS, documents, keyword_options, own_titles, embedder)
        correct = NOT_CORRECTED not in name
        embeddings, matches = embed_texts(embedder, asked), [keywords.match(query, correct=correct) for query in asked]
        if not found:
            found["semantic"] = [rows.search(embedding, TOP_K) for embedding in embeddings]
        found[f"keyword, {name}"] = [match.best(TOP_K) for match in matches]
        pairs = zip(embeddings, matches, strict=True)
        found[f"hybrid, {name}"] = [fuse(rows, *pair, keywords.info, TOP_K).hits() for pair in pairs]
    return {name: round(ndcg([[hit.row for hit in own] for own in hits], test), 4) for name, hits in found.items()}


def misspell(text: str, choose: random.Random) -> str:
    """Replace one letter of a word by another; words of three letters or fewer stay."""
    letters, places = list(text), [match.span() for match in WORD.finditer(text)]
    for begin, end in choose.sample(places, min(1, len(places))):
        place = choose.randrange(begin, end)
        letters[place] = choose.choice(ascii_lowercase.replace(letters[place].lower(), ""))
    return "".join(letters)


def make_keywords(
    path: Path,
    texts: list[str],
    options: KeywordOptions,
    titles: list[str] | None = None,
    embedder: Embedder | None = None,
) -> Keywords:
    """Write the postings of the texts and open them. The embedder's tokenizer tells correct words from others."""
    columns = zip(texts, titles or repeat(""), repeat(options.stemming), strict=False)
    tensors, info = keyword_tensors(count_terms(KeywordText(*row) for row in columns), options)
    assert info is not None
    save_file(tensors, path)
    return Keywords(path, info, len(texts), list if embedder is None else embedder.split_word)


def floor(*, work: Path = WORK) -> None:
    """How well the measured floor of two indexes separates their own questions from those that neither answers.

    The indexes are of this documentation and of Python's. floor.tsv has 50 questions for each of them, and 50 that
    neither answers. They were written before any search was run.
    """
    questions = read_kinds()
    docs = make_once(work / "docs", lambda bundle: index(PROJECT / "docs", bundle, mode="replace"))
    rows = []
    for name, bundle in {"docs": docs, "python": make_bundle(work, None)}.items():
        search, floors = Search(bundle), read_manifest(bundle).corpus.floor
        for mode in SEARCHED:
            own, others = (best_of_each(search, questions[kind], mode) for kind in (name, NEITHER))
            rows.append((name, mode, *separation(floors[mode], own, others)))
    columns = ("index", "mode", "floor", "kept spans", "own lost", "others without result", "lost if 90 % had none")
    report("floor", columns, rows, {}, make_provenance(f"{len(questions[NEITHER])} questions of each kind"))


def read_kinds() -> dict[str, list[str]]:
    """Return the questions of floor.tsv by their kind: what answers them."""
    questions = defaultdict[str, list[str]](list)
    for line in QUESTIONS_OF.read_text(encoding="utf-8").splitlines():
        kind, question = line.split("\t")
        questions[kind].append(question)
    return questions


def best_of_each(
    search: Search, questions: Sequence[str], mode: Literal["hybrid", "semantic", "keyword"]
) -> list[float]:
    """Return the score of the best hit of each question, 0 without a hit."""
    replies = search.search_many(questions, mode=mode, top_k=1)
    return [max((hit.score or 0.0 for hit in hits), default=0.0) for hits in replies]


def separation(measured: FloorInfo, own: Sequence[float], others: Sequence[float]) -> tuple[str, ...]:
    """Return the cells of a row: the floor, what it keeps and loses, and what the best floor for these others loses."""
    best = sorted(others)[round(ALLOWED * len(others)) - 1]
    lost = f"{sum(score <= best for score in own)} of {len(own)}"
    kept = f"{measured.kept:.0%}"
    if measured.score is None:
        return ("none", kept, "", "", lost)
    own_lost = sum(score < measured.score for score in own)
    without = sum(score < measured.score for score in others)
    return (f"{measured.score:.2f}", kept, f"{own_lost} of {len(own)}", f"{without} of {len(others)}", lost)


def documents(*, work: Path = WORK, data: Path = DATA) -> None:
    """How well passages of long documents rank, beside truncated documents and pieces of 1,000 characters.

    A document is joined from abstracts, each a section under its title, and is as good as its best text.
    """
    models = make_models(work)
    tokenizer = read_tokenizer(models[SHIPPED].parent / TOKENIZER)
    splitter = Splitter(tokenizer, open_embedder(models[SHIPPED]).model, PASSAGE_TOKENS, 0)
    rows = []
    for name in (SCIFACT, CISI):
        test, joined = join(read_scifact(data, name), WORDS)
        for method, texts in make_texts(joined, splitter):
            found = rank_documents(work, models[SHIPPED], test, texts)
            rows.append((Path(name).name, len(joined), method, len(texts), *(f"{value:.4f}" for value in found)))
    columns = ("set", "documents", "texts", "number", "semantic nDCG@10", "hybrid nDCG@10")
    report("documents", columns, rows, {"results": rows}, make_provenance("SciFact and CISI, ranked by document"))


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
    pieces = [(n, at) for n, text in enumerate(whole) for at in range(0, max(len(text) - OVERLAP, 1), PIECE - OVERLAP)]
    yield "pieces of 1,000 characters", [(number, whole[number][at : at + PIECE]) for number, at in pieces]
    passages = [(number, each) for number, document in enumerate(documents) for each in divide(document, splitter)]
    yield "passages", [(number, heading_prefix({"headings": each.headings}) + each.text) for number, each in passages]


def rank_documents(work: Path, model: Path, test: Retrieval, texts: Sequence[tuple[int, str]]) -> tuple[float, float]:
    """Return the nDCG@10 of semantic and of hybrid search, each document at its best text."""
    contents = [text for _, text in texts]
    rows = Index(*quantize(embed_once(work, model, contents)))
    keywords = make_keywords(work / KEYWORDS, contents, KeywordOptions())
    semantic, hybrid = [], []
    for query, text in zip(embed_once(work, model, list(test.queries.values())), test.queries.values(), strict=True):
        semantic.append(documents_of(rows.search(query, DEPTH), texts))
        hybrid.append(documents_of(fuse(rows, query, keywords.match(text), keywords.info, DEPTH).hits(), texts))
    return ndcg(semantic, test), ndcg(hybrid, test)


def documents_of(hits: Sequence[Hit], texts: Sequence[tuple[int, str]]) -> list[int]:
    """Return the numbers of the first TOP_K documents that have a hit."""
    return list(dict.fromkeys(texts[hit.row][0] for hit in hits))[:TOP_K]
