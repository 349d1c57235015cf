"""ConditionalCoinRegressor: scales, streams, serving, warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers import assert_same, draw_problem, unchanged

import condmeta
from condmeta import ConditionalCoinRegressor, TaskSet
from condmeta.environments import Circle
from condmeta.errors import DataError, FewTasksWarning
from condmeta.feature_maps import CircleMap, Identity, MeanFourier, MeanInput, MeanInputOutput

PROBLEM = draw_problem(n_tasks=40, d=4, seed=3)
X, Y, TASK, SIDE = PROBLEM
ORDER = list(dict.fromkeys(TASK.tolist()))
MAPS = {
    "None": None,
    "Identity": Identity(),
    "MeanInput": MeanInput(),
    "MeanInputOutput": MeanInputOutput(),
    "MeanFourier": MeanFourier(n_features=6, random_state=0),
    "list": [Identity(), MeanInputOutput()],
}
READS_TABLE = ("Identity", "list")


def fit(name="None", x=1.0, y=1.0, **params):
    """Return a learner fitted to x X and y Y, by the name of its map."""
    learner = ConditionalCoinRegressor(MAPS[name], **params)
    side = SIDE if name in READS_TABLE else None
    return learner.fit(x * X, y * Y, task=TASK, side_info=side)


@pytest.mark.parametrize("conditioning", ["shared", "split"])
@pytest.mark.parametrize("fmap", MAPS)
def test_units_go_through(engine, fmap, conditioning):
    """x -> 3 x and y -> 7 y give seven times the predictions, of known tasks and of new ones."""
    answers = []
    for a, b in ((1.0, 1.0), (3.0, 7.0)):
        learner = fit(fmap, a, b, conditioning=conditioning)
        row = [0.5, -1.0] if fmap in READS_TABLE else None
        new = learner.adapt(a * X[:8], b * Y[:8], side_info=row)
        answers.append([
            learner.predict(a * X, task=TASK) / b, new.predict(a * X) / b, new.theta_ * a / b,
        ])  # fmt: skip
    for one, two in zip(*answers, strict=True):
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-12 * np.abs(one).max())


def test_separate_points_are_read_in_the_same_units(engine):
    answers = []
    for a, b in ((1.0, 1.0), (3.0, 7.0)):
        points = TaskSet.from_arrays(a * X[::2], b * Y[::2], TASK[::2])
        learner = ConditionalCoinRegressor(MeanInputOutput())
        learner.fit(a * X[1::2], b * Y[1::2], task=TASK[1::2], side_info=points)
        answers.append(learner.theta_for(points) * a / b)
    np.testing.assert_allclose(
        answers[1], answers[0], rtol=0, atol=1e-12 * np.abs(answers[0]).max()
    )


def test_an_offset_of_y_goes_through():
    one, two = (
        ConditionalCoinRegressor(fit_intercept=True, scale="standard").fit(X, y, task=TASK)
        for y in (Y, Y + 2.0**20)
    )
    difference = two.predict(X, task=TASK) - one.predict(X, task=TASK)
    np.testing.assert_allclose(difference, 2.0**20, rtol=1e-12)


@pytest.mark.parametrize("zero", ["x", "y"])
def test_nothing_to_learn_gives_the_zero_map(engine, zero):
    learner = fit("Identity", **{zero: 0.0})
    assert not learner.M_.any()
    assert not learner.b_.any()
    np.testing.assert_array_equal(learner.predict(X, task=TASK), np.zeros(len(X)))


# -- streams ---------------------------------------------------------------------------------------


def stream(learner, *chunks, start=0):
    for size in chunks:
        some = ORDER[start : start + size]
        rows = np.isin(TASK, some)
        learner.partial_fit(X[rows], Y[rows], task=TASK[rows], side_info=SIDE.take(some))
        start += size
    return learner


def assert_same_map(one, two):
    for name in ("M_", "b_", "theta_mean_", "n_tasks_", "n_cut_rows_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.theta_for(SIDE), two.theta_for(SIDE))
    assert_same(one.fitted_.inner, two.fitted_.inner)


def test_one_call_is_fit(engine):
    assert_same_map(stream(ConditionalCoinRegressor(Identity()), 40), fit("Identity"))


@pytest.mark.parametrize("chunks", [[1] * 8, [3, 5], [7, 1]], ids=str)
def test_later_calls_may_be_cut_anywhere(engine, tmp_path, chunks):
    want = stream(ConditionalCoinRegressor(Identity()), 32, 8)
    first = stream(ConditionalCoinRegressor(Identity()), 32)
    first.save(tmp_path / "first.condmeta")
    assert_same_map(stream(first, *chunks, start=32), want)
    again = condmeta.load(tmp_path / "first.condmeta")
    assert_same_map(stream(again, *chunks, start=32), want)


def test_a_stream_goes_on_after_fit(engine):
    rows, some = np.isin(TASK, ORDER[:32]), ORDER[:32]
    learner = ConditionalCoinRegressor(Identity())
    learner.fit(X[rows], Y[rows], task=TASK[rows], side_info=SIDE.take(some))
    kept = learner.predict(X[rows], task=TASK[rows])
    assert_same_map(
        stream(learner, 8, start=32), stream(ConditionalCoinRegressor(Identity()), 32, 8)
    )
    np.testing.assert_array_equal(learner.predict(X[rows], task=TASK[rows]), kept)


def test_rows_beyond_the_first_scales_are_counted(engine):
    learner = fit()
    longest = X[np.argmax(np.linalg.norm(X, axis=1))]
    assert learner.n_cut_rows_ == 0
    learner.partial_fit([longest, 1.01 * longest, X[0], -2 * longest], np.zeros(4), task=["a"] * 4)
    assert learner.n_cut_rows_ == 2
    learner.partial_fit([9 * longest], [0.0], task=["b"])
    assert learner.n_cut_rows_ == 3
    learner.adapt([9 * longest], [0.0])
    learner.update([9 * longest], [0.0], task=["t0"])
    assert learner.n_cut_rows_ == 3
    assert fit().n_cut_rows_ == 0


def test_seen_tasks_are_refused():
    with pytest.raises(DataError, match="Task 't3' was seen before"):
        fit().partial_fit(X[:1], Y[:1], task=["t3"])


# -- few tasks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("n_tasks", [1, 29, 30])
def test_few_tasks_are_warned_of(method, n_tasks):
    rows = np.isin(TASK, ORDER[:n_tasks])
    learner = ConditionalCoinRegressor(None)
    call = getattr(learner, method), X[rows], Y[rows]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call[0](*call[1:], task=TASK[rows])
        learner.partial_fit(X[:1], Y[:1], task=["later"])  # its scales stand
    assert [(w.category, n_tasks < 30) for w in told] == [(FewTasksWarning, True)] * (n_tasks < 30)
    if told:
        tasks = "1 task" if n_tasks == 1 else f"{n_tasks} tasks"
        assert f"from its first {tasks}, and predicts badly if there are fewer than 30" in str(
            told[0].message
        )


# -- serving ---------------------------------------------------------------------------------------


def test_adapt_and_update_are_one_adapt(engine):
    learner = fit("Identity")
    row = [0.5, -1.0]
    whole = learner.adapt(X[:8], Y[:8], side_info=row)
    parts = learner.adapt(X[:5], Y[:5], side_info=row).update(X[5:8], Y[5:8])
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    assert parts.n_ == whole.n_ == 8
    assert not np.allclose(whole.coef_, whole.theta_)
    many = learner.adapt(X[:5], Y[:5], task=["new"] * 5, side_info={"new": row})["new"]
    np.testing.assert_array_equal(many.update(X[5:8], Y[5:8]).coef_, whole.coef_)
    learner.update(X[:5], Y[:5], task=["new"] * 5, side_info={"new": row})
    learner.update(X[5:8], Y[5:8], task=["new"] * 3)
    np.testing.assert_array_equal(learner.predict(X, task=["new"] * len(X)), whole.predict(X))


def test_update_after_load(engine, tmp_path):
    one = fit("Identity")
    one.save(tmp_path / "model.condmeta", resume=True)
    two = condmeta.load(tmp_path / "model.condmeta")
    for learner in (one, two):
        learner.update(X[:5], Y[:5], task=["t0"] * 5)
    np.testing.assert_array_equal(one.predict(X, task=TASK), two.predict(X, task=TASK))


def test_one_point_returns_theta():
    model = fit("Identity").adapt(X[:1], Y[:1], side_info=[1.0, 2.0])
    np.testing.assert_array_equal(model.coef_, model.theta_)


def test_a_failure_changes_nothing(engine):
    learner = fit("Identity")
    side = {"new": [0.0, 0.0]}
    with unchanged(learner, X, task=TASK), pytest.raises(DataError, match="'new' has NaN"):
        learner.partial_fit(np.full((1, 4), np.nan), [0.0], task=["new"], side_info=side)
    with pytest.raises(DataError, match="too large to be squared"):
        ConditionalCoinRegressor(None).fit(1e200 * X, Y, task=TASK)


def test_the_stake_is_learned_from_halves_of_training_tasks(engine):
    """Judge every stake by hand; it does not depend on units, and later tasks count too."""
    from condmeta.inner.coin import Coin
    from condmeta.meta.coin_stake import STAKES

    tasks = Circle(d=3, n=9, inputs="gaussian", x_center=0.0, noise=0.5).sample(60, 0)
    learner = ConditionalCoinRegressor(CircleMap()).fit(tasks)
    fitted = learner.fitted_
    unit = fitted.inner.stake / learner.stake_
    expected = []
    for stake in STAKES:
        inner, total = Coin(fitted.inner.radius, stake * unit), 0.0
        for one in tasks:
            theta = learner.theta_for(one.side)
            w = inner.solve(theta, one.X[:4], one.y[:4])[0]
            total += np.abs(one.X[4:] @ w - one.y[4:]).mean()
        expected.append(total)
    np.testing.assert_allclose(learner.stake_errors_, expected, rtol=1e-9)
    assert learner.stake_ == STAKES[int(np.argmin(expected))] > 1
    again = ConditionalCoinRegressor(CircleMap()).fit(tasks.with_rows(3.0 * tasks.X, 7.0 * tasks.y))
    assert again.stake_ == learner.stake_
    more = Circle(d=3, n=9, inputs="gaussian", x_center=0.0, noise=0.5).sample(90, 1)[60:]
    before = learner.stake_errors_.copy()
    assert (learner.partial_fit(more).stake_errors_ > before).all()


def test_tasks_of_one_point_choose_no_stake():
    tasks = Circle(d=3, n=1).sample(40, 0)
    learner = ConditionalCoinRegressor(CircleMap()).fit(tasks)
    assert learner.stake_ == 1.0
    assert (learner.stake_errors_ == 0).all()
