"""An axis of numbers of points: 0, 1, 2, 5, 10, ... at about equal distances."""

from __future__ import annotations

from typing import Any

import numpy as np

NARROWEST = 0.045  # of the width, between two labels


def _log1p(points: Any) -> np.ndarray:
    """Return log(1 + points); matplotlib asks for values far to the left as well."""
    return np.log1p(np.maximum(points, -0.99))


def points_axis(ax: Any, shots: Any) -> None:
    """Let the x axis grow like log(1 + points), with a label at as many of `shots` as fit."""
    shots = np.unique(np.asarray(shots, dtype=float))
    ax.set_xscale("function", functions=(_log1p, np.expm1))
    ends = np.log1p(shots[[0, -1]])
    room = 0.03 * (ends[1] - ends[0]) or 0.5
    ax.set_xlim(np.expm1(ends[0] - room), np.expm1(ends[1] + room))
    labelled = [shots[0]]
    least = NARROWEST * (ends[1] - ends[0])
    for shot in shots[1:]:
        if np.log1p(shot) - np.log1p(labelled[-1]) >= least:
            labelled.append(shot)
    ax.set_xticks(labelled, [f"{shot:g}" for shot in labelled])
    ax.minorticks_off()
    ax.set_xlabel("number of points of the task")
