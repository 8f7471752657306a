"""The plot of an evaluation: measures over fusion_weight, and the floor between scores of own and other questions."""

from typing import TYPE_CHECKING

import numpy as np

from semsearch.evaluation.measures import MEASURES, TITLES
from semsearch.evaluation.search import ModeResults, OpenBundle, Sweep
from semsearch.indexing.errors import require_packages
from semsearch.indexing.vectors.floor import BestScores, best_scores, leave_out_own, read_fields
from semsearch.search.executor import Executor
from semsearch.search.making import make_search

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SWEPT_MEASURES = ("recall@10", "ndcg@10", "mrr@10")
# the colours of Okabe and Ito, which people with any colour vision can tell apart; each line has its own marker too
COLOURS = ("#0072B2", "#D55E00", "#009E73")
OWN_COLOUR, OTHER_COLOUR = "#0072B2", "#E69F00"
LINE_MARKERS = ("o", "s", "^")
LINE_WIDTHS = (3.4, 2.2, 1.2)  # points; a wide line is visible below a narrow one with the same values
LEAST_RANGE = 0.2  # minimum range of the axis of the means, so that a difference of a hundredth looks small
GREY = "0.35"
PANEL_INCHES = (4.6, 3.8)  # two of them are as wide as a notebook
BINS = 25  # bars of the histogram of scores


def plot_evaluation(opened: OpenBundle, results: ModeResults, mode: str) -> "Drawing":
    """Return the figure; the second panel is about a mode. Raises PackagesError if matplotlib is missing."""
    require_packages("plot", "plot")
    from matplotlib import pyplot

    swept = results.sweeps.get("fusion")
    panels = 1 if swept is None else 2
    width, height = PANEL_INCHES
    with pyplot.style.context("default"):  # light, whatever the style of a notebook
        drawing, axes = pyplot.subplots(
            1, panels, figsize=(width * panels, height), squeeze=False, layout="constrained"
        )
        for panel in axes.flat:
            panel.spines[["top", "right"]].set_visible(False)
        if swept is not None and opened.loaded.keywords is not None:
            plot_weights(axes[0, 0], swept, opened.loaded.keywords.info.fusion_weight)
        plain, _, _ = mode.partition("+")
        own, others = own_and_other_scores(opened, [question.text for question in results.questions], plain)
        floor = opened.loaded.manifest.corpus.floor.get(plain)
        plot_scores(axes[0, -1], own, others, None if floor is None else floor.score, plain)
    pyplot.close(drawing)  # or a notebook would display it twice
    return drawing


def plot_weights(axes: "Axes", swept: Sweep, current: float) -> None:
    """Draw the mean of each measure over the weights of the meaning in a hybrid search."""
    order = np.argsort(swept.weights)
    weights = np.array(swept.weights)[order]
    means = swept.measures.mean(0)[order]
    for name, colour, marker, width in zip(SWEPT_MEASURES, COLOURS, LINE_MARKERS, LINE_WIDTHS, strict=True):
        values = means[:, MEASURES.index(name)]
        axes.plot(
            weights,
            values,
            color=colour,
            linewidth=width,
            marker=marker,
            markersize=3 + 1.5 * width,
            label=TITLES.get(name, name),
        )
    low, high = axes.get_ylim()
    middle = min((low + high) / 2, 1.02 - LEAST_RANGE / 2)
    axes.set_ylim(min(low, middle - LEAST_RANGE / 2), max(high, middle + LEAST_RANGE / 2))
    axes.axvline(current, color=GREY, linestyle="--", linewidth=1, label=f"weight of the index ({current:g})")
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("fusion_weight (0: words alone, 1: meaning alone)")
    axes.set_ylabel(f"mean of {len(swept.measures):,} questions (0 to 1)")
    axes.set_title("Measures of hybrid search")
    _put_legend_below(axes)


def plot_scores(axes: "Axes", own: BestScores, others: BestScores, floor: float | None, mode: str) -> None:
    """Draw how many of these and of other questions have which score of their best hit, and the floor."""
    top = max(own.max(), others.max(), floor or 0.0)
    bins = np.linspace(min(own.min(), others.min(), 0.0), top or 1.0, BINS + 1)
    for scores, colour, label, hatch in (
        (others, OTHER_COLOUR, f"{len(others):,} questions about other fields", "///"),
        (own, OWN_COLOUR, f"{len(own):,} questions of this evaluation", ""),
    ):
        share = np.full(len(scores), 100 / len(scores))
        axes.hist(
            scores,
            bins=bins.tolist(),
            weights=share,
            histtype="stepfilled",
            facecolor=(colour, 0.35),
            edgecolor=colour,
            linewidth=1.2,
            hatch=hatch,
            label=label,
        )
    title = f"Scores in the mode {mode}, which has no floor"
    if floor is not None:
        axes.axvline(floor, color="black", linestyle="--", linewidth=1.2, label=f"floor ({floor:.2f})")
        title = f"Scores in the mode {mode}, and the floor"
    axes.set_xlabel("score of the best hit of a question")
    axes.set_ylabel("share of the questions (%)")
    axes.set_title(title)
    _put_legend_below(axes)


def _put_legend_below(axes: "Axes") -> None:
    axes.legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)


def own_and_other_scores(opened: OpenBundle, texts: list[str], mode: str) -> tuple[BestScores, BestScores]:
    """Return the scores of the best hits of these questions, and of those about other fields, as the floor has them.

    Fields that the index itself is about are left out. The shapes are (texts,) and (other questions,).
    """
    bundle = opened.loaded
    search = make_search(bundle, Executor(bundle.embedder))
    fields = read_fields()
    others = best_scores(bundle, search, [question for field in fields for question in field], mode)
    return best_scores(bundle, search, texts, mode), leave_out_own(others.reshape(len(fields), -1)).ravel()
