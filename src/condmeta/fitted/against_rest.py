"""More than two classes without order: one fitted value for each class, against the rest.

Part k says how probable class k is; the probabilities of a row are divided by their sum. Parts are
independent, so a task's models, its points and its files are those of K learners of two classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.fitted import Fitted, Rows
from condmeta.fitted.predictor import LinearPredictor
from condmeta.fitted.task_model import TaskModel, TaskModels
from condmeta.persistence.fields import InvalidFieldError, instance, labels, sequence
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskSet
from condmeta.text import pluralize
from condmeta.typing import Ids, Matrix, Values

REST = np.array([0, 1])  # the classes of a part: the rest, and its own
LEAST = 1e-300  # a probability of which the logarithm is finite


def coded_against_rest(codes, k: int) -> np.ndarray:
    """Return labels (N,) of class k as +1 and of the rest as -1, from the numbers of classes."""
    return np.where(codes == k, 1.0, -1.0)


def chances_of(positive: list[np.ndarray]) -> np.ndarray:
    """Return the probabilities of K classes (N, K), from those of each against the rest (N,)."""
    P = np.maximum(np.column_stack(positive), LEAST)
    return P / P.sum(axis=1, keepdims=True)


class StackedTau(NamedTuple):
    """The maps of K classes."""

    parts: tuple

    @property
    def M(self) -> np.ndarray:  # noqa: N802 - the paper's name
        """M (K, width, k)."""
        return np.stack([part.M for part in self.parts])

    @property
    def b(self) -> np.ndarray:
        """b (K, width)."""
        return np.stack([part.b for part in self.parts])

    @property
    def theta_mean(self) -> np.ndarray:
        """Tau at the mean training Phi (K, width)."""
        return np.stack([part.theta_mean for part in self.parts])


def _check_parts(stored: dict, sizes: dict[str, int]) -> None:
    """Raise if the parts of a file are not K values for the same tasks and columns."""
    classes, (first, *others) = stored["classes"], stored["parts"]
    if len(classes) < 3:
        raise InvalidFieldError("classes", "must be three or more")
    for k, part in enumerate(stored["parts"]):
        own = part.predictor.classes
        if own is None or own.tolist() != REST.tolist():
            raise InvalidFieldError(f"parts[{k}].predictor.classes", "must be 0 and 1")

    def known(part) -> Any:
        return None if part.tasks is None else (part.tasks.ids.tolist(), part.tasks.sizes.tolist())

    for k, part in enumerate(others, 1):
        if part.columns != first.columns or known(part) != known(first):
            raise InvalidFieldError(f"parts[{k}]", "must have the tasks and columns of the first")


@register_tuple(
    fields={"classes": labels("c"), "parts": sequence(instance("Fitted", n="n"), "c")},
    rule=_check_parts,
)
class AgainstRest(NamedTuple):
    """What a fit with K > 2 classes leaves: a `Fitted` for each class, and the surface of one.

    Where it answers for all classes, arrays have an axis of classes before that of coefficients.
    """

    classes: np.ndarray
    parts: tuple[Fitted, ...]

    @property
    def first(self) -> Fitted:
        """The value of the first class; tasks, columns and side information are the same in all."""
        return self.parts[0]

    @property
    def predictor(self) -> LinearPredictor:
        """The predictor of the first class, with all classes."""
        return self.first.predictor._replace(classes=self.classes)

    @property
    def tau(self) -> StackedTau:
        """The maps of the classes."""
        return StackedTau(tuple(part.tau for part in self.parts))

    @property
    def info(self) -> dict[str, Any]:
        """The learner's attributes: a list with one entry for each class, or a stacked array."""
        each = [part.info for part in self.parts]
        public = [name for name in each[0] if name.endswith("_")]
        found = {name: [info[name] for info in each] for name in public}
        for name, values in found.items():
            if isinstance(values[0], np.ndarray):
                found[name] = np.stack(values)
        return self.first.info | found

    reader = property(lambda self: self.first.reader)
    columns = property(lambda self: self.first.columns)
    scales = property(lambda self: self.first.scales)
    inner = property(lambda self: self.first.inner)
    tasks = property(lambda self: self.first.tasks)
    n_tasks = property(lambda self: self.first.n_tasks)
    target = groups = seen = None

    @property
    def state(self) -> Any:
        """What further points need, of the first class."""
        return self.first.state

    def by_class(
        self, tasks: TaskSet, points: TaskSet | None
    ) -> Iterator[tuple[Fitted, TaskSet, TaskSet | None]]:
        """Yield each part, with labelled tasks and conditioning points as it reads them."""
        for k, part in enumerate(self.parts):
            own = points
            if points is not None and points.y is not None:
                own = points.with_target(1.0 * (points.y == self.classes[k]))
            yield part, tasks.with_target(coded_against_rest(tasks.y, k)), own

    def _rows_of_class(self, k: int, rows: Rows) -> Rows:
        points = rows.points
        if points is None or points.y is None:
            return rows
        return rows._replace(points=points.with_target(1.0 * (points.y == self.classes[k])))

    def _each(self, ask: Callable[[Fitted, Rows], np.ndarray], rows: Rows) -> list[np.ndarray]:
        return [ask(part, self._rows_of_class(k, rows)) for k, part in enumerate(self.parts)]

    def theta(self, ids, table, points=None, n_jobs: int = 1) -> np.ndarray:
        """Return where tasks start (T, K, width)."""
        return np.stack([part.theta(ids, table, points, n_jobs) for part in self.parts], axis=1)

    def adapt(self, tasks: TaskSet, points: TaskSet | None, n_jobs=1, keep_state=False):
        """Return the models of tasks, solved from their points."""
        parts = [
            part.adapt(*given, n_jobs, keep_state) for part, *given in self.by_class(tasks, points)
        ]
        return ClassModels(parts, self.classes)

    def update(self, tasks: TaskSet, points: TaskSet | None, n_jobs: int = 1) -> Self:
        """Return a value in which known tasks have further points, and new tasks are added."""
        parts = [part.update(*given, n_jobs) for part, *given in self.by_class(tasks, points)]
        return self._replace(parts=tuple(parts))

    def scores(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return log probabilities (N, K), or scores where there are none."""
        if self.first.predictor.probabilistic:
            return np.log(self.predict_proba(rows, n_jobs))
        return np.column_stack(self._each(lambda part, rows: part.scores(rows, n_jobs), rows))

    def predict(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return the most probable class (N,)."""
        return self.classes[np.argmax(self.scores(rows, n_jobs), axis=1)]

    def predict_proba(self, rows: Rows, n_jobs: int = 1) -> np.ndarray:
        """Return the probabilities of the classes (N, K)."""
        ask = lambda part, rows: part.predict_proba(rows, n_jobs)[:, 1]  # noqa: E731
        return chances_of(self._each(ask, rows))

    def n_points(self, rows: Rows) -> np.ndarray:
        """Return how many points of its task the model knows, for each row (N,)."""
        return self.first.n_points(rows)

    def which_task(self) -> DataError:
        """Return the error of a call that does not name the task of its rows."""
        return self.first.which_task()

    def slim(self, tasks: bool, resume: bool) -> Self:
        """Return the value without task models, or without what `update` needs."""
        return self._replace(parts=tuple(part.slim(tasks, resume) for part in self.parts))


class ClassModel:
    """The model of one task with more than two classes, what `adapt` returns.

    Attributes
    ----------
    classes_ : (K,) array
    coef_ : (K, d) array
    intercept_ : (K,) array
    theta_ : (K, d) array, or (K, d+1) with the intercept last
    n_ : int, or float if points have weights

    Examples
    --------
    >>> import condmeta as cm
    >>> X, y = [[-1.0], [0.0], [1.0]], ["a", "b", "c"]
    >>> learner = cm.PooledClassifier().fit(X, y)
    >>> learner.adapt(X, y).predict([[-2.0], [2.0]]).tolist()
    ['a', 'c']
    """

    def __init__(self, parts: list[TaskModel], classes: np.ndarray):
        self._parts, self.classes_ = parts, classes

    def _stacked(self, name: str) -> np.ndarray:
        return np.stack([getattr(part, name) for part in self._parts])

    @property
    def coef_(self) -> np.ndarray:
        return self._stacked("coef_")

    @property
    def intercept_(self) -> np.ndarray:
        return self._stacked("intercept_")

    @property
    def theta_(self) -> np.ndarray:
        return self._stacked("theta_")

    @property
    def n_(self) -> int:
        return self._parts[0].n_

    def predict(self, X: Matrix) -> np.ndarray:
        """Return the most probable class of rows X (N, d)."""
        return self.classes_[np.argmax(self.decision_function(X), axis=1)]

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Return the probabilities of the classes (N, K); logistic loss only."""
        return chances_of([part.predict_proba(X)[:, 1] for part in self._parts])

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Return log probabilities (N, K), or scores where there are none."""
        if self._parts[0]._predictor.probabilistic:
            return np.log(self.predict_proba(X))
        return np.column_stack([part.decision_function(X) for part in self._parts])

    def update(self, X: Matrix, y: Values, sample_weight: Values = None) -> ClassModel:
        """Add points; the result equals one `adapt` on all of them."""
        own = require_classes(y, self.classes_)
        for label, part in zip(self.classes_, self._parts, strict=True):
            part.update(X, (own == label).astype(int), sample_weight)
        return self

    def __repr__(self) -> str:
        return f"ClassModel(n={self.n_}, classes={len(self.classes_)})"


class ClassModels(Mapping):
    """Models of many tasks with more than two classes, a mapping from task id to `ClassModel`.

    Attributes
    ----------
    ids : (T,) array
    classes_ : (K,) array
    coef_ : (T, K, d) array
    intercept_ : (T, K) array
    theta_ : (T, K, d) array, or (T, K, d+1) with the intercept last
    n_ : (T,) array

    Examples
    --------
    >>> import condmeta as cm
    >>> X, y = [[-1.0], [0.0], [1.0]], ["a", "b", "c"]
    >>> models = cm.PooledClassifier().fit(X, y).adapt(X, y, task=[1, 1, 2])
    >>> list(models), models.coef_.shape
    ([1, 2], (2, 3, 1))
    """

    def __init__(self, parts: list[TaskModels], classes: np.ndarray):
        self._parts, self.classes_ = parts, classes
        self.ids, self.n_ = parts[0].ids, parts[0].n_

    def _stacked(self, name: str) -> np.ndarray:
        return np.stack([getattr(part, name) for part in self._parts], axis=1)

    coef_ = ClassModel.coef_
    intercept_ = ClassModel.intercept_
    theta_ = ClassModel.theta_

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids.tolist())

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {task: t for t, task in enumerate(self.ids.tolist())}

    def __getitem__(self, task) -> ClassModel:
        return self.at(self._index[task])

    def at(self, t: int) -> ClassModel:
        """Return the model of the task at position t."""
        return ClassModel([part.at(t) for part in self._parts], self.classes_)

    def predict(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return the most probable class of rows X (N, d), each by the model of its task."""
        return self.classes_[np.argmax(self.decision_function(X, task=task), axis=1)]

    def predict_proba(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return the probabilities of the classes (N, K); logistic loss only."""
        return chances_of([part.predict_proba(X, task=task)[:, 1] for part in self._parts])

    def decision_function(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return log probabilities (N, K), or scores where there are none."""
        if self._parts[0]._predictor.probabilistic:
            return np.log(self.predict_proba(X, task=task))
        return np.column_stack([part.decision_function(X, task=task) for part in self._parts])

    def __repr__(self) -> str:
        tasks = pluralize(len(self), "task")
        return f"ClassModels({tasks}, classes={len(self.classes_)})"


def with_classes(fitted: Fitted | AgainstRest, names: Any) -> Fitted | AgainstRest:
    """Return the value with other names of its classes, None for those that it has."""
    if names is None:
        return fitted
    if isinstance(fitted, AgainstRest):
        return fitted._replace(classes=np.array(names))
    return fitted._replace(predictor=fitted.predictor._replace(classes=np.array(names)))


def require_classes(y: Any, classes: np.ndarray) -> np.ndarray:
    """Return labels as an array, or raise if one is no class."""
    y = np.asarray(y)
    unknown = [label for label in np.unique(y).tolist() if label not in classes.tolist()]
    if unknown:
        raise DataError(f"y holds labels {unknown} that are not classes: {classes.tolist()}.")
    return y


def one_class_only(fitted: Any, what: str) -> None:
    """Raise if a question is about the coefficients of one map, and there is one for each class."""
    if isinstance(fitted, AgainstRest):
        raise DataError(
            f"{what} is for two classes: with {len(fitted.classes)}, each class has a map of its "
            "own. Fit a model of one class against the rest, y == 'name'."
        )
