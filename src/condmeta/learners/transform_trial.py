"""Errors on held-out tasks of models with other transformations of x and y."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.fitted.scales import Scales
from condmeta.fitted.splines import SPLINES
from condmeta.fitted.target import TargetScale
from condmeta.inner.scores import row_scores
from condmeta.inner.squared import SquaredState
from condmeta.learners.inputs import Form
from condmeta.meta.ridge_judge import HeldOutFeatures, Judge, RidgeSetting, SplitStatistics
from condmeta.meta.task_statistics import FEW
from condmeta.meta.wide_tasks import WIDE
from condmeta.tasks.numbers import power_of_two
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_points, fold_numbers, half_of
from condmeta.tasks.weights import masses, repeats, task_sums

LOSSES = {"absolute": np.abs, "squared": np.square}
SETTING = RidgeSetting("diagonal", "shared", 10.0)  # with which all forms are judged
NEAR_ONE = 0.15  # a power this close to 1 hardly changes labels


class FormTrial(NamedTuple):
    """Tasks to compare forms on: their points in an order by content, and their features (T, k)."""

    points: Points
    Phi: np.ndarray
    n_jobs: int = 1

    def errors(self, form: Form, criterion: str) -> np.ndarray | None:
        """Return the sums of the losses of held-out tasks (views, T), in the units of y.

        The views are: without points, with 1, 2, 5 points, and with half of all. None if the form
        is no different from the one without this transformation, or has too many columns.
        """
        X, y, _, weight = self.points
        target = None
        if form.y_transform is not None:
            target = TargetScale.learn(form.y_transform, y, _repeats(weight))
            if abs(target.power - 1) <= NEAR_ONE:
                return None
        labels = y if target is None else target.apply(y)
        scales = Scales.learn(
            X, labels, "standard", True, np.mean, transformer=form.x_transform,
            weight=masses(weight), follows_y=True,
        )  # fmt: skip
        bends = len(scales.x_mean) > X.shape[1]
        if len(scales.x_mean) > WIDE or (form.x_transform == SPLINES and not bends):
            return None
        rows = self.points._replace(X=scales.rows(X), y=scales.target(labels)).columns(scales.kept)
        support, query = half_of(rows, True), half_of(rows, False)
        asked = half_of(self.points._replace(X=np.arange(len(y))), False)
        shown = [*(first_points(support, n) for n in FEW), support]
        whole, *shown, judging = (SquaredState.of(*part) for part in (rows, *shown, query))
        parts = SplitStatistics(whole, tuple(shown), judging)
        features = HeldOutFeatures(self.Phi, self.Phi)
        judge = Judge(parts, self.Phi, features, fold_numbers(len(self.Phi)), True, self.n_jobs)
        weights = held_out_weights(judge, len(self.Phi))
        codes = np.repeat(np.arange(len(self.Phi)), query.sizes)
        unit = power_of_two(np.abs(y).max(initial=0.0))  # squares stay finite
        found = []
        for W in weights:
            predicted = scales.answer(row_scores(query.X, W, codes, self.n_jobs))
            predicted = predicted if target is None else target.undo(predicted)
            lost = LOSSES[criterion]((predicted - asked.y) / unit)
            lost = lost if weight is None else lost * repeats(asked.weight)
            found.append(task_sums(lost, query.offsets))
        return np.array(found)


def held_out_weights(judge: Judge, n_tasks: int) -> list[np.ndarray]:
    """Return the coefficients (T, d) of tasks in the fold that they are held out in, by view."""
    views = [np.zeros((n_tasks, judge.parts.whole.moment.shape[1])) for _ in judge.no_errors]
    for number, (_, held) in enumerate(judge.folds):
        for all_tasks, found in zip(views, judge.coefficients(SETTING, number, False), strict=True):
            all_tasks[held] = found
        views[0][held] = judge.pooled.weights[number]
    return views


def _repeats(weight: Any) -> np.ndarray | None:
    return None if weight is None else repeats(weight)
