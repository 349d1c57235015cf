"""What an Auto learner chose, in words."""

import numpy as np

from condmeta.meta.stacking import Criterion
from condmeta.text import pluralize


def report(names, shots, weights, lines, errors, criterion: Criterion) -> str:
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
            f"(best alone {names[alone]} {lost[alone]:.4g}; "
            f"own data {lost[0]:.4g}, pooled {lost[1]:.4g})"
        )
    return f"Mean {criterion.title} on held-out tasks. " + "; ".join(parts) + "."


def _in_words(shift: float, slope: float) -> str:
    return "" if (shift, slope) == (0, 1) else f", as the median {shift:.3g} + {slope:.3g} p"
