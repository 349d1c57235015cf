"""Make figures, axes and legends, without pyplot, and write figures to files."""

import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from condmeta.typing import Figure, PathLike

GRID_COLOUR = "#d9d9d9"
FORMATS = ("png", "svg", "pdf")
UNDATED = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
SETTINGS = {"svg.hashsalt": "condmeta", "svg.fonttype": "none", "pdf.fonttype": 42}
MOST_LINES = 5  # on a chart
MOST_LEFT_OUT = 4  # names in a note
LONGEST_LABEL = 40  # letters of a name in a legend
LETTER = 0.65  # width of a letter as a share of the size of the font, wide letters counted in
ROW = 16.0  # height of a named row in points, before what stands below the axes takes its share
NAME_SHARE = 0.55  # of the width of the axes: the longest name of a row beside them
NARROWEST = 0.045  # least distance of two labels of `points_axis`, as a share of the width


def require_matplotlib() -> None:
    """Raise an ImportError that names the remedy if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError('Figures need matplotlib: pip install "condmeta[plot]".') from error


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure; width and height in inches."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def default_style() -> AbstractContextManager[None]:
    """Return a context in which figures have the default style of matplotlib."""
    require_matplotlib()
    from matplotlib import style

    return style.context("default")


def on_page(colour: str, ax: Any) -> str:
    """Return the colour that reads on the axes: greys are inverted on dark ones, others stay."""
    from matplotlib.colors import to_hex, to_rgb, to_rgba

    *page, alpha = to_rgba(ax.get_facecolor())
    rgb = np.array(to_rgb(colour))
    inverted = alpha > 0 and np.mean(page) < 0.5 and np.ptp(rgb) == 0
    return to_hex(1 - rgb) if inverted else colour


def size_in_points(ax: Any) -> np.ndarray:
    """Return the width and height of the axes in points, of which an inch has 72."""
    box = ax.get_window_extent()
    return np.array([box.width, box.height]) * 72 / ax.figure.dpi


def lay_out(ax: Any) -> None:
    """Lay out the figure, so that the size of the axes is that beside names and bars."""
    ax.figure.figure.draw_without_rendering()


def letters_in(points: float) -> int:
    """Return how many letters fit in a width in points, 8 at least."""
    import matplotlib

    return max(int(points / (LETTER * matplotlib.rcParams["font.size"])), 8)


def prepare(ax: Any) -> None:
    """Draw a light grid behind the data, and no box."""
    ax.set_axisbelow(True)
    ax.grid(True, color=on_page(GRID_COLOUR, ax), linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def axes_to_draw(ax: Any, width: float, height: float) -> Any:
    """Return `ax`, or the axes of a new figure, prepared."""
    ax = new_figure(width, height).subplots() if ax is None else ax
    prepare(ax)
    return ax


def set_title(ax: Any, title: str, pad: float | None = None) -> None:
    """Write a title, w_rho as the paper's symbol."""
    ax.set_title(title.replace("w_rho", r"$w_\rho$"), fontsize="medium", pad=pad)


def error_label(text: str, metric: str | None) -> str:
    """Return the label of an axis of errors, with the name of the metric if it is known."""
    return text if metric is None else f"{text} ({metric.replace('_', ' ')})"


class Display:
    """The base of all displays.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Drawn by `plot`.
    """

    def _finish(self, ax: Any, title: str | None, pad: float | None = None) -> Any:
        """Write the title, set `ax_` and `figure_`, return self."""
        if title:
            set_title(ax, title, pad)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def draw_curve(
    ax: Any, x: Any, mean: Any, spread: Any, style: Any, name: str, **options: Any
) -> Any:
    """Draw a line with a band of `spread` on either side; return the line."""
    (line,) = ax.plot(
        x, mean, label=verbatim(shorten(name, LONGEST_LABEL)), color=on_page(style.colour, ax),
        linestyle=style.line, linewidth=1.6, marker=style.marker, **options,
    )  # fmt: skip
    ax.fill_between(
        x, mean - spread, mean + spread, color=line.get_color(), alpha=0.13, linewidth=0
    )
    return line


