"""Tasks as points: tasks with similar coefficients, or side information, are near each other."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from condmeta.display.plots.canvas import (
    Display,
    axes_to_draw,
    lay_out,
    legend_above,
    on_page,
    shorten,
    verbatim,
)
from condmeta.display.plots.learners import learner_of, side_columns_of, side_values
from condmeta.errors import DataError
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.fitted.tables import coefficient_names
from condmeta.fitted.tau import LinearTau
from condmeta.text import pluralize
from condmeta.typing import Axes, FittedModel, Numbers, TaskId

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#595959")
MARKERS = ("o", "s", "^", "D", "v", "P", "x")
REST = "others"
NORMAL_MAD = 0.6745  # median distance from the median of a standard normal variable
FAR = 4.0  # standard deviations from the median, from which on a task is named
MOST_NAMED = 5
LINE = 11.0  # distance of two names, in points


class TaskMapDisplay(Display):
    """Draw tasks in the two principal directions of their differences.

    Parameters
    ----------
    positions : (T, 2) array
    labels : (str, str)
        Labels of the axes.
    values : (T,) array or None
        A side column: numbers, or texts.
    column : str or None
        Its name.
    ids : (T,) array or None
        Names of the tasks: those that lie far from the others are named.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=3, n=6).sample(30, random_state=0)
    >>> display = cm.plots.TaskMapDisplay.from_estimator(cm.ConditionalRidge().fit(tasks)).plot()
    >>> display.positions.shape, display.column
    ((30, 2), 's')
    """

    def __init__(
        self, positions: Numbers, labels: Sequence[str], values: Numbers | None = None,
        column: str | None = None, ids: Sequence[TaskId] | np.ndarray | None = None,
    ):  # fmt: skip
        self.positions, self.labels = positions, labels
        self.values, self.column, self.ids = values, column, ids

    @classmethod
    def from_estimator(
        cls, estimator: FittedModel, *, of: str = "coefficients", colour_by: str | None = None
    ) -> Self:
        """Make the display of the tasks that a fitted learner kept.

        Parameters
        ----------
        of : "coefficients" or "side"
            Place tasks by their adapted coefficients or by their side information; each feature is
            standardised.
        colour_by : str, optional
            A side column; by default the one with the largest effect on the priors.
        """
        learner = learner_of(estimator, "A map of tasks", tasks=True)
        fitted, store = learner.fitted_, learner.fitted_.tasks
        at = np.flatnonzero(store.sizes > 0)
        if len(at) < 2:
            raise DataError(f"A map of tasks needs two tasks or more. There are {len(at)}.")
        if of == "coefficients":
            names = coefficient_names(fitted)
            features = fitted.scales.user_vector(store.coef[at])
        elif of == "side":
            if store.Phi is None or not store.Phi.shape[1]:
                raise DataError("The model has no side information of its tasks to draw.")
            names, features = list(learner.side_features_), store.Phi[at]
        else:
            raise DataError(
                f"The 'of' parameter must be 'coefficients' or 'side'. Got {of!r} instead."
            )
        if features.shape[1] > 1:
            positions, labels = principal(features, names)
        else:
            positions = np.column_stack([features, store.sizes[at]])
            labels = shorten(names[0]), "number of points"
        column = colour_by if colour_by is not None else _strongest(learner)
        values = None if column is None else side_values(learner, column)[at]
        return cls(positions, labels, values, column, store.ids[at])

    def plot(
        self, ax: Axes | None = None, *, title: str | None = None, legend: bool = True
    ) -> Self:
        """Draw on `ax`, or on a new figure; return self."""
        ax = axes_to_draw(ax, 5.4, 4.4)
        size = 34 if len(self.positions) < 300 else 14 if len(self.positions) < 3000 else 5
        dots = {"s": size, "alpha": 0.85, "linewidths": 0, "rasterized": len(self.positions) > 2000}
        ax.set(xlabel=_two_lines(self.labels[0]), ylabel=_two_lines(self.labels[1]))
        pad = None
        if self.values is None:
            ax.scatter(*self.positions.T, color=COLOURS[0], **dots)
        elif self.values.dtype.kind not in "fiub":
            self._draw_levels(ax, dots)
            if legend:
                options = {"markerscale": np.sqrt(34 / size)}
                pad = legend_above(ax, 4, verbatim(shorten(self.column)), **options)
        else:
            self._draw_numbers(ax, dots)
            if legend and ax.get_legend_handles_labels()[1]:
                pad = legend_above(ax)
        ax.margins(0.06)
        self._name_outliers(ax)
        return self._finish(ax, title, pad)

    def _outliers(self) -> np.ndarray:
        """Return the places of the tasks far from the median in a direction, the furthest first."""
        if self.ids is None:
            return np.array([], dtype=int)
        off = np.abs(self.positions - np.median(self.positions, axis=0))
        spread = np.median(off, axis=0) / NORMAL_MAD
        far = (off / np.where(spread > 0, spread, np.inf)).max(axis=1)
        furthest = np.argsort(-far, kind="stable")[:MOST_NAMED]
        return furthest[far[furthest] > FAR]

    def _name_outliers(self, ax: Any) -> None:
        """Write names towards the middle, so that they stay on the chart; none over another."""
        middle, boxes = self.positions.mean(axis=0), []
        lay_out(ax)
        for t in self._outliers():
            right = self.positions[t, 0] > middle[0]
            name = ax.annotate(
                verbatim(shorten(self.ids[t], 18)), self.positions[t], textcoords="offset points",
                xytext=(-6 if right else 6, 0), ha="right" if right else "left", va="center",
                fontsize="small",
            )  # fmt: skip
            for up in (0, LINE, -LINE, 2 * LINE, -2 * LINE):
                name.xyann = name.xyann[0], up
                box = name.get_window_extent()
                if not any(box.overlaps(other) for other in boxes):
                    break
            boxes.append(box)

    def _draw_levels(self, ax: Any, dots: dict) -> None:
        texts = self.values.astype(str)
        levels, counts = np.unique(texts, return_counts=True)
        shown = sorted(levels[np.argsort(-counts, kind="stable")][: len(COLOURS) - 1].tolist())
        group = np.where(np.isin(texts, shown), texts, REST)
        if REST in group and REST not in shown:
            shown.append(REST)
        for level, colour, marker in zip(shown, COLOURS, MARKERS, strict=False):
            here = self.positions[group == level]
            lines = {"linewidths": 1.0} if marker == "x" else {}
            label = f"{verbatim(shorten(level, 16))} ({len(here)})"
            shown_as = {"color": on_page(colour, ax), "marker": marker, "label": label}
            ax.scatter(*here.T, **shown_as, **(dots | lines))

    def _draw_numbers(self, ax: Any, dots: dict) -> None:
        there = np.isfinite(self.values)
        if not there.all():
            missing = f"{verbatim(shorten(self.column))} missing"
            ax.scatter(*self.positions[~there].T, color="#8c8c8c", marker="x", s=dots["s"],
                       linewidths=1.0, label=missing)  # fmt: skip
        # an edge: the ends of the scale are near the colour of a light or a dark page
        edge = {"edgecolors": on_page("#595959", ax), "linewidths": 0.5}
        points = ax.scatter(
            *self.positions[there].T, c=self.values[there], cmap="cividis", **(dots | edge)
        )
        bar = ax.figure.colorbar(points, ax=ax, fraction=0.05, pad=0.03)
        bar.set_label(verbatim(shorten(self.column)))
        bar.outline.set_visible(False)

    def describe(self) -> str:
        """Return a description of the figure."""
        text = f"{pluralize(len(self.positions), 'task')} by {self.labels[0]} and {self.labels[1]}"
        text += "." if self.column is None else f", coloured by {self.column}."
        far = [str(self.ids[t]) for t in self._outliers()]
        return f"{text} Far from the others: {', '.join(far)}." if far else text


def _two_lines(label: str) -> str:
    """Return the label of an axis: the direction, and below it the features in it."""
    return verbatim(label).replace(" % (", " %\n(", 1)


def principal(features: np.ndarray, names: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return positions (T, 2) in the leading directions of standardised features, and labels.

    A label gives the share of the variance in a direction, the feature with the largest part, and
    the next one if its part is large too.
    """
    scale = features.std(axis=0)
    Z = (features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    left, sizes, right = np.linalg.svd(Z, full_matrices=False)
    share = sizes**2 / max((sizes**2).sum(), 1e-300)
    labels = []
    for i in range(2):
        # the sign of a direction is arbitrary: make its largest part positive
        sign = np.sign(right[i, np.abs(right[i]).argmax()]) or 1.0
        left[:, i], right[i] = left[:, i] * sign, right[i] * sign
        first, second = np.argsort(-np.abs(right[i]), kind="stable")[:2]
        named = [first, second] if abs(right[i, second]) > 0.25 else [first]
        parts = [f"{'-' if right[i, j] < 0 else '+'}{shorten(names[j], 14)}" for j in named]
        labels.append(f"direction {i + 1}, {100 * share[i]:.0f} % ({', '.join(parts)})")
    return left[:, :2] * sizes[:2], tuple(labels)


def _strongest(learner: Any) -> str | None:
    """Return the side column with the largest effect on the priors of the tasks."""
    columns = side_columns_of(learner)
    if not columns or not isinstance(learner.fitted_.tau, LinearTau):
        return columns[0] if columns else None
    sources = np.array(raw_columns(learner.fitted_.reader.map))
    Phi, M = learner.fitted_.tasks.Phi, learner.M_
    parts = [Phi[:, sources == name] @ M.T[sources == name] for name in columns]
    return columns[int(np.argmax([part.var(axis=0).sum() for part in parts]))]
