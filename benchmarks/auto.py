"""AutoRegressor beside the best of its own candidates on new tasks, at every number of points.

Data sets and splits are those of `python -m benchmarks.accuracy --groups first`, 5 splits of each;
data sets that are not on this machine are left out. The table shows mean absolute errors at the
number of points where Auto is furthest behind its best candidate, which is known only afterwards.
Goal: at most 2 % plus 2 standard errors of the paired difference above it. Then pure-noise side
information (20 columns) against none, with 300 and 30 training tasks: 2 % plus 2 standard errors.
Last, side information in one cluster, where it cannot help, against none: 1 % plus 2 standard
errors.
"""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.accuracy.data import FIRST, PROBLEMS
from benchmarks.accuracy.ours import Learner
from benchmarks.accuracy.problem import split
from benchmarks.ridge import NEW, draw, error, verdict
from condmeta.errors import DataError
from condmeta.feature_maps import Identity, MeanInput
from condmeta.learners.inputs import inputs_of

SPLITS = 5
AUTO = "auto"


class Fitted(Learner):
    """A learner that is fitted already."""

    def __init__(self, model):
        self.model = model


def errors(problem, seed: int) -> dict[str, list[float]]:
    """Return the errors (sizes,) of Auto and of each candidate."""
    train, supports, query = split(problem, seed)
    auto = cm.AutoRegressor()
    chosen, candidates, _ = auto.compare(inputs_of(auto, train))
    return {
        name: [np.abs(Fitted(one).predict(each, query) - query.y).mean() for each in supports]
        for name, one in {AUTO: auto.with_choice(chosen), **candidates}.items()
    }


def beside_candidates(name: str) -> dict:
    """Compare Auto with its best candidate where it is most behind."""
    problem = PROBLEMS[name]
    splits = [errors(problem, seed) for seed in range(SPLITS)]
    # The transformed candidate is there only where it pays.
    names = [name for name in splits[0] if all(name in each for each in splits)]
    found = np.array([[each[name] for name in names] for each in splits])
    best = found[:, 1:].mean(axis=0).argmin(axis=0) + 1
    ours = found[:, 0]
    peer = np.stack([found[:, c, n] for n, c in enumerate(best)], axis=1)
    worst = int((ours.mean(axis=0) / peer.mean(axis=0)).argmax())
    what = f"{name}, {problem.sizes[worst]} points"
    return verdict(what, ours[:, worst], peer[:, worst], 2.0, "peer: best candidate")


def useless(train: int, noise: bool) -> dict:
    """Compare side information that cannot pay with none, in one cluster."""
    options = {"scale": "none", "fit_intercept": False, "base": None}
    ours, none = [], []
    for seed in range(SPLITS):
        data = draw("one-cluster", "gaussian", seed, train)
        plain = data
        if noise:
            table = cm.TaskTable(
                np.random.default_rng(seed).normal(size=(train + NEW, 20)),
                ids=np.concatenate([data[0].ids, data[1].ids]),
            )
            data = tuple(part.with_side(table) for part in data)
        feature_map = Identity() if noise else MeanInput()
        ours.append(error(cm.AutoRegressor(feature_map, **options), *data))
        none.append(error(cm.AutoRegressor(None, **options), *plain))
    what = f"{'noise' if noise else 'mean input'} as side information, one cluster, T = {train}"
    return verdict(what, np.array(ours), np.array(none), 2.0 if noise else 1.0, "peer: none")


def main() -> list[dict]:
    """Compare on every data set at hand, then with useless side information."""
    rows = []
    for name in FIRST:
        try:
            rows.append(beside_candidates(name))
        except (ImportError, DataError, OSError):
            continue
    return [*rows, useless(300, True), useless(30, True), useless(300, False)]
