"""Choose among learners, for each number of points that a task has: shared by the Auto learners."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from condmeta import persistence
from condmeta.errors import ModelFileError
from condmeta.fitted.fitted import Columns
from condmeta.fitted.shared_model import OutOfTask
from condmeta.inner.log_rms import denoised_moments
from condmeta.learners.blend import BlendedModel, BlendedModels, answers_of, blend
from condmeta.learners.checks import warn_constant
from condmeta.learners.held_out import (
    FEWEST_TASKS,
    HeldOutAnswers,
    frozen,
    hold_out,
    no_progress,
    on_base,
)
from condmeta.learners.inputs import METADATA, Inputs, read_training, warn_of_one_task
from condmeta.learners.learn import fit_inputs, shared_model_of
from condmeta.learners.parameters import check_learner, check_parameters
from condmeta.learners.writing import writing
from condmeta.meta.stacking import Criterion, best_weights
from condmeta.tasks.numbers import power_of_two
from condmeta.text import pluralize

FEWEST_ROWS = 200  # for boosting
READING = "scale", "fit_intercept", "task_column", "side_columns", "side_key", "n_jobs"


class Chosen(NamedTuple):
    """What the fit of an Auto learner leaves.

    `learners` are those with a weight, and `used` (shots, learners) are their columns of `weights`;
    the rest are the attributes of the learner.
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

    @property
    def used(self) -> np.ndarray:
        """The weights of `learners` (shots, learners)."""
        return self.weights[:, [self.candidates.index(name) for name in self.learners]]


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

    def fit(self, X, y=None, *, task=None, side_info=None, sample_weight=None):
        """Choose on held-out tasks, then fit what was chosen to all.

        Parameters
        ----------
        X, y, task, side_info : as for `ConditionalSGDRegressor.fit`
        sample_weight : (N,) array, optional
            How often each row counts, also where it judges: 2 is the row twice, 0 is no row.

        Returns
        -------
        self
        """
        reader = self._candidates(False)["unconditional"]  # it reads as all candidates do
        check_learner(reader)
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

    def compare(self, given: Inputs, also=None, progress=no_progress) -> Comparable:
        """Fit all candidates and choose among them; the learner itself is not changed.

        Learners of `also` are held out beside the candidates on a base, and not chosen. `progress`
        is called with the next step.
        """
        check_parameters(self)
        tasks = given.tasks
        learners = self._candidates(tasks.side is not None and self.feature_map is not None)
        shared = self._share_base(learners, given)
        for name, learner in learners.items():
            progress(f"fitting: {name}")
            fit_inputs(learner, given, shared if on_base(name) else None)
        names, answers, why = list(learners), [], self._too_few(given)
        if why:
            choice = _default(names, why)
        else:
            settled = {name: frozen(learner) for name, learner in learners.items()}
            settled |= {} if shared is None else (also or {})
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
        return shared

    # What a fit leaves.

    @property
    def chosen_(self) -> Chosen:
        """The fitted value."""
        check_is_fitted(self)
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    candidates_ = property(lambda self: self.chosen_.candidates)
    shots_ = property(lambda self: self.chosen_.shots)
    errors_ = property(lambda self: self.chosen_.errors)
    weights_ = property(lambda self: self.chosen_.weights)
    task_errors_ = property(lambda self: self.chosen_.task_errors)
    report_ = property(lambda self: self.chosen_.report)
    learners_ = property(lambda self: self.chosen_.learners)
    n_tasks_ = property(lambda self: self.chosen_.n_tasks)
    n_features_in_ = property(lambda self: self.chosen_.columns.n_features)

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
        return blend(answers, chosen.used, chosen.shots, points)

    def n_points(self, X, *, task=None, side_info=None) -> np.ndarray:
        """Return how many points of its task the model knows, for each row (N,)."""
        first = next(iter(self.learners_.values()))
        return first.n_points(X, task=task, side_info=side_info)

    def adapt(self, X=None, y=None, *, task=None, side_info=None, sample_weight=None):
        """Solve new tasks by what was chosen for their number of points; weights as in `fit`.

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
        return kind(parts, chosen.used, chosen.shots, chosen.classes)

    def update(self, X, y=None, *, task=None, side_info=None, sample_weight=None):
        """Add points to known tasks and enrol new ones; what was chosen stays. Weights as in `fit`.

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

    def save(self, path, *, tasks: bool = True, resume: bool = True) -> None:
        """Write the model to a file, as `ConditionalRidge.save` does."""
        slim = self.slim(tasks, resume)
        persistence.write_model(path, slim, card=slim.card())

    def slim(self, tasks: bool = True, resume: bool = True):
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


