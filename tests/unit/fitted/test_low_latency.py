"""A snapshot without checks answers as the learner does, bit for bit."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError

T, N, D = 60, 6, 4
RNG = np.random.default_rng(0)
X = RNG.normal(3, 2, size=(T * N, D))
TASK = np.repeat(np.arange(T), N)
SIDE = {
    "size": np.where(np.arange(T) % 9, RNG.normal(size=T), np.nan),
    "kind": np.array(["new", "old", None, "old"] * (T // 4), object),
    "open": np.arange(T) % 2 == 0,
}
Y = X @ [1.0, 0.0, -1.0, 0.5] + RNG.normal(size=T)[TASK] + RNG.normal(size=T * N)
ROWS = [
    {"size": 0.3, "kind": "old", "open": True},
    {"size": None, "kind": None, "open": False},
    {"size": -4.0, "kind": "new", "open": True},
]


def fit(side=True, **options):
    table = cm.TaskTable(SIDE, ids=range(T)) if side else None
    return cm.ConditionalRidge(**options).fit(X, 1000 * Y, task=TASK, side_info=table)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": "standard", "noise": "per_task"},
        {"fit_intercept": False, "metric": "full", "kappa": 1.0},
    ],
)
def test_new_tasks_with_side_information(options):
    model = fit(**options)
    fast = model.low_latency()
    for n in (0, 1, 3, 17):
        for row in ROWS:
            points, labels = X[40 : 40 + n], Y[40 : 40 + n]
            given = (points, labels) if n else ()
            plain = model.adapt(*given, side_info=row)
            found = fast.adapt(points, labels, side_info=row)
            np.testing.assert_array_equal(found.predict(X[:5]), plain.predict(X[:5]))
            np.testing.assert_array_equal(found.predict(X[:1]), plain.predict(X[:1]))
            values = list(row.values())
            np.testing.assert_array_equal(fast.adapt(points, labels, values).coef, found.coef)
            assert found.n == n


def test_known_tasks():
    model = fit()
    fast = model.low_latency()
    for task in (0, 7, T - 1):
        expected = model.predict(X[:3], task=np.full(3, task))
        np.testing.assert_allclose(fast.task(task).predict(X[:3]), expected, rtol=1e-14)
    assert fast.task(7).n == N
    with pytest.raises(KeyError):
        fast.task("seven")


def test_without_side_information():
    model = fit(side=False)
    found = model.low_latency().adapt(X[:4], Y[:4])
    np.testing.assert_array_equal(found.predict(X[:2]), model.adapt(X[:4], Y[:4]).predict(X[:2]))
    with pytest.raises(DataError, match="Give the side information of the task"):
        fit().low_latency().adapt(X[:4], Y[:4])
    mean = fit(missing_side="mean")
    found = mean.low_latency().adapt(X[:4], Y[:4])
    np.testing.assert_array_equal(found.predict(X[:2]), mean.adapt(X[:4], Y[:4]).predict(X[:2]))


def test_a_snapshot_does_not_follow_the_learner():
    model = fit()
    fast = model.low_latency()
    before = fast.task(0).predict(X[:1])
    model.update(X[:6], -1000 * Y[:6], task=TASK[:6])
    np.testing.assert_array_equal(fast.task(0).predict(X[:1]), before)


def test_learners_that_are_not_linear():
    with pytest.raises(DataError, match="base"):
        fit(base="boosting").low_latency()


@pytest.mark.parametrize("scale", ["standard", "none"])
@pytest.mark.parametrize("x_transform", [None, "splines"])
@pytest.mark.parametrize("criterion", ["absolute", "squared"])
def test_transformed_rows_and_labels(criterion, x_transform, scale):
    """The snapshot answered, and read labels, on the scale of the model; splines failed."""
    y = np.exp(Y / 5)
    table = cm.TaskTable(SIDE, ids=range(T))
    how = {"x_transform": x_transform, "y_transform": "log", "criterion": criterion, "scale": scale}
    model = cm.ConditionalRidge(**how).fit(X, y, task=TASK, side_info=table)
    fast = model.low_latency()
    expected = model.predict(X[:3], task=np.full(3, 7))
    np.testing.assert_allclose(fast.task(7).predict(X[:3]), expected, rtol=1e-14)
    few = model.adapt(X[40:43], y[40:43], side_info=ROWS[0]).predict(X[:5])
    found = fast.adapt(X[40:43], y[40:43], ROWS[0]).predict(X[:5])
    np.testing.assert_array_equal(found, few)
