"""Learn from statistics of tasks that another engine made: any engine that can GROUP BY.

Of each task `ConditionalRidge` needs the number of rows, the means of its columns, and the sums of
products around these means. Sums around zero would lose their digits where tasks lie far apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from condmeta.errors import DataError
from condmeta.fitted.columns import Columns
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.predictor import LinearPredictor
from condmeta.fitted.scales import Scales
from condmeta.fitted.solve import solve_statistics
from condmeta.fitted.sql import find_dialect
from condmeta.inner.packed import triangle
from condmeta.inner.scatter import Scatter
from condmeta.learners.checks import refuse_weighing
from condmeta.learners.copies import with_fitted
from condmeta.learners.learn import conclude
from condmeta.learners.parameters import check_learner, jobs_of
from condmeta.learners.ridge import ConditionalRidge
from condmeta.learners.side_inputs import side_reader
from condmeta.meta.task_statistics import SAMPLE, TaskStatistics
from condmeta.tasks import TaskTable
from condmeta.tasks.frames import (
    backend_of,
    eager,
    get_column,
    get_series,
    is_frame,
    require_columns,
    select_columns,
)
from condmeta.tasks.ids import factorize, positions
from condmeta.tasks.messages import bad_parameter, name_task, show_ids
from condmeta.tasks.numbers import to_floats
from condmeta.tasks.side_table import as_names, read_side_table
from condmeta.tasks.splits import task_keys
from condmeta.typing import Names, SideInfo, Table

FLOAT = {"bigquery": "FLOAT64", "postgres": "DOUBLE PRECISION", "sqlite": "REAL"}  # else DOUBLE


def statistics_sql(
    features: Sequence[str], target: str, task: Names, rows: str = "rows", dialect: str = "duckdb"
) -> str:
    """Return a query that makes the table that `from_statistics` reads.

    It goes through the rows twice: for the means of each task, then for the sums of products around
    them. The columns are the task columns; n; m0, m1, ..., the means of the features and of the
    target, which is last; and s0_0, s1_0, s1_1, ..., the sums of products.

    Parameters
    ----------
    features : list of str
        Columns of numbers without gaps.
    target : str
    task : str or list of str
    rows : str
        The name of the table, or of a view.
    dialect : "duckdb", "postgres", "sqlite", "snowflake", "bigquery" or "spark"

    Examples
    --------
    >>> import condmeta as cm
    >>> print(cm.statistics_sql(["price"], "sold", "store", rows="sales"))
    WITH means AS (
      SELECT "store",
        COUNT(*) AS n,
        AVG(CAST("price" AS DOUBLE)) AS m0,
        AVG(CAST("sold" AS DOUBLE)) AS m1
      FROM "sales" GROUP BY "store"
    )
    SELECT m."store",
      MAX(m.n) AS n,
      MAX(m.m0) AS m0,
      MAX(m.m1) AS m1,
      SUM((r."price" - m.m0) * (r."price" - m.m0)) AS s0_0,
      SUM((r."sold" - m.m1) * (r."price" - m.m0)) AS s1_0,
      SUM((r."sold" - m.m1) * (r."sold" - m.m1)) AS s1_1
    FROM "sales" r JOIN means m ON r."store" = m."store"
    GROUP BY m."store"
    """
    sql, kind = find_dialect(dialect), FLOAT.get(dialect, "DOUBLE")
    columns, keys = [*as_names(features), target], [sql.name(name) for name in as_names(task)]
    means = [f"AVG(CAST({sql.name(c)} AS {kind})) AS m{i}" for i, c in enumerate(columns)]
    centred = [f"(r.{sql.name(c)} - m.m{i})" for i, c in enumerate(columns)]
    pairs = list(zip(*triangle(len(columns)), strict=True))
    sums = [f"SUM({centred[i]} * {centred[j]}) AS s{i}_{j}" for i, j in pairs]
    by = [f"MAX(m.m{i}) AS m{i}" for i in range(len(columns))]
    inner, outer = ",\n    ".join(["COUNT(*) AS n", *means]), ["MAX(m.n) AS n", *by, *sums]
    found = ", ".join(f"m.{key}" for key in keys)
    same = " AND ".join(f"r.{key} = m.{key}" for key in keys)
    return (
        f"WITH means AS (\n  SELECT {', '.join(keys)},\n    {inner}\n"
        f"  FROM {sql.name(rows)} GROUP BY {', '.join(keys)}\n)\n"
        f"SELECT {found},\n  " + ",\n  ".join(outer) + "\n"
        f"FROM {sql.name(rows)} r JOIN means m ON {same}\nGROUP BY {found}"
    )


def from_statistics(
    table: Table, *, features: Sequence[str], target: str, task: Names, side_info: SideInfo = None,
    learner: ConditionalRidge | None = None, prior_tasks: Literal["all"] | int = "all",
) -> ConditionalRidge:  # fmt: skip
    """Fit a `ConditionalRidge` to statistics of tasks, which a database computes with GROUP BY.

    The settings are chosen by the evidence on 500 tasks: statistics cannot hold out single rows of
    a task. Coefficients are those of a fit to the rows with these settings, to rounding.

    Parameters
    ----------
    table : table with one row per task
        The result of `statistics_sql`.
    features, target, task : as in `statistics_sql`
    side_info : table keyed by task id, optional
        One row for each task; those without statistics are kept as tasks without points.
    learner : ConditionalRidge, optional
        Its settings; it is cloned.
    prior_tasks : "all" or int
        How many tasks the prior is learned from: those with the smallest keys (hashes of their
        ids). The models of all tasks are solved from it. With p numbers in the prior, m tasks lose
        about p / (2 m) nats a task.

    Examples
    --------
    >>> import duckdb, numpy as np, pandas as pd, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> sales = pd.DataFrame({"store": np.repeat(range(40), 6), "price": rng.normal(size=240)})
    >>> sales["sold"] = (5 + sales["store"] % 4) * sales["price"] + rng.normal(size=240)
    >>> query = cm.statistics_sql(["price"], "sold", "store", rows="sales")
    >>> found = duckdb.sql(query).to_arrow_table()
    >>> model = cm.from_statistics(found, features=["price"], target="sold", task="store")
    >>> model.predict(pd.DataFrame({"price": [1.0]}), task=[3]).round(0)
    array([8.])
    """
    learner = ConditionalRidge() if learner is None else clone(learner)
    if type(learner) is not ConditionalRidge:
        raise DataError("Statistics are enough for a ConditionalRidge alone.")
    check_learner(learner)
    for name in ("base", "x_transform", "y_transform", "drift"):
        if getattr(learner, name, None) not in (None, "auto"):
            raise DataError(f"Statistics hold no rows, which {name}= needs: set {name}=None.")
    refuse_weighing(learner)
    if learner.scale == "rows":
        raise DataError("Statistics hold no rows, which scale='rows' needs: use another scale.")
    if prior_tasks != "all" and not (isinstance(prior_tasks, int) and prior_tasks >= 2):
        raise bad_parameter("prior_tasks", "'all' or an int of at least 2", prior_tasks)
    names, keys = as_names(features), as_names(task)
    ids, scatter = _read(table, [*names, target], keys)
    side = None
    if side_info is not None:
        side = read_side_table(side_info, task_name=_named(keys))
        extra = side.ids[positions(ids, side.ids) < 0]
        ids = np.concatenate([ids, extra])
        scatter = scatter.join(Scatter.of(np.empty((0, len(names))), np.empty(0), _none(extra)))
        side = side.take(ids[side.has(ids)])
    start = _start(learner, names, keys, backend_of(table))
    state = _collected(ids, scatter, side)
    return with_fitted(learner, _learned(learner, start, state, prior_tasks))


def _named(keys: list[str]) -> Any:
    return keys[0] if len(keys) == 1 else tuple(keys)


def _none(ids: Any) -> np.ndarray:
    return np.zeros(len(ids) + 1, np.int64)


def _read(table: Any, columns: list[str], keys: list[str]) -> tuple[np.ndarray, Scatter]:
    """Return the ids and the statistics of a table; y is the last column."""
    if not is_frame(table):
        raise DataError(
            f"Statistics are a pandas, polars or PyArrow table, got a {type(table).__name__}."
        )
    table, p = eager(table), len(columns)
    rows, of = triangle(p)
    means = [f"m{i}" for i in range(p)]
    sums = [f"s{i}_{j}" for i, j in zip(rows, of, strict=True)]
    require_columns(table, keys, "task")
    require_columns(table, ["n", *means, *sums], "statistics")
    if f"m{p}" in table.columns:
        raise DataError(
            f"The statistics have more columns than {', '.join(columns)}: name all features, in "
            "the order that statistics_sql got."
        )
    one = len(keys) == 1
    codes, ids = factorize(get_series(table, keys[0]) if one else select_columns(table, keys))
    if len(ids) < len(codes):
        twice = ids[np.bincount(codes) > 1]
        raise DataError(
            f"{len(twice)} tasks have more than one row of statistics: {show_ids(twice)}. Group "
            "by the task columns alone."
        )
    if not len(ids):
        raise DataError("There are no tasks: the table of statistics has no rows.")
    numbers = {
        name: to_floats(get_column(table, name), f"Column {name!r}")
        for name in ["n", *means, *sums]
    }
    for name, values in numbers.items():
        low = 0.0 if name == "n" or name in {f"s{i}_{i}" for i in range(p)} else -np.inf
        wrong = ~np.isfinite(values) | (values < low)
        if wrong.any():
            at = int(np.argmax(wrong))
            what = "a number" if low < 0 else "a number of at least 0"
            raise DataError(
                f"{name_task(ids[at])} has {values[at]:g} in {name!r}, which must be {what}. Leave "
                "out rows with gaps, in the query."
            )
    count = numbers["n"]
    if (count == np.floor(count)).all():
        count = count.astype(np.int64)
    mean = np.column_stack([numbers[name] for name in means])
    return ids, Scatter(count, mean, np.column_stack([numbers[name] for name in sums]))


def _start(learner: ConditionalRidge, names: list[str], keys: list[str], backend: Any) -> Fitted:
    """Return the value before anything is learned; its scales are those of the statistics."""
    d = len(names)
    scales = Scales(learner.scale, learner.fit_intercept, np.zeros(d), np.ones(d), 0.0, d)
    reader = side_reader(learner)
    if reader.reads_points:
        raise DataError(
            "Statistics hold no rows, which feature maps of points need: use another map."
        )
    owner, given = type(learner).__name__, tuple(names)
    predictor = LinearPredictor(owner, scales, inner=None, feature_names=given, weighs=True)
    columns = Columns(d, given, _named(keys), backend)
    return Fitted(
        predictor, reader, tau=None, tasks=None, columns=columns, n_tasks=0,
        conditioning=learner.conditioning, info={},
    )  # fmt: skip


def _collected(ids: Any, scatter: Scatter, side: TaskTable | None) -> TaskStatistics:
    """Return what is collected of tasks; no rows are held out."""
    keys = task_keys(ids)
    order = np.argsort(keys, kind="stable")
    sample = order[scatter.count[order] > 0][:SAMPLE]
    halves = Scatter.of(np.empty((0, scatter.mean.shape[1] - 1)), np.empty(0), _none(sample))
    sizes = np.ceil(scatter.count).astype(np.int64)
    return TaskStatistics(ids, scatter, side, None, sizes, keys, sample, halves, halves, None)


def _learned(learner: Any, start: Fitted, state: TaskStatistics, prior_tasks: Any) -> Fitted:
    """Learn the prior from some tasks, or from all; then the models of all."""
    order = state.order()
    if prior_tasks == "all" or prior_tasks >= len(order):
        return conclude(learner, start._replace(state=state))
    some = order[:prior_tasks]
    side = state.table
    if side is not None:
        side = side.take(state.ids[some][side.has(state.ids[some])])
    fitted = conclude(
        learner, start._replace(state=_collected(state.ids[some], state.whole.take(some), side))
    )
    Phi = fitted.reader.features(state.ids, state.table, None, fitted.tau)
    store = solve_statistics(fitted, state, Phi, jobs_of(learner)) if learner.keep_tasks else None
    return fitted._replace(state=state, tasks=store)
