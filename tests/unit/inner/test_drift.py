"""Forgetting on statistics, against closed forms and a dense normal distribution."""

import numpy as np
import pytest

from condmeta.inner.drift import Drift, Process, ar_step, drift_pass
from condmeta.inner.posterior import Gaussian
from condmeta.inner.squared import SquaredState
from condmeta.tasks.timed import Timed

H = np.array([[0.5, 0.1], [0.1, 0.4]])
L = np.linalg.cholesky(H)
S2 = 0.8


def random_rows(rng, sizes, d=2, weight=None) -> Timed:
    n, offsets = sum(sizes), np.concatenate([[0], np.cumsum(sizes)])
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    weights = {None: None, 1: rng.uniform(0.5, 2, n), 2: rng.uniform(0.5, 2, (n, 2))}
    time = rng.integers(0, 6, n) / 2  # rows of one time occur
    return Timed(X, y, offsets, weights[weight], time)


def start(n_tasks: int, d: int = 2):
    return SquaredState.start(n_tasks, d), np.full(n_tasks, np.nan)


def dense_posterior(X, y, time, precision, theta, phi, at):
    """Return mean and covariance of w(at): w(t) and w(u) have covariance phi^|t - u| H."""
    between = phi ** np.abs(time[:, None] - time[None, :])
    K = between * (X @ H @ X.T) + np.diag(S2 / precision)
    cross = (phi ** np.abs(at - time))[None, :] * (H @ X.T)
    gain = np.linalg.solve(K, cross.T).T
    return theta + gain @ (y - X @ theta), H - gain @ cross.T


def test_a_step_of_ar_has_the_reference_values():
    S, e = np.array([[[2.0, 1.0], [1.0, 3.0]]]), np.array([[1.0, -0.5]])
    S, e = ar_step(S, e, L, S2, np.array([0.9]))
    expected = [[1.23476679, 0.43965181], [0.43965181, 1.79290633]]
    np.testing.assert_allclose(S[0], expected, atol=5e-9)
    np.testing.assert_allclose(e[0], [0.76497337, -0.45489585], atol=5e-9)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e9, 1e15])
def test_a_step_stays_positive_however_much_the_rows_say(size):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(40, 3, 3))
    S = size * root @ np.swapaxes(root, 1, 2)
    factor = np.linalg.cholesky(np.diag([2.0, 1.0, 0.1]))
    after, _ = ar_step(S, np.zeros((40, 3)), factor, 0.5, np.full(40, 0.7))
    exact = 0.49 * np.linalg.inv(np.linalg.inv(S) + (1 - 0.49) / 0.5 * factor @ factor.T)
    np.testing.assert_allclose(after, exact, rtol=1e-6, atol=1e-7 * np.abs(exact).max())
    assert (np.linalg.eigvalsh(after) > 0).all()


@pytest.mark.parametrize("weight", [None, 1, 2])
def test_ar_is_the_dense_normal_posterior(weight):
    rng = np.random.default_rng(1)
    rows, phi = random_rows(rng, [7, 1, 0, 4], weight=weight), 0.7
    theta = rng.normal(size=(4, 2))
    process = Process(Drift("ar", phi), L, S2)
    state, clock = process.absorb(*start(4), theta, rows)
    later = process.aged(state, theta, np.full(4, 1.5))
    for t in (0, 1, 3):
        at = slice(*rows.points.offsets[t : t + 2])
        X, y, time = rows.points.X[at], rows.points.y[at], rows.time[at]
        mass = np.ones(len(y))
        if weight is not None:
            mass = rows.points.weight[at].reshape(len(y), -1).prod(axis=1)
        assert clock[t] == time.max()
        for given, now in ((state, clock[t]), (later, clock[t] + 1.5)):
            inner = Gaussian(L, S2, False)
            mean, cov = dense_posterior(X, y, time, mass, theta[t], phi, now)
            part = given.take(slice(t, t + 1))
            found = inner.posterior(part, theta[t : t + 1]).mean[0]
            np.testing.assert_allclose(found, mean, atol=1e-12)
            x = rng.normal(size=(1, 2))
            std = inner.spread(part, theta[t : t + 1], x, np.zeros(1, int))[0]
            np.testing.assert_allclose(std**2, x[0] @ cov @ x[0] + S2, atol=1e-12)
    assert np.isnan(clock[2])
    assert (state.gram[2] == 0).all()


