"""How much side information lowers the error on held-out tasks, by number of points."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from condmeta.evaluation.cross_validate import summed_errors
from condmeta.learners.checks import fits_to_folds
from condmeta.losses import Absolute
from condmeta.tasks import TaskSet
from condmeta.tasks.splits import folds_of_tasks
from condmeta.text import pluralize


class Gain(NamedTuple):
    """Mean absolute errors of held-out tasks at one number of points.

    Attributes
    ----------
    n_support, n_tasks : int
    without, with_side : float
        Errors of the two learners; all rows have the same weight.
    gain, gain_error : float
        1 - with_side / without, and its standard error over tasks, paired.
    """

    n_support: int
    n_tasks: int
    without: float
    with_side: float
    gain: float
    gain_error: float

    @property
    def is_clear(self) -> bool:
        """Whether the gain is more than two standard errors above 0."""
        return self.gain > 2 * self.gain_error

    @property
    def is_loss(self) -> bool:
        """Whether the gain is more than two standard errors below 0."""
        return self.gain < -2 * self.gain_error

    @property
    def is_tiny(self) -> bool:
        """Whether the gain or loss rounds to 0 %: it may be clear, but nobody would notice it."""
        return round(100 * self.gain) == 0

    @property
    def helps(self) -> bool:
        """Whether the gain is clear, and at least 1 %."""
        return self.is_clear and not self.is_tiny


def gains_in_words(
    gains: list[Gain], where: str = "on new tasks", at: Callable[[Gain], str] | None = None
) -> str:
    """Return how much the error falls at each number of points, said by `at`; "" without gains."""
    at = at or _at
    clear = [one for one in gains if (one.is_clear or one.is_loss) and not one.is_tiny]
    tiny = [one for one in gains if (one.is_clear or one.is_loss) and one.is_tiny]
    unclear = [one for one in gains if not (one.is_clear or one.is_loss)]
    groups = {
        "cuts the error by {}": (_by(one, at) for one in clear if one.is_clear),
        "raises the error by {}": (
            _by(one._replace(gain=-one.gain), at) for one in clear if one.is_loss
        ),
        "changes the error by less than 1 % {}": map(at, tiny),
        "makes no clear difference ({})": (_by(one, at) for one in unclear),
    }
    listed = {text: ", ".join(few) for text, few in groups.items()}
    parts = [text.format(few) for text, few in listed.items() if few]
    return f"{where} it {', and '.join(parts)}" if parts else ""


def _by(one: Gain, at: Callable[[Gain], str]) -> str:
    return f"{round(100 * one.gain)} % ± {100 * one.gain_error:.0f} {at(one)}"


def _at(one: Gain) -> str:
    return f"at {pluralize(one.n_support, 'point')}"


@fits_to_folds()
def gains(
    learners: tuple[Any, Any],
    tasks: TaskSet,
    shots: Any,
    n_splits: int,
    order: str,
    random_state: Any,
) -> list[Gain]:
    """Judge a learner without and one with side information on the same held-out points."""
    errors: dict[int, list[np.ndarray]] = {m: [] for m in shots}
    for train, parts in folds_of_tasks(tasks, n_splits, shots, order, random_state):
        fitted = [clone(learner).fit(train) for learner in learners]
        for m, support, query in parts:
            lost = [summed_errors(one.adapt(support), query, Absolute().value) for one in fitted]
            errors[m].append(np.array([*lost, query.sizes]))
    return [gain_of(m, *np.hstack(parts)) for m, parts in errors.items() if parts]


def gain_of(m: int, without: np.ndarray, with_side: np.ndarray, rows: np.ndarray) -> Gain:
    """Return the gain at m points from the summed errors of tasks, and their rows, all (T,)."""
    T, total = len(rows), max(without.sum(), 1e-300)
    ratio = with_side.sum() / total
    # standard error of a ratio of means, to first order
    spread = (with_side - ratio * without).std(ddof=1) if T > 1 else np.inf
    means = without.sum() / rows.sum(), with_side.sum() / rows.sum()
    return Gain(m, T, *map(float, (*means, 1 - ratio, spread * np.sqrt(T) / total)))
