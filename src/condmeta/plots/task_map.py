"""Tasks as points: which have like coefficients, or like side information."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.linear_map import LinearMap
from condmeta.estimators.tables import coefficient_names
from condmeta.estimators.task_model import user_vector
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.plots.canvas import legend_above, new_figure, prepare, set_title, shorten
from condmeta.plots.learners import learner_of, side_columns_of, side_values

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#595959")
MARKERS = ("o", "s", "^", "D", "v", "P", "x")
REST = "others"


class TaskMapDisplay:
    """Draw tasks in the two principal directions in which they differ most.

    Parameters
    ----------
    positions : (T, 2) array
    labels : (str, str)
        Of the axes.
    values : (T,) array or None
        A side column: numbers, or texts.
    column : str or None
        Its name.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Drawn by `plot`.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=3, n=6).sample(30, random_state=0)
    >>> display = cm.plots.TaskMapDisplay.from_estimator(cm.ConditionalRidge().fit(tasks)).plot()
    >>> display.positions.shape, display.column
    ((30, 2), 's')
    """

    def __init__(self, positions, labels, values=None, column: str | None = None):
        self.positions = positions
        self.labels = labels
        self.values = values
        self.column = column

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, of: str = "coefficients", colour_by: str | None = None
    ) -> TaskMapDisplay:
        """Make the display of the tasks that a fitted learner kept.

        Parameters
        ----------
        of : "coefficients" or "side"
            Whether tasks stand by their adapted coefficients, or by their side information, each
            feature in its standard deviations.
        colour_by : str, optional
            A side column; by default the one that moves the priors most.
        """
        learner = learner_of(estimator, "A map of tasks", tasks=True)
        store = learner._store
        at = np.flatnonzero(store.sizes > 0)
        if len(at) < 2:
            raise DataError(f"A map of tasks takes two tasks or more. There are {len(at)}.")
        if of == "coefficients":
            names = coefficient_names(learner)
            features = user_vector(learner._head.preparation, store.coef[at])
        elif of == "side":
            if store.Phi is None or not store.Phi.shape[1]:
                raise DataError("The model keeps no side information of its tasks.")
            names, features = list(learner.side_features_), store.Phi[at]
        else:
            raise DataError(f"A map is of='coefficients' or of='side'. Got {of!r} instead.")
        positions, labels = principal(features, names)
        if positions.shape[1] == 1:  # one feature: the number of points is the other axis
            positions = np.column_stack([positions, store.sizes[at]])
            labels = (*labels, "number of points")
        column = colour_by if colour_by is not None else _strongest(learner)
        values = None if column is None else side_values(learner, column)[at]
        return cls(positions, labels, values, column)

    def plot(self, ax: Any = None, *, title: str | None = None, legend: bool = True):
        """Draw on `ax`, or on a new figure; return self."""
        if ax is None:
            ax = new_figure(5.4, 4.4).subplots()
        prepare(ax)
        size = 34 if len(self.positions) < 300 else 14 if len(self.positions) < 3000 else 5
        dots = {"s": size, "alpha": 0.85, "linewidths": 0, "rasterized": len(self.positions) > 2000}
        pad = None
        if self.values is None:
            ax.scatter(*self.positions.T, color=COLOURS[0], **dots)
        elif self.values.dtype.kind not in "fiub":
            self._draw_levels(ax, dots)
            if legend:
                options = {"title": shorten(self.column), "markerscale": np.sqrt(34 / size)}
                longest = max(map(len, ax.get_legend_handles_labels()[1]))
                pad = legend_above(ax, 4 if longest < 13 else 3 if longest < 18 else 2, **options)
        else:
            self._draw_numbers(ax, dots)
            if legend and ax.get_legend_handles_labels()[1]:
                pad = legend_above(ax)
        ax.set_xlabel(self.labels[0])
        ax.set_ylabel(self.labels[1])
        ax.margins(0.06)
        if title:
            set_title(ax, title, pad)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_levels(self, ax: Any, dots: dict) -> None:
        levels, counts = np.unique(self.values.astype(str), return_counts=True)
        first = levels[np.argsort(-counts, kind="stable")][: len(COLOURS) - 1]
        shown = [*sorted(first.tolist())]
        group = np.where(np.isin(self.values.astype(str), shown), self.values.astype(str), REST)
        if REST in group and REST not in shown:
            shown.append(REST)
        for level, colour, marker in zip(shown, COLOURS, MARKERS, strict=False):
            here = self.positions[group == level]
            lines = {"linewidths": 1.0} if marker == "x" else {}
            label = f"{shorten(level, 16)} ({len(here)})"
            ax.scatter(*here.T, color=colour, marker=marker, label=label, **(dots | lines))

    def _draw_numbers(self, ax: Any, dots: dict) -> None:
        there = np.isfinite(self.values)
        if not there.all():
            ax.scatter(*self.positions[~there].T, color="#bdbdbd", marker="x", s=dots["s"],
                       linewidths=1.0, label=f"{shorten(self.column)} missing")  # fmt: skip
        points = ax.scatter(*self.positions[there].T, c=self.values[there], cmap="cividis", **dots)
        bar = ax.figure.colorbar(points, ax=ax, fraction=0.05, pad=0.03)
        bar.set_label(shorten(self.column))
        bar.outline.set_visible(False)

    def describe(self) -> str:
        """Say in words what is drawn."""
        text = f"{len(self.positions)} tasks by {self.labels[0]} and {self.labels[1]}"
        return f"{text}." if self.column is None else f"{text}, coloured by {self.column}."


def principal(features: np.ndarray, names: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return positions (T, 2 or 1) in the leading directions of standardised features, and labels.

    A label says how much of the variance lies in a direction, and which features make it up.
    """
    scale = features.std(axis=0)
    Z = (features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    left, sizes, right = np.linalg.svd(Z, full_matrices=False)
    count = min(2, features.shape[1])
    share = sizes**2 / max((sizes**2).sum(), 1e-300)
    labels = []
    for i in range(count):
        # the sign of a direction is arbitrary: let its largest part be positive
        sign = np.sign(right[i, np.abs(right[i]).argmax()]) or 1.0
        left[:, i], right[i] = left[:, i] * sign, right[i] * sign
        order = np.argsort(-np.abs(right[i]), kind="stable")[:2]
        parts = [f"{'-' if right[i, j] < 0 else '+'}{shorten(names[j], 14)}" for j in order
                 if abs(right[i, j]) > 0.25]  # fmt: skip
        labels.append(f"direction {i + 1}, {100 * share[i]:.0f} % ({', '.join(parts)})")
    if features.shape[1] == 1:
        labels = [shorten(names[0])]
        return features, tuple(labels)
    return left[:, :count] * sizes[:count], tuple(labels)


def _strongest(learner: Any) -> str | None:
    """Return the side column that moves the priors of the tasks most."""
    columns = side_columns_of(learner)
    if not columns or not isinstance(learner, LinearMap):
        return columns[0] if columns else None
    sources = np.array(raw_columns(learner._map))
    parts = [learner._store.Phi[:, sources == name] @ learner.M_.T[sources == name]
             for name in columns]  # fmt: skip
    return columns[int(np.argmax([part.var(axis=0).sum() for part in parts]))]
