"""Do errors depend on the names of tasks and the order of rows? They carry no information.

    python -m benchmarks.accuracy.stability

The training tasks of a split are renamed and put into another order, and so are the rows of each
task, 50 times. New tasks, their support and their query points stay. The table shows by how much
the mean absolute error varies: standard deviation and worst distance from the median, in % of the
median.
"""

from __future__ import annotations

import argparse

import numpy as np

import condmeta as cm
from benchmarks.accuracy.data import PROBLEMS
from benchmarks.accuracy.design import slices
from benchmarks.accuracy.ours import Learner
from benchmarks.accuracy.problem import split
from benchmarks.accuracy.verdict_tables import table
from condmeta.tasks import TaskSet, TaskTable

DATA = (
    "flights-destination", "exam", "hsb82", "produc", "savings", "milk", "radon", "teachers",
    "sacramento", "rice-farms",
)  # fmt: skip
POINTS = 0, 1, 2, 5
LEARNERS = {"ridge": cm.ConditionalRidge, "auto": cm.AutoRegressor}
GOAL = 1.0, 3.0  # %: standard deviation, worst


def rearranged(tasks: TaskSet, rng: np.random.Generator) -> TaskSet:
    """Return the same tasks with other ids, in another order, rows in another order."""
    order = rng.permutation(len(tasks))
    rows = [rng.permutation(np.arange(each.start, each.stop)) for each in slices(tasks)]
    places = np.concatenate([rows[t] for t in order])
    offsets = np.concatenate([[0], np.cumsum(tasks.sizes[order])])
    ids = [f"task {number}" for number in rng.permutation(10**6)[: len(tasks)]]
    side = None
    if tasks.side is not None:
        side = TaskTable(tasks.side.take(tasks.ids[order]).data, ids=ids)
    return TaskSet(
        tasks.X[places], tasks.y[places], offsets, ids, side, feature_names=tasks.feature_names
    )


def errors(name: str, learner: str, draws: int) -> np.ndarray:
    """Return the errors of every rearrangement at every number of points, (draws, sizes)."""
    problem = PROBLEMS[name]._replace(sizes=POINTS)
    train, supports, query = split(problem, 0)
    found = []
    for seed in range(draws):
        model = Learner(LEARNERS[learner])
        model.fit(rearranged(train, np.random.default_rng(seed)))
        found.append([np.abs(model.predict(each, query) - query.y).mean() for each in supports])
    return np.array(found)


def spread(found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standard deviation and worst distance from the median, in % of it, (sizes,) each."""
    middle = np.median(found, axis=0)
    return 100 * found.std(axis=0) / middle, 100 * np.abs(found - middle).max(axis=0) / middle


def row(name: str, learner: str, found: np.ndarray) -> list[str]:
    """Return a row of the table: standard deviation / worst, at each number of points."""
    pairs = list(zip(*spread(found), strict=True))
    met = all(value <= most for pair in pairs for value, most in zip(pair, GOAL, strict=True))
    cells = [f"{std:.2f} / {worst:.2f}" for std, worst in pairs]
    return [name, LEARNERS[learner].__name__, *cells, "yes" if met else "no"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.stability", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", nargs="+", choices=PROBLEMS, default=DATA, metavar="NAME")
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--draws", type=int, default=50, help="rearrangements (default: 50)")
    given = parser.parse_args()
    rows = [
        row(name, learner, errors(name, learner, given.draws))
        for name in given.data
        for learner in given.learners
    ]
    head = ["data", "learner", *(f"n = {n}: sd / worst, %" for n in POINTS), "within 1 % / 3 %"]
    print(table([head, *rows]))


if __name__ == "__main__":
    main()
