"""The compiled grid kernels against their NumPy definitions, and a grid against single runs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from condmeta.engine import compiled_core
from condmeta.inner.online import OnlineState, online_tasks
from condmeta.inner.scores import row_scores
from condmeta.losses import LOSSES, Absolute, Squared
from condmeta.meta.grid import GridPoints, grid_curves, grid_score, grid_train
from condmeta.meta.sgd import SGDState, sgd_pass

core = compiled_core()
native = pytest.mark.skipif(core is None, reason="the compiled core was not built")

TOL = 1e-9
ALONG = [(False, False), (True, False), (False, True)]  # linear, at_average
TWINS = {"grid_train": grid_train, "grid_score": grid_score, "grid_curves": grid_curves}


class Problem(NamedTuple):
    """Ragged training tasks and evaluation tasks, the first two of them without support."""

    train: GridPoints
    Phi: np.ndarray
    support: GridPoints
    query: GridPoints
    Phi_held: np.ndarray
    group: np.ndarray
    lam: np.ndarray
    meta_step: np.ndarray


def draw_points(rng, sizes, d, signed) -> GridPoints:
    offsets = np.append(0, np.cumsum(sizes))
    X = rng.normal(size=(offsets[-1], d))
    y = X @ rng.normal(size=d) + rng.normal(size=len(X))
    return GridPoints(X, np.where(y > 0, 1.0, -1.0) if signed else y, offsets)


def draw(loss, d=3, k=2, L=5, T=9, V=12, seed=0) -> Problem:
    rng = np.random.default_rng([d, k, L, len(loss), seed])
    signed = LOSSES[loss]().signed
    sizes, judged = rng.integers(1, 14, V), rng.integers(1, 14, V)
    sizes[:2] = 0
    return Problem(
        draw_points(rng, rng.integers(1, 14, T), d, signed), rng.normal(size=(T, k)),
        draw_points(rng, sizes, d, signed), draw_points(rng, judged, d, signed),
        rng.normal(size=(V, k)), rng.permutation(np.arange(V) % 3),
        10 ** rng.uniform(0.5, 2, L), 10 ** rng.uniform(-3, -1, L),
    )  # fmt: skip


def call(name, engine, *args):
    """Call a twin on one engine; a loss among the arguments is handed over as its row."""
    if engine == "numpy":
        return TWINS[name].reference(*args)
    return getattr(core, name)(*(arg.native if hasattr(arg, "native") else arg for arg in args))


def start(problem):
    (T, k), d, L = problem.Phi.shape, problem.train.X.shape[1], len(problem.lam)
    sums = np.zeros((k + 1, d, L)), np.zeros((k + 1, d, L)), np.zeros(k + 1)
    return *sums, np.zeros((T, d, L))


def train(problem, engine, row, linear=False, at_average=False, n_jobs=1):
    """Return grad_sum, weighted_sum, phi_sum and the gradients."""
    *state, gradients = start(problem)
    pairs = problem.lam, problem.meta_step
    rest = row, linear, at_average, gradients, n_jobs
    call("grid_train", engine, *state, *problem.train, problem.Phi, *pairs, *rest)
    return *state, gradients


def curves(problem, engine, gradients, row, linear=False, at_average=False, n_jobs=1):
    kk = problem.Phi @ problem.Phi_held.T + 1.0
    points = *problem.support, *problem.query
    pairs = problem.lam, problem.meta_step
    rest = problem.group, 3, *pairs, row, linear, at_average, n_jobs
    return call("grid_curves", engine, gradients, kk, *points, *rest)


def score(problem, engine, theta, row, n_jobs=1):
    points = *problem.support, *problem.query
    return call("grid_score", engine, theta, *points, problem.lam, row, n_jobs)


def draw_theta(problem):
    shape = len(problem.Phi_held), problem.train.X.shape[1], len(problem.lam)
    return np.random.default_rng(1).normal(size=shape)


def everything(problem, engine, row, linear=False, at_average=False, n_jobs=1):
    """Return all that the three functions compute, each from the same inputs on any engine."""
    trained = train(problem, engine, row, linear, at_average, n_jobs)
    gradients = np.random.default_rng(2).normal(size=trained[-1].shape)
    return [
        *trained,
        curves(problem, engine, gradients, row, linear, at_average, n_jobs),
        score(problem, engine, draw_theta(problem), row, n_jobs),
    ]


def assert_close(got, want, tol=TOL):
    for new, old in zip(got, want, strict=True):
        assert new.shape == old.shape
        assert np.abs(new - old).max(initial=0.0) <= tol * np.abs(old).max(initial=1e-300)


def assert_same_bits(got, want):
    for new, old in zip(got, want, strict=True):
        assert np.array_equal(new, old, equal_nan=True)


@native
@pytest.mark.parametrize(("linear", "at_average"), ALONG)
@pytest.mark.parametrize("d", [1, 3, 20, 33])
def test_engines_agree(loss, d, linear, at_average):
    row = LOSSES[loss]()
    for L in (1, 3, 8, 13, 21):
        problem = draw(loss, d, k=L % 3, L=L)
        want = everything(problem, "numpy", row, linear, at_average)
        assert all(np.isfinite(array).all() for array in want)
        assert_close(everything(problem, "native", row, linear, at_average), want)


@native
def test_engines_agree_on_the_grid_of_the_paper():
    values = np.geomspace(1e-2, 1e2, 14)
    lam, meta_step = (side.ravel() for side in np.meshgrid(values, values))
    problem = draw("absolute", d=5, k=5, T=21, V=6)._replace(lam=lam, meta_step=meta_step)
    assert_close(
        everything(problem, "native", Absolute()), everything(problem, "numpy", Absolute())
    )


@native
def test_a_long_curve_agrees(loss):
    """More steps than the kernel keeps gradients of, and more tasks than it keeps sums of."""
    problem = draw(loss, d=33, k=1, L=2, T=211, V=150)
    row = LOSSES[loss]()
    gradients = np.random.default_rng(0).normal(size=(211, 33, 2))
    assert_close(
        [curves(problem, "native", gradients, row, n_jobs=2)],
        [curves(problem, "numpy", gradients, row)],
    )


@native
def test_threads_give_the_same_bits(loss):
    problem, row = draw(loss, d=7, L=37, V=40), LOSSES[loss]()
    alone = everything(problem, "native", row)
    for n_jobs in (2, 5, 100):
        assert_same_bits(everything(problem, "native", row, n_jobs=n_jobs), alone)


def test_equal_pairs_have_equal_results(loss, engine):
    """Wherever a pair stands among the lanes; the NumPy engine's products may round differently."""
    problem, row = draw(loss, d=6, L=29), LOSSES[loss]()
    same = problem._replace(lam=np.full(29, 7.0), meta_step=np.full(29, 0.02))
    *sums, gradients = train(same, engine, row)
    theta = np.repeat(draw_theta(problem)[:, :, :1], 29, axis=2)
    found = [sums[0], sums[1], gradients, curves(same, engine, gradients, row),
             score(same, engine, theta, row)]  # fmt: skip
    for array in found:
        if engine == "native":
            assert np.array_equal(array, np.repeat(array[..., :1], 29, axis=-1))
        else:
            assert_close([array], [np.repeat(array[..., :1], 29, axis=-1)], 1e-12)


