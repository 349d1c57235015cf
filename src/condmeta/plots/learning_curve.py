"""The figure of the paper: test error against the number of training tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.plots.canvas import new_figure, prepare, set_title
from condmeta.plots.style import styles_of

MARKERS = 8  # on each line
HEADROOM = 0.12  # of the height, above the tallest curve that is shown in full


class LearningCurveDisplay:
    """Draw the mean error of each method over the seeds, in a band of one standard deviation.

    Parameters
    ----------
    curves : dict of method -> Curve
        Arrays `T`, `mean` and `std`; see `Results.curve`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of method -> Line2D
        Drawn by `plot`.

    Examples
    --------
    >>> import condmeta as cm
    >>> results = cm.experiments.run(
    ...     cm.environments.Circle(d=3, n=8), {"one bias": cm.ConditionalSGDRegressor(None)},
    ...     setting=((20, 5, 5),), seeds=2)
    >>> cm.plots.LearningCurveDisplay.from_results(results).plot().ax_.get_xlabel()
    'number of training tasks'
    """

    def __init__(self, curves: dict[str, Any]):
        self.curves = curves

    @classmethod
    def from_results(
        cls, results: Any, methods: Sequence[str] | None = None
    ) -> LearningCurveDisplay:
        """Make the display of all methods of some `Results`, or of those named."""
        return cls({name: results.curve(name) for name in methods or results.methods})

    def plot(self, ax: Any = None, *, title: str | None = None, legend: bool = True):
        """Draw on `ax`, or on a new figure; return self."""
        if ax is None:
            ax = new_figure(5.0, 3.6).subplots()
        prepare(ax)
        styles = styles_of(self.curves)
        self.lines_ = {}
        for place, (name, curve) in enumerate(self.curves.items()):
            style = styles[name]
            step = max(1, len(curve.T) // MARKERS)
            # Markers of different methods stand at different T, so that none hides another.
            start = place * step // max(1, len(self.curves))
            (self.lines_[name],) = ax.plot(
                curve.T, curve.mean, label=name, color=style.colour, linestyle=style.line,
                linewidth=1.6, marker=style.marker, markersize=4.5, markevery=(start, step),
            )  # fmt: skip
            low, high = curve.mean - curve.std, curve.mean + curve.std
            ax.fill_between(curve.T, low, high, color=style.colour, alpha=0.13, linewidth=0)
        ax.set_xlabel("number of training tasks")
        ax.set_ylabel("test error (absolute loss)")
        ax.set_xlim(left=0, right=max(int(curve.T[-1]) for curve in self.curves.values()))
        ax.set_ylim(*self._height())
        if title:
            set_title(ax, title)
        if legend:
            ax.legend(frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def describe(self) -> str:
        """Say in words what is drawn: the last errors."""
        T = max(int(curve.T[-1]) for curve in self.curves.values())
        told = ", ".join(f"{name} {curve.mean[-1]:.4g}" for name, curve in self.curves.items())
        return f"Test error against the number of training tasks. After {T} tasks: {told}."

    def _height(self) -> tuple[float, float]:
        """Return limits that show all but the first tenth of every curve.

        A pair chosen for the last T may be many times worse than any other method after few tasks;
        its first errors would flatten all the rest.
        """
        shown = [slice(len(curve.T) // 10, None) for curve in self.curves.values()]
        parts = list(zip(self.curves.values(), shown, strict=True))
        low = min(float(np.nanmin(c.mean[s] - c.std[s])) for c, s in parts)
        high = max(float(np.nanmax(c.mean[s] + c.std[s])) for c, s in parts)
        room = HEADROOM * (high - low) or 1.0
        return max(0.0, low - room), high + room
