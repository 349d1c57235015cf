"""The picture of README: error on new airports against the number of flights seen.

    python -m benchmarks.accuracy.picture

30 airports are known, 60 are new, over 20 splits. Draws docs/images/flights.svg and prints its
numbers; ``--known 60`` shows that boosting catches up with the linear model when more airports are
known. It needs only `make setup`: the flights come with the library, and boosting, which also sees
the side columns, is scikit-learn's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import condmeta as cm
from benchmarks.accuracy.boosting import ScikitTrees
from benchmarks.accuracy.data import load
from benchmarks.accuracy.ours import Learner
from benchmarks.accuracy.problem import Problem
from benchmarks.accuracy.run import measure
from condmeta.display.plots.canvas import new_figure, prepare
from condmeta.display.plots.style import FIXED
from condmeta.plots import save_figure

OUT = Path(__file__).parents[2] / "docs" / "images"
SHOTS = (0, 1, 2, 3, 5, 7, 10, 15, 20)
METHODS = {  # name: how to make it, colour, line, marker
    "one model for all": (
        lambda: Learner(cm.PooledRegressor), *FIXED["pooled"],
    ),
    "its own flights only": (
        lambda: Learner(cm.IndependentRegressor), *FIXED["own data"],
    ),
    "boosting + mean residual": (ScikitTrees, "#009e73", (0, (3, 1, 1, 1)), "^"),
    "ConditionalRidge": (lambda: Learner(cm.ConditionalRidge), *FIXED["conditional"]),
    "AutoRegressor": (lambda: Learner(cm.AutoRegressor), *FIXED["auto"]),
}  # fmt: skip


def errors(splits: int, known: int) -> dict[str, np.ndarray]:
    """Return the mean absolute errors of each method, (splits, sizes)."""
    flights = Problem("", lambda _: load("load_flights"), known, 90 - known, SHOTS)
    return {
        name: np.array([measure(flights, make, seed)[0] for seed in range(splits)])
        for name, (make, *_) in METHODS.items()
    }


def draw(found: dict[str, np.ndarray]):
    """Draw the curves, with a band of one standard error; return the figure."""
    figure = new_figure(7.0, 3.6)
    ax = figure.subplots()
    prepare(ax)
    for name, (_, colour, line, marker) in METHODS.items():
        mean, error = mean_error(found[name])
        ax.plot(SHOTS, mean, color=colour, linestyle=line, marker=marker, markersize=5, label=name)
        ax.fill_between(SHOTS, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
    ax.set_yscale("log")
    ax.set_yticks([5, 10, 20, 50, 100], ["5", "10", "20", "50", "100"])
    ax.minorticks_off()
    ax.set_ylim(6, 110)
    ax.set_xlim(-0.4, 20.4)
    ax.set_xticks(range(0, 21, 5))
    ax.set_xlabel("flights to the new airport seen so far")
    ax.set_ylabel("error in minutes (log scale)")
    ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1.0, 0.9))
    return figure


def mean_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard error over splits."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def table(found: dict[str, np.ndarray]) -> str:
    """Return the numbers of the picture as a table of Markdown."""
    lines = ["| flights seen | " + " | ".join(map(str, SHOTS)) + " |"]
    lines.append("|---" * (1 + len(SHOTS)) + "|")
    for name, values in found.items():
        cells = (f"{m:.1f} ± {e:.1f}" for m, e in zip(*mean_error(values), strict=True))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.picture", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--splits", type=int, default=20, help="of the airports (default: 20)")
    parser.add_argument("--known", type=int, default=30, help="airports (default: 30)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of flights.svg")
    given = parser.parse_args()
    found = errors(given.splits, given.known)
    print(table(found))
    save_figure(draw(found), given.out / "flights", formats=["svg"])


if __name__ == "__main__":
    main()
