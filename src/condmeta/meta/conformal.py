r"""Prediction intervals that hold for a task nobody has seen: conformal over tasks.

Each task is held out of the fit once, with its fold, and adapted on m of its points. Its other
points have the signed scores e = (y - prediction) / s, where s is the size that errors have at this
standard deviation and predicted level (`error_scale`). Errors may be skewed, so that the two sides
have factors u- and u+, with u- + u+ = 2, in the ratio of the two tails of the scores. The interval
of coverage c at m points is

    [prediction - q u- s, prediction + q u+ s],
    q = inf {r : (1/T) sum_t F_t(r) >= c (1 + 1/T)},

with F_t the distribution of r = max(e / u+, -e / u-) of task t. Tasks are exchangeable, but points
of one task are alike. So each of T tasks has the weight 1/(T+1), divided among its scores, and the
new task has the remaining weight at infinity. With s, u- and u+ and a learner from other tasks this
covers a point of a new task with probability at least c, whatever the data are (Lee, Barber,
Willett, "Distribution-free inference with hierarchical data", 2023). Here every fold is held out in
turn, because a learner needs many tasks; so it is with s. The final learner has seen more tasks
than those of the folds. With fewer than 30 tasks c is replaced by a smaller c' where tasks that are
left out are still covered (`few_tasks`). u- and u+ come from the same scores as q; they are 1 up to
20 tasks, and where s has a curve for each side. Labels on a grid are spread over its steps where s
is learned (`error_scale`), not in F_t.
"""

import inspect
from collections.abc import Sequence
from math import ceil, inf
from typing import Any, NamedTuple, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.inner.log_rms import denoised_moments
from condmeta.meta.error_scale import ErrorScale, HeldOut, fit_error_scale
from condmeta.meta.few_tasks import COVERAGES, nominal_levels
from condmeta.tasks import TaskSet
from condmeta.tasks.splits.in_time import steps_ahead

# Stored levels of the distribution of scores: in steps of 0.001, and of 1.4 % in the tail.
LEVELS = np.union1d(np.arange(1, 1001) / 1000, 1 - np.geomspace(1e-6, 1e-2, 700))
FEW_TASKS = 30  # with fewer, the level is learned: see `few_tasks`
SKEW_SHRINKAGE = 20.0  # tasks: the difference of the tails is multiplied by 1 - 20 / T
MOST_SKEW = 0.95  # of u+ - u- over their sum


class Scores(NamedTuple):
    """Scores of held-out tasks at one number of points: sizes |e|, rising, and weights (sum 1).

    `above` says which labels were above their prediction; None: symmetric intervals. Of many scores
    only those at `LEVELS` are stored, each for all scores of its side down to the next smaller
    level: quantiles are then exact or slightly too large, and neither memory nor files grow with
    the rows. `of_task` (T,) is the log of each task's root mean squared error over the learner's
    own standard deviation, `size` (T,) the number of its scores. `nominal` (99,) are the levels of
    few tasks (`few_tasks`).
    """

    r: np.ndarray
    weight: np.ndarray
    n_tasks: int
    of_task: np.ndarray
    size: np.ndarray
    above: np.ndarray | None = None
    nominal: np.ndarray | None = None

    @classmethod
    def of(cls, held: HeldOut, scale: np.ndarray) -> Self:
        """Collect the scores of held-out rows; `scale` (N,) is the size of errors there."""
        T = held.n_tasks
        raw = (held.error / held.std) ** 2
        of_task = 0.5 * np.log(np.bincount(held.task, held.share * raw, T) + 1e-300)
        e, weight = held.error / scale, held.share / held.share.sum()
        sides = [_at_levels(np.abs(e[side]), weight[side]) for side in (e > 0, e <= 0)]
        r, weight = (np.concatenate(values) for values in zip(*sides, strict=True))
        above = np.arange(len(r)) < len(sides[0][0])
        order = np.argsort(r, kind="stable")
        size = np.bincount(held.task, None, T)
        few = nominal_levels(np.abs(e), held.share, held.task) if T < FEW_TASKS else None
        return cls(r[order], weight[order], T, of_task, size, above[order], few)

    def reaches(self, coverage: float) -> bool:
        """Return whether there are enough tasks for a finite interval."""
        return self.n_tasks >= tasks_needed(coverage)

    def level(self, coverage: float) -> float:
        """Return the level of the scores that intervals reach."""
        at = int(np.searchsorted(COVERAGES, coverage - 1e-9))
        if self.nominal is not None and at < len(COVERAGES):
            coverage = min(coverage, float(self.nominal[at]))
        return coverage * (1 + 1 / self.n_tasks)

    def quantile(self, coverage: float) -> float:
        """Return q of symmetric intervals."""
        return _quantile(self.r, self.weight, self.level(coverage))

    def reach(self, coverage: float) -> tuple[float, float]:
        """Return q u- and q u+."""
        if self.above is None:
            q = self.quantile(coverage)
            return q, q
        skew = self._skew(coverage)
        r = self.r / np.where(self.above, 1 + skew, 1 - skew)
        order = np.argsort(r, kind="stable")
        q = _quantile(r[order], self.weight[order], self.level(coverage))
        return q * (1 - skew), q * (1 + skew)

    def _skew(self, coverage: float) -> float:
        """Return (u+ - u-) / 2 from the tails of (1 - c) / 2 each, shrunken for few tasks."""
        tails = []
        for side in (self.above, ~self.above):
            r, weight = self.r[side], self.weight[side]
            level = weight.sum() - (1 - coverage) / 2  # of this side's weight
            tails.append(_quantile(r, weight, level) if level > 0 else 0.0)
        if not sum(tails):
            return 0.0
        own = max(1 - SKEW_SHRINKAGE / self.n_tasks, 0.0)
        return float(np.clip(own * (tails[0] - tails[1]) / sum(tails), -MOST_SKEW, MOST_SKEW))