@pytest.mark.parametrize("weight", [None, 1, 2])
def test_decay_weighs_a_row_by_its_age(weight):
    rng = np.random.default_rng(2)
    rows, rho = random_rows(rng, [5, 3], weight=weight), 0.8
    process = Process(Drift("decay", rho), L, S2)
    state, clock = process.absorb(*start(2), np.zeros((2, 2)), rows)
    age = clock[rows.task_of_row] - rows.time
    old = np.ones(8) if weight is None else rows.points.weight
    share = rho**age
    weights = old * (share if weight != 2 else np.column_stack([share, np.ones(8)]))
    expected = SquaredState.of(*rows.points[:3], weights)
    for found, wanted in zip(state, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("kind", ["decay", "ar"])
def test_chunks_in_the_order_of_time_equal_one_call(kind):
    rng = np.random.default_rng(3)
    rows, process = random_rows(rng, [9, 6, 1]), Process(Drift(kind, 0.6), L, S2)
    theta = rng.normal(size=(3, 2))
    whole, clock = process.absorb(*start(3), theta, rows)
    state, now = start(3)
    for first, last in ((-1, 0.5), (0.5, 1.0), (1.0, 9.0)):
        some = rows.where((rows.time > first) & (rows.time <= last))
        state, now = process.absorb(state, now, theta, some)
    np.testing.assert_array_equal(now, clock)
    for found, wanted in zip(state, whole, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)


def test_late_rows_of_decay_are_exact_and_of_ar_say_what_they_say_alone():
    rng = np.random.default_rng(4)
    early, late = random_rows(rng, [4]), random_rows(rng, [3])
    early, late = early._replace(time=early.time + 10), late._replace(time=late.time)
    theta = rng.normal(size=(1, 2))
    decay = Process(Drift("decay", 0.9), L, S2)
    one, clock = decay.absorb(*decay.absorb(*start(1), theta, early), theta, late)
    joined = early.extend(np.array([0]), late)
    other, again = decay.absorb(*start(1), theta, joined)
    np.testing.assert_allclose(one.gram, other.gram, rtol=1e-12)
    assert clock == again == early.time.max()
    ar = Process(Drift("ar", 0.9), L, S2)
    before = ar.absorb(*start(1), theta, early)
    alone, since = ar.absorb(*start(1), theta, late)
    alone = ar.aged(alone, theta, clock - since)
    after, now = ar.absorb(*before, theta, late)
    assert now == clock
    np.testing.assert_allclose(after.gram - before[0].gram, alone.gram, atol=1e-12)
    np.testing.assert_allclose(after.moment - before[0].moment, alone.moment, atol=1e-12)


@pytest.mark.parametrize("kind", ["decay", "ar"])
def test_nothing_is_forgotten_at_rate_one_and_all_after_ages(kind):
    rng = np.random.default_rng(5)
    rows, theta = random_rows(rng, [6]), np.ones((1, 2))
    state, _ = Process(Drift(kind, 1.0), L, S2).absorb(*start(1), theta, rows)
    for found, wanted in zip(state, SquaredState.of(*rows.points), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    aged = Process(Drift(kind, 0.5), L, S2).aged(state, theta, np.array([1e6]))
    assert (aged.gram == 0).all()
    np.testing.assert_allclose(Gaussian(L, S2, False).posterior(aged, theta).mean, theta)


@pytest.mark.parametrize("rate", [1.0, 0.7])
@pytest.mark.parametrize("kind", ["decay", "ar"])
def test_one_step_ahead_predicts_from_earlier_rows_alone(kind, rate):
    rng = np.random.default_rng(6)
    rows, theta = random_rows(rng, [8, 5]).sorted(), rng.normal(size=(2, 2))
    process = Process(Drift(kind, rate), L, S2)
    predicted = process.one_step_ahead(*start(2), theta, rows)
    for row in range(13):
        t, time = rows.task_of_row[row], rows.time[row]
        before = rows.where((rows.task_of_row == t) & (rows.time < time))
        state, clock = process.absorb(*start(2), theta, before)
        state = process.aged(state, theta, np.nan_to_num(time - clock))
        w = Gaussian(L, S2, False).posterior(state, theta).mean[t]
        np.testing.assert_allclose(predicted[row], rows.points.X[row] @ w, atol=1e-12)


@pytest.mark.parametrize("clock", [np.nan, 0.0])
def test_the_first_row_is_predicted_from_the_state_before(clock):
    rng = np.random.default_rng(7)
    rows, theta = random_rows(rng, [4, 3]), rng.normal(size=(2, 2))
    before = SquaredState.of(*random_rows(rng, [5, 5]).points)
    rows = rows._replace(time=np.zeros(7))
    process = Process(Drift("ar", 0.7), L, S2)
    predicted = process.one_step_ahead(before, np.full(2, clock), theta, rows)
    w = Gaussian(L, S2, False).posterior(before, theta).mean[rows.task_of_row]
    np.testing.assert_allclose(predicted, np.einsum("ni,ni->n", rows.X, w), atol=1e-12)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e12])  # of rows that say little, much, nearly all
@pytest.mark.parametrize("moves", [0, 1])
@pytest.mark.parametrize("d", [1, 3, 7])
def test_the_engines_agree(moves, d, size):
    rng = np.random.default_rng(d)
    rows = random_rows(rng, [5, 0, 17, 1], d, weight=1).sorted()
    X, y, offsets, mass, _ = rows
    # Well conditioned: to round statistics of 1e12 must not move answers by more than the bounds.
    root = np.eye(d) + 0.2 * rng.uniform(-1, 1, (4, d, d))
    gram, e, theta = (
        size * root @ np.swapaxes(root, 1, 2),
        rng.normal(size=(4, d)),
        rng.normal(size=(4, d)),
    )
    factor = np.eye(d) + 0.2 * np.tril(rng.uniform(-1, 1, (d, d)))
    steps = rows.steps(np.full(4, -1.0))
    for predicts in (0, 1):
        args = X, y, mass, offsets, steps, 0.8, gram, e, theta, factor, 0.5, moves, predicts, 2
        for found, wanted in zip(drift_pass(*args), drift_pass.reference(*args), strict=True):
            scale = np.abs(wanted).max(initial=1.0)
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9 * scale)
