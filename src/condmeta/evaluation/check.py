"""Judge a fitted model by new labelled rows: are its errors as large as expected?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats as distributions
from sklearn.utils.validation import check_is_fitted

from condmeta.errors import DataError
from condmeta.evaluation.calibrate import Calibrated
from condmeta.evaluation.expectation import OTHERS, Judged, judge
from condmeta.evaluation.extrapolation import Neighbourhood, sides_of, unusual_sides
from condmeta.evaluation.fallen_behind import gain_of_forgetting
from condmeta.feature_maps import ComposedMap
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.feature_maps.table_encoder import allow_unseen_levels
from condmeta.fitted.fitted import Fitted
from condmeta.learners.inputs import is_nameless, read_tasks
from condmeta.learners.labels import kind_of
from condmeta.learners.offsets import minus_offset, refuse_forgotten
from condmeta.notebook import html_block, html_table, paragraph
from condmeta.tasks import TaskSet
from condmeta.tasks.call_input import take_time
from condmeta.tasks.frames import column_names, get_column, make_frame
from condmeta.tasks.ids import id_columns
from condmeta.tasks.weights import Weighted
from condmeta.text import pluralize
from condmeta.typing import FittedModel, Frame, Ids, Matrix, SideInfo, Values

MANY = 0.1  # share of drifting tasks from which the map must be learned again
SHOWN = 5  # tasks in the table of a notebook
LEVEL = 0.05  # a task with a smaller p counts as drifting


@dataclass(frozen=True, repr=False)
class CheckReport:
    """The result of a check; it prints as one line for all tasks.

    Attributes
    ----------
    frame : table with a row for each task
        `n`, new rows; `known`, points that the model had; for numbers `mae` and `rmse`, for counts
        also `deviance`, for classes `log_loss` (or `error_rate`); `expected`, the expected value of
        the last of them; `z`, how far the error is above its expected value, in standard deviations
        of a normal distribution; `side`, unusual or changed side information; `verdict`.
    verdict : "keep", "update" or "refit"
        For all tasks together.
    ground : str
        The source of the expected errors: "held-out tasks", "the model", "the probabilities" or
        "the other tasks".
    drifting : float
        Share of drifting tasks: those with p < 0.05, less the 5 % expected by chance.
    excess : float
        Relative difference of the error of all tasks to its expected value.
    forgetting : float or None
        For new rows with times and a `ConditionalRidge` that forgets nothing: the share by which
        its errors from one time to the next would be lower if it forgot; 0 if that is not clear.
        None where this is not known.
    n_tasks, n_update, n_outside, n_changed : int
        Tasks judged; with errors clearly larger than expected; with side information outside the
        training range; with other side information than the model has.
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

    frame: Frame
    verdict: str
    ground: str
    drifting: float
    excess: float
    n_tasks: int
    n_update: int
    n_outside: int
    n_changed: int
    false_alarm: float
    forgetting: float | None = None

    @property
    def sentence(self) -> str:
        """The findings in one line."""
        than = f"{abs(100 * self.excess):.0f} % {'above' if self.excess > 0 else 'below'}"
        chance = ", which may be chance" if self.verdict == "keep" and self.excess > 0 else ""
        tasks = pluralize(self.n_tasks, "task")
        parts = [f"errors of {tasks} are {than} those expected from {self.ground}{chance}"]
        if self.verdict == "refit":  # an update of tasks would not help
            parts.append(f"tasks that stand out: {self.n_update}")
        else:
            parts.append(f"tasks to update: {self.n_update}, drifting: {100 * self.drifting:.0f} %")
        if self.ground == OTHERS:
            parts.append("a change common to all tasks cannot be detected: fit with intervals")
        if self.n_outside:
            parts.append(f"side information of {self.n_outside} outside the training range")
        if self.n_changed:
            parts.append(f"side information of {self.n_changed} changed")
        if self.forgetting:
            lower = f"errors {100 * self.forgetting:.0f} % lower"
            parts.append(f"a model that forgets would have {lower}: fit with time and drift='auto'")
        return f"{self.verdict}: {'; '.join(parts)}."

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        frame = self.frame
        if isinstance(frame, np.ndarray):  # without pandas, polars and PyArrow
            columns = {name: frame[name] for name in frame.dtype.names or ()}
        else:
            columns = {name: get_column(frame, name) for name in column_names(frame)}
        if self.verdict == "refit":
            del columns["verdict"]
        worst = np.argsort(-np.nan_to_num(np.asarray(columns["z"], dtype=float)), kind="stable")
        rows = [[column[t] for column in columns.values()] for t in worst[:SHOWN].tolist()]
        left = self.n_tasks - len(rows)
        caption = "Largest errors first" + (f"; {left:,} more tasks in frame" if left > 0 else "")
        table = html_table(list(columns), rows, caption)
        return html_block(paragraph(self.sentence, True), table)


