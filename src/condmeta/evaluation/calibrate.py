"""Add prediction intervals, calibrated on held-out tasks, to a regressor."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.meta.conformal import Calibration, Scores, gives_std, predict_scaled, task_scores
from condmeta.tasks import TaskSet
from condmeta.tasks.call_input import as_tasks
from condmeta.tasks.ids import factorize, positions
from condmeta.tasks.splits import check_shots, folds_of_tasks


class Calibrated:
    """A fitted learner, or the model of a task, with intervals; made by `calibrate`.

    It has all attributes of the learner or model (`predict`, `coef_`, `theta_for`, ...); `save`
    stores the calibration with the learner.

    Attributes
    ----------
    model : learner, or the result of its `adapt`
    n_tasks_calibrated_ : dict of int -> int
        Number of points -> number of tasks used to calibrate the intervals.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=2, n=6).sample(30, random_state=0)
    >>> learner = cm.calibrate(cm.ConditionalRidge(), tasks, shots=(0, 2))
    >>> shop = learner.adapt(tasks.X[:2], tasks.y[:2], side_info={"s": 0.5})
    >>> low, high = shop.predict_interval(tasks.X[2:4], coverage=0.8)
    >>> bool((low < high).all()), shop.n_, learner.n_tasks_calibrated_
    (True, 2, {0: 30, 2: 30})
    """

    def __init__(self, model: Any, calibration: Calibration, with_std: bool):
        self.model, self.calibration, self.with_std = model, calibration, with_std

    @property
    def n_tasks_calibrated_(self) -> dict[int, int]:
        return {m: scores.n_tasks for m, scores in self.calibration.scores.items()}

    def predict_interval(
        self, X: Any, *, task: Any = None, side_info: Any = None, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of intervals that contain a new label with probability `coverage`.

        The probability is over tasks and their points; it may be larger or smaller for one
        particular task. A task with n points has the interval of the largest calibrated number of
        points <= n, a new task that of 0.

        Parameters
        ----------
        X, task, side_info
            As for `predict` of the learner or model.
        coverage : float in (0, 1)
            c needs c / (1 - c) tasks: 9 for 0.9, 99 for 0.99.

        Returns
        -------
        lower, upper : (N,) arrays, in the order of the rows of X
        """
        given = {"task": task, "side_info": side_info}
        given = {name: value for name, value in given.items() if value is not None}
        predicted, scale = predict_scaled(self.model, self.with_std, X, **given)
        n = _n_points(self.model, X, len(predicted), given)
        reach = scale * self.calibration.widths(n, coverage)
        return predicted - reach, predicted + reach

    def adapt(
        self, X: Any = None, y: Any = None, *, task: Any = None, side_info: Any = None
    ) -> Any:
        """Solve new tasks, as `adapt` of the learner; the models have intervals too."""
        return self._with(self.model.adapt(X, y, task=task, side_info=side_info))

    def update(self, X: Any, y: Any = None, **options: Any) -> Self:
        """Add points, as `update` of the learner or model does; the calibration stays."""
        self.model.update(X, y, **options)
        return self

    def save(self, path: Any, *, tasks: bool = True, resume: bool = True) -> None:
        """Write learner and calibration to a model file, which `condmeta.load` opens.

        `tasks` and `resume` as for `save` of the learner. `ConditionalRidge` needs `resume=True`
        for the standard deviations of known tasks.
        """
        slim = self.slim(tasks, resume)
        persistence.write_model(path, slim, card=slim.card())

    def slim(self, tasks: bool = True, resume: bool = True) -> Self:
        """Return a copy that holds what `save` would write."""
        return self._with(self.model.slim(tasks, resume))

    def card(self) -> dict[str, Any]:
        """Return the card of the learner, and the numbers of tasks used to calibrate."""
        counts = {str(m): count for m, count in self.n_tasks_calibrated_.items()}
        return self.model.card() | {"tasks_calibrated": counts}

    def _with(self, model: Any) -> Self:
        return type(self)(model, self.calibration, self.with_std)

    def __getitem__(self, task: Any) -> Self:
        return self._with(self.model[task])

    def __getattr__(self, name: str):
        if name.startswith("__") or "model" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return f"Calibrated({self.model!r})"


