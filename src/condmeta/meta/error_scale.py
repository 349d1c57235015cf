r"""How large errors are, by the learner's standard deviation and by the predicted level.

Errors often grow with the level (prices, counts) and are skewed, and a learner's standard deviation
may say too much or too little about them. The size of an error below or above its prediction is

    s_i = std_i^gamma t(prediction_i),   gamma in {0, 1/2, 1}.

t is 1, or a curve for each side: the point that a twentieth of the errors / std^gamma lie beyond.
It is piecewise linear between quantile groups of the predictions; there, its log is shrunken
towards a line. Gamma and the curve are chosen on held-out tasks, so that the same share of errors
exceeds its size where predictions are low or high, and standard deviations small or large. Every
task has the same weight.

Labels on a grid (counts, grades) are spread evenly over their steps: else a curve that follows a
quantile jumps by whole steps. Where many labels are the least possible one, as 0 of counts, an
interval must contain it, and all of its misses are above: t is then the point that a tenth of the
errors lie beyond, and on the lower side more than the distance to the least label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.persistence.fields import InvalidFieldError, floats, number
from condmeta.persistence.registry import register_tuple

TAIL = 0.05
POWERS = 1.0, 0.5, 0.0
FEWEST_TASKS = 20  # with fewer, sizes are the standard deviations
MOST_KNOTS, TASKS_PER_KNOT = 20, 10
SHRINKAGE = 4.0  # tasks
LEAST = 0.05  # of a tail over the mean of both
MOST_GROWTH = 3.0  # from the middle of the first or last group to its end
FOLDS = 5
AT_END = 0.025  # of labels, spread ones by half: an interval then begins at the least possible one
FAR = 2.0  # of the distance to there
MOST_STEPS = 1e5  # between the smallest and the largest label
COPIES = 8  # of a row whose label is spread
FINE = 0.1  # of the mean error: labels in smaller steps are as good as continuous
FIFTHS = 5
NOISE = 0.15  # over T tasks: an imbalance must be smaller by this to replace the first setting


class HeldOut(NamedTuple):
    """Predictions of held-out rows: error (N,) = y - prediction, std (N,), task (N,) from 0.

    `share` (N,) is the weight of a row within its task; the shares of a task sum to 1.
    """

    error: np.ndarray
    predicted: np.ndarray
    std: np.ndarray
    share: np.ndarray
    task: np.ndarray

    @property
    def n_tasks(self) -> int:
        return int(self.task.max()) + 1

    def spread(self, step: float) -> HeldOut:
        """Return the rows with labels spread evenly over [y - step/2, y + step/2].

        Copies of all rows follow one another, so that the first N rows have the predictions of
        these.
        """
        if step <= FINE * np.average(np.abs(self.error), weights=self.share):
            return self
        places = step * ((np.arange(COPIES) + 0.5) / COPIES - 0.5)
        parts = [self._replace(error=self.error + at, share=self.share / COPIES) for at in places]
        return HeldOut(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def on_side(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Return the size on the side of each error, (N,)."""
        return np.where(self.error > 0, above, below)

    def where(self, mask: np.ndarray) -> HeldOut:
        """Return some rows; the codes of tasks stay."""
        return HeldOut(*(values[mask] for values in self))


def _knots_rise(state: dict, sizes: dict[str, int]) -> None:
    if not len(state["knots"]) or (np.diff(state["knots"]) <= 0).any():
        raise InvalidFieldError("knots", "must rise")


