"""The picture of `scale`: how the time of a search and of a start grows with the corpus, on logarithmic axes."""

import statistics

import matplotlib as mpl

from bench.folders import RESULTS
from bench.page_cache import DROPPED, WARM
from bench.scale_contest import TARGETS
from bench.scale_tables import NAMES, Sizes
from bench.searches import SEMANTIC, STAGES

mpl.use("Agg")

from matplotlib import pyplot as plt  # after the backend was chosen


def draw(seen: Sizes) -> None:
    """Write scale.svg to bench/results/: the same picture from the same numbers."""
    plt.rcParams["svg.hashsalt"] = "scale"
    figure, (searches, starts) = plt.subplots(1, 2, figsize=(13, 5))
    searches.set_prop_cycle(color=plt.get_cmap("tab20").colors)
    lines: dict[str, dict[int, float]] = {}
    for size, figures in seen.items():
        for name, found in figures["searches"].items():
            if "recall" in found and not name.endswith(f" {TARGETS[-1]}"):  # neither a filter's nor a peer's slower one
                label = f"{NAMES[SEMANTIC]}, narrower" if name.startswith(STAGES) else NAMES.get(name, name.split()[0])
                lines.setdefault(label, {})[size] = found["p50"]
    for label, milliseconds in lines.items():
        style = {"color": "black", "linewidth": 2.5} if label == NAMES[SEMANTIC] else {"linewidth": 1}
        searches.plot(list(milliseconds), list(milliseconds.values()), marker="o", markersize=3, label=label, **style)
    searches.set_ylabel("milliseconds of a search, median, one thread")
    searches.set_yscale("log")
    searches.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    for cache in (WARM, DROPPED):
        found = {size: figures["starts"][cache] for size, figures in seen.items() if cache in figures.get("starts", {})}
        for what, words in (("init", "INIT"), ("first_response", "first response")):
            medians = [statistics.median(one[what]) for one in found.values()]
            starts.plot(list(found), medians, marker="o", markersize=3, label=f"{words}, page cache {cache}")
    starts.set_ylabel("milliseconds of a cold start, median")
    starts.set_ylim(bottom=0)
    starts.legend(frameon=False, fontsize=7, loc="lower right")
    for axes in (searches, starts):
        axes.set_xscale("log")
        axes.set_xlabel("passages")
        axes.grid(visible=True, which="both", linewidth=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(RESULTS / "scale.svg", metadata={"Date": None})
    plt.close(figure)
