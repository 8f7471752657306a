"""The tables of `scale`: a column for each size of corpus, and a row for each search of each size."""

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from bench.page_cache import DROPPED, WARM
from bench.scale_contest import FILTERS
from bench.searches import EXACT, FORMER, HYBRID, KEYWORD, SCAN, SEMANTIC, STAGES
from bench.touched import READ_AHEAD, TOUCHED
from function.engine.bundle import COLUMNS, INDEX, KEYWORDS, PASSAGES

Table = tuple[list[str], list[tuple[str, ...]]]  # columns and rows
Sizes = Mapping[int, Mapping[str, Any]]  # what was seen of each size
NAMES = {
    SEMANTIC: "this project",
    EXACT: "this project, exact",
    FORMER: "signs of all rows, before there were lists",
    SCAN: "all rows in 8 bit, simsimd",
}


def sizes_table(seen: Sizes) -> Table:
    """Return the table with a column for each size."""
    lines: list[tuple[str, Callable[[Mapping[str, Any]], str]]] = [
        ("search p50, p99 ms, one thread", lambda size: _times(size, SEMANTIC)),
        ("recall@10, queries from the corpus", lambda size: f"{size['searches'][SEMANTIC]['recall']:.4f}"),
        ("recall@10, claims of SciFact", lambda size: f"{size['searches'][SEMANTIC]['recall_of_claims']:.4f}"),
        ("time on two threads / on one", lambda size: f"{size['searches'][SEMANTIC]['two_threads']:.2f}"),
        ("exact search p50, p99 ms", lambda size: _times(size, EXACT)),
        *(
            (f"a filter keeps {share:.4g} %: p50, p99 ms", lambda size, kind=kind: _times(size, kind))
            for share, kind in ((100 * share, kind) for share, kind in FILTERS.items())
        ),
        ("keyword p50, p99 ms", lambda size: _times(size, KEYWORD)),
        ("hybrid p50, p99 ms", lambda size: _times(size, HYBRID)),
        ("index, passages, keywords, columns on disk MB", _megabytes),
        ("resident MB after the searches (of mapped files)", _resident),
        ("INIT ms, page cache warm", lambda size: _median(size, WARM, "init")),
        ("INIT ms, page cache dropped", lambda size: _median(size, DROPPED, "init")),
        ("first response ms, page cache warm", lambda size: _median(size, WARM, "first_response")),
        ("first response ms, page cache dropped", lambda size: _median(size, DROPPED, "first_response")),
        ("INIT touches MB (chunks of 512 KiB)", lambda size: _touched(size, TOUCHED, "INIT")),
        ("INIT and first query touch MB (chunks)", lambda size: _touched(size, TOUCHED, "first query")),
        ("and read with this kernel's read-ahead MB (chunks)", lambda size: _touched(size, READ_AHEAD, "first query")),
        ("export (with --update but for the largest): seconds, peak MB, busy cores", _export),
    ]
    rows = [(label, *(_cell(figure, seen[size]) for size in seen)) for label, figure in lines]
    return ["passages", *(f"{size:,}" for size in seen)], [row for row in rows if any(row[1:])]


def peers_table(seen: Sizes) -> Table:
    """Return the table with a row for each way to search the whole of each size by meaning."""
    columns = ["passages", "search", "recall@10", "p50 ms", "p99 ms", "p50 / this project's", "two threads / one"]
    columns += ["built in s", "build MB", "file MB", "loaded in s", "resident MB", "import ms"]
    rows = []
    for size, figures in seen.items():
        for name, found in figures["searches"].items():
            if "recall" not in found:
                continue
            cells = [f"{size:,}", _search_name(name, found), f"{found['recall']:.4f}"]
            cells += [f"{found['p50']:.2f}", f"{found['p99']:.2f}", f"{found['times_ours']:.2f}"]
            cells += [f"{found['two_threads']:.2f}"]
            cells += [f"{found[key]:,.0f}" if key in found else "" for key in ("build_seconds", "build_megabytes")]
            cells += [f"{found['file_megabytes']:,.0f}" if "file_megabytes" in found else ""]
            cells += [f"{found['load_seconds']:.2f}", f"{found['resident_megabytes']:,.0f}"]
            cells += [f"{found['import_milliseconds']:.0f}" if "import_milliseconds" in found else ""]
            rows.append(tuple(cells))
    return columns, rows


def _search_name(name: str, found: Mapping[str, Any]) -> str:
    if name.startswith(STAGES):
        return f"{NAMES[SEMANTIC]}, narrower ({name.removeprefix(STAGES).replace(',', ', ')})"
    effort = ", ".join(map(str, found["effort"]))
    return NAMES.get(name, name.split()[0]) + (f" ({effort})" if effort else "")


def _cell(figure: Callable[[Mapping[str, Any]], str], size: Mapping[str, Any]) -> str:
    """Return a figure, empty if its part was not measured."""
    try:
        return figure(size)
    except KeyError:
        return ""


def _times(size: Mapping[str, Any], kind: str) -> str:
    found = size["searches"][kind]
    return f"{found['p50']:.2f}, {found['p99']:.2f}"


def _resident(size: Mapping[str, Any]) -> str:
    found = size["searches"][SEMANTIC]
    mapped = found["resident_megabytes"] - found["own_megabytes"]
    return f"{found['resident_megabytes']:,.0f} ({mapped:,.0f})"


def _export(size: Mapping[str, Any]) -> str:
    spent = size["export"]
    cores = spent["processor_seconds"] / spent["seconds"]
    return f"{spent['seconds']:,.0f}, {spent['peak_megabytes']:,.0f}, {cores:.2f}"


def _megabytes(size: Mapping[str, Any]) -> str:
    return ", ".join(f"{size['bytes'][name] / 1e6:,.1f}" for name in (INDEX, PASSAGES, KEYWORDS, COLUMNS))


def _median(size: Mapping[str, Any], cache: str, what: str) -> str:
    return f"{statistics.median(size['starts'][cache][what]):,.0f}"


def _touched(size: Mapping[str, Any], how: str, when: str) -> str:
    files = [size["touched"][SEMANTIC][how][when][name] for name in (INDEX, PASSAGES)]
    return f"{sum(file['megabytes'] for file in files):.1f} ({sum(file['chunks'] for file in files):.0f})"