def check(
    model: FittedModel, X: Matrix, y: Values = None, *, task: Ids = None,
    side_info: SideInfo = None, false_alarm: float = 0.05, time: Values = None,
    exposure: Values = None, trials: Values = None, offset: Values = None,
) -> CheckReport:  # fmt: skip
    r"""Judge a fitted model by new labelled rows: keep it, update it, or fit it again.

    For each task, p is the probability of errors at least as large as the observed ones if nothing
    has changed. Unknown tasks are predicted from tau(s). The verdict

    - of a task is "update" if p is small: tasks are selected by the procedure of Benjamini and
      Hochberg, so that at most a share `false_alarm` of them is selected by chance. It is "refit"
      if also the side information has changed or is outside the training range, because `update`
      does not change the prior tau(s) of a task;
    - of all tasks is "refit" if at least 10 % of them drift, by a binomial test of the number with
      p < 0.05; or if the error of the tasks not selected is at least 10 % above the expected error,
      by a test of their sum; or if at least 10 % have changed side information, or side information
      outside the training range, more than expected by chance. Else it is "update" if there is a
      task to update, else "keep".

    If nothing has changed, the verdict is "keep" with probability 1 - `false_alarm` or more,
    provided that the expected errors are right: see Notes.

    Parameters
    ----------
    model : fitted learner, or `Calibrated`
    X, y, task
        New rows with labels, as for `fit`, or a `TaskSet` alone. They must not be rows of the fit.
    side_info : table keyed by task id, optional
        For unknown tasks, and for known tasks to find changes.
    false_alarm : float in (0, 1)
    time : (N,) numbers or dates, or the name of a column of X, optional
        The time of each row, for `ConditionalRidge`. A model that forgets is judged as of the time
        of the new rows. For a model that does not, the report says whether it has fallen behind one
        that does.
    exposure : (N,) array, optional
        For `ConditionalCount`, as in `fit`.
    trials : (N,) array, optional
        Raises: shares are judged as rows of classes 0 and 1.
    offset : (N,) array, optional
        For a model that was fitted with an offset, as in `fit`.

    Notes
    -----
    For `ConditionalRidge` and `ConditionalLogistic`, the expected errors are those of the model
    itself: normal noise, weights around tau(s). Heavy tails then cause false alarms. Any regressor
    made by `calibrate` is judged by its errors on held-out tasks instead. For other learners, the
    expected error is the median error of the checked tasks: this finds single tasks with large
    errors, but not a change common to all tasks.

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
    fitted = reader.fitted_
    given = {"exposure": exposure, "trials": trials}
    name = next((name for name, size in given.items() if size is not None), "precision")
    sizes = Weighted(None, given.get(name), name, time)
    refuse_forgotten(isinstance(model, Calibrated) and bool(model.with_offset), offset)
    tasks, points = _read(reader, X, minus_offset(y, offset), task, side_info, sizes)
    with allow_unseen_levels():
        judged = judge(model, tasks, points, offset is not None)
        known = learner.n_points(tasks)[tasks.offsets[:-1]]
    outside, changed = _side(fitted, tasks) if points is None else ({}, {})
    alarm = false_alarm / 4  # there are four tests: of tasks, of their sum, and two of numbers
    drifts = _beyond(judged.p, alarm)
    z = distributions.norm.isf(np.clip(judged.p, 1e-300, 1 - 1e-16))
    beyond, T = int((judged.p < LEVEL).sum()), len(tasks)
    drifting = max((beyond / T - LEVEL) / (1 - LEVEL), 0.0)
    # A new number is the lowest or the highest of T + 1 with probability 2 / (T + 1).
    rate = min(1.0, (2 * len(fitted.reader.columns or ()) + 1) / (fitted.n_tasks + 1))
    by_chance = _by_chance(len(outside), int((known == 0).sum()), rate)
    reasons_to_refit = (
        drifting >= MANY and _by_chance(beyond, T, LEVEL) < alarm,
        _all_worse(judged, z, tasks.sizes * ~drifts, alarm),
        len(outside) >= MANY * T and by_chance < alarm,
        len(changed) >= MANY * T,
    )
    remarks = changed | outside
    side = np.array([remarks.get(t, "") for t in range(T)], dtype=object)
    verdicts = np.where(drifts, np.where(side != "", "refit", "update"), "keep").astype(object)
    columns = id_columns(tasks.ids.tolist(), fitted.columns.task_name)
    columns |= {"n": tasks.sizes, "known": known, **judged.errors, "expected": judged.expected}
    return CheckReport(
        make_frame(columns | {"z": z, "side": side, "verdict": verdicts}, fitted.columns.backend),
        "refit" if any(reasons_to_refit) else "update" if drifts.any() else "keep",
        judged.ground, drifting, judged.excess(tasks.sizes), T, int(drifts.sum()), len(outside),
        len(changed), false_alarm, gain_of_forgetting(reader, tasks),
    )  # fmt: skip


def _all_worse(judged: Judged, z: np.ndarray, n: np.ndarray, alarm: float) -> bool:
    """Return whether the errors of all tasks with n > 0 are too large together."""
    T = (n > 0).sum()
    if not T or judged.excess(n) < MANY:
        return False
    return distributions.norm.sf(z[n > 0].sum() / np.sqrt(T + T**2 * judged.shared)) < alarm


def _reader(learner: Any, false_alarm: Any) -> Any:
    """Return the learner that reads rows and side information, or raise."""
    kind = type(learner).__name__
    if hasattr(learner, "schema_"):
        raise DataError("A TableModel reads tables itself: call its own check(table).")
    if not hasattr(learner, "n_points"):
        raise DataError(f"check needs a fitted learner, such as ConditionalRidge. Got {kind}.")
    if not (isinstance(false_alarm, float | np.floating) and 0 < false_alarm < 1):
        raise DataError(
            f"The 'false_alarm' parameter must be a float in (0, 1). Got {false_alarm!r} instead."
        )
    check_is_fitted(learner)
    return next(iter(learner.learners_.values())) if hasattr(learner, "learners_") else learner


def _read(
    reader: Any, X: Any, y: Any, task: Any, side_info: Any, sizes: Weighted
) -> tuple[TaskSet, TaskSet | None]:
    """Return the tasks that have rows, in their own order, and conditioning points."""
    fitted = reader.fitted_
    X, time = take_time(X, sizes.time)
    if is_nameless(reader, X, task) and (fitted.tasks is None or len(fitted.tasks) != 1):
        raise fitted.which_task()
    weight = None if time is None and sizes.size is None else sizes._replace(time=time)
    tasks, points = read_tasks(reader, fitted, X, y, task, side_info, weight)
    tasks = tasks.subset(np.flatnonzero(tasks.sizes > 0))
    if not len(tasks):
        raise DataError("There are no rows to check the model with.")
    if kind_of(reader) == "class" and tasks.weight is not None and tasks.weight.ndim == 2:
        raise DataError(
            "check judges classes row by row, not shares of trials: give each trial as a row of "
            "class 0 or 1."
        )
    names = {"feature_names": tasks.feature_names, "task_name": tasks.task_name}
    parts = tasks.X, tasks.y, tasks.offsets, tasks.ids, tasks.side
    weight = tasks.weight if kind_of(reader) == "count" else None  # with exposures
    return TaskSet(*parts, **names, weight=weight, time=tasks.time), points


def _side(fitted: Fitted, tasks: TaskSet) -> tuple[dict[int, str], dict[int, str]]:
    """Return unusual side information of unknown tasks and changes of known ones, by position."""
    table, store, fmap = tasks.side, fitted.tasks, fitted.reader.map
    if table is None or not isinstance(fmap, ComposedMap) or fmap.reads_points:
        return {}, {}
    place = np.full(len(tasks), -1) if store is None else store.positions(tasks.ids.tolist())
    given = table.has(tasks.ids)
    new, old = np.flatnonzero(given & (place < 0)), np.flatnonzero(given & (place >= 0))
    remarks: dict[int, list[str]] = {}
    if len(new):
        sides = sides_of(fitted, tasks.ids[new], table.take(tasks.ids[new]))
        for unusual in unusual_sides(fitted, sides, Neighbourhood.of(fitted)):
            value = "" if unusual.value is None else f" {unusual.value}"
            remark = f"{unusual.column}{value}: {unusual.reason}"
            remarks.setdefault(int(new[unusual.row]), []).append(remark)
    changed: dict[int, str] = {}
    if len(old) and store.Phi is not None:
        Phi = sides_of(fitted, tasks.ids[old], table.take(tasks.ids[old])).Phi
        before, sources = store.Phi[place[old]], np.array(raw_columns(fmap))
        differs = np.abs(Phi - before) > 1e-9 * (1 + np.abs(before))
        for t, which in zip(old.tolist(), differs, strict=True):
            if which.any():
                changed[t] = f"changed: {', '.join(dict.fromkeys(sources[which].tolist()))}"
    return {t: "; ".join(parts) for t, parts in remarks.items()}, changed


def _beyond(p: np.ndarray, level: float) -> np.ndarray:
    """Return which tasks the procedure of Benjamini and Hochberg selects."""
    order = np.argsort(p)
    passes = np.flatnonzero(p[order] <= level * np.arange(1, len(p) + 1) / len(p))
    named = np.zeros(len(p), bool)
    named[order[: passes[-1] + 1 if len(passes) else 0]] = True
    return named


def _by_chance(count: int, of: int, rate: float) -> float:
    """Return the probability of `count` or more of `of`."""
    return float(distributions.binom.sf(count - 1, of, rate)) if of else 1.0
