"""What each learner with a learned prior can do: every cell of docs/capabilities.md is run.

    python -m tools.capabilities

writes the table of that page. A cell is "yes" if the call works, else a number that leads to the
sentence that the call raises.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import condmeta as cm

PAGE = Path(__file__).parents[1] / "docs" / "capabilities.md"
T, N = 24, 6
START, END = "<!-- table: python -m tools.capabilities -->\n", "<!-- end of table -->\n"


def _draw() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    store = np.repeat(np.arange(T), N)
    table = pd.DataFrame({"store": store, "region": store % 6, "day": np.tile(np.arange(N), T)})
    table["price"] = rng.normal(size=T * N).round(3)
    table["size"] = rng.normal(size=T).round(3)[store]
    f = 0.5 * table["price"] + table["size"] + 0.3 * rng.normal(size=T)[store]
    table["number"] = (f + 0.3 * rng.normal(size=T * N)).round(3)
    table["heavy"] = table["number"] + 3.0 * (np.arange(T * N) % 17 == 0)
    table["count"] = rng.poisson(np.exp(f))
    table["yes"] = np.where(f + rng.logistic(size=T * N) > 0, "yes", "no")
    table["trials"] = rng.integers(1, 9, size=T * N)
    table["successes"] = rng.binomial(table["trials"], 1 / (1 + np.exp(-f)))
    level = np.digitize(f + rng.logistic(size=T * N), [-1, 1])
    table["mode"] = np.array(["bus", "car", "walk"])[level]
    table["rating"] = level
    return table


ROWS = _draw()
SIDE = ROWS.groupby("store")[["size"]].first()


class Kind(NamedTuple):
    """A learner by name, how it is fitted, and the call on further rows."""

    make: Callable[[], Any]
    target: str
    call: Callable[[pd.DataFrame], dict[str, Any]]
    row: dict[str, float] | None = None

    def fit(self, learner: Any, rows: pd.DataFrame) -> Any:
        """Fit a learner to rows."""
        return learner.fit(rows[["price"]], rows[self.target], **self.call(rows))


def _plain(rows) -> dict[str, Any]:
    return {"task": rows["store"], "side_info": SIDE}


def _nested(rows) -> dict[str, Any]:
    return {"task": rows[["region", "store"]]}


def _with(name: str, column: str):
    return lambda rows: _plain(rows) | {name: rows[column]}


QUICK = {"metric": "diagonal", "kappa": 1.0}
KINDS: dict[str, Kind] = {
    "`ConditionalRidge`": Kind(lambda: cm.ConditionalRidge(), "number", _plain),
    "with drift": Kind(
        lambda: cm.ConditionalRidge(drift=("ar", 0.9)), "number", _with("time", "day")
    ),
    'with `noise="student"`': Kind(lambda: cm.ConditionalRidge(noise="student"), "heavy", _plain),
    "`ConditionalLevels`": Kind(lambda: cm.ConditionalLevels(), "number", _nested),
    "`ConditionalCount`": Kind(lambda: cm.ConditionalCount(**QUICK), "count", _plain),
    "`ConditionalLogistic`": Kind(lambda: cm.ConditionalLogistic(**QUICK), "yes", _plain),
    "with trials": Kind(
        lambda: cm.ConditionalLogistic(**QUICK), "successes", _with("trials", "trials")
    ),
    'with `random="intercept"`': Kind(
        lambda: cm.ConditionalLogistic(random="intercept", **QUICK), "yes", _plain
    ),
    "three classes": Kind(lambda: cm.ConditionalLogistic(**QUICK), "mode", _plain),
    "`ConditionalOrdinal`": Kind(lambda: cm.ConditionalOrdinal(**QUICK), "rating", _plain),
}
JUDGED = "task", "side_info", "time"  # what `compare` and `calibrate` read of a call
OTHERS = "`shrink`", "`from_formula`", "`from_statistics`"


@cache
def _fitted(name: str) -> Any:
    if name == "`shrink`":
        means = ROWS.groupby("store")[["number"]].mean()
        return cm.shrink(means, std_errors=0 * means + 0.2, side_info=SIDE)
    if name == "`from_formula`":
        return cm.from_formula("number ~ price | store ~ size", ROWS)
    if name == "`from_statistics`":
        names = {"features": ["price"], "target": "number", "task": "store"}
        return cm.from_statistics(_statistics(), side_info=SIDE, **names)
    kind = KINDS[name]
    return kind.fit(kind.make(), ROWS)


def _statistics() -> pd.DataFrame:
    import duckdb

    sales = ROWS[["store", "price", "number"]]  # noqa: F841 - the query reads it
    return duckdb.sql(cm.statistics_sql(["price"], "number", "store", rows="sales")).df()


def fitted(name: str) -> Any:
    """Return a fitted model that a call may change."""
    return deepcopy(_fitted(name))


def _more(name: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call on further rows."""
    rows = ROWS[:4]
    if name == "`from_formula`":
        return [rows], {}
    if name == "`shrink`":
        return [pd.DataFrame({"number": [1.0]}, index=[0])], {
            "std_errors": pd.DataFrame({"number": [0.2]}, index=[0])
        }
    kind = KINDS.get(name, KINDS["`ConditionalRidge`"])
    call = {key: value for key, value in kind.call(rows).items() if key != "side_info"}
    return [rows[["price"]], rows[kind.target]], call


