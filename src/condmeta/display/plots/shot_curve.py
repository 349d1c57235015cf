"""Error on new tasks against the number of their points, for several learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from condmeta.display.plots.canvas import (
    MOST_LINES,
    Display,
    add_notes,
    axes_to_draw,
    draw_curve,
    left_out,
    legend_above,
    lowest,
    points_axis,
)
from condmeta.display.plots.style import styles_of
from condmeta.errors import DataError
from condmeta.typing import Axes, Table

if TYPE_CHECKING:
    from condmeta.learners.auto import Auto


TALLEST = 4.0  # times the median error; larger errors are marked at the edge
HEADROOM = 0.06  # of the height


class ShotCurve(NamedTuple):
    """Increasing numbers of points; errors; standard errors (NaN if unknown)."""

    shot: np.ndarray
    error: np.ndarray
    se: np.ndarray


class ShotCurveDisplay(Display):
    """Draw the error of each learner on new tasks against the number of their points.

    Bands are one standard error wide on either side.

    Parameters
    ----------
    curves : dict of learner -> ShotCurve
        Arrays `shot`, `error` and `se` of equal length.
    error_name : str
        The name of the error, for the axis.

    Attributes
    ----------
    lines_ : dict of learner -> Line2D
        Drawn by `plot`.
    cut_ : list of str
        Learners whose errors lie above the chart, with these errors.

    Examples
    --------
    >>> from condmeta.display.plots import ShotCurveDisplay
    >>> table = {"learner": ["own data", "own data", "conditional", "conditional"],
    ...          "shot": [0, 5, 0, 5], "error": [3.0, 2.0, 1.5, 1.0], "se": [0.2, 0.1, 0.1, 0.1]}
    >>> display = ShotCurveDisplay.from_frame(table).plot()
    >>> display.ax_.get_xlabel()
    'number of points of the task'
    >>> display.describe()
    'Mean absolute error on new tasks by number of points. 0 points: conditional 1.5, own data 3.
    5 points: conditional 1, own data 2.'
    """

    def __init__(self, curves: Mapping[str, ShotCurve], error_name: str = "mean absolute error"):
        self.curves, self.error_name = dict(curves), error_name

    @classmethod
    def from_frame(
        cls, frame: Table | Mapping[str, Sequence[Any]], learners: Sequence[str] | None = None,
        error_name: str = "mean absolute error",
    ) -> Self:  # fmt: skip
        """Make the display of a tidy table with the columns learner, shot, error and se.

        `se`, the standard error, may be absent. `learners` selects learners, in that order.
        """
        try:
            names, shot, error = (np.asarray(frame[c]) for c in ("learner", "shot", "error"))
        except (KeyError, ValueError, IndexError) as problem:
            raise DataError(
                "A shot curve needs a table with the columns learner, shot and error "
                f"(and se, if known): {problem}."
            ) from None
        try:
            se = np.asarray(frame["se"], dtype=float)
        except (KeyError, ValueError, IndexError):
            se = np.full(len(error), np.nan)
        known = list(dict.fromkeys(names.tolist()))
        unknown = [name for name in learners or () if name not in known]
        if unknown:
            raise DataError(f"The table has no learner {unknown[0]!r}; it has {known}.")
        curves = {}
        for name in learners or known:
            at = np.flatnonzero(names == name)
            at = at[np.argsort(shot[at], kind="stable")]
            curves[str(name)] = ShotCurve(shot[at], error[at].astype(float), se[at])
        return cls(curves, error_name)

    @classmethod
    def from_estimator(cls, estimator: Auto) -> Self:
        """Make the display of what a fitted `AutoRegressor` or `AutoClassifier` compared."""
        estimator = getattr(estimator, "learner_", estimator)  # of a TableModel
        if not hasattr(estimator, "errors_") or not hasattr(estimator, "shots_"):
            raise DataError(
                "A shot curve needs a fitted AutoRegressor, which has compared learners on "
                "held-out tasks. To draw a table, use from_frame. Got "
                f"{type(estimator).__name__}."
            )
        shots, errors = estimator.shots_, estimator.errors_
        unknown = np.full(len(shots), np.nan)
        parts = zip(estimator.candidates_, errors.T, strict=True)
        curves = {name: ShotCurve(shots, part, unknown) for name, part in parts}
        return cls(curves, f"mean {estimator.criterion_.title}")

    def plot(
        self, ax: Axes | None = None, *, title: str | None = None, legend: bool = True,
        most: int | None = MOST_LINES,
    ) -> Self:  # fmt: skip
        """Draw on `ax`, or on a new figure; return self.

        Parameters
        ----------
        most : int or None
            Number of learners to draw: those with the lowest errors, compared at each number of
            points with the best there. A note names the others. None draws all.
        """
        ax = axes_to_draw(ax, 5.4, 3.6)
        drawn = lowest(self._excess(), most)
        styles, low, high = styles_of(drawn), *self._height(drawn)
        self.lines_, self.cut_ = {}, []
        for name in drawn:
            curve = self.curves[name]
            self.lines_[name] = draw_curve(ax, *curve, styles[name], name, markersize=5)
            if len(curve.shot) == 1:  # a band has no width
                ends = curve.error - curve.se, curve.error + curve.se
                ax.vlines(curve.shot, *ends, color=self.lines_[name].get_color(), linewidth=1.4)
            cut = curve.shot[curve.error > high]
            if len(cut):
                edge = {"marker": "^", "markersize": 7, "linestyle": "none", "clip_on": False}
                edge["color"] = self.lines_[name].get_color()
                ax.plot(cut, np.full(len(cut), high), zorder=3, **edge)
                errors = curve.error[curve.error > high]
                found = (f"{e:.3g} at {s:g}" for s, e in zip(cut, errors, strict=True))
                self.cut_.append(f"{name} {', '.join(found)}")
        points_axis(ax, np.concatenate([self.curves[name].shot for name in drawn]))
        ax.set(ylim=(low, high), ylabel=self.error_name)
        arrows = [f"\N{BLACK UP-POINTING TRIANGLE} above the chart: {'; '.join(self.cut_)}."]
        add_notes(ax, (arrows if self.cut_ else []) + left_out(list(self.curves), drawn))
        return self._finish(ax, title, legend_above(ax) if legend else None)

    def describe(self) -> str:
        """Return a description of the figure: the errors at each number of points, best first."""
        shots = np.unique(np.concatenate([curve.shot for curve in self.curves.values()]))
        parts = []
        for shot in shots.tolist():
            found = [
                (float(curve.error[curve.shot == shot][0]), name)
                for name, curve in self.curves.items()
                if (curve.shot == shot).any()
            ]
            errors = ", ".join(f"{name} {error:.3g}" for error, name in sorted(found))
            parts.append(f"{shot:g} {'point' if shot == 1 else 'points'}: {errors}.")
        name = self.error_name[:1].upper() + self.error_name[1:]
        return f"{name} on new tasks by number of points. {' '.join(parts)}"

    def _excess(self) -> dict[str, float]:
        """Return the error of each learner less the best at that number of points, on average."""
        best: dict[float, float] = {}
        for curve in self.curves.values():
            for shot, error in zip(curve.shot.tolist(), curve.error.tolist(), strict=True):
                best[shot] = np.fmin(best.get(shot, np.inf), error)
        return {
            name: float(np.mean(curve.error - [best[shot] for shot in curve.shot.tolist()]))
            for name, curve in self.curves.items()
        }

    def _height(self, drawn: Sequence[str]) -> tuple[float, float]:
        """Return limits that one bad learner cannot stretch, which would flatten the others."""
        errors = np.concatenate([self.curves[name].error for name in drawn])
        spread = np.nan_to_num(np.concatenate([self.curves[name].se for name in drawn]))
        drawn = np.isfinite(errors)
        if not drawn.any():
            return 0.0, 1.0
        errors, spread = errors[drawn], spread[drawn]
        limit = TALLEST * float(np.median(errors))
        high = float((errors + spread).max()) if (errors <= limit).all() else limit
        low = float((errors - spread).min())
        room = HEADROOM * (high - low) or 0.1 * abs(high) or 1.0
        return (max(0.0, low - room) if errors.min() >= 0 else low - room), high + room
