"""Log losses on held-out tasks of models of counts, with other transformations of x."""

from __future__ import annotations

import numpy as np

from condmeta.fitted.scales import LARGEST
from condmeta.inner.likelihoods import NegativeBinomial
from condmeta.learners.form import Form
from condmeta.learners.form_trial import Trial
from condmeta.meta.logistic_choice import LogisticSetting
from condmeta.meta.row_judge import FEW, SAMPLE, RowJudge, held_out_views
from condmeta.tasks.points import Points
from condmeta.tasks.splits import fold_numbers


class CountFormTrial(Trial):
    """Forms of a model of counts; errors are log losses.

    The views are: with half of all points, with 1, with 3, and without any.
    """

    sample, n_views, setting = SAMPLE, len(FEW) + 2, LogisticSetting("diagonal", 10.0)
    largest_label = LARGEST

    def _try(self, form: Form) -> TriedCountForm:
        return TriedCountForm(self, form)


class TriedCountForm:
    """One form of the model, fitted without each fold of tasks."""

    def __init__(self, trial: CountFormTrial, form: Form):
        rows = trial.points._replace(X=trial.rows(form.x_transform).X)
        views = held_out_views(rows, lambda shown, n: trial.Phi, lambda points: points)
        parts = rows, trial.Phi, views, fold_numbers(len(trial.Phi)), trial.n_jobs
        self.whole: Points = rows
        self.judge = RowJudge(*parts, NegativeBinomial)
        self._errors: dict[tuple[int, LogisticSetting], np.ndarray] = {}

    def errors(self, number: int, setting: LogisticSetting) -> np.ndarray:
        """Return the log losses of held-out tasks (views, T); see `CountFormTrial`."""
        key = number, setting
        if key not in self._errors:
            prior = self.judge.fit(number)(*setting).prior
            found = self.judge.losses(number, *setting, prior)
            halves = found[:-1:2] + found[1:-1:2]  # each half judges in turn
            self._errors[key] = np.vstack([halves, found[-1:]])
        return self._errors[key]

    def density(self, number: int, setting: LogisticSetting) -> float:
        """Return the log density of all labels of the tasks of a fold, in the mean of all views."""
        found = self.errors(number, setting)
        return -float(found.sum() / len(found))
