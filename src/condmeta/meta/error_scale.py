r"""How large errors are, by the learner's standard deviation and by the predicted level.

Errors often grow with the level (prices, counts) and are skewed, and a learner's standard deviation
may say too much or too little about them. The size of an error below or above its prediction is

    s_i = std_i^gamma t(prediction_i),   gamma in {0, 1/2, 1}.

t is 1, or a curve for each side: the point that a twentieth of the errors / std^gamma lie beyond.
It is piecewise linear between quantile groups of the predictions; there, its log is shrunken
towards a line. Gamma and the curve are chosen on held-out tasks, so that the same share of errors
exceeds its size where predictions are low or high, and standard deviations small or large. Every
task has the same weight.
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

    def sizes(self, predicted: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the size of an error below and above each prediction, (N,) each."""
        unit = std**self.power
        below, above = (unit * np.interp(predicted, self.knots, side) for side in self.tails.T)
        return below, above

    def size_of(self, held: HeldOut) -> np.ndarray:
        """Return the size on the side of each error, (N,)."""
        below, above = self.sizes(held.predicted, held.std)
        return np.where(held.error > 0, above, below)


def join(parts: list[HeldOut]) -> HeldOut:
    """Return the rows of several folds, tasks numbered on."""
    first = np.cumsum([0, *(part.n_tasks for part in parts)])
    parts = [part._replace(task=part.task + at) for part, at in zip(parts, first, strict=False)]
    return HeldOut(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def fit_error_scale(held: HeldOut) -> tuple[ErrorScale, np.ndarray]:
    """Choose gamma and the curve; gamma = 1 and no curve unless another is clearly better.

    Also return the size on the side of each error (N,), learned from other tasks: sizes that
    follow the errors of a task are too small for those of a new one.
    """
    if held.n_tasks < FEWEST_TASKS:
        return _fit(held, 1.0, 1), held.std
    varies = np.ptp(held.std) > 1e-9 * held.std.max()
    n_knots = min(MOST_KNOTS, held.n_tasks // TASKS_PER_KNOT)
    curves = (1, n_knots) if n_knots > 1 else (1,)
    settings = [(power, knots) for knots in curves for power in (POWERS if varies else POWERS[:1])]
    sizes = [_cross_fitted(held, *setting) for setting in settings]
    found = np.array([_imbalance(held, size) for size in sizes])
    best = int(found.argmin())
    if found[best] > found[0] - NOISE / held.n_tasks:
        best = 0
    return _fit(held, *settings[best]), sizes[best]


def _fit(held: HeldOut, power: float, n_knots: int) -> ErrorScale:
    if n_knots == 1 or np.ptp(held.predicted) == 0:
        return ErrorScale(power, np.zeros(1), np.ones((1, 2)))
    e = held.error / held.std**power
    order = np.argsort(e, kind="stable")
    group = _quantile_groups(held.predicted, held.share, n_knots)
    members = [order[group[order] == number] for number in np.unique(group)]
    weight = np.array([held.share[rows].sum() for rows in members])
    knots = np.array([np.average(held.predicted[rows], weights=held.share[rows])
                      for rows in members])  # fmt: skip
    tails = np.array([_tails(e[rows], held.share[rows]) for rows in members])
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


def _tails(e: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return how far the outer twentieths of rising errors begin, below and above 0, (2,)."""
    total = np.cumsum(share) / share.sum()
    low, high = e[np.searchsorted(total, [TAIL, 1 - TAIL]).clip(max=len(e) - 1)]
    mean = max((high - low) / 2, 1e-300)
    return np.maximum([-low, high], LEAST * mean)


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


def _cross_fitted(held: HeldOut, power: float, n_knots: int) -> np.ndarray:
    """Return the size on the side of each error (N,), learned from the tasks of other folds."""
    fold, size = held.task % FOLDS, np.empty(len(held.error))
    for k in range(FOLDS):
        scale = _fit(held.where(fold != k), power, n_knots)
        size[fold == k] = scale.size_of(held.where(fold == k))
    return size


def _imbalance(held: HeldOut, size: np.ndarray) -> float:
    """Return the mean squared deviation of the coverage of groups from the nominal one.

    The groups are fifths of the predictions and of the standard deviations.
    """
    e = held.error / size
    order = np.argsort(e, kind="stable")
    below, above = _tails(e[order], held.share[order])
    inside = (-below <= e) & (e <= above)
    deviations = []
    for by in (held.predicted, held.std):
        group = _quantile_groups(by, held.share, FIFTHS)
        for k in np.unique(group):
            rows = group == k
            deviations.append(np.average(inside[rows], weights=held.share[rows]) - (1 - 2 * TAIL))
    return float(np.mean(np.square(deviations)))
