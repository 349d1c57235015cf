"""What predict does, row by row of the table in its documentation."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import draw_problem

from condmeta import ConditionalSGDRegressor, TaskSet, TaskTable
from condmeta.errors import DataError
from condmeta.feature_maps import Identity

X, Y, TASK, SIDE = draw_problem()
NAMES = ["age", "size", "price"]
SPARE = [0.3, -0.7]  # the side row of a task that is in the table of fit, but has no points
TABLE = TaskTable(np.vstack([SIDE.numeric(), SPARE]), [*SIDE.ids, "spare"], ["area", "rent"])
NEW = [1.5, 0.25]
NOW = TaskTable([NEW, [9.0, 9.0]], ["new", "spare"], ["area", "rent"])
KINDS = ["numpy", "pandas", "polars", "pyarrow"]


def frame(kind, columns):
    """Return columns as a table of some library, or an array."""
    if kind == "numpy":
        return np.column_stack(list(columns.values()))
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)


def rows(kind, at=slice(None)):
    return frame(kind, {name: X[at, j] for j, name in enumerate(NAMES)})


def column(kind, values):
    """Return ids as a column of some library."""
    if kind == "numpy":
        return np.array(values)
    return {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.array}[kind](values)


def side(kind, table=TABLE):
    """Return a side table in the form that users of some library have it."""
    if kind == "numpy":
        return table
    columns = {"store": table.ids.tolist()} | {n: table.data[n] for n in table.columns}
    return frame(kind, columns)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def learner(kind):
    learner = ConditionalSGDRegressor(Identity(), side_key=None if kind == "numpy" else "store")
    return learner.fit(rows(kind), Y, task=column(kind, TASK.tolist()), side_info=side(kind))


def tau(learner, row):
    return X @ (learner.M_ @ row + learner.b_)


def test_kinds_agree(learner):
    plain = ConditionalSGDRegressor(Identity()).fit(X, Y, task=TASK, side_info=TABLE)
    np.testing.assert_array_equal(learner.M_, plain.M_)
    assert learner.side_features_ == ["area", "rent"]


def test_known_task_has_its_own_model(learner, kind):
    predicted = learner.predict(rows(kind), task=column(kind, TASK.tolist()))
    for task in SIDE.ids:
        at = task == TASK
        model = learner.adapt(rows(kind, at), Y[at], side_info=TABLE.row(task))
        np.testing.assert_allclose(predicted[at], model.predict(rows(kind, at)), rtol=1e-12)
        assert model.n_ == at.sum()


def test_known_task_ignores_side_information_given_now(learner, kind):
    own = learner.predict(rows(kind), task=column(kind, TASK.tolist()))
    other = TaskTable(100 + SIDE.numeric(), SIDE.ids, TABLE.columns)
    again = learner.predict(
        rows(kind), task=column(kind, TASK.tolist()), side_info=side(kind, other)
    )
    np.testing.assert_array_equal(again, own)


def test_known_task_without_points_has_tau(learner, kind):
    task = column(kind, ["spare"] * len(Y))
    np.testing.assert_allclose(learner.predict(rows(kind), task=task), tau(learner, SPARE))


def test_known_task_without_points_takes_the_row_given_now(learner, kind):
    task = column(kind, ["spare"] * len(Y))
    predicted = learner.predict(rows(kind), task=task, side_info=side(kind, NOW))
    np.testing.assert_allclose(predicted, tau(learner, [9.0, 9.0]))


def test_new_task_with_side_has_tau(learner, kind):
    task = column(kind, ["new"] * len(Y))
    predicted = learner.predict(rows(kind), task=task, side_info=side(kind, NOW))
    np.testing.assert_allclose(predicted, tau(learner, NEW))
    by_dict = learner.predict(rows(kind), task=task, side_info={"new": dict(zip(
        TABLE.columns, NEW, strict=True))})  # fmt: skip
    np.testing.assert_array_equal(by_dict, predicted)


def test_new_task_without_side_is_an_error(learner, kind):
    with pytest.raises(DataError, match=r"1 task is missing from side_info: 'new'.*'mean'"):
        learner.predict(rows(kind), task=column(kind, ["new"] * len(Y)))


def test_new_task_without_side_at_the_mean(kind):
    learner = ConditionalSGDRegressor(Identity(), missing_side="mean", averaging="last")
    learner.fit(X, Y, task=TASK, side_info=TABLE)
    mean = SIDE.numeric().mean(axis=0)  # over the tasks that trained, not the spare one
    predicted = learner.predict(rows("numpy"), task=column(kind, ["new"] * len(Y)))
    np.testing.assert_allclose(predicted, tau(learner, mean), rtol=1e-10)
    np.testing.assert_allclose(predicted, X @ learner.theta_mean_, rtol=1e-10)
    assert not np.allclose(learner.theta_mean_, learner.b_)


def test_missing_id_is_an_error(learner, kind):
    if kind == "numpy":
        ids = np.array(["t0", None], dtype=object)
    else:
        ids = column(kind, ["t0", None])
    with pytest.raises(DataError, match=r"1 missing value among 2 rows \(row 1\)"):
        learner.predict(rows(kind, slice(2)), task=ids)


@pytest.mark.parametrize(
    "row",
    [
        NEW,
        np.array(NEW),
        dict(zip(TABLE.columns, NEW, strict=True)),
        {"rent": NEW[1], "area": NEW[0]},
        pd.Series(NEW, index=["area", "rent"]),
        pd.DataFrame([NEW], columns=["area", "rent"]),
        pl.DataFrame({"area": [NEW[0]], "rent": [NEW[1]]}),
        TaskTable([NEW], ["x"], ["area", "rent"]),
    ],
    ids=lambda row: type(row).__module__ + type(row).__name__,
)
def test_no_task_and_one_side_row_is_a_new_task(row):
    learner = ConditionalSGDRegressor(Identity()).fit(X, Y, task=TASK, side_info=TABLE)
    np.testing.assert_allclose(learner.predict(X, side_info=row), tau(learner, NEW))


def test_no_task_and_several_tasks_is_an_error(learner, kind):
    with pytest.raises(DataError, match=r"knows 7 tasks: .*task=, or by task_column="):
        learner.predict(rows(kind))


def test_no_task_and_one_task_is_that_task(kind):
    learner = ConditionalSGDRegressor(lam=0.2).fit(rows(kind), Y)
    model = learner.adapt(rows(kind), Y)
    np.testing.assert_array_equal(learner.predict(rows(kind)), model.predict(rows(kind)))
    named = ConditionalSGDRegressor(lam=0.2).fit(rows(kind), Y, task=column(kind, ["a"] * len(Y)))
    np.testing.assert_array_equal(named.predict(rows(kind)), learner.predict(rows(kind)))


def test_no_task_without_kept_models_is_an_error():
    learner = ConditionalSGDRegressor(keep_tasks=False).fit(X, Y)
    with pytest.raises(DataError, match="say which one each row belongs to by task="):
        learner.predict(X)


def test_all_rows_of_the_table_in_one_call(learner, kind):
    """Known, spare and new tasks among each other, answered in the order of the rows."""
    ids = ["t0", "spare", "new", "t1", "new", "t0"]
    at = np.arange(6)
    now = TaskTable([NEW], ["new"], TABLE.columns)
    got = learner.predict(rows(kind, at), task=column(kind, ids), side_info=side(kind, now))
    each = [
        learner.predict(rows(kind, [i]), task=column(kind, [ids[i]]), side_info=side(kind, now))[0]
        for i in at
    ]
    np.testing.assert_allclose(got, each, rtol=1e-12)
    np.testing.assert_allclose(got[1], tau(learner, SPARE)[1])
    np.testing.assert_allclose(got[[2, 4]], tau(learner, NEW)[[2, 4]])


@pytest.mark.parametrize("kind", KINDS[1:])
def test_ids_and_side_columns_from_the_frame(kind):
    columns = {name: X[:, j] for j, name in enumerate(NAMES)} | {"store": TASK.tolist()}
    columns |= {n: SIDE.take(TASK.tolist()).numeric()[:, j] for j, n in enumerate(TABLE.columns)}
    learner = ConditionalSGDRegressor(
        Identity(), task_column="store", side_columns=["area", "rent"]
    ).fit(frame(kind, columns), Y)
    plain = ConditionalSGDRegressor(Identity()).fit(X, Y, task=TASK, side_info=SIDE)
    np.testing.assert_array_equal(
        learner.predict(frame(kind, columns)), plain.predict(X, task=TASK)
    )
    assert list(learner.feature_names_in_) == NAMES
    new = columns | {
        "store": ["new"] * len(Y),
        "area": [NEW[0]] * len(Y),
        "rent": [NEW[1]] * len(Y),
    }
    np.testing.assert_allclose(learner.predict(frame(kind, new)), tau(plain, NEW))


@pytest.mark.parametrize("kind", KINDS[1:])
def test_task_by_the_name_of_its_column(kind):
    columns = {name: X[:, j] for j, name in enumerate(NAMES)} | {"store": TASK.tolist()}
    learner = ConditionalSGDRegressor().fit(frame(kind, columns), Y, task="store")
    plain = ConditionalSGDRegressor().fit(X, Y, task=TASK)
    predicted = learner.predict(frame(kind, columns), task="store")
    np.testing.assert_array_equal(predicted, plain.predict(X, task=TASK))


def test_task_set_answers_in_input_order():
    learner = ConditionalSGDRegressor(Identity()).fit(X, Y, task=TASK, side_info=TABLE)
    tasks = TaskSet.from_arrays(X, Y, TASK)
    assert (np.diff(tasks.row_order) < 0).any()
    np.testing.assert_array_equal(learner.predict(tasks), learner.predict(X, task=TASK))
    assert learner.score(tasks) == learner.score(X, Y, task=TASK)


def test_queries_never_change_the_answer_of_other_rows(learner, kind):
    task = column(kind, TASK.tolist())
    before = learner.predict(rows(kind), task=task)
    learner.predict(rows(kind), task=column(kind, ["spare"] * len(Y)))
    np.testing.assert_array_equal(learner.predict(rows(kind), task=task), before)