def lowest(
    errors: Mapping[str, float], most: int | None, baselines: Sequence[str] = ()
) -> list[str]:
    """Return the names of the `most` lowest errors (None: of all), in the order given.

    Baselines come before all methods but the best one: gains are judged by them.

    Examples
    --------
    >>> lowest({"mean": 9.0, "a": 1.0, "b": 3.0, "c": 2.0}, 3, ["mean"])
    ['mean', 'a', 'c']
    """
    ranked = sorted(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    best = next((name for name in ranked if name not in baselines), None)
    ranked.sort(key=lambda name: (name != best, name not in baselines))
    kept = set(ranked[:most])
    return [name for name in errors if name in kept]


def add_notes(ax: Any, notes: Iterable[str]) -> None:
    """Write notes below the label of the x axis, all in lines as wide as the axes."""
    texts = ax.get_xlabel(), *map(verbatim, notes)
    ax.set_xlabel("")
    lay_out(ax)
    letters = letters_in(size_in_points(ax)[0])
    ax.set_xlabel("\n".join(line for text in texts for line in wrap(text, letters)))


def left_out(names: Sequence[str], drawn: Sequence[str]) -> list[str]:
    """Return the note on lines that are not drawn, if there are any."""
    rest = [name for name in names if name not in drawn]
    told = ", ".join(shorten(name) for name in rest[:MOST_LEFT_OUT])
    more = f" and {len(rest) - MOST_LEFT_OUT} more" if len(rest) > MOST_LEFT_OUT else ""
    return [f"Not drawn: {told}{more}. plot(most=None) draws all."] if rest else []


def _log1p(points: Any) -> np.ndarray:
    return np.log1p(np.maximum(points, -0.99))  # matplotlib also asks for negative values


def points_axis(ax: Any, shots: Any) -> None:
    """Scale the x axis like log(1 + points), and label as many of `shots` as fit."""
    shots = np.unique(np.asarray(shots, dtype=float))
    ax.set_xscale("function", functions=(_log1p, np.expm1))
    ends = np.log1p(shots[[0, -1]])
    room = 0.03 * (ends[1] - ends[0]) or 0.5
    ax.set_xlim(np.expm1(ends[0] - room), np.expm1(ends[1] + room))
    labelled = [shots[0]]
    for shot in shots[1:]:
        if np.log1p(shot) - np.log1p(labelled[-1]) >= NARROWEST * (ends[1] - ends[0]):
            labelled.append(shot)
    ax.set_xticks(labelled, [f"{shot:g}" for shot in labelled])
    ax.minorticks_off()
    ax.set_xlabel("number of points of the task")


def legend_above(ax: Any, columns: int = 3, title: str | None = None, **options: Any) -> float:
    """Put the legend above the axes, where it hides no data; return its height in points.

    It has at most as many columns as there is room for. A title of the axes needs the height as its
    `pad`.
    """
    lay_out(ax)
    inside, room = ax.get_window_extent().width, ax.get_window_extent().x1 - ax.get_tightbbox().x0
    shared = {
        "frameon": False, "fontsize": "small", "title": title, "title_fontsize": "small",
        "columnspacing": 1.2, "handletextpad": 0.4, "borderaxespad": 0.1, **options,
    }  # fmt: skip
    for ncols in range(columns, 0, -1):
        legend = ax.legend(ncols=ncols, loc="lower center", bbox_to_anchor=(0.5, 1.0), **shared)
        box = legend.get_window_extent()
        if box.width <= room:
            break
    if box.width > inside:  # it may stand above the names beside the axes
        ax.legend(ncols=ncols, loc="lower right", bbox_to_anchor=(1.0, 1.0), **shared)
    return box.height * 72 / ax.figure.dpi + 5.0


def shorten(name: Any, longest: int = 28) -> str:
    """Return a name of at most `longest` characters: its start and its end."""
    text, tail = str(name), longest // 3
    return text if len(text) <= longest else f"{text[: longest - tail - 1]}…{text[-tail:]}"


def verbatim(text: str) -> str:
    """Return a text that is drawn as it is: matplotlib reads formulas between dollars.

    Examples
    --------
    >>> print(verbatim("$ and $"))
    \\$ and \\$
    """
    return text.replace("$", r"\$")


def rows_that_fit(ax: Any) -> int:
    """Return how many rows with names the axes have room for, 2 at least."""
    return max(int(size_in_points(ax)[1] / ROW), 2)


def row_names(ax: Any, names: Iterable[Any], longest: int = 28) -> list[str]:
    """Return names to write beside the axes, shortened to about half of their width."""
    fits = letters_in(NAME_SHARE * size_in_points(ax)[0])
    return [verbatim(shorten(name, min(fits, longest))) for name in names]


def settle(figure: Any) -> Any:
    """Fix the layout of a figure, to save every format the same work; return the figure."""
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    return figure


def figure_bytes(figure: Any, kind: str) -> bytes:
    """Return a figure as a PNG (300 dpi), SVG or PDF file; without a date, so always the same."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(buffer, format=kind, dpi=300, metadata=UNDATED[kind])
    return buffer.getvalue()


def save_figure(figure: Figure, stem: PathLike, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write `stem`.png, `stem`.svg and `stem`.pdf; return the paths.

    Examples
    --------
    Draw the learning curves of some results into a folder::

        save_figure(results.plot().figure_, "out/curves")
    """
    written = {Path(f"{stem}.{kind}"): figure_bytes(figure, kind) for kind in formats}
    for path, content in written.items():
        path.write_bytes(content)
    return list(written)
