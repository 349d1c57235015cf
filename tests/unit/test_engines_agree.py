"""The compiled core against its NumPy definitions, on random ragged tasks."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from condmeta.engine import compiled_core
from condmeta.inner.batch import batch_tasks
from condmeta.inner.online import OnlineState, online_tasks
from condmeta.losses import LOSSES, Squared
from condmeta.meta.sgd import SGDState, sgd_pass

core = compiled_core()
pytestmark = pytest.mark.skipif(core is None, reason="the compiled core was not built")

TOL = 1e-9
WIDTHS = [1, 3, 4, 7, 20, 33]  # below, at and beyond multiples of the vector length
LAMS = [0.01, 0.1, 1.0, 10.0]


def draw_tasks(d, k, loss, n_tasks=9, seed=0):
    """Return X, y, offsets, Phi, theta of ragged tasks: none, one, more and fewer points than d."""
    rng = np.random.default_rng([d, k, len(loss), seed])
    sizes = rng.integers(0, 12, n_tasks)
    sizes[:4] = 0, 1, 2 * d + 3, max(d - 1, 1)
    offsets = np.append(0, np.cumsum(sizes))
    X = rng.normal(size=(offsets[-1], d))
    y = X @ rng.normal(size=d) + rng.normal(size=len(X))
    if loss in ("hinge", "logistic"):
        y = np.where(y > 0, 1.0, -1.0)
    return X, y, offsets, rng.normal(size=(n_tasks, k)), 0.3 * rng.normal(size=(n_tasks, d))


def assert_close(got, want, tol=TOL):
    """Compare arrays relative to their largest entries."""
    for new, old in zip(got, want, strict=True):
        assert np.abs(new - old).max(initial=0.0) <= tol * np.abs(old).max(initial=1e-300)


def assert_same_bits(got, want):
    for new, old in zip(got, want, strict=True):
        assert np.array_equal(new, old)


@pytest.mark.parametrize("d", WIDTHS)
def test_online_tasks_agree(loss, d):
    X, y, offsets, _, theta = draw_tasks(d, 1, loss)
    row = LOSSES[loss]()
    for lam in LAMS:
        want, got = OnlineState.start(len(theta), d), OnlineState.start(len(theta), d)
        status = online_tasks.reference(theta, X, y, offsets, lam, row, *want, 1)
        assert core.online_tasks(theta, X, y, offsets, lam, row.native, *got, 1) == status
        if status < 0:
            assert_close(got, want)


def test_online_tasks_go_on_from_their_state(loss):
    """Points in two calls: the second one starts from the state that the first one left."""
    X, y, offsets, _, theta = draw_tasks(5, 1, loss)
    more_X, more_y, more, _, _ = draw_tasks(5, 1, loss, seed=1)
    row = LOSSES[loss]()
    want, got = OnlineState.start(len(theta), 5), OnlineState.start(len(theta), 5)
    for data in ((X, y, offsets), (more_X, more_y, more)):
        online_tasks.reference(theta, *data, 1.0, row, *want, 1)
        core.online_tasks(theta, *data, 1.0, row.native, *got, 2)
    assert_close(got, want)


@pytest.mark.parametrize("d", WIDTHS)
def test_batch_tasks_agree(loss, d):
    X, y, offsets, _, theta = draw_tasks(d, 1, loss)
    row = LOSSES[loss]()
    for lam in LAMS:
        want = batch_tasks.reference(theta, X, y, offsets, lam, row, 1e-6, 1)
        got = core.batch_tasks(theta, X, y, offsets, lam, row.native, 1e-6, 1)
        for part in (0, 1, 3):  # coef, gradient and slopes; the gap is certified below
            assert_close([got[part]], [want[part]])
        assert got[2].max() <= 1e-12 * (1 + np.abs(y).max() ** 2)


@pytest.mark.parametrize("d", WIDTHS)
def test_weighted_batch_tasks_agree(loss, d):
    X, y, offsets, _, theta = draw_tasks(d, 1, loss)
    row, weight = LOSSES[loss](), np.random.default_rng(d).uniform(0.1, 3.0, size=len(y))
    for lam in LAMS:
        want = batch_tasks.reference(theta, X, y, offsets, lam, row, 1e-6, 1, weight)
        got = core.batch_tasks(theta, X, y, offsets, lam, row.native, 1e-6, 1, weight)
        for part in (0, 1, 3):
            assert_close([got[part]], [want[part]])
        assert got[2].max() <= 1e-12 * (1 + np.abs(y).max() ** 2)
        assert np.isfinite(row.conjugate(got[3], y)).all()  # no slope beyond its bounds


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("at_average", [False, True])
@pytest.mark.parametrize("linear", [False, True])
def test_sgd_pass_agrees(loss, linear, at_average, batch):
    row = LOSSES[loss]()
    for d in WIDTHS:
        for k in (0, 1, 5):
            X, y, offsets, Phi, _ = draw_tasks(d, k, loss)
            data = X, y, offsets, Phi, 0.1 if batch else 1.0
            rest = 0.05, linear, at_average, batch, 1e-6
            want, got = SGDState.start(k, d), SGDState.start(k, d)
            assert sgd_pass.reference(*want, *data, row, *rest) == -1
            assert core.sgd_pass(*got, *data, row.native, *rest) == -1
            assert_close(got, want)


def test_divergence_has_the_same_status():
    X, y, offsets, Phi, theta = draw_tasks(20, 5, "squared", n_tasks=40)
    X, row = 30 * X, Squared()
    want, got = OnlineState.start(40, 20), OnlineState.start(40, 20)
    status = online_tasks.reference(theta, X, y, offsets, 0.01, row, *want, 1)
    assert status >= 0
    for n_jobs in (1, 3):
        got = OnlineState.start(40, 20)
        assert core.online_tasks(theta, X, y, offsets, 0.01, row.native, *got, n_jobs) == status
    want, got = SGDState.start(5, 20), SGDState.start(5, 20)
    data, rest = (X, y, offsets, Phi, 0.01), (0.1, False, False, False, 1e-6)
    status = sgd_pass.reference(*want, *data, row, *rest)
    assert status >= 0
    assert core.sgd_pass(*got, *data, row.native, *rest) == status
    assert_close(got, want)


@pytest.mark.parametrize("batch", [False, True])
def test_not_a_number_is_a_status(batch):
    """Non-finite data end in a status or in NaN, never in a hang or a finite answer."""
    X, y, offsets, Phi, theta = draw_tasks(4, 1, "absolute")
    X = X.copy()
    X[-1] = np.nan
    last = int(np.flatnonzero(np.diff(offsets))[-1])
    for name in LOSSES:
        row = LOSSES[name]().native
        state = SGDState.start(1, 4)
        rest = 0.1, False, False, batch, 1e-6
        assert core.sgd_pass(*state, X, y, offsets, Phi, 1.0, row, *rest) == last
        assert all(np.isfinite(array).all() for array in state)
        assert np.isnan(core.batch_tasks(theta, X, y, offsets, 1.0, row, 1e-6, 1)[2][last])


def test_threads_give_the_same_bits(loss):
    X, y, offsets, _, theta = draw_tasks(7, 1, loss, n_tasks=101)
    row = LOSSES[loss]().native
    states, solutions = [], []
    for n_jobs in (1, 2, 5, 200):
        states.append(OnlineState.start(101, 7))
        core.online_tasks(theta, X, y, offsets, 1.0, row, *states[-1], n_jobs)
        solutions.append(core.batch_tasks(theta, X, y, offsets, 0.1, row, 1e-6, n_jobs))
    for state, solution in zip(states, solutions, strict=True):
        assert_same_bits(state, states[0])
        assert_same_bits(solution, solutions[0])


@pytest.mark.parametrize("at_average", [False, True])
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("d", [7, 20])
def test_a_stream_in_chunks_gives_the_same_bits(loss, d, batch, at_average):
    X, y, offsets, Phi, _ = draw_tasks(d, 3, loss, n_tasks=23)
    row = LOSSES[loss]().native
    rest = row, 0.05, False, at_average, batch, 1e-6
    whole, parts = SGDState.start(3, d), SGDState.start(3, d)
    assert core.sgd_pass(*whole, X, y, offsets, Phi, 1.0, *rest) == -1
    for lo, hi in ((0, 1), (1, 4), (4, 4), (4, 11), (11, 23)):
        assert core.sgd_pass(*parts, X, y, offsets[lo : hi + 1], Phi[lo:hi], 1.0, *rest) == -1
    assert_same_bits(parts, whole)


DEGENERATE = {
    "zero rows": lambda X, y: (X * (np.arange(len(X)) % 2)[:, None], y),
    "no information": lambda X, y: (0 * X, y),
    "duplicate rows": lambda X, y: (np.repeat(X[: len(X) // 2], 2, axis=0), y),
    "exact fit": lambda X, y: (X, X @ np.arange(1.0, 1 + X.shape[1])),
    "integers": lambda X, y: (np.sign(X), np.round(y)),
    "constant target": lambda X, y: (X, 0 * y + 3),
    "large scale": lambda X, y: (X, 1e8 * y),
    "small scale": lambda X, y: (1e-6 * X, 1e-6 * y),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize(("n", "d"), [(2, 1), (10, 20), (24, 3), (60, 7)])
def test_degenerate_tasks_are_certified(loss, case, n, d):
    rng = np.random.default_rng([n, d])
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    X, y = DEGENERATE[case](X, y)
    row = LOSSES[loss]()
    if row.signed:
        y = np.where(y > 0, 1.0, -1.0)
    theta = rng.normal(size=(1, d))
    for lam in LAMS:
        gap = core.batch_tasks(theta, X, y, np.array([0, n]), lam, row.native, 1e-6, 1)[2][0]
        assert gap <= 1e-6 * np.mean(row.value(X @ theta[0], y))


def test_inputs_may_be_read_only_and_are_left_alone():
    X, y, offsets, Phi, theta = draw_tasks(4, 2, "huber")
    inputs = X, y, offsets, Phi, theta
    before = [array.copy() for array in inputs]
    for array in inputs:
        array.flags.writeable = False
    row = LOSSES["huber"]().native
    core.sgd_pass(
        *SGDState.start(2, 4), X, y, offsets, Phi, 1.0, row, 0.1, False, False, True, 1e-6
    )
    core.batch_tasks(theta, X, y, offsets, 1.0, row, 1e-6, 2)
    assert_same_bits(inputs, before)


def solve(X, y, offsets, theta, row=(0.0, 0.0, -1.0, 1.0, False)):
    return core.batch_tasks(theta, X, y, offsets, 1.0, row, 1e-6, 1)


def test_wrong_dtypes_are_refused():
    X, y, offsets, _, theta = draw_tasks(4, 1, "absolute")
    for wrong in (
        (X.astype(np.float32), y, offsets, theta),
        (np.asfortranarray(X), y, offsets, theta),
        (X, y.astype(int), offsets, theta),
        (X, y, offsets.astype(np.int32), theta),
        (X, y, offsets.astype(float), theta),
        (X, y, offsets, theta[0]),
        (None, y, offsets, theta),
    ):
        with pytest.raises(TypeError):
            solve(*wrong)
    with pytest.raises(TypeError):
        solve(X, y, offsets, theta, (1.0, 2.0))
    state = OnlineState.start(len(theta), 4)
    state.slope_sum.flags.writeable = False
    row = LOSSES["absolute"]().native
    with pytest.raises(TypeError):
        core.online_tasks(theta, X, y, offsets, 1.0, row, *state, 1)


def test_wrong_shapes_are_refused():
    X, y, offsets, Phi, theta = draw_tasks(4, 1, "absolute")
    falling, beyond, negative = offsets.copy(), offsets.copy(), offsets.copy()
    falling[3], beyond[-1], negative[0] = falling[2] - 1, len(X) + 1, -1
    for wrong in (
        (X, y[:-1], offsets, theta),
        (X, y, offsets, theta[:-1]),
        (X[:, :3].copy(), y, offsets, theta),
        (X, y, falling, theta),
        (X, y, beyond, theta),
        (X, y, negative, theta),
        (X, y, offsets[:0], theta),
    ):
        with pytest.raises(ValueError, match="must"):
            solve(*wrong)
    row = LOSSES["absolute"]().native
    with pytest.raises(ValueError, match="'grad_sum' must have shape"):
        core.sgd_pass(
            *SGDState.start(2, 4), X, y, offsets, Phi, 1.0, row, 0.1, False, False, False, 1e-6
        )


ACROSS = """
import sys
import numpy as np
from condmeta.engine import instruction_set
from condmeta.inner.batch import batch_tasks
from condmeta.inner.online import OnlineState, online_tasks
from condmeta.losses import LOSSES
data = np.load(sys.argv[1])
X, y, offsets, theta = (data[name] for name in ("X", "y", "offsets", "theta"))
out = {"isa": instruction_set()}
for name, loss in LOSSES.items():
    target = np.where(y > 0, 1.0, -1.0) if loss().signed else y
    state = OnlineState.start(len(theta), X.shape[1])
    online_tasks(theta, X, target, offsets, 1.0, loss(), *state, 2)
    solved = batch_tasks(theta, X, target, offsets, 0.1, loss(), 1e-6, 2)
    out[name] = np.concatenate([state.path_sum, state.slope_sum, solved[0], solved[1]])
np.savez(sys.argv[2], **out)
"""


def test_instruction_sets_agree(tmp_path):
    X, y, offsets, _, theta = draw_tasks(20, 1, "absolute")
    np.savez(tmp_path / "in.npz", X=X, y=y, offsets=offsets, theta=theta)
    results = {}
    for isa in ("baseline", "v3", "v4", "unknown"):
        env = {**os.environ, "CONDMETA_ISA": isa, "CONDMETA_ENGINE": "native"}
        command = [sys.executable, "-c", ACROSS, tmp_path / "in.npz", tmp_path / f"{isa}.npz"]
        subprocess.run(command, env=env, check=True)
        results[isa] = np.load(tmp_path / f"{isa}.npz")
    assert results["baseline"]["isa"] == "baseline"
    assert results["unknown"]["isa"] in ("baseline", "x86-64-v3", "x86-64-v4")
    for name in LOSSES:
        for result in results.values():
            assert_close([result[name]], [results["baseline"][name]])
