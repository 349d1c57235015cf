"""Choose among learners, for each number of points that a task has: what all such learners do."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from condmeta.estimators import storage
from condmeta.estimators.base_model import SharedBase
from condmeta.estimators.blend import BlendedModel, BlendedModels, answers_of, blend
from condmeta.estimators.held_out import FEWEST_TASKS, Trial, frozen, hold_out, on_base, silent
from condmeta.estimators.inputs import METADATA
from condmeta.estimators.on_base import base_for
from condmeta.estimators.parameters import check_parameters, one_of
from condmeta.estimators.serving import atomic
from condmeta.inner.log_errors import of_many_rows
from condmeta.meta.stacking import Criterion, best_weights
from condmeta.tasks import TaskSet
from condmeta.tasks.held_out import ORDERS
from condmeta.words import count

FEWEST_ROWS = 200  # for boosting to be worth a try
READING = "scale", "fit_intercept", "task_column", "side_columns", "side_key", "n_jobs"


class Auto(BaseEstimator):
    """A learner that uses others, each where it is the best."""

    __metadata_request__fit = METADATA
    __metadata_request__predict = METADATA
    __metadata_request__score = METADATA

    _special_rules = {"support": one_of(ORDERS)}

    @abstractmethod
    def _candidates(self, conditional: bool) -> dict[str, Any]:
        """Return the learners to choose among; those without side information alone, if so."""

    @abstractmethod
    def _criterion(self) -> Criterion:
        """Return what counts."""

    def _share_base(self, learners: dict[str, Any], tasks: TaskSet) -> SharedBase | None:
        """Add candidates on a base, and return the base; none if there are few tasks or rows."""
        if self.base is None or self._too_few(tasks) or len(tasks.y) < FEWEST_ROWS:
            return None
        shared = base_for(self, tasks)
        for name in [name for name in learners if "conditional" in name]:
            learners[f"{name} on base"] = clone(learners[name])
        return shared

    def _too_few(self, tasks: TaskSet) -> str:
        """Say why no tasks can be held out; nothing if they can."""
        few = self.n_tasks_ < FEWEST_TASKS
        return f"{self.n_tasks_} tasks are too few to hold any out" if few else ""

    @atomic
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
        self._learn(X, y, task=task, side_info=side_info, sample_weight=sample_weight)
        return self

    def _learn(self, X, y, *, also=None, tell=silent, **whose) -> tuple[dict, list[Trial]]:
        """Fit; return the fitted candidates, and what they said of held-out tasks.

        Learners of `also` are held out beside them, and not chosen. `tell` is called with what is
        done next.
        """
        check_parameters(self, **self._special_rules)
        tasks = self._read(X, y, **whose)
        learners = self._candidates(tasks.side is not None and self.feature_map is not None)
        shared = self._share_base(learners, tasks)
        for name, learner in learners.items():
            tell(f"fitting: {name}")
            learner._shared_base = shared if on_base(name) else None
            learner.fit(X, y, **whose)
        self.candidates_ = list(learners)
        trials = []
        why = self._too_few(tasks)
        if why:
            self._take_default(why)
        else:
            settled = {name: frozen(learner) for name, learner in learners.items()}
            settled |= {} if shared is None else (also or {})
            how = self.shots, self.support, self.random_state
            trials = hold_out(settled, tasks, shared, *how, tell)
            self._choose(trials)
        used = np.flatnonzero(self.weights_.any(axis=0))
        self._learners = {self.candidates_[c]: learners[self.candidates_[c]] for c in used}
        self._used = self.weights_[:, used]
        return learners, trials

    def _read(self, X, y, task, side_info, sample_weight=None) -> TaskSet:
        """Return the tasks, their labels as the candidates see them."""
        reader = self._candidates(False)["unconditional"]
        reader._start()
        tasks, _ = reader._read(X, y, task, side_info, sample_weight, reset=True)
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(reader, name):
                setattr(self, name, getattr(reader, name))
        self.n_tasks_ = int((tasks.sizes > 0).sum())
        return tasks

    def _take_default(self, why: str) -> None:
        C = len(self.candidates_)
        best = "conditional" if "conditional" in self.candidates_ else "unconditional"
        self.shots_, self.errors_ = np.array([0]), np.full((1, C), np.nan)
        self.task_errors_ = None
        self.weights_ = np.eye(C)[[self.candidates_.index(best)]]
        self.report_ = f"{best}: {why}."

    def _choose(self, trials: list[Trial]) -> None:
        criterion, C = self._criterion(), len(self.candidates_)
        said = [(trial.answers[:, :C], trial) for trial in trials]
        self.shots_ = np.array([trial.shot for trial in trials])
        self.errors_ = np.array([criterion.mean(p, trial.y, trial.weight) for p, trial in said])
        self.weights_ = np.array(
            [best_weights(p, trial.y, trial.task, criterion, trial.weight) for p, trial in said]
        )
        self.task_errors_ = None
        if not hasattr(self, "classes_"):
            blended = ((trial, p @ w) for (p, trial), w in zip(said, self.weights_, strict=True))
            self.task_errors_ = np.array([_of_tasks(*one) for one in blended])
        self.report_ = _report(self, criterion)

    def _blended(self, X, **whose) -> np.ndarray:
        """Return the combination of what the learners say (N,)."""
        points = self.n_points(X, **whose)
        answers = answers_of(self._learners.values(), getattr(self, "classes_", None), X, **whose)
        return blend(answers, self._used, self.shots_, points)

    def n_points(self, X, *, task=None, side_info=None) -> np.ndarray:
        """Return how many points stand behind the prediction of each row (N,)."""
        check_is_fitted(self, "weights_")
        first = next(iter(self._learners.values()))
        return first.n_points(X, task=task, side_info=side_info)

    def adapt(self, X=None, y=None, *, task=None, side_info=None, sample_weight=None):
        """Solve new tasks by what was chosen for their number of points; weights as in `fit`.

        Returns
        -------
        BlendedModel, or BlendedModels if `task` is given or X is a TaskSet
        """
        check_is_fitted(self, "weights_")
        parts = [
            learner.adapt(X, y, task=task, side_info=side_info, sample_weight=sample_weight)
            for learner in self._learners.values()
        ]
        kind = BlendedModels if hasattr(parts[0], "ids") else BlendedModel
        return kind(parts, self._used, self.shots_, getattr(self, "classes_", None))

    @atomic
    def update(self, X, y=None, *, task=None, side_info=None, sample_weight=None):
        """Add points to known tasks and enrol new ones; what was chosen stays. Weights as in `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "weights_")
        learners = {name: copy.copy(learner) for name, learner in self._learners.items()}
        for learner in learners.values():
            learner.update(X, y, task=task, side_info=side_info, sample_weight=sample_weight)
        self._learners = learners
        return self

    def save(self, path, *, tasks: bool = True, resume: bool = False) -> None:
        """Write the model to a file, as `ConditionalRidge.save` does."""
        storage.save_learner(self, path, tasks=tasks, resume=resume)

    def slim(self, tasks: bool = True, resume: bool = False):
        """Return a copy that holds what `save` would write."""
        check_is_fitted(self, "weights_")
        return storage.slimmed_auto(self, tasks, resume)

    def card(self) -> dict:
        """Return what a reader of the model wants to know: engine, sizes, columns, settings."""
        check_is_fitted(self, "weights_")
        return storage.card_of_auto(self)


def _of_tasks(trial: Trial, answers: np.ndarray) -> tuple[float, float]:
    """Return mean and variance of the log root mean square errors of tasks with very many rows."""
    sizes = np.bincount(trial.task)
    square = np.bincount(trial.task, (trial.y - answers) ** 2) / sizes
    return of_many_rows(0.5 * np.log(square + 1e-300), sizes)


def _report(auto: Auto, criterion: Criterion) -> str:
    """Say in one line what was chosen, where and why."""
    parts = []
    for shot, weights, errors in zip(auto.shots_, auto.weights_, auto.errors_, strict=True):
        mix = [
            name if weight > 0.995 else f"{weight:.2f} {name}"
            for weight, name in zip(weights, auto.candidates_, strict=True)
            if weight > 0.005
        ]
        alone = int(np.argmin(errors))
        parts.append(
            f"{count(int(shot), 'point')}: {' + '.join(mix)} (best alone {auto.candidates_[alone]} "
            f"{errors[alone]:.4g}; own data {errors[0]:.4g}, pooled {errors[1]:.4g})"
        )
    return f"Mean {criterion.title} on held-out tasks. " + "; ".join(parts) + "."
