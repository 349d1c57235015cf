"""Choose among learners, for each number of points that a task has: shared by the Auto learners."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from condmeta import persistence
from condmeta.learners.auto_candidates import (
    Kinds,
    candidates,
    candidates_on_base,
    error_of,
    transformed_candidate,
)
from condmeta.learners.auto_choice import Chosen, choose, default_choice, of_choice
from condmeta.learners.blend import BlendedModel, BlendedModels, answers_of
from condmeta.learners.call_columns import readable, readable_tasks
from condmeta.learners.checks import warn_constant, warn_far_values
from condmeta.learners.copies import with_fitted
from condmeta.learners.held_out import (
    FEWEST_TASKS,
    HeldOutAnswers,
    frozen,
    hold_out,
    no_progress,
    on_base,
)
from condmeta.learners.inputs import METADATA, Inputs, read_training, warn_of_one_task
from condmeta.learners.learn import fit_inputs
from condmeta.learners.parameters import check_learner, check_parameters
from condmeta.learners.shared_base import BOOSTING, FEWEST_ROWS, shared_model_of
from condmeta.learners.writing import writing
from condmeta.meta.criteria import Criterion
from condmeta.tasks import TaskSet
from condmeta.tasks.splits import make_generator
from condmeta.text import pluralize
from condmeta.typing import (
    Base,
    FeatureMapLike,
    Ids,
    Matrix,
    MissingSide,
    Names,
    Order,
    PathLike,
    RandomState,
    Scale,
    Shots,
    SideInfo,
    Values,
)

ENOUGH_TASKS = 100  # held-out tasks to choose by; fewer are held out in several rounds
MOST_ROUNDS = 5


class Comparable(NamedTuple):
    """A fit of an Auto learner: what it chose, all candidates, and their held-out predictions."""

    chosen: Chosen
    candidates: dict[str, Any]
    answers: list[HeldOutAnswers]


def _n_rounds(n_tasks: int) -> int:
    """Return how often all tasks are held out: in other folds, and from other points each time."""
    return min(max(ENOUGH_TASKS // n_tasks, 1), MOST_ROUNDS)


@dataclass(eq=False, repr=False)
class Auto(BaseEstimator):
    """A learner that uses others, each where it is the best."""

    feature_map: FeatureMapLike = "auto"
    _: KW_ONLY
    base: Base = "boosting"
    shots: Shots = (0, 1, 2, 5, 10, 20, 50)
    order: Order = "random"
    random_state: RandomState = 0
    scale: Scale = "standard"
    fit_intercept: bool = True
    missing_side: MissingSide = "error"
    task_column: Names = None
    side_columns: Names = None
    side_key: Names = None
    n_jobs: int | None = None

    __metadata_request__fit = METADATA
    __metadata_request__predict = METADATA
    __metadata_request__score = METADATA

    _model = None  # the `Chosen` that a fit sets, and nothing else
    _rules = {}
    _weighs = True

    _kinds: ClassVar[Kinds]  # of the learners to choose among
    _fewest: ClassVar[int] = FEWEST_TASKS  # to hold some out

    candidates_ = of_choice("The names of the candidates.")
    shots_ = of_choice("The numbers of points that candidates were compared at.")
    errors_ = of_choice("The error of each candidate at each number of points (shots, candidates).")
    weights_ = of_choice("The weight of each candidate at each of them (shots, candidates).")
    lines_ = of_choice("Shift and slope of the line through the combination (shots, 2).")
    task_errors_ = of_choice("The errors of held-out tasks, or None if none were held out.")
    report_ = of_choice("What was chosen, in words.")
    learners_ = of_choice("The learners that have a weight, by name.")
    n_tasks_ = of_choice("Tasks with points that were learned from.")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _criterion(self) -> Criterion:
        """Return the loss that counts."""

    @property
    def criterion_(self) -> Criterion:
        """The loss that counted."""
        return self._criterion()

    def _by_criterion(self, learners: dict[str, Any], given: Inputs) -> dict[str, Any]:
        """Return the candidates that the criterion can judge."""
        return learners

    def _too_few(self, given: Inputs) -> str:
        """Return why no tasks can be held out; nothing if they can."""
        sizes, least = given.tasks.sizes, min(self.shots)
        count, longer = int((sizes > 0).sum()), int((sizes > least).sum())
        if count < self._fewest:
            return f"{pluralize(count, 'task is', 'tasks are')} too few to hold any out"
        if longer < min(FEWEST_TASKS, count):
            have, points = pluralize(longer, "task has", "tasks have"), pluralize(least, "point")
            return f"{have} more than {points}, too few to hold any out"
        return ""

    def fit(
        self,
        X: Matrix,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        sample_weight: Values = None,
    ) -> Self:
        """Choose on held-out tasks, then fit what was chosen to all.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The points of all tasks, with rows in any order. A TaskSet is passed alone, because it
            holds y and the task ids.
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
        # All candidates read the input as this one does.
        reader = candidates(self, self._kinds, conditional=False)["unconditional"]
        check_learner(reader)
        X = readable_tasks(self, X) if isinstance(X, TaskSet) else readable(self, X)
        given = read_training(reader, X, y, task, side_info, sample_weight)
        warn_of_one_task(reader, X, task)
        with writing(self):
            self._model = self.compare(given).chosen
        warn_constant(self.constant_features_, len(given.tasks.X))
        warn_far_values(self, given.tasks)
        return self

    def with_choice(self, chosen: Chosen) -> Auto:
        """Return a copy that is fitted, with what `compare` chose."""
        return with_fitted(self, chosen)

    def compare(self, given: Inputs, progress: Callable[[str], object] = no_progress) -> Comparable:
        """Fit all candidates and choose among them; the learner itself is not changed.

        `progress` is called with the next step.
        """
        check_parameters(self)
        tasks, n_tasks = given.tasks, int((given.tasks.sizes > 0).sum())
        conditional = tasks.side is not None and self.feature_map is not None
        learners = candidates(self, self._kinds, conditional)
        learners |= transformed_candidate(self, learners, given)
        shared, why = None, self._too_few(given)
        two = given.classes is None or len(given.classes) == 2  # a base has log odds of one class
        plain = self.base is not None and two and not self._criterion().density
        if plain and not why and len(tasks.y) >= FEWEST_ROWS:
            progress("boosted trees" if self.base == BOOSTING else "the base of all tasks")
            error = error_of(self) if hasattr(self, "criterion") else "squared"
            shared = shared_model_of(self, self.base, tasks, error)
            learners |= candidates_on_base(self, learners)
        learners = self._by_criterion(learners, given)
        for name, learner in learners.items():
            progress(f"fitting: {name}")
            learners[name] = fit_inputs(learner, given, shared if on_base(name) else None)
        names, answers, judge = list(learners), [], self._criterion()
        if why:
            choice = default_choice(names, why)
        else:
            settled = {name: frozen(learner) for name, learner in learners.items()}
            how = self.shots, self.order, make_generator(self.random_state)
            rounds = [
                hold_out(settled, tasks, shared, *how, progress, judge.density)
                for _ in range(_n_rounds(n_tasks))
            ]
            answers, numbers = rounds[0], given.classes is None and not judge.density
            choice = choose(names, rounds, judge, numbers)
        used = np.flatnonzero(choice["weights"].any(axis=0))
        chosen = Chosen(
            names, **choice, learners={names[c]: learners[names[c]] for c in used},
            columns=given.columns, n_tasks=n_tasks, classes=given.classes, least=judge.least,
        )  # fmt: skip
        return Comparable(chosen, learners, answers)

    # What a fit leaves.

    @property
    def chosen_(self) -> Chosen:
        """The fitted value."""
        check_is_fitted(self)
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

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

    def _blended(self, X: Matrix, **whose: Any) -> np.ndarray:
        """Return the combination of the learners' predictions (N,)."""
        chosen = self.chosen_
        points = next(iter(chosen.learners.values())).n_points(X, **whose)
        answers = answers_of(chosen.learners.values(), chosen.classes, X, **whose)
        return chosen.blends.of(answers, points)

    def n_points(self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None) -> np.ndarray:
        """Return how many points of its task the model knows, for each row (N,).

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
            The rows to predict.
        task : (N,) ids, optional
            The task of each row, or the name of a column of X. If None, all rows belong to one
            task: with `side_info`, a new task; without, the only task of the fit.
        side_info : row or table, optional
            Side information of new tasks: a row for one task, a table keyed by task id for several.
            Known tasks do not need it.
        """
        first = next(iter(self.learners_.values()))
        return first.n_points(X, task=task, side_info=side_info)

    def adapt(
        self,
        X: Matrix | None = None,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        sample_weight: Values = None,
    ) -> BlendedModel | BlendedModels:
        """Return models of new tasks by the candidate that was chosen for their number of points.

        Parameters
        ----------
        X : (n, d) array, DataFrame or TaskSet, optional
            The points. Without any, the model has the starting coefficients tau(s).
        y : (n,) array, optional
            Their targets.
        task : (n,) ids, optional
            The task of each point. None means that all points belong to one task.
        side_info : row or table, optional
            For one task its row (a dict of columns, a Series, a sequence); with `task` a table
            keyed by task id, as in `fit`.
        sample_weight : (N,) array, optional
            How often each row counts: 2 counts as two equal rows, 0 as no row.

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
        X: Matrix,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
        sample_weight: Values = None,
    ) -> Self:
        """Add points to known tasks and enrol new ones, in place; what was chosen stays.

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
            How often each row counts: 2 counts as two equal rows, 0 as no row.

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

    def save(self, path: PathLike, *, tasks: bool = True, resume: bool = True) -> None:
        """Write the model to a file, as `ConditionalRidge.save` does."""
        slim = self.slim(tasks, resume)
        persistence.write_model(path, slim, card=slim.card())

    def slim(self, tasks: bool = True, resume: bool = True) -> Self:
        """Return a copy that holds what `save` would write."""
        parts = self.learners_.items()
        learners = {name: learner.slim(tasks, resume) for name, learner in parts}
        return with_fitted(self, self.chosen_._replace(learners=learners))

    def card(self) -> dict[str, Any]:
        """Return a description of the model: engine, sizes, columns, settings."""
        about = next(iter(self.learners_.values())).card()
        about["settings"] = {name: repr(v) for name, v in self.get_params(deep=False).items()}
        return about | {"report": self.report_}