@register_tuple(
    fields={"power": number(), "knots": floats("K"), "tails": floats("K 2", low=0)},
    rule=_knots_rise,
)
class ErrorScale(NamedTuple):
    """gamma, the knots of t (K,) rising, and its values there (K, 2), below and above."""

    power: float
    knots: np.ndarray
    tails: np.ndarray

    @property
    def has_sides(self) -> bool:
        """Whether errors below and above a prediction have sizes of their own."""
        return len(self.knots) > 1

    def sizes(self, predicted: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the size of an error below and above each prediction, (N,) each."""
        unit = std**self.power
        below, above = (unit * np.interp(predicted, self.knots, side) for side in self.tails.T)
        return below, above


def join(parts: list[HeldOut]) -> HeldOut:
    """Return the rows of several folds, tasks numbered on."""
    first = np.cumsum([0, *(part.n_tasks for part in parts)])
    parts = [part._replace(task=part.task + at) for part, at in zip(parts, first, strict=False)]
    return HeldOut(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def step_of(y: np.ndarray) -> float:
    """Return the distance of neighbouring labels on their grid; 0 if they lie on none.

    Examples
    --------
    >>> [step_of(np.array(y)) for y in ([0.0, 2.0, 2.0, 3.0], [0.5, 3.5, 5.0], [1.0, 1.0])]
    [1.0, 1.5, 0.0]
    """
    found = np.unique(y)
    if len(found) < 2:
        return 0.0
    step = np.diff(found).min()
    places = (found - found[0]) / step
    on_grid = places[-1] < MOST_STEPS and np.abs(places - np.rint(places)).max() < 1e-6
    return float(step) if on_grid else 0.0


def fit_error_scale(
    held: HeldOut, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[ErrorScale, np.ndarray]:
    """Choose gamma and the curve; gamma = 1 and no curve unless another is clearly better.

    Also return the sizes below and above each prediction (2, N), learned from other tasks: sizes
    that follow the errors of a task are too small for those of a new one.
    """
    if held.n_tasks < FEWEST_TASKS:
        return _fit(held, bounds, 1.0, 1), np.array([held.std, held.std])
    varies = np.ptp(held.std) > 1e-9 * held.std.max()
    n_knots = min(MOST_KNOTS, held.n_tasks // TASKS_PER_KNOT)
    curves = (1, n_knots) if n_knots > 1 else (1,)
    settings = [(power, knots) for knots in curves for power in (POWERS if varies else POWERS[:1])]
    sizes = [_cross_fitted(held, bounds, *setting) for setting in settings]
    sided = [knots > 1 for _, knots in settings]
    found = np.array([
        _imbalance(held, held.on_side(*size), has_sides)
        for size, has_sides in zip(sizes, sided, strict=True)
    ])  # fmt: skip
    best = int(found.argmin())
    if found[best] > found[0] - NOISE / held.n_tasks:
        best = 0
    return _fit(held, bounds, *settings[best]), sizes[best]


def _fit(held: HeldOut, bounds, power: float, n_knots: int) -> ErrorScale:
    if n_knots == 1 or np.ptp(held.predicted) == 0:
        return ErrorScale(power, np.zeros(1), np.ones((1, 2)))
    e = held.error / held.std**power
    order = np.argsort(e, kind="stable")
    group = _quantile_groups(held.predicted, held.share, n_knots)
    members = [order[group[order] == number] for number in np.unique(group)]
    weight = np.array([held.share[rows].sum() for rows in members])
    knots = np.array([np.average(held.predicted[rows], weights=held.share[rows])
                      for rows in members])  # fmt: skip
    ends = _ends(held, bounds)
    tails = np.array([_tails(e[rows], held.share[rows], ends[:, rows]) for rows in members])
    return ErrorScale(power, *_extended(knots, _shrunken(tails, weight), held.predicted))


def _shrunken(tails: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Move the logs of tails (K, 2) towards a line, by the tasks that each group has (K,)."""
    if len(tails) < 3:
        return tails
    design = np.column_stack([np.ones(len(tails)), np.arange(len(tails))])
    root = np.sqrt(weight)[:, None]
    line = design @ np.linalg.lstsq(root * design, root * np.log(tails), rcond=None)[0]
    own = (weight / (weight + SHRINKAGE))[:, None]
    return np.exp(own * np.log(tails) + (1 - own) * line)


def _tails(e: np.ndarray, share: np.ndarray, ends: np.ndarray | None = None) -> np.ndarray:
    """Return how far the outer twentieths of rising errors begin, below and above 0, (2,).

    ends (2, N) says which labels are the least and the largest possible ones. Where many labels are
    the least possible one, an interval begins there, and the whole tenth is above; likewise at the
    largest.
    """
    total = np.cumsum(share) / share.sum()
    at_end = np.zeros(2, bool) if ends is None else ends @ share >= AT_END * share.sum()
    if at_end.all():
        at_end[:] = False
    levels = [TAIL + TAIL * at_end[1], 1 - TAIL - TAIL * at_end[0]]
    low, high = e[np.searchsorted(total, levels).clip(max=len(e) - 1)]
    mean = max((high - low) / 2, 1e-300)
    return np.maximum([-low, high], LEAST * mean) * np.where(at_end, FAR, 1.0)


def _ends(held: HeldOut, bounds: tuple[float, float]) -> np.ndarray:
    """Return whether labels are at or beyond the least and the largest possible one, (2, N)."""
    y = held.predicted + held.error
    near = 1e-9 * np.abs(y).max(initial=0.0)
    return np.array([y <= bounds[0] + near, y >= bounds[1] - near])


def _quantile_groups(values: np.ndarray, share: np.ndarray, count: int) -> np.ndarray:
    """Return groups of equal weight from low to high; equal values are in one group, (N,)."""
    distinct, codes = np.unique(values, return_inverse=True)
    total = np.cumsum(np.bincount(codes, share, len(distinct)))
    middle = total - 0.5 * np.diff(total, prepend=0.0)
    return np.minimum((count * middle / total[-1]).astype(int), count - 1)[codes]


def _extended(knots, tails, predicted) -> tuple[np.ndarray, np.ndarray]:
    """Continue the first and the last segment to the lowest and the highest prediction."""
    if len(knots) == 1:
        return knots, tails
    ends = []
    for edge, inner, far in ((0, 1, predicted.min()), (-1, -2, predicted.max())):
        slope = (tails[edge] - tails[inner]) / (knots[edge] - knots[inner])
        there = tails[edge] + slope * (far - knots[edge])
        ends.append(np.clip(there, tails[edge] / MOST_GROWTH, tails[edge] * MOST_GROWTH))
    knots = np.concatenate([[predicted.min()], knots, [predicted.max()]])
    return knots, np.vstack([ends[0], tails, ends[1]])


def _cross_fitted(held: HeldOut, bounds, power: float, n_knots: int) -> np.ndarray:
    """Return the sizes below and above (2, N), learned from the tasks of other folds."""
    fold, sizes = held.task % FOLDS, np.empty((2, len(held.error)))
    for k in range(FOLDS):
        scale, rows = _fit(held.where(fold != k), bounds, power, n_knots), fold == k
        sizes[:, rows] = scale.sizes(held.predicted[rows], held.std[rows])
    return sizes


def _imbalance(held: HeldOut, size: np.ndarray, has_sides: bool) -> float:
    """Return the mean squared deviation of the coverage of groups from the nominal one.

    The groups are fifths of the predictions and of the standard deviations. Sizes that differ by
    side are multiplied by one number, others by one for each side.
    """
    e = held.error / size
    reach = np.abs(e) if has_sides else e
    order = np.argsort(reach, kind="stable")
    total = np.cumsum(held.share[order]) / held.share.sum()
    levels = [0.0, 1 - 2 * TAIL] if has_sides else [TAIL, 1 - TAIL]
    below, above = reach[order][np.searchsorted(total, levels).clip(max=len(e) - 1)]
    below = above if has_sides else -below
    inside = (-below <= e) & (e <= above)
    deviations = []
    for by in (held.predicted, held.std):
        group = _quantile_groups(by, held.share, FIFTHS)
        for k in np.unique(group):
            rows = group == k
            deviations.append(np.average(inside[rows], weights=held.share[rows]) - (1 - 2 * TAIL))
    return float(np.mean(np.square(deviations)))
