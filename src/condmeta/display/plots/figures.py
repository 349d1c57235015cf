"""Figures of several panels."""

from collections.abc import Mapping
from typing import Any

from condmeta.display.plots.canvas import new_figure, settle
from condmeta.display.plots.final_errors import FinalErrorsDisplay
from condmeta.display.plots.learning_curve import LearningCurveDisplay
from condmeta.typing import Figure


def curves_figure(panels: Mapping[str, Any]) -> Figure:
    """Return a figure of learning curves, two panels in a row.

    Parameters
    ----------
    panels : dict of title -> Results
    """
    figure, axes = _two_columns(len(panels), 3.1)
    for ax, (title, results) in zip(axes, panels.items(), strict=True):
        LearningCurveDisplay.from_results(results).plot(ax, title=title)
    return settle(figure)


def published_figure(panels: Mapping[str, tuple[Any, Mapping[str, Any]]]) -> Figure:
    """Return a figure of final errors beside published ones, two panels in a row.

    Parameters
    ----------
    panels : dict of title -> (Results, dict of method -> Published)
    """
    figure, axes = _two_columns(len(panels), 2.4)
    for ax, (title, (results, published)) in zip(axes, panels.items(), strict=True):
        display = FinalErrorsDisplay.from_results(results, dict(published))
        display.plot(ax, title=title, legend=False)
    FinalErrorsDisplay.add_legend(figure, loc="outside lower center", ncols=2)
    return settle(figure)


def _two_columns(count: int, height: float) -> tuple[Any, list[Any]]:
    columns = min(count, 2)
    rows = -(-count // columns)
    figure = new_figure(4.6 * columns, height * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.remove()
    return figure, list(axes[:count])
