"""Learners that choose among learners, for each number of points that a task has."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from condmeta.estimators import storage
from condmeta.estimators.base_model import SharedBase, fit_base
from condmeta.estimators.baselines import IndependentRegressor, PooledRegressor
from condmeta.estimators.blend import BlendedModel, BlendedModels, blend
from condmeta.estimators.held_out import FEWEST_TASKS, hold_out, on_base
from condmeta.estimators.inputs import METADATA
from condmeta.estimators.parameters import check_parameters, jobs_of, one_of
from condmeta.estimators.ridge import ConditionalRidge
from condmeta.estimators.serving import atomic
from condmeta.meta.stacking import best_weights
from condmeta.tasks import TaskSet

READING = "scale", "fit_intercept", "task_column", "side_columns", "side_key", "n_jobs"
FEWEST_ROWS = 200  # for boosting to be worth a try
CRITERIA = {"absolute": np.abs, "squared": np.square}


class AutoRegressor(RegressorMixin, BaseEstimator):
    """Choose among learners and plain alternatives, for each number of points a task has.

    Tasks are held out in folds. Each candidate is fitted to the others, shown 0, 1, 2, 5, ...
    points of every held-out task, and judged by the rest of them: the task's own data alone, one
    pooled model, a learned prior without and with side information, and the last two on top of
    gradient boosting. For a task with n points predicts the best candidate at the largest such
    number up to n, or a convex combination, where that is better on held-out tasks.

    Parameters
    ----------
    feature_map : "auto", None, a map, a transformer, or a list of them
        Phi of the conditional candidates.
    base : "boosting", a scikit-learn regressor, or None
        The base of the candidates that have one (see `ConditionalRidge`).
    shots : sequence of int
        The numbers of points to judge at; those that leave no task a point to be judged by are
        left out.
    criterion : "absolute" or "squared"
        The error that counts.
    support : "random" or "first"
        Which points of a held-out task are shown: drawn, or the first in row order.
    random_state : int, Generator, RandomState or None
    scale, fit_intercept, missing_side, task_column, side_columns, side_key, n_jobs
        As for `ConditionalRidge`.

    Attributes
    ----------
    weights_ : (shots, candidates) array
        The convex combination for each number of points.
    candidates_ : list of str
    errors_ : (shots, candidates) array
        Mean errors on held-out tasks; nan if there were too few tasks to hold any out.
    shots_ : (shots,) array
    report_ : str
        What was chosen, where and why.
    n_tasks_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> task = np.repeat(np.arange(40), 6)
    >>> X = rng.normal(size=(240, 1))
    >>> y = X[:, 0] * (2 + 0.1 * rng.normal(size=40))[task] + 0.1 * rng.normal(size=240)
    >>> model = cm.AutoRegressor(base=None, shots=(0, 3)).fit(X, y, task=task)
    >>> model.candidates_
    ['own data', 'pooled', 'unconditional']
    >>> bool(abs(model.predict([[1.0]], task=["new"]) - 2) < 0.1)
    True
    """

    __metadata_request__fit = METADATA
    __metadata_request__predict = METADATA
    __metadata_request__score = METADATA

    def __init__(
        self,
        feature_map="auto",
        *,
        base="boosting",
        shots=(0, 1, 2, 5, 10, 20, 50),
        criterion="absolute",
        support="random",
        random_state=0,
        scale="standard",
        fit_intercept=True,
        missing_side="error",
        task_column=None,
        side_columns=None,
        side_key=None,
        n_jobs=None,
    ):
        self.feature_map = feature_map
        self.base = base
        self.shots = shots
        self.criterion = criterion
        self.support = support
        self.random_state = random_state
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.missing_side = missing_side
        self.task_column = task_column
        self.side_columns = side_columns
        self.side_key = side_key
        self.n_jobs = n_jobs

    @atomic
    def fit(self, X, y=None, *, task=None, side_info=None):
        """Choose on held-out tasks, then fit what was chosen to all.

        Parameters
        ----------
        X, y, task, side_info : as for `ConditionalSGDRegressor.fit`

        Returns
        -------
        self
        """
        check_parameters(self, criterion=one_of(CRITERIA), support=one_of(("random", "first")))
        reader = self._candidates(False)["unconditional"]
        reader._start()
        tasks, _ = reader._read(X, y, task, side_info, reset=True)
        self.n_features_in_ = reader.n_features_in_
        if hasattr(reader, "feature_names_in_"):
            self.feature_names_in_ = reader.feature_names_in_
        self.n_tasks_ = int((tasks.sizes > 0).sum())
        learners = self._candidates(tasks.side is not None and self.feature_map is not None)
        with_base = self._with_base(tasks)
        shared = None
        if with_base:
            with threadpool_limits(jobs_of(self)):
                shared = SharedBase(*fit_base(self.base, tasks))
            for name in [n for n in learners if "conditional" in n]:
                learners[f"{name} on base"] = clone(learners[name])
        for name, learner in learners.items():
            learner._shared_base = shared if on_base(name) else None
            learner.fit(X, y, task=task, side_info=side_info)
        self._choose(learners, tasks, shared)
        used = np.flatnonzero(self.weights_.any(axis=0))
        self._learners = {self.candidates_[c]: learners[self.candidates_[c]] for c in used}
        self._used = self.weights_[:, used]
        return self

    def _candidates(self, conditional: bool) -> dict:
        reading = {
            name: getattr(self, name)
            for name in (
                "scale",
                "fit_intercept",
                "task_column",
                "side_columns",
                "side_key",
                "n_jobs",
            )
        }
        learners = {
            "own data": IndependentRegressor(**reading),
            "pooled": PooledRegressor(**reading),
            "unconditional": ConditionalRidge(None, missing_side="mean", **reading),
        }
        if conditional:
            learners["conditional"] = ConditionalRidge(
                self.feature_map, missing_side=self.missing_side, **reading
            )
        return learners

    def _with_base(self, tasks: TaskSet) -> bool:
        return (
            self.base is not None and self.n_tasks_ >= FEWEST_TASKS and len(tasks.y) >= FEWEST_ROWS
        )

    def _choose(self, learners: dict, tasks: TaskSet, shared) -> None:
        self.candidates_ = list(learners)
        if self.n_tasks_ < FEWEST_TASKS:
            best = "conditional" if "conditional" in learners else "unconditional"
            self.shots_, self.errors_ = np.array([0]), np.full((1, len(learners)), np.nan)
            self.weights_ = np.array([[float(name == best) for name in learners]])
            self.report_ = f"{best}: {self.n_tasks_} tasks are too few to hold any out."
            return
        frozen = {name: _frozen(learner) for name, learner in learners.items()}
        trials = hold_out(frozen, tasks, shared, self.shots, self.support, self.random_state)
        loss = CRITERIA[self.criterion]
        self.shots_ = np.array([trial.shot for trial in trials])
        self.errors_ = np.array(
            [loss(trial.answers - trial.y[:, None]).mean(axis=0) for trial in trials]
        )
        self.weights_ = np.array(
            [best_weights(trial.answers, trial.y, trial.task, loss) for trial in trials]
        )
        self.report_ = _report(self)

    def predict(self, X, *, task=None, side_info=None) -> np.ndarray:
        """Predict rows, each task by what was chosen for its number of points."""
        check_is_fitted(self, "weights_")
        points = self.n_points(X, task=task, side_info=side_info)
        answers = [
            learner.predict(X, task=task, side_info=side_info)
            for learner in self._learners.values()
        ]
        return blend(np.column_stack(answers), self._used, self.shots_, points)

    def n_points(self, X, *, task=None, side_info=None) -> np.ndarray:
        """Return how many points stand behind the prediction of each row (N,)."""
        check_is_fitted(self, "weights_")
        first = next(iter(self._learners.values()))
        return first.n_points(X, task=task, side_info=side_info)

    def adapt(self, X=None, y=None, *, task=None, side_info=None):
        """Solve new tasks by what was chosen for their number of points.

        Returns
        -------
        BlendedModel, or BlendedModels if `task` is given or X is a TaskSet
        """
        check_is_fitted(self, "weights_")
        parts = [
            learner.adapt(X, y, task=task, side_info=side_info)
            for learner in self._learners.values()
        ]
        kind = BlendedModels if hasattr(parts[0], "ids") else BlendedModel
        return kind(parts, self._used, self.shots_)

    @atomic
    def update(self, X, y=None, *, task=None, side_info=None):
        """Add points to known tasks and enrol new ones; what was chosen stays.

        Returns
        -------
        self
        """
        check_is_fitted(self, "weights_")
        learners = {name: copy.copy(learner) for name, learner in self._learners.items()}
        for learner in learners.values():
            learner.update(X, y, task=task, side_info=side_info)
        self._learners = learners
        return self

    def save(self, path, *, tasks: bool = True, resume: bool = False) -> None:
        """Write the model to a file, as `ConditionalRidge.save` does."""
        check_is_fitted(self, "weights_")
        storage.save_auto(self, path, tasks, resume)

    def score(self, X, y=None, *, task=None, side_info=None, sample_weight=None) -> float:
        """Return R^2 of the predictions."""
        from sklearn.metrics import r2_score  # slow to import, and fit does not need it

        if y is None and isinstance(X, TaskSet):
            y = X.restore_order(X.y)
        predicted = self.predict(X, task=task, side_info=side_info)
        return r2_score(y, predicted, sample_weight=sample_weight)


def _frozen(learner):
    """Return a learner like a fitted one, with the settings that it chose."""
    if isinstance(learner, ConditionalRidge):
        return clone(learner).set_params(
            metric=learner.metric_, noise=learner.noise_, kappa=learner.kappa_, keep_tasks=False
        )
    return clone(learner).set_params(lam=learner.lam_, keep_tasks=False)


def _report(auto: AutoRegressor) -> str:
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
            f"{shot} points: {' + '.join(mix)} (best alone {auto.candidates_[alone]} "
            f"{errors[alone]:.4g}; own data {errors[0]:.4g}, pooled {errors[1]:.4g})"
        )
    return f"Mean {auto.criterion} error on held-out tasks. " + "; ".join(parts) + "."