@pytest.mark.parametrize(("linear", "at_average"), ALONG)
def test_a_grid_is_its_pairs_run_one_by_one(loss, engine, linear, at_average):
    problem, row = draw(loss, d=4, k=2, L=3), LOSSES[loss]()
    A, B, phi_sum, gradients = train(problem, engine, row, linear, at_average)
    errors = curves(problem, engine, gradients, row, linear, at_average)
    T = len(problem.Phi)
    names = "linear" if linear else "uniform", "average" if at_average else "current"
    for lane, (lam, step) in enumerate(zip(problem.lam, problem.meta_step, strict=True)):
        state, curve = SGDState.start(2, 4), []
        for t in range(T):
            at = problem.train.offsets[t : t + 2]
            assert sgd_pass(
                *state, *problem.train[:2], at, problem.Phi[t : t + 1], lam, row, step, linear,
                at_average, False, 1e-6,
            ) == -1  # fmt: skip
            curve.append(one_by_one(problem, state.map(step, *names), lam, row))
        assert_close([A[..., lane], B[..., lane], phi_sum], state)
        assert_close([errors[:, :, lane]], [np.transpose(curve)])


def one_by_one(problem, W, lam, row):
    """Return the mean query loss of each group, its tasks adapted by the map W."""
    theta = problem.Phi_held @ W[:-1] + W[-1]
    state = OnlineState.start(*theta.shape)
    assert online_tasks(theta, *problem.support, lam, row, *state, 1) == -1
    X, y, offsets = problem.query
    task = np.repeat(np.arange(len(theta)), np.diff(offsets))
    lost = row.value(np.einsum("ij,ij->i", X, state.coef(theta, lam)[task]), y)
    means = np.bincount(task, lost) / np.diff(offsets)
    return [means[problem.group == c].mean() for c in range(3)]


