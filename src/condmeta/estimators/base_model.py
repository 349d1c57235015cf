"""A model of all tasks under the linear heads: the heads learn what it leaves over.

A base f(x, s), any model of the row's features and its task's side columns, catches what the tasks
share and no linear head can. Of numbers the heads learn the residuals. Of two classes f is the log
odds of the second, and one more input of the heads. What the heads see in training must come from
fits that did not see the task, or nothing would be left of it to learn from.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from condmeta.errors import DataError
from condmeta.estimators.boosted import BoostedTrees
from condmeta.feature_maps import ComposedMap
from condmeta.tasks import TaskSet

FOLDS = 5
SUREST = 7.0  # log odds: forests say 0 and 1, and mean a thousandth


class Base(NamedTuple):
    """A fitted base: its model, what encodes side rows (or None), and the mean coordinates.

    `classes`: the model is of two classes, and f is the log odds of the second.
    """

    model: Any
    encoder: ComposedMap | None
    fill: np.ndarray
    classes: bool = False

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
        return _said(self.model, np.hstack([X, sides]), self.classes)


class SharedBase(NamedTuple):
    """A base that was fitted already, with what it predicted for tasks unseen."""

    base: Base
    unseen: np.ndarray


def heads_see(X, y, said, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels as the heads read them; a base says `said` (N,) of the rows."""
    if not classes:
        return X, y - said
    # Not an offset of the scores, whose weight is 1: trees are too sure of tasks that they have not
    # seen, which the learned prior of the weight makes up for.
    return np.column_stack([X, np.clip(said, -SUREST, SUREST)]), y


def fit_base(base, tasks: TaskSet, classes: bool = False) -> SharedBase:
    """Fit a base to all tasks, and to all but some in turn.

    `base` is "boosting" or a scikit-learn model; `classes`: the labels are -1 and +1, not numbers.
    Tasks are left out in 5 folds, every fifth task in turn, or one by one if they are fewer.
    """
    model = _make(base, classes)
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
        left_out = fold == f
        plus, minus = ((label * tasks.y[~left_out] > 0).sum() for label in (1, -1))
        if classes and min(plus, minus) < 2:  # of which few classifiers can learn
            unseen[left_out] = np.inf if plus > minus else -np.inf
        else:
            unseen[left_out] = _said(_fitted(model, Z, tasks, ~left_out), Z[left_out], classes)
    fitted = _fitted(model, Z, tasks, slice(None))
    if isinstance(base, str):
        fitted = BoostedTrees.of(fitted)
    return SharedBase(Base(fitted, encoder, fill, classes), unseen)


def _fitted(model, Z, tasks: TaskSet, rows):
    if tasks.weight is None:
        return clone(model).fit(Z[rows], tasks.y[rows])
    if not has_fit_parameter(model, "sample_weight"):
        raise DataError(
            f"The base {type(model).__name__} takes no sample_weight: use base='boosting' or "
            "another model that does, or leave sample_weight out."
        )
    return clone(model).fit(Z[rows], tasks.y[rows], sample_weight=tasks.weight[rows])


def _said(model, Z, classes: bool) -> np.ndarray:
    """Return what a fitted model says of rows Z (N, p): numbers, or log odds."""
    if not len(Z):  # which models of scikit-learn refuse
        return np.empty(0)
    if classes and not isinstance(model, BoostedTrees):  # which predict log odds
        return logit(model.predict_proba(Z)[:, 1])
    return model.predict(Z)


def _make(base, classes: bool):
    if isinstance(base, str) and base == "boosting":
        from sklearn import ensemble  # slow to import

        kind = "HistGradientBoosting" + ("Classifier" if classes else "Regressor")
        return getattr(ensemble, kind)(random_state=0)
    answers = "predict_proba" if classes else "predict"
    if hasattr(base, "fit") and hasattr(base, answers) and not isinstance(base, type):
        return copy.deepcopy(base)
    kind = "classifier with predict_proba" if classes else "regressor"
    raise DataError(
        f"The 'base' parameter must be None, 'boosting' or a scikit-learn {kind}. "
        f"Got {base!r} instead."
    )
