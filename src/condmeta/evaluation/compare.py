"""Compare learners, without and with side information, on held-out tasks."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from condmeta.errors import DataError
from condmeta.evaluation.advantage import advantage
from condmeta.evaluation.ahead import answers_ahead
from condmeta.evaluation.comparison import AUTO, Comparison
from condmeta.evaluation.gains import Gain, gain_of
from condmeta.fitted.label_codes import encode_labels
from condmeta.learners.auto import Auto
from condmeta.learners.auto_candidates import refuse_negative
from condmeta.learners.auto_choice import learned_priors
from condmeta.learners.auto_classifier import AutoClassifier
from condmeta.learners.auto_regressor import AutoRegressor
from condmeta.learners.baselines import IndependentRegressor, PooledRegressor
from condmeta.learners.checks import warn_constant, warn_far_values
from condmeta.learners.count import ConditionalCount
from condmeta.learners.held_out import FEWEST_TASKS, HeldOutAnswers, hold_out, no_progress
from condmeta.learners.inputs import inputs_of
from condmeta.learners.labels import check_missing
from condmeta.learners.learn import fit_inputs
from condmeta.learners.learner import Learner
from condmeta.learners.ridge import ConditionalRidge
from condmeta.meta.criteria import CRITERIA, LOG_LOSS, Criterion
from condmeta.meta.stacking import best_blend
from condmeta.tasks import TaskSet
from condmeta.tasks.call_input import as_tasks, require_data
from condmeta.tasks.frames import is_series, to_array
from condmeta.tasks.ids import factorize
from condmeta.tasks.splits import ORDERS, check_shots
from condmeta.tasks.splits.in_time import in_time_order
from condmeta.typing import (
    Base,
    CriterionName,
    FeatureMapLike,
    Ids,
    Labels,
    Matrix,
    Names,
    Order,
    RandomState,
    Shots,
    SideInfo,
    Values,
)

MOST_NUMBERS = 20  # that are classes if the learners are classifiers
POSITIVE = "the true class"  # of more than two: answers are its probabilities


def compare(
    X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
    side_key: Names = None, learners: Mapping[str, Any] | None = None,
    shots: Shots = (0, 1, 2, 5, 10), feature_map: FeatureMapLike = "auto", base: Base = "boosting",
    criterion: CriterionName = "absolute", order: Order = "random", random_state: RandomState = 0,
    sample_weight: Values = None, n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None, classes: Labels = None,
    time: Values = None,
) -> Comparison:  # fmt: skip
    """Compare learners on held-out tasks, adapted to 0, 1, 2, ... points of each.

    Parameters
    ----------
    X, y, task, side_info, side_key
        As for `fit`, or a `TaskSet` alone. A y with two values is read as two classes, and a y of
        texts as classes. If `learners` are classifiers, up to 20 different whole numbers are read
        as classes too.
    learners : dict of name -> learner, optional
        Learners to compare, with their settings; each is fitted once without each fold of tasks. By
        default: a model of the task's own points ("own data"), one model for all tasks ("pooled"),
        the learned prior without and with side information ("unconditional", "conditional"), the
        same fitted to the residuals of `base` ("... on base"), for numbers also `base` with a
        random intercept of each task ("task mean on base") and `base` alone ("constant on base"),
        the learned prior with splines of x or another scale of y if that reduces the error
        ("transformed"), and the best combination of these, chosen on other tasks than the judged
        ones ("auto").
    shots : sequence of int
        Numbers of points. A number needs 10 tasks with more points, or it is left out.
    feature_map, base
        As for `AutoRegressor`, or `AutoClassifier`.
    criterion : "absolute", "squared", "deviance" or "log density"
        The error to compare, as for `AutoRegressor`; for classes it is the log loss. With "log
        density" all learners must predict a distribution, as `ConditionalRidge` and
        `ConditionalCount` do.
    order : "random" or "first"
        Which points of a held-out task the learners adapt to: random ones, or its first rows, so
        that no information from later rows leaks.
    random_state : int, Generator, RandomState or None
    sample_weight : (N,) array, optional
        How often each row counts, in fits and in errors.
    n_jobs : int, optional
        Number of threads.
    progress : callable, optional
        Called with the name of each step before it starts.
    classes : sequence of labels, optional
        Names of the classes, if the labels of a `TaskSet` are their numbers 0, 1, ...
    time : (N,) array or name of a column, optional
        The time of each row. Learners adapt to the earliest points of a held-out task. Errors are
        also measured on known tasks, one step ahead: learners are fitted to the first 70 % of the
        times, and then predict and add the rows of each later time (`Comparison.ahead`). The
        default learners are then "own data", "pooled", and `ConditionalRidge` that "never forgets"
        (drift=None) and that "forgets" (drift="auto"); `base` is not used.

    Notes
    -----
    The default learners choose their settings once, on all tasks, and keep them in the folds;
    learners given by `learners` choose again in each fold.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=3, n=8).sample(60, random_state=0)
    >>> own = {"ridge": cm.ConditionalRidge(None), "pooled": cm.PooledRegressor()}
    >>> found = cm.compare(tasks, learners=own, shots=(0, 4))
    >>> found.names, found.best[4], len(found.frame)
    (['ridge', 'pooled'], 'ridge', 4)
    """
    progress = progress or no_progress
    require_data(X, y, "compare")
    classes = _classes(X, y, learners) if classes is None else np.asarray(classes)
    if classes is not None and not isinstance(X, TaskSet):
        y = np.maximum(encode_labels(_as_array(y), classes), 0.0)
    tasks = as_tasks(X, y, task, side_info, side_key, sample_weight, time)
    if tasks.time is not None:
        tasks, order = in_time_order(tasks), "first"
        if learners is None:
            learners = _learners_in_time(feature_map, side_key, classes)
    shots = _usable(tasks, check_shots(shots))
    if order not in ORDERS:
        raise DataError(
            f"The 'order' parameter must be 'random' or 'first'. Got {order!r} instead: to adapt "
            "to the earliest points, sort the rows and use 'first'."
        )
    judge = _judge(criterion, tasks.y, classes)
    about = {"order": order, "positive": _positive(judge, classes)}
    coded = _coded(tasks, classes)
    how = {"shots": shots, "order": order, "random_state": random_state}
    if learners is not None:
        _check_given(learners, classes is not None)
        if judge.density:
            _check_densities(learners)
        models = {}
        for name, learner in learners.items():
            progress(f"fitting: {name}")
            models[name] = _fit(clone(learner), coded, classes)
        _warn_of_columns(models, coded)
        trials = hold_out(
            dict(learners), coded, None, **how, progress=progress, density=judge.density
        )
        if tasks.time is not None:
            about["ahead"] = answers_ahead(learners, coded, judge.density, progress)
        return Comparison(list(learners), models, trials, judge, None, [], tasks, **about)
    how |= {"missing_side": "mean", "side_key": side_key, "n_jobs": n_jobs}
    if classes is None:
        auto: Any = AutoRegressor(feature_map, base=base, criterion=criterion, **how)
    else:
        auto = AutoClassifier(feature_map, base=base, **how)
    chosen, models, trials = auto.compare(inputs_of(auto, coded, classes), progress)
    if not trials:
        raise DataError(f"There is nothing to compare on: {chosen.report.partition(': ')[2]}")
    _warn_of_columns(models, coded)
    names, towards = [*models, AUTO], learned_priors(models)
    models = models | {AUTO: auto.with_choice(chosen)}
    trials = [_with_choice(trial, judge, towards) for trial in trials]
    gains = _gains(names, trials, judge)
    paid = None
    if "conditional" in models and classes is None:
        progress("variance explained by side information")
        with suppress(DataError):  # the map reads y, or there are too few tasks
            paid = replace(advantage(tasks, feature_map=feature_map, shots=()), gains=gains)
    return Comparison(names, models, trials, judge, paid, gains, tasks, **about)


def _judge(criterion: str, y: Any, classes: np.ndarray | None) -> Criterion:
    """Return how errors are measured: by the criterion, or for classes by the log loss."""
    if criterion not in CRITERIA:
        listed = ", ".join(map(repr, CRITERIA))
        raise DataError(f"The 'criterion' parameter must be one of {listed}. Got {criterion!r}.")
    if classes is not None:
        return LOG_LOSS
    refuse_negative(criterion, y)
    return CRITERIA[criterion]


def _positive(judge: Criterion, classes: np.ndarray | None) -> str | None:
    """Return of what answers are probabilities or densities; None: they are numbers."""
    if classes is not None:
        return str(classes[1]) if len(classes) == 2 else POSITIVE
    return "the label" if judge.density else None


def _coded(tasks: TaskSet, classes: np.ndarray | None) -> TaskSet:
    """Return tasks with labels as learners take them: two classes are -1 and +1, more 0, 1, ..."""
    if classes is None:
        return tasks
    if len(classes) == 2:
        return tasks.with_target(np.where(tasks.y == tasks.y.max(), 1.0, -1.0))
    return tasks.with_target(np.unique(tasks.y, return_inverse=True)[1].astype(float))


def _learners_in_time(feature_map: Any, side_key: Any, classes: Any) -> dict[str, Any]:
    """Return the default learners for rows with times."""
    if classes is not None:
        raise DataError(
            "time= is for numeric targets, because classifiers do not forget old rows. Sort the "
            "rows by time and use order='first'."
        )
    how = {"missing_side": "mean", "side_key": side_key}
    return {
        "own data": IndependentRegressor(side_key=side_key),
        "pooled": PooledRegressor(side_key=side_key),
        "never forgets": ConditionalRidge(feature_map, drift=None, **how),
        "forgets": ConditionalRidge(feature_map, **how),
    }


def _fit(learner: Any, tasks: TaskSet, classes: np.ndarray | None) -> Any:
    """Fit a learner; those of condmeta get the names of the classes."""
    if isinstance(learner, Learner):
        return fit_inputs(learner, inputs_of(learner, tasks, classes))
    if isinstance(learner, Auto):
        return learner.with_choice(learner.compare(inputs_of(learner, tasks, classes)).chosen)
    return learner.fit(tasks)


def _warn_of_columns(models: dict[str, Any], tasks: TaskSet) -> None:
    """Warn of columns with one value or with a value that is far off: once for all learners."""
    for model in models.values():
        if isinstance(model, Learner | Auto):
            warn_constant(model.constant_features_, len(tasks.X))
            warn_far_values(model, tasks)
            return


def _usable(tasks: TaskSet, shots: tuple[int, ...]) -> list[int]:
    """Return the numbers of points that enough tasks exceed; raise if there are none."""
    if not shots:
        raise DataError("The 'shots' parameter must hold at least one int of at least 0. Got none.")
    usable = [m for m in shots if (tasks.sizes > m).sum() >= FEWEST_TASKS]
    if not usable:
        least = min(shots)
        raise DataError(
            f"compare holds out tasks and needs {FEWEST_TASKS} with more than {least} points. "
            f"There are {(tasks.sizes > least).sum()}."
        )
    return usable


def _as_array(y: Any) -> np.ndarray:
    return to_array(y) if is_series(y) else np.asarray(y)


def _classes(X: Any, y: Any, learners: Any) -> np.ndarray | None:
    """Return the classes of the target; None if it holds numbers."""
    y = X.y if isinstance(X, TaskSet) else _as_array(y)
    check_missing(y)
    values = factorize(y, what="y")[1].tolist()
    given = learners.values() if isinstance(learners, Mapping) else ()
    given = [learner for learner in given if hasattr(learner, "get_params")]
    texts = not all(isinstance(value, int | float) for value in values)
    few = not texts and len(values) <= MOST_NUMBERS and all(value == int(value) for value in values)
    if len(values) != 2 and not texts and not (few and any(map(is_classifier, given))):
        return None
    if len(values) < 2:
        raise DataError(f"y holds the single class {values}: classifiers need at least two.")
    return np.array(sorted(values))


def _with_choice(trial: HeldOutAnswers, criterion: Criterion, towards: Any) -> HeldOutAnswers:
    """Add the answers of "auto": for each fold the combination that is best on other folds."""
    chosen, fold = np.empty(len(trial.y)), trial.fold[trial.task]
    answers = trial.answers
    for f in np.unique(fold):
        mine = fold == f
        other = mine if mine.all() else ~mine  # all tasks may be in one fold
        m = None if trial.weight is None else trial.weight[other]
        blend = best_blend(answers[other], trial.y[other], trial.task[other], criterion, m, towards)
        chosen[mine] = blend.of(answers[mine])
    return trial._replace(answers=np.column_stack([answers, chosen]))


def _gains(names: list[str], trials: list[HeldOutAnswers], criterion: Criterion) -> list[Gain]:
    """Return the gains of "conditional" over "unconditional"."""
    if "conditional" not in names or criterion.density:  # a share of a log density says nothing
        return []
    pair = [names.index("unconditional"), names.index("conditional")]
    out = []
    for trial in trials:
        losses = criterion.losses(trial.answers[:, pair], trial.y).T
        m = np.ones(len(trial.y)) if trial.weight is None else trial.weight
        by_task = [np.bincount(trial.task, m * one) for one in losses]
        out.append(gain_of(trial.shot, *by_task, np.bincount(trial.task, m)))
    return out


def _check_densities(learners: Mapping[str, Any]) -> None:
    """Raise if one of the user's own learners has no distribution of labels."""
    for name, learner in learners.items():
        if not isinstance(learner, ConditionalRidge | ConditionalCount):
            raise DataError(
                "criterion='log density' needs learners that predict a distribution, such as "
                f"ConditionalRidge and ConditionalCount. {name!r} is a {type(learner).__name__}."
            )


def _check_given(learners: Any, classes: bool) -> None:
    """Raise if one of the user's own learners cannot be compared."""
    if not isinstance(learners, Mapping) or not learners:
        raise DataError("The 'learners' parameter must be a dict of name -> learner.")
    for name, learner in learners.items():
        if hasattr(learner, "read_tasks"):
            raise DataError(
                f"{name!r} is a {type(learner).__name__}, which reads tables itself: compare its "
                "learner, on the tasks of model.read_tasks(table, side_info)."
            )
        if not hasattr(learner, "adapt") or not hasattr(learner, "get_params"):
            raise DataError(
                f"The learner {name!r} cannot be compared: it needs fit, adapt and get_params, "
                f"such as ConditionalRidge(). Got {type(learner).__name__}."
            )
        if is_classifier(learner) != classes:
            kind = "classifiers" if classes else "regressors"
            raise DataError(f"This target needs {kind}; {name!r} is a {type(learner).__name__}.")
