"""The variance that side information explains, column by column, and the error it saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from condmeta.display.plots.canvas import (
    Display,
    add_notes,
    axes_to_draw,
    legend_above,
    on_page,
    points_axis,
    row_names,
    rows_that_fit,
)
from condmeta.errors import DataError
from condmeta.typing import Axes

if TYPE_CHECKING:
    from condmeta.evaluation.advantage import Advantage


ALL, ALONE, UNIQUE, GAIN = "#000000", "#d55e00", "#0072b2", "#d55e00"
MOST = 12  # columns in a figure
OFFSET = 0.15  # distance of the two marks of a column from its line
LEAST = 0.2  # least end of the axis: a share near 0 must not look large
LEAST_GAIN = 0.05  # least reach of the axis of gains on either side of 0
EDGE = 0.03  # room for marks at 0 and at 100 %, as a share of the axis


class AdvantageDisplay(Display):
    """Draw the share of the variance of task coefficients that side information explains.

    By chance an estimate may lie above 100 % or below 0; it is drawn at 100 % or at 0.

    Parameters
    ----------
    share : (value, low, high)
        The share of the variance that all side columns explain together, with its interval.
    columns : dict of name -> ((value, low, high), (value, low, high))
        The share that a side column explains alone, and the share lost without it.
    gains : list of (points, gain, standard error)
        The share of the error on new tasks that side information saves.
    coverage : float
        Coverage of the intervals.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=3, n=6).sample(60, random_state=0)
    >>> found = cm.advantage(tasks, feature_map=cm.feature_maps.CircleMap(), shots=())
    >>> display = cm.plots.AdvantageDisplay.from_advantage(found).plot()
    >>> [tick.get_text() for tick in display.ax_.get_yticklabels()]
    ['all columns', 's']
    """

    def __init__(
        self,
        share: Sequence[float],
        columns: Mapping[str, Sequence[Sequence[float]]],
        gains: Sequence[tuple[int, float, float]] = (),
        coverage: float = 0.9,
    ):
        self.share, self.columns, self.gains, self.coverage = share, columns, gains, coverage

    @classmethod
    def from_advantage(cls, advantage: Advantage) -> Self:
        """Make the display of a result of `condmeta.advantage`."""
        gains = [(one.n_support, one.gain, one.gain_error) for one in advantage.gains]
        return cls(tuple(advantage.share), advantage.column_shares, gains, advantage.coverage)

    def plot(
        self, ax: Axes | None = None, *, of: str = "columns", most: int = MOST,
        title: str | None = None, legend: bool = True,
    ) -> Self:  # fmt: skip
        """Draw on `ax`, or on a new figure; return self.

        Parameters
        ----------
        of : "columns" or "gains"
            Shares of the side columns, or the gain against the number of points of a new task, with
            bars of two standard errors.
        most : int
            Number of columns to draw: those that explain most alone. Fewer if the axes have no room
            for their names.
        """
        if of not in ("columns", "gains"):
            raise DataError(f"The 'of' parameter must be 'columns' or 'gains'. Got {of!r} instead.")
        if of == "gains" and not self.gains:
            raise DataError("There are no gains to draw: call advantage with shots=(0, 1, 2, 5).")
        names = self._leading(most)
        ax = axes_to_draw(ax, 5.4, 3.2 if of == "gains" else 1.3 + 0.36 * (len(names) + 1))
        if of == "gains":
            self._draw_gains(ax)
            return self._finish(ax, title)
        self._draw_columns(ax, names[: rows_that_fit(ax) - 1])
        return self._finish(ax, title, legend_above(ax) if legend else None)

    def _leading(self, most: int) -> list[str]:
        return sorted(self.columns, key=lambda name: -self.columns[name][0][0])[:most]

    def _draw_columns(self, ax: Any, names: list[str]) -> None:
        from matplotlib.ticker import MaxNLocator

        ax.grid(False, axis="y")
        ax.axvline(0, color=on_page("#333333", ax), linewidth=1)
        shared = {"capsize": 2.5, "linewidth": 1.4, "markersize": 6, "linestyle": "none"}
        hollow = {"mfc": on_page("#ffffff", ax)}
        _bar(ax, self.share, 0, "s", on_page(ALL, ax), "together", shared)
        for row, name in enumerate(names, start=1):
            alone, unique = self.columns[name]
            labels = ("column alone", "lost without it") if row == 1 else (None, None)
            _bar(ax, alone, row - OFFSET, "o", ALONE, labels[0], shared)
            _bar(ax, unique, row + OFFSET, "D", UNIQUE, labels[1], shared | hollow)
        ax.set_yticks(range(len(names) + 1), ["all columns", *row_names(ax, names)])
        ax.set_ylim(len(names) + 0.5, -0.5)
        shares = [self.share, *(part for name in names for part in self.columns[name])]
        ends = np.array(shares, dtype=float)
        end = min(float(np.max(ends, initial=LEAST, where=np.isfinite(ends))), 1.0)
        ticks = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, end).round(10)
        ax.set_xticks(ticks[ticks <= end])
        ax.set_xlim(-EDGE * end, (1 + EDGE) * end)
        ax.xaxis.set_major_formatter(_percent)
        hidden = len(self.columns) - len(names)
        label_shares(ax, "share of the variance of task coefficients", hidden)

    def _draw_gains(self, ax: Any) -> None:
        shots, gains, errors = np.array(self.gains, dtype=float).T
        ax.axhline(0, color=on_page("#333333", ax), linewidth=1)
        style = {"fmt": "o-", "color": GAIN, "capsize": 2.5, "linewidth": 1.4, "markersize": 5}
        ax.errorbar(shots, gains, yerr=2 * errors, **style)
        points_axis(ax, shots)
        low, high = ax.get_ylim()
        ax.set_ylim(min(low, -LEAST_GAIN), max(high, LEAST_GAIN))
        ax.yaxis.set_major_formatter(_percent)
        ax.set_ylabel("error saved by side information")

    def describe(self) -> str:
        """Return a description of the figure."""
        share, low, high = map(_rounded, np.clip(self.share, 0.0, 1.0))
        explained = f"{share} % [{low}, {high}] of the variance of task coefficients"
        text = f"Side information explains {explained}."
        if len(self.columns) > 1:
            alone = (
                (name, _rounded(np.clip(self.columns[name][0][0], 0.0, 1.0)))
                for name in self._leading(3)
            )
            text += f" Alone: {', '.join(f'{name} {part} %' for name, part in alone)}."
        if self.gains:
            gains = ", ".join(f"{_rounded(gain)} % at {shot}" for shot, gain, _ in self.gains)
            text += f" Share of the error on new tasks that it saves, by number of points: {gains}."
        return text


def label_shares(ax: Any, label: str, hidden: int) -> None:
    """Label the axis of shares, with a note on columns that are not drawn."""
    ax.set_xlabel(label)
    add_notes(ax, [f"({hidden} more columns explain less)"] if hidden > 0 else [])


def _bar(
    ax: Any, interval: Any, at: Any, marker: Any, colour: Any, label: str, options: Any
) -> None:
    value, low, high = np.clip(interval, 0.0, 1.0)
    reach = [[max(value - low, 0.0)], [max(high - value, 0.0)]]
    ax.errorbar(value, at, xerr=reach, marker=marker, color=colour, label=label, **options)


def _rounded(share: float) -> str:
    """Return a share in percent; no -0."""
    return f"{round(100 * share)}" if np.isfinite(share) else "nan"


def _percent(value: float, _: Any = None) -> str:
    return f"{100 * value:.0f} %"
