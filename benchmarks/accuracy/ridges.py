"""The usual ridge regressions: one for all tasks, one per task, or one after the other."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold

from benchmarks.accuracy.design import Design, codes_of, slices
from condmeta.tasks import TaskSet

ALPHAS = np.logspace(-3, 3, 13)


class RidgePerTask:
    """RidgeCV on the support alone; the mean of all training labels where there is none."""

    def fit(self, train: TaskSet) -> None:
        """Learn the units of the columns."""
        self.design = Design(train)

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Predict the query points, (N,)."""
        X, y, new = (
            self.design.inputs(support), self.design.target(support), self.design.inputs(query),
        )  # fmt: skip
        out = np.zeros(len(new))
        for known, asked in zip(slices(support), slices(query), strict=True):
            n = known.stop - known.start
            if n == 1:  # nothing to leave out
                out[asked] = y[known]
            elif n > 1:
                out[asked] = RidgeCV(ALPHAS).fit(X[known], y[known]).predict(new[asked])
        return self.design.to_user(out)


class Pooled:
    """RidgeCV on inputs and side columns: one model, which no support point changes."""

    def fit(self, train: TaskSet) -> None:
        """Fit to all rows."""
        self.design = Design(train)
        rows, y = self.design.both(train), self.design.target(train)
        self.model = RidgeCV(ALPHAS).fit(rows, y)

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Predict the query points, (N,)."""
        return self.design.to_user(self.model.predict(self.design.both(query)))


class PooledThenPerTask:
    """RidgeCV on inputs, side columns and their products, then a ridge around it for every task.

    The second ridge's strength has the least error on halves of training tasks that were left out
    of the first.
    """

    def fit(self, train: TaskSet) -> None:
        """Fit the first ridge, and choose the strength of the second."""
        self.design = Design(train)
        F, y = self.design.fixed(train), self.design.target(train)
        self.pooled = RidgeCV(ALPHAS).fit(F, y)
        residual = np.empty(len(y))
        for known, left in GroupKFold(5).split(F, y, codes_of(train)):
            model = RidgeCV(ALPHAS).fit(F[known], y[known])
            residual[left] = y[left] - model.predict(F[left])
        self.alpha = self._strength(self.design.random(train), residual, slices(train))

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Predict the query points, (N,)."""
        design = self.design
        out = self.pooled.predict(design.fixed(query))
        if len(support.X):
            Z, new = design.random(support), design.random(query)
            residual = design.target(support) - self.pooled.predict(design.fixed(support))
            for known, asked in zip(slices(support), slices(query), strict=True):
                out[asked] += new[asked] @ ridge(Z[known], residual[known], self.alpha)
        return design.to_user(out)

    @staticmethod
    def _strength(Z, residual, tasks) -> float:
        rng = np.random.default_rng(0)
        errors = np.zeros(len(ALPHAS))
        for rows in tasks:
            order = rows.start + rng.permutation(rows.stop - rows.start)
            known, asked = np.array_split(order, 2)
            for i, alpha in enumerate(ALPHAS):
                w = ridge(Z[known], residual[known], alpha)
                errors[i] += np.abs(residual[asked] - Z[asked] @ w).sum()
        return float(ALPHAS[errors.argmin()])


def ridge(Z: np.ndarray, r: np.ndarray, alpha: float) -> np.ndarray:
    """Return the ridge solution around 0, in the smaller of its two forms."""
    n, d = Z.shape
    if n < d:
        return Z.T @ np.linalg.solve(Z @ Z.T + alpha * np.eye(n), r)
    return np.linalg.solve(Z.T @ Z + alpha * np.eye(d), Z.T @ r)
