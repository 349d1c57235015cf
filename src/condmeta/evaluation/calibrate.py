"""A learner whose predictions come with intervals that hold for new tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.evaluation.conformal import (
    Calibration,
    Scores,
    gives_std,
    predict_scaled,
    task_scores,
)
from condmeta.tasks import TaskSet
from condmeta.tasks.held_out import as_tasks, check_shots, folds_of_tasks
from condmeta.tasks.ids import factorize, positions

SHOTS = (0, 1, 2, 5, 10, 20)


class Calibrated:
    """A fitted learner, or the model of a task, with intervals; made by `calibrate`.

    All that the learner or model has (`predict`, `coef_`, `theta_for`, ...) can be asked of this
    too; `save` stores the calibration with the learner.

    Attributes
    ----------
    model : learner, or what its `adapt` returns
        What predicts.
    n_tasks_calibrated_ : dict of int -> int
        For each number of points how many tasks the intervals rest on.

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
        self.model, self._calibration, self._with_std = model, calibration, with_std

    @property
    def n_tasks_calibrated_(self) -> dict[int, int]:
        return {m: scores.n_tasks for m, scores in self._calibration.scores.items()}

    def predict_interval(
        self, X: Any, *, task: Any = None, side_info: Any = None, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of intervals that hold a new label of a task with probability `coverage`.

        Over tasks and their points: for one particular task it may be more or less. A task with n
        points has the interval of the next smaller calibrated number, a new one that of 0.

        Parameters
        ----------
        X, task, side_info
            As for `predict` of the learner or model.
        coverage : float in (0, 1)
            c takes c / (1 - c) tasks: 9 for 0.9, 99 for 0.99.

        Returns
        -------
        lower, upper : (N,) arrays, in the order of the rows of X
        """
        whose = {"task": task, "side_info": side_info}
        whose = {name: value for name, value in whose.items() if value is not None}
        predicted, scale = predict_scaled(self.model, self._with_std, X, **whose)
        n = _points_behind(self.model, X, len(predicted), whose)
        reach = scale * self._calibration.widths(n, coverage)
        return predicted - reach, predicted + reach

    def adapt(self, X: Any = None, y: Any = None, *, task: Any = None, side_info: Any = None):
        """Solve new tasks, as `adapt` of the learner; the models have intervals too."""
        models = self.model.adapt(X, y, task=task, side_info=side_info)
        return Calibrated(models, self._calibration, self._with_std)

    def update(self, X: Any, y: Any = None, **whose: Any) -> Calibrated:
        """Add points, as `update` of the learner or model does; the calibration stays."""
        self.model.update(X, y, **whose)
        return self

    def save(self, path: Any, *, tasks: bool = True, resume: bool = True) -> None:
        """Write learner and calibration to a model file, which `condmeta.load` opens.

        `tasks` and `resume` as for `save` of the learner. `ConditionalRidge` needs `resume=True`
        to know how sure it is of known tasks.
        """
        slim = self.slim(tasks, resume)
        persistence.write_model(path, slim, card=slim.card())

    def slim(self, tasks: bool = True, resume: bool = True) -> Calibrated:
        """Return a copy that holds what `save` would write."""
        return Calibrated(self.model.slim(tasks, resume), self._calibration, self._with_std)

    def card(self) -> dict[str, Any]:
        """Return the card of the learner, and how many tasks the intervals rest on."""
        counts = {str(m): count for m, count in self.n_tasks_calibrated_.items()}
        return self.model.card() | {"tasks_calibrated": counts}

    def __getitem__(self, task: Any) -> Calibrated:
        return Calibrated(self.model[task], self._calibration, self._with_std)

    def __getattr__(self, name: str):
        if name.startswith("__") or "model" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return f"Calibrated({self.model!r})"


def calibrate(
    learner: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    side_info: Any = None,
    side_key: Any = None,
    shots: Any = SHOTS,
    n_splits: int = 5,
    order: str = "random",
    random_state: Any = 0,
) -> Calibrated:
    """Fit a learner, and find out on held-out tasks how far off its predictions are.

    Parameters
    ----------
    learner : regressor with `fit(TaskSet)` and `adapt(TaskSet)`
        It is cloned, and fitted once for each fold of tasks and once on all.
    X, y, task, side_info, side_key
        As for `fit`, or a `TaskSet` alone.
    shots : sequence of int
        Numbers of points to calibrate at; a task needs one more to count.
    n_splits : int
        Folds of tasks.
    order : "random" or "first"
        Which points of a held-out task are adapted on. "first" if new tasks will show the points
        that came first, and later ones may be of another kind.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Calibrated
        The learner fitted on all tasks, with `predict_interval`.

    Notes
    -----
    Valid for tasks that are drawn like those given and points drawn like theirs; not for other
    times or places than the tasks come from. `ConditionalRidge` scales each interval by its own
    standard deviation; the intervals of other learners are equally wide at one number of points.

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
            f"calibrate needs a learner with fit, adapt and get_params, as ConditionalRidge() is, "
            f"so that it can be copied and fitted again. Got a {type(learner).__name__}."
        )
    if is_classifier(learner):
        raise DataError("Intervals are for numbers: calibrate takes regressors, not classifiers.")
    tasks, shots = as_tasks(X, y, task, side_info, side_key), check_shots(shots)
    if tasks.y is None:
        raise DataError("calibrate reads the targets of the tasks: there are none.")
    with_std, whole = gives_std(learner), clone(learner).fit(tasks)
    parts: dict[int, list] = {m: [] for m in shots}
    for train, held in folds_of_tasks(tasks, n_splits, shots, order, random_state):
        fitted = clone(learner).fit(train)
        for m, support, query in held:
            parts[m].append(task_scores(fitted.adapt(support), with_std, query))
    scores = {m: Scores.of(part) for m, part in parts.items() if part}
    if not scores:
        raise DataError(f"No task has more than {min(shots, default=0)} points to calibrate by.")
    return Calibrated(whole, Calibration(scores), with_std)


def _points_behind(model: Any, X: Any, n_rows: int, whose: dict[str, Any]) -> np.ndarray:
    """Return how many points stand behind the prediction of each row (N,)."""
    if hasattr(model, "n_points"):  # a learner
        return model.n_points(X, **whose)
    if np.ndim(model.n_) == 0:  # the model of one task
        return np.full(n_rows, model.n_)
    ids = np.repeat(X.ids, X.sizes) if isinstance(X, TaskSet) else whose["task"]
    codes, known = factorize(ids)
    n = model.n_[positions(model.ids, known)][codes]
    return X.restore_order(n) if isinstance(X, TaskSet) else n


persistence.register(Scores, export=Scores._asdict, restore=lambda cls, parts: cls(**parts))
persistence.register(Calibration)
persistence.register(
    Calibrated,
    export=lambda calibrated: {
        "model": calibrated.model,
        "calibration": calibrated._calibration,
        "with_std": calibrated._with_std,
    },
    restore=lambda cls, parts: cls(**parts),
)
