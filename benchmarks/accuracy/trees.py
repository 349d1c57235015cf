"""LightGBM with its rounds chosen on tasks left out, in two ways to use a task's own points.

`TunedTrees` fits f(x, s) and adds the shrunken mean residual of the support (`boosting.py`).
`TreesOnTaskMean` gives the shrunken mean of the support, and its size, to the trees as columns.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
from sklearn.model_selection import GroupKFold

from benchmarks.accuracy.boosting import BoostedMean, variance_ratio
from benchmarks.accuracy.design import Design, codes_of, slices
from condmeta.tasks import TaskSet

SETTINGS = {"learning_rate": 0.05, "num_threads": 1, "verbose": -1, "seed": 0}
MOST_ROUNDS, PATIENCE, FOLDS = 1000, 30, 5
DRAWS = 2  # supports drawn for every training row
SHOWN = (0, 1, 3, 5, 10)


def fit_rounds(lightgbm, objective: str, rows, y, codes):
    """Return a booster of all rows, and the predictions of rows by boosters without their task."""
    parameters = SETTINGS | {"objective": objective}
    folds = list(GroupKFold(min(FOLDS, codes.max() + 1)).split(rows, y, codes))
    found = lightgbm.cv(
        parameters, lightgbm.Dataset(rows, y), MOST_ROUNDS, folds=folds, return_cvbooster=True,
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )  # fmt: skip
    boosters = found["cvbooster"]
    out = np.empty(len(y))
    for booster, (_, left) in zip(boosters.boosters, folds, strict=True):
        out[left] = booster.predict(rows[left], num_iteration=boosters.best_iteration)
    whole = lightgbm.train(parameters, lightgbm.Dataset(rows, y), boosters.best_iteration)
    return whole, out


class TunedTrees(BoostedMean):
    """f(x, s) with squared ("l2") or absolute ("l1") loss, plus the shrunken mean residual."""

    package = "lightgbm"

    def __init__(self, objective: str):
        super().__init__()
        self.objective = objective

    def learn(self, rows, y, codes) -> None:
        """Choose the rounds, fit, and set the ratio by residuals of tasks left out."""
        self.model, out = fit_rounds(self.module, self.objective, rows, y, codes)
        self.ratio = variance_ratio(y - out, codes)

    def base(self, rows) -> np.ndarray:
        """Return f of rows (N, d+k)."""
        return self.model.predict(rows)


class TreesOnTaskMean:
    """f(x, s, m, n): m is the mean of n support labels, shrunken to that of all labels.

    A training row is used with supports of 0 to 10 other rows of its task. The objective "binary"
    returns probabilities.
    """

    def __init__(self, objective: str):
        self.module, self.objective = import_module("lightgbm"), objective

    def fit(self, train: TaskSet) -> None:
        """Draw the supports, choose the rounds, and fit."""
        self.design, codes = Design(train), codes_of(train)
        self.mean, self.ratio = train.y.mean(), variance_ratio(train.y, codes)
        rng = np.random.default_rng(0)
        drawn = [self._draw(train, rng) for _ in range(DRAWS)]
        rows = np.vstack([np.column_stack([self.design.both(train), each]) for each in drawn])
        y, codes = np.tile(train.y, DRAWS), np.tile(codes, DRAWS)
        self.model, _ = fit_rounds(self.module, self.objective, rows, y, codes)

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Predict the query points, (N,)."""
        total = np.bincount(codes_of(support), support.y - self.mean, minlength=len(support))
        columns = self._columns(total, support.sizes)[codes_of(query)]
        return self.model.predict(np.column_stack([self.design.both(query), columns]))

    def _columns(self, total, n) -> np.ndarray:
        return np.column_stack([self.mean + total / (n + self.ratio), n])

    def _draw(self, train: TaskSet, rng) -> np.ndarray:
        """Return (m, n) of a support drawn for every row, which the row itself is not in."""
        out = np.empty((len(train.y), 2))
        for rows in slices(train):
            y = train.y[rows] - self.mean
            order = rng.permutation(len(y))
            n = np.minimum(rng.choice(SHOWN, len(y)), len(y) - 1)
            # The n rows that follow in a circle of the task's rows.
            sums = np.concatenate([[0.0], np.cumsum(np.tile(y[order], 2))])
            at = np.arange(1, len(y) + 1)
            out[rows.start + order] = self._columns(sums[at + n] - sums[at], n)
        return out
