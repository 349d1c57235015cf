"""Final errors of our runs beside published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from condmeta.display.plots.canvas import (
    Display,
    axes_to_draw,
    error_label,
    on_page,
    row_names,
)
from condmeta.display.plots.style import styles_of
from condmeta.typing import Axes, Figure

if TYPE_CHECKING:
    from condmeta.paper.experiments.results import Results


OFFSET = 0.16  # distance of the two marks of a method (ours, published) from its line


class FinalErrorsDisplay(Display):
    """Draw, for each method, the final error and its standard deviation: ours and the authors'.

    Parameters
    ----------
    ours, published : dict of method -> (mean, standard deviation)
    metric : str, optional
        The name of the error, for the axis.

    Examples
    --------
    >>> from condmeta.display.plots import FinalErrorsDisplay
    >>> display = FinalErrorsDisplay({"ITL": (27.1, 0.9)}, {"ITL": (27.25, 0.9)}).plot()
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['here', 'authors']
    """

    def __init__(self, ours: dict[str, Any], published: dict[str, Any], metric: str | None = None):
        self.ours, self.published, self.metric = ours, published, metric

    @classmethod
    def from_results(cls, results: Results, published: dict[str, Any]) -> Self:
        """Make the display of the methods of some `Results`, with `Published` numbers."""
        finals = {name: results.finals(name) for name in results.methods}
        ours = {
            name: (float(errors.mean()), float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0)
            for name, errors in finals.items()
        }
        theirs = {name: (one.mean, one.std) for name, one in published.items()}
        return cls(ours, theirs, results.metric)

    def plot(
        self, ax: Axes | None = None, *, title: str | None = None, legend: bool = True
    ) -> Self:
        """Draw on `ax`, or on a new figure; return self."""
        ax = axes_to_draw(ax, 5.0, 1.1 + 0.45 * len(self.ours))
        ax.grid(False, axis="y")
        styles, hollow = styles_of(self.ours), on_page("#ffffff", ax)
        for row, name in enumerate(self.ours):
            colour = on_page(styles[name].colour, ax)
            shared = {"color": colour, "capsize": 2.5, "linewidth": 1.4, "markersize": 6}
            mean, std = self.ours[name]
            ax.errorbar(mean, row - OFFSET, xerr=std, fmt="o", **shared)
            if name in self.published:
                mean, std = self.published[name]
                ax.errorbar(mean, row + OFFSET, xerr=std, fmt="D", mfc=hollow, **shared)
        names = [",\n".join(row_names(ax, name.split(", "))) for name in self.ours]
        ax.set_yticks(range(len(self.ours)), names, fontsize="small", linespacing=0.95)
        label = error_label("final test error", self.metric)
        ax.set(ylim=(len(self.ours) - 0.5, -0.5), xlabel=label)
        ax.set_xlim(left=0)
        if legend:
            self.add_legend(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
        return self._finish(ax, title, 20.0 if legend else None)

    def describe(self) -> str:
        """Return a description of the figure."""
        here, theirs = (
            ", ".join(f"{name} {mean:.4g}" for name, (mean, _) in errors.items())
            for errors in (self.ours, self.published)
        )
        return f"Final test errors. Here: {here}." + (f" Authors: {theirs}." if theirs else "")

    @staticmethod
    def add_legend(place: Axes | Figure, **options: Any) -> None:
        """Explain the two symbols, on axes or on a figure."""
        from matplotlib.lines import Line2D

        plain = {"color": on_page("#333333", place), "linestyle": "none", "markersize": 6}
        hollow = {"mfc": on_page("#ffffff", place)}
        ours, theirs = {"marker": "o", **plain}, {"marker": "D", **hollow, **plain}
        symbols = [Line2D([], [], **ours), Line2D([], [], **theirs)]
        place.legend(symbols, ["here", "authors"], frameon=False, fontsize="small", **options)