def storable(cls):
    """Let model files hold an Auto learner; used as a class decorator."""
    return persistence.register(cls, export=_export, restore=_restore)


def _export(auto: Auto) -> dict:
    return {"params": auto.get_params(deep=False), "chosen": auto.chosen_._asdict()}


def _restore(cls, parts: dict):
    """Return an Auto learner from its parts, or say that they do not fit each other."""
    try:
        params = dict(parts["params"])
        if "support" in params:  # the name of `order` in files of the first format
            params["order"] = params.pop("support")
        auto = cls(**params)
        chosen = parts["chosen"] if "chosen" in parts else _chosen_of_parts(parts)
        auto._model = Chosen(**chosen)
        auto._model.used  # noqa: B018 - raises if the weights do not fit the learners
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise ModelFileError(
            f"The parts of the stored {cls.__name__} do not fit: {error}"
        ) from None
    return auto


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


def _default(names: list[str], why: str) -> dict[str, Any]:
    best = "conditional" if "conditional" in names else "unconditional"
    return {
        "shots": np.array([0]),
        "errors": np.full((1, len(names)), np.nan),
        "weights": np.eye(len(names))[[names.index(best)]],
        "task_errors": None,
        "report": f"{best}: {why}.",
    }


def _choose(names, trials: list[HeldOutAnswers], criterion: Criterion, numbers: bool) -> dict:
    """Return the weights of the candidates at each number of points, and what they rest on."""
    unit = power_of_two(max(np.abs(trial.y).max() for trial in trials))  # squares stay finite
    with np.errstate(over="ignore"):
        each = ((trial.answers[:, : len(names)], trial.y, trial.weight) for trial in trials)
        errors = np.array([criterion.mean(*trial) for trial in each])
    said = [
        (trial.answers[:, : len(names)] / unit, trial._replace(y=trial.y / unit))
        for trial in trials
    ]
    weights = np.array(
        [best_weights(p, trial.y, trial.task, criterion, trial.weight) for p, trial in said]
    )
    task_errors = None
    if numbers:
        blended = ((trial, p @ w) for (p, trial), w in zip(said, weights, strict=True))
        task_errors = np.array([_task_errors(*one) for one in blended])
        task_errors[:, 0] += np.log(unit)
    shots = np.array([trial.shot for trial in trials])
    report = _report(names, shots, weights, errors, criterion)
    return {
        "shots": shots, "errors": errors, "weights": weights, "task_errors": task_errors,
        "report": report,
    }  # fmt: skip


def _task_errors(trial: HeldOutAnswers, answers: np.ndarray) -> tuple[float, float]:
    """Return mean and variance of the log root mean square errors of tasks with very many rows."""
    sizes = np.bincount(trial.task)
    square = np.bincount(trial.task, (trial.y - answers) ** 2) / sizes
    return denoised_moments(0.5 * np.log(square + 1e-300), sizes)


def _report(names, shots, weights, errors, criterion: Criterion) -> str:
    """Return in one line what was chosen, where and why."""
    parts = []
    for shot, mixed, lost in zip(shots, weights, errors, strict=True):
        mix = [
            name if weight > 0.995 else f"{weight:.2f} {name}"
            for weight, name in zip(mixed, names, strict=True)
            if weight > 0.005
        ]
        alone = int(np.argmin(lost))
        parts.append(
            f"{pluralize(int(shot), 'point')}: {' + '.join(mix)} "
            f"(best alone {names[alone]} {lost[alone]:.4g}; "
            f"own data {lost[0]:.4g}, pooled {lost[1]:.4g})"
        )
    return f"Mean {criterion.title} on held-out tasks. " + "; ".join(parts) + "."
