"""Bare figures and axes, without pyplot."""

from __future__ import annotations

from typing import Any

GRID_COLOUR = "#d9d9d9"
LEGEND_PAD = 24  # points between axes and title, with a legend above the axes


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


def set_title(ax: Any, title: str, pad: float | None = None) -> None:
    """Write a title, the paper's w_rho as a symbol."""
    ax.set_title(title.replace("w_rho", r"$w_\rho$"), fontsize="medium", pad=pad)


def legend_above(ax: Any, handles: Any = None, columns: int = 3) -> None:
    """Put the legend in a line above the axes, where it hides nothing; titles need LEGEND_PAD."""
    given = {} if handles is None else {"handles": handles}
    ax.legend(
        **given, frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0),
        ncols=columns, columnspacing=1.2, handletextpad=0.4, borderaxespad=0.1,
    )  # fmt: skip


def shorten(name: Any, longest: int = 28) -> str:
    """Return a name that leaves room for the figure."""
    text = str(name)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


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
