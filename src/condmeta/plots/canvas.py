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


def set_title(ax: Any, title: str, pad: float | None = None) -> None:
    """Write a title, the paper's w_rho as a symbol."""
    ax.set_title(title.replace("w_rho", r"$w_\rho$"), fontsize="medium", pad=pad)


def legend_above(ax: Any, columns: int = 3, title: str | None = None, **options: Any) -> float:
    """Put the legend above the axes, where it hides nothing; return the room it takes, in points.

    A title of the axes needs that room as its `pad`.
    """
    legend = ax.legend(
        frameon=False, fontsize="small", title=title, title_fontsize="small", loc="lower center",
        bbox_to_anchor=(0.5, 1.0), ncols=columns, columnspacing=1.2, handletextpad=0.4,
        borderaxespad=0.1, **options,
    )  # fmt: skip
    lines = -(-len(legend.get_texts()) // columns) + (title is not None)
    return 9.0 + 14.0 * lines


def shorten(name: Any, longest: int = 28) -> str:
    """Return a name that leaves room for the figure: its start and, to tell it apart, its end."""
    text, tail = str(name), longest // 3
    return text if len(text) <= longest else f"{text[: longest - tail - 1]}…{text[-tail:]}"


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
