"""Sufficient statistics of the squared loss: further points of a task can be added exactly."""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np

from condmeta.persistence.fields import counts, floats
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.weights import masses, repeats, task_sums


@register_tuple(
    fields={
        "gram": floats("T d d"), "moment": floats("T d"), "square": floats("T", low=0),
        "count": counts("T"),
    }
)  # fmt: skip
class SquaredState(NamedTuple):
    """Statistics of each of T tasks.

    gram (T, d, d) = X^T X, moment (T, d) = X^T y, square (T,) = y^T y, count (T,) = n. If points
    have weights, rows of X and y are multiplied by their square roots, and n is their sum. If their
    labels have a precision, rows are multiplied by its root too, and n stays as it is.
    """

    gram: np.ndarray
    moment: np.ndarray
    square: np.ndarray
    count: np.ndarray

    @classmethod
    def start(cls, n_tasks: int, d: int) -> Self:
        """Return the statistics of tasks without points."""
        gram, moment = np.zeros((n_tasks, d, d)), np.zeros((n_tasks, d))
        return cls(gram, moment, np.zeros(n_tasks), np.zeros(n_tasks, np.int64))

    @classmethod
    def of(cls, X, y, offsets, weight=None) -> Self:
        """Return the statistics of tasks with points X (N, d), y (N,), offsets (T+1,)."""
        return cls.start(len(offsets) - 1, X.shape[1]).extend(X, y, offsets, weight)

    def extend(self, X, y, offsets, weight=None) -> Self:
        """Return the statistics with further points added, of weight (N,) or (N, 2)."""
        sizes = count = np.diff(offsets)
        if weight is not None:
            root = np.sqrt(masses(weight))
            X, y, count = X * root[:, None], y * root, task_sums(repeats(weight), offsets)
        if len(sizes) and (sizes == sizes[0]).all():
            stack = X.reshape(len(sizes), sizes[0], X.shape[1]), y.reshape(len(sizes), sizes[0])
            sums = (old + new for old, new in zip(self, _sums(*stack), strict=False))
            return type(self)(*sums, self.count + count)
        gram, moment, square = self.gram.copy(), self.moment.copy(), self.square.copy()
        # Tasks of equal size form one stack: the loop runs over sizes, not over tasks.
        for n in np.unique(sizes[sizes > 0]):
            tasks = np.flatnonzero(sizes == n)
            rows = offsets[tasks][:, None] + np.arange(n)
            of_gram, of_moment, of_square = _sums(X[rows], y[rows])
            gram[tasks] += of_gram
            moment[tasks] += of_moment
            square[tasks] += of_square
        return type(self)(gram, moment, square, self.count + count)

    def with_labels(self, X, y, offsets, weight=None) -> Self:
        """Return the statistics of the same rows X with other labels y; nearly as `of` does."""
        moment, square = X * y[:, None], y * y
        if weight is not None:
            moment, square = moment * masses(weight)[:, None], square * masses(weight)
        moment, square = (task_sums(values, offsets) for values in (moment, square))
        return self._replace(moment=moment, square=square)

    def divided(self, by: np.ndarray) -> Self:
        """Return the statistics of rows and labels that are divided by the roots of by (T,)."""
        sums = self.gram / by[:, None, None], self.moment / by[:, None], self.square / by
        return type(self)(*sums, self.count)

    def take(self, at) -> Self:
        """Return the statistics of the tasks at positions `at`."""
        return type(self)(*(array[at] for array in self))

    @classmethod
    def stack(cls, parts: Iterable[Self]) -> Self:
        """Return the statistics of the tasks of all parts, one part after the other."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def columns(self, kept: np.ndarray) -> Self:
        """Return the statistics of the columns of a mask (d,)."""
        if kept.all():
            return self
        gram = np.ascontiguousarray(self.gram[:, kept][:, :, kept])
        return self._replace(gram=gram, moment=np.ascontiguousarray(self.moment[:, kept]))

    def coef(self, theta: np.ndarray, lam: float) -> np.ndarray:
        """Return theta + (S + n lam I)^-1 (X^T y - S theta), S = X^T X, for each task (T, d)."""
        weight = np.where(self.count > 0, self.count, 1) * lam
        system = self.gram + weight[:, None, None] * np.eye(theta.shape[1])
        right = self.moment - np.einsum("tij,tj->ti", self.gram, theta)
        return theta + np.linalg.solve(system, right[:, :, None])[:, :, 0]

    def squared_errors(self, w: np.ndarray) -> np.ndarray:
        """Return ||y - X w_t||^2 of each task (..., T), w (..., T, d)."""
        fitted = (self.gram @ w[..., None])[..., 0]
        errors = self.square + np.einsum("...i,...i->...", w, fitted - 2 * self.moment)
        return np.maximum(errors, 0.0)  # of a perfect fit rounding may leave less than zero


def _sums(points: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X^T X, X^T y and y^T y of tasks with points (T, n, d) and labels (T, n)."""
    if points.shape[1] == 1:
        x, y = points[:, 0], target[:, 0]
        return np.einsum("ti,tj->tij", x, x), x * y[:, None], y * y
    gram = np.swapaxes(points, 1, 2) @ points
    moment = np.einsum("tni,tn->ti", points, target)
    return gram, moment, np.einsum("tn,tn->t", target, target)


class NoisyState(NamedTuple):
    """Statistics of T tasks (see `SquaredState`), and the factor (T,) of each task's noise."""

    gram: np.ndarray
    moment: np.ndarray
    square: np.ndarray
    count: np.ndarray
    factors: np.ndarray

    @property
    def squared(self) -> SquaredState:
        """The statistics alone."""
        return SquaredState(*self[:4])

    def extend(self, X, y, offsets, weight=None) -> Self:
        """Return the statistics with further points added."""
        return type(self)(*self.squared.extend(X, y, offsets, weight), self.factors)

    def take(self, at) -> Self:
        """Return the statistics of the tasks at positions `at`."""
        return type(self)(*(array[at] for array in self))
