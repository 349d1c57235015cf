"""The models of tasks at the times of rows to predict: what a task's rows still say then."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.inner.drift import Drift
from condmeta.tasks.times import as_clock, kind_of, read_times


class Models(NamedTuple):
    """Models of T tasks, and which of them each of N rows has.

    coef, theta (T, width); state, statistics of the tasks or None; sides (T, k), what a shared
    model reads of them, or None; codes (N,), or None if there is one task.
    """

    coef: np.ndarray
    theta: np.ndarray
    state: Any
    sides: np.ndarray | None
    codes: np.ndarray | None

    def at(self, inner, time: np.ndarray | None) -> Models:
        """Return the models as of the times (N,) of rows: each task once for each of its times.

        A time before that of a task's latest row is answered by the model as it is.
        """
        if time is None or drift_of(inner) is None:
            return self
        if self.state is None:
            raise DataError(
                "This model was saved without the statistics that predictions at other times "
                "need. Save it with resume=True, or predict without time=, as of the latest row "
                "of each task."
            )
        codes = np.zeros(len(time), np.int64) if self.codes is None else self.codes
        order = np.lexsort([time, codes])
        first = np.ones(len(order), bool)
        first[1:] = (np.diff(codes[order]) != 0) | (np.diff(time[order]) != 0)
        pair = np.empty(len(order), np.int64)
        pair[order] = np.cumsum(first) - 1
        task, time = codes[order[first]], time[order[first]]
        theta, coef = self.theta[task], self.coef[task]
        state = inner.aged(self.state.take(task), theta, time)
        has = ~np.isnan(state.clock)  # a task without rows has nothing to forget
        coef[has] = inner.posterior(state.take(has), theta[has]).mean
        return Models(coef, theta, state, None if self.sides is None else self.sides[task], pair)


def drift_of(inner: Any) -> Drift | None:
    """Return how tasks change, or None if they do not."""
    return getattr(inner, "drift", None)


def clock_of(time: np.ndarray, before: str | None) -> np.ndarray:
    """Return times as numbers, or raise if they are of another kind than those of the fit.

    `before` is that kind: "days", "numbers", or None if the model was fitted without times.
    """
    if before is None:
        raise DataError(
            "The model was fitted without time=. Fit it again with the time of each row, or "
            "leave time out."
        )
    if kind_of(time) != before:
        words = {"days": "dates", "numbers": "numbers"}
        was, now = words[before], words[kind_of(time)]
        raise DataError(f"The times of fit were {was}, and these are {now}: give {was} as well.")
    return as_clock(time)


def required_clock(time: np.ndarray | None, n_rows: int, before: str | None) -> np.ndarray:
    """Return the times of rows that a model takes in and forgets, or raise if there are none."""
    if time is None:
        if n_rows == 0:
            return np.empty(0)
        raise DataError(
            "The model gives old rows less weight (drift), so it needs the time of these rows: "
            "give time=, as in fit."
        )
    return clock_of(time, before)


def row_clock(inner, time: Any, n_rows: int) -> np.ndarray | None:
    """Return the times that a user gives for rows, as numbers; None if tasks do not change."""
    drift = drift_of(inner)
    if time is None or drift is None:
        return None
    return clock_of(read_times(time, n_rows), drift.unit)
