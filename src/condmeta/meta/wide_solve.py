r"""The map of many columns, solved in the span of the rows or of the columns.

The mean of a label is <x_i, B phi_t> = <d_i, B>, with d_i = x_i (x) (1, sqrt(c) z_t) the row i of D
and B ~ N(0, I / lam); V is the covariance of labels around their mean. The posterior mean of B has
equal forms:

    dual       B = D^T (D D^T + lam V)^-1 y                  if there are fewer rows than columns,
    primal     B = (D^T V^-1 D + lam I)^-1 D^T V^-1 y        if there are fewer columns,
    iterative  the primal by conjugate gradients             if there are many of both.

`fit_folds` also predicts each task by a fit without its fold of tasks: the per-task models learn
from these predictions, as those of the whole fit are too close to the labels it has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, cg

from condmeta.meta.wide_noise import TaskNoise
from condmeta.meta.wide_ridge import Ridge
from condmeta.meta.wide_rows import WideRows, times

MOST_ROWS = 5000  # of the dual system
MOST_COLUMNS = 3000  # of the primal system
ITERATIONS, PRECISION = 500, 1e-6  # of conjugate gradients
BLOCK = 1 << 22  # numbers in a temporary


class WideFit(NamedTuple):
    """B^T (k+1, d) with b last, and predictions (N,) of each task by a fit without its fold."""

    B: np.ndarray
    held_out: np.ndarray


def fit_folds(data: WideRows, y, noise: TaskNoise, ridge: Ridge, fold) -> WideFit:
    """Fit B to all tasks, and to all but each fold of tasks; fold (T,) int."""
    design = Design(data, ridge.c)
    rows, columns = data.X.shape[0], data.X.shape[1] * design.features.shape[1]
    solver: Callable = _by_iteration
    if rows <= min(columns, MOST_ROWS):
        solver = _by_rows
    elif columns <= MOST_COLUMNS:
        solver = _by_columns
    B, held_out = solver(design, y, noise, ridge, fold)
    return WideFit(design.to_map(B, ridge.c), held_out)


class Design:
    """The rows D (N, m d), never formed: B (m, d) stands for its columns."""

    def __init__(self, data: WideRows, c: float):
        self.data, self.features = data, data.features(c)
        self.by_row = self.features[data.task]

    def apply(self, B) -> np.ndarray:
        """Return D B (N,)."""
        return np.einsum("ij,ij->i", self.data.X @ B.T, self.by_row)

    def transposed(self, u) -> np.ndarray:
        """Return D^T u (m, d)."""
        return (self.data.X.T @ (u[:, None] * self.by_row)).T

    def to_map(self, B, c: float) -> np.ndarray:
        """Return the map (k+1, d) with b in its last row."""
        M = np.sqrt(c) * B[1:] if c else np.zeros((self.data.Phi.shape[1], B.shape[1]))
        return np.vstack([M, B[:1]])


def _by_rows(design: Design, y, noise: TaskNoise, ridge: Ridge, fold):
    data = design.data
    K = data.kernel(ridge.c)
    C = noise.add_to(K / ridge.lam)
    held_out = np.empty(len(y))
    for f in np.unique(fold):
        out = fold[data.task] == f
        alpha = _solve(C[np.ix_(~out, ~out)], y[~out])
        held_out[out] = K[np.ix_(out, ~out)] @ alpha / ridge.lam
    return design.transposed(_solve(C, y)) / ridge.lam, held_out


def _by_columns(design: Design, y, noise: TaskNoise, ridge: Ridge, fold):
    data = design.data
    m, d = design.features.shape[1], data.X.shape[1]
    held_out, white, folds = np.empty(len(y)), noise.solve(y), np.unique(fold)
    grams = [precision(design, noise, np.flatnonzero(fold == f)) for f in folds]
    moments = [design.transposed(white * (fold[data.task] == f)).ravel() for f in folds]
    whole, moment = sum(grams), sum(moments)
    whole.flat[:: len(whole) + 1] += ridge.lam
    for f, gram, part in zip(folds, grams, moments, strict=True):
        out = fold[data.task] == f
        B = _solve(whole - gram, moment - part).reshape(m, d)
        held_out[out] = design.apply(B)[out]
    return _solve(whole, moment).reshape(m, d), held_out


def precision(design: Design, noise: TaskNoise, tasks) -> np.ndarray:
    """Return D^T V^-1 D (m d, m d) of the tasks at these positions: its lower triangle."""
    X, features = design.data.X, design.features
    m, d = features.shape[1], X.shape[1]
    if issparse(X):
        return _sparse_precision(design, noise, tasks)
    A = np.zeros((m * d, m * d), order="F")
    step = max(BLOCK // (m * d * int(np.diff(design.data.offsets).max())), 1)
    for lo in range(0, len(tasks), step):
        rows = [
            (features[t, :, None] * noise.whitened(X, t)[:, None, :]).reshape(-1, m * d)
            for t in tasks[lo : lo + step]
        ]
        A = dsyrk(1.0, np.concatenate(rows).T, beta=1.0, c=A, lower=1, overwrite_c=1)
    return A


def _sparse_precision(design: Design, noise: TaskNoise, tasks) -> np.ndarray:
    """Return the same of sparse rows, which stay sparse: X^T X less what V_t^-1 takes away."""
    X, offsets, features = design.data.X, design.data.offsets, design.features
    m, d, r = features.shape[1], X.shape[1], noise.Z.shape[1]
    A = np.zeros((m, d, m, d))
    step = max(BLOCK // (r * d), 1)
    for lo in range(0, len(tasks), step):
        at = tasks[lo : lo + step]
        rows = np.concatenate([np.arange(offsets[t], offsets[t + 1]) for t in at])
        inside = np.concatenate([noise.inside(X, t) for t in at])
        by_row, by_inside = design.by_row[rows], np.repeat(features[at], r, axis=0)
        for i in range(m):
            for j in range(i + 1):
                whole = X[rows].T @ times(X[rows], by_row[:, i] * by_row[:, j])
                A[i, :, j] += whole.toarray()
                A[i, :, j] -= inside.T @ times(inside, by_inside[:, i] * by_inside[:, j])
    return A.reshape(m * d, m * d) / noise.s2


def _by_iteration(design: Design, y, noise: TaskNoise, ridge: Ridge, fold):
    shape = design.features.shape[1], design.data.X.shape[1]
    held_out, row_fold = np.empty(len(y)), fold[design.data.task]

    def fit(kept, start=None):
        """V has a block for each task, so that rows of left-out tasks can be set to zero."""

        def system(b):
            inside = noise.solve(kept * design.apply(b.reshape(shape)))
            return design.transposed(inside).ravel() + ridge.lam * b

        size = shape[0] * shape[1]
        right = design.transposed(noise.solve(kept * y)).ravel()
        operator = LinearOperator((size, size), matvec=system, dtype=float)
        b, _ = cg(operator, right, x0=start, rtol=PRECISION, maxiter=ITERATIONS)
        return b

    whole = fit(np.ones(len(y)))
    for f in np.unique(fold):
        out = row_fold == f
        held_out[out] = design.apply(fit((~out).astype(float), whole).reshape(shape))[out]
    return whole.reshape(shape), held_out


def _solve(A, b) -> np.ndarray:
    return cho_solve(cho_factor(A, lower=True, overwrite_a=True, check_finite=False), b)
