"""The floors of indexes of few texts: how many have one, what it loses, and what it keeps out.

The texts are random sections of this documentation that answer questions of judged/docs.jsonl, and random products of
judged/products.jsonl, with the questions of judged/shop.jsonl. No floor is made with these questions, but the
condition for few questions was chosen on other random indexes of the same texts.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from bench import PROJECT, WORK
from bench.relevance import NEITHER, SEARCHED, best_of_each, read_kinds
from bench.rewritings import JUDGED
from bench.tables import make_provenance, report
from bench.work import make_once
from semsearch import Search, index
from semsearch.indexing.corpus.corpus import heading_prefix
from semsearch.indexing.vectors.floor import LEAST_SURE, find_floor, read_fields
from semsearch.indexing.vectors.recall import sample_spans

KINDS = ("own", "everyday", "near")  # questions that the texts answer, others, and others of the same set
INDEXES = {10: 12, 30: 6, 100: 3}  # how many indexes are made, by their number of texts


@dataclass(frozen=True, slots=True)
class Judged:
    """Texts by what a question names, such as a section, and questions with the names that answer them."""

    texts: Mapping[str, Sequence[str]]
    relevant: Mapping[str, set[str]]


@dataclass(slots=True)
class Counts:
    """How many indexes have a floor, and how many questions of each kind are below it."""

    floors: int = 0
    below: Counter[str] = field(default_factory=Counter)


def few(*, work: Path = WORK) -> None:
    """How many indexes of few texts have a floor, and what it loses and keeps out.

    A cell has two figures: with the least share of 90 % alone, and as `semsearch index` finds floors.
    """
    everyday = read_kinds()[NEITHER]
    rows = []
    for name, judged in {"docs": read_docs(work), "shop": read_shop()}.items():
        for size, count in INDEXES.items():
            asked, before, after = Counter[str](), defaultdict[str, Counts](Counts), defaultdict[str, Counts](Counts)
            for seed in range(count):
                texts, questions = choose(judged, size, random.Random(seed))
                questions["everyday"] = everyday
                asked.update({kind: len(each) for kind, each in questions.items()})
                index([{"text": text} for text in texts], work / "few", mode="replace")
                for mode in SEARCHED:
                    count_below(work / "few", mode, texts, questions, {0.0: before[mode], LEAST_SURE: after[mode]})
            for mode in SEARCHED:
                pair = (before[mode], after[mode])
                cells = [f"{', '.join(str(each.floors) for each in pair)} of {count}"]
                cells += [f"{', '.join(str(each.below[kind]) for each in pair)} of {asked[kind]}" for kind in KINDS]
                rows.append((mode, name, size, *cells))
    rows.sort(key=lambda row: SEARCHED.index(row[0]))
    columns = ("mode", "index", "texts", "with a floor", "own lost", "others without result", "near ones without")
    report("few", columns, rows, {}, make_provenance("sections of docs/ and products of a shop"))


def read_docs(work: Path) -> Judged:
    """Return the passages of this documentation by their section, as they are embedded, and its questions."""
    bundle = make_once(work / "docs", lambda bundle: index(PROJECT / "docs", bundle, mode="replace"))
    sections = defaultdict[str, list[str]](list)
    for hit in Search(bundle).texts():
        sections[hit.id.rpartition(":")[0]].append(heading_prefix({"headings": hit.metadata["headings"]}) + hit.text)
    return Judged(sections, read_questions("docs"))


def read_shop() -> Judged:
    """Return the products of the shop by their id, and its questions."""
    products = map(json.loads, (JUDGED / "products.jsonl").read_text(encoding="utf-8").splitlines())
    return Judged({product["id"]: [product["text"]] for product in products}, read_questions("shop"))


def read_questions(name: str) -> dict[str, set[str]]:
    """Return the questions of a file of `judged/`, and what answers each."""
    lines = map(json.loads, (JUDGED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return {line["query"]: set(line["relevant"]) for line in lines}


def choose(judged: Judged, size: int, source: random.Random) -> tuple[list[str], dict[str, Sequence[str]]]:
    """Return random texts that answer questions, the questions that they answer (own), and the others (near)."""
    names = sorted(set[str]().union(*judged.relevant.values()))
    source.shuffle(names)
    texts, chosen = list[str](), set[str]()
    for name in names:
        if len(texts) < size:
            texts += judged.texts[name]
            chosen.add(name)
    if len(texts) < size:  # other texts answer none of the questions
        others = [text for name, each in judged.texts.items() if name not in chosen for text in each]
        texts += source.sample(others, size - len(texts))
    own, near = list[str](), list[str]()
    for question, relevant in judged.relevant.items():
        (near if chosen.isdisjoint(relevant) else own).append(question)
    return texts[:size], {"own": own, "near": near}


def count_below(
    bundle: Path,
    mode: Literal["hybrid", "semantic", "keyword"],
    texts: Sequence[str],
    questions: Mapping[str, Sequence[str]],
    counts: Mapping[float, Counts],
) -> None:
    """Add to the counts of each least certain share what the floor that it allows keeps out."""
    search = Search(bundle)
    fields = read_fields()
    others = best_of_each(search, [question for each in fields for question in each], mode)
    spans = np.array(best_of_each(search, sample_spans(texts), mode))
    scores = {kind: best_of_each(search, each, mode) if each else [] for kind, each in questions.items()}
    for least_sure, counted in counts.items():
        floor = find_floor(spans, np.reshape(others, (len(fields), -1)), least_sure).score
        if floor is None:
            continue
        counted.floors += 1
        for kind, each in scores.items():
            counted.below[kind] += sum(score < floor for score in each)
