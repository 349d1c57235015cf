"""Do intervals hold what they promise?"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats as distributions

from condmeta.errors import DataError
from condmeta.evaluation.calibrate import Calibrated
from condmeta.evaluation.conformal import gives_std
from condmeta.plots.canvas import new_figure, prepare, set_title
from condmeta.tasks.held_out import as_tasks

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
COLOUR = "#d55e00"


class CoverageDisplay:
    """Draw how often intervals hold a new label against how often they should.

    Shares are means over tasks, each weighing the same, with a band of two standard errors over
    the tasks. Above the diagonal intervals are wider than need be, below it too narrow.

    Parameters
    ----------
    nominal, observed, error : (m,) arrays
        Coverages asked for, found, and the standard errors of the latter.
    n_tasks : int

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Drawn by `plot`.

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(d=2, n=8)
    >>> tasks, fresh = env.sample(80, random_state=0).split_tasks((40, 40), random_state=0)
    >>> model = cm.ConditionalRidge().fit(tasks)
    >>> display = cm.plots.CoverageDisplay.from_estimator(model, fresh).plot()
    >>> display.n_tasks, bool(abs(display.observed - display.nominal).max() < 0.15)
    (40, True)
    """

    def __init__(self, nominal, observed, error, n_tasks: int):
        self.nominal = nominal
        self.observed = observed
        self.error = error
        self.n_tasks = n_tasks

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, task: Any = None, side_info: Any = None
    ) -> CoverageDisplay:
        """Make the display of a fitted learner with intervals, on rows that it has not seen.

        `calibrate` gives any regressor intervals; `ConditionalRidge` has its own standard
        deviations, which are taken for those of a normal distribution. X, y, task and side_info as
        for `fit`, or a `TaskSet` alone.
        """
        calibrated = isinstance(estimator, Calibrated)
        if not calibrated and hasattr(estimator, "classes_"):
            raise DataError(
                "Intervals are for numbers. For probabilities: sklearn.calibration."
                "CalibrationDisplay.from_predictions(y, model.predict_proba(X, task=task)[:, 1])."
            )
        if not calibrated and not (hasattr(estimator, "predict") and gives_std(estimator)):
            raise DataError(
                f"A {type(estimator).__name__} has no intervals: make it with calibrate(learner, "
                "...), which gives them to any regressor."
            )
        tasks = as_tasks(X, y, task, side_info)
        y = tasks.restore_order(tasks.y)
        codes = tasks.restore_order(np.repeat(np.arange(len(tasks)), tasks.sizes))
        levels, inside = list(LEVELS), []
        if calibrated:
            levels = [c for c in levels if _reached(estimator, c)]
            for c in levels:
                low, high = estimator.predict_interval(tasks, coverage=c)
                inside.append((low <= y) & (y <= high))
        else:
            predicted, std = estimator.predict(tasks, return_std=True)
            reach = distributions.norm.ppf((1 + np.array(levels)) / 2)
            inside = [np.abs(y - predicted) <= q * std for q in reach]
        there = tasks.sizes > 0
        shares = np.array(
            [np.bincount(codes, hit, len(tasks))[there] / tasks.sizes[there] for hit in inside]
        )
        T = int(there.sum())
        error = shares.std(axis=1, ddof=1) / np.sqrt(T) if T > 1 else np.full(len(levels), np.nan)
        return cls(np.array(levels), shares.mean(axis=1), error, T)

    def plot(self, ax: Any = None, *, title: str | None = None):
        """Draw on `ax`, or on a new figure; return self."""
        if ax is None:
            ax = new_figure(4.4, 4.2).subplots()
        prepare(ax)
        ax.plot([0, 1], [0, 1], color="#333333", linewidth=1, linestyle=(0, (5, 2)))
        low, high = self.observed - 2 * self.error, self.observed + 2 * self.error
        ax.fill_between(self.nominal, low, high, color=COLOUR, alpha=0.15, linewidth=0)
        ax.plot(self.nominal, self.observed, "o-", color=COLOUR, linewidth=1.6, markersize=5)
        ax.set_xlim(0, 1.02)
        ax.set_ylim(0, 1.02)
        ax.set_aspect("equal")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        ax.set_xlabel("coverage asked for")
        ax.set_ylabel("coverage found")
        ax.text(0.03, 0.95, "wider than need be", transform=ax.transAxes, color="#595959",
                fontsize="small", va="top")  # fmt: skip
        ax.text(0.97, 0.04, "too narrow", transform=ax.transAxes, color="#595959",
                fontsize="small", ha="right")  # fmt: skip
        if title:
            set_title(ax, title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def describe(self) -> str:
        """Say in words what is drawn."""
        told = ", ".join(
            f"{100 * seen:.0f} % for {100 * asked:.0f} %"
            for asked, seen in zip(self.nominal, self.observed, strict=True)
            if asked in (0.5, 0.8, 0.9, 0.95)
        )
        return f"Coverage of intervals found on {self.n_tasks} tasks: {told}."


def _reached(model: Calibrated, coverage: float) -> bool:
    return any(scores.reaches(coverage) for scores in model._calibration.scores.values())
