"""The model of one task, and of many: what `adapt` returns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.head import Head
from condmeta.estimators.preparation import Preparation
from condmeta.inner.algorithms import weighted
from condmeta.meta.points import WeightedPoints
from condmeta.tasks import TaskSet
from condmeta.tasks.ids import explain_absent, factorize, positions
from condmeta.tasks.taskset import check_finite
from condmeta.words import count


class TaskModel:
    """A linear model of one task, in the user's units.

    Attributes
    ----------
    coef_ : (d,) array
    intercept_ : float
    theta_ : (d,) array, or (d+1,) with the intercept last
        Where the task started: tau of its side information.
    n_ : int, or float if points had weights
        Points that the model has seen; 0 is zero-shot.

    Examples
    --------
    >>> import condmeta as cm
    >>> learner = cm.FixedBiasRegressor(theta=1.0).fit([[1.0], [2.0]], [1.0, 2.0])
    >>> model = learner.adapt([[1.0], [1.0]], [3.0, 3.0])
    >>> model.update([[1.0]], [3.0]).coef_, model.n_
    (array([1.66666667]), 3)
    """

    def __init__(self, head: Head, theta, coef, n, state=None, gap=None, sides=None):
        self._head, self._theta, self._coef, self._state = head, theta, coef, state
        self._sides = sides
        self.n_ = n.item() if isinstance(n, np.generic) else n
        self.gap_ = gap

    @property
    def coef_(self) -> np.ndarray:
        return self._head.preparation.to_user(self._coef)[0]

    @property
    def intercept_(self) -> float:
        return float(self._head.preparation.to_user(self._coef)[1])

    @property
    def theta_(self) -> np.ndarray:
        return user_vector(self._head.preparation, self._theta)

    def decision_function(self, X) -> np.ndarray:
        """Return the scores of rows X (N, d); their sign is the class."""
        return self._head.scores(self._read(X), self._coef, sides=self._sides)

    def _read(self, X) -> np.ndarray:
        X = self._head.read(X)
        check_finite(X, None, feature_names=self._head.feature_names)
        return X

    def predict(self, X, return_std=False):
        """Return the predictions for rows X (N, d), and their standard deviations if asked for.

        Standard deviations are those of `ConditionalRidge`; other learners have none.
        """
        predicted = self._head.decide(self.decision_function(X))
        if not return_std:
            return predicted
        codes = np.zeros(len(predicted), np.int64)
        return predicted, self._head.spread(X, codes, self._theta[None], self._state)

    def predict_proba(self, X) -> np.ndarray:
        """Return class probabilities (N, 2); logistic loss only."""
        told = {"sides": self._sides, "state": self._state}
        return self._head.probabilities(self._read(X), self._coef, **told)

    def update(self, X, y, sample_weight=None) -> TaskModel:
        """Add points; the result equals one `adapt` on all of them. Weights as for `adapt`."""
        require_resumable(self._head, self._state)
        X = self._head.read(X)
        y = self._head.read_labels(y, len(X))
        check_finite(X, y, feature_names=self._head.feature_names)
        X, y, weight = self._head.counting(X, y, sample_weight)
        if self._head.base is not None:
            X, y = self._head.off_base(X, y, np.tile(self._sides, (len(X), 1)))
        prep = self._head.preparation
        solved = self._head.inner.solve_tasks(
            self._theta[None], prep.rows(X), prep.target(y), np.array([0, len(y)]),
            state=self._state, **weighted(weight),
        )  # fmt: skip
        self._coef, self._state = solved.coef[0], solved.state
        self.n_ += len(y) if weight is None else float(weight.sum())
        return self

    def __repr__(self) -> str:
        return f"TaskModel(n={self.n_}, features={len(self.coef_)})"


class TaskModels(Mapping):
    """Models of many tasks, a mapping from task id to `TaskModel`.

    Attributes
    ----------
    ids : (T,) array
    coef_ : (T, d) array
    intercept_ : (T,) array
    theta_ : (T, d) array, or (T, d+1) with the intercept last
    n_ : (T,) array
    gap_ : (T,) array or None

    Examples
    --------
    >>> import condmeta as cm
    >>> learner = cm.FixedBiasRegressor(theta=1.0).fit([[1.0], [2.0]], [1.0, 2.0])
    >>> models = learner.adapt([[1.0], [1.0]], [3.0, 3.0], task=["a", "b"])
    >>> list(models), models["b"].predict([[2.0]])
    (['a', 'b'], array([2.]))
    """

    def __init__(self, head: Head, ids, theta, coef, rows: WeightedPoints, gap=None, sides=None):
        self._head, self._theta, self._coef, self._rows = head, theta, coef, rows
        self._sides = sides
        self.ids = ids
        self.n_ = rows.count
        self.gap_ = gap

    @property
    def coef_(self) -> np.ndarray:
        return self._head.preparation.to_user(self._coef)[0]

    @property
    def intercept_(self) -> np.ndarray:
        return self._head.preparation.to_user(self._coef)[1]

    @property
    def theta_(self) -> np.ndarray:
        return user_vector(self._head.preparation, self._theta)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids.tolist())

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {task: t for t, task in enumerate(self.ids.tolist())}

    def __contains__(self, task) -> bool:
        return task in self._index

    def __getitem__(self, task) -> TaskModel:
        t = self._index[task]
        state = None
        if self._head.keeps_state:
            X, y, offsets, weight = self._rows.take(np.array([t]))
            state = self._head.inner.solve_tasks(
                self._theta[t : t + 1], X, y, offsets, **weighted(weight)
            ).state
        gap = None if self.gap_ is None else self.gap_[t]
        sides = None if self._sides is None else self._sides[t]
        return TaskModel(self._head, self._theta[t], self._coef[t], self.n_[t], state, gap, sides)

    def decision_function(self, X, *, task=None) -> np.ndarray:
        """Return the scores of rows X (N, d), each by the model of its task.

        `task` holds an id for each row; a `TaskSet` in place of X carries its own.
        """
        return self._by_row(
            lambda rows, codes: self._head.scores(rows, self._coef, codes, sides=self._sides),
            X, task,
        )  # fmt: skip

    def predict(self, X, *, task=None, return_std=False):
        """Return the predictions for rows X (N, d), each by the model of its task.

        `return_std` as for `TaskModel.predict`.
        """
        predicted = self._head.decide(self.decision_function(X, task=task))
        if not return_std:
            return predicted
        return predicted, self._by_row(
            lambda rows, codes: self._head.spread(rows, codes, self._theta, self._state), X, task
        )

    def predict_proba(self, X, *, task=None) -> np.ndarray:
        """Return class probabilities (N, 2); logistic loss only."""
        told: dict[str, Any] = {"sides": self._sides}
        if hasattr(self._head.inner, "variances"):
            told["state"] = self._state
        return self._by_row(
            lambda rows, codes: self._head.probabilities(rows, self._coef, codes, **told), X, task
        )

    @cached_property
    def _state(self):
        X, y, offsets, weight = self._rows
        return self._head.inner.solve_tasks(self._theta, X, y, offsets, **weighted(weight)).state

    def _by_row(self, value, X, task) -> np.ndarray:
        """Return value(rows, positions of their tasks), in the order of the call."""
        if isinstance(X, TaskSet):
            return X.restore_order(self._by_row(value, X.X, np.repeat(X.ids, X.sizes)))
        X = self._head.read(X)
        codes, ids = factorize(task)
        found = positions(self.ids, ids)
        if (found < 0).any():
            raise DataError(explain_absent(self.ids, ids[found < 0], "the adapted tasks"))
        if len(codes) != len(X):
            raise DataError(f"X has {len(X)} rows and task has {len(codes)} ids.")
        check_finite(X, None, lambda row: ids[codes[row]], feature_names=self._head.feature_names)
        return value(X, found[codes])

    def __repr__(self) -> str:
        features = len(self._head.preparation.x_mean)
        return f"TaskModels({count(len(self), 'task')}, features={features})"


def user_vector(preparation: Preparation, W) -> np.ndarray:
    """Return weight vectors in the user's units, the intercept last where there is one."""
    coef, intercept = preparation.to_user(W)
    if not preparation.fit_intercept:
        return coef
    return np.concatenate([coef, np.asarray(intercept)[..., None]], axis=-1)


def require_resumable(head: Head, state) -> None:
    """Say why points cannot be added exactly, where they cannot."""
    if not head.resumable:
        raise DataError(
            "update is exact with inner='online', or inner='batch' and loss='squared', and without "
            "feature maps of the task's own points. Call adapt with all the points of the task "
            "instead."
        )
    if state is None:
        raise DataError(
            "This model was saved without what update needs. Save it with resume=True, or call "
            "adapt with all the points of the task."
        )
