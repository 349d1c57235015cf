"""The ridge on many columns and the directions in which tasks differ, against dense formulas."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from condmeta.meta import wide_solve
from condmeta.meta.prior import Prior
from condmeta.meta.wide_directions import Directions, differing
from condmeta.meta.wide_judge import held_out_errors
from condmeta.meta.wide_noise import TaskNoise
from condmeta.meta.wide_ridge import Ridge, choose_ridge, left_out_residuals
from condmeta.meta.wide_rows import WideRows
from condmeta.meta.wide_solve import fit_folds
from condmeta.tasks.points import Points

rng = np.random.default_rng(0)
SIZES = np.array([4, 7, 1, 9, 5, 6])
OFFSETS = np.append(0, np.cumsum(SIZES))
N, D, K = OFFSETS[-1], 11, 2
TASK = np.repeat(np.arange(len(SIZES)), SIZES)
X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6)
PHI = rng.normal(size=(len(SIZES), K))
Y = rng.normal(size=N)
NOISE = TaskNoise(rng.normal(size=(N, 3)), 0.7, OFFSETS)
V = NOISE.add_to(np.zeros((N, N)))
FOLD = np.arange(len(SIZES)) % 3


def dense_design(c):
    features = np.column_stack([np.ones(len(PHI)), np.sqrt(c) * PHI])[TASK]
    return np.einsum("ij,ik->ijk", features, X).reshape(N, -1)


def test_noise_is_inverted_task_by_task():
    np.testing.assert_allclose(NOISE.solve(Y), np.linalg.solve(V, Y))
    for t in range(len(SIZES)):
        at = t == TASK
        expected = X[at].T @ np.linalg.solve(V[np.ix_(at, at)], X[at])
        inside = NOISE.inside(X, t)
        np.testing.assert_allclose((X[at].T @ X[at] - inside.T @ inside) / 0.7, expected)


@pytest.mark.parametrize("c", [0.0, 0.4])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("solver", ["_by_rows", "_by_columns", "_by_iteration"])
def test_all_solvers_give_the_dense_solution(monkeypatch, solver, sparse, c):
    limits = {"_by_rows": (99, 0), "_by_columns": (0, 99), "_by_iteration": (0, 0)}[solver]
    monkeypatch.setattr(wide_solve, "MOST_ROWS", limits[0])
    monkeypatch.setattr(wide_solve, "MOST_COLUMNS", limits[1])
    monkeypatch.setattr(wide_solve, "PRECISION", 1e-12)
    rows = np.hstack([X, np.zeros((N, 40))]) if solver == "_by_rows" else X
    data = WideRows(csr_array(rows) if sparse else rows, OFFSETS, PHI)
    found = fit_folds(data, Y, NOISE, Ridge(2.0, c), FOLD)
    design = dense_design(c)
    expected = np.linalg.solve(
        design.T @ np.linalg.solve(V, design) + 2.0 * np.eye(design.shape[1]),
        design.T @ np.linalg.solve(V, Y),
    ).reshape(K + 1, D)
    np.testing.assert_allclose(found.B[-1, :D], expected[0], atol=1e-8)
    np.testing.assert_allclose(found.B[:-1, :D], np.sqrt(c) * expected[1:], atol=1e-8)
    for f in range(3):
        out = FOLD[TASK] == f
        part, kept = design[~out], np.ix_(~out, ~out)
        b = np.linalg.solve(
            part.T @ np.linalg.solve(V[kept], part) + 2.0 * np.eye(part.shape[1]),
            part.T @ np.linalg.solve(V[kept], Y[~out]),
        )
        np.testing.assert_allclose(found.held_out[out], design[out] @ b, atol=1e-8)


def test_left_out_residuals_are_those_of_fits_without_the_task():
    K_, lam = WideRows(X, OFFSETS, PHI).kernel(0.4), 1.5
    found = left_out_residuals(K_, Y, NOISE, lam)
    for t in range(len(SIZES)):
        out = t == TASK
        kept = np.ix_(~out, ~out)
        alpha = np.linalg.solve(K_[kept] / lam + V[kept], Y[~out])
        np.testing.assert_allclose(found[out], Y[out] - K_[np.ix_(out, ~out)] @ alpha / lam)


def test_side_information_is_used_where_it_helps():
    draw = np.random.default_rng(3)
    T, n, d = 60, 10, 20
    offsets, task = np.arange(T + 1) * n, np.repeat(np.arange(T), n)
    rows, z = draw.normal(size=(T * n, d)), draw.normal(size=(T, 1))
    b, M = draw.normal(size=(2, d))
    noise = TaskNoise(np.zeros((T * n, 1)), 1.0, offsets)
    data = WideRows(rows, offsets, z)
    error = draw.normal(size=T * n)
    assert choose_ridge(data, rows @ b + error, noise).c == 0
    assert choose_ridge(data, rows @ b + rows @ M * z[task, 0] + error, noise).c > 0


def test_columns_that_differ_are_found():
    draw = np.random.default_rng(4)
    T, n, d = 50, 8, 100
    offsets, task = np.arange(T + 1) * n, np.repeat(np.arange(T), n)
    rows = draw.normal(size=(T * n, d))
    own = 0.8 * draw.normal(size=(T, 2))
    y = np.einsum("ij,ij->i", rows[:, [7, 60]], own[task]) + draw.normal(size=T * n)
    noise = TaskNoise(np.ones((T * n, 1)) * 0.1, float(y.var()), offsets)
    assert sorted(differing(rows, y, noise)) == [7, 60]
    assert len(differing(rows, draw.normal(size=T * n), TaskNoise(noise.Z, 1.0, offsets))) == 0


def test_directions_keep_rows_and_weights_together():
    found = Directions.first(X, [2, 5]).with_mean(np.arange(1.0, D + 1), X @ np.arange(1.0, D + 1))
    np.testing.assert_allclose(found.Z, X @ found.P)
    np.testing.assert_allclose(np.linalg.norm(found.P, axis=0), 1.0)


def test_errors_are_those_of_explicit_posteriors():
    draw = np.random.default_rng(5)
    Z, left = draw.normal(size=(N, 2)), draw.normal(size=N)
    prior = Prior(draw.normal(size=(1, 2)), np.diag([0.7, 0.3]), 0.5)
    alone, adapted, count = left - Z @ prior.W[0], 0.0, 0
    for lo, hi in pairwise(OFFSETS):
        shown, asked = np.arange(lo + 1, hi, 2), np.arange(lo, hi, 2)
        V = Z[shown] @ prior.H @ Z[shown].T + 0.5 * np.eye(len(shown))
        w = prior.W[0] + prior.H @ Z[shown].T @ np.linalg.solve(V, alone[shown])
        adapted, count = adapted + np.sum((left[asked] - Z[asked] @ w) ** 2), count + len(asked)
    points, Phi = Points(Z, left, OFFSETS, None), np.empty((6, 0))
    found = held_out_errors(points, Phi, FOLD, lambda stats, Phi: prior)
    np.testing.assert_allclose(found.alone, alone)
    np.testing.assert_allclose(found.adapted, np.sqrt(adapted / count))


def test_white_rows_have_the_precision_of_the_labels():
    for t in range(len(SIZES)):
        at = t == TASK
        white = NOISE.whitened(X, t)
        expected = X[at].T @ np.linalg.solve(V[np.ix_(at, at)], X[at])
        np.testing.assert_allclose(white.T @ white, expected, atol=1e-12)
