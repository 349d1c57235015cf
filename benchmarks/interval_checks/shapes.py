"""Do intervals fit where predictions are low or high, and where intervals are short or long?

Ten tables of one half of `benchmarks.accuracy`: the first by name with numbers as target and at
least 90 tasks. A learner is calibrated on the training tasks of three splits; new tasks show 0, 1
or 5 points. `ours` is the coverage of 90 % intervals of all query points, `peer` lists it by fifth
of the predictions, from low to high, and by tercile of the widths, from short to long; groups are
made within each number of points. Goal: 88 to 93 % of all, and no group below 84 %.
"""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.accuracy.data import PROBLEMS
from benchmarks.accuracy.halves import half
from benchmarks.accuracy.problem import split
from benchmarks.accuracy.registry import NUMBERS
from benchmarks.common import row

POINTS, SPLITS, FEWEST_TASKS, TABLES = (0, 1, 5), 3, 90, 10
HALF = "validation"
LEARNERS = cm.ConditionalRidge, cm.AutoRegressor
OVERALL, LEAST = (88.0, 93.0), 84.0


def chosen(which: str = HALF) -> list[str]:
    """Return the names of ten tables of a half."""
    large = [name for name, t in NUMBERS.items() if t.train + t.test >= FEWEST_TASKS]
    return sorted(name for name in large if half(name) == which)[:TABLES]


def main() -> list[dict]:
    """Measure every table with every learner."""
    return [judge(name, make) for name in chosen() for make in LEARNERS]


def judge(name: str, make) -> dict:
    """Return the row of one table and learner."""
    sizes = tuple(n for n in POINTS if n <= PROBLEMS[name].sizes[-1])
    problem = PROBLEMS[name]._replace(sizes=sizes)
    found = [measured(make(), *split(problem, seed)) for seed in range(SPLITS)]
    inside, fifth, third = np.concatenate(found, axis=1)
    overall = 100 * inside.mean()
    fifths = [100 * inside[fifth == group].mean() for group in range(5)]
    thirds = [100 * inside[third == group].mean() for group in range(3)]
    met = OVERALL[0] <= overall <= OVERALL[1] and min(fifths + thirds) >= LEAST
    verdict = {
        "ratio": f"worst {min(fifths + thirds):.1f} %", "goal": f">= {LEAST:g} %", "met": bool(met)
    }  # fmt: skip
    groups = ["/".join(f"{value:.0f}" for value in each) for each in (fifths, thirds)]
    what = f"{name}, {make.__name__}"
    return row(what, f"{overall:.1f} %", " and ".join(groups), verdict, f"{len(inside)} rows")


def measured(learner, train, supports, query) -> np.ndarray:
    """Return whether labels lie inside, the fifth and the tercile of each row, (3, N sizes)."""
    calibrated = cm.calibrate(learner, train, shots=POINTS)
    y, parts = query.restore_order(query.y), []
    for support in supports:
        models = calibrated.adapt(support)
        predicted = models.predict(query)
        low, high = models.predict_interval(query)
        inside = (low <= y) & (y <= high)
        parts.append([inside, _groups(predicted, 5), _groups(high - low, 3)])
    return np.concatenate(parts, axis=1)


def _groups(values: np.ndarray, count: int) -> np.ndarray:
    """Return the quantile group of each value, ties in any order, (N,)."""
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return rank * count // len(values)
