"""Errors on held-out tasks of models with other transformations of x and y."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from condmeta.fitted.scales import ALMOST_INFINITE, Scales
from condmeta.fitted.splines import SPLINES, Splines
from condmeta.fitted.target import TargetScale
from condmeta.fitted.x_transformer import fit_transformer
from condmeta.inner.scores import row_scores
from condmeta.inner.squared import SquaredState
from condmeta.learners.form import Form
from condmeta.meta.prior import SMALLEST, WELL_KNOWN
from condmeta.meta.ridge_judge import HeldOutFeatures, Judge, RidgeSetting, SplitStatistics
from condmeta.meta.task_statistics import FEW, SAMPLE
from condmeta.meta.wide_tasks import WIDE
from condmeta.tasks.numbers import power_of_two
from condmeta.tasks.points import Points
from condmeta.tasks.splits import first_points, fold_numbers, half_of
from condmeta.tasks.weights import masses, repeats, task_sums

LOSSES = {"absolute": np.abs, "squared": np.square}
NEAR_ONE = 0.15  # a power this close to 1 hardly changes labels


class ScaledRows(NamedTuple):
    """Rows with one transformation of x: their scales, and X (N, d) without constant columns."""

    scales: Scales
    X: np.ndarray


class Trial:
    """Tasks to compare forms on: their points in an order by content, and their features (T, k).

    `below` (N,) are out-of-task predictions of a shared model, for forms that have it as base.
    """

    sample: int  # of tasks
    n_views: int  # at which forms are judged
    setting: Any  # with which all forms are judged
    largest_label = ALMOST_INFINITE

    def __init__(
        self, points: Points, below: np.ndarray | None, Phi: np.ndarray, n_jobs: int = 1,
        criterion: Any = None,
    ):  # fmt: skip
        self.points, self.below, self.Phi, self.n_jobs = points, below, Phi, n_jobs
        self._judged: dict[Form, Any] = {}
        self._rows: dict[Any, ScaledRows] = {}

    @cached_property
    def splines(self) -> Splines:
        """The splines of the columns of x."""
        return Splines.learn(self.points.X, masses(self.points.weight))

    def is_other(self, form: Form) -> bool:
        """Return whether a form differs from the one without its transformations."""
        if form.x_transform != SPLINES:
            return True
        n_columns = self.points.X.shape[1] + 2 * int(self.splines.bends.sum())
        return bool(self.splines.bends.any()) and n_columns <= WIDE

    def rows(self, x_transform: Any) -> ScaledRows:
        """Return the rows with a transformation of x; labels have no scale yet."""
        if x_transform not in self._rows:
            X, weight, transformer = self.points.X, masses(self.points.weight), self.splines
            if x_transform != SPLINES:
                transformer = fit_transformer(x_transform, X, weight)
            scales = Scales.learn(
                X, self.points.y, "standard", True, None, transformer=transformer, weight=weight
            )
            kept = np.ascontiguousarray(scales.rows(X)[:, scales.kept])
            self._rows[x_transform] = ScaledRows(scales, kept)
        return self._rows[x_transform]

    def errors(self, form: Form, number: int, setting: Any = None) -> np.ndarray:
        """Return the sums of the losses of the tasks that a fold holds out, (views, T)."""
        return self._of(form).errors(number, setting or self.setting)

    def density(self, form: Form, number: int, setting: Any = None) -> float:
        """Return the log density of all labels of the tasks that a fold holds out."""
        return self._of(form).density(number, setting or self.setting)

    def settings(self, form: Form) -> list[Any]:
        """Return the settings with which a form may be better, other than `setting`.

        If coefficients go together and the metric does not know it, or the map is shrunken too much
        or too little, other forms seem to gain.
        """
        whole = self._of(form).whole
        d = whole.X.shape[1]
        known = np.minimum(whole.count, d).sum() >= WELL_KNOWN * d * (d + 1) / 2
        metrics = [self.setting._replace(metric=name) for name in ("identity", "full")]
        kappas = [self.setting._replace(kappa=kappa) for kappa in (100.0, 1.0)]
        return metrics[: 1 + bool(known)] + (kappas if self.Phi.shape[1] else [])

    def folds(self, form: Form) -> range:
        """Return the numbers of the folds of tasks, which are those of all forms."""
        return range(len(self._of(form).judge.folds))

    def _of(self, form: Form) -> Any:
        if form not in self._judged:
            self._judged[form] = self._try(form)
        return self._judged[form]

    def _try(self, form: Form) -> Any:
        """Return a form to be judged: an object with `judge`, `whole`, `errors` and `density`."""
        raise NotImplementedError


class FormTrial(Trial):
    """Forms of a model of numbers; errors are in the units of y.

    The views are: without points, with 1, 2, 5 points, and with half of all.
    """

    sample, n_views = SAMPLE, len(FEW) + 2
    setting = RidgeSetting("diagonal", "shared", 10.0)

    def __init__(
        self, points: Points, below: np.ndarray | None, Phi: np.ndarray, n_jobs: int = 1,
        criterion: Any = None,
    ):  # fmt: skip
        super().__init__(points, below, Phi, n_jobs)
        self.loss, self.means = LOSSES[criterion], criterion == "squared"
        self.unit = power_of_two(np.abs(points.y).max(initial=0.0))  # squares stay finite
        every = points._replace(X=np.arange(len(points.y)))
        support, self.query = half_of(every, True), half_of(every, False)
        shown = [*(first_points(support, n) for n in FEW), support]
        self.parts = [every, *shown, self.query]  # X are positions of rows
        self._states: dict[Any, list[SquaredState]] = {}

    @cached_property
    def power(self) -> TargetScale:
        """The power of y."""
        return TargetScale.learn("yeo-johnson", self.points.y, _repeats(self.points.weight))

    def is_other(self, form: Form) -> bool:
        """Return whether a form differs from the one without its transformations."""
        powers = form.y_transform == "yeo-johnson"
        return super().is_other(form) and not (powers and abs(self.power.power - 1) <= NEAR_ONE)

    def statistics(self, x_transform: Any, y: np.ndarray) -> list[SquaredState]:
        """Return the statistics of all parts of the rows, for labels y (N,)."""
        X, known = self.rows(x_transform).X, self._states.get(x_transform)
        rows = [(X[at.X], y[at.X], at.offsets, at.weight) for at in self.parts]
        if known is not None:  # X^T X does not depend on the labels
            return [state.with_labels(*part) for state, part in zip(known, rows, strict=True)]
        self._states[x_transform] = [SquaredState.of(*part) for part in rows]
        return self._states[x_transform]

    def _try(self, form: Form) -> TriedForm:
        return TriedForm(self, form)


class TriedForm:
    """One form of the model, fitted without each fold of tasks."""

    def __init__(self, trial: FormTrial, form: Form):
        _, y, _, weight = trial.points
        target = None
        if form.y_transform is not None:
            target = trial.power if form.y_transform == "yeo-johnson" else None
            target = target or TargetScale.learn(form.y_transform, y, _repeats(weight))
        labels = y if target is None else target.apply(y)
        labels = labels if form.base is None else labels - trial.below
        rows = trial.rows(form.x_transform)
        scales = rows.scales.with_target(labels, np.mean, masses(weight), follows_y=True)
        states = trial.statistics(form.x_transform, scales.target(labels))
        whole, *shown, judging = states
        parts, n_tasks = SplitStatistics(whole, tuple(shown), judging), len(trial.Phi)
        features = HeldOutFeatures(trial.Phi, trial.Phi)
        folds = fold_numbers(n_tasks)
        self.judge = Judge(parts, trial.Phi, features, folds, True, trial.n_jobs)
        self.trial, self.form, self.scales = trial, form, scales
        self.target, self.whole = target, trial.points._replace(X=rows.X)
        self.rows = trial.query._replace(X=rows.X[trial.query.X])

    def errors(self, number: int, setting: RidgeSetting) -> np.ndarray:
        """Return the sums of the losses of held-out tasks (views, T); see `FormTrial`."""
        trial, (_, held) = self.trial, self.judge.folds[number]
        rows, asked = self.rows.take(held), trial.query.take(held)
        codes = np.repeat(np.arange(len(held)), rows.sizes)
        views = self.judge.coefficients(setting, number, False)
        views[0] = self.judge.pooled.weights[number]
        target, found = self.target, []
        if target is not None and trial.means:
            noise = np.sqrt(self.judge.prior(setting, number).s2)
            target = target._replace(spread=float(self.scales.y_scale * noise))
        for W in views:
            predicted = self.scales.answer(row_scores(rows.X, W, codes, trial.n_jobs))
            if self.form.base is not None:
                predicted = predicted + trial.below[asked.X]
            predicted = predicted if target is None else target.undo(predicted)
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
