"""From 10,000 to a million passages: export, search, filters, keywords, cold starts, beside other libraries' indexes.

Every size has a bundle: the largest is exported, the others hold its first rows. The queries are passages of the
corpus, evenly spread, and claims of SciFact, which are not in it. All searches are made in turn, so that a machine
whose speed changes slows all of them alike.
"""

import argparse
from typing import Any

from bench.data import add_data_argument, read_scifact
from bench.nearest_peers import LIBRARIES
from bench.provenance import make_provenance
from bench.report import console, report, show
from bench.scale_bundles import make_bundles, read_export_figures, read_mixed, write_stored_rows
from bench.scale_contest import ROWS, search_in_turn
from bench.scale_starts import start_in_turn
from bench.scale_tables import peers_table, sizes_table
from bench.touched import touch_in_turn
from function.engine.bundle import read_manifest

WRITES: tuple[str, ...] = ("scale", "scale_peers")
MEASURES: tuple[str, ...] = ("function", "export", "deploy", "requirements.txt")
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
PARTS = ("search", "filters", "modes", "peers", "touched", "starts")


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a list with commas."""
    return sorted({int(word) for word in text.split(",")})


def words(text: str) -> list[str]:
    """Return the words of a list with commas."""
    return [word for word in text.split(",") if word]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--sizes", type=numbers, default=list(SIZES), help="passages of each bundle, with commas")
    parser.add_argument("--queries", type=int, default=600, help="passages of each corpus that are searched for")
    parser.add_argument("--starts", type=int, default=5, help="cold starts of each size")
    parser.add_argument("--peers", type=words, default=list(LIBRARIES), help=f"among {','.join(LIBRARIES)}")
    parser.add_argument("--keep", action="store_true", help="measure the bundles that are there, whatever made them")
    parser.add_argument(
        "--only", type=words, help=f"measure only these parts, among {','.join(PARTS)}, and write no result"
    )


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    work = options.work.absolute() / "scale"
    parts = options.only or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"--only: found {', '.join(sorted(unknown))}, expected some of {', '.join(PARTS)}")
    claims = list(read_scifact(options.data).queries.values())
    work.mkdir(parents=True, exist_ok=True)
    bundles = make_bundles(work, options.data, options.sizes, options.keep)
    largest = max(options.sizes)
    write_stored_rows(work / ROWS, bundles[largest])
    mixed = read_mixed(work, largest)
    seen: dict[int, dict[str, Any]] = {}
    for size, bundle in bundles.items():
        console.print(f"{size:,} passages")
        sizes_of_files = {name: file.bytes for name, file in read_manifest(bundle).files.items()}
        export = {"export": figures} if (figures := read_export_figures(work, size)) else {}
        seen[size] = export | {
            "bytes": sizes_of_files,
            "searches": search_in_turn(work, bundle, size, parts, claims, options),
        }
    if "touched" in parts:
        for size, touched in touch_in_turn(bundles).items():
            seen[size]["touched"] = touched
    if "starts" in parts:
        for size, starts in start_in_turn(options.work.absolute(), bundles, options.starts).items():
            seen[size]["starts"] = starts
    tables = {"scale": sizes_table(seen), "scale_peers": peers_table(seen)}
    if options.only:
        for columns, rows in tables.values():
            show(columns, rows)
        return 0
    source = make_provenance(describe(largest, mixed))
    details = {"scale": {"sizes": seen}, "scale_peers": {}}
    for name, (columns, rows) in tables.items():
        report(name, columns, rows, details[name], source)
    from bench.scale_picture import draw  # matplotlib is slow to import, and only this needs it

    draw(seen)
    return 0


def describe(largest: int, mixed: int) -> str:
    """Return what the passages are, in words."""
    text = f"{largest - mixed:,} headlines, titles and sentences of abstracts"
    return text + (f", and {mixed:,} mixed of two headlines each" if mixed else "")
