"""The coverage of intervals on new rows against the coverage asked for."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy import stats as distributions

from condmeta.display.plots.canvas import Display, axes_to_draw, on_page
from condmeta.errors import DataError
from condmeta.meta.conformal import gives_std
from condmeta.tasks.call_input import as_tasks
from condmeta.text import pluralize
from condmeta.typing import Axes, FittedModel, Ids, Matrix, Numbers, SideInfo, Values

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
COLOUR = "#d55e00"


class CoverageDisplay(Display):
    """Draw how often intervals contain a new label against how often they should.

    The coverage found is the mean over tasks of equal weight, in a band of two standard errors over
    the tasks. Above the diagonal intervals are wider than necessary, below it too narrow.

    Parameters
    ----------
    nominal, observed, error : (m,) arrays
        Coverages asked for, coverages found, and standard errors of the coverages found.
    n_tasks : int

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

    def __init__(self, nominal: Numbers, observed: Numbers, error: Numbers, n_tasks: int):
        self.nominal, self.observed, self.error, self.n_tasks = nominal, observed, error, n_tasks

    @classmethod
    def from_estimator(
        cls,
        estimator: FittedModel,
        X: Matrix,
        y: Values = None,
        *,
        task: Ids = None,
        side_info: SideInfo = None,
    ) -> Self:
        """Make the display of a fitted learner with intervals, on rows that fit did not see.

        `calibrate` adds intervals to any regressor. `ConditionalRidge` has its own standard
        deviations; they are used as those of a normal distribution. X, y, task and side_info as
        for `fit`, or only a `TaskSet`. Of a `TableModel`, X is a table with the target.
        """
        if hasattr(estimator, "schema_"):
            X, side_info = estimator._fitted.read(X, side_info, labelled=True), None
            estimator = estimator.learner_
        if hasattr(estimator, "formula"):
            raise DataError(
                f"A {type(estimator).__name__} reads tables itself: compare the ends of its "
                "predict_interval with the labels."
            )
        calibrated = hasattr(estimator, "predict_interval")
        if not calibrated and hasattr(estimator, "classes_"):
            raise DataError(
                "Intervals are for numbers. To check probabilities, use "
                "sklearn.calibration.CalibrationDisplay.from_predictions(y, "
                "model.predict_proba(X, task=task)[:, 1])."
            )
        if not calibrated and not (hasattr(estimator, "predict") and gives_std(estimator)):
            raise DataError(
                f"A {type(estimator).__name__} has no intervals: make it with calibrate(learner, "
                "...), which adds intervals to any regressor."
            )
        tasks = as_tasks(X, y, task, side_info)
        y = tasks.restore_order(tasks.y)
        codes = tasks.restore_order(np.repeat(np.arange(len(tasks)), tasks.sizes))
        levels = list(LEVELS)
        if calibrated:
            scores = estimator.calibration.scores.values()
            levels = [c for c in LEVELS if any(one.reaches(c) for one in scores)]
            ends = (estimator.predict_interval(tasks, coverage=c) for c in levels)
            inside = [(low <= y) & (y <= high) for low, high in ends]
        else:
            predicted, std = estimator.predict(tasks, return_std=True)
            reach = distributions.norm.ppf((1 + np.array(levels)) / 2)
            inside = [np.abs(y - predicted) <= q * std for q in reach]
        at = np.flatnonzero(tasks.sizes > 0)
        shares = np.array([np.bincount(codes, hit, len(tasks))[at] for hit in inside])
        shares, T = shares / tasks.sizes[at], len(at)
        error = shares.std(axis=1, ddof=1) / np.sqrt(T) if T > 1 else np.full(len(levels), np.nan)
        return cls(np.array(levels), shares.mean(axis=1), error, T)

    def plot(self, ax: Axes | None = None, *, title: str | None = None) -> Self:
        """Draw on `ax`, or on a new figure; return self."""
        ax = axes_to_draw(ax, 4.4, 4.2)
        diagonal = {"color": on_page("#333333", ax), "linewidth": 1, "linestyle": (0, (5, 2))}
        ax.plot([0, 1], [0, 1], **diagonal)
        low, high = self.observed - 2 * self.error, self.observed + 2 * self.error
        ax.fill_between(self.nominal, low, high, color=COLOUR, alpha=0.15, linewidth=0)
        ax.plot(self.nominal, self.observed, "o-", color=COLOUR, linewidth=1.6, markersize=5)
        ax.set(xlim=(0, 1.02), ylim=(0, 1.02), aspect="equal")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        ax.set(xlabel="coverage asked for", ylabel="coverage found")
        text = {"transform": ax.transAxes, "color": on_page("#595959", ax), "fontsize": "small"}
        ax.text(0.03, 0.95, "wider than necessary", va="top", **text)
        ax.text(0.97, 0.04, "too narrow", ha="right", **text)
        return self._finish(ax, title)

    def describe(self) -> str:
        """Return a description of the figure."""
        coverages = ", ".join(
            f"{100 * found:.0f} % for {100 * asked:.0f} %"
            for asked, found in zip(self.nominal, self.observed, strict=True)
            if asked in (0.5, 0.8, 0.9, 0.95)
        )
        return f"Coverage of intervals found on {pluralize(self.n_tasks, 'task')}: {coverages}."
