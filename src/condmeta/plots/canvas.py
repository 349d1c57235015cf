"""Bare figures and axes, without pyplot."""

from __future__ import annotations

from typing import Any

GRID_COLOUR = "#d9d9d9"


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, size in inches; an ImportError names the extra to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('Figures need matplotlib: pip install "condmeta[plot]".') from error
    return Figure(figsize=(width, height), layout="constrained")


def prepare(ax: Any) -> None:
    """Give axes a light grid behind the data and no box."""
    ax.set_axisbelow(True)
    ax.grid(True, color=GRID_COLOUR, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def set_title(ax: Any, title: str) -> None:
    """Write a title, the paper's w_rho as a symbol."""
    ax.set_title(title.replace("w_rho", r"$w_\rho$"), fontsize="medium")


def settle(figure: Any) -> Any:
    """Lay a figure out once and for all, so that each format need not do it again; return it."""
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    for ax in figure.axes:
        legend = ax.get_legend()
        if legend is not None:
            corner = legend.get_window_extent().transformed(ax.transAxes.inverted())
            legend.set_loc((corner.x0, corner.y0))
    return figure
