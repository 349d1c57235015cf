"""The kernel form of Algorithm 1 against reference runs, explicit features, and itself."""

import tracemalloc

import numpy as np
import pytest
from helpers import D1, D2, native

from condmeta.engine import compiled_core
from condmeta.kernels import GaussianKernel, LaplaceKernel, LinearKernel, MeanEmbedding, PointSets
from condmeta.losses import get_loss
from condmeta.meta.kernel_sgd import (
    kernel_pass,
    kernel_theta,
    learning_curve,
    squared_norm,
    task_weights,
)
from condmeta.meta.sgd import AVERAGING, SGDState, sgd_pass

core = compiled_core()
KERNELS = [LinearKernel(), GaussianKernel(1.7), LaplaceKernel(1.7)]
TOL = 1e-9


def draw(T, d, p, loss="absolute", seed=0):
    """Return sides, X, y, offsets of ragged tasks."""
    rng = np.random.default_rng([seed, T, d, p])
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 7, size=T))])
    X = rng.normal(size=(offsets[-1], d))
    y = X @ rng.normal(size=d) + rng.normal(size=len(X))
    if loss in ("hinge", "logistic"):
        y = np.where(y > 0, 1.0, -1.0)
    return rng.normal(size=(T, p)), X, y, offsets


def gradients(sides, X, y, offsets, kernel, batch=False, loss="absolute", run=kernel_pass):
    """Return the meta-gradients (T, d) of a run at lam = 0.5, meta_step = 0.25."""
    G = np.zeros((len(sides), X.shape[1]))
    tol = 1e-13 if batch else 0.0
    status = run(sides, G, 0, X, y, offsets, kernel, 0.5, get_loss(loss), 0.25, batch, tol)
    assert status == -1
    return G


REFERENCE = {
    True: (
        [(-0.5333333333, 0.1333333333), (-0.1334404778, -0.3885317407),
         (-0.1186435226, -0.1934104804), (0.06, -0.22)],
        (0.4414815621, 0.1268449413), (0.6451864606, 0.5946610066),
    ),
    False: (
        [(-0.6666666667, 0), (-0.025, -0.75), (-0.1666666667, -0.0333333333), (0.06, -0.22)],
        (0.4928760503, 0.3409368168), (0.7100379792, 0.8923650595),
    ),
}  # fmt: skip


@pytest.mark.parametrize("batch", [True, False])
def test_reference_run(engine, batch):
    parts = [D1[:2], (D2[0][:4], D2[1][:4]), (D2[0][:3], D2[1][:3]), D2[:2]]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    S, G = np.array([(0.0, 0), (1, 0), (0, 1), (1, 1)]), np.zeros((4, 2))
    offsets, kernel, s = np.array([0, 3, 7, 10, 15]), GaussianKernel(), np.array([[0.5, 0.5]])
    loss = get_loss("absolute")
    assert kernel_pass(S, G, 0, X, y, offsets, kernel, 0.8, loss, 0.5, batch, 1e-13) == -1
    want, uniform, last = REFERENCE[batch]
    np.testing.assert_allclose(G, want, atol=1e-9)
    for averaging, tau in (("uniform", uniform), ("last", last)):
        C = task_weights(4, 0.5, averaging)[:, None] * G
        np.testing.assert_allclose(kernel_theta(s, S, C, kernel, 1)[0], tau, atol=1e-9)


@pytest.mark.parametrize("batch", [True, False])
def test_linear_kernel_is_algorithm_1_at_every_prefix(engine, batch):
    """Also the two sums of the learning curve, and the norm."""
    T, kernel = 40, LinearKernel()
    sides, X, y, offsets = draw(T, 4, 3)
    new = np.random.default_rng(1).normal(size=(5, 3))
    G = gradients(sides, X, y, offsets, kernel, batch)
    curves = {how: list(learning_curve(new, sides, G, kernel, 0.25, how)) for how in AVERAGING}
    explicit = {how: SGDState.start(3, 4) for how in AVERAGING}
    for t in range(T):
        rows = slice(offsets[t], offsets[t + 1])
        task = X[rows], y[rows], offsets[t : t + 2] - offsets[t], sides[t : t + 1]
        for how, state in explicit.items():
            linear, tol = how == "linear", 1e-13 if batch else 0.0
            sgd_pass(*state, *task, 0.5, get_loss("absolute"), 0.25, linear, False, batch, tol)
            W = state.map(0.25, how)
            C = task_weights(t + 1, 0.25, how)[:, None] * G[: t + 1]
            tau = new @ W[:-1] + W[-1]
            close = {"rtol": 1e-10, "atol": 1e-10}
            got = kernel_theta(new, sides[: t + 1], C, kernel, 1)
            np.testing.assert_allclose(got, tau, **close)
            np.testing.assert_allclose(curves[how][t], tau, **close)
            np.testing.assert_allclose(C.sum(axis=0), W[-1], **close)
            assert squared_norm(sides[: t + 1], C, kernel) == pytest.approx(
                np.sum(W**2), rel=1e-10, abs=1e-14
            )


