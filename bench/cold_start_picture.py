"""The picture of the cold starts: each function's median start as a bar of its phases."""

import statistics

import matplotlib as mpl
import numpy as np

from bench.candidates import EMPTY, EMPTY_IN_BASE
from bench.folders import RESULTS
from bench.starts import Starts

mpl.use("Agg")

from matplotlib import pyplot as plt  # after the backend was chosen

FIRST_REQUEST = "first request"


def draw(seen: dict[str, dict[str, Starts]]) -> None:
    """Write cold_start.svg to bench/results/: the same picture from the same numbers."""
    plt.rcParams["svg.hashsalt"] = "cold-start"
    labels, stacks = [], []
    for cache, by_name in seen.items():
        for name, starts in by_name.items():
            labels.append(f"{name}\npage cache {cache}")
            phases = starts.median_phases()
            init, first = statistics.median(starts.init), statistics.median(starts.first_response)
            has_parts = phases or name in (EMPTY, EMPTY_IN_BASE)
            rest = "interpreter and runtime" if has_parts else "INIT, phases unknown"
            stacks.append({rest: max(0.0, init - sum(phases.values())), **phases, FIRST_REQUEST: first - init})
    names = [*dict.fromkeys(phase for stack in stacks for phase in stack if phase != FIRST_REQUEST), FIRST_REQUEST]
    figure, axes = plt.subplots(figsize=(9, 0.7 * len(labels) + 1.6))
    left = np.zeros(len(labels))
    for number, name in enumerate(names):
        widths = np.array([stack.get(name, 0.0) for stack in stacks])
        axes.barh(labels, widths, left=left, label=name, color=plt.get_cmap("tab10")(number))
        left += widths
    for place, total in enumerate(left):
        axes.text(total, place, f" {total:,.0f} ms", va="center")
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds from sending the first event to its reply, median; logarithmic beyond 500")
    axes.set_xscale("symlog", linthresh=500, linscale=2)
    axes.set_xlim(0, left.max() * 2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=4, frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "cold_start.svg", metadata={"Date": None})
    plt.close(figure)