@native
def test_engines_agree_in_which_slopes_are_zero():
    """Inputs -1 and 1, whole labels and lam a power of two: many residuals are exactly zero."""
    rng = np.random.default_rng(5)
    n, T, L = 6, 60, 9
    X = np.empty((T, n, n))
    for t in range(T):
        while abs(np.linalg.det(rows := rng.choice([-1.0, 1.0], (n, n)))) < 0.5:
            pass
        X[t] = rows
    y = rng.integers(-2, 3, T * n).astype(float)
    train_points = GridPoints(X.reshape(-1, n), y, np.arange(T + 1) * n)
    problem = draw("absolute", d=n, k=1)._replace(
        train=train_points, Phi=np.ones((T, 1)),
        lam=2.0 ** rng.integers(-1, 3, L), meta_step=2.0 ** rng.integers(-2, 1, L),
    )  # fmt: skip
    slopes = []
    for name in ("numpy", "native"):
        gradients = train(problem, name, Absolute())[-1]  # g = X^T s / n gives s
        found = np.linalg.solve(np.swapaxes(X, 1, 2), n * gradients)
        assert np.abs(found - found.round()).max() < 1e-9
        slopes.append(found.round())
    assert (slopes[0] == 0).sum() > 20
    assert np.array_equal(*slopes)


def test_diverging_pairs_do_not_touch_the_others(engine):
    problem, row = draw("squared", d=6, L=7), Squared()
    problem.train.X[:] *= 10
    problem.support.X[:] *= 10
    lam = np.where(np.arange(7) % 2, 1e-4, 1e5)
    problem = problem._replace(lam=lam, meta_step=np.full(7, 1e-4))
    trained = train(problem, engine, row)
    errors = (
        curves(problem, engine, trained[-1], row),
        score(problem, engine, draw_theta(problem), row),
    )
    for array in (*trained[:2], trained[-1]):
        assert np.isnan(array[..., 1::2]).any()
    # Before the first gradient is used all tasks without support are finite, others diverge.
    assert np.isinf(errors[0][:, 1:, 1::2]).all()
    assert np.isinf(errors[1][2:, 1::2]).any()
    assert not any(np.isnan(array).any() for array in errors)
    sane = problem._replace(lam=lam[::2].copy(), meta_step=problem.meta_step[::2].copy())
    again = train(sane, engine, row)
    for new, old in zip([*again[:2], again[-1]], [*trained[:2], trained[-1]], strict=True):
        assert np.isfinite(new).all()
        assert_close([new], [old[..., ::2]], 1e-12)
    assert_close([curves(sane, engine, again[-1], row)], [errors[0][..., ::2]], 1e-12)