@pytest.mark.parametrize("kernel", [*KERNELS, MeanEmbedding()], ids=lambda k: type(k).__name__)
def test_curve_equals_fits_on_prefixes(engine, kernel):
    sides, X, y, offsets = draw(70, 3, 2)
    new = sides[:4] + 0.1
    if isinstance(kernel, MeanEmbedding):
        sides, new = PointSets(X, offsets), PointSets(X[:7], [0, 1, 5, 7])
    G = gradients(sides, X, y, offsets, kernel)
    curve = list(learning_curve(new, sides, G, kernel, 0.25))
    for T in (1, 2, 33, 64, 65, 70):
        some = sides[:T], X[: offsets[T]], y[: offsets[T]], offsets[: T + 1]
        prefix = gradients(*some, kernel)
        np.testing.assert_allclose(prefix, G[:T], rtol=1e-12, atol=1e-12)
        C = task_weights(T, 0.25)[:, None] * prefix
        tau = kernel_theta(new, sides[:T], C, kernel, 1)
        np.testing.assert_allclose(curve[T - 1], tau, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(curve[0], 0.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("batch", [True, False])
def test_a_stream_cut_into_calls_ends_in_the_same_bits(engine, kernel, batch):
    T, loss, tol = 150, get_loss("absolute"), 1e-13 if batch else 0.0
    sides, X, y, offsets = draw(T, 5, 3)
    whole = gradients(sides, X, y, offsets, kernel, batch)
    G = np.zeros_like(whole)
    for start, stop in ((0, 1), (1, 3), (3, 62), (62, 67), (67, 128), (128, 150)):
        rows = slice(offsets[start], offsets[stop])
        task = X[rows], y[rows], offsets[start : stop + 1] - offsets[start]
        part = np.ascontiguousarray(G[:stop])
        kernel_pass(sides[:stop], part, start, *task, kernel, 0.5, loss, 0.25, batch, tol)
        G[:stop] = part
    np.testing.assert_array_equal(G, whole)


def test_a_diverging_pass_is_a_status(engine):
    rng = np.random.default_rng(0)
    X, y, S, G = rng.normal(size=(40, 20)), rng.normal(size=40), np.zeros((2, 1)), np.zeros((2, 20))
    loss, offsets = get_loss("squared"), np.array([0, 20, 40])
    data = S, G, 0, X, y, offsets, GaussianKernel()
    assert kernel_pass(*data, 1e-3, loss, 0.1, False, 0.0) == 0


def test_memory_stays_linear_in_the_tasks():
    """32 rows of kernel values, gradients and side information; the whole Gram is 15 times that."""
    T = 1500
    sides, X, y, offsets = draw(T, 3, 2)
    G, kernel = np.zeros((T, 3)), GaussianKernel()
    kernel_pass.reference(*draw(50, 3, 2)[:1], G[:50], 0, *draw(50, 3, 2)[1:], kernel, 0.5,
                          get_loss("absolute"), 0.25, False, 0.0)  # fmt: skip
    tracemalloc.start()
    kernel_pass.reference(
        sides, G, 0, X, y, offsets, kernel, 0.5, get_loss("absolute"), 0.25, False, 0.0
    )
    kernel_theta.reference(sides, sides, G, kernel, 1)
    for _ in learning_curve(sides[:20], sides, G, kernel, 0.25):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * T * T / 5


# -- the compiled twin -----------------------------------------------------------------------------


@native
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("batch", [True, False])
def test_engines_agree_for_every_loss(loss, kernel, batch):
    for d, p in ((1, 1), (4, 0), (5, 3), (20, 2), (37, 9)):
        data = draw(20 if batch else 70, d, p, loss)
        want = gradients(*data, kernel, batch, loss, kernel_pass.reference)
        got = gradients(*data, kernel, batch, loss)
        assert np.abs(got - want).max() <= TOL * np.abs(want).max()


@native
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("T", [0, 1, 64, 131])
def test_engines_agree_on_sums(kernel, T):
    for d, p, V in ((1, 1, 1), (4, 0, 3), (6, 3, 70), (37, 9, 129)):
        rng = np.random.default_rng([T, d])
        rows, sides, C = rng.normal(size=(V, p)), rng.normal(size=(T, p)), rng.normal(size=(T, d))
        want = kernel_theta.reference(rows, sides, C, kernel, 1)
        one, two = (core.kernel_theta(rows, sides, C, kernel.native, jobs) for jobs in (1, 3))
        np.testing.assert_allclose(one, want, rtol=TOL, atol=TOL)
        np.testing.assert_array_equal(one, two)
        alone = core.kernel_theta(rows[-1:], sides, C, kernel.native, 1)
        np.testing.assert_array_equal(alone[0], one[-1])


@native
def test_far_tasks_do_not_disturb_the_twin():
    sides = np.array([[0.0], [1e200], [30.0]])
    got = core.kernel_theta(sides, sides, np.eye(3), GaussianKernel().native, 1)
    np.testing.assert_allclose(got, 1 + np.eye(3), atol=1e-12)


@native
def test_shapes_are_checked():
    S, G, X = np.zeros((3, 2)), np.zeros((3, 4)), np.zeros((3, 4))
    rest = (1, 0.5), 1.0, get_loss("absolute").native, 0.1, False, 0.0
    offsets = np.array([0, 1, 2, 3])
    with pytest.raises(ValueError, match="a row for each task"):
        core.kernel_pass(S, G, 1, X, np.zeros(3), offsets, *rest)
    with pytest.raises(ValueError, match=r"'gradients' must have shape \(3, 4\)"):
        core.kernel_pass(S, G[:, :3].copy(), 0, X, np.zeros(3), offsets, *rest)
    with pytest.raises(ValueError, match="at least one point"):
        core.kernel_pass(S, G, 0, X, np.zeros(3), np.array([0, 1, 1, 3]), *rest)
    with pytest.raises(ValueError, match="of kind 0, 1 or 2"):
        core.kernel_pass(S, G, 0, X, np.zeros(3), offsets, (3, 1.0), *rest[1:])
    with pytest.raises(ValueError, match=r"'rows' must have shape \(3, 2\)"):
        core.kernel_theta(np.zeros((3, 1)), S, G, (1, 0.5), 1)
