"""Errors on held-out tasks of models with other transformations of x and y."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from condmeta.fitted.scales import Scales
from condmeta.fitted.splines import SPLINES, Splines
from condmeta.fitted.target import TargetScale
from condmeta.inner.scores import row_scores
from condmeta.inner.squared import SquaredState
from condmeta.learners.inputs import Form
from condmeta.meta.prior import SMALLEST, WELL_KNOWN
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


class FormTrial:
    """Tasks to compare forms on: their points in an order by content, and their features (T, k)."""

    def __init__(self, points: Points, Phi: np.ndarray, criterion: str, n_jobs: int = 1):
        self.points, self.Phi, self.n_jobs = points, Phi, n_jobs
        self.loss = LOSSES[criterion]
        self.unit = power_of_two(np.abs(points.y).max(initial=0.0))  # squares stay finite
        self.query = half_of(points._replace(X=np.arange(len(points.y))), False)
        self._judged: dict[Form, TriedForm] = {}

    @cached_property
    def splines(self) -> Splines:
        """The splines of the columns of x."""
        return Splines.learn(self.points.X, masses(self.points.weight))

    @cached_property
    def power(self) -> TargetScale:
        """The power of y."""
        return TargetScale.learn("yeo-johnson", self.points.y, _repeats(self.points.weight))

    def is_other(self, form: Form) -> bool:
        """Return whether a form differs from the one without its transformations."""
        if form.x_transform == SPLINES:
            n_columns = self.points.X.shape[1] + 2 * int(self.splines.bends.sum())
            if not self.splines.bends.any() or n_columns > WIDE:
                return False
        return form.y_transform != "yeo-johnson" or abs(self.power.power - 1) > NEAR_ONE

    def errors(self, form: Form, number: int, setting: RidgeSetting = SETTING) -> np.ndarray:
        """Return the sums of the losses of the tasks that a fold holds out, (views, T).

        They are in the units of y. The views are: without points, with 1, 2, 5 points, and with
        half of all.
        """
        return self._of(form).errors(number, setting)

    def density(self, form: Form, number: int, setting: RidgeSetting = SETTING) -> float:
        """Return the log density of all labels of the tasks that a fold holds out."""
        return self._of(form).density(number, setting)

    def settings(self, form: Form) -> list[RidgeSetting]:
        """Return the settings with which a form may be better, other than `SETTING`.

        If coefficients go together and the metric does not know it, or the map is shrunken too much
        or too little, other forms seem to gain.
        """
        whole = self._of(form).judge.parts.whole
        d = whole.moment.shape[1]
        known = np.minimum(whole.count, d).sum() >= WELL_KNOWN * d * (d + 1) / 2
        metrics = [SETTING._replace(metric=name) for name in ("identity", "full")]
        kappas = [SETTING._replace(kappa=kappa) for kappa in (100.0, 1.0)]
        return metrics[: 1 + bool(known)] + (kappas if self.Phi.shape[1] else [])

    def _of(self, form: Form) -> TriedForm:
        if form not in self._judged:
            self._judged[form] = TriedForm(self, form)
        return self._judged[form]

    def folds(self, form: Form) -> range:
        """Return the numbers of the folds of tasks, which are those of all forms."""
        return range(len(self._of(form).judge.folds))


class TriedForm:
    """One form of the model, fitted without each fold of tasks."""

    def __init__(self, trial: FormTrial, form: Form):
        X, y, _, weight = trial.points
        x_transform = trial.splines if form.x_transform == SPLINES else form.x_transform
        target = None
        if form.y_transform is not None:
            target = trial.power if form.y_transform == "yeo-johnson" else None
            target = target or TargetScale.learn(form.y_transform, y, _repeats(weight))
        labels = y if target is None else target.apply(y)
        scales = Scales.learn(
            X, labels, "standard", True, np.mean, transformer=x_transform, weight=masses(weight),
            follows_y=True,
        )  # fmt: skip
        rows = trial.points._replace(X=scales.rows(X), y=scales.target(labels))
        rows = rows.columns(scales.kept)
        support, query = half_of(rows, True), half_of(rows, False)
        shown = [*(first_points(support, n) for n in FEW), support]
        whole, *shown, judging = (SquaredState.of(*part) for part in (rows, *shown, query))
        parts, n_tasks = SplitStatistics(whole, tuple(shown), judging), len(trial.Phi)
        features = HeldOutFeatures(trial.Phi, trial.Phi)
        folds = fold_numbers(n_tasks)
        self.judge = Judge(parts, trial.Phi, features, folds, True, trial.n_jobs)
        self.trial, self.scales, self.target, self.rows = trial, scales, target, query

    def errors(self, number: int, setting: RidgeSetting) -> np.ndarray:
        """Return the sums of the losses of held-out tasks (views, T); see `FormTrial.errors`."""
        trial, (_, held) = self.trial, self.judge.folds[number]
        rows, asked = self.rows.take(held), trial.query.take(held)
        codes = np.repeat(np.arange(len(held)), rows.sizes)
        views = self.judge.coefficients(setting, number, False)
        views[0] = self.judge.pooled.weights[number]
        found = []
        for W in views:
            predicted = self.scales.answer(row_scores(rows.X, W, codes, trial.n_jobs))
            predicted = predicted if self.target is None else self.target.undo(predicted)
            lost = trial.loss((predicted - asked.y) / trial.unit)
            lost = lost if asked.weight is None else lost * repeats(asked.weight)
            found.append(task_sums(lost, rows.offsets))
        return np.array(found)

    def density(self, number: int, setting: RidgeSetting) -> float:
        """Return the log density of all labels y of the tasks that a fold holds out."""
        _, held = self.judge.folds[number]
        labels = self.trial.points.take(held)
        slopes = np.full(len(labels.y), self.scales.y_scale)  # dy / d(what the model learns)
        if self.target is not None:
            slopes = slopes * self.target.slope(labels.y)
        logs = np.log(np.maximum(slopes, SMALLEST))
        logs = logs if labels.weight is None else logs * repeats(labels.weight)
        return self.judge.density(setting, number) - float(logs.sum())


def _repeats(weight: Any) -> np.ndarray | None:
    return None if weight is None else repeats(weight)
