"""coef_frame and M_frame: what was learned as tables, in the user's units and kind of frame."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import draw_problem

from condmeta import (
    ConditionalLogistic,
    ConditionalRidge,
    ConditionalSGDRegressor,
    IndependentRegressor,
    PooledRegressor,
    TaskTable,
)
from condmeta.errors import DataError
from condmeta.feature_maps import Identity, MeanInput

X, Y, TASK, SIDE = draw_problem()
NAMES = ["age", "size", "price"]
MAKE = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
KIND = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
LONG = ["feature", "prior", "own", "adapted", "shift", "n"]
each_kind = pytest.mark.parametrize("kind", MAKE)


def make(kind, task=TASK, name="store"):
    columns = {column: X[:, j] for j, column in enumerate(NAMES)}
    return MAKE[kind](columns | {name: list(task)})


def columns_of(frame):
    """Return a table of any library as a dict of lists."""
    return frame.to_pydict() if isinstance(frame, pa.Table) else {
        name: list(frame[name]) for name in frame.columns
    }  # fmt: skip


def fitted(**params):
    learner = ConditionalSGDRegressor(Identity(), **params)
    return learner.fit(X, Y, task=TASK, side_info=SIDE)


@each_kind
def test_long_table(kind):
    learner = ConditionalSGDRegressor(task_column="store").fit(make(kind), Y)
    frame = learner.coef_frame()
    assert isinstance(frame, KIND[kind])
    got = columns_of(frame)
    assert list(got) == ["store", *LONG]
    ids = list(dict.fromkeys(TASK.tolist()))
    assert got["store"] == [task for task in ids for _ in NAMES]
    assert got["feature"] == NAMES * len(ids)
    assert got["n"] == [int((task == TASK).sum()) for task in ids for _ in NAMES]
    np.testing.assert_array_equal(got["shift"], np.subtract(got["adapted"], got["prior"]))


@each_kind
def test_wide_table(kind):
    learner = ConditionalSGDRegressor(task_column="store", fit_intercept=True).fit(make(kind), Y)
    frame = learner.coef_frame(wide=True)
    assert isinstance(frame, KIND[kind])
    got = columns_of(frame)
    assert list(got) == ["store", "n", *NAMES, "(intercept)"]
    long = columns_of(learner.coef_frame())["adapted"]
    wide = np.column_stack([got[name] for name in [*NAMES, "(intercept)"]])
    np.testing.assert_array_equal(wide.ravel(), long)


def test_arrays_give_plain_names():
    got = fitted(fit_intercept=True).coef_frame()
    assert list(got.columns) == ["task", *LONG]
    assert got["feature"].tolist()[:4] == ["x0", "x1", "x2", "(intercept)"]


@pytest.mark.parametrize("scale", ["none", "standard", "rows"])
@pytest.mark.parametrize("intercept", [True, False])
def test_values(scale, intercept):
    learner = fitted(scale=scale, fit_intercept=intercept, lam=0.7)
    got = learner.coef_frame().set_index(["task", "feature"])
    for task in SIDE.ids:
        at = task == TASK
        model = learner.adapt(X[at], Y[at], side_info=SIDE.row(task))
        table = got.loc[task]
        np.testing.assert_allclose(table["adapted"][:3], model.coef_, rtol=1e-10)
        np.testing.assert_allclose(table["prior"], learner.theta_for(SIDE.row(task)), rtol=1e-10)
        if intercept:
            np.testing.assert_allclose(table["adapted"].iloc[3], model.intercept_, rtol=1e-10)


def least_squares(X, y, intercept):
    """Return a task's own estimate, NaN for coefficients that lie outside its row space."""
    rows = np.column_stack([X, np.ones(len(X))]) if intercept else X
    determined = np.isclose(np.linalg.pinv(rows) @ rows, np.eye(rows.shape[1])).all(axis=1)
    return np.where(determined, np.linalg.lstsq(rows, y, rcond=None)[0], np.nan)


OWN = {
    "online": ConditionalSGDRegressor(None),
    "intercept": ConditionalSGDRegressor(None, fit_intercept=True, scale="standard"),
    "batch": ConditionalSGDRegressor(None, inner="batch", loss="squared"),
    "absolute": ConditionalSGDRegressor(None, inner="batch"),
    "ridge": ConditionalRidge(None),
    "independent": IndependentRegressor(lam=0.5),
    "pooled": PooledRegressor(lam=0.5),
}


@pytest.mark.parametrize("name", OWN)
def test_own_is_least_squares(name):
    learner = OWN[name]
    got = learner.fit(X, Y, task=TASK).coef_frame().set_index("task")["own"]
    for task in np.unique(TASK):
        expected = least_squares(X[task == TASK], Y[task == TASK], learner.fit_intercept)
        np.testing.assert_allclose(got[task], expected, rtol=1e-6)
    assert got.notna().any()
    assert got.isna().any()


def test_own_of_a_coefficient_that_the_points_do_not_determine():
    x = np.array([[1.0, 3.0], [2.0, 3.0], [4.0, 3.0], [1.0, 0.0], [2.0, 1.0], [0.0, 5.0]])
    y, task = np.array([1.0, 3.0, 6.0, 1.0, 2.0, 3.0]), ["flat"] * 3 + ["full"] * 3
    got = ConditionalRidge(None).fit(x, y, task=task).coef_frame().set_index("task")["own"]
    # The second column is constant in the first task: its effect and the intercept are one.
    slope = np.polyfit(x[:3, 0], y[:3], 1)[0]
    np.testing.assert_allclose(got["flat"], [slope, np.nan, np.nan], rtol=1e-9)
    np.testing.assert_allclose(got["full"], least_squares(x[3:], y[3:], True), rtol=1e-9)