@native
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_lanes_that_are_not_finite_have_infinite_errors(loss, bad):
    """From the step on at which a gradient is not finite, on both engines and in all groups."""
    problem, row = draw(loss, d=3, L=6, T=23), LOSSES[loss]()
    gradients = np.random.default_rng(0).normal(size=(23, 3, 6))
    clean = curves(problem, "numpy", gradients, row)
    gradients[10, 1, 2] = bad
    theta = draw_theta(problem)
    theta[:, 2, 4] = np.nan
    for name in ("numpy", "native"):
        found = curves(problem, name, gradients, row)
        assert np.isinf(found[:, 10:, 2]).all()
        found[:, 10:, 2] = clean[:, 10:, 2]
        assert_close([found], [clean])
        errors = score(problem, name, theta, row)
        assert np.isinf(errors[:, 4]).all()
        assert np.isfinite(np.delete(errors, 4, axis=1)).all()


@native
def test_gradients_need_not_be_kept(loss):
    problem, row = draw(loss), LOSSES[loss]()
    want = train(problem, "native", row)
    *state, gradients = start(problem)
    pairs = problem.lam, problem.meta_step
    call("grid_train", "native", *state, *problem.train, problem.Phi, *pairs, row, False, False,
         gradients[:0], 1)  # fmt: skip
    assert_same_bits(state, want[:3])


@native
@pytest.mark.parametrize("at_average", [False, True])
def test_a_grid_in_parts_is_the_whole(loss, at_average):
    problem, row = draw(loss), LOSSES[loss]()
    want = train(problem, "native", row, at_average=at_average)
    *state, gradients = start(problem)
    pairs = problem.lam, problem.meta_step
    for lo, hi in ((0, 1), (1, 5), (5, 9)):
        call("grid_train", "native", *state, *problem.train[:2], problem.train.offsets[lo : hi + 1],
             problem.Phi[lo:hi], *pairs, row, False, at_average, gradients[lo:hi], 1)  # fmt: skip
    assert_close([*state, gradients], want, 1e-14)


@native
def test_nothing_to_do_is_done():
    problem = draw("absolute", L=4)
    none = problem._replace(lam=np.empty(0), meta_step=np.empty(0))
    for name in ("numpy", "native"):
        theta = np.empty((len(problem.Phi_held), 3, 0))
        assert score(none, name, theta, Absolute()).shape == (12, 0)
    assert core.grid_score(
        np.empty((0, 3, 2)), *empty(3), *empty(3), np.ones(2), Absolute().native, 1
    ).shape == (0, 2)
    train(none, "native", Absolute())
    found = curves(none, "native", np.empty((9, 3, 0)), Absolute())
    assert found.shape == (3, 9, 0)


def empty(d):
    return GridPoints(np.empty((0, d)), np.empty(0), np.zeros(1, dtype=np.int64))


def test_a_task_without_query_points_adds_nothing(engine):
    problem = draw("absolute")
    cut = np.minimum(problem.query.offsets, problem.query.offsets[-2])
    problem = problem._replace(query=GridPoints(*problem.query[:2], cut))
    assert np.all(score(problem, engine, draw_theta(problem), Absolute())[-1] == 0.0)


@native
def test_a_loss_of_ones_own_runs_on_the_numpy_engine():
    class Own:
        lipschitz = 1.0

        def value(self, z, y):
            return np.abs(z - y)

        def slope(self, z, y):
            return np.sign(z - y)

    problem = draw("absolute")
    found = grid_score(draw_theta(problem), *problem.support, *problem.query, problem.lam, Own(), 1)
    assert_close([found], [score(problem, "native", draw_theta(problem), Absolute())])


@native
def test_inputs_may_be_read_only_and_are_left_alone():
    problem = draw("huber")
    inputs = [*problem.train, problem.Phi, *problem.support, *problem.query, problem.group,
              problem.lam, problem.meta_step]  # fmt: skip
    before = [array.copy() for array in inputs]
    for array in inputs:
        array.flags.writeable = False
    everything(problem, "native", LOSSES["huber"](), n_jobs=2)
    assert_same_bits(inputs, before)


