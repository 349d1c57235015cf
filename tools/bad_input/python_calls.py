"""Calls of the Python functions with bad input."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import condmeta as cm
from condmeta.feature_maps import CircleMap, Identity, MeanInput, RandomFourier
from tools.bad_input.contract import Case
from tools.bad_input.values import (
    BAD_CLASSES,
    BAD_SIDE,
    BAD_TASK,
    BAD_X,
    BAD_Y,
    FRAME,
    OTHER_WIDTHS,
    SIDE,
    TASK,
    X,
    Y,
)

FIXED = {"metric": "identity", "noise": "shared", "kappa": 1.0}
COUNTS = np.arange(24.0) % 5 + 1
GOOD = {"X": FRAME, "y": Y, "task": TASK, "side_info": SIDE}


@cache
def fitted() -> cm.ConditionalRidge:
    """Return a learner fitted to good data."""
    return cm.ConditionalRidge(**FIXED).fit(**GOOD)


@cache
def timed() -> cm.ConditionalRidge:
    """Return a learner that forgets, fitted to good data."""
    return cm.ConditionalRidge(drift=0.9, **FIXED).fit(**GOOD, time=np.arange(24.0))


@cache
def classifier() -> cm.ConditionalLogistic:
    """Return a classifier fitted to good data."""
    learner = cm.ConditionalLogistic(metric="identity", kappa=1.0)
    return learner.fit(FRAME, np.where(Y > 0, "yes", "no"), task=TASK, side_info=SIDE)


def state(learner: Any) -> tuple:
    """Return what a refused call must leave alone: the value, the parameters, the predictions."""
    return learner.fitted_, learner.get_params(), learner.predict(FRAME, task=TASK)


def on(learner: Callable, name: str, given: str, what: str, **arguments: Any) -> Case:
    """Return a case of a method of a fitted learner."""
    mine = copy.copy(learner())  # the fitted value is immutable
    return Case(
        f"{type(mine).__name__}.{name}",
        f"{given}: {what}",
        lambda: getattr(mine, name)(**arguments),
        lambda: state(mine),
    )


def values() -> Iterator[Case]:
    """Yield calls with one bad argument."""
    new = {"X": FRAME, "y": Y, "task": np.char.add(TASK, " new")}
    points = {"X": FRAME[:3], "y": Y[:3], "side_info": {"size": 1.0, "city": "A"}}
    for what, bad in BAD_X.items():
        yield on(fitted, "fit", "X", what, **(GOOD | {"X": bad}))
        yield on(fitted, "predict", "X", what, X=bad, task=TASK)
        yield on(fitted, "update", "X", what, X=bad, y=Y, task=TASK)
        if what != "no rows":  # a task may have none
            yield on(fitted, "adapt", "X", what, X=bad, y=Y, side_info=points["side_info"])
    for what, bad in OTHER_WIDTHS.items():
        yield on(fitted, "predict", "X", what, X=bad, task=TASK)
        yield on(fitted, "update", "X", what, X=bad, y=Y, task=TASK)
        yield on(fitted, "partial_fit", "X", what, **(new | {"X": bad, "side_info": SIDE}))
    for what, bad in BAD_Y.items():
        yield on(fitted, "fit", "y", what, **(GOOD | {"y": bad}))
        yield on(fitted, "update", "y", what, X=FRAME, y=bad, task=TASK)
        yield on(fitted, "adapt", "y", what, X=FRAME, y=bad, side_info=points["side_info"])
    for what, bad in BAD_CLASSES.items():
        yield on(classifier, "fit", "y", what, **(GOOD | {"y": bad}))
    for what, bad in BAD_TASK.items():
        yield on(fitted, "fit", "task", what, **(GOOD | {"task": bad}))
        yield on(fitted, "predict", "task", what, X=FRAME, task=bad)
        yield on(fitted, "update", "task", what, X=FRAME, y=Y, task=bad)
    for what, bad in BAD_SIDE.items():
        yield on(fitted, "fit", "side_info", what, **(GOOD | {"side_info": bad}))
    for what, bad in {
        "a number": 3.0, "a text": "Rome", "a column fewer": {"size": 1.0},
        "text where numbers were": {"size": "large", "city": "A"}, "a row too short": [1.0],
        "infinity": {"size": np.inf, "city": "A"}, "a list of lists": [[1.0, "A"]],
        "a function": print, "an empty dict": {},
    }.items():  # fmt: skip
        yield on(fitted, "theta_for", "side_info", what, side_info=bad)
        yield on(fitted, "adapt", "side_info", what, **(points | {"side_info": bad}))
    for what, bad in {
        "a weight fewer": np.ones(23), "a negative weight": np.linspace(-1, 1, 24),
        "NaN": np.full(24, np.nan), "infinity": np.full(24, np.inf), "text": ["1"] * 24,
        "two columns": np.ones((24, 2)), "all zero": np.zeros(24), "a complex number": [1j] * 24,
    }.items():  # fmt: skip
        yield on(fitted, "fit", "sample_weight", what, **(GOOD | {"sample_weight": bad}))
        if what not in ("a negative weight", "all zero"):
            yield on(fitted, "fit", "offset", what, **(GOOD | {"offset": bad}))


def times() -> Iterator[Case]:
    """Yield calls with bad times of rows."""
    rows = {"X": FRAME, "y": Y, "task": TASK}
    for what, bad in {
        "a time fewer": np.arange(23.0), "NaN": np.append(np.arange(23.0), np.nan),
        "infinity": np.full(24, np.inf), "text": ["2024-01-31"] * 24, "None": [None] * 24,
        "a date that is missing": np.full(24, np.datetime64("NaT")),
        "two columns": np.ones((24, 2)), "complex numbers": [1j] * 24, "dicts": [{}] * 24,
        "no column of X": "when",
    }.items():  # fmt: skip
        yield on(timed, "fit", "time", what, **(GOOD | {"time": bad}))
        yield on(timed, "update", "time", what, **(rows | {"time": bad}))
        yield on(timed, "predict", "time", what, X=FRAME, task=TASK, time=bad)
    days = np.arange(24).astype("datetime64[D]")
    yield on(timed, "update", "time", "dates where numbers were", **(rows | {"time": days}))
    yield on(timed, "update", "time", "not given", **rows)
    yield on(timed, "adapt", "time", "not given", X=FRAME, y=Y, task=TASK, side_info=SIDE)
    new = {"X": FRAME, "y": Y, "task": np.char.add(TASK, " new"), "side_info": SIDE}
    yield on(timed, "partial_fit", "time", "after a fit", **(new | {"time": np.arange(24.0)}))
    yield on(fitted, "update", "time", "given, but not to fit", **(rows | {"time": np.arange(24)}))
    wide = np.random.default_rng(0).normal(size=(24, 70))
    yield on(timed, "fit", "time", "with 70 columns", X=wide, y=Y, task=TASK, time=np.arange(24))


def misuse() -> Iterator[Case]:
    """Yield calls in the wrong state or with arguments that do not go together."""
    tasks = cm.TaskSet.from_arrays(X, Y, TASK)
    unlabelled = cm.TaskSet.from_arrays(X, None, TASK)
    free = cm.ConditionalRidge(**FIXED)
    yield Case("ConditionalRidge.predict", "before fit", lambda: free.predict(X))
    yield Case("ConditionalRidge.adapt", "before fit", lambda: free.adapt(X, Y))
    yield Case("ConditionalRidge.update", "before fit", lambda: free.update(X, Y))
    yield Case("ConditionalRidge.save", "before fit", lambda: free.save("never"))
    yield Case("ConditionalRidge.theta_for", "before fit", lambda: free.theta_for([1.0]))
    yield on(fitted, "fit", "X", "a TaskSet, and y beside it", X=tasks, y=Y)
    yield on(fitted, "fit", "X", "a TaskSet without targets", X=unlabelled)
    yield on(fitted, "predict", "task", "not given", X=FRAME)
    yield on(fitted, "update", "task", "not given", X=FRAME, y=Y)
    yield on(fitted, "predict", "task", "an unknown one", X=FRAME[:1], task=["store 99"])
    yield on(fitted, "partial_fit", "task", "known ones", **GOOD)
    yield on(fitted, "predict", "return_std", "with an offset too short", X=FRAME, task=TASK,
             offset=[1.0])  # fmt: skip
    yield on(fitted, "save", "path", "a folder that does not exist", path="no/such/folder/model")
    yield on(fitted, "save", "path", "a number", path=3.5)
    yield on(classifier, "update", "a learner", "that cannot be updated", X=FRAME, y=Y > 0,
             task=TASK)  # fmt: skip
    yield Case("load", "a file that does not exist", lambda: cm.load("no-such-model.condmeta"))
    yield Case("load", "a folder", lambda: cm.load("."))
    yield Case("load", "a text file", lambda: cm.load("pyproject.toml"))
    yield Case("load", "a number", lambda: cm.load(3.5))


PARAMETERS = {
    "ConditionalRidge": {
        "drift": [0.0, 1.5, "often", ("walk", 0.9), ("ar",), True],
        "metric": ["round", 1, None], "noise": ["loud", 1], "kappa": [-1.0, "much", np.nan],
        "tol": [0.0, -1.0, "small"], "max_iter": [0, 1.5, "many"], "scale": ["big", None],
        "fit_intercept": ["yes", 2], "missing_side": ["drop", None], "conditioning": ["half"],
        "feature_map": ["magic", 3, [3]], "base": ["forest", 3], "n_jobs": ["all", 1.5],
        "x_transform": [3],
    },
    "ConditionalSGDRegressor": {
        "lam": [0.0, -1.0, np.inf, "auto", None], "meta_step": [0.0, -1.0, "fast"],
        "loss": ["hinges", 3, None], "inner": ["offline", 3], "averaging": ["none", 1],
        "gradient_at": ["end"], "tol": [-1.0],
    },
    "ConditionalLogistic": {"metric": ["round"], "kappa": [-1.0], "max_iter": [0]},
    "ConditionalCount": {"metric": ["round"], "alpha": [-1.0]},
    "ConditionalOrdinal": {"classes": [["a", "a"]]},
    "ConditionalERMRegressor": {
        "lam": [0.0, "big"], "kappa": [0.0, -1.0], "loss": ["squares"], "max_iter": [-5],
    },
    "KernelConditionalSGDRegressor": {
        "kernel": ["cubic", 3], "lam": [-1.0], "meta_step": [np.nan], "averaging": ["none"],
    },
    "ConditionalSGDRegressorCV": {
        "lams": [[], [-1.0], "all"], "meta_steps": [[0.0], ["a"]], "search": ["random"],
        "split": [0, 1.5, "half"], "inner": [3],
    },
    "IndependentRegressor": {"lam": ["auto", -1.0], "loss": ["cubic"], "inner": [None]},
    "PooledRegressor": {"lam": ["auto", 0.0], "scale": ["rows?"]},
    "FixedBiasRegressor": {"theta": [[1.0], "zero", np.nan, [1.0, 2.0, 3.0]], "lam": [0]},
    "AutoRegressor": {"criterion": ["cubic"], "shots": [[-1], "few"], "order": ["last"]},
}  # fmt: skip


def parameters() -> Iterator[Case]:
    """Yield fits with one bad parameter."""
    for kind, names in PARAMETERS.items():
        for name, bad_values in names.items():
            for bad in bad_values:
                learner = getattr(cm, kind)(**{name: bad})
                yield Case(
                    f"{kind}.fit", f"{name}={bad!r}",
                    lambda learner=learner: copy.copy(learner).fit(X, Y, task=TASK, side_info=SIDE),
                )  # fmt: skip


@cache
def counted() -> cm.ConditionalCount:
    """Return a model of counts, fitted to good data."""
    learner = cm.ConditionalCount(metric="identity", kappa=1.0)
    return learner.fit(FRAME, COUNTS, task=TASK, side_info=SIDE)


def labels_of_other_models() -> Iterator[Case]:
    """Yield bad labels, exposures and trials of counts, shares and ordered classes."""
    for what, bad in {
        "negative": COUNTS - 5, "text": ["many"] * 24, "NaN": COUNTS * np.nan,
        "infinity": np.full(24, np.inf), "a count fewer": COUNTS[:-1], "1e300": COUNTS + 1e300,
        "complex numbers": COUNTS * 1j, "dates": np.full(24, np.datetime64("2024-01-31")),
    }.items():  # fmt: skip
        yield on(counted, "fit", "y", what, **(GOOD | {"y": bad}))
    for what, bad in {
        "zero": np.zeros(24), "negative": -np.ones(24), "NaN": np.full(24, np.nan),
        "infinity": np.full(24, np.inf), "an exposure fewer": np.ones(23), "text": ["1"] * 24,
        "two columns": np.ones((24, 2)),
    }.items():  # fmt: skip
        yield on(counted, "fit", "exposure", what, **(GOOD | {"y": COUNTS, "exposure": bad}))
    shares = cm.ConditionalLogistic(metric="identity", kappa=1.0)
    for what, bad in {
        "fewer than successes": COUNTS - 1, "zero": np.zeros(24), "NaN": np.full(24, np.nan),
        "a number fewer": np.full(23, 9.0), "text": ["9"] * 24,
    }.items():  # fmt: skip
        call = GOOD | {"y": COUNTS, "trials": bad}
        yield Case("ConditionalLogistic.fit", f"trials: {what}",
                   lambda call=call: copy.copy(shares).fit(**call))  # fmt: skip
    ordered = cm.ConditionalOrdinal(classes=["low", "high"])
    for what, bad in {
        "a class that is not listed": np.where(Y > 0, "low", "huge"), "numbers": Y,
        "missing": [None] * 24, "a label fewer": np.array(["low", "high"] * 11),
    }.items():  # fmt: skip
        call = GOOD | {"y": bad}
        yield Case("ConditionalOrdinal.fit", f"y: {what}",
                   lambda call=call: copy.copy(ordered).fit(**call))  # fmt: skip


def other_ways() -> Iterator[Case]:
    """Yield bad input of levels, shrinkage, statistics, formulas and files."""
    grouped = [(task[-1] < "3", task) for task in TASK]
    means = pd.DataFrame({"slope": np.arange(1.0, 9.0)}, index=sorted(set(TASK)))
    rows = pd.DataFrame(X, columns=["a", "b"]).assign(shop=TASK, sold=Y)
    table = _statistics(rows)
    how = {"features": ["a", "b"], "target": "sold", "task": "shop"}
    model = cm.TableModel(task="shop", target="sold")
    levels = cm.ConditionalLevels
    calls: dict[str, dict[str, Callable]] = {
        "ConditionalLevels.fit": {
            "ids of different lengths": lambda: levels().fit(X, Y, task=[*grouped[:-1], ("a",)]),
            "an empty tuple": lambda: levels().fit(X, Y, task=[*grouped[:-1], ()]),
            "a group that is None": lambda: levels().fit(X, Y, task=[*grouped[:-1], (None, "a")]),
            "X with NaN": lambda: levels().fit(X * np.nan, Y, task=grouped),
            "an id fewer": lambda: levels().fit(X, Y, task=grouped[:-1]),
        },
        "shrink": {
            "no errors": lambda: cm.shrink(means),
            "both errors and covariances": lambda: cm.shrink(
                means, np.ones((8, 1, 1)), std_errors=means
            ),
            "a negative error": lambda: cm.shrink(means, std_errors=-means),
            "an error of zero": lambda: cm.shrink(means, std_errors=0 * means),
            "errors of other tasks": lambda: cm.shrink(means, std_errors=means[:-1]),
            "a covariance that is not symmetric": lambda: cm.shrink(
                means.assign(b=1.0), np.tile([[1.0, 2.0], [0.0, 1.0]], (8, 1, 1))
            ),
            "infinity": lambda: cm.shrink(means / 0, std_errors=means),
            "text": lambda: cm.shrink(means.astype(str) + "x", std_errors=means),
            "no tasks": lambda: cm.shrink(means[:0], std_errors=means[:0]),
        },
        "from_statistics": {
            "rows in place of statistics": lambda: cm.from_statistics(rows, **how),
            "an unknown feature": lambda: cm.from_statistics(table, **how | {"features": ["c"]}),
            "an unknown task column": lambda: cm.from_statistics(table, **how | {"task": "store"}),
            "a task twice": lambda: cm.from_statistics(pd.concat([table, table[:1]]), **how),
            "no rows": lambda: cm.from_statistics(table[:0], **how),
            "negative counts": lambda: cm.from_statistics(
                table.assign(**{table.columns[1]: -1.0}), **how
            ),
            "NaN": lambda: cm.from_statistics(
                table.assign(**{table.columns[-1]: np.nan}), **how
            ),
            "no tasks for the prior": lambda: cm.from_statistics(table, **how, prior_tasks=0),
            "a learner of another kind": lambda: cm.from_statistics(
                table, **how, learner=cm.ConditionalLogistic()
            ),
        },
        "TableModel.fit_files": {
            "a file that is not there": lambda: copy.copy(model).fit_files("no-such-*.parquet"),
            "no file": lambda: copy.copy(model).fit_files([]),
            "a number": lambda: copy.copy(model).fit_files(3),
            "a memory without unit": lambda: copy.copy(model).fit_files("x.csv", memory="much"),
        },
    }  # fmt: skip
    for name, cases in calls.items():
        for given, run in cases.items():
            yield Case(name, given, run)


def _statistics(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the statistics of each shop, as `statistics_sql` asks for."""
    import duckdb

    with duckdb.connect() as base:
        base.register("rows", rows)
        query = cm.statistics_sql(["a", "b"], "sold", "shop", rows="rows")
        return base.sql(f"SELECT * FROM ({query}) ORDER BY shop").df()


