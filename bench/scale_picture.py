"""The picture of `scale`: how the time of a search and of a start grows with the corpus, both axes logarithmic."""

import statistics

import matplotlib as mpl

from bench.folders import RESULTS
from bench.page_cache import DROPPED, WARM
from bench.scale_contest import TARGETS
from bench.scale_tables import NAMES, Sizes
from bench.searches import SEMANTIC

mpl.use("Agg")

from matplotlib import pyplot as plt  # after the backend was chosen


def draw(seen: Sizes) -> None:
    """Write scale.svg to bench/results/: the same picture from the same numbers."""
    plt.rcParams["svg.hashsalt"] = "scale"
    figure, (searches, starts) = plt.subplots(1, 2, figsize=(11, 5))
    names = dict.fromkeys(name for size in seen.values() for name in size["searches"])
    for name in names:
        found = {size: figures["searches"][name] for size, figures in seen.items() if name in figures["searches"]}
        if "recall" not in next(iter(found.values())) or name.endswith(f" {TARGETS[-1]}"):
            continue  # a filter's or a mode's search, or the slower of two settings of a peer
        style = {"color": "black", "linewidth": 2.5} if name == SEMANTIC else {"linewidth": 1}
        milliseconds = [one["p50"] for one in found.values()]
        searches.plot(
            list(found), milliseconds, marker="o", markersize=3, label=NAMES.get(name, name.split()[0]), **style
        )
    searches.set_ylabel("milliseconds of a search, median, one thread")
    for cache in (WARM, DROPPED):
        found = {size: figures["starts"][cache] for size, figures in seen.items() if cache in figures.get("starts", {})}
        for what, words in (("init", "INIT"), ("first_response", "first response")):
            medians = [statistics.median(one[what]) for one in found.values()]
            starts.plot(list(found), medians, marker="o", markersize=3, label=f"{words}, page cache {cache}")
    starts.set_ylabel("milliseconds of a cold start, median")
    for axes in (searches, starts):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("passages")
        axes.grid(visible=True, which="both", linewidth=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / "scale.svg", metadata={"Date": None})
    plt.close(figure)
