"""What the uncertainty of the estimated prior adds to standard deviations."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.inner.posterior import Gaussian
from condmeta.inner.squared import SquaredState
from condmeta.meta.estimated_prior import open_covariance
from condmeta.meta.map_covariance import map_covariance
from condmeta.meta.prior import Prior


def balanced(T=40, n=6, kappa=3.0):
    """Return statistics of tasks with the same rows, standardised orthogonal features, a prior."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=n), np.ones(n)])
    Z = np.linalg.qr(np.column_stack([np.ones(T), rng.normal(size=(T, 2))]))[0][:, 1:] * np.sqrt(T)
    stats = SquaredState.of(np.tile(X, (T, 1)), rng.normal(size=T * n), np.arange(T + 1) * n)
    L = np.array([[0.8, 0.0], [0.3, 0.5]])
    return stats, Z, Prior(rng.normal(size=(3, 2)), L, 0.7)


def test_with_the_same_rows_in_all_tasks_the_map_part_is_exact():
    stats, Z, prior = balanced()
    T = len(Z)
    found = open_covariance(stats, 2, prior, 0.0, T)
    exact = map_covariance(stats, Z, prior.theta(Z), prior.L, np.full(T, prior.s2), 0.0, False)
    exact = exact.of_theta(np.column_stack([Z, np.ones(T)])).mean(axis=0)
    np.testing.assert_allclose(found - 3 / (T - 3) * prior.H, exact, rtol=1e-9)


@pytest.mark.parametrize(("kappa", "df"), [(np.inf, 1.0), (0.0, 3.0), (40.0, 2.0)])
def test_a_penalty_leaves_less_open(kappa, df):
    stats, Z, prior = balanced()
    free = open_covariance(stats, 2, prior, np.inf, len(Z)) - prior.H / (len(Z) - 1)
    found = open_covariance(stats, 2, prior, kappa, len(Z)) - df / (len(Z) - df) * prior.H
    np.testing.assert_allclose(found, df * free, rtol=1e-9)


def test_a_single_task_leaves_nothing_open():
    stats, _, prior = balanced(T=1)
    assert not open_covariance(stats, 0, prior, np.inf, 1).any()


def test_deviations_are_those_of_the_dense_formula():
    rng = np.random.default_rng(1)
    L, R = np.tril(rng.normal(size=(3, 3))), rng.normal(size=(3, 3))
    X, rows = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    stats = SquaredState.of(X, rng.normal(size=7), np.array([0, 0, 7]))  # none, then seven points
    inner = Gaussian(L, 0.6, False, None, R)
    std = inner.spread(stats, np.zeros((2, 3)), np.tile(rows, (2, 1)), np.repeat([0, 1], 5))
    P = np.linalg.inv(np.linalg.inv(L @ L.T) + X.T @ X / 0.6)
    K = np.eye(3) - P @ X.T @ X / 0.6
    for found, C in zip(std.reshape(2, 5), (L @ L.T + R @ R.T, P + K @ R @ R.T @ K.T), strict=True):
        dense = np.sqrt(np.einsum("ij,jk,ik->i", rows, C, rows) + 0.6)
        np.testing.assert_allclose(found, dense, rtol=1e-9)


def test_files_keep_it(tmp_path):
    rng = np.random.default_rng(2)
    X, task = rng.normal(size=(90, 1)), np.repeat(np.arange(15), 6)
    y = X[:, 0] + rng.normal(size=15)[task] + 0.3 * rng.normal(size=90)
    model = cm.ConditionalRidge().fit(X, y, task=task)
    model.save(tmp_path / "model.cm")
    std = [
        each.predict(X, task=task, return_std=True)[1]
        for each in (model, cm.load(tmp_path / "model.cm"))
    ]
    np.testing.assert_array_equal(*std)
    model.fitted_.inner.open_root = None
    assert (std[0] > model.predict(X, task=task, return_std=True)[1]).all()
