"""The model of one task, and of many: what `adapt` returns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.inputs import numbers, read_target
from condmeta.estimators.preparation import Preparation
from condmeta.inner.scores import row_scores
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import as_matrix, as_vector, column_names, is_frame
from condmeta.tasks.ids import explain_absent, factorize, positions
from condmeta.tasks.taskset import check_finite


class Head(NamedTuple):
    """What turns a weight vector into predictions, shared by all tasks of one fit."""

    owner: str
    preparation: Preparation
    inner: Any
    feature_names: tuple[str, ...] | None
    classes: np.ndarray | None
    probabilistic: bool
    resumable: bool

    def read(self, X) -> np.ndarray:
        """Return checked rows (N, d)."""
        names = self.feature_names
        if names is not None and is_frame(X) and tuple(column_names(X)) != tuple(names):
            raise DataError(
                "The feature names should match those that were passed during fit: "
                f"{list(names)}. Got {list(column_names(X))} instead."
            )
        X = as_matrix(numbers(X))
        d = len(self.preparation.x_mean)
        if X.shape[1] != d:
            raise DataError(
                f"X must have shape (rows, {d}), one column for each feature of the fit. "
                f"Got shape {X.shape} instead."
            )
        return X

    def read_labels(self, y, n_rows: int) -> np.ndarray:
        """Return checked targets as numbers, classes as -1 and +1."""
        y = read_target(y, n_rows, self.owner)
        return as_vector(y) if self.classes is None else encode_labels(y, self.classes)

    def scores(self, X, W, codes=None, n_jobs=1) -> np.ndarray:
        """Return <row, w> of each row for one weight vector W, or for W[codes] row by row."""
        rows = self.preparation.rows(X)
        if codes is None:
            return rows @ W + self.preparation.y_offset
        return row_scores(rows, W, codes, n_jobs) + self.preparation.y_offset

    def spread(self, X, codes, theta, state) -> np.ndarray:
        """Return the standard deviation of a new label at rows X, of tasks with a posterior."""
        if not hasattr(self.inner, "spread"):
            raise DataError("return_std=True is for ConditionalRidge: other learners have none.")
        if state is None:
            raise DataError(
                "Standard deviations need the statistics of the tasks, which this model was saved "
                "without. Save it with resume=True."
            )
        rows = self.preparation.rows(self.read(X))
        return self.inner.spread(state, theta, rows, codes)

    def decide(self, scores: np.ndarray) -> np.ndarray:
        """Return predictions: the scores themselves, or the class by their sign (0 is negative)."""
        return scores if self.classes is None else self.classes[(scores > 0).astype(int)]

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the two class probabilities (N, 2) of a logistic model."""
        if not self.probabilistic:
            raise AttributeError("predict_proba is available with loss='logistic' only.")
        positive = np.exp(-np.logaddexp(0.0, -scores))
        return np.column_stack([1.0 - positive, positive])


def encode_labels(y, classes) -> np.ndarray:
    """Return labels as -1.0 and +1.0, or say which label is not a class of the fit."""
    unknown = [label for label in np.unique(y).tolist() if label not in classes.tolist()]
    if unknown:
        raise DataError(f"y holds labels {unknown} that are not classes: {classes.tolist()}.")
    return np.where(y == classes[1], 1.0, -1.0)


class TaskModel:
    """A linear model of one task, in the user's units.

    Attributes
    ----------
    coef_ : (d,) array
    intercept_ : float
    theta_ : (d,) array, or (d+1,) with the intercept last
        Where the task started: tau of its side information.
    n_ : int
        Points that the model has seen; 0 is zero-shot.

    Examples
    --------
    >>> import condmeta as cm
    >>> learner = cm.FixedBiasRegressor(theta=1.0).fit([[1.0], [2.0]], [1.0, 2.0])
    >>> model = learner.adapt([[1.0], [1.0]], [3.0, 3.0])
    >>> model.update([[1.0]], [3.0]).coef_, model.n_
    (array([1.66666667]), 3)
    """

    def __init__(self, head: Head, theta, coef, n: int, state=None, gap=None):
        self._head, self._theta, self._coef, self._state = head, theta, coef, state
        self.n_ = int(n)
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
        X = self._head.read(X)
        check_finite(X, None, feature_names=self._head.feature_names)
        return self._head.scores(X, self._coef)

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
        return self._head.probabilities(self.decision_function(X))

    def update(self, X, y) -> TaskModel:
        """Add points; the result equals one `adapt` on all of them."""
        require_resumable(self._head, self._state)
        X = self._head.read(X)
        y = self._head.read_labels(y, len(X))
        check_finite(X, y, feature_names=self._head.feature_names)
        prep = self._head.preparation
        solved = self._head.inner.solve_tasks(
            self._theta[None], prep.rows(X), prep.target(y), np.array([0, len(y)]),
            state=self._state,
        )  # fmt: skip
        self._coef, self._state = solved.coef[0], solved.state
        self.n_ += len(y)
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

    def __init__(self, head: Head, ids, theta, coef, rows, gap=None):
        self._head, self._theta, self._coef, self._rows = head, theta, coef, rows
        self.ids = ids
        self.n_ = np.diff(rows[2])
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
        X, y, offsets = self._rows
        state = None
        if self._head.resumable:
            part = slice(offsets[t], offsets[t + 1])
            bounds = np.array([0, self.n_[t]])
            state = self._head.inner.solve_tasks(
                self._theta[t : t + 1], X[part], y[part], bounds
            ).state
        gap = None if self.gap_ is None else self.gap_[t]
        return TaskModel(self._head, self._theta[t], self._coef[t], self.n_[t], state, gap)

    def decision_function(self, X, *, task=None) -> np.ndarray:
        """Return the scores of rows X (N, d), each by the model of its task.

        `task` holds an id for each row; a `TaskSet` in place of X carries its own.
        """
        if isinstance(X, TaskSet):
            task = np.repeat(X.ids, X.sizes)
            return X.restore_order(self.decision_function(X.X, task=task))
        X = self._head.read(X)
        codes, ids = factorize(task)
        found = positions(self.ids, ids)
        if (found < 0).any():
            raise DataError(explain_absent(self.ids, ids[found < 0], "the adapted tasks"))
        if len(codes) != len(X):
            raise DataError(f"X has {len(X)} rows and task has {len(codes)} ids.")
        check_finite(X, None, lambda row: ids[codes[row]], feature_names=self._head.feature_names)
        return self._head.scores(X, self._coef, found[codes])

    def predict(self, X, *, task=None, return_std=False):
        """Return the predictions for rows X (N, d), each by the model of its task.

        `return_std` as for `TaskModel.predict`.
        """
        predicted = self._head.decide(self.decision_function(X, task=task))
        if not return_std:
            return predicted
        if isinstance(X, TaskSet):
            codes = positions(self.ids, np.repeat(X.ids, X.sizes))
            return predicted, X.restore_order(self._spread(X.X, codes))
        codes, ids = factorize(task)
        return predicted, self._spread(X, positions(self.ids, ids)[codes])

    def _spread(self, X, codes) -> np.ndarray:
        solved = self._head.inner.solve_tasks(self._theta, *self._rows)
        return self._head.spread(X, codes, self._theta, solved.state)

    def predict_proba(self, X, *, task=None) -> np.ndarray:
        """Return class probabilities (N, 2); logistic loss only."""
        return self._head.probabilities(self.decision_function(X, task=task))

    def __repr__(self) -> str:
        return f"TaskModels({len(self)} tasks, features={len(self._head.preparation.x_mean)})"


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
