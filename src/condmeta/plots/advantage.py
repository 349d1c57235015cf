"""What side information explains, column by column, and what it gains."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.plots.canvas import legend_above, new_figure, prepare, set_title, shorten
from condmeta.plots.shots import points_axis

ALL, ALONE, UNIQUE, GAIN = "#000000", "#d55e00", "#0072b2", "#d55e00"
OFFSET = 0.15  # alone above, unique below the line of a column
NARROWEST = -0.05, 0.2  # axis of shares: nothing is not to look like much
WIDEST = -0.5, 1.25  # an interval that tells nothing is cut off


class AdvantageDisplay:
    """Draw what side information explains of the task coefficients, with intervals.

    Parameters
    ----------
    share : (value, low, high)
        Of the variance of task coefficients, what all columns explain together.
    columns : dict of name -> ((value, low, high), (value, low, high))
        The share that a side column explains alone, and the share that is lost without it.
    gains : list of (points, gain, standard error)
        By which part the error on new tasks falls.
    coverage : float
        Of the intervals of shares.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Drawn by `plot`.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=3, n=6).sample(60, random_state=0)
    >>> found = cm.advantage(tasks, feature_map=cm.feature_maps.CircleMap(), shots=())
    >>> display = cm.plots.AdvantageDisplay.from_advantage(found).plot()
    >>> [tick.get_text() for tick in display.ax_.get_yticklabels()]
    ['all columns', 's']
    """

    def __init__(self, share, columns, gains=(), coverage: float = 0.9):
        self.share = share
        self.columns = columns
        self.gains = gains
        self.coverage = coverage

    @classmethod
    def from_advantage(cls, advantage: Any) -> AdvantageDisplay:
        """Make the display of what `condmeta.advantage` found."""
        columns = advantage.column_shares
        gains = [(one.n_support, one.gain, one.gain_error) for one in advantage.gains]
        return cls(tuple(advantage.share), columns, gains, advantage.coverage)

    def plot(
        self,
        ax: Any = None,
        *,
        of: str = "columns",
        most: int = 12,
        title: str | None = None,
        legend: bool = True,
    ):
        """Draw on `ax`, or on a new figure; return self.

        Parameters
        ----------
        of : "columns" or "gains"
            Shares of the side columns, or the gain against the number of points of a new task (bars
            are two standard errors).
        most : int
            Columns to draw; those that explain most alone are chosen.
        """
        if of not in ("columns", "gains"):
            raise DataError(f"plot draws of='columns' or of='gains'. Got {of!r} instead.")
        if of == "gains" and not self.gains:
            raise DataError("There are no gains to draw: call advantage with shots=(0, 1, 2, 5).")
        names = self._leading(most)
        if ax is None:
            height = 3.2 if of == "gains" else 1.3 + 0.36 * (len(names) + 1)
            ax = new_figure(5.4, height).subplots()
        prepare(ax)
        pad = None
        if of == "gains":
            self._draw_gains(ax)
        else:
            self._draw_columns(ax, names)
            pad = legend_above(ax) if legend else None
        if title:
            set_title(ax, title, pad)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _leading(self, most: int) -> list[str]:
        return sorted(self.columns, key=lambda name: -self.columns[name][0][0])[:most]

    def _draw_columns(self, ax: Any, names: list[str]) -> None:
        ax.grid(False, axis="y")
        ax.axvline(0, color="#333333", linewidth=1)
        shared = {"capsize": 2.5, "linewidth": 1.4, "markersize": 6, "linestyle": "none"}
        _bar(ax, self.share, 0, "s", ALL, "together", shared)
        for row, name in enumerate(names, start=1):
            first = row == 1
            alone, unique = self.columns[name]
            _bar(ax, alone, row - OFFSET, "o", ALONE, "column alone" if first else None, shared)
            told = "lost without it" if first else None
            _bar(ax, unique, row + OFFSET, "D", UNIQUE, told, shared | {"mfc": "white"})
        ax.set_yticks(range(len(names) + 1), ["all columns", *map(shorten, names)])
        ax.set_ylim(len(names) + 0.5, -0.5)
        ends = np.array([self.share, *(part for name in names for part in self.columns[name])])
        low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
        room = 0.04 * (high - low) or 0.05
        low, high = min(low - room, NARROWEST[0]), max(high + room, NARROWEST[1])
        ax.set_xlim(max(low, WIDEST[0]), min(high, WIDEST[1]))
        ax.xaxis.set_major_formatter(_percent)
        hidden = len(self.columns) - len(names)
        more = f"\n({hidden} more columns explain less)" if hidden else ""
        ax.set_xlabel(f"share of the variance of task coefficients{more}")

    def _draw_gains(self, ax: Any) -> None:
        shots, gains, errors = np.array(self.gains, dtype=float).T
        ax.axhline(0, color="#333333", linewidth=1)
        ax.errorbar(
            shots, gains, yerr=2 * errors, fmt="o-", color=GAIN, capsize=2.5, linewidth=1.4,
            markersize=5,
        )  # fmt: skip
        points_axis(ax, shots)
        ax.yaxis.set_major_formatter(_percent)
        ax.set_ylabel("error saved by side information")

    def describe(self) -> str:
        """Say in words what is drawn."""
        share, low, high = (f"{100 * value:.0f}" for value in self.share)
        text = (
            f"Side information explains {share} % [{low}, {high}] of the variance of task "
            "coefficients."
        )
        names = self._leading(3)
        if len(self.columns) > 1:
            told = ", ".join(f"{name} {100 * self.columns[name][0][0]:.0f} %" for name in names)
            text += f" Alone: {told}."
        if self.gains:
            told = ", ".join(f"{100 * gain:.0f} % at {shot}" for shot, gain, _ in self.gains)
            text += f" It saves of the error on new tasks, by number of points: {told}."
        return text


def _bar(ax, interval, at, marker, colour, label, options) -> None:
    value, low, high = interval
    reach = [[max(value - low, 0.0)], [max(high - value, 0.0)]]
    ax.errorbar(value, at, xerr=reach, marker=marker, color=colour, label=label, **options)


def _percent(value: float, _: Any = None) -> str:
    return f"{100 * value:.0f} %"