def train_args(**changed):
    problem = draw("absolute")
    A, B, phi_sum, gradients = start(problem)
    X, y, offsets = problem.train
    args = {
        "grad_sum": A,
        "weighted_sum": B,
        "phi_sum": phi_sum,
        "X": X,
        "y": y,
        "offsets": offsets,
        "Phi": problem.Phi,
        "lam": problem.lam,
        "meta_step": problem.meta_step,
        "loss": Absolute().native,
        "linear": False,
        "at_average": False,
        "gradients": gradients,
        "n_jobs": 1,
    }
    return tuple((args | changed).values())


def curve_args(**changed):
    problem = draw("absolute")
    X, y, offsets = problem.support
    Xq, yq, offsets_q = problem.query
    args = {
        "gradients": np.zeros((9, 3, 5)),
        "kk": np.zeros((9, 12)),
        "X": X,
        "y": y,
        "offsets": offsets,
        "Xq": Xq,
        "yq": yq,
        "offsets_q": offsets_q,
        "group": problem.group,
        "n_groups": 3,
        "lam": problem.lam,
        "meta_step": problem.meta_step,
        "loss": Absolute().native,
        "linear": False,
        "at_average": False,
        "n_jobs": 1,
    }
    return tuple((args | changed).values())


def score_args(**changed):
    problem = draw("absolute")
    X, y, offsets = problem.support
    Xq, yq, offsets_q = problem.query
    args = {
        "theta": draw_theta(problem),
        "X": X,
        "y": y,
        "offsets": offsets,
        "Xq": Xq,
        "yq": yq,
        "offsets_q": offsets_q,
        "lam": problem.lam,
        "loss": Absolute().native,
        "n_jobs": 1,
    }
    return tuple((args | changed).values())


ARGS = {"grid_train": train_args, "grid_curves": curve_args, "grid_score": score_args}
WRONG_SHAPES = {
    "grid_train": [
        {"y": np.zeros(3)}, {"Phi": np.zeros((8, 2))}, {"Phi": np.zeros((9, 3))},
        {"lam": np.ones(4)}, {"meta_step": np.ones(6)}, {"phi_sum": np.zeros(2)},
        {"grad_sum": np.zeros((3, 3, 4))}, {"weighted_sum": np.zeros((3, 2, 5))},
        {"gradients": np.zeros((8, 3, 5))}, {"gradients": np.zeros((0, 3, 4))},
        {"offsets": np.zeros(10, dtype=np.int64)}, {"offsets": np.arange(10) - 1},
        {"offsets": np.arange(10)[::-1].copy()}, {"offsets": np.arange(10) + 1000},
        {"offsets": np.zeros(0, dtype=np.int64)},
    ],
    "grid_curves": [
        {"gradients": np.zeros((8, 3, 5))}, {"gradients": np.zeros((9, 2, 5))},
        {"gradients": np.zeros((9, 3, 4))}, {"kk": np.zeros((9, 11))}, {"yq": np.zeros(3)},
        {"Xq": np.zeros((90, 4))}, {"offsets_q": np.zeros(12, dtype=np.int64)},
        {"offsets_q": np.arange(13) + 1000}, {"group": np.full(12, 3)}, {"group": np.full(12, -1)},
        {"group": np.zeros(11, dtype=np.int64)}, {"n_groups": -1}, {"n_groups": 1},
        {"lam": np.ones(4)}, {"meta_step": np.ones(4)}, {"y": np.zeros(1)},
    ],
    "grid_score": [
        {"theta": np.zeros((11, 3, 5))}, {"theta": np.zeros((12, 4, 5))}, {"lam": np.ones(6)},
        {"Xq": np.zeros((90, 2))}, {"offsets_q": np.arange(13)[::-1].copy()},
        {"offsets": np.arange(13) + 1000},
    ],
}  # fmt: skip


@native
@pytest.mark.parametrize("name", ARGS)
def test_wrong_shapes_are_refused(name):
    getattr(core, name)(*ARGS[name]())
    for wrong in WRONG_SHAPES[name]:
        with pytest.raises(ValueError, match="must"):
            getattr(core, name)(*ARGS[name](**wrong))


