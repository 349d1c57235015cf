"""A model of all tasks under the linear heads: the heads learn what it leaves over.

A base f(x, s), any regressor of the row's features and its task's side columns, catches what the
tasks share and no linear head can. The residuals that the learner sees must come from fits that
did not see the task, or nothing would be left of them to learn from.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from condmeta.errors import DataError
from condmeta.estimators.boosted import BoostedTrees
from condmeta.feature_maps import ComposedMap
from condmeta.tasks import TaskSet

FOLDS = 5


class Base(NamedTuple):
    """A fitted base: its regressor, what encodes side rows (or None), and the mean coordinates."""

    regressor: Any
    encoder: ComposedMap | None
    fill: np.ndarray

    def sides(self, ids, table) -> np.ndarray:
        """Return the side coordinates (T, k) of tasks; those without a side row have the mean."""
        if self.encoder is None:
            return np.empty((len(ids), 0))
        has = np.zeros(len(ids), bool) if table is None else table.has(ids)
        rows = np.flatnonzero(has)
        given = table.align(self.encoder.columns_).take(ids[rows]) if len(rows) else None
        return self.encoder.transform(len(ids), table=given, rows=rows, fill=self.fill)

    def predict(self, X, sides) -> np.ndarray:
        """Return f(x, s) of rows X (N, d) with the side coordinates of their tasks (N, k)."""
        return self.regressor.predict(np.hstack([X, sides]))


class SharedBase(NamedTuple):
    """A base that was fitted already, with what it predicted for tasks unseen."""

    base: Base
    unseen: np.ndarray


def fit_base(base, tasks: TaskSet) -> tuple[Base, np.ndarray]:
    """Fit a base to all tasks; return also what it predicts for each task without having seen it.

    `base` is "boosting" or a scikit-learn regressor. Tasks are left out in 5 folds, every fifth
    task in turn, or one by one if they are fewer.
    """
    regressor = _make(base)
    encoder, fill, Phi = None, np.zeros(0), np.empty((len(tasks), 0))
    if tasks.side is not None:
        present = tasks.side.has(tasks.ids) & (tasks.sizes > 0)
        if present.any():
            encoder = ComposedMap("auto").fit(tasks.side.take(tasks.ids[present]))
            unfilled = Base(None, encoder, np.zeros(encoder.n_features_out))
            fill = unfilled.sides(tasks.ids[present], tasks.side).mean(axis=0)
            Phi = Base(None, encoder, fill).sides(tasks.ids, tasks.side)
    task = np.repeat(np.arange(len(tasks)), tasks.sizes)
    rank = np.cumsum(tasks.sizes > 0) - 1
    if rank[-1] < 1:
        raise DataError("A base needs two tasks or more with points: one is left out in turn.")
    Z, fold = np.hstack([tasks.X, Phi[task]]), rank[task] % min(FOLDS, rank[-1] + 1)
    unseen = np.empty(len(Z))
    for f in np.unique(fold):
        model = _fitted(regressor, Z, tasks, fold != f)
        unseen[fold == f] = model.predict(Z[fold == f])
    fitted = _fitted(regressor, Z, tasks, slice(None))
    if isinstance(base, str):
        fitted = BoostedTrees.of(fitted)
    return Base(fitted, encoder, fill), unseen


def _fitted(regressor, Z, tasks: TaskSet, rows):
    if tasks.weight is None:
        return clone(regressor).fit(Z[rows], tasks.y[rows])
    if not has_fit_parameter(regressor, "sample_weight"):
        raise DataError(
            f"The base {type(regressor).__name__} takes no sample_weight: use base='boosting' or "
            "another regressor that does, or leave sample_weight out."
        )
    return clone(regressor).fit(Z[rows], tasks.y[rows], sample_weight=tasks.weight[rows])


def _make(base):
    if isinstance(base, str) and base == "boosting":
        from sklearn.ensemble import HistGradientBoostingRegressor  # slow to import

        return HistGradientBoostingRegressor(random_state=0)
    if hasattr(base, "fit") and hasattr(base, "predict") and not isinstance(base, type):
        return copy.deepcopy(base)
    raise DataError(
        "The 'base' parameter must be None, 'boosting' or a scikit-learn regressor. "
        f"Got {base!r} instead."
    )