@pytest.mark.parametrize("name", ["online", "batch", "ridge"])
def test_own_follows_updates(name):
    got = OWN[name].fit(X, Y, task=TASK).update(X[:9], Y[:9], task=TASK[:9]).coef_frame()
    twice = np.vstack([X, X[:9]]), np.append(Y, Y[:9]), np.append(TASK, TASK[:9])
    whole = OWN[name].fit(*twice[:2], task=twice[2]).coef_frame()
    np.testing.assert_allclose(got["own"], whole["own"], rtol=1e-7)


def test_statistics_for_own_estimates_alone_have_a_limit(monkeypatch):
    monkeypatch.setattr("condmeta.fitted.task_store.MOST_STATISTICS", 6 * 9 - 1)
    assert OWN["online"].fit(X, Y, task=TASK).coef_frame()["own"].isna().all()
    assert OWN["batch"].fit(X, Y, task=TASK).coef_frame()["own"].notna().any()


def test_own_is_kept_in_files_without_statistics():
    learner = ConditionalRidge(None).fit(X, Y, task=TASK)
    slim = learner.slim(resume=False)
    np.testing.assert_array_equal(slim.coef_frame()["own"], learner.coef_frame()["own"])


def test_classifiers_have_no_own_estimate():
    got = ConditionalLogistic(None).fit(X, Y > 0, task=TASK).coef_frame()
    assert got["own"].isna().all()


def test_a_pooled_model_does_not_move():
    got = PooledRegressor(lam=0.5).fit(X, Y, task=TASK).coef_frame()
    np.testing.assert_array_equal(got["shift"], 0.0)


def test_task_without_points():
    table = TaskTable(np.vstack([SIDE.numeric(), [1.0, 2.0]]), [*SIDE.ids, "spare"])
    learner = ConditionalSGDRegressor(Identity()).fit(X, Y, task=TASK, side_info=table)
    got = learner.coef_frame().set_index("task").loc["spare"]
    assert got["n"].tolist() == [0, 0, 0]
    assert got["own"].isna().all()
    np.testing.assert_allclose(got["adapted"], learner.theta_for([1.0, 2.0]))
    np.testing.assert_array_equal(got["shift"], 0.0)


@each_kind
def test_tuple_ids_give_several_columns(kind):
    region = ["north" if task < "t3" else "south" for task in TASK]
    frame = make(kind)
    columns = columns_of(frame) | {"region": region}
    learner = ConditionalSGDRegressor(task_column=["region", "store"])
    got = columns_of(learner.fit(MAKE[kind](columns), Y).coef_frame())
    assert list(got) == ["region", "store", *LONG]
    assert set(zip(got["region"], got["store"], strict=True)) == set(zip(region, TASK, strict=True))


@pytest.mark.parametrize(
    "ids", [range(6), [date(2024, 1, 1 + t) for t in range(6)], [t / 4 for t in range(6)]]
)
@each_kind
def test_ids_keep_their_kind(kind, ids):
    task = [list(ids)[int(name[1:])] for name in TASK]
    learner = ConditionalSGDRegressor(task_column="store").fit(make(kind, task), Y)
    got = columns_of(learner.coef_frame(wide=True))["store"]
    assert set(got) == set(ids)


def test_no_kept_tasks():
    with pytest.raises(DataError, match="Fit with keep_tasks=True"):
        fitted(keep_tasks=False).coef_frame()


# -- the map ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["none", "standard", "rows"])
@pytest.mark.parametrize("intercept", [True, False])
def test_map_gives_tau_in_the_units_of_the_user(scale, intercept):
    learner = fitted(scale=scale, fit_intercept=intercept)
    frame = learner.M_frame(wide=True).set_index("side_feature")
    assert frame.index.tolist() == ["s0", "s1", "(base)"]
    Phi1 = np.column_stack([SIDE.numeric(), np.ones(6)])
    np.testing.assert_allclose(Phi1 @ frame.to_numpy(), learner.theta_for(SIDE), rtol=1e-10)
    long = learner.M_frame()
    assert long.columns.tolist() == ["side_feature", "feature", "effect"]
    np.testing.assert_array_equal(long["effect"], frame.to_numpy().ravel())


@each_kind
def test_map_in_the_kind_of_the_fit(kind):
    side = MAKE[kind]({"store": SIDE.ids.tolist(), "area": SIDE.data["s0"], "city": list("aabbab")})
    learner = ConditionalSGDRegressor(task_column="store")
    frame = learner.fit(make(kind), Y, side_info=side).M_frame()
    assert isinstance(frame, KIND[kind])
    sides = ["area", "city=a", "city=b", "(base)"]
    assert columns_of(frame)["side_feature"] == [side for side in sides for _ in NAMES]
    assert learner.side_features_ == sides[:-1]


def test_map_of_a_far_target_keeps_its_digits():
    learner = ConditionalSGDRegressor(Identity(), fit_intercept=True, lam=2.0)
    call = {"task": TASK, "side_info": SIDE}
    near = learner.fit(X, Y, **call).M_frame()["effect"].to_numpy()
    far = learner.fit(X, Y + 1e8, **call).M_frame()["effect"].to_numpy().copy()
    far[-1] -= 1e8  # the base intercept
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-7)


def test_features_of_points_are_named_after_the_columns():
    learner = ConditionalSGDRegressor(MeanInput(), task_column="store").fit(make("pandas"), Y)
    assert learner.side_features_ == [f"mean({name})" for name in NAMES]
