"""Cold starts with bundles of several sizes, in turn, with a warm page cache and with a dropped one."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.candidates import make_functions
from bench.cold_start import measure
from bench.page_cache import DROPPED, available_states
from bench.sample_event import sample_event


def start_in_turn(work: Path, bundles: Mapping[int, Path], starts: int) -> dict[int, dict[str, dict[str, Any]]]:
    """Return what was seen of the starts of this function with each bundle, by size and state of the page cache."""
    functions = make_functions(work, {str(size): bundle for size, bundle in bundles.items()})
    event = sample_event("/similar", {"text": "self driving cars navigation", "num_results": 5})
    seen: dict[int, dict[str, dict[str, Any]]] = {size: {} for size in bundles}
    for cache in available_states():
        for size, found in measure(functions, event, starts, cache == DROPPED).items():
            seen[int(size)][cache] = asdict(found)
    return seen
