"""Bundles of 10,000 to a million real passages: headlines, titles of papers, and the sentences of their abstracts.

Where these are too few, the rest is mixed: the first half of one headline and the second half of another. The largest
bundle is exported, the others hold its first rows. Exporting a million takes about an hour, so all are kept until the
code that makes bundles changes.
"""

import csv
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from bench.report import PROJECT, Missing, console
from bench.texts import read_headlines, read_papers
from bench.work import is_current, made_from

LOT = ("--column", "lot=number")
LOTS = 10_000  # each passage has one of these lots, so that a filter can keep any share of the corpus
LEAST_CHARACTERS = 20  # shorter sentences are mostly the ends of formulas
END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
SEED = 7
# Runs the command of its arguments and prints what it took. The kernel counts the memory of the process that starts a
# program as that program's own, so this small process starts it.
MEASURE = """
import json, os, subprocess, sys, time
begin = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=sys.stderr)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps({
    "seconds": time.perf_counter() - begin,
    "processor_seconds": usage.ru_utime + usage.ru_stime,
    "peak_megabytes": usage.ru_maxrss / 1024,
}))
sys.exit(process.returncode != 0)
"""


def make_bundles(work: Path, data: Path, sizes: Sequence[int], keep: bool) -> tuple[dict[int, Path], str]:
    """Return the bundle of each size, made in `work` unless today's code made it before, and what their passages are.

    With `keep`, a bundle that is there is used even if other code made it. Beside each, BUNDLE.export.json has the
    seconds, the processor's seconds and the peak megabytes of its export.
    """
    largest = max(sizes)
    bundles = {size: work / f"passages-{size}" for size in sizes}
    described = work / f"passages-{largest}.description.txt"
    for size in sorted(sizes, reverse=True):
        bundle, mark = bundles[size], work / f"passages-{size}.made-from.txt"
        if (bundle / "manifest.json").exists() and (keep or is_current(mark)):
            continue
        corpus = work / f"passages-{size}.csv"
        console.print(f"making the bundle of {size:,} passages ...")
        shutil.rmtree(bundle, ignore_errors=True)
        command: list[str | Path] = [sys.executable, "-m", "semsearch", "index", corpus, *LOT, "--out", bundle]
        if size == largest:
            described.write_text(write_corpus(corpus, data, size), encoding="utf-8")
        else:
            write_first_rows(work / f"passages-{largest}.csv", corpus, size)
            command += ["--update", bundles[largest]]
        bundle.with_name(f"{bundle.name}.export.json").write_text(json.dumps(run_measured(command)), encoding="utf-8")
        mark.write_text(made_from(), encoding="utf-8")
    if not described.exists():
        raise Missing(f"{described}: there is no such file; run this without --keep, so that the corpus is written")
    return bundles, described.read_text(encoding="utf-8")


def run_measured(command: Sequence[str | Path]) -> dict[str, float]:
    """Run a command in the project's folder and return what it took. Raises SystemExit if its exit code is not 0."""
    starter = [sys.executable, "-c", MEASURE, *map(str, command)]
    done = subprocess.run(starter, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: the command failed; its error is above")
    spent: dict[str, float] = json.loads(done.stdout)
    return spent


def write_first_rows(corpus: Path, path: Path, count: int) -> None:
    """Write the first rows of a CSV, and its header, as a CSV of their own."""
    with corpus.open(newline="", encoding="utf-8") as source, path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(islice(csv.reader(source), count + 1))


def write_corpus(path: Path, data: Path, count: int) -> str:
    """Write a CSV of `count` passages with the columns text, source and lot; return what they are, in words."""
    passages = read_passages(data)
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
    real = f"{count - missing:,} headlines, titles and sentences of abstracts"
    return real + (f", and {missing:,} mixed of two headlines each" if missing else "")


def read_passages(data: Path) -> dict[str, str]:
    """Return all different real passages with their sources: first each headline, then each title and sentence."""
    passages = dict.fromkeys(read_headlines(data), "headline")
    papers = list(read_papers(data))
    for paper in papers:
        passages.setdefault(paper["title"], "title")
    for paper in papers:
        for sentence in END_OF_SENTENCE.split(paper["abstract"]):
            if len(sentence) >= LEAST_CHARACTERS:
                passages.setdefault(sentence, "sentence")
    return passages


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
