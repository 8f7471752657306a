"""The picture of `serve`: requests a second by connections, a panel for each route and kind of text."""

import matplotlib as mpl

from bench.folders import RESULTS
from bench.load import Load

mpl.use("Agg")

from matplotlib import pyplot as plt  # after the backend was chosen
from matplotlib.ticker import FuncFormatter


def draw(seen: dict[str, dict[str, Load]]) -> None:
    """Write serve.svg to bench/results/. seen is by server, then by "route, kind, connections"."""
    plt.rcParams["svg.hashsalt"] = "serve"
    panels = list(dict.fromkeys(case.rpartition(", ")[0] for cases in seen.values() for case in cases))
    figure, grid = plt.subplots(1, len(panels), figsize=(3.2 * len(panels), 3.4), squeeze=False)
    for panel, axes in zip(panels, grid[0], strict=True):
        for name, cases in seen.items():
            points = {
                int(case.rpartition(", ")[2]): found.requests_per_second
                for case, found in cases.items()
                if case.rpartition(", ")[0] == panel
            }
            if points:
                axes.plot(list(points), list(points.values()), marker="o", markersize=3, label=name)
        axes.set_title(panel, fontsize=9)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda connections, place: f"{connections:,.0f}"))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("connections")
        axes.grid(visible=True, linewidth=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0][0].set_ylabel("requests a second")
    lines, names = grid[0][0].get_legend_handles_labels()
    figure.tight_layout()
    figure.legend(
        lines, names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(names), frameon=False, fontsize=9
    )
    figure.savefig(RESULTS / "serve.svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
