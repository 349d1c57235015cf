"""Where Phi comes from: side tables, own points, separate points, and what fills the gaps."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import draw_problem

from condmeta import ConditionalSGDClassifier, ConditionalSGDRegressor, TaskSet, TaskTable
from condmeta.errors import DataError
from condmeta.feature_maps import Identity, MeanFourier, MeanInput, MeanInputOutput
from condmeta.fitted.tau import LinearTau
from condmeta.losses import get_loss
from condmeta.meta.sgd import SGDState, sgd_pass

X, Y, TASK, SIDE = draw_problem()
NAMES = ["age", "size", "price"]
ORDER = list(dict.fromkeys(TASK.tolist()))
POINT_MAPS = [MeanInput(), MeanInputOutput(), MeanFourier(4, random_state=0)]
POINTS = draw_problem(seed=11)  # other points of the same tasks


def own(task):
    return X[task == TASK], Y[task == TASK]


def by_hand(Phi, rows):
    """Return the map that Algorithm 1 learns from Phi (T, k) and the rows of each task."""
    state = SGDState.start(Phi.shape[1], 3)
    offsets = np.cumsum([0, *(len(y) for _, y in rows)])
    flat = np.vstack([x for x, _ in rows]), np.concatenate([y for _, y in rows]), offsets
    loss = get_loss("absolute")
    assert sgd_pass(*state, *flat, Phi, 1.0, loss, 0.1, False, False, False, 0.0) == -1
    return state.map(0.1)


def assert_map(learner, W):
    np.testing.assert_allclose(learner.M_, W[:-1].T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(learner.b_, W[-1], rtol=1e-12, atol=1e-14)


def test_shared_points_condition_and_train():
    learner = ConditionalSGDRegressor(MeanInput()).fit(X, Y, task=TASK)
    Phi = np.array([own(task)[0].mean(axis=0) for task in ORDER])
    assert_map(learner, by_hand(Phi, [own(task) for task in ORDER]))


def test_split_conditions_on_the_first_half():
    learner = ConditionalSGDRegressor(MeanInputOutput(), conditioning="split")
    learner.fit(X, Y, task=TASK)
    Phi, rest = [], []
    for task in ORDER:
        x, y = own(task)
        half = len(y) // 2
        Phi.append([*(y[:half, None] * x[:half]).mean(axis=0), *x[:half].mean(axis=0)])
        rest.append((x[half:], y[half:]))
    assert_map(learner, by_hand(np.array(Phi), rest))
    # A new task is treated alike: the first half conditions, the rest trains.
    x, y = POINTS.X[:7], POINTS.y[:7]
    phi = np.append((y[:3, None] * x[:3]).mean(axis=0), x[:3].mean(axis=0))
    model = learner.adapt(x, y)
    np.testing.assert_allclose(model.theta_, learner.M_ @ phi + learner.b_, rtol=1e-12)
    fixed = ConditionalSGDRegressor(None).fit(X, Y, task=TASK)
    tau = LinearTau(model.theta_[None], np.zeros(0))
    fixed._model = fixed.fitted_._replace(tau=tau)
    np.testing.assert_allclose(model.coef_, fixed.adapt(x[3:], y[3:]).coef_, rtol=1e-12)


def test_split_concerns_maps_of_points_only():
    one, two = (
        ConditionalSGDRegressor(Identity(), conditioning=how).fit(X, Y, task=TASK, side_info=SIDE)
        for how in ("shared", "split")
    )
    np.testing.assert_array_equal(one.M_, two.M_)


def test_split_of_a_single_point_conditions_on_the_mean():
    learner = ConditionalSGDRegressor(MeanInput(), conditioning="split").fit(X, Y, task=TASK)
    model = learner.adapt(X[:1], Y[:1])
    np.testing.assert_array_equal(model.theta_, learner.theta_mean_)


# -- separate conditioning points ------------------------------------------------------------------


def long_table(kind):
    columns = {name: POINTS.X[:, j] for j, name in enumerate(NAMES)}
    columns |= {"store": POINTS.task.tolist(), "sales": POINTS.y}
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame}[kind](columns)


@pytest.mark.parametrize("fmap", POINT_MAPS, ids=lambda m: type(m).__name__)
def test_task_set_of_conditioning_points(fmap):
    points = TaskSet.from_arrays(POINTS.X, POINTS.y, POINTS.task)
    learner = ConditionalSGDRegressor(fmap).fit(X, Y, task=TASK, side_info=points)
    at = [points.position(task) for task in ORDER]
    drawn = learner.fitted_.reader.map.parts_[0]
    Phi = drawn.transform_tasks(points.X, points.y, points.offsets)[at]
    assert_map(learner, by_hand(Phi, [own(task) for task in ORDER]))
    theta = learner.theta_for(points)
    np.testing.assert_allclose(theta[at], Phi @ learner.M_.T + learner.b_, rtol=1e-10)
    # A new task: points that condition now, none that train.
    new = TaskSet.from_arrays(POINTS.X[:4], POINTS.y[:4], ["new"] * 4)
    expected = X @ learner.theta_for(new)[0]
    np.testing.assert_allclose(
        learner.predict(X, task=["new"] * len(Y), side_info=new), expected, rtol=1e-10
    )
    np.testing.assert_allclose(learner.predict(X, side_info=new), expected, rtol=1e-10)
    np.testing.assert_allclose(learner.adapt(side_info=new).predict(X), expected, rtol=1e-10)
    one = learner.adapt(X[:5], Y[:5], side_info=new)
    two = learner.adapt(X[:5], Y[:5], task=["new"] * 5, side_info=new)["new"]
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_allclose(one.theta_, learner.theta_for(new)[0], rtol=1e-12)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_long_table_of_conditioning_points(kind):
    frame = pd.DataFrame(X, columns=NAMES).assign(store=TASK)
    learner = ConditionalSGDRegressor(MeanInputOutput(), task_column="store")
    learner.fit(frame, Y, side_info=long_table(kind))
    points = TaskSet.from_arrays(POINTS.X, POINTS.y, POINTS.task, feature_names=NAMES)
    plain = ConditionalSGDRegressor(MeanInputOutput(), task_column="store")
    plain.fit(frame, Y, side_info=points)
    np.testing.assert_array_equal(learner.M_, plain.M_)
    np.testing.assert_array_equal(learner.theta_for(long_table(kind)), plain.theta_for(points))


def test_known_task_without_points_conditions_on_points_given_now():
    side = TaskTable(np.vstack([SIDE.numeric(), [1.0, 2.0]]), [*SIDE.ids, "spare"])
    learner = ConditionalSGDRegressor([Identity(), MeanInput()])
    learner.fit(X, Y, task=TASK, side_info=side)
    now = TaskSet.from_arrays(X[2:4], Y[2:4], ["spare"] * 2, {"spare": [3.0, 4.0]})
    phi = np.append([3.0, 4.0], X[2:4].mean(axis=0))
    np.testing.assert_allclose(
        learner.predict(X, task=["spare"] * len(Y), side_info=now),
        X @ (learner.M_ @ phi + learner.b_),
        rtol=1e-10,
    )


def test_conditioning_points_of_a_classifier_are_coded_as_its_own():
    labels = np.where(Y > 0, 1.0, 0.0)
    learner = ConditionalSGDClassifier(MeanInputOutput()).fit(X, labels, task=TASK)
    same = TaskSet.from_arrays(X, labels, TASK)
    models = learner.adapt(X, labels, task=TASK)
    np.testing.assert_allclose(learner.theta_for(same), models.theta_, rtol=1e-10)
    odd = TaskSet.from_arrays(X, labels + 5, TASK)
    with pytest.raises(DataError, match=r"labels \[5\.0, 6\.0\] that are not classes"):
        learner.theta_for(odd)


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (X[:, :2], Y, r"side_info has 2 features, but .* is expecting 3 features"),
        (X, None, r"MeanInputOutput reads y: give the points of each"),
    ],
)
def test_conditioning_points_that_do_not_fit(x, y, sentence):
    learner = ConditionalSGDRegressor(MeanInputOutput()).fit(X, Y, task=TASK)
    new = TaskSet.from_arrays(x, y, ["new"] * len(Y))
    with pytest.raises(DataError, match=sentence):
        learner.predict(X[:1], task=["new"], side_info=new)
    with pytest.raises(DataError, match=sentence):
        learner.adapt(X[:1], Y[:1], side_info=new)
    with pytest.raises(DataError, match=sentence):
        learner.fit(X, Y, task=TASK, side_info=TaskSet.from_arrays(x, y, TASK))


def test_conditioning_points_of_several_tasks_for_one():
    learner = ConditionalSGDRegressor(MeanInput()).fit(X, Y, task=TASK)
    points = TaskSet.from_arrays(X, Y, TASK)
    for call in (learner.adapt, lambda side_info: learner.predict(X, side_info=side_info)):
        with pytest.raises(
            DataError, match=r"points of 6 tasks, and all rows of X are one task.*task="
        ):
            call(side_info=points)


@pytest.mark.parametrize(
    ("drop", "sentence"),
    [
        ("store", r"needs the task column \(or side_key=\) and the feature columns of X"),
        ("age", r"needs the task column \(or side_key=\) and the feature columns of X"),
    ],
)
def test_long_table_that_lacks_a_column(drop, sentence):
    frame = pd.DataFrame(X, columns=NAMES).assign(store=TASK)
    learner = ConditionalSGDRegressor(MeanInput(), task_column="store")
    with pytest.raises(DataError, match=sentence):
        learner.fit(frame, Y, side_info=long_table("pandas").drop(columns=drop))
    with pytest.raises(DataError, match=r"one target column at most\. Left over: \['sales', 'z'\]"):
        learner.fit(frame, Y, side_info=long_table("pandas").assign(z=1.0))


# -- several maps ----------------------------------------------------------------------------------


def test_list_of_maps_stands_side_by_side():
    learner = ConditionalSGDRegressor([Identity(), MeanInput()])
    learner.fit(X, Y, task=TASK, side_info=SIDE)
    assert learner.side_features_ == ["s0", "s1", "mean(x0)", "mean(x1)", "mean(x2)"]
    means = np.array([own(task)[0].mean(axis=0) for task in ORDER])
    Phi = np.column_stack([SIDE.take(ORDER).numeric(), means])
    assert_map(learner, by_hand(Phi, [own(task) for task in ORDER]))
    # Without points the part that reads them sits at its mean.
    row = [1.0, 2.0]
    expected = learner.M_ @ np.append(row, means.mean(axis=0)) + learner.b_
    np.testing.assert_allclose(learner.theta_for(row), expected, rtol=1e-10)


def test_conditioning_points_bring_their_side_table():
    points = TaskSet.from_arrays(POINTS.X, POINTS.y, POINTS.task, SIDE)
    learner = ConditionalSGDRegressor([Identity(), MeanInput()])
    learner.fit(X, Y, task=TASK, side_info=points)
    Phi = [[*SIDE.take([task]).numeric()[0], *POINTS.of(task)[0].mean(axis=0)] for task in ORDER]
    assert_map(learner, by_hand(np.array(Phi), [own(task) for task in ORDER]))
    np.testing.assert_allclose(learner.theta_for(points), [
        learner.M_ @ Phi[ORDER.index(task)] + learner.b_ for task in points.ids])  # fmt: skip


# -- without side information ----------------------------------------------------------------------


def test_missing_side_at_the_mean():
    some = SIDE.take(["t0", "t1", "t2"])
    learner = ConditionalSGDRegressor(Identity(), missing_side="mean")
    learner.fit(X, Y, task=TASK, side_info=some)
    mean = some.numeric().mean(axis=0)
    Phi = [some.take([task]).numeric()[0] if some.has([task])[0] else mean for task in ORDER]
    Phi = np.array(Phi)
    assert_map(learner, by_hand(Phi, [own(task) for task in ORDER]))
    np.testing.assert_allclose(learner.theta_mean_, learner.M_ @ Phi.mean(axis=0) + learner.b_)
    np.testing.assert_allclose(learner.theta_for(), learner.theta_mean_)
    np.testing.assert_allclose(learner.adapt().coef_, learner.theta_mean_)
    new = learner.predict(X, task=["new"] * len(Y))
    np.testing.assert_allclose(new, X @ learner.theta_mean_)


@pytest.mark.parametrize("fmap", POINT_MAPS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("missing", ["error", "mean"])
def test_map_of_points_without_points_is_at_the_mean(fmap, missing):
    learner = ConditionalSGDRegressor(fmap, missing_side=missing, fit_intercept=True)
    learner.fit(X, Y, task=TASK)
    theta = learner.theta_mean_
    expected = X @ theta[:3] + theta[3]
    np.testing.assert_allclose(learner.predict(X, task=["new"] * len(Y)), expected, rtol=1e-10)
    np.testing.assert_allclose(learner.adapt().predict(X), expected, rtol=1e-10)
    np.testing.assert_allclose(learner.theta_for(), theta)
    # M at 0 would be b: the mean is another point.
    assert not np.allclose(learner.theta_mean_[:3], learner.b_[:3])


@pytest.mark.parametrize("fmap", POINT_MAPS, ids=lambda m: type(m).__name__)
def test_query_rows_never_condition(fmap):
    learner = ConditionalSGDRegressor(fmap).fit(X, Y, task=TASK)
    for ids in (["new"] * len(Y), TASK):
        together = learner.predict(X, task=ids)
        moved = X.copy()
        moved[1:] += 100.0
        np.testing.assert_allclose(learner.predict(moved, task=ids)[0], together[0], rtol=1e-10)
        alone = learner.predict(X[:1], task=ids[:1])
        np.testing.assert_allclose(alone, together[:1], rtol=1e-10)


def test_maps_read_scaled_rows_without_the_intercept_and_y_without_its_offset():
    learner = ConditionalSGDRegressor(MeanInputOutput(), scale="standard", fit_intercept=True)
    learner.fit(X, Y, task=TASK)
    Z, y = (X - X.mean(axis=0)) / X.std(axis=0), Y - np.median(Y)
    mean = [np.append((y[at, None] * Z[at]).mean(axis=0), Z[at].mean(axis=0))
            for at in (task == TASK for task in ORDER)]  # fmt: skip
    np.testing.assert_allclose(learner.fitted_.tau.phi_mean, np.mean(mean, axis=0), rtol=1e-10)
    assert learner.M_.shape == (4, 6)


def test_auto_encodes_numbers_categories_and_gaps():
    raw = TaskTable({"area": [1.0, 3.0, np.nan, 5.0, 7.0, 9.0], "city": list("aabbaa")}, SIDE.ids)
    learner = ConditionalSGDRegressor().fit(X, Y, task=TASK, side_info=raw)
    assert learner.side_features_ == ["area", "area=(missing)", "city=a", "city=b"]
    gap = learner.theta_for({"area": None, "city": "b"})
    M = dict(zip(learner.side_features_, learner.M_.T, strict=True))
    np.testing.assert_allclose(gap, learner.b_ + M["area=(missing)"] + M["city=b"], atol=1e-12)
