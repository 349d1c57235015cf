"""The betting map and the betting pass: against a transcription, and engine against engine."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import native

from condmeta.engine import compiled_core
from condmeta.inner.coin import Coin, CoinTasks, coin_tasks
from condmeta.meta.coin import CoinState, coin_pass

core = compiled_core()


def draw_tasks(d, k, n_tasks=40, seed=0):
    """Return X, y, offsets, Phi of ragged tasks, the first without points and the next with one."""
    rng = np.random.default_rng([d, k, seed])
    sizes = rng.integers(1, 12, n_tasks)
    sizes[:2] = 0, 1
    offsets = np.append(0, np.cumsum(sizes))
    X, Phi = rng.normal(size=(offsets[-1], d)), rng.normal(size=(n_tasks, k))
    W = np.repeat(Phi @ rng.normal(size=(k, d)) + 2.0, sizes, axis=0)
    return X, np.einsum("ij,ij->i", X, W) + rng.normal(size=len(X)), offsets, Phi


def by_the_book(X, y, offsets, Phi):
    """Return the averaged map (d, k+1) and the last stake, number by number."""
    (T, k), d = Phi.shape, X.shape[1]
    R = max(math.sqrt(sum(v * v for v in x)) for x in X)
    S = sum(abs(label) for label in y) / len(y)
    X1 = max(sum(abs(v) for v in x) for x in X)
    P1 = max(1 + sum(abs(v) for v in phi) for phi in Phi)
    eps, cells = S / (X1 * P1), [(c, j) for c in range(d) for j in range(k + 1)]
    L, G, C, Q, W, mean = (dict.fromkeys(cells, start) for start in (1e-12, 0, 0, 0, 0, 0))
    r, t = 0.0, 0
    for task in range(T):
        points = range(offsets[task], offsets[task + 1])
        if len(points) == 0:
            continue
        t += 1
        phi = [*Phi[task], 1.0]
        theta = [sum(W[c, j] * phi[j] for j in range(k + 1)) for c in range(d)]
        for cell in cells:
            mean[cell] += t * W[cell]
        wealth = S / R if t == 1 else r / ((t - 1) * R)
        g = [0.0] * d
        for i, at in enumerate(points, start=1):
            w = [theta[c] - g[c] / (R * i) * wealth for c in range(d)]
            s = math.copysign(1.0, sum(X[at][c] * w[c] for c in range(d)) - y[at])
            wealth -= s * sum(X[at][c] * (w[c] - theta[c]) for c in range(d)) / R
            g = [g[c] + s * X[at][c] for c in range(d)]
        r += sum(
            abs(sum(X[at][c] * theta[c] for c in range(d)) - y[at]) for at in points
        ) / len(points)  # fmt: skip
        for c, j in cells:
            q = g[c] / len(points) * phi[j]
            L[c, j] = max(L[c, j], abs(q))
            G[c, j] += abs(q)
            C[c, j] -= q
            Q[c, j] = max(Q[c, j] - q * W[c, j], 0)
            fraction = math.tanh(C[c, j] / (G[c, j] + L[c, j]))
            W[c, j] = fraction / L[c, j] * (L[c, j] * eps + Q[c, j])
    out = np.array([[mean[c, j] for j in range(k + 1)] for c in range(d)])
    return out / (t * (t + 1) / 2), r / (t * R)


def learn(data) -> CoinState:
    X, y, _, Phi = data
    state = CoinState.start(X, y, Phi)
    coin_pass(*state, *data)
    return state


@pytest.mark.parametrize(("d", "k"), [(3, 2), (5, 0), (4, 7)])
def test_map_is_the_transcribed_one(engine, d, k):
    data = draw_tasks(d, k)
    want, stake = by_the_book(*data)
    state = learn(data)
    np.testing.assert_allclose(state.map().T, want, rtol=0, atol=1e-11 * np.abs(want).max())
    assert state.stake == pytest.approx(stake, rel=1e-12)
    assert state.n_tasks == 39


def test_pass_is_the_transcribed_one(engine):
    X, y, _, _ = draw_tasks(4, 1)
    theta, stake, wealth = np.array([1.0, 0.5, -1.0, 2.0]), 0.7, 0.7
    R = np.linalg.norm(X, axis=1).max()
    g, iterates = np.zeros(4), []
    for i in range(9):
        iterates.append(theta - g / (R * (i + 1)) * wealth)
        s = np.sign(X[i] @ iterates[-1] - y[i])
        wealth -= s * X[i] @ (iterates[-1] - theta) / R
        g += s * X[i]
    coef, gradient, _ = Coin(R, stake).solve(theta, X[:9], y[:9])
    np.testing.assert_allclose(coef, np.mean(iterates, axis=0), rtol=1e-13)
    np.testing.assert_allclose(gradient, g / 9, rtol=1e-13)


@pytest.mark.parametrize(
    ("factor", "label", "slope_sum", "wealth"),
    [
        (1.0, 100.0, [-6.0, -8.0], 1.5),
        (2.0, 100.0, [-6.0, -8.0], 1.5),  # bets as the row of length R
        (1.0, 4.0, [-6.0, -8.0], 1.5),
        (2.0, 4.0, [0.0, 0.0], 0.5),  # but is judged by its own residual, 5 - 4 instead of 2.5 - 4
    ],
)
def test_long_rows_are_cut_inside_the_bet(engine, factor, label, slope_sum, wealth):
    X, state = factor * np.array([[3.0, 4.0], [3.0, 4.0]]), CoinTasks.start(1, 2, 1.0)
    coin_tasks(np.zeros((1, 2)), X, np.full(2, label), np.array([0, 2]), 5.0, *state, 1)
    np.testing.assert_allclose(state.slope_sum[0], slope_sum, atol=1e-15)
    np.testing.assert_allclose(state.wealth, wealth)


def test_a_residual_of_rounding_size_is_a_tie(engine):
    state = CoinTasks.start(1, 2, 1.0)
    theta, X = np.array([[0.1, 0.2]]), np.array([[1.0, 1.0]])
    coin_tasks(theta, X, np.array([0.3]), np.array([0, 1]), 2.0, *state, 1)
    assert theta[0].sum() != 0.3
    np.testing.assert_array_equal(state.slope_sum, [[0.0, 0.0]])


@pytest.mark.parametrize("zero", ["X", "y"])
def test_nothing_to_learn_gives_the_zero_map(engine, zero):
    X, y, offsets, Phi = draw_tasks(3, 2)
    data = (0 * X, y, offsets, Phi) if zero == "X" else (X, 0 * y, offsets, Phi)
    state = learn(data)
    np.testing.assert_array_equal(state.map(), np.zeros((3, 3)))
    assert np.isfinite(state.stake)


@pytest.mark.parametrize("factors", [(3.0, 7.0), (1e-9, 1e6), (1e5, 1e-8)])
def test_scales_go_through(engine, factors):
    X, y, offsets, Phi = draw_tasks(5, 3)
    a, b = factors
    one, two = learn((X, y, offsets, Phi)).map(), learn((a * X, b * y, offsets, Phi)).map()
    np.testing.assert_allclose(two * a / b, one, rtol=0, atol=1e-12 * np.abs(one).max())


def test_a_stream_in_chunks_gives_the_same_bits(engine):
    X, y, offsets, Phi = draw_tasks(7, 3)
    whole, parts = learn((X, y, offsets, Phi)), CoinState.start(X, y, Phi)
    for lo, hi in ((0, 1), (1, 4), (4, 4), (4, 11), (11, 40)):
        coin_pass(*parts, X, y, offsets[lo : hi + 1], Phi[lo:hi])
    for one, two in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, two)


@native
@pytest.mark.parametrize("k", [0, 1, 6])
@pytest.mark.parametrize("d", [1, 3, 4, 7, 20, 33])
def test_engines_agree(d, k):
    X, y, offsets, Phi = draw_tasks(d, k, n_tasks=120)
    states = [CoinState.start(X, y, Phi) for _ in range(2)]
    X = X * np.where(np.arange(len(X)) % 9, 1.0, 1.5)[:, None]  # some rows beyond R
    coin_pass.reference(*states[0], X, y, offsets, Phi)
    core.coin_pass(*states[1], X, y, offsets, Phi)
    for want, got in zip(*states, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max(initial=1e-300))


@native
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("d", [1, 4, 7, 33])
def test_engines_agree_on_tasks(d, n_jobs):
    rng = np.random.default_rng(d)
    states = [CoinTasks.start(40, d, 0.4) for _ in range(2)]
    theta = rng.normal(size=(40, d))
    for seed in (1, 2):  # the second time from the state that the first one left
        X, y, offsets, _ = draw_tasks(d, 1, seed=seed)
        call = theta, X, y, offsets, 2.0
        coin_tasks.reference(*call, *states[0], 1)
        core.coin_tasks(*call, *states[1], n_jobs)
    for want, got in zip(*states, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())


@native
def test_wrong_arrays_are_refused():
    X, y, offsets, Phi = draw_tasks(4, 2)
    state = CoinState.start(X, y, Phi)
    with pytest.raises(ValueError, match=r"'most' must have shape \(2, 4\)"):
        core.coin_pass(*state, X, y, offsets, Phi[:, :1].copy())
    with pytest.raises(ValueError, match=r"'scales' must have shape \(4,\)"):
        core.coin_pass(*state[:-1], state.scales[:3].copy(), X, y, offsets, Phi)
    with pytest.raises(TypeError):
        core.coin_pass(*state, X.astype(np.float32), y, offsets, Phi)
    tasks = CoinTasks.start(40, 4, 1.0)
    with pytest.raises(ValueError, match=r"'theta' must have shape \(40, 4\)"):
        core.coin_tasks(np.zeros((39, 4)), X, y, offsets, 1.0, *tasks, 1)