def calibrate(
    learner: Any, X: Any, y: Any = None, *, task: Any = None, side_info: Any = None,
    side_key: Any = None, shots: Any = (0, 1, 2, 5, 10, 20), n_splits: int = 5,
    order: str = "random", random_state: Any = 0,
) -> Calibrated:  # fmt: skip
    """Fit a learner, and calibrate prediction intervals by its errors on held-out tasks.

    Parameters
    ----------
    learner : regressor with `fit(TaskSet)` and `adapt(TaskSet)`
        It is cloned, and fitted once without each fold of tasks and once to all tasks.
    X, y, task, side_info, side_key
        As for `fit`, or a `TaskSet` alone.
    shots : sequence of int
        Numbers of points to calibrate at; tasks with more points are used.
    n_splits : int
        Folds of tasks.
    order : "random" or "first"
        Which points of a held-out task the learner adapts to. Use "first" if new tasks come with
        their earliest points and later points may differ.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Calibrated
        The learner fitted to all tasks, with `predict_interval`.

    Notes
    -----
    The intervals are valid for new tasks and points drawn like the given ones, not for other times
    or places. `ConditionalRidge` scales each interval by its own standard deviation; the intervals
    of other learners have one width for each number of points.

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(d=2, n=6)
    >>> tasks, fresh = env.sample(80, random_state=0).split_tasks((40, 40), random_state=0)
    >>> learner = cm.calibrate(cm.ConditionalRidge(), tasks)
    >>> low, high = learner.predict_interval(fresh)
    >>> bool(((low <= fresh.y) & (fresh.y <= high)).mean() > 0.8)
    True
    """
    if not hasattr(learner, "adapt") or not hasattr(learner, "get_params"):
        raise DataError(
            "calibrate needs a learner with fit, adapt and get_params, such as ConditionalRidge(), "
            f"so that it can be copied and fitted again. Got a {type(learner).__name__}."
        )
    if is_classifier(learner):
        raise DataError("Intervals are for numbers: calibrate takes regressors, not classifiers.")
    tasks, shots = as_tasks(X, y, task, side_info, side_key), check_shots(shots)
    if tasks.y is None:
        raise DataError("calibrate needs the targets of the tasks: the TaskSet has none.")
    with_std, whole = gives_std(learner), clone(learner).fit(tasks)
    parts: dict[int, list] = {m: [] for m in shots}
    for train, held in folds_of_tasks(tasks, n_splits, shots, order, random_state):
        fitted = clone(learner).fit(train)
        for m, support, query in held:
            parts[m].append(task_scores(fitted.adapt(support), with_std, query))
    scores = {m: Scores.of(part) for m, part in parts.items() if part}
    if not scores:
        raise DataError(f"No task has more than {min(shots, default=0)} points to calibrate with.")
    return Calibrated(whole, Calibration(scores), with_std)


def _n_points(model: Any, X: Any, n_rows: int, given: dict[str, Any]) -> np.ndarray:
    """Return the number of points of each row's task (N,)."""
    if hasattr(model, "n_points"):  # a learner
        return model.n_points(X, **given)
    if np.ndim(model.n_) == 0:  # the model of one task
        return np.full(n_rows, model.n_)
    ids = np.repeat(X.ids, X.sizes) if isinstance(X, TaskSet) else given["task"]
    codes, known = factorize(ids)
    n = model.n_[positions(model.ids, known)][codes]
    return X.restore_order(n) if isinstance(X, TaskSet) else n


persistence.register(Scores, export=Scores._asdict, restore=lambda cls, parts: cls(**parts))
persistence.register(Calibration)
persistence.register(Calibrated)
