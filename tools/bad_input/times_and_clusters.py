"""Calls with bad times of evaluations, weights of tables, noise of tasks, and Dask DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

import condmeta as cm
from tools.bad_input.contract import Case
from tools.bad_input.values import SIDE, TASK, X, Y

BAD_TIMES = {
    "a time fewer": np.arange(len(Y) - 1.0), "NaN": np.append(np.arange(len(Y) - 1.0), np.nan),
    "text": ["soon"] * len(Y), "infinity": np.full(len(Y), np.inf),
}  # fmt: skip
BAD_WEIGHTS = {"negative": -1.0, "text": "often", "infinity": np.inf, "zero in all rows": 0.0}


def evaluations() -> Iterator[Case]:
    """Yield evaluations with bad times."""
    for what, bad in BAD_TIMES.items():
        for function, learner in ((cm.compare, ()), (cm.calibrate, (cm.ConditionalRidge(),))):
            yield Case(
                function.__name__, f"time: {what}",
                lambda function=function, learner=learner, bad=bad: function(
                    *learner, X, Y, task=TASK, time=bad, shots=(0, 1)
                ),
            )  # fmt: skip


def noise() -> Iterator[Case]:
    """Yield fits of a noise that follows side information which is not there."""
    ridge = cm.ConditionalRidge(noise="by_side", drift=0.9)
    cases: dict[str, Callable] = {
        "noise='by_side' without side_info": lambda: cm.ConditionalRidge(noise="by_side").fit(
            X, Y, task=TASK
        ),
        "noise='by_side' with drift": lambda: ridge.fit(
            X, Y, task=TASK, side_info=SIDE, time=np.arange(float(len(Y)))
        ),
    }
    for given, run in cases.items():
        yield Case("ConditionalRidge.fit", given, run)


def far_rows() -> Iterator[Case]:
    """Yield rows too far from those of fit."""
    fitted = cm.ConditionalRidge(metric="identity", noise="shared", kappa=1.0)
    fitted.fit(X, Y, task=TASK)
    far = X[:2].copy()
    far[0, 0] = 1e9
    model = fitted.adapt(X[:2], Y[:2])
    calls: dict[str, Callable] = {
        "update": lambda: fitted.update(far, Y[:2], task=TASK[:2]),
        "adapt": lambda: fitted.adapt(far, Y[:2]),
        "partial_fit": lambda: fitted.partial_fit(far, Y[:2], task=["new"] * 2),
    }
    for name, run in calls.items():
        yield Case(
            f"ConditionalRidge.{name}", "X: 1e9 deviations from fit", run, lambda: fitted.fitted_
        )
    stream = cm.ConditionalSGDRegressor(None).fit(X, Y, task=TASK)
    yield Case(
        "ConditionalSGDRegressor.partial_fit", "X: 1e9 times larger than in fit",
        lambda: stream.partial_fit(far, Y[:2], task=["new"] * 2), lambda: stream.fitted_,
    )  # fmt: skip
    yield Case(
        "TaskModel.update", "X: 1e9 deviations from fit", lambda: model.update(far, Y[:2]),
        lambda: model.coef_,
    )  # fmt: skip


def weights() -> Iterator[Case]:
    """Yield tables with bad columns of weights."""
    model = cm.TableModel(task="shop", target="sold", weight="often")
    yield Case("TableModel.fit", "weight: a column that is not there", lambda: model.fit(_rows()))
    for what, bad in BAD_WEIGHTS.items():
        yield Case("TableModel.fit", f"weight: {what}", lambda bad=bad: model.fit(_rows(often=bad)))


def clusters() -> Iterator[Case]:
    """Yield bad Dask DataFrames."""
    import dask.dataframe as dd
    from distributed import Client

    def frame(**more):
        return dd.from_pandas(_rows(**more), npartitions=2)

    def on_cluster(model, rows):
        with Client(processes=False, n_workers=1, dashboard_address=None):
            model.fit(rows)

    model = cm.TableModel(task="shop", target="sold")
    bad = {
        "without the task column": frame().drop(columns="shop"),
        "with text in the target": frame(sold="many"), "with infinity": frame(a=np.inf),
        "without rows": dd.from_pandas(_rows()[:0], npartitions=1),
    }  # fmt: skip
    for what, rows in bad.items():
        yield Case(
            "TableModel.fit", f"a Dask DataFrame {what}",
            lambda rows=rows: on_cluster(model, rows),
        )  # fmt: skip
    yield Case("TableModel.fit", "a Dask DataFrame and no client", lambda: model.fit(frame()))
    yield Case(
        "ConditionalRidge.fit", "X: a Dask DataFrame",
        lambda: cm.ConditionalRidge().fit(frame()[["a", "b"]], Y, task=TASK),
    )  # fmt: skip
    yield Case("TableModel.fit_dask", "a number", lambda: model.fit_dask(3))


def _rows(**more) -> pd.DataFrame:
    return pd.DataFrame(X, columns=["a", "b"]).assign(**{"shop": TASK, "sold": Y} | more)


def cases() -> list[Case]:
    """Return all cases."""
    made = evaluations, noise, far_rows, weights, clusters
    return [case for make in made for case in make()]
