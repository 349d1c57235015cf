"""Statistics that DuckDB makes: the model of the rows themselves."""

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError

duckdb = pytest.importorskip("duckdb")
T, N = 80, 6
ROLES = {"features": ["price", 'we"ird'], "target": "sold", "task": "store"}
SETTINGS = {
    "context": False,
    "cold_start": "prior",
    "metric": "diagonal",
    "noise": "shared",
    "kappa": 1.0,
    "tol": 1e-6,
}


def table(far=0.0):
    rng = np.random.default_rng(0)
    store = np.repeat(np.arange(T), N)
    X = rng.normal(size=(T * N, 2)) + far * store[:, None]
    w = rng.normal([2.0, -1.0], 0.5, size=(T, 2))
    y = np.einsum("ni,ni->n", X - far * store[:, None], w[store]) + rng.normal(size=T * N)
    rows = pd.DataFrame({"store": [f"s{t}" for t in store], "price": X[:, 0], 'we"ird': X[:, 1]})
    return rows.assign(sold=y + far * store)


def stores(extra=3):
    rng = np.random.default_rng(1)
    ids = [f"s{t}" for t in range(T + extra)]
    return pd.DataFrame({"store": ids, "size": rng.normal(size=T + extra)})


def statistics(rows, **names):
    found = ROLES | names
    query = cm.statistics_sql(found["features"], found["target"], found["task"])
    connection = duckdb.connect()
    connection.register("rows", rows)
    return connection.sql(query).to_arrow_table()


def by_id(model):
    store = model.fitted_.tasks
    return store.coef[store.positions([f"s{t}" for t in range(T + 3)])]


def fit_rows(rows, side):
    learner = cm.ConditionalRidge(**SETTINGS)
    return learner.fit(rows[ROLES["features"]], rows["sold"], task=rows["store"], side_info=side)


def test_the_model_is_that_of_the_rows():
    rows, side = table(), stores()
    whole = fit_rows(rows, side)
    learner = cm.ConditionalRidge(**SETTINGS)
    found = cm.from_statistics(statistics(rows), side_info=side, learner=learner, **ROLES)
    np.testing.assert_allclose(by_id(found), by_id(whole), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.H_, whole.H_, rtol=1e-6)
    assert found.s2_ == pytest.approx(whole.s2_, rel=1e-7)
    new, task = rows[ROLES["features"]][:4], ["s0", "s1", "s2", "s82"]
    np.testing.assert_allclose(found.predict(new, task=task), whole.predict(new, task=task))
    more = {"task": rows["store"][:9]}
    for model in (found, whole):
        model.update(rows[ROLES["features"]][:9], rows["sold"][:9], **more)
    np.testing.assert_allclose(by_id(found), by_id(whole), rtol=1e-6, atol=1e-8)


def test_no_digits_are_lost_where_tasks_lie_far_apart():
    rows = table(far=1e6)
    found = cm.from_statistics(statistics(rows), **ROLES).fitted_  # its groups come in any order
    expected = fit_rows(rows, None).fitted_
    at = [list(expected.tasks.ids).index(f"s{t}") for t in range(T)]
    theirs = expected.state.whole.scatter[at] * np.multiply.outer(
        expected.scales.units, expected.scales.units
    )
    ids = found.tasks.ids.tolist()
    ours = found.state.whole.scatter[[ids.index(f"s{t}") for t in range(T)]]
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_settings_are_chosen_by_the_evidence():
    found = cm.from_statistics(statistics(table()), **ROLES)
    assert found.metric_ in ("identity", "diagonal", "full")
    assert len(found.choice_) > 1


def test_the_prior_of_some_tasks_and_the_models_of_all():
    rows, side = table(), stores()
    learner = cm.ConditionalRidge(**SETTINGS)
    given = {"side_info": side, "learner": learner, **ROLES}
    some = cm.from_statistics(statistics(rows), prior_tasks=40, **given)
    every = cm.from_statistics(statistics(rows), prior_tasks=10**6, **given)
    assert (some.n_tasks_, every.n_tasks_) == (40, T)
    assert len(some.fitted_.tasks) == len(every.fitted_.tasks) == T + 3
    assert not np.array_equal(some.M_, every.M_)
    # A task's model is the posterior given the prior and all of its points.
    rows_of = rows[rows["store"] == "s7"]
    alone = some.adapt(
        rows_of[ROLES["features"]], rows_of["sold"], side_info={"size": side["size"][7]}
    )
    at = some.fitted_.tasks.positions(["s7"])[0]
    own = some.fitted_.scales.user_vector(some.fitted_.tasks.coef[at])
    np.testing.assert_allclose(alone.coef_, own[:2], rtol=1e-9)


def test_ids_of_two_columns():
    rows = table().assign(land=lambda f: np.where(f["store"] < "s3", "DE", "FR"))
    found = statistics(rows, task=["land", "store"])
    model = cm.from_statistics(found, **(ROLES | {"task": ["land", "store"]}))
    assert ("DE", "s1") in model.fitted_.tasks.ids.tolist()


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_dialects_that_duckdb_understands(dialect):
    query = cm.statistics_sql(["price"], "sold", "store", dialect=dialect)
    connection = duckdb.connect()
    connection.register("rows", table())
    assert len(connection.sql(query).fetchall()) == T


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"learner": cm.ConditionalRidge(base="boosting")}, "which base= needs"),
        ({"learner": cm.ConditionalRidge(scale="rows")}, "which scale='rows' needs"),
        ({"learner": cm.PooledRegressor()}, "enough for a ConditionalRidge alone"),
        ({"prior_tasks": 1}, "'prior_tasks' parameter must be 'all' or an int of at least 2"),
        ({"features": ["price", "rain", "snow"]}, "m3"),
    ],
)
def test_calls_that_cannot_work(options, sentence):
    with pytest.raises(DataError, match=sentence):
        cm.from_statistics(statistics(table()), **(ROLES | options))


def test_tables_that_are_no_statistics():
    good = statistics(table()).to_pandas()
    bad = good.assign(s0_0=good["s0_0"].where(good.index != 3, -1.0))
    with pytest.raises(DataError, match=r"has -1 in 's0_0', which must be a number of at least 0"):
        cm.from_statistics(bad, **ROLES)
    with pytest.raises(DataError, match="1 tasks have more than one row of statistics"):
        cm.from_statistics(pd.concat([good, good[:1]]), **ROLES)
    with pytest.raises(DataError, match="got a dict"):
        cm.from_statistics({}, **ROLES)
    with pytest.raises(DataError, match="has no rows"):
        cm.from_statistics(good[:0], **ROLES)
