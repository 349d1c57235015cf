"""Add prediction intervals, calibrated on held-out tasks, to a regressor."""

from math import inf
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone, is_classifier

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.learners.checks import drop_weightless, fits_to_folds
from condmeta.learners.offsets import is_zero, minus_offset, read_offset, refuse_forgotten
from condmeta.meta.conformal import (
    Calibration,
    Scores,
    gives_std,
    held_out,
    held_out_ahead,
    predict_scaled,
)
from condmeta.meta.error_scale import join, step_of
from condmeta.persistence.fields import (
    FLAG,
    InvalidFieldError,
    flags,
    floats,
    instance,
    integers,
    mapping,
    maybe,
    number,
    optional,
    sequence,
)
from condmeta.persistence.registry import register_tuple
from condmeta.tasks import TaskSet
from condmeta.tasks.arrays import as_vector
from condmeta.tasks.call_input import as_tasks, take_time
from condmeta.tasks.ids import factorize, positions
from condmeta.tasks.messages import bad_parameter
from condmeta.tasks.splits import check_shots, folds_of_tasks
from condmeta.tasks.taskset import require_numbers
from condmeta.typing import (
    FittedModel,
    Ids,
    LearnerLike,
    Matrix,
    Names,
    Order,
    PathLike,
    RandomState,
    Shots,
    SideInfo,
    Values,
)

