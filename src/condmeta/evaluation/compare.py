"""Which learner, and does side information pay? On tasks that were held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from condmeta.errors import DataError
from condmeta.estimators import AutoClassifier, AutoRegressor
from condmeta.estimators.held_out import FEWEST_TASKS, Trial, hold_out, silent
from condmeta.evaluation.advantage import Advantage, advantage
from condmeta.evaluation.comparison import AUTO, Comparison
from condmeta.evaluation.gains import Gain, gain_of
from condmeta.evaluation.task_mean import TaskMean
from condmeta.meta.stacking import CRITERIA, LOG_LOSS, Criterion, best_weights
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import is_series, to_array
from condmeta.tasks.held_out import ORDERS, as_tasks, check_shots
from condmeta.tasks.ids import factorize

TASK_MEAN = "task mean on base"


def compare(
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    side_info: Any = None,
    side_key: Any = None,
    learners: Mapping[str, Any] | None = None,
    shots: Any = (0, 1, 2, 5, 10),
    feature_map: Any = "auto",
    base: Any = "boosting",
    criterion: str = "absolute",
    order: str = "random",
    random_state: Any = 0,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare learners on held-out tasks that have shown 0, 1, 2, ... points.

    Parameters
    ----------
    X, y, task, side_info, side_key
        As for `fit`, or a `TaskSet` alone. A y with two values is taken as two classes.
    learners : dict of name -> learner, optional
        What to compare, each as it is; each is fitted once for each fold of tasks. By default: the
        task's own data alone ("own data"), one model for all ("pooled"), the learned prior without
        and with side information ("unconditional", "conditional"), the same on top of `base`
        ("... on base"), of numbers the base with a shrunken mean of the task's residuals ("task
        mean on base"), and the choice among these by tasks other than the judged ones ("auto").
    shots : sequence of int
        Numbers of points; those that fewer than 10 tasks exceed are left out.
    feature_map, base
        As for `AutoRegressor`, or `AutoClassifier`.
    criterion : "absolute" or "squared"
        The error that counts; of classes it is the log loss.
    order : "random" or "first"
        Which points a held-out task shows: drawn, or its first rows, so that nothing leaks from
        what came later.
    random_state : int, Generator, RandomState or None
    sample_weight : (N,) array, optional
        How often each row counts, where it is learned from and where it judges.
    n_jobs : int, optional
        Threads.
    progress : callable, optional
        Called with what is done next.

    Returns
    -------
    Comparison

    Notes
    -----
    The default learners choose their settings once, on all tasks, and are fitted with these to the
    folds; learners given by `learners` choose within each fold.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=3, n=8).sample(60, random_state=0)
    >>> own = {"ridge": cm.ConditionalRidge(None), "pooled": cm.PooledRegressor()}
    >>> found = cm.compare(tasks, learners=own, shots=(0, 4))
    >>> found.names, found.best[4], len(found.frame)
    (['ridge', 'pooled'], 'ridge', 4)
    """
    tell = progress or silent
    classes = _classes(X, y)
    coded = y if classes is None or isinstance(X, TaskSet) else _as_array(y) == classes[1]
    tasks = as_tasks(X, coded, task, side_info, side_key, sample_weight)
    shots = _usable(tasks, check_shots(shots))
    if order not in ORDERS:
        raise DataError(
            f"The 'order' parameter must be 'random' or 'first'. Got {order!r} instead: to show "
            "the earliest points, sort the rows and say 'first'."
        )
    if criterion not in CRITERIA:
        listed = ", ".join(map(repr, CRITERIA))
        raise DataError(f"The 'criterion' parameter must be one of {listed}. Got {criterion!r}.")
    judge = CRITERIA[criterion] if classes is None else LOG_LOSS
    about = {"order": order, "positive": None if classes is None else str(classes[1])}
    whose = {"task": task, "side_info": side_info}
    if sample_weight is not None:  # learners of the user's own may take none
        whose["sample_weight"] = sample_weight
    if learners is not None:
        _check_given(learners, classes is not None)
        models = {}
        for name, learner in learners.items():
            tell(f"fitting: {name}")
            models[name] = clone(learner).fit(X, y, **whose)
        held = _signed(tasks) if classes is not None else tasks
        trials = hold_out(dict(learners), held, None, shots, order, random_state, tell)
        return Comparison(list(learners), models, trials, judge, None, [], tasks, **about)
    options = {
        "shots": shots, "support": order, "random_state": random_state, "missing_side": "mean",
        "side_key": side_key, "n_jobs": n_jobs,
    }  # fmt: skip
    if classes is None:
        auto: Any = AutoRegressor(feature_map, base=base, criterion=criterion, **options)
        also = {TASK_MEAN: TaskMean()}
    else:
        auto, also = AutoClassifier(feature_map, base=base, **options), {}
    fitted, trials = auto._learn(X, y, also=also, tell=tell, **whose)
    if not trials:
        raise DataError(f"There is nothing to compare on: {auto.report_.partition(': ')[2]}")
    names = [*fitted, *([TASK_MEAN] if trials[0].answers.shape[1] > len(fitted) else []), AUTO]
    trials = [_with_choice(trial, len(fitted), judge) for trial in trials]
    found = _gains(names, trials, judge)
    paid = None
    if "conditional" in fitted and classes is None:
        tell("what side information explains")
        paid = _explained(tasks, feature_map, found)
    return Comparison(names, fitted | {AUTO: auto}, trials, judge, paid, found, tasks, **about)