@native
@pytest.mark.parametrize("name", ARGS)
def test_wrong_dtypes_are_refused(name):
    wrong = [
        {"X": np.zeros((5, 3), dtype=np.float32)}, {"X": np.asfortranarray(np.zeros((5, 3)))},
        {"X": None}, {"y": np.zeros(5, dtype=int)}, {"offsets": np.zeros(13)},
        {"offsets": np.zeros(13, dtype=np.int32)}, {"lam": 1.0}, {"lam": np.ones(5, dtype=int)},
        {"lam": np.ones(10)[::2]}, {"loss": (1.0, 2.0)}, {"loss": None}, {"n_jobs": 1.5},
    ]  # fmt: skip
    frozen = np.zeros((3, 3, 5))
    frozen.flags.writeable = False
    more = {
        "grid_train": [{"grad_sum": frozen}, {"gradients": np.zeros((9, 15))}],
        "grid_curves": [{"group": np.zeros(12)}, {"gradients": np.zeros((9, 5, 3)).swapaxes(1, 2)}],
        "grid_score": [{"theta": np.zeros((12, 5, 3)).swapaxes(1, 2)}, {"theta": np.zeros(3)}],
    }
    for changed in wrong + more[name]:
        with pytest.raises(TypeError):
            getattr(core, name)(*ARGS[name](**changed))


@pytest.mark.parametrize("d", [1, 3, 4, 20, 33])
@pytest.mark.parametrize("n", [0, 1, 4095, 4097, 20_000])
def test_row_scores(engine, n, d):
    rng = np.random.default_rng([n, d])
    X, weights, codes = rng.normal(size=(n, d)), rng.normal(size=(7, d)), rng.integers(0, 7, n)
    found = row_scores(X, weights, codes, 1)
    assert found.shape == (n,)
    assert_close([found], [(X * weights[codes]).sum(axis=1)], 1e-14)
    for n_jobs in (2, 9):
        assert np.array_equal(row_scores(X, weights, codes, n_jobs), found)


def test_row_scores_refuse_unknown_codes(engine):
    X, weights = np.ones((3, 2)), np.ones((4, 2))
    for codes in ([0, 1, 4], [0, -1, 2]):
        with pytest.raises(ValueError, match="'codes' must be positions"):
            row_scores(X, weights, np.array(codes), 1)


@native
def test_row_scores_refuse_wrong_arrays():
    X, weights, codes = np.ones((3, 2)), np.ones((4, 2)), np.zeros(3, dtype=np.int64)
    for wrong in ((X, weights[:, :1].copy(), codes), (X, weights, codes[:2])):
        with pytest.raises(ValueError, match="must have shape"):
            core.row_scores(*wrong, 1)
    for wrong in ((X[0], weights, codes), (X, weights, codes.astype(float)), (X, None, codes)):
        with pytest.raises(TypeError):
            core.row_scores(*wrong, 1)


ACROSS = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from test_grid_engines_agree import core, draw, everything
from condmeta.losses import LOSSES
out = {"isa": core.instruction_set()}
for name in LOSSES:
    problem = draw(name, d=7, L=11)
    for i, array in enumerate(everything(problem, "native", LOSSES[name](), n_jobs=2)):
        out[f"{name} {i}"] = array
np.savez(sys.argv[2], **out)
"""


@native
def test_instruction_sets_agree(tmp_path):
    here = os.path.dirname(os.path.abspath(__file__))
    found = []
    for isa in ("baseline", ""):
        path = tmp_path / f"found{isa}.npz"
        env = {**os.environ, "CONDMETA_ISA": isa}
        subprocess.run([sys.executable, "-c", ACROSS, here, str(path)], check=True, env=env)
        found.append(dict(np.load(path)))
    assert found[0].pop("isa") == "baseline"
    found[1].pop("isa")
    assert_close(found[1].values(), found[0].values())
