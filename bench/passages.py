"""Up to a million real passages to search: headlines, titles of papers, and the sentences of their abstracts.

Where there are too few, the rest is mixed: the first half of one headline and the second half of another.
"""

import csv
import random
import re
from collections.abc import Iterator
from pathlib import Path

from bench.data import read_headlines, read_papers

LOTS = 10_000  # each passage is in one of so many lots, so that filters can keep any share of the corpus
LEAST_CHARACTERS = 20  # of a sentence; what is shorter is mostly a formula's end
END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
SEED = 7


def read_passages(data: Path) -> dict[str, str]:
    """Return all different real passages, in random order, and where each comes from: headline, title or sentence."""
    headlines = read_headlines(data)
    passages = dict.fromkeys(headlines, "headline")
    for paper in read_papers(data):
        passages.setdefault(paper["title"], "title")
        for sentence in END_OF_SENTENCE.split(paper["abstract"]):
            if len(sentence) >= LEAST_CHARACTERS:
                passages.setdefault(sentence, "sentence")
    shuffled = list(passages.items())
    random.Random(SEED).shuffle(shuffled)
    return dict(shuffled)


def mix_passages(headlines: list[str], taken: dict[str, str], count: int) -> Iterator[str]:
    """Yield `count` texts that are not taken: the first half of one headline and the second half of another."""
    chance = random.Random(SEED)
    mixed: set[str] = set()
    while len(mixed) < count:
        first, second = (headline.split() for headline in chance.sample(headlines, 2))
        text = " ".join(first[: len(first) // 2] + second[len(second) // 2 :])
        if text not in taken and text not in mixed:
            mixed.add(text)
            yield text


def write_corpus(path: Path, data: Path, count: int) -> int:
    """Write a CSV of `count` passages with the columns text, source and lot; return how many of them are mixed."""
    passages = dict(zip((real := read_passages(data)), real.values(), strict=True))
    rows = list(passages.items())[:count]
    missing = count - len(rows)
    if missing:
        headlines = [text for text, source in passages.items() if source == "headline"]
        rows += [(text, "mixed") for text in mix_passages(headlines, passages, missing)]
    chance = random.Random(SEED)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "source", "lot"])
        writer.writerows([text, source, chance.randrange(LOTS)] for text, source in rows)
    return missing
