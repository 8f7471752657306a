"""Bundles of the measured texts, kept between runs for as long as the code that made them stays the same."""

import csv
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.report import PROJECT
from bench.texts import Texts


def made_from() -> str:
    """Return a digest of the code that makes models and indexes; what other code made is made again."""
    digest = hashlib.sha256()
    for path in sorted([*(PROJECT / "export").rglob("*.py"), *(PROJECT / "function" / "engine").rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current(mark: Path) -> bool:
    """Return whether today's code made the files that this mark belongs to."""
    return mark.exists() and mark.read_text(encoding="utf-8") == made_from()


def write_corpus(path: Path, texts: Sequence[str], lots: int = 0) -> Path:
    """Write a corpus with the column "text" and, with `lots`, a column "lot"; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "lot"] if lots else ["text"])
        writer.writerows([text, row % lots] if lots else [text] for row, text in enumerate(texts))
    return path


def make_bundle(work: Path, texts: Texts, lots: int = 0) -> Path:
    """Return the bundle of these texts in `work`, exported unless today's code exported it before.

    With `lots`, it has a column `lot` for filters, whose values are the numbers below `lots` in turn.
    """
    bundle = work / (f"{texts.file_name}-{len(texts.texts)}" + (f"-{lots}-lots" if lots else ""))
    mark = work / f"{bundle.name}.made-from.txt"
    if not is_current(mark):
        from export.cli import main

        shutil.rmtree(bundle, ignore_errors=True)
        corpus = write_corpus(bundle.with_name(f"{bundle.name}.csv"), texts.texts, lots)
        types = ["--column", "lot=number"] if lots else []
        if main(["--corpus", str(corpus), *types, "--out", str(bundle)]) != 0:
            raise SystemExit("the export failed")
        mark.write_text(made_from(), encoding="utf-8")
    return bundle
