"""What an Auto learner chose, in words."""

from typing import Any

import numpy as np

from condmeta.meta.criteria import Criterion
from condmeta.text import pluralize

SIMPLE = "own data", "pooled"


def report(
    names: Any,
    shots: Any,
    weights: np.ndarray,
    lines: Any,
    errors: np.ndarray,
    criterion: Criterion,
) -> str:
    """Return in one line what was chosen, where and why."""
    parts = []
    for shot, mixed, line, lost in zip(shots, weights, lines, errors, strict=True):
        mix = [
            name if weight > 0.995 else f"{weight:.2f} {name}"
            for weight, name in zip(mixed, names, strict=True)
            if weight > 0.005
        ]
        alone = int(np.argmin(lost))
        parts.append(
            f"{pluralize(int(shot), 'point')}: {' + '.join(mix)}{_in_words(*line)} "
            f"(best alone {names[alone]} {lost[alone]:.4g}{others(names, lost)})"
        )
    return f"Mean {criterion.title} on held-out tasks. " + "; ".join(parts) + "."


def others(names: Any, lost: Any) -> str:
    """Return the errors of the simple candidates."""
    simple = [f"{name} {lost[names.index(name)]:.4g}" for name in SIMPLE if name in names]
    return f"; {', '.join(simple)}" if simple else ""


def _in_words(shift: float, slope: float) -> str:
    return "" if (shift, slope) == (0, 1) else f", as the median {shift:.3g} + {slope:.3g} p"
