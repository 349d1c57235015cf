"""Own estimate, prior and adapted coefficient of each task."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from condmeta.display.plots.canvas import (
    Display,
    add_notes,
    axes_to_draw,
    legend_above,
    on_page,
    row_names,
    shorten,
    size_in_points,
    verbatim,
)
from condmeta.display.plots.learners import learner_of
from condmeta.errors import DataError
from condmeta.fitted.known_statistics import own_estimates
from condmeta.fitted.tables import INTERCEPT, coefficient_names
from condmeta.text import pluralize
from condmeta.typing import Axes, FittedModel, Numbers, TaskId

OWN, PRIOR, ADAPTED = "#595959", "#0072b2", "#d55e00"
OWN_LABEL = "own estimate (least squares)"
FARTHEST = 0.4  # of the range of the other values: own estimates farther out are cut off
NAMED = 30  # up to this many tasks, each has a line with its name
ROW = 10.0  # least height of such a line, in points


class ShrinkageDisplay(Display):
    """Draw how one coefficient of each task shrinks from its own estimate towards its prior.

    Up to 30 tasks, or as many as the axes have room for: each has a line with its own estimate,
    prior tau(s), adapted coefficient, and an arrow from the own estimate to the adapted
    coefficient. More tasks: each is a point, the adapted coefficient against the prior, with a line
    to the own estimate; a task on the diagonal stays at its prior. The own estimate is the least-
    squares solution from the task's points alone. Tasks whose points do not determine it, and
    classifiers, have none. Own estimates far outside the range of the other values are cut off at
    the edge.

    Parameters
    ----------
    tasks : (T,) array
        Ids.
    prior, own, adapted : (T,) arrays
        In the user's units; `own` is NaN if a task has none.
    n : (T,) array
        Points of each task.
    feature : str
        The coefficient.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=2, n=6).sample(20, random_state=0)
    >>> model = cm.ConditionalRidge().fit(tasks)
    >>> display = cm.plots.ShrinkageDisplay.from_estimator(model, feature="x1").plot()
    >>> display.ax_.get_xlabel()
    'coefficient of x1'
    """

    def __init__(
        self,
        tasks: Sequence[TaskId],
        prior: Numbers,
        own: Numbers,
        adapted: Numbers,
        n: Numbers,
        feature: str = "coefficient",
    ):
        self.tasks, self.n, self.feature = tasks, n, feature
        self.prior, self.own, self.adapted = prior, own, adapted

    @classmethod
    def from_estimator(cls, estimator: FittedModel, feature: str | int | None = None) -> Self:
        """Make the display of a fitted learner that kept its tasks.

        `feature` is the name or position of a coefficient. The default is the coefficient with the
        largest standard deviation of priors over tasks, in the learner's units; without side
        information, that of adapted coefficients.
        """
        learner = learner_of(estimator, "A picture of shrinkage", tasks=True)
        fitted, store = learner.fitted_, learner.fitted_.tasks
        names, at = coefficient_names(fitted), np.flatnonzero(store.sizes > 0)
        prior, adapted = (fitted.scales.user_vector(part[at]) for part in (store.theta, store.coef))
        parts = prior, own_estimates(fitted)[at], adapted
        j = _place(feature, names, store.theta[at], store.coef[at])
        ids = np.array([str(task) for task in store.ids[at].tolist()], dtype=object)
        return cls(ids, *(part[:, j] for part in parts), store.sizes[at], names[j])

    def plot(
        self, ax: Axes | None = None, *, title: str | None = None, legend: bool = True
    ) -> Self:
        """Draw on `ax`, or on a new figure; return self."""
        T = len(self.tasks)
        ax = axes_to_draw(ax, 5.4, max(1.2 + 0.24 * T, 2.0) if T <= NAMED else 4.4)
        has_lines = T <= NAMED and size_in_points(ax)[1] >= ROW * T
        draw = self._draw_lines if has_lines else self._draw_points
        draw(ax)
        return self._finish(ax, title, legend_above(ax) if legend else None)

    def _draw_lines(self, ax: Any) -> None:
        order, rows = np.argsort(-self.prior, kind="stable"), np.arange(len(self.tasks))
        own, prior, adapted = (part[order] for part in (self.own, self.prior, self.adapted))
        low, high = self._limits()
        start = np.clip(own, low, high)
        hollow = on_page("#ffffff", ax)
        style = {"arrowstyle": "-|>", "color": "#8c8c8c", "shrinkA": 3, "shrinkB": 3}
        for row in rows[np.abs(start - adapted) > 0.04 * (high - low)]:  # never true of NaN
            ends = {"xy": (adapted[row], row), "xytext": (start[row], row)}
            ax.annotate("", **ends, arrowprops=style | {"linewidth": 0.9, "mutation_scale": 8})
        if np.isfinite(own).any():
            ax.plot(own, rows, "x", color=on_page(OWN, ax), markersize=5, label=OWN_LABEL)
        ax.plot(prior, rows, "D", color=PRIOR, mfc=hollow, markersize=5.5, label="prior")
        ax.plot(adapted, rows, "o", color=ADAPTED, markersize=5, label="adapted")
        shown = row_names(ax, (self.tasks[t] for t in order), 22)
        names = [f"{name} ({n})" for name, n in zip(shown, self.n[order], strict=True)]
        ax.set_yticks(rows, names, fontsize="small")
        ax.set(xlim=(low, high), ylim=(len(rows) - 0.4, -0.6), ylabel="task (number of points)")
        ax.set_xlabel(self._what())
        add_notes(ax, [])  # a long name in two lines
        ax.grid(False, axis="y")

    def _draw_points(self, ax: Any) -> None:
        low, high = self._limits()
        T, has_own = len(self.tasks), np.isfinite(self.own)
        size, raster = 6.0 if T < 300 else 4.0 if T < 3000 else 2.0, T > 2000
        if has_own.any():
            ends = (part[has_own] for part in (self.prior, self.own, self.adapted))
            ax.vlines(*ends, color=on_page("#bdbdbd", ax), linewidth=0.6, rasterized=raster)
            ax.plot(self.prior, self.own, "x", color=on_page(OWN, ax), markersize=size / 2,
                    label=OWN_LABEL, alpha=0.6, rasterized=raster)  # fmt: skip
        ax.plot([low, high], [low, high], color=PRIOR, linewidth=1.2, linestyle=(0, (5, 2)),
                label="prior")  # fmt: skip
        ax.plot(self.prior, self.adapted, ".", color=ADAPTED, markersize=size, label="adapted",
                rasterized=raster)  # fmt: skip
        ax.set(xlim=_window(self.prior), ylim=(low, high), ylabel="coefficient of the task")
        ax.set_xlabel(f"prior {self._what()}")
        add_notes(ax, [])

    def _what(self) -> str:
        """Return the name of the coefficient for an axis."""
        if self.feature == INTERCEPT:
            return "intercept"
        return f"coefficient of {verbatim(shorten(self.feature))}"

    def _limits(self) -> tuple[float, float]:
        """Return limits around priors and adapted coefficients, and own estimates not far off."""
        values = np.concatenate([self.prior, self.adapted])
        low, high, reach = values.min(), values.max(), FARTHEST * np.ptp(values)
        near = np.clip(self.own[np.isfinite(self.own)], low - reach, high + reach)
        return _window(np.concatenate([values, near]), 0.0 if len(self.tasks) <= NAMED else 0.5)

    def describe(self) -> str:
        """Return a description of the figure."""
        away, moved = np.abs(self.own - self.prior), np.abs(self.adapted - self.prior)
        there = np.isfinite(away) & (away > 0)
        what = "Intercept" if self.feature == INTERCEPT else f"Coefficient of {self.feature}"
        text = (
            f"{what} of {pluralize(len(self.tasks), 'task')}. Priors from "
            f"{self.prior.min():.3g} to {self.prior.max():.3g}, adapted from "
            f"{self.adapted.min():.3g} to {self.adapted.max():.3g}."
        )
        if not there.any():
            return f"{text} No task has an own estimate."
        share = 100 * min(float(np.median(moved[there] / away[there])), 1.0)
        return (
            f"{text} Tasks with an own estimate: {there.sum()}; the median one moves {share:.0f} % "
            "of the way from its prior to its own estimate."
        )


def _place(feature: Any, names: list[str], prior: np.ndarray, adapted: np.ndarray) -> int:
    """Return the position of a coefficient."""
    if feature is None:
        varies = np.ptp(prior, axis=0).any()
        return int(np.argmax((prior if varies else adapted).std(axis=0)))
    if feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    raise DataError(f"There is no coefficient {feature!r}; there are {', '.join(names)}.")


def _window(values: np.ndarray, tail: float = 0.5) -> tuple[float, float]:
    """Return limits that the most extreme values, `tail` percent at each end, do not stretch."""
    low, high = np.percentile(values, [tail, 100 - tail])
    room = 0.08 * (high - low) or 1.0
    return float(low - room), float(high + room)
