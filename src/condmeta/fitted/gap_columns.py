"""Gaps that were filled with the mean and marked by the next column, which trees read as gaps.

Linear models need a number in place of a gap. A tree sends gaps to the better side of a split: the
filled value would stay between small and large ones. The pairs are found in the rows, so that it
does not matter who encoded them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.persistence.fields import InvalidFieldError, flags, floats
from condmeta.persistence.registry import register_tuple

FEWEST_GAPS = 5
NEAR = 0.1  # standard deviations between the filled value and the mean of the others


def _has_a_mark(state: dict, sizes: dict[str, int]) -> None:
    if state["marked"][-1:].any():
        raise InvalidFieldError("marked", "must be False in the last column")


@register_tuple(fields={"marked": flags("p"), "middle": floats("p")}, rule=_has_a_mark)
class GapColumns(NamedTuple):
    """Whether the next column marks the gaps of a column (p,), and the middle of marks (p,)."""

    marked: np.ndarray
    middle: np.ndarray

    @classmethod
    def learn(cls, Z: np.ndarray) -> GapColumns:
        """Find the pairs in rows Z (N, p)."""
        p = Z.shape[1]
        marked, middle = np.zeros(p, bool), np.zeros(p)
        for j in range(p - 1 if len(Z) else 0):
            low, high = Z[:, j + 1].min(), Z[:, j + 1].max()
            gap = Z[:, j + 1] == high
            two = low < high and (gap | (Z[:, j + 1] == low)).all()
            marked[j] = two and _is_filled(Z[:, j], gap)
            middle[j] = low / 2 + high / 2 if marked[j] else 0.0
        return cls(marked, middle)

    def apply(self, Z: np.ndarray) -> np.ndarray:
        """Return rows Z (N, p) with NaN at marked gaps."""
        columns = np.flatnonzero(self.marked)
        if not len(columns):
            return Z
        Z = Z.copy()
        Z[:, columns] = np.where(Z[:, columns + 1] > self.middle[columns], np.nan, Z[:, columns])
        return Z


def _is_filled(values: np.ndarray, gap: np.ndarray) -> bool:
    """Return whether values (N,) are their mean where `gap` (N,) holds, and nowhere else."""
    filled, known = values[gap], values[~gap]
    if len(filled) < FEWEST_GAPS or (filled != filled[0]).any() or (known == filled[0]).any():
        return False
    spread = known.std()
    return spread > 0 and abs(known.mean() - filled[0]) < NEAR * spread
