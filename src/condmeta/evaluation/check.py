"""Is a model still right? New labelled rows against what it expects."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats as distributions
from sklearn.utils.validation import check_is_fitted

from condmeta.errors import DataError
from condmeta.evaluation.calibrate import Calibrated
from condmeta.evaluation.expectation import OTHERS, Judged, judge
from condmeta.evaluation.nearest import Neighbourhood
from condmeta.evaluation.outside import oddities, sides_of
from condmeta.feature_maps import ComposedMap
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import make_frame
from condmeta.tasks.ids import id_columns
from condmeta.words import count

MANY = 0.1  # of the tasks: from here on it is the map that is wrong
LEVEL = 0.05  # p below which a task counts as beyond expectation, in the count over tasks


@dataclass(frozen=True, repr=False)
class CheckReport:
    """Hold what a check found; printed it is one line for all tasks.

    Attributes
    ----------
    frame : table with a row for each task
        `n` new rows, `known` points the model had; for numbers `mae` and `rmse`, for classes
        `log_loss` (or `error_rate`); `expected`, of the last of them; `z`, how far the error is
        above what was expected, in standard deviations of a normal distribution; `side`, what is
        odd or changed in the side information; `verdict`.
    verdict : "keep", "update" or "refit"
        For all tasks together.
    ground : str
        What the expected errors rest on: "held-out tasks", "the model", "the probabilities" or "the
        other tasks".
    drifting : float
        Share of the tasks that drift: those with p < 0.05 above the 5 % that do so by chance.
    excess : float
        By which part the error of all tasks is above what was expected.
    n_tasks, n_update, n_outside, n_changed : int
        Tasks judged; beyond expectation each by itself; with side information outside what was
        seen; with other side information than the model has.
    false_alarm : float

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=2, n=20).sample(60, random_state=0)
    >>> before, after = tasks.split_points(10, "first")
    >>> report = cm.check(cm.ConditionalRidge().fit(before), after)
    >>> report.verdict, report.n_tasks
    ('keep', 60)
    """

    frame: Any
    verdict: str
    ground: str
    drifting: float
    excess: float
    n_tasks: int
    n_update: int
    n_outside: int
    n_changed: int
    false_alarm: float

    @property
    def sentence(self) -> str:
        """The findings in one line."""
        than = f"{abs(100 * self.excess):.0f} % {'above' if self.excess > 0 else 'below'}"
        chance = ", which may be chance" if self.verdict == "keep" and self.excess > 0 else ""
        tasks = count(self.n_tasks, "task")
        parts = [f"errors of {tasks} are {than} expectation ({self.ground}){chance}"]
        parts.append(f"tasks to update: {self.n_update}, drifting: {100 * self.drifting:.0f} %")
        if self.ground == OTHERS:
            parts.append(
                "a change that all tasks share cannot be seen: fit with intervals for that"
            )
        if self.n_outside:
            parts.append(f"side information of {self.n_outside} outside what was seen")
        if self.n_changed:
            parts.append(f"side information of {self.n_changed} changed")
        return f"{self.verdict}: {'; '.join(parts)}."

    def __repr__(self) -> str:
        return self.sentence


def check(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    side_info: Any = None,
    false_alarm: float = 0.05,
) -> CheckReport:
    r"""Judge a fitted model by new labelled rows: keep it, update it, or fit it again.

    A task is judged by the probability p of errors as large as those found, or larger, if nothing
    has changed. Unknown tasks are judged from tau(s). The verdict

    - of a task is "update" if its errors are beyond expectation: p is so small that a share of
      `false_alarm` at most of the tasks named is named by chance (Benjamini and Hochberg); and
      "refit" if moreover its side information has changed or is outside what was seen, as `update`
      does not move where a task starts;
    - of all tasks is "refit" if at least 10 % of them drift, by a binomial test of the number with
      p < 0.05; or if the error of those not named is at least 10 % above what was expected, by a
      test of their sum; or if at least 10 % have side information that has changed, or is outside
      what was seen, more of them than chance allows; else "update" if there is a task to update;
      else "keep".

    If nothing has changed, "keep" is the verdict with probability 1 - `false_alarm` or more, as far
    as the expected errors are right: see Notes.

    Parameters
    ----------
    model : fitted learner, or `Calibrated`
    X, y, task
        New rows with labels, as for `fit`, or a `TaskSet` alone. They must not be rows that the
        model was fitted on.
    side_info : table keyed by task id, optional
        Of unknown tasks, and of known ones to see whether it has changed.
    false_alarm : float in (0, 1)

    Returns
    -------
    CheckReport

    Notes
    -----
    What is expected rests, for `ConditionalRidge` and `ConditionalLogistic`, on the model itself:
    normal noise, weights around tau(s). Heavy tails then give false alarms; a learner made by
    `calibrate` is judged by its errors on held-out tasks instead, whichever regressor it is. For
    other learners the median error of the tasks in the check is what is expected, so that tasks
    which stand out are found, and a change that all of them share is not.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=2, n=20).sample(60, random_state=0)
    >>> before, after = tasks.split_points(10, "first")
    >>> model = cm.ConditionalRidge().fit(before)
    >>> broken = after.with_target(-after.y)
    >>> cm.check(model, broken).verdict
    'refit'
    """
    learner = model.model if isinstance(model, Calibrated) else model
    reader = _reader(learner, false_alarm)
    tasks, points = _read(reader, X, y, task, side_info)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Side columns hold levels not seen in training")
        judged = judge(model, tasks, points)
        known = learner.n_points(tasks)[tasks.offsets[:-1]]
    outside, changed = _side(reader, tasks) if points is None else ({}, {})
    alarm = false_alarm / 4  # tests of the tasks, of all their errors, and two of their number
    drifts = _beyond(judged.p, alarm)
    z = distributions.norm.isf(np.clip(judged.p, 1e-300, 1 - 1e-16))
    beyond, T = int((judged.p < LEVEL).sum()), len(tasks)
    drifting = max((beyond / T - LEVEL) / (1 - LEVEL), 0.0)
    by_chance = _by_chance(len(outside), int((known == 0).sum()), _rate_outside(reader))
    reasons_to_refit = (
        drifting >= MANY and _by_chance(beyond, T, LEVEL) < alarm,
        _all_worse(judged, z, tasks.sizes * ~drifts, alarm),
        len(outside) >= MANY * T and by_chance < alarm,
        len(changed) >= MANY * T,
    )
    told = changed | outside
    side = np.array([told.get(t, "") for t in range(T)], dtype=object)
    verdicts = np.where(drifts, np.where(side != "", "refit", "update"), "keep").astype(object)
    columns = id_columns(tasks.ids.tolist(), reader._task_name)
    columns |= {"n": tasks.sizes, "known": known, **judged.errors, "expected": judged.expected}
    return CheckReport(
        make_frame(columns | {"z": z, "side": side, "verdict": verdicts}, reader._backend),
        "refit" if any(reasons_to_refit) else "update" if drifts.any() else "keep",
        judged.ground, drifting, judged.excess(tasks.sizes), T, int(drifts.sum()), len(outside),
        len(changed), false_alarm,
    )  # fmt: skip


def _all_worse(judged: Judged, z: np.ndarray, n: np.ndarray, alarm: float) -> bool:
    """Tell whether the errors of all tasks with n > 0 are too large together."""
    T = (n > 0).sum()
    if not T or judged.excess(n) < MANY:
        return False
    return distributions.norm.sf(z[n > 0].sum() / np.sqrt(T + T**2 * judged.shared)) < alarm


def _reader(learner: Any, false_alarm: Any) -> Any:
    """Return the learner that reads rows and side information, or say what is wrong."""
    if hasattr(learner, "schema_"):
        raise DataError("A TableModel reads tables itself: call its own check(table).")
    if not hasattr(learner, "n_points"):
        raise DataError(
            f"check takes a fitted learner, as ConditionalRidge. Got a {type(learner).__name__}."
        )
    if not (isinstance(false_alarm, float | np.floating) and 0 < false_alarm < 1):
        raise DataError(
            "The 'false_alarm' parameter must be a float in (0, 1), as 0.05. Got "
            f"{false_alarm!r} instead."
        )
    check_is_fitted(learner)
    reader = next(iter(learner._learners.values())) if hasattr(learner, "_learners") else learner
    reader._ready()
    return reader


def _read(reader: Any, X, y, task, side_info) -> tuple[TaskSet, TaskSet | None]:
    """Return the tasks that have rows, in their own order, and conditioning points."""
    if reader._is_nameless(X, task) and (reader._store is None or len(reader._store.ids) != 1):
        raise reader._which_task()
    reader = copy.copy(reader)
    reader._head = reader._head._replace(base=None)  # labels as they are: predict adds the base
    tasks, points = reader._read(X, y, task, side_info, reset=False)
    tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    if not len(tasks):
        raise DataError("There are no rows to check the model by.")
    names = {"feature_names": tasks.feature_names, "task_name": tasks.task_name}
    return TaskSet(tasks.X, tasks.y, tasks.offsets, tasks.ids, tasks.side, **names), points


def _side(reader: Any, tasks: TaskSet) -> tuple[dict[int, str], dict[int, str]]:
    """Return what is outside, of unknown tasks, and changed, of known ones, by their place."""
    table, store = tasks.side, reader._store
    if table is None or not isinstance(reader._map, ComposedMap) or reader._map.reads_points:
        return {}, {}
    place = np.full(len(tasks), -1) if store is None else store.positions(tasks.ids.tolist())
    given = table.has(tasks.ids)
    new, old = np.flatnonzero(given & (place < 0)), np.flatnonzero(given & (place >= 0))
    outside: dict[int, str] = {}
    if len(new):
        sides = sides_of(reader, tasks.ids[new], table.take(tasks.ids[new]))
        for odd in oddities(reader, sides, Neighbourhood.of(reader)):
            t = int(new[odd.row])
            value = "" if odd.value is None else f" {odd.value}"
            told = f"{odd.column}{value}: {odd.reason}"
            outside[t] = f"{outside[t]}; {told}" if t in outside else told
    changed: dict[int, str] = {}
    if len(old) and store.Phi is not None:
        Phi = sides_of(reader, tasks.ids[old], table.take(tasks.ids[old])).Phi
        before, sources = store.Phi[place[old]], np.array(raw_columns(reader._map))
        differs = np.abs(Phi - before) > 1e-9 * (1 + np.abs(before))
        for t, which in zip(old.tolist(), differs, strict=True):
            if which.any():
                changed[t] = f"changed: {', '.join(dict.fromkeys(sources[which].tolist()))}"
    return outside, changed


def _beyond(p: np.ndarray, level: float) -> np.ndarray:
    """Return which tasks Benjamini and Hochberg name."""
    order = np.argsort(p)
    passes = np.flatnonzero(p[order] <= level * np.arange(1, len(p) + 1) / len(p))
    named = np.zeros(len(p), bool)
    named[order[: passes[-1] + 1 if len(passes) else 0]] = True
    return named


def _by_chance(count: int, of: int, rate: float) -> float:
    """Return the probability of so many or more."""
    return float(distributions.binom.sf(count - 1, of, rate)) if of else 1.0


def _rate_outside(reader: Any) -> float:
    """Return how often a task drawn like the T training tasks has odd side information, at most.

    The lowest and the highest of T + 1 numbers is the new one with probability 2 / (T + 1).
    """
    columns = reader._map.columns_ or ()
    return min(1.0, (2 * len(columns) + 1) / (reader.n_tasks_ + 1))
