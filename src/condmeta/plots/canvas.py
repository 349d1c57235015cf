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
