"""Do the intervals of `calibrate` contain 90 % of the labels of new tasks?

Synthetic: 300 tasks for the calibration and 300 new ones, 26 points each. This is repeated five
times, because the guarantee is about the mean over draws of both. Real data: every task is held out
once, in five folds. The coverage is averaged over tasks. `goal` is 90 % within 2 percentage points
plus two standard errors over the tasks. `ratio` is the coverage.

Then, on ten tables of the validation half of `benchmarks.accuracy` (three splits, 0, 1 and 5
points): `ours` is the coverage of all rows, `peer` that by fifth of the predictions, from low to
high, and by tercile of the widths, from short to long. Goal: 88 to 93 % of all, and no group below
84 %. Last, the coverage of intervals of few calibration tasks, for several kinds of tasks.
"""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.accuracy.data import lenk
from benchmarks.common import row
from benchmarks.interval_checks import few_tasks, shapes
from condmeta.feature_maps import CircleMap, MeanInput
from condmeta.text import pluralize

SHOTS = (0, 1, 5, 20)
DRAWS = 5  # of calibration and fresh tasks
QUERY = 4  # points that a task must have left to be judged by
QUICK = {"metric": "diagonal", "noise": "shared"}
MAPS = {
    "one-cluster": MeanInput(),
    "two-clusters-mean-4": MeanInput(),
    "two-clusters-mean-0": MeanInput(),
    "circle": CircleMap(),
}
REAL = {"Lenk": lenk, "Schools": cm.datasets.load_schools}


def main() -> list[dict]:
    """Measure the coverage on every environment and data set that is there."""
    rows = []
    for name, feature_map in MAPS.items():
        environment = cm.environments.paper_environment(name, n=26)
        pairs = [[environment.sample(300, 2 * i + j) for j in (0, 1)] for i in range(DRAWS)]
        for learner in (cm.ConditionalRidge(feature_map, **QUICK), cm.PooledRegressor()):
            rows += judge(name, learner, pairs)
    for name, load in REAL.items():
        tasks = load()
        parts = np.array_split(np.random.default_rng(0).permutation(len(tasks)), 5)
        rest = [np.setdiff1d(np.arange(len(tasks)), part) for part in parts]
        pairs = [(tasks.subset(a), tasks.subset(b)) for a, b in zip(rest, parts, strict=True)]
        for learner in (cm.ConditionalRidge(**QUICK), cm.PooledRegressor()):
            rows += judge(name, learner, pairs)
    return rows + shapes.main() + few_tasks.main()


def judge(name: str, learner, pairs) -> list[dict]:
    """Return a row for each number of points."""
    held: dict[int, list] = {m: [] for m in SHOTS}
    for train, test in pairs:
        calibrated = cm.calibrate(learner, train, shots=SHOTS)
        for m in SHOTS:
            judged = test.subset(np.flatnonzero(test.sizes >= m + QUERY))
            if len(judged):
                held[m].append(covered(calibrated, judged, m))
    rows = []
    for m, parts in held.items():
        if not parts:
            continue
        by_task, width = np.hstack(parts)
        coverage = by_task.mean()
        slack = 0.02 + 2 * by_task.std() / np.sqrt(len(by_task))
        verdict = {
            "ratio": f"{100 * coverage:.1f} %",
            "goal": f"90 % +- {100 * slack:.1f}",
            "met": bool(abs(coverage - 0.9) <= slack),
        }
        what = f"{name}, {type(learner).__name__}, {pluralize(m, 'point')}"
        rows.append(row(what, f"width {width.mean():.3g}", "", verdict, f"{len(by_task)} tasks"))
    return rows


def covered(calibrated, tasks, m: int) -> np.ndarray:
    """Return the share of labels held and the mean width of each task, (2, T)."""
    support, query = tasks.split_points(m, "random", 0)
    task = np.repeat(np.arange(len(query)), query.sizes)
    low, high = calibrated.adapt(support).predict_interval(query.X, task=query.ids[task])
    values = (low <= query.y) & (query.y <= high), high - low
    return np.array([np.bincount(task, value, len(query)) / query.sizes for value in values])
