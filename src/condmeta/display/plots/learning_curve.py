"""The figure of the paper: test error against the number of training tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from condmeta.display.plots.canvas import (
    MOST_LINES,
    Display,
    add_notes,
    axes_to_draw,
    draw_curve,
    error_label,
    left_out,
    legend_above,
    lowest,
)
from condmeta.display.plots.style import styles_of
from condmeta.text import pluralize
from condmeta.typing import Axes

if TYPE_CHECKING:
    from condmeta.paper.experiments.results import Results


MARKERS = 8  # on each line
HEADROOM = 0.12  # of the height, above the tallest curve that is shown in full


class LearningCurveDisplay(Display):
    """Draw the mean error of each method over seeds, with a band of one standard deviation.

    Parameters
    ----------
    curves : dict of method -> Curve
        Arrays `T`, `mean` and `std`; see `Results.curve`.
    metric : str, optional
        The name of the error, for the axis.
    baselines : sequence of str
        Methods that `plot` draws even if others have lower errors.

    Attributes
    ----------
    lines_ : dict of method -> Line2D
        Drawn by `plot`.

    Examples
    --------
    >>> import condmeta as cm
    >>> results = cm.experiments.run(
    ...     cm.environments.Circle(d=3, n=8), {"one bias": cm.ConditionalSGDRegressor(None)},
    ...     setting=((20, 5, 5),), seeds=2)
    >>> cm.plots.LearningCurveDisplay.from_results(results).plot().ax_.get_ylabel()
    'test error (absolute)'
    """

    def __init__(
        self, curves: dict[str, Any], metric: str | None = None, baselines: Sequence[str] = ()
    ):
        self.curves, self.metric, self.baselines = curves, metric, baselines

    @classmethod
    def from_results(cls, results: Results, methods: Sequence[str] | None = None) -> Self:
        """Make the display of all methods of some `Results`, or of the named ones."""
        curves = {name: results.curve(name) for name in methods or results.methods}
        return cls(curves, results.metric, results.baselines)

    def plot(
        self, ax: Axes | None = None, *, title: str | None = None, legend: bool = True,
        most: int | None = MOST_LINES,
    ) -> Self:  # fmt: skip
        """Draw on `ax`, or on a new figure; return self.

        Parameters
        ----------
        most : int or None
            Number of methods to draw: the best one, the baselines, and those with the lowest last
            errors. A note names the others. None draws all.
        """
        ax = axes_to_draw(ax, 5.0, 3.6)
        errors = {name: float(curve.mean[-1]) for name, curve in self.curves.items()}
        drawn = lowest(errors, most, self.baselines)
        styles, self.lines_ = styles_of(drawn), {}
        for place, name in enumerate(drawn):
            curve = self.curves[name]
            step = max(1, len(curve.T) // MARKERS)
            # Markers of different methods are at different T and do not hide each other.
            every = place * step // max(1, len(drawn)), step
            options = {"markersize": 4.5, "markevery": every}
            parts = curve.T, curve.mean, curve.std
            self.lines_[name] = draw_curve(ax, *parts, styles[name], name, **options)
        ax.set(xlabel="number of training tasks", ylabel=error_label("test error", self.metric))
        last = max(int(self.curves[name].T[-1]) for name in drawn)
        ax.set(xlim=(0, last), ylim=self._height(drawn))
        ax.locator_params(axis="x", integer=True)
        add_notes(ax, left_out(list(self.curves), drawn))
        return self._finish(ax, title, legend_above(ax) if legend else None)

    def describe(self) -> str:
        """Return a description of the figure: the last errors."""
        T = max(int(curve.T[-1]) for curve in self.curves.values())
        errors = ", ".join(f"{name} {curve.mean[-1]:.4g}" for name, curve in self.curves.items())
        after = f"After {pluralize(T, 'task')}"
        return f"Test error against the number of training tasks. {after}: {errors}."

    def _height(self, drawn: Sequence[str]) -> tuple[float, float]:
        """Return limits that show all but the first tenth of every curve.

        Hyper-parameters chosen for the last T may be many times worse after few tasks; these first
        errors would flatten all other curves.
        """
        curves = [self.curves[name] for name in drawn]
        parts = [(c.mean[len(c.T) // 10 :], c.std[len(c.T) // 10 :]) for c in curves]
        low = min(float(np.nanmin(mean - std)) for mean, std in parts)
        high = max(float(np.nanmax(mean + std)) for mean, std in parts)
        room = HEADROOM * (high - low) or 1.0
        return max(0.0, low - room), high + room
