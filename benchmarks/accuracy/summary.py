"""The table of README: every method on the tables that no learner was designed on.

    python -m benchmarks.accuracy.summary

A cell is a data set at one number of points of a new task. The distance of a method there is its
mean absolute error above that of the best method, in %. A method is within if the distance is at
most 1 % plus two standard errors of the difference. A method has no cell where a fit failed or
took longer than the limit. The time of a fit is the mean over data sets, of one thread.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.accuracy import store
from benchmarks.accuracy.cells import cells
from benchmarks.accuracy.data import GROUPS
from benchmarks.accuracy.methods import METHODS
from benchmarks.accuracy.store import Outcomes
from benchmarks.accuracy.verdict_tables import judge, table

REPORTED = "validation", "fresh"
HEAD = ["method", "within", "mean distance", "a tenth is above", "cells", "fit, s"]


def summary(outcomes: Outcomes, groups=REPORTED, field: str = "errors") -> str:
    """Return the table of the methods that predict numbers, the nearest to the best first."""
    found = list(cells(outcomes, groups, field))
    rows = []
    for method, about in METHODS.items():
        judged = [] if about.classes else judge(found, method)
        if judged:
            distance = np.array([each.percent for each in judged])
            within = 100 * np.mean([each.gap.within for each in judged])
            data = {each.cell.data for each in judged}
            fit = np.mean([np.mean(outcomes[name][method].fit) for name in data])
            rows.append((distance.mean(), [
                about.title, f"{within:.0f} %", f"{distance.mean():.1f} %",
                f"{np.quantile(distance, 0.9):.1f} %", str(len(judged)), f"{fit:.2g}",
            ]))  # fmt: skip
    return table([HEAD, *(row for _, row in sorted(rows))])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.summary")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=REPORTED)
    parser.add_argument(
        "--squared", action="store_true", help="root mean squared errors, not absolute ones"
    )
    given = parser.parse_args()
    field = "squared" if given.squared else "errors"
    print(summary(store.read(), given.groups, field))


if __name__ == "__main__":
    main()
