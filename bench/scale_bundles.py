"""Bundles of 10,000 to a million passages: the largest is exported, the others hold its first rows.

Exporting a million takes about an hour, so all are kept until the code that makes bundles changes.
"""

import csv
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from bench.child import Spent, run_measured
from bench.models import is_current, made_from
from bench.needs import Missing
from bench.passages import write_corpus
from bench.report import console
from export.files.resume import PARTIAL
from function.engine.bundle import INDEX, open_bundle
from function.engine.quantization import Codes, Scales, dequantize
from function.engine.semantic.index import Index

LOT = ("--column", "lot=number")
ROWS_AT_ONCE = 65_536  # of float32 rows that are written: 100 MB at 384 dimensions
EMBEDDINGS, CODES, SCALES = "embeddings.npy", "codes.npy", "scales.npy"  # of stored rows


def make_bundles(work: Path, data: Path, sizes: Sequence[int], keep: bool) -> dict[int, Path]:
    """Return the bundle of each size, made in `work` unless today's code made it before.

    With `keep`, bundles that are there are taken whatever code made them. Beside each, `export.json` says what its
    export took, and beside the largest, `mixed.json` how many of its passages are mixed of others.
    Raises Missing if a bundle is to be made where an export has left pieces of one.
    """
    largest = max(sizes)
    bundles = {size: work / f"passages-{size}" for size in sizes}
    for size in sorted(sizes, reverse=True):
        bundle, mark = bundles[size], work / f"passages-{size}.made-from.txt"
        if (bundle / "manifest.json").exists() and (keep or is_current(mark)):
            continue
        corpus = work / f"passages-{size}.csv"
        if (unfinished := _find_unfinished(bundle)) is not None:
            again = f"python -m export --corpus {corpus} {' '.join(LOT)} --out {bundle}"
            raise Missing(
                f"{unfinished}: an export runs or was stopped; finish it (`{again}`) and use --keep, or delete it"
            )
        console.print(f"making the bundle of {size:,} passages ...")
        shutil.rmtree(bundle, ignore_errors=True)
        if size == largest:
            mixed = write_corpus(corpus, data, size)
            (work / f"passages-{size}.mixed.json").write_text(json.dumps(mixed), encoding="utf-8")
            spent = export_measured(corpus, bundle)
        else:
            write_first_rows(work / f"passages-{largest}.csv", corpus, size)
            spent = take_first_rows(bundles[largest], corpus, bundle)
        export_figures(work, size).write_text(json.dumps(asdict(spent)), encoding="utf-8")
        mark.write_text(made_from(), encoding="utf-8")
    return bundles


def _find_unfinished(bundle: Path) -> Path | None:
    """Return the folder of an export that runs or was stopped, None if there is none."""
    return bundle / PARTIAL if (bundle / PARTIAL).is_dir() else None


def export_measured(corpus: Path, bundle: Path) -> Spent:
    """Export a corpus as its users do, and return what that took."""
    return run_measured([sys.executable, "-m", "export", "--corpus", corpus, *LOT, "--out", bundle])


def export_figures(work: Path, size: int) -> Path:
    """Return the file with what the export of this many passages took."""
    return work / f"passages-{size}.export.json"


def read_export_figures(work: Path, size: int) -> dict[str, float] | None:
    """Return what the export of this many passages took (Spent), None if it was not measured."""
    path = export_figures(work, size)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def read_mixed(work: Path, size: int) -> int:
    """Return how many of the largest bundle's passages are mixed. Raises Missing if nothing says it."""
    path = work / f"passages-{size}.mixed.json"
    if not path.exists():
        raise Missing(f"{path}: there is no such file; run this without --keep, so that the corpus is written again")
    return int(path.read_text(encoding="utf-8"))


def write_first_rows(corpus: Path, path: Path, count: int) -> None:
    """Write the first rows of a CSV, and its header, as a CSV of their own."""
    with corpus.open(newline="", encoding="utf-8") as source, path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(islice(csv.reader(source), count + 1))


def take_first_rows(largest: Path, corpus: Path, bundle: Path) -> Spent:
    """Export a corpus whose texts are among the largest bundle's, with the embeddings of that; return what it took."""
    return run_measured(
        [sys.executable, "-m", "export", "--corpus", corpus, *LOT, "--update", largest, "--out", bundle]
    )


def stored_codes(bundle: Path) -> tuple[Codes, Scales]:
    """Return the rows of a bundle in the order of its corpus, codes (rows, dim) int8 and scales (rows,) float32."""
    described = open_bundle(bundle).index
    assert described is not None  # open_bundle checked it
    return Index.open(bundle / INDEX, described.stages).codes_of(np.arange(described.rows))


def write_stored_rows(folder: Path, bundle: Path) -> None:
    """Write the rows of a bundle in the order of its corpus, for other searches, unless the folder has them already.

    EMBEDDINGS is (rows, dim) float32, made of CODES (rows, dim) int8 and SCALES (rows,) float32.
    """
    made_of = (bundle / "manifest.json").read_text(encoding="utf-8")
    mark = folder / "made-of.json"
    if mark.exists() and mark.read_text(encoding="utf-8") == made_of:
        return
    console.print("writing the rows for other searches ...")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    codes, scales = stored_codes(bundle)
    np.save(folder / CODES, codes)
    np.save(folder / SCALES, scales)
    embeddings = np.lib.format.open_memmap(folder / EMBEDDINGS, "w+", np.float32, codes.shape)
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        embeddings[rows] = dequantize(codes[rows], scales[rows])
    embeddings.flush()
    mark.write_text(made_of, encoding="utf-8")