def _usable(tasks: TaskSet, shots: tuple[int, ...]) -> list[int]:
    """Return the numbers of points that tasks enough exceed, or say that there are none."""
    if tasks.y is None:
        raise DataError("compare reads the targets of the tasks: there are none.")
    usable = [m for m in shots if (tasks.sizes > m).sum() >= FEWEST_TASKS]
    if not usable:
        more = f"have more than {min(shots, default=0)} points"
        raise DataError(
            f"compare holds out tasks and needs {FEWEST_TASKS} that {more}; "
            f"{(tasks.sizes > min(shots, default=0)).sum()} do."
        )
    return usable


def _as_array(y: Any) -> np.ndarray:
    return to_array(y) if is_series(y) else np.asarray(y)


def _classes(X: Any, y: Any) -> np.ndarray | None:
    """Return the two classes of the target; None if it holds numbers."""
    values = factorize(X.y if isinstance(X, TaskSet) else _as_array(y), what="y")[1]
    if len(values) == 2:
        return np.array(sorted(values.tolist()))
    if not all(isinstance(value, int | float) for value in values.tolist()):
        raise DataError(
            f"y holds {len(values)} classes; two can be compared. Compare one of them with the "
            "rest, as y == 'name', and wrap the learner that you choose in scikit-learn's "
            "OneVsRestClassifier."
        )
    return None


def _with_choice(trial: Trial, n_candidates: int, criterion: Criterion) -> Trial:
    """Add the answers of the combination that the tasks of the other folds choose."""
    chosen, fold = np.empty(len(trial.y)), trial.fold[trial.task]
    answers = trial.answers[:, :n_candidates]
    for f in np.unique(fold):
        mine, other = fold == f, fold != f
        if not other.any():
            other = mine  # all tasks stand in one fold
        m = None if trial.weight is None else trial.weight[other]
        weights = best_weights(answers[other], trial.y[other], trial.task[other], criterion, m)
        chosen[mine] = answers[mine] @ weights
    return trial._replace(answers=np.column_stack([trial.answers, chosen]))


def _gains(names: list[str], trials: list[Trial], criterion: Criterion) -> list[Gain]:
    """Return what side information gains."""
    if "conditional" not in names:
        return []
    pair = [names.index("unconditional"), names.index("conditional")]
    out = []
    for trial in trials:
        losses = criterion.losses(trial.answers[:, pair], trial.y).T
        m = np.ones(len(trial.y)) if trial.weight is None else trial.weight
        by_task = [np.bincount(trial.task, m * one) for one in losses]
        out.append(gain_of(trial.shot, *by_task, np.bincount(trial.task, m)))
    return out


def _explained(tasks: TaskSet, feature_map: Any, found: list[Gain]) -> Advantage | None:
    try:
        return replace(advantage(tasks, feature_map=feature_map, shots=()), gains=found)
    except DataError:  # a map that reads y, or fewer tasks than it takes: the gains remain
        return None


def _check_given(learners: Any, classes: bool) -> None:
    """Say which of the user's own learners cannot be compared."""
    if not isinstance(learners, Mapping) or not learners:
        raise DataError("The 'learners' parameter must be a dict of name -> learner.")
    for name, learner in learners.items():
        if not hasattr(learner, "adapt") or not hasattr(learner, "get_params"):
            raise DataError(
                f"The learner {name!r} cannot be compared: it needs fit, adapt and get_params, as "
                f"ConditionalRidge() has. Got a {type(learner).__name__}."
            )
        if is_classifier(learner) != classes:
            kind = "classifiers" if classes else "regressors"
            raise DataError(f"The target takes {kind}; {name!r} is a {type(learner).__name__}.")


def _signed(tasks: TaskSet) -> TaskSet:
    """Return tasks whose labels are -1 and +1, as the log loss reads them."""
    return tasks.with_target(np.where(tasks.y == tasks.y.max(), 1.0, -1.0))
