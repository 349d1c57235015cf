"""Why a task starts where it starts: sums, columns, neighbours, what lies outside, and words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.spatial.distance import cdist

import condmeta as cm
from condmeta.errors import DataError
from condmeta.evaluation.extrapolation import Neighbourhood
from condmeta.feature_maps import Identity, MeanInput, RandomFourier

T, N = 40, 6
RNG = np.random.default_rng(0)
SIZE = np.where(RNG.random(T) < 0.2, np.nan, RNG.normal(20, 5, T))
CITY = RNG.choice(["Bonn", "Oslo", "Rome"], T).astype(object)
AGE = RNG.integers(0, 50, T).astype(float)
X = RNG.normal(3, 2, size=(T * N, 2))
TASK = np.repeat([f"shop {t}" for t in range(T)], N)
SLOPE = (CITY == "Rome") + 0.1 * np.nan_to_num(SIZE)
Y = np.repeat(SLOPE, N) * X[:, 0] + 5 + 0.3 * RNG.normal(size=T * N)
SIDE = pd.DataFrame({"size": SIZE, "city": CITY, "age": AGE}, index=[f"shop {t}" for t in range(T)])
NEW = pd.DataFrame(
    {"size": [18.0, np.nan, 90.0], "city": ["Rome", "Bonn", "Oslo"], "age": [10.0, 3.0, 20.0]},
    index=["a", "b", "c"],
)
REGRESSORS = [
    cm.ConditionalRidge(metric="diagonal", noise="shared", kappa=1.0),
    cm.ConditionalERMRegressor(lam=0.1),
    cm.ConditionalCoinRegressor(scale="standard", fit_intercept=True),
    cm.ConditionalSGDRegressor(scale="standard", fit_intercept=True),
    cm.ConditionalSGDRegressor(),
]


@pytest.fixture(scope="module")
def ridge():
    return cm.ConditionalRidge(metric="diagonal", noise="shared", kappa=1.0).fit(
        X, Y, task=TASK, side_info=SIDE
    )


def assert_sums(model, found, side):
    theta = model.theta_for(side)
    np.testing.assert_allclose(found.theta, theta, rtol=1e-12)
    total = found.theta_mean + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, theta, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("learner", REGRESSORS, ids=lambda one: type(one).__name__)
def test_contributions_add_up(learner):
    learner.fit(X, Y, task=TASK, side_info=SIDE)
    found = cm.explain(learner, NEW)
    assert found.columns == ["size", "city", "age"]
    assert np.abs(found.contributions).max() > 0
    assert_sums(learner, found, NEW)


@pytest.mark.parametrize(
    "learner",
    [
        cm.ConditionalLogistic(metric="diagonal", kappa=1.0),
        cm.ConditionalSGDClassifier(loss="logistic"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_contributions_add_up_for_classes(learner):
    learner.fit(X, np.where(np.median(Y) < Y, "up", "down"), task=TASK, side_info=SIDE)
    assert_sums(learner, cm.explain(learner, NEW), NEW)


def test_a_column_adds_what_changing_it_changes(ridge):
    """The contribution of a column differs between two rows as tau does if they differ there."""
    row = {"size": 18.0, "city": "Rome", "age": 10.0}
    for name, other in (("size", 25.0), ("size", None), ("city", "Bonn"), ("age", 3.0)):
        one, two = (cm.explain(ridge, side) for side in (row, row | {name: other}))
        moved = two.contributions[0] - one.contributions[0]
        expected = ridge.theta_for(row | {name: other}) - ridge.theta_for(row)
        np.testing.assert_allclose(moved[one.columns.index(name)], expected, atol=1e-9)
        assert np.abs(np.delete(moved, one.columns.index(name), axis=0)).max() < 1e-12


def test_a_mean_task_has_no_contributions():
    model = cm.ConditionalRidge(missing_side="mean").fit(X, Y, task=TASK, side_info=SIDE)
    found = cm.explain(model, None)
    assert not found.contributions.any()
    np.testing.assert_allclose(found.theta[0], model.theta_mean_)


def test_other_maps():
    numbers = cm.TaskTable({"age": AGE, "year": AGE + 2000 + RNG.normal(size=T)}, SIDE.index)
    maps = [Identity(), RandomFourier(5, random_state=0), MeanInput()]
    model = cm.ConditionalRidge(maps, kappa=1.0).fit(X, Y, task=TASK, side_info=numbers)
    found = cm.explain(model, numbers)
    assert found.columns[:3] == ["age", "year", "RandomFourier"]
    assert_sums(model, found, numbers)


def test_nearest_tasks_are_those_of_brute_force(ridge):
    found = cm.explain(ridge, NEW, n_nearest=4)
    encoder = ridge.fitted_.reader.map.parts_[0]
    Phi = encoder.transform(cm.TaskTable(SIDE, SIDE.index))
    new = encoder.transform(cm.TaskTable(NEW, NEW.index))
    distance = cdist(new / Phi.std(axis=0), Phi / Phi.std(axis=0))
    nearest = found.nearest
    assert nearest.columns.tolist() == ["task", "rank", "nearest", "distance", "n"]
    for t, task in enumerate(NEW.index):
        mine = nearest[nearest["task"] == task]
        assert mine["rank"].tolist() == [1, 2, 3, 4]
        np.testing.assert_allclose(mine["distance"], np.sort(distance[t])[:4])
        assert mine["nearest"].tolist()[0] == SIDE.index[distance[t].argmin()]
    within = cdist(Phi / Phi.std(axis=0), Phi / Phi.std(axis=0)) + np.diag(np.full(T, np.inf))
    assert Neighbourhood.of(ridge.fitted_).farthest == pytest.approx(within.min(axis=1).max())


def test_what_lies_outside(ridge):
    odd = NEW.assign(age=[10.0, np.nan, 20.0], city=["Paris", "Bonn", "Oslo"])
    found = cm.explain(ridge, odd)
    table = found.outside
    rows = list(zip(table["task"], table["column"], table["value"], table["reason"], strict=True))
    low, high = np.nanmin(SIZE), np.nanmax(SIZE)
    assert rows == [
        ("a", "city", "Paris", "a level not seen in training"),
        ("b", "age", "", "missing, which no training task was"),
        ("c", "size", "90", f"above the training range {low:g} to {high:g}"),
    ]
    assert found.is_outside.tolist() == [True, True, True]
    assert cm.explain(ridge, SIDE).outside.empty


def test_usual_values_in_an_unusual_combination():
    s = RNG.normal(size=200)
    side = cm.TaskTable({"a": s, "b": s + 0.01 * RNG.normal(size=200)}, range(200))
    rows, task = RNG.normal(size=(400, 1)), np.repeat(np.arange(200), 2)
    model = cm.ConditionalRidge(kappa=1.0).fit(rows, rows[:, 0], task=task, side_info=side)
    assert not cm.explain(model, {"a": 1.0, "b": 1.0}).is_outside[0]
    found = cm.explain(model, {"a": 1.0, "b": -1.0})
    assert found.outside["column"].tolist() == ["(all columns)"]
    assert "no known task within" in found.outside["reason"][0]


def test_tables_are_of_the_kind_that_fit_was_given():
    rows = pl.DataFrame({"shop": TASK, "x": X[:, 0], "z": X[:, 1]})
    side = pl.DataFrame({"shop": SIDE.index.tolist(), "city": CITY.tolist(), "age": AGE})
    model = cm.ConditionalRidge(task_column="shop", kappa=1.0).fit(rows, Y, side_info=side)
    found = cm.explain(model, side[:2])
    assert isinstance(found.frame, pl.DataFrame)
    assert found.frame.columns == ["shop", "feature", "column", "value", "contribution"]
    assert found.frame.shape == (2 * 3 * 2, 5)
    assert isinstance(found.nearest, pl.DataFrame)
    one = found.frame.filter((pl.col("shop") == "shop 1") & (pl.col("feature") == "z"))
    np.testing.assert_array_equal(one["contribution"].to_numpy(), found.contributions[1, :, 1])
    assert one["value"].to_list() == [CITY[1], f"{AGE[1]:g}"]


def test_a_file_holds_what_is_needed(ridge, tmp_path):
    ridge.save(tmp_path / "all.condmeta")
    ridge.save(tmp_path / "map.condmeta", tasks=False)
    again = cm.explain(cm.load(tmp_path / "all.condmeta"), NEW)
    assert str(again) == str(cm.explain(ridge, NEW))
    alone = cm.explain(cm.load(tmp_path / "map.condmeta"), NEW)
    np.testing.assert_array_equal(alone.contributions, again.contributions)
    assert alone.outside["task"].tolist() == ["c"]
    with pytest.raises(DataError, match="does not keep the side information of its tasks"):
        alone.nearest  # noqa: B018


def test_later_tasks_of_a_stream_widen_what_was_seen():
    model = cm.ConditionalSGDRegressor()
    side = cm.TaskTable({"age": [0.0, 1.0, 2.0, 9.0]}, range(4))
    for t in ([0, 1], [2, 3]):
        rows = np.arange(4.0)[:, None]
        model.partial_fit(rows, rows[:, 0], task=np.repeat(t, 2), side_info=side.rows(np.array(t)))
    assert model.fitted_.reader.map.seen_.ranges == {"age": (0.0, 9.0)}
    assert not cm.explain(model, {"age": 8.0}).is_outside[0]
    assert cm.explain(model, {"age": 10.0}).is_outside[0]


def test_kernel_learners_have_neighbours_and_flags_alone():
    model = cm.KernelConditionalSGDRegressor().fit(X, Y, task=TASK, side_info=SIDE)
    found = cm.explain(model, NEW)
    np.testing.assert_allclose(found.theta, model.theta_for(NEW))
    assert found.contributions is None
    assert found.is_outside.tolist() == [False, False, True]
    assert len(found.nearest) == 9
    assert "like 'shop" in str(found)
    with pytest.raises(DataError, match="kernel learner has no contributions of side columns"):
        found.frame  # noqa: B018


def test_a_known_task_is_not_its_own_neighbour(ridge):
    near = cm.explain(ridge, SIDE, n_nearest=2).nearest
    assert len(near) == 2 * len(SIDE)
    assert (near["task"] != near["nearest"]).all()


def test_text_tells_the_coefficients_that_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8)) * [1, 1, 1, 1, 1, 1, 1, 1000.0]
    w = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.05])  # the last one moves y by 50
    task, s = np.repeat(np.arange(40), 10), rng.normal(size=40)
    side = cm.TaskTable(s[:, None], ids=range(40))
    model = cm.ConditionalRidge().fit(X, X @ w + s[task], task=task, side_info=side)
    first = str(cm.explain(model, {"s0": 1.0})).splitlines()[0]
    assert "x7 0.05" in first
    assert "x0" not in first


def test_text(ridge):
    lines = str(cm.explain(ridge, {"size": 90.0, "city": "Rome", "age": 10.0})).splitlines()
    assert lines[0].startswith("The new task starts at x0 ")
    assert lines[1].startswith("  a mean task starts at x0 ")
    assert lines[2].startswith("  size = 90 adds x0 +")
    assert lines[-2].startswith("  like 'shop ")
    assert lines[-1].startswith("  outside the training range: size = 90: above the training range")
    text = str(cm.explain(ridge, SIDE))
    assert text.count(" starts at x0") == 10
    assert text.endswith("... and 35 more tasks: see frame.")


def test_long_texts_are_cut():
    wide = RNG.normal(size=(T * N, 9))
    side = cm.TaskTable(RNG.normal(size=(T, 8)), SIDE.index)
    model = cm.ConditionalRidge(kappa=1.0).fit(wide, Y, task=TASK, side_info=side)
    lines = str(cm.explain(model, [0.0] * 8)).splitlines()
    assert lines[0].endswith(", ...")
    assert len(lines) == 2 + 5 + 1 + 1
    assert lines[7] == "  ... and 3 more columns"


def test_calibrated_learners_and_errors(ridge):
    tasks = cm.TaskSet.from_arrays(X, Y, TASK, side_info=SIDE)
    model = cm.calibrate(cm.ConditionalSGDRegressor(), tasks, shots=(0,), n_splits=2)
    assert_sums(model.model, cm.explain(model, NEW), NEW)
    with pytest.raises(DataError, match="AutoRegressor mixes several learners"):
        cm.explain(cm.AutoRegressor(base=None, shots=(0,)).fit(tasks), NEW)
    with pytest.raises(DataError, match=r"explain needs a fitted learner.* Got dict"):
        cm.explain({}, NEW)
    with pytest.raises(DataError, match="'n_nearest' parameter must be an int of at least 1"):
        cm.explain(ridge, NEW, n_nearest=0)


def test_known_tasks_by_their_ids(ridge):
    found = cm.explain(ridge, task=["shop 3", "shop 7"])
    given = cm.explain(ridge, SIDE.loc[["shop 3", "shop 7"]])
    np.testing.assert_allclose(found.theta, given.theta, rtol=1e-9)
    np.testing.assert_allclose(found.contributions, given.contributions, rtol=1e-9, atol=1e-12)
    assert found.neighbours.ids.tolist() == given.neighbours.ids.tolist()
    table = ridge.coef_frame(wide=True).set_index("task").loc[["shop 3", "shop 7"]]
    np.testing.assert_allclose(found.adapted, table[found.features], rtol=1e-9)
    assert found.n.tolist() == [N, N]
    assert given.adapted is None
    assert "with its 6 points it is at x0" in repr(cm.explain(ridge, task="shop 3"))


def test_known_tasks_are_found_or_named(ridge):
    with pytest.raises(DataError, match="1 task is missing from the model: 'shop 99'"):
        cm.explain(ridge, task="shop 99")
    with pytest.raises(DataError, match="not both"):
        cm.explain(ridge, NEW, task="shop 3")
    with pytest.raises(
        DataError, match=r"'shop 3' is a known task: call explain\(model, task=...\)"
    ):
        cm.explain(ridge, "shop 3")
    bare = cm.ConditionalRidge(keep_tasks=False).fit(X, Y, task=TASK, side_info=SIDE)
    with pytest.raises(DataError, match="does not keep the side information of its tasks"):
        cm.explain(bare, task="shop 3")