def _at_levels(r: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of one side, rising, or those at `LEVELS` if there are more."""
    order = np.argsort(r, kind="stable")
    r, weight = r[order], weight[order]
    if len(r) <= len(LEVELS):
        return r, weight
    total = np.cumsum(weight)
    ends = np.searchsorted(total, total[-1] * (LEVELS[:-1] - 1e-12))
    ends = np.unique(np.append(ends, len(total) - 1))
    return r[ends], np.diff(total[ends], prepend=0.0)


def _quantile(r: np.ndarray, weight: np.ndarray, level: float) -> float:
    """Return the smallest of rising scores up to which their weight is at least `level`."""
    at = np.searchsorted(np.cumsum(weight), level - 1e-12)
    return float(r[min(at, len(r) - 1)])


class Calibration:
    """Scores for each calibrated number of points, the size of errors there, and the bounds of y.

    `step` is the distance of neighbouring labels on a grid, 0 if there is none. A model file of an
    earlier version has scores alone: intervals are then symmetric, in units of the learner's
    standard deviation.
    """

    sizes: dict[int, ErrorScale] | None = None
    bounds: tuple[float, float] = (-inf, inf)

    def __init__(
        self, held: dict[int, HeldOut], bounds: tuple[float, float] = (-inf, inf), step: float = 0.0
    ):
        self.sizes, self.scores = {}, {}
        for m, rows in held.items():
            self.sizes[m], sizes = fit_error_scale(rows.spread(step), bounds)
            # Sizes are learned from spread labels; the coverage is that of the labels themselves.
            scores = Scores.of(rows, rows.on_side(*sizes[:, : len(rows.error)]))
            self.scores[m] = scores._replace(above=None) if self.sizes[m].has_sides else scores
        self.bounds = bounds

    def interval(
        self, predicted: np.ndarray, std: np.ndarray, n: np.ndarray, coverage: float, offset=0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return both ends (N,) for tasks with n points: by the largest calibrated number <= n."""
        coverage = check_coverage(coverage)
        shots = self._shots(coverage)
        if (n < shots[0]).any():
            raise DataError(
                f"No interval was calibrated for tasks with fewer than {shots[0]} points. Include "
                "0 in the 'shots' parameter of calibrate."
            )
        low, high = np.empty(len(predicted)), np.empty(len(predicted))
        used = np.searchsorted(shots, n, side="right") - 1
        for at in np.unique(used):
            m, rows = shots[at], used == at
            below, above = self._sizes(m, predicted[rows], std[rows])
            down, up = self.scores[m].reach(coverage)
            low[rows], high[rows] = predicted[rows] - down * below, predicted[rows] + up * above
        return np.clip(low + offset, *self.bounds), np.clip(high + offset, *self.bounds)

    def _sizes(self, m: int, predicted, std) -> tuple[np.ndarray, np.ndarray]:
        return (std, std) if self.sizes is None else self.sizes[m].sizes(predicted, std)

    def _shots(self, coverage: float) -> list[int]:
        """Return the numbers of points that had enough tasks, or raise."""
        shots = [m for m, scores in self.scores.items() if scores.reaches(coverage)]
        if not shots:
            most = max(scores.n_tasks for scores in self.scores.values())
            raise DataError(
                f"A coverage of {coverage:g} needs at least {tasks_needed(coverage)} tasks to "
                f"calibrate on; there are {most}. Use a smaller coverage, or more tasks."
            )
        return shots

    def of_tasks(self, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the log root mean squared scores of tasks with n points.

        They are those at the largest calibrated number <= n, or at the smallest one, without the
        sampling noise of few scores.
        """
        at = np.maximum(np.searchsorted(list(self.scores), n, side="right") - 1, 0)
        found = [denoised_moments(scores.of_task, scores.size) for scores in self.scores.values()]
        return tuple(np.array(found)[at].T)


def tasks_needed(coverage: float) -> int:
    """Return the fewest tasks T with c (1 + 1/T) <= 1."""
    return ceil(coverage / (1 - coverage) - 1e-9)


def check_coverage(coverage: Any) -> float:
    """Return the coverage as a float in (0, 1), or raise."""
    if isinstance(coverage, float | np.floating) and 0 < coverage < 1:
        return float(coverage)
    raise DataError(
        f"The 'coverage' parameter must be a float in (0, 1), like 0.9. Got {coverage!r} instead."
    )


def gives_std(model: Any) -> bool:
    """Return whether a learner or a model can predict standard deviations."""
    return "return_std" in inspect.signature(model.predict).parameters


def times_for(model: Any, rows: TaskSet) -> dict[str, Any]:
    """Return the times of rows as an argument of `predict`, if there are some and it takes them."""
    timed = rows.time is not None and "time" in inspect.signature(model.predict).parameters
    return {"time": rows.time} if timed else {}


def predict_scaled(model: Any, with_std: bool, X: Any, **whose: Any):
    """Return predictions, and the scale of their errors: standard deviations, or ones."""
    if with_std:
        predicted, scale = model.predict(X, return_std=True, **whose)
        return predicted, np.maximum(scale, 1e-300)
    predicted = model.predict(X, **whose)
    return predicted, np.ones(len(predicted))


def held_out(models: Any, with_std: bool, query: TaskSet) -> HeldOut:
    """Return the errors of adapted tasks on their query points."""
    task = np.repeat(np.arange(len(query)), query.sizes)
    whose = {"task": query.ids[task]} | times_for(models, query)
    predicted, std = predict_scaled(models, with_std, query.X, **whose)
    weight = np.ones(len(task)) if query.weight is None else query.weight
    share = weight / np.bincount(task, weight, len(query))[task]
    return HeldOut(query.y - predicted, predicted, std, share, task)


def held_out_ahead(
    fitted: Any, with_std: bool, tasks: TaskSet, shots: Sequence[int]
) -> dict[int, HeldOut]:
    """Return the errors of held-out tasks one step ahead, for each number of points.

    A row is predicted from the rows of its task before its time, and counts for the largest of
    `shots` that is not above their number.
    """
    found, position = [], {task: t for t, task in enumerate(tasks.ids.tolist())}
    for before, then in steps_ahead(tasks):
        part = held_out(fitted.adapt(before), with_std, then)
        at = np.searchsorted(shots, before.sizes, side="right") - 1
        task = np.array([position[each] for each in then.ids.tolist()])
        weight = np.ones(len(then.y)) if then.weight is None else then.weight
        found.append((*part[:3], weight, task[part.task], at[part.task]))
    parts = (np.concatenate(part) for part in zip(*found, strict=True))
    error, predicted, std, weight, task, shot = parts
    out = {}
    for at in np.unique(shot[shot >= 0]):
        mine = shot == at
        code = np.unique(task[mine], return_inverse=True)[1]
        share = weight[mine] / np.bincount(code, weight[mine])[code]
        out[shots[at]] = HeldOut(error[mine], predicted[mine], std[mine], share, code)
    return out
