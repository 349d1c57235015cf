"""Own estimate, prior and adapted coefficient of each task."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.tables import coefficient_names
from condmeta.estimators.task_model import user_vector
from condmeta.plots.canvas import legend_above, new_figure, prepare, set_title, shorten
from condmeta.plots.learners import learner_of

OWN, PRIOR, ADAPTED = "#595959", "#0072b2", "#d55e00"
NAMED = 30  # tasks up to which each has a line of its own, with its name


class ShrinkageDisplay:
    """Draw, for one coefficient, how tasks are drawn from their own estimate towards their prior.

    Up to 30 tasks each have a line: own estimate, prior tau(s), adapted coefficient, and an arrow
    from the first to the last. More tasks are points: the adapted coefficient against the prior,
    with a line to the own estimate; on the diagonal a task stays at its prior. The own estimate is
    the same problem solved from zero instead of the prior: it needs no more points than the task
    has, and few points leave it near zero.

    Parameters
    ----------
    tasks : (T,) array
        Ids.
    prior, own, adapted : (T,) arrays
        In the user's units; `own` is nan where a task has none.
    n : (T,) array
        Points of each task.
    feature : str
        The coefficient.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Drawn by `plot`.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=2, n=6).sample(20, random_state=0)
    >>> model = cm.ConditionalRidge().fit(tasks)
    >>> display = cm.plots.ShrinkageDisplay.from_estimator(model, feature="x1").plot()
    >>> display.ax_.get_xlabel()
    'coefficient of x1'
    """

    def __init__(self, tasks, prior, own, adapted, n, feature: str = "coefficient"):
        self.tasks = tasks
        self.prior = prior
        self.own = own
        self.adapted = adapted
        self.n = n
        self.feature = feature

    @classmethod
    def from_estimator(cls, estimator: Any, feature: Any = None) -> ShrinkageDisplay:
        """Make the display of a fitted learner that kept its tasks.

        `feature` is the name of a coefficient, or its place; by default the one whose priors differ
        most, in units of the spread of the adapted ones.
        """
        learner = learner_of(estimator, "A picture of shrinkage", tasks=True)
        store, names = learner._store, coefficient_names(learner)
        if store.own is None:
            raise DataError(f"{type(learner).__name__} shrinks nothing: it has no own estimates.")
        at = np.flatnonzero(store.sizes > 0)
        user = learner._head.preparation
        parts = [user_vector(user, part[at]) for part in (store.theta, store.own, store.coef)]
        j = _place(feature, names, parts[0], parts[2])
        ids = np.array([str(task) for task in store.ids[at].tolist()], dtype=object)
        return cls(ids, *(part[:, j] for part in parts), store.sizes[at], names[j])

    def plot(self, ax: Any = None, *, title: str | None = None, legend: bool = True):
        """Draw on `ax`, or on a new figure; return self."""
        few = len(self.tasks) <= NAMED
        if ax is None:
            height = 1.2 + 0.24 * len(self.tasks) if few else 4.4
            ax = new_figure(5.4, max(height, 2.0)).subplots()
        prepare(ax)
        if few:
            self._draw_lines(ax)
        else:
            self._draw_points(ax)
        pad = legend_above(ax) if legend else None
        if title:
            set_title(ax, title, pad)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_lines(self, ax: Any) -> None:
        order = np.argsort(-self.prior, kind="stable")
        rows = np.arange(len(order))
        own, prior, adapted = (part[order] for part in (self.own, self.prior, self.adapted))
        ax.grid(False, axis="y")
        span = np.ptp(np.concatenate([part[np.isfinite(part)] for part in (own, prior, adapted)]))
        for row in rows[np.abs(own - adapted) > 0.04 * span]:
            ends = {"xy": (adapted[row], row), "xytext": (own[row], row)}
            style = {"arrowstyle": "-|>", "color": "#8c8c8c", "shrinkA": 3, "shrinkB": 3}
            ax.annotate("", **ends, arrowprops=style | {"linewidth": 0.9, "mutation_scale": 8})
        ax.plot(own, rows, "x", color=OWN, markersize=5, label="own points, from zero")
        ax.plot(prior, rows, "D", color=PRIOR, mfc="white", markersize=5.5, label="prior")
        ax.plot(adapted, rows, "o", color=ADAPTED, markersize=5, label="adapted")
        names = [f"{shorten(self.tasks[t], 22)} ({self.n[t]})" for t in order]
        ax.set_yticks(rows, names, fontsize="small")
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set_xlabel(f"coefficient of {shorten(self.feature)}")
        ax.set_ylabel("task (number of points)")

    def _draw_points(self, ax: Any) -> None:
        low, high = _window(np.concatenate([self.prior, self.adapted, self.own]))
        ax.vlines(
            self.prior, self.own, self.adapted, color="#bdbdbd", linewidth=0.6,
            label="from own points, from zero",
        )  # fmt: skip
        ax.plot([low, high], [low, high], color=PRIOR, linewidth=1.2, linestyle=(0, (5, 2)),
                label="prior")  # fmt: skip
        ax.plot(
            self.prior, self.adapted, ".", color=ADAPTED, markersize=_marker(len(self.prior)),
            label="adapted", rasterized=len(self.prior) > 2000,
        )  # fmt: skip
        ax.set_xlim(*_window(self.prior))
        ax.set_ylim(low, high)
        ax.set_xlabel(f"prior coefficient of {shorten(self.feature)}")
        ax.set_ylabel("coefficient of the task")

    def describe(self) -> str:
        """Say in words what is drawn."""
        away = np.abs(self.own - self.prior)
        moved = np.abs(self.adapted - self.prior)
        there = np.isfinite(away) & (away > 0)
        share = float(np.median(moved[there] / away[there])) if there.any() else 0.0
        return (
            f"Coefficient of {self.feature} of {len(self.tasks)} tasks. Priors from "
            f"{self.prior.min():.3g} to {self.prior.max():.3g}, adapted from "
            f"{self.adapted.min():.3g} to {self.adapted.max():.3g}. The median task moves "
            f"{100 * min(share, 1.0):.0f} % of the way from its prior to its own estimate."
        )


def _place(feature: Any, names: list[str], prior: np.ndarray, adapted: np.ndarray) -> int:
    """Return the place of a coefficient among their names."""
    if feature is None:
        return int(np.argmax(prior.std(axis=0) / np.maximum(adapted.std(axis=0), 1e-300)))
    if feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    raise DataError(f"There is no coefficient {feature!r}; there are {', '.join(names)}.")


def _window(values: np.ndarray) -> tuple[float, float]:
    """Return limits that a few far values do not stretch."""
    values = values[np.isfinite(values)]
    low, high = np.percentile(values, [0.5, 99.5])
    room = 0.08 * (high - low) or 1.0
    return float(low - room), float(high + room)


def _marker(count: int) -> float:
    return 6.0 if count < 300 else 4.0 if count < 3000 else 2.0