def _save(name: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.condmeta"
        fitted(name).save(path)
        return cm.load(path)


def _update(name: str) -> Any:
    args, call = _more(name)
    return fitted(name).update(*args, **call)


def _adapt(name: str) -> Any:
    args, call = _more(name)
    if name == "`from_formula`":
        return fitted(name).adapt(*args)
    if name == "`shrink`":
        return fitted(name).adapt([1.0], std_errors=[0.2], side_info={"size": 0.0})
    call = {key: value for key, value in call.items() if key != "task"}
    if name == "`ConditionalLevels`":
        return fitted(name).adapt(*args, task=ROWS[["region", "store"]][:4])
    return fitted(name).adapt(*args, **call, side_info={"size": 0.0})


def _partial_fit(name: str) -> Any:
    args, call = _more(name)
    call["task"] = call["task"].assign(store=99) if name == "`ConditionalLevels`" else [99] * 4
    side = {} if name == "`ConditionalLevels`" else {"side_info": SIDE[:1].rename({0: 99})}
    return fitted(name).partial_fit(*args, **call, **side)


def _merge(name: str) -> Any:
    kind = KINDS[name]
    early = ROWS["store"] < T // 2
    parts = []
    for rows in (ROWS[early], ROWS[~early]):
        call = kind.call(rows)
        if "side_info" in call:  # tasks of the side table are tasks too
            call["side_info"] = SIDE.loc[rows["store"].unique()]
        parts.append(kind.make().fit(rows[["price"]], rows[kind.target], **call))
    return cm.merge(*parts).theta_mean_


def _export(name: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return cm.export(fitted(name), folder)


def _calibrate(name: str) -> Any:
    kind = KINDS[name]
    call = {key: value for key, value in kind.call(ROWS).items() if key in JUDGED}
    return cm.calibrate(kind.make(), ROWS[["price"]], ROWS[kind.target], **call, shots=(0, 2))


def _check(name: str) -> Any:
    args, call = _more(name)
    if name == "`from_formula`":
        return fitted(name).check(*args)
    return cm.check(fitted(name), *args, **call)


def _explain(name: str) -> Any:
    model = fitted(name)
    if name == "`from_formula`":
        return model.explain(task=0)
    return cm.explain(model, task=(0, 0) if name == "`ConditionalLevels`" else 0)


def _compare(name: str) -> Any:
    kind = KINDS[name]
    call = {key: value for key, value in kind.call(ROWS).items() if key in JUDGED}
    return cm.compare(
        ROWS[["price"]], ROWS[kind.target], learners={"a": kind.make()}, shots=(0,), **call
    )


def _model(name: str) -> tuple[Any, pd.DataFrame]:
    """Return a table model that is not fitted, and its rows."""
    kind = KINDS[name]
    task = ["region", "store"] if name == "`ConditionalLevels`" else "store"
    more = {"with drift": {"time": "day"}, "with trials": {"trials": "trials"}}.get(name, {})
    side = [] if name == "`ConditionalLevels`" else ["size"]
    keep = {*np.atleast_1d(task), "price", kind.target, *more.values(), *side}
    rows = ROWS[[name for name in ROWS if name in keep]]
    model = cm.TableModel(kind.make(), task=task, target=kind.target, side=side or None, **more)
    return model, rows


def _table(name: str) -> Any:
    model, rows = _model(name)
    return model.fit(rows).predict_frame(rows)


def _files(name: str) -> Any:
    model, rows = _model(name)
    with tempfile.TemporaryDirectory() as folder:
        rows.to_parquet(Path(folder) / "rows.parquet")
        return model.fit_files(folder).predict_frame(rows)


def _random(name: str) -> Any:
    kind = KINDS[name]
    return kind.fit(kind.make().set_params(random="intercept"), ROWS)


NOT_ASKED = {  # what has no meaning for a kind, or is done in another way
    "`shrink`": ("`partial_fit`", "`merge`", "`calibrate`", "`check`", "`compare`",
                 "tables, commands", "`fit_files`", '`random="intercept"`'),
    "`from_formula`": ("`partial_fit`", "`merge`", "`export`, `to_sql`", "`calibrate`",
                       "`compare`", "tables, commands", "`fit_files`", '`random="intercept"`'),
    "`from_statistics`": ("`merge`", "`calibrate`", "`compare`", "tables, commands",
                          "`fit_files`", '`random="intercept"`'),
}  # fmt: skip
CELLS: dict[str, Callable[[str], Any]] = {
    "`save`, `load`": _save,
    "`adapt`": _adapt,
    "`update`": _update,
    "`partial_fit`": _partial_fit,
    "`merge`": _merge,
    "`export`, `to_sql`": _export,
    "`calibrate`": _calibrate,
    "`check`": _check,
    "`explain`": _explain,
    "`compare`": _compare,
    "`summary`": lambda name: fitted(name).summary(),
    "`coef_frame(std=True)`": lambda name: fitted(name).coef_frame(std=True),
    "tables, commands": _table,
    "`fit_files`": _files,
    '`random="intercept"`': _random,
}


def answer(name: str, cell: str) -> str:
    """Return "yes", "-" where the question has no meaning, or the sentence that the call raises."""
    if cell in NOT_ASKED.get(name, ()):
        return "-"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            CELLS[cell](name)
        except (cm.errors.DataError, AttributeError, TypeError) as error:
            return str(error)
    return "yes"


@cache
def rows_of() -> tuple[dict[str, list[str]], list[str]]:
    """Return the cells of each kind, and the sentences that their numbers lead to."""
    sentences: list[str] = []
    rows = {}
    for name in (*KINDS, *OTHERS):
        rows[name] = found = [answer(name, cell) for cell in CELLS]
        for at, said in enumerate(found):
            if said not in ("yes", "-"):
                if said not in sentences:
                    sentences.append(said)
                found[at] = f"no ({sentences.index(said) + 1})"
    return rows, sentences


def table() -> str:
    """Return the table of the page, and the sentences of the calls that do not work."""
    rows, sentences = rows_of()
    lines = ["| | " + " | ".join(CELLS) + " |", "|---|" + "---|" * len(CELLS)]
    lines += [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()]
    listed = [f"{i}. {sentence}" for i, sentence in enumerate(sentences, 1)]
    return "\n".join([*lines, "", *listed, ""])


def page(text: str) -> str:
    """Return the page with a new table."""
    head, _, rest = text.partition(START)
    return f"{head}{START}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE.name)