OFTEN = 0.01  # of rows: a smallest or largest label that is as frequent is an end of the scale


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

    with_offset: bool | None = None  # of files of earlier versions: not known

    def __init__(
        self, model: FittedModel, calibration: Calibration, with_std: bool,
        with_offset: bool | None = False,
    ):  # fmt: skip
        self.model, self.calibration, self.with_std = model, calibration, with_std
        self.with_offset = with_offset

    @property
    def n_tasks_calibrated_(self) -> dict[int, int]:
        return {m: scores.n_tasks for m, scores in self.calibration.scores.items()}

    def predict(
        self, X: Matrix, *, offset: Values = None, **options: Any
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Predict as the learner or model does, within the bounds of the labels.

        A prediction always lies in its interval: if labels cannot be negative, a negative
        prediction becomes 0.

        Parameters
        ----------
        X : (N, d) array, DataFrame or TaskSet
        offset : (N,) array, optional
            Added to the predictions; needed if `calibrate` was given offsets.
        **options
            Such as task, side_info and return_std: as for `predict` of the learner or model.
        """
        refuse_forgotten(bool(self.with_offset), offset)
        found = self.model.predict(X, **options)
        if self.with_offset is None:
            return found
        predicted, *more = found if isinstance(found, tuple) else (found,)
        added = 0.0 if offset is None else read_offset(offset, len(predicted))
        clipped = np.clip(predicted + added, *self.calibration.bounds)
        return (clipped, *more) if more else clipped

    def predict_interval(
        self, X: Matrix, *, task: Ids = None, side_info: SideInfo = None, offset: Values = None,
        coverage: float = 0.9, time: Values = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Return the ends of intervals that contain a new label with probability `coverage`.

        The probability is over tasks and their points; it may be larger or smaller for one
        particular task. A task with n points has the interval of the largest calibrated number of
        points <= n. A new task has the interval of 0 points.

        Parameters
        ----------
        X, task, side_info
            As for `predict` of the learner or model.
        offset : (N,) array, optional
            Added to both ends; needed if `calibrate` was given offsets.
        coverage : float in (0, 1)
            c needs c / (1 - c) tasks: 9 for 0.9, 99 for 0.99.
        time : (N,) array, optional
            The time of each row, if tasks change with time; by default that of the latest row of
            each task.

        Returns
        -------
        lower, upper : (N,) arrays, in the order of the rows of X
        """
        refuse_forgotten(bool(self.with_offset), offset)
        given = {"task": task, "side_info": side_info}
        given = {name: value for name, value in given.items() if value is not None}
        when = {} if time is None else {"time": time}
        predicted, scale = predict_scaled(self.model, self.with_std, X, **given, **when)
        X, _ = take_time(X, time)
        n = _n_points(self.model, X, len(predicted), given)
        added = 0.0 if offset is None else read_offset(offset, len(predicted))
        return self.calibration.interval(predicted, scale, n, coverage, added)

    def adapt(
        self, X: Matrix | None = None, y: Values = None, *, task: Ids = None,
        side_info: SideInfo = None,
        offset: Values = None, sample_weight: Values = None, time: Values = None,
    ) -> Self:  # fmt: skip
        """Return models of new tasks, as `adapt` of the learner does; they have intervals too.

        With an `offset` (n,), the points are y - offset: give it to `predict` too.
        """
        if X is not None:
            refuse_forgotten(bool(self.with_offset), offset)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        weights |= {} if time is None else {"time": time}
        points = minus_offset(y, offset)
        return self._with(self.model.adapt(X, points, task=task, side_info=side_info, **weights))

    def update(self, X: Matrix, y: Values = None, *, offset: Values = None, **options: Any) -> Self:
        """Add points, as `update` of the learner or model does. The calibration does not change."""
        refuse_forgotten(bool(self.with_offset), offset)
        self.model.update(X, minus_offset(y, offset), **options)
        return self

    def save(self, path: PathLike, *, tasks: bool = True, resume: bool = True) -> None:
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
        return type(self)(model, self.calibration, self.with_std, self.with_offset)

    def __getitem__(self, task: Any) -> Self:
        return self._with(self.model[task])

    def __getattr__(self, name: str):
        if name.startswith("__") or "model" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return f"Calibrated({self.model!r})"


def calibrate(
    learner: LearnerLike, X: Matrix, y: Values = None, *, task: Ids = None,
    side_info: SideInfo = None, side_key: Names = None, shots: Shots = (0, 1, 2, 5, 10, 20),
    n_splits: int = 5, order: Order = "random", random_state: RandomState = 0,
    offset: Values = None, sample_weight: Values = None,
    bounds: Literal["auto"] | tuple[float, float] | None = "auto", time: Values = None,
) -> Calibrated:  # fmt: skip
    """Fit a learner, and calibrate prediction intervals by its errors on held-out tasks.

    Parameters
    ----------
    learner : regressor with `fit(TaskSet)` and `adapt(TaskSet)`
        It is cloned, and fitted once without each fold of tasks and once to all tasks.
    X, y, task, side_info, side_key
        As for `fit`, or a `TaskSet` alone.
    shots : sequence of int
        Numbers of points to calibrate at. Each number uses the tasks that have more points.
    n_splits : int
        Folds of tasks.
    order : "random" or "first"
        Which points of a held-out task the learner adapts to. Use "first" if new tasks come with
        their earliest points and later points may differ.
    random_state : int, Generator, RandomState or None
    offset : (N,) array, optional
        Predictions of another model, which the learner corrects: it is fitted to y - offset. Give
        the offset of new rows to `adapt` and `predict_interval`.
    sample_weight : (N,) array, optional
        Weights of rows, in the fit and among the errors of each task.
    bounds : "auto", None or (low, high)
        Intervals end where labels must end. "auto": at 0 if no label is negative, or none positive;
        at the smallest or largest label if one row in a hundred has it, as with grades.
    time : (N,) array or name of a column, optional
        The time of each row, for tasks that change (`ConditionalRidge(drift=...)`). Rows of a
        held-out task are then predicted one step ahead: from its rows before their time. `order` is
        not used. A row counts for the largest number in `shots` that its task had reached by then.

    Returns
    -------
    Calibrated
        The learner fitted to all tasks, with `predict_interval`.

    Notes
    -----
    The intervals are valid for new tasks and points drawn like the given ones, not for other times
    or places. Their width depends on the predicted value and, if the learner has one, on the
    standard deviation of the prediction, as far as both predict the size of held-out errors. If
    errors are skewed, the longer side is where the larger errors are.

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
            f"so that it can be copied and fitted again. Got {type(learner).__name__}."
        )
    if isinstance(learner, type):
        raise DataError(f"calibrate needs a learner, not its class: {learner.__name__}().")
    if is_classifier(learner):
        raise DataError("Intervals are for numbers: calibrate takes regressors, not classifiers.")
    shots = check_shots(shots)
    tasks = as_tasks(X, minus_offset(y, offset), task, side_info, side_key, sample_weight, time)
    tasks = drop_weightless(tasks)
    require_numbers(tasks, "calibrate")
    limits = _bounds(bounds, tasks.y if offset is None else as_vector(np.asarray(y)))
    with_std, whole = gives_std(learner), clone(learner).fit(tasks)
    parts: dict[int, list[Any]] = {m: [] for m in shots}
    timed = tasks.time is not None
    shown = (0,) if timed else shots
    with fits_to_folds():
        for train, held in folds_of_tasks(tasks, n_splits, shown, order, random_state):
            fitted = clone(learner).fit(train)
            if timed:
                for m, found in held_out_ahead(fitted, with_std, held[0].query, shots).items():
                    parts[m].append(found)
                continue
            for m, support, query in held:
                parts[m].append(held_out(fitted.adapt(support), with_std, query))
    held = {m: join(part) for m, part in parts.items() if part}
    if not held:
        raise DataError(f"No task has more than {min(shots, default=0)} points to calibrate with.")
    if offset is None:
        return Calibrated(whole, Calibration(held, limits, step_of(tasks.y)), with_std)
    calibration = Calibration(held)  # of labels less the offset, which have other bounds
    calibration.bounds = limits
    return Calibrated(whole, calibration, with_std, with_offset=not is_zero(offset))


def _bounds(bounds: Any, y: np.ndarray) -> tuple[float, float]:
    """Return the least and the largest possible end of an interval."""
    if bounds is None:
        return -inf, inf
    if isinstance(bounds, str) and bounds == "auto":
        low, high = float(y.min()), float(y.max())
        often = [np.mean(y == end) >= OFTEN for end in (low, high)]
        return (
            0.0 if low >= 0 else low if often[0] else -inf,
            0.0 if high <= 0 else high if often[1] else inf,
        )
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low, high = inf, -inf
    if not low < high:
        raise bad_parameter("bounds", '"auto", None, or two numbers (low, high)', bounds)
    if (y < low).any() or (y > high).any():
        wrong = y[(y < low) | (y > high)][0]
        raise DataError(
            f"The 'bounds' parameter is ({low:g}, {high:g}), but a label is {wrong:g}. Use bounds "
            "that contain all labels."
        )
    return low, high


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


def _check_scores(state: dict[str, Any], sizes: dict[str, int]) -> None:
    if not state["scores"]:
        raise InvalidFieldError("scores", "must have an entry")
    if state.get("sizes") is not None and list(state["sizes"]) != list(state["scores"]):
        raise InvalidFieldError("sizes", "must be of the same numbers of points as scores")


WHOLE = number(low=0, whole=True)
register_tuple(
    Scores,
    fields={
        "r": floats("N", low=0), "weight": floats("N", low=0, high=1), "n_tasks": WHOLE,
        "of_task": floats("T"), "size": integers("T", low=0), "above": optional(maybe(flags("N"))),
        "nominal": optional(maybe(floats("99", low=0, high=1))),
    },
)  # fmt: skip
persistence.register(
    Calibration,
    fields={
        "scores": mapping(instance("Scores"), key=WHOLE),
        "sizes": optional(maybe(mapping(instance("ErrorScale"), key=WHOLE))),
        "bounds": optional(sequence(number(infinite=True), "2")),
    },
    rule=_check_scores,
)
persistence.register(
    Calibrated,
    fields={
        "model": instance(n="n"), "calibration": instance("Calibration"), "with_std": FLAG,
        "with_offset": optional(maybe(FLAG)),
    },
)  # fmt: skip
