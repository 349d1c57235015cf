"""Algorithm 1: reference values, averages, and the stream that can be cut anywhere."""

import numpy as np
import pytest

from condmeta.inner import batch, online
from condmeta.losses import get_loss
from condmeta.meta.sgd import SGDState, sgd_pass

X = np.array([[1, 0], [0, 1], [1, 1], [1, -1], [2, 0], [0, 1.0]])
y = np.array([1, 2, 3, -1, 1, 4.0])
OFFSETS = np.array([0, 2, 4, 6])
PHI = np.array([[1, 0], [0, 2], [1, 1.0]])


def run(Phi=PHI, linear=False, at_average=False, is_batch=False, X=X, y=y, offsets=OFFSETS):
    state = SGDState.start(Phi.shape[1], X.shape[1])
    loss = get_loss("absolute")
    status = sgd_pass(
        *state, X, y, offsets, Phi, 0.5, loss, 0.25, linear, at_average, is_batch, 1e-13
    )
    assert status == -1
    return state


def test_reference_run_online(engine):
    state = run()
    W = state.map(0.25)
    np.testing.assert_allclose(W[:-1].T, [[1 / 12, 0], [1 / 12, 1 / 6]], atol=1e-12)
    np.testing.assert_allclose(W[-1], [1 / 12, 1 / 6], atol=1e-12)
    last = state.map(0.25, "last")
    np.testing.assert_allclose(last[:-1].T, [[0.375, 0.25], [0.25, 0.625]], atol=1e-12)
    np.testing.assert_allclose(last[-1], [0.375, 0.5], atol=1e-12)
    np.testing.assert_allclose(state.phi_mean, [2 / 3, 1], atol=1e-15)


def test_reference_run_batch(engine):
    W = run(is_batch=True).map(0.25)
    np.testing.assert_allclose(W[:-1].T, [[1 / 12, 1 / 24], [1 / 12, 1 / 8]], atol=1e-12)
    np.testing.assert_allclose(W[-1], [5 / 48, 7 / 48], atol=1e-12)


def written_out(Phi, X, y, offsets, solver, at_average):
    """Return the iterates M_1..M_{T+1} (feature-major) by Algorithm 1 as printed."""
    W = [np.zeros((Phi.shape[1] + 1, X.shape[1]))]
    for t in range(len(Phi)):
        phi1 = np.append(Phi[t], 1.0)
        at = np.mean(W[1:], axis=0) if at_average and t else W[-1]
        rows = slice(offsets[t], offsets[t + 1])
        g = solver(phi1 @ at, X[rows], y[rows], 0.5).gradient
        W.append(W[-1] - 0.25 * np.outer(phi1, g))
    return np.array(W)


@pytest.mark.parametrize("is_batch", [False, True])
@pytest.mark.parametrize("at_average", [False, True])
@pytest.mark.parametrize("k", [0, 3])
def test_averages_follow_from_two_sums(engine, is_batch, at_average, k):
    rng = np.random.default_rng(k)
    sizes = rng.integers(1, 6, size=15)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X, y, Phi = (
        rng.normal(size=(offsets[-1], 4)),
        rng.normal(size=offsets[-1]),
        rng.normal(size=(15, k)),
    )
    W = written_out(Phi, X, y, offsets, batch if is_batch else online, at_average)
    data = {"Phi": Phi, "X": X, "y": y, "offsets": offsets}
    data |= {"is_batch": is_batch, "at_average": at_average}
    state = run(**data)
    close = {"rtol": 1e-9, "atol": 1e-11}
    if at_average:
        np.testing.assert_allclose(
            state.map(0.25, gradient_at="average"), W[1:].mean(axis=0), **close
        )
        return
    np.testing.assert_allclose(state.map(0.25), W[:-1].mean(axis=0), **close)
    np.testing.assert_allclose(state.map(0.25, "last"), W[-1], **close)
    weights = np.arange(1, 16)
    np.testing.assert_allclose(
        run(linear=True, **data).map(0.25, "linear"),
        np.average(W[:-1], axis=0, weights=weights),
        **close,
    )


def test_one_task_returns_zero(engine):
    state = run(PHI[:1], X=X[:2], y=y[:2], offsets=OFFSETS[:2])
    np.testing.assert_array_equal(state.map(0.25), 0.0)


def test_tasks_without_points_do_not_count(engine):
    offsets = np.array([0, 0, 2, 4, 4, 6])
    Phi = PHI[[1, 0, 1, 2, 2]]
    np.testing.assert_array_equal(run(Phi, offsets=offsets).map(0.25), run().map(0.25))


def test_a_diverging_pass_is_a_status(engine):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 20)), rng.normal(size=40)
    state = SGDState.start(0, 20)
    status = sgd_pass(
        *state, X, y, np.array([0, 20, 40]), np.empty((2, 0)), 1e-3, get_loss("squared"), 0.1,
        False, False, False, 0.0,
    )  # fmt: skip
    assert status == 0
