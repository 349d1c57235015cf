"""Final errors of our runs beside published ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.plots.canvas import new_figure, prepare, set_title
from condmeta.plots.style import styles_of

OFFSET = 0.16  # ours above, the published one below the line of a method


class FinalErrorsDisplay:
    """Draw, for each method, the final error and its standard deviation: ours and the authors'.

    Parameters
    ----------
    ours, published : dict of method -> (mean, standard deviation)

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Drawn by `plot`.

    Examples
    --------
    >>> from condmeta.plots import FinalErrorsDisplay
    >>> display = FinalErrorsDisplay({"ITL": (27.1, 0.9)}, {"ITL": (27.25, 0.9)}).plot()
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['here', 'authors']
    """

    def __init__(
        self, ours: dict[str, tuple[float, float]], published: dict[str, tuple[float, float]]
    ):
        self.ours = ours
        self.published = published

    @classmethod
    def from_results(cls, results: Any, published: dict[str, Any]) -> FinalErrorsDisplay:
        """Make the display of the methods of some `Results`, with `Published` numbers."""
        ours = {}
        for name in results.methods:
            finals = results.finals(name)
            spread = float(np.std(finals, ddof=1)) if len(finals) > 1 else 0.0
            ours[name] = float(finals.mean()), spread
        return cls(ours, {name: (told.mean, told.std) for name, told in published.items()})

    def plot(self, ax: Any = None, *, title: str | None = None, legend: bool = True):
        """Draw on `ax`, or on a new figure; return self."""
        if ax is None:
            ax = new_figure(5.0, 0.8 + 0.45 * len(self.ours)).subplots()
        prepare(ax)
        ax.grid(False, axis="y")
        styles = styles_of(self.ours)
        for row, name in enumerate(self.ours):
            colour = styles[name].colour
            shared = {"color": colour, "capsize": 2.5, "linewidth": 1.4, "markersize": 6}
            mean, std = self.ours[name]
            ax.errorbar(mean, row - OFFSET, xerr=std, fmt="o", **shared)
            if name in self.published:
                mean, std = self.published[name]
                ax.errorbar(mean, row + OFFSET, xerr=std, fmt="D", mfc="white", **shared)
        names = [name.replace(", ", ",\n") for name in self.ours]
        ax.set_yticks(range(len(self.ours)), names, fontsize="small", linespacing=0.95)
        ax.set_ylim(len(self.ours) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.set_xlabel("final test error (absolute loss)")
        if title:
            set_title(ax, title)
        if legend:
            self.add_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def describe(self) -> str:
        """Say in words what is drawn."""
        here, theirs = (
            ", ".join(f"{name} {mean:.4g}" for name, (mean, _) in errors.items())
            for errors in (self.ours, self.published)
        )
        return f"Final test errors. Here: {here}." + (f" Authors: {theirs}." if theirs else "")

    @staticmethod
    def add_legend(place: Any, **options: Any) -> None:
        """Explain the two symbols, on axes or on a figure."""
        from matplotlib.lines import Line2D

        plain = {"color": "#333333", "linestyle": "none", "markersize": 6}
        symbols = [Line2D([], [], marker="o", **plain)]
        symbols.append(Line2D([], [], marker="D", mfc="white", **plain))
        place.legend(symbols, ["here", "authors"], frameon=False, fontsize="small", **options)
