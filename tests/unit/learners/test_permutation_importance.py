"""scikit-learn's permutation importance, which shuffles side columns and task ids by row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.inspection import permutation_importance

import condmeta as cm
from condmeta.errors import DataError

T, N = 40, 6
RNG = np.random.default_rng(0)
SIZE, LUCK = RNG.normal(size=(2, T))
CITY = RNG.choice(["Bonn", None], T).astype(object)


def frame(first=0):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({
        "shop": np.repeat([f"shop {first + t}" for t in range(T)], N), "x": rng.normal(size=T * N),
        "size": np.repeat(SIZE, N), "luck": np.repeat(LUCK, N), "city": np.repeat(CITY, N),
    })  # fmt: skip
    return table, 1 + 2 * table["size"] * table["x"] + 0.3 * rng.normal(size=T * N)


@pytest.fixture(scope="module", params=[None, "boosting"], ids=["alone", "on base"])
def model(request):
    options = {"task_column": "shop", "side_columns": ["size", "luck", "city"]}
    learner = cm.ConditionalRidge(metric="diagonal", noise="shared", base=request.param, **options)
    return learner.fit(*frame())


def test_side_columns_of_new_tasks_have_importances(model):
    X, y = frame(first=100)
    found = permutation_importance(model, X, y, n_repeats=4, random_state=0)
    importance = dict(zip(X.columns, found.importances_mean, strict=True))
    assert importance["size"] > 0.5
    assert importance["x"] > 0.5
    assert abs(importance["luck"]) < 0.1
    assert importance["shop"] == 0.0  # all shops are new: an id tells nothing


def test_known_tasks_have_models_of_their_own(model):
    X, y = frame()
    found = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    importance = dict(zip(X.columns, found.importances_mean, strict=True))
    assert importance["shop"] > 0.5
    assert importance["size"] == importance["luck"] == 0.0


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
def test_a_row_of_a_new_task_is_predicted_by_its_own_side_values(model, kind):
    X = frame(first=100)[0]
    mixed = X.assign(size=RNG.permutation(X["size"]), city=RNG.permutation(X["city"]))
    apart = mixed.assign(shop=[f"other {i}" for i in range(len(X))])  # a task for each row
    np.testing.assert_allclose(model.predict(kind(mixed)), model.predict(apart), rtol=1e-12)
    some = X.copy()
    some.loc[:5, "shop"] = "shop 3"  # a known shop among the new ones
    both = model.predict(kind(some.assign(size=mixed["size"])))
    kept = {name: frame()[0][name][3 * N] for name in ("size", "luck", "city")}
    known = model.predict(X[:6].assign(shop="shop 3", **kept))
    np.testing.assert_allclose(both[:6], known, rtol=1e-12)


def test_a_fit_still_needs_one_side_row_for_each_task():
    X, y = frame()
    mixed = X.assign(size=RNG.permutation(X["size"]))
    learner = cm.ConditionalRidge(task_column="shop", side_columns=["size"])
    with pytest.raises(DataError, match="Side column 'size' varies within task 'shop 0'"):
        learner.fit(mixed.drop(columns=["luck", "city"]), y)