def functions() -> Iterator[Case]:
    """Yield calls of functions and classes that are no learners."""
    tasks = cm.TaskSet.from_arrays(X, Y, TASK)
    table = {"s": np.arange(8.0)}
    ids = sorted(set(TASK))
    calls: dict[str, dict[str, Callable]] = {
        "TaskTable": {
            "ids fewer than rows": lambda: cm.TaskTable(table, ids[:-1]),
            "an id twice": lambda: cm.TaskTable(table, [*ids[:-1], ids[0]]),
            "an id that is None": lambda: cm.TaskTable(table, [*ids[:-1], None]),
            "columns of different lengths": lambda: cm.TaskTable(table | {"u": [1.0]}, ids),
            "names fewer than columns": lambda: cm.TaskTable(X[:8], ids, columns=["a"]),
            "three dimensions": lambda: cm.TaskTable(np.zeros((8, 1, 1)), ids),
            "a number": lambda: cm.TaskTable(3.0, ids),
            "complex numbers": lambda: cm.TaskTable({"s": [1j] * 8}, ids),
        },
        "TaskSet": {
            "y too short": lambda: cm.TaskSet.from_arrays(X, Y[:-1], TASK),
            "task too short": lambda: cm.TaskSet.from_arrays(X, Y, TASK[:-1]),
            "X with NaN": lambda: cm.TaskSet.from_arrays(X * np.nan, Y, TASK),
            "split_points with a negative number": lambda: tasks.split_points(-1),
            "split_points with a share of 2.0": lambda: tasks.split_points(2.0),
            "split_points with another order": lambda: tasks.split_points(1, "last"),
            "split_tasks with too many": lambda: tasks.split_tasks((6, 6)),
            "split_tasks with a negative part": lambda: tasks.split_tasks((-1, 2)),
        },
        "TaskSplit": {
            "no folds": lambda: list(cm.TaskSplit(0).split(tasks)),
            "more folds than tasks": lambda: list(cm.TaskSplit(99).split(tasks)),
            "all tasks held out": lambda: list(cm.TaskSplit(2, held_out=8).split(tasks)),
            "half a point as support": lambda: list(cm.TaskSplit(2, support=-0.5).split(tasks)),
            "another order": lambda: list(cm.TaskSplit(2, order="last").split(tasks)),
            "a text as seed": lambda: list(cm.TaskSplit(2, random_state="x").split(tasks)),
        },
        "calibrate": {
            "a classifier": lambda: cm.calibrate(cm.ConditionalLogistic(), tasks),
            "no learner": lambda: cm.calibrate(3, tasks),
            "a class": lambda: cm.calibrate(cm.ConditionalRidge, tasks),
            "shots of -1": lambda: cm.calibrate(fitted(), tasks, shots=(-1,)),
            "shots beyond all tasks": lambda: cm.calibrate(fitted(), tasks, shots=(99,)),
            "one fold": lambda: cm.calibrate(fitted(), tasks, n_splits=1),
            "a coverage of 1": lambda: _calibrated().predict_interval(X, task=TASK, coverage=1.0),
            "a coverage of 90": lambda: _calibrated().predict_interval(X, task=TASK, coverage=90),
            "a coverage that needs more tasks": lambda: _calibrated().predict_interval(
                X, task=TASK, coverage=0.99
            ),
        },
        "compare": {
            "too few tasks": lambda: cm.compare(tasks),
            "learners that are a list": lambda: cm.compare(tasks, learners=[fitted()], shots=(0,)),
            "a learner that cannot adapt": lambda: cm.compare(_many(), learners={"a": 3}),
            "another criterion": lambda: cm.compare(_many(), criterion="cubic"),
            "another order": lambda: cm.compare(_many(), order="date"),
            "one class": lambda: cm.compare(X, np.array(["a"] * len(X)), task=TASK),
        },
        "advantage": {
            "no side information": lambda: cm.advantage(tasks),
            "a map that reads y": lambda: cm.advantage(
                _many(), feature_map=cm.feature_maps.MeanInputOutput()
            ),
            "a coverage of 0": lambda: cm.advantage(
                _many(), feature_map=MeanInput(), coverage=0.0
            ),
            "another scale": lambda: cm.advantage(_many(), feature_map=MeanInput(), scale="big"),
            "too few tasks": lambda: cm.advantage(tasks[:5], feature_map=MeanInput()),
        },
        "check": {
            "a learner that is not fitted": lambda: cm.check(cm.ConditionalRidge(), X, Y),
            "no learner": lambda: cm.check(3, X, Y),
            "a false alarm of 2": lambda: cm.check(fitted(), FRAME, Y, task=TASK, false_alarm=2.0),
            "no rows": lambda: cm.check(fitted(), FRAME[:0], Y[:0], task=TASK[:0]),
            "no task": lambda: cm.check(fitted(), FRAME, Y),
        },
        "explain": {
            "no learner": lambda: cm.explain(3),
            "no neighbours": lambda: cm.explain(fitted(), SIDE, n_nearest=0),
            "an unknown column": lambda: cm.explain(fitted(), {"height": 1.0}),
        },
        "cross_validate_tasks": {
            "another error": lambda: cm.cross_validate_tasks(fitted(), tasks, error="cubic"),
            "more folds than tasks": lambda: cm.cross_validate_tasks(fitted(), tasks, split=99),
        },
        "feature_maps": {
            "CircleMap of two columns": lambda: _fit_map(CircleMap(), X[:8]),
            "RandomFourier with 0 features": lambda: _fit_map(RandomFourier(0), X[:8]),
            "RandomFourier with std=-1": lambda: _fit_map(RandomFourier(3, std=-1.0), X[:8]),
            "Identity of text": lambda: _fit_map(Identity(), np.array([["a"]] * 8)),
            "set_params of an unknown name": lambda: CircleMap().set_params(speed=1),
        },
        "theory": {
            "bound_fixed with V=-1": lambda: cm.theory.bound_fixed(-1.0, 10),
            "bound_fixed with n=0": lambda: cm.theory.bound_fixed(1.0, 0),
            "bound_fixed with another inner": lambda: cm.theory.bound_fixed(1.0, 9, inner="fast"),
            "bound_learned with T=0": lambda: cm.theory.bound_learned(1.0, 1.0, 10, 0),
            "bound_learned with L=inf": lambda: cm.theory.bound_learned(1.0, 1.0, 9, 9, L=np.inf),
            "suggest without targets": lambda: cm.theory.suggest(
                cm.TaskSet.from_arrays(X, None, TASK)
            ),
            "suggest with the squared loss": lambda: cm.theory.suggest(tasks, None, loss="squared"),
            "suggest with 99 folds": lambda: cm.theory.suggest(tasks, None, folds=99),
            "variance of an unknown tau": lambda: cm.theory.variance(X, "better"),
            "overlap with a weight of 1": lambda: cm.theory.overlap(1.0, 1.0),
            "radii with another norm": lambda: cm.theory.radii(tasks, how="median"),
            "best_linear with p of other size": lambda: cm.theory.best_linear(X, X, p=[1.0]),
        },
        "environments": {
            "Circle with d=1": lambda: cm.environments.Circle(d=1),
            "Circle with n=0": lambda: cm.environments.Circle(d=3, n=0),
            "Clusters with no centres": lambda: cm.environments.Clusters([], []),
            "Clusters with other sizes": lambda: cm.environments.Clusters([[1.0]], [[1.0, 2.0]]),
            "sample of -1 tasks": lambda: cm.environments.Circle(d=3).sample(-1),
            "an unknown name": lambda: cm.environments.paper_environment("three-clusters"),
        },
        "losses": {
            "Huber with delta=0": lambda: cm.losses.Huber(0.0),
            "Pinball with q=1": lambda: cm.losses.Pinball(1.0),
            "EpsilonInsensitive with eps=-1": lambda: cm.losses.EpsilonInsensitive(-1.0),
        },
    }  # fmt: skip
    for name, cases in calls.items():
        for given, run in cases.items():
            yield Case(name, given, run)


def _fit_map(feature_map: Any, values: Any) -> None:
    table = cm.TaskTable(pd.DataFrame(values), ids=sorted(set(TASK)))
    cm.ConditionalSGDRegressor(feature_map).fit(X, Y, task=TASK, side_info=table)


@cache
def _many() -> cm.TaskSet:
    return cm.environments.Circle(d=2, n=4).sample(40, random_state=0)


@cache
def _calibrated() -> Any:
    return cm.calibrate(cm.FixedBiasRegressor(), X, Y, task=TASK, shots=(0,))


def cases() -> list[Case]:
    """Return all cases of Python calls."""
    made = values, times, misuse, parameters, labels_of_other_models, other_ways, functions
    return [case for make in made for case in make()]
