"""What turns weight vectors into predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.base_model import heads_see
from condmeta.estimators.inputs import numbers, read_target
from condmeta.estimators.preparation import Preparation
from condmeta.estimators.row_weights import no_weights
from condmeta.inner.averaged import averaged_logistic
from condmeta.inner.scores import row_scores
from condmeta.tasks.frames import as_matrix, as_vector, column_names, is_frame
from condmeta.tasks.weights import read_weight


class Head(NamedTuple):
    """What turns a weight vector into predictions, shared by all tasks of one fit."""

    owner: str
    preparation: Preparation
    inner: Any
    feature_names: tuple[str, ...] | None
    classes: np.ndarray | None
    probabilistic: bool
    resumable: bool
    base: Any = None
    weighs: bool = False

    def read(self, X) -> np.ndarray:
        """Return checked rows (N, d)."""
        names = self.feature_names
        if names is not None and is_frame(X) and tuple(column_names(X)) != tuple(names):
            raise DataError(
                "The feature names should match those that were passed during fit: "
                f"{list(names)}. Got {list(column_names(X))} instead."
            )
        X = as_matrix(numbers(X))
        d = self.preparation.n_inputs
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

    def counting(self, X, y, weight):
        """Return the points of one task that count, and how often; None is once each."""
        if weight is None:
            return X, y, None
        if not self.weighs:
            raise no_weights(self.owner)
        weight = read_weight(weight, len(X))
        counts = weight > 0
        return X[counts], y[counts], weight[counts]

    def scores(self, X, W, codes=None, n_jobs=1, sides=None) -> np.ndarray:
        """Return <row, w> of each row for one weight vector W, or for W[codes] row by row.

        A base reads the side coordinates `sides` of the task, or sides[codes].
        """
        scores = self._linear(self.rows(X, codes, sides), W, codes, n_jobs)
        if self.base is not None and not self.base.classes:
            scores += self.base.predict(X, _by_row(sides, codes, len(X)))
        return scores

    def _linear(self, rows, W, codes, n_jobs) -> np.ndarray:
        scores = rows @ W if codes is None else row_scores(rows, W, codes, n_jobs)
        scores += self.preparation.y_offset
        return scores

    def rows(self, X, codes=None, sides=None) -> np.ndarray:
        """Return the rows of the linear model (N, width); log odds of a base are among its inputs.

        `sides` as for `scores`.
        """
        if self.base is not None and self.base.classes:
            X, _ = self.off_base(X, None, _by_row(sides, codes, len(X)))
        return self.preparation.rows(X)

    def off_base(self, X, y, sides) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and labels as the heads learn from them; `sides` (N, k) by row."""
        if self.base is None:
            return X, y
        return heads_see(X, y, self.base.predict(X, sides), self.base.classes)

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

    @property
    def keeps_state(self) -> bool:
        """Whether a task's model needs more than its weights: for `update`, or to predict."""
        more = hasattr(self.inner, "variances") or hasattr(self.inner, "spread")
        return self.resumable or more

    def decide(self, scores: np.ndarray) -> np.ndarray:
        """Return predictions: the scores themselves, or the class by their sign (0 is negative)."""
        return scores if self.classes is None else self.classes[(scores > 0).astype(int)]

    def probabilities(self, X, W, codes=None, n_jobs=1, sides=None, state=None) -> np.ndarray:
        """Return the two class probabilities (N, 2) of rows X; the parameters are as for `scores`.

        They average over what `state` leaves open about the weights, where the learner says it.
        """
        if not self.probabilistic:
            raise AttributeError("predict_proba is available with loss='logistic' only.")
        rows = self.rows(X, codes, sides)
        scores = self._linear(rows, W, codes, n_jobs)
        if hasattr(self.inner, "variances"):
            whose = np.zeros(len(rows), np.int64) if codes is None else codes
            positive = averaged_logistic(scores, self.inner.variances(state, rows, whose))
        else:
            positive = np.exp(-np.logaddexp(0.0, -scores))
        return np.column_stack([1.0 - positive, positive])


def _by_row(sides, codes, n_rows: int) -> np.ndarray:
    """Return the side coordinates (N, k) of rows: those of one task, or of several by `codes`."""
    return np.atleast_2d(sides)[np.zeros(n_rows, np.int64) if codes is None else codes]


def encode_labels(y, classes) -> np.ndarray:
    """Return labels as -1.0 and +1.0, or say which label is not a class of the fit."""
    unknown = [label for label in np.unique(y).tolist() if label not in classes.tolist()]
    if unknown:
        raise DataError(f"y holds labels {unknown} that are not classes: {classes.tolist()}.")
    return np.where(y == classes[1], 1.0, -1.0)
