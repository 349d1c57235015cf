"""Choose among learners, for each number of points that a task has: shared by the Auto learners."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from condmeta import persistence
from condmeta.fitted.fitted import Columns
from condmeta.fitted.shared_model import OutOfTask
from condmeta.inner.log_rms import denoised_moments
from condmeta.learners.blend import BlendedModel, BlendedModels, Blends, answers_of
from condmeta.learners.checks import warn_constant
from condmeta.learners.held_out import (
    FEWEST_TASKS,
    HeldOutAnswers,
    frozen,
    hold_out,
    no_progress,
    on_base,
)
from condmeta.learners.inputs import (
    METADATA,
    Inputs,
    read_training,
    readable,
    readable_tasks,
    warn_of_one_task,
)
from condmeta.learners.learn import fit_inputs, shared_model_of
from condmeta.learners.model_file import check_jobs
from condmeta.learners.parameters import check_learner, check_parameters
from condmeta.learners.writing import writing
from condmeta.meta.stacking import Criterion, best_blend
from condmeta.persistence.fields import (
    ANY,
    TEXT,
    InvalidFieldError,
    floats,
    instance,
    integers,
    labels,
    mapping,
    maybe,
    number,
    record,
    sequence,
)
from condmeta.tasks import TaskSet
from condmeta.tasks.numbers import power_of_two
from condmeta.text import pluralize

FEWEST_ROWS = 200  # for boosting
READING = "scale", "fit_intercept", "task_column", "side_columns", "side_key", "n_jobs"


class Chosen(NamedTuple):
    """What the fit of an Auto learner leaves.

    `learners` are those with a weight, and `blends` combines them; the rest are the attributes of
    the learner.
    """

    candidates: list[str]
    shots: np.ndarray
    errors: np.ndarray
    weights: np.ndarray
    task_errors: np.ndarray | None
    report: str
    learners: dict[str, Any]
    columns: Columns
    n_tasks: int
    classes: np.ndarray | None
    lines: np.ndarray

    @property
    def blends(self) -> Blends:
        """The combinations of `learners`."""
        used = [self.candidates.index(name) for name in self.learners]
        return Blends(self.shots, self.weights[:, used], self.lines)


class Comparable(NamedTuple):
    """A fit of an Auto learner: what it chose, all candidates, and their held-out predictions."""

    chosen: Chosen
    candidates: dict[str, Any]
    answers: list[HeldOutAnswers]


@dataclass(eq=False, repr=False)
class Auto(BaseEstimator):
    """A learner that uses others, each where it is the best."""

    feature_map: Any = "auto"
    _: KW_ONLY
    base: Any = "boosting"
    shots: Any = (0, 1, 2, 5, 10, 20, 50)
    order: str = "random"
    random_state: Any = 0
    scale: str = "standard"
    fit_intercept: bool = True
    missing_side: str = "error"
    task_column: Any = None
    side_columns: Any = None
    side_key: Any = None
    n_jobs: int | None = None

    __metadata_request__fit = METADATA
    __metadata_request__predict = METADATA
    __metadata_request__score = METADATA

    _model = None  # the `Chosen` that a fit sets, and nothing else
    _rules = {}
    _weighs = True

    _own: ClassVar[type]  # the learners to choose among
    _pooled: ClassVar[type]
    _conditional: ClassVar[type]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _candidates(self, conditional: bool) -> dict[str, Any]:
        """Return the learners to choose among; `conditional` adds the one with side information."""
        reading = {name: getattr(self, name) for name in READING}
        learners = {
            "own data": self._own(**reading),
            "pooled": self._pooled(**reading),
            "unconditional": self._conditional(None, missing_side="mean", **reading),
        }
        if conditional:
            how = reading | {"missing_side": self.missing_side}
            learners["conditional"] = self._conditional(self.feature_map, **how)
        return learners

    @abstractmethod
    def _criterion(self) -> Criterion:
        """Return the loss that counts."""

    @property
    def criterion_(self) -> Criterion:
        """The loss that counted."""
        return self._criterion()

    def _too_few(self, given: Inputs) -> str:
        """Return why no tasks can be held out; nothing if they can."""
        count = int((given.tasks.sizes > 0).sum())
        return f"{count} tasks are too few to hold any out" if count < FEWEST_TASKS else ""

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        task: Any = None,
        side_info: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Choose on held-out tasks, then fit what was chosen to all.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, rows in any order. A TaskSet is passed alone: it carries y and
            the task ids.
        y : (N,) array
            The target of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each task (see `TaskTable`), or a `TaskSet` of conditioning points. Ids
            without rows in X are kept as tasks without points.
        sample_weight : (N,) array, optional
            How often each row counts, also where it judges: 2 is the row twice, 0 is no row.

        Returns
        -------
        self
        """
        reader = self._candidates(False)["unconditional"]  # it reads as all candidates do
        check_learner(reader)
        X = readable_tasks(self, X) if isinstance(X, TaskSet) else readable(self, X)
        given = read_training(reader, X, y, task, side_info, sample_weight)
        warn_of_one_task(reader, X, task)
        with writing(self):
            self._model = self.compare(given).chosen
        warn_constant(self.constant_features_, len(given.tasks.X))
        return self

    def with_choice(self, chosen: Chosen) -> Auto:
        """Return a copy that is fitted, with what `compare` chose."""
        fitted = copy.copy(self)
        fitted._model = chosen
        return fitted

    def compare(self, given: Inputs, progress: Any = no_progress) -> Comparable:
        """Fit all candidates and choose among them; the learner itself is not changed.

        `progress` is called with the next step.
        """
        check_parameters(self)
        tasks = given.tasks
        learners = self._candidates(tasks.side is not None and self.feature_map is not None)
        if self.base is not None:
            progress("boosted trees" if self.base == "boosting" else "the base of all tasks")
        shared = self._share_base(learners, given)
        for name, learner in learners.items():
            progress(f"fitting: {name}")
            fit_inputs(learner, given, shared if on_base(name) else None)
        names, answers, why = list(learners), [], self._too_few(given)
        if why:
            choice = _default(names, why)
        else:
            settled = {name: frozen(learner) for name, learner in learners.items()}
            how = self.shots, self.order, self.random_state
            answers = hold_out(settled, tasks, shared, *how, progress)
            choice = _choose(names, answers, self._criterion(), given.classes is None)
        used = np.flatnonzero(choice["weights"].any(axis=0))
        chosen = Chosen(
            names, **choice, learners={names[c]: learners[names[c]] for c in used},
            columns=given.columns, n_tasks=int((tasks.sizes > 0).sum()), classes=given.classes,
        )  # fmt: skip
        return Comparable(chosen, learners, answers)

    def _share_base(self, learners: dict[str, Any], given: Inputs) -> OutOfTask | None:
        """Add candidates on a shared model, and return it; None with few tasks or rows."""
        if self.base is None or self._too_few(given) or len(given.tasks.y) < FEWEST_ROWS:
            return None
        shared = shared_model_of(self, given.tasks)
        for name in [name for name in learners if "conditional" in name]:
            learners[f"{name} on base"] = clone(learners[name])
        if given.classes is None:
            mean = clone(learners["unconditional"]).set_params(random="intercept")
            learners["task mean on base"] = mean
        return shared

    # What a fit leaves.

    @property
    def chosen_(self) -> Chosen:
        """The fitted value."""
        check_is_fitted(self)
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    @property
    def candidates_(self) -> list[str]:
        """The names of the candidates."""
        return self.chosen_.candidates

    @property
    def shots_(self) -> np.ndarray:
        """The numbers of points that candidates were compared at."""
        return self.chosen_.shots

    @property
    def errors_(self) -> np.ndarray:
        """The error of each candidate at each number of points (shots, candidates)."""
        return self.chosen_.errors

    @property
    def weights_(self) -> np.ndarray:
        """The weight of each candidate at each number of points (shots, candidates)."""
        return self.chosen_.weights

    @property
    def lines_(self) -> np.ndarray:
        """Shift and slope of the line through the combination, by number of points (shots, 2)."""
        return self.chosen_.lines

    @property
    def task_errors_(self) -> np.ndarray | None:
        """The errors of held-out tasks, or None if none were held out."""
        return self.chosen_.task_errors

    @property
    def report_(self) -> str:
        """What was chosen, in words."""
        return self.chosen_.report

    @property
    def learners_(self) -> dict[str, Any]:
        """The learners that have a weight, by name."""
        return self.chosen_.learners

    @property
    def n_tasks_(self) -> int:
        """Tasks with points that were learned from."""
        return self.chosen_.n_tasks

    @property
    def n_features_in_(self) -> int:
        """Number of features of X."""
        return self.chosen_.columns.n_features

    @property
    def constant_features_(self) -> list[str]:
        """Names of the features that were constant in training: their coefficients are 0."""
        return next(iter(self.learners_.values())).constant_features_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if `fit` was given a table."""
        return self.chosen_.columns.feature_names

    # Ask it.

    def _blended(self, X, **whose) -> np.ndarray:
        """Return the combination of the learners' predictions (N,)."""
        chosen = self.chosen_
        points = next(iter(chosen.learners.values())).n_points(X, **whose)
        answers = answers_of(chosen.learners.values(), chosen.classes, X, **whose)
        return chosen.blends.of(answers, points)

    def n_points(self, X: Any, *, task: Any = None, side_info: Any = None) -> np.ndarray:
        """Return how many points of its task the model knows, for each row (N,).

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. None with a row of side information
            is one new task; without, it is the one task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        """
        first = next(iter(self.learners_.values()))
        return first.n_points(X, task=task, side_info=side_info)

    def adapt(
        self,
        X: Any = None,
        y: Any = None,
        *,
        task: Any = None,
        side_info: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """Solve new tasks by what was chosen for their number of points; weights as in `fit`.

        Parameters
        ----------
        X : (n, d) array, DataFrame or TaskSet, optional
            The points; without any, the model is tau of the side information (zero-shot).
        y : (n,) array, optional
            Their targets.
        task : (n,) ids, optional
            Several tasks at once; None means that all points belong to one.
        side_info : row or table, optional
            For one task its row (a dict of columns, a Series, a sequence); with `task` a table
            keyed by task id, as in `fit`.
        sample_weight : (N,) array, optional
            How often each row counts: 2 is the row twice, 0 is no row.

        Returns
        -------
        BlendedModel, or BlendedModels if `task` is given or X is a TaskSet
        """
        chosen = self.chosen_
        parts = [
            learner.adapt(X, y, task=task, side_info=side_info, sample_weight=sample_weight)
            for learner in chosen.learners.values()
        ]
        kind = BlendedModels if hasattr(parts[0], "ids") else BlendedModel
        return kind(parts, chosen.blends, chosen.classes)

    def update(
        self,
        X: Any,
        y: Any = None,
        *,
        task: Any = None,
        side_info: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Add points to known tasks and enrol new ones; what was chosen stays. Weights as in `fit`.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            Further points of known tasks, and points of new ones.
        y : (N,) array
            The target of each row.
        task : (N,) ids, optional
            The task of each row: strings, integers, dates, tuples; the name of a column of X; None
            means one task.
        side_info : table keyed by task id, optional
            One raw row for each new task, as in `fit`.
        sample_weight : (N,) array, optional
            How often each row counts: 2 is the row twice, 0 is no row.

        Returns
        -------
        self
        """
        with writing(self):
            chosen = self.chosen_
            learners = {name: copy.copy(learner) for name, learner in chosen.learners.items()}
            for learner in learners.values():
                learner.update(X, y, task=task, side_info=side_info, sample_weight=sample_weight)
            self._model = chosen._replace(learners=learners)
        return self

    # Keep it.

    def save(self, path: Any, *, tasks: bool = True, resume: bool = True) -> None:
        """Write the model to a file, as `ConditionalRidge.save` does."""
        slim = self.slim(tasks, resume)
        persistence.write_model(path, slim, card=slim.card())

    def slim(self, tasks: bool = True, resume: bool = True) -> Self:
        """Return a copy that holds what `save` would write."""
        slim, parts = copy.copy(self), self.learners_.items()
        learners = {name: learner.slim(tasks, resume) for name, learner in parts}
        slim._model = self.chosen_._replace(learners=learners)
        return slim

    def card(self) -> dict:
        """Return what a reader of the model wants to know: engine, sizes, columns, settings."""
        about = next(iter(self.learners_.values())).card()
        about["settings"] = {name: repr(v) for name, v in self.get_params(deep=False).items()}
        return about | {"report": self.report_}


CHOSEN = record(
    {
        "candidates": sequence(TEXT, "c", distinct=True), "shots": integers("s"),
        "errors": floats("s c", nan=True), "weights": floats("s c"),
        "task_errors": maybe(floats("s 2", nan=True)), "report": TEXT,
        "learners": mapping(instance()),
        "columns": instance("InputColumns", n="n"), "n_tasks": number(low=0, whole=True),
        "classes": maybe(labels("2")), "lines": floats("s 2"),
    }
)  # fmt: skip


def storable(cls):
    """Let model files hold an Auto learner; used as a class decorator."""
    how = {"export": _export, "restore": _restore, "upgrade": _upgrade}
    fields = {"params": mapping(ANY), "chosen": CHOSEN}
    return persistence.register(cls, **how, fields=fields, rule=_check_choice)


def _export(auto: Auto) -> dict:
    return {"params": auto.get_params(deep=False), "chosen": auto.chosen_._asdict()}


def _upgrade(cls, parts: dict) -> dict:
    params = dict(parts["params"])
    if "support" in params:  # the name of `order` in files of the first format
        params["order"] = params.pop("support")
    chosen = _chosen_of_parts(parts) if "public" in parts else dict(parts["chosen"])
    chosen.setdefault("lines", _no_lines(len(chosen["shots"])))
    return {"params": params, "chosen": chosen}


def _restore(cls, parts: dict):
    auto = cls(**parts["params"])
    check_parameters(auto)
    auto._model = Chosen(**parts["chosen"])
    return auto


def _check_choice(state: dict, sizes: dict[str, int]) -> None:
    """Raise if the learners are not the candidates that have a weight."""
    check_jobs(state["params"])
    chosen = Chosen(**state["chosen"])
    shots = chosen.shots
    if not len(shots) or (np.diff(shots) <= 0).any() or shots[0] < 0:
        raise InvalidFieldError("chosen['shots']", "must rise from 0 or more")
    if not chosen.learners or not set(chosen.learners) <= set(chosen.candidates):
        raise InvalidFieldError("chosen['learners']", "must be some of the candidates")
    for name, learner in chosen.learners.items():
        if not hasattr(learner, "fitted_") or learner.n_features_in_ != sizes["n"]:
            raise InvalidFieldError(f"chosen['learners'][{name!r}]", "must be a learner like it")
        classes = learner.fitted_.predictor.classes
        if (classes is None) != (chosen.classes is None):
            raise InvalidFieldError("chosen['classes']", "must be those of the learners")


def _chosen_of_parts(parts: dict) -> dict:
    """Return the value of an Auto learner from a file of the first format."""
    public, learners = parts["public"], dict(parts["learners"])
    names = "candidates", "shots", "errors", "weights", "task_errors", "report", "n_tasks"
    first = next(iter(learners.values())).fitted_
    return {name: public[f"{name}_"] for name in names} | {
        "learners": learners,
        "columns": first.columns,
        "classes": public.get("classes_"),
    }


def _no_lines(n_shots: int) -> np.ndarray:
    return np.tile([0.0, 1.0], (n_shots, 1))


def _default(names: list[str], why: str) -> dict[str, Any]:
    best = "conditional" if "conditional" in names else "unconditional"
    return {
        "shots": np.array([0]),
        "errors": np.full((1, len(names)), np.nan),
        "weights": np.eye(len(names))[[names.index(best)]],
        "task_errors": None,
        "report": f"{best}: {why}.",
        "lines": _no_lines(1),
    }


def _choose(names, trials: list[HeldOutAnswers], criterion: Criterion, numbers: bool) -> dict:
    """Return the weights of the candidates at each number of points, and what they rest on."""
    unit = power_of_two(max(np.abs(trial.y).max() for trial in trials))  # squares stay finite
    with np.errstate(over="ignore"):
        each = ((trial.answers, trial.y, trial.weight) for trial in trials)
        errors = np.array([criterion.mean(*trial) for trial in each])
    said = [(trial.answers / unit, trial._replace(y=trial.y / unit)) for trial in trials]
    found = [best_blend(p, trial.y, trial.task, criterion, trial.weight) for p, trial in said]
    weights = np.array([blend.weights for blend in found])
    lines = np.array([(unit * blend.shift, blend.slope) for blend in found])
    task_errors = None
    if numbers:
        blended = ((trial, blend.of(p)) for (p, trial), blend in zip(said, found, strict=True))
        task_errors = np.array([_task_errors(*one) for one in blended])
        task_errors[:, 0] += np.log(unit)
    shots = np.array([trial.shot for trial in trials])
    report = _report(names, shots, weights, lines, errors, criterion)
    return {
        "shots": shots, "errors": errors, "weights": weights, "task_errors": task_errors,
        "report": report, "lines": lines,
    }  # fmt: skip


def _task_errors(trial: HeldOutAnswers, answers: np.ndarray) -> tuple[float, float]:
    """Return mean and variance of the log root mean square errors of tasks with very many rows."""
    sizes = np.bincount(trial.task)
    square = np.bincount(trial.task, (trial.y - answers) ** 2) / sizes
    return denoised_moments(0.5 * np.log(square + 1e-300), sizes)


def _report(names, shots, weights, lines, errors, criterion: Criterion) -> str:
    """Return in one line what was chosen, where and why."""
    parts = []
    for shot, mixed, line, lost in zip(shots, weights, lines, errors, strict=True):
        mix = [
            name if weight > 0.995 else f"{weight:.2f} {name}"
            for weight, name in zip(mixed, names, strict=True)
            if weight > 0.005
        ]
        alone = int(np.argmin(lost))
        parts.append(
            f"{pluralize(int(shot), 'point')}: {' + '.join(mix)}{_in_words(*line)} "
            f"(best alone {names[alone]} {lost[alone]:.4g}; "
            f"own data {lost[0]:.4g}, pooled {lost[1]:.4g})"
        )
    return f"Mean {criterion.title} on held-out tasks. " + "; ".join(parts) + "."


def _in_words(shift: float, slope: float) -> str:
    return "" if (shift, slope) == (0, 1) else f", as the median {shift:.3g} + {slope:.3g} p"
