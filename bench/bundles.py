"""Bundles of measured texts, kept between runs for as long as the code that made them stays the same."""

import csv
import shutil
from pathlib import Path

from bench.models import is_current, made_from
from bench.texts import Texts


def make_bundle(work: Path, texts: Texts) -> Path:
    """Return the bundle of these texts in `work`, exported unless today's code exported it before."""
    name = f"{texts.file_name}-{len(texts.texts)}"
    bundle, mark = work / name, work / f"{name}.made-from.txt"
    if not is_current(mark):
        from export.cli import main

        shutil.rmtree(bundle, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        corpus = work / f"{name}.csv"
        with corpus.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["text"])
            writer.writerows([text] for text in texts.texts)
        if main(["--corpus", str(corpus), "--out", str(bundle)]) != 0:
            raise SystemExit("the export failed")
        mark.write_text(made_from(), encoding="utf-8")
    return bundle
