"""More than two classes without order: one fitted value for each class, against the rest.

Part k has the probability of class k; the probabilities of a row are divided by their sum. Parts
are independent: the models of a task are those of K learners of two classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.class_models import ClassModels, chances_of
from condmeta.fitted.fitted import Fitted, Rows
from condmeta.fitted.predictor import LinearPredictor
from condmeta.persistence.fields import InvalidFieldError, instance, labels, sequence
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskSet

REST = np.array([0, 1])  # the classes of a part: the rest, and its own


def coded_against_rest(codes, k: int) -> np.ndarray:
    """Return labels (N,) of class k as +1 and of the rest as -1, from the numbers of classes."""
    return np.where(codes == k, 1.0, -1.0)


def points_against_rest(points: TaskSet | None, label: Any) -> TaskSet | None:
    """Return conditioning points with 1 for the labels of a class and 0 for the rest."""
    if points is None or points.y is None:
        return points
    return points.with_target(1.0 * (points.y == label))


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
    """What a fit with K > 2 classes leaves: a `Fitted` for each class.

    It has the attributes and methods of a `Fitted`. Arrays that hold all classes have an axis of
    classes before that of coefficients.
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
    state = property(lambda self: self.first.state)
    target = groups = seen = None

    def by_class(
        self, tasks: TaskSet, points: TaskSet | None
    ) -> Iterator[tuple[Fitted, TaskSet, TaskSet | None]]:
        """Yield each part, with labelled tasks and conditioning points as it reads them."""
        for k, part in enumerate(self.parts):
            own = tasks.with_target(coded_against_rest(tasks.y, k))
            yield part, own, points_against_rest(points, self.classes[k])

    def _each(self, ask: Callable[[Fitted, Rows], np.ndarray], rows: Rows) -> list[np.ndarray]:
        """Return what each part answers; its conditioning points are coded for its class."""
        return [
            ask(part, rows._replace(points=points_against_rest(rows.points, label)))
            for part, label in zip(self.parts, self.classes, strict=True)
        ]

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


def with_classes(fitted: Fitted | AgainstRest, names: Any) -> Fitted | AgainstRest:
    """Return the value with other names of its classes, None for those that it has."""
    if names is None:
        return fitted
    if isinstance(fitted, AgainstRest):
        return fitted._replace(classes=np.array(names))
    return fitted._replace(predictor=fitted.predictor._replace(classes=np.array(names)))


def one_class_only(fitted: Any, what: str) -> None:
    """Raise if a question is about the coefficients of one map, and there is one for each class."""
    if isinstance(fitted, AgainstRest):
        raise DataError(
            f"{what} works with up to two classes, and this model has {len(fitted.classes)}. Fit a "
            "model of one class against the rest, with y == 'name'."
        )
