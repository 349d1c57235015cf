"""The answers of a fitted value in microseconds, by leaving out every check of the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.predictor import LinearPredictor
from condmeta.fitted.sql import require_linear, side_columns
from condmeta.inner.posterior import Gaussian
from condmeta.inner.squared import SquaredState
from condmeta.inner.student import StudentGaussian
from condmeta.tasks.numbers import level_name


class FastTask:
    """The model of one task, for arrays that were checked before.

    coef : (width,) array, in the learner's units; n : its points
    """

    __slots__ = ("_predictor", "_rows", "coef", "n")

    def __init__(self, rows, predictor: LinearPredictor, coef: np.ndarray, n: int):
        self._rows, self._predictor, self.coef, self.n = rows, predictor, coef, n

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions (N,) for rows X (N, d), finite float64."""
        predictor = self._predictor
        return predictor.decide(predictor.scales.answer(self._rows(X) @ self.coef))


class LowLatency:
    """Adapt and predict one task at a time, in microseconds.

    The answers have the bits of `adapt`, `predict` of the learner. The input is not checked: X (n,
    d) and y (n,) must be finite arrays of float64, with columns as in `fit`, and a level of a side
    column that `fit` did not see is all zero without a warning. It is a snapshot: a later `update`
    of the learner does not change it.
    """

    def __init__(self, fitted: Fitted):
        require_linear(fitted)
        if type(fitted.inner) not in (Gaussian, StudentGaussian):
            raise DataError("low_latency is for ConditionalRidge with up to 64 columns.")
        self._fitted, self._scales, self._inner = fitted, fitted.scales, fitted.inner
        self._width, self._d = fitted.scales.width, len(fitted.scales.x_mean)
        self._names = list(fitted.reader.columns or ())
        columns = side_columns(fitted) if fitted.reader.names else []
        places = {name: j for j, name in enumerate(self._names)}
        self._columns = [(places[column.source], column) for column in columns]
        self._plain = self._scales.scale == "none" and self._scales.transformer is None

    def _rows(self, X: np.ndarray) -> np.ndarray:
        X = X if self._plain else self._scales.scaled(X)
        if self._width == self._d:
            return np.ascontiguousarray(X)
        rows = np.empty((len(X), self._width))
        rows[:, :-1] = X
        rows[:, -1] = 1.0
        return rows

    def features(self, side: Mapping[str, Any] | Sequence[Any] | None) -> np.ndarray:
        """Return Phi (1, k) of a row of side information: a dict, or values in their order."""
        if not self._columns:
            return np.empty((1, 0))
        if side is None:
            if self._fitted.reader.missing_side == "error":
                raise DataError("Give the side information of the task, or missing_side='mean'.")
            return self._fitted.tau.phi_mean[None]
        values = [side[name] for name in self._names] if isinstance(side, Mapping) else side
        return np.array([[_encoded(column, values[at]) for at, column in self._columns]])

    def adapt(self, X: np.ndarray, y: np.ndarray, side_info: Any = None) -> FastTask:
        """Return the model of a new task with points X (n, d), y (n,) and a row of side values."""
        Phi = self.features(side_info)
        theta, factors = self._fitted.tau.theta(Phi), self._fitted.tau.noise_factors(Phi)
        y = self._fitted.predictor.on_scale(y)
        if isinstance(self._inner, StudentGaussian):
            rows = self._rows(X), self._scales.target(y), np.array([0, len(y)])
            coef = self._inner.solve_tasks(theta, *rows).coef[0]
            return FastTask(self._rows, self._fitted.predictor, coef, len(y))
        rows, target = self._rows(X)[None], self._scales.target(y)[None]
        state = SquaredState(
            rows.transpose(0, 2, 1) @ rows,
            np.einsum("tni,tn->ti", rows, target),
            np.einsum("tn,tn->t", target, target),
            np.array([len(y)]),
        )
        mean = self._inner.posterior(state, theta, 1, factors).mean[0]
        return FastTask(self._rows, self._fitted.predictor, mean, len(y))

    def task(self, task_id: Any) -> FastTask:
        """Return the model of a known task; an unknown id is a KeyError."""
        store = self._fitted.tasks
        at = store.index[task_id]
        size = store.sizes[at].item()
        return FastTask(self._rows, self._fitted.predictor, store.coef[at], size)


def _encoded(column, value) -> float:
    """Return one encoded number of a side value."""
    gap = value is None or value != value
    if column.levels is None:
        value = column.fill if gap else float(value)
        return (value - column.mean) / column.scale
    return float((None if gap else level_name(value)) in column.levels)
