"""Warnings name the line of the user, from whatever depth they come."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import (
    ConstantFeatureWarning,
    ConvergenceWarning,
    FewTasksWarning,
    NoGroupsWarning,
    OneTaskWarning,
)

X, TASK = np.arange(40.0).reshape(20, 2), np.repeat(np.arange(5), 4)
CONSTANT, TEN = X * [1.0, 0.0], np.repeat(np.arange(10), 2)


@pytest.mark.parametrize(
    ("learner", "rows", "task", "category"),
    [
        (cm.ConditionalRidge(), X, None, OneTaskWarning),
        (cm.ConditionalRidge(), CONSTANT, TASK, ConstantFeatureWarning),
        (cm.ConditionalLevels(), X, TASK, NoGroupsWarning),
        (cm.ConditionalCoinRegressor(), X, TASK, FewTasksWarning),
        (cm.ConditionalERMRegressor(lam=1.0, kappa=1.0, max_iter=1), X, TASK, ConvergenceWarning),
        (cm.AutoRegressor(base=None), CONSTANT, TEN, ConstantFeatureWarning),
    ],
)
def test_a_warning_names_the_line_that_called_fit(learner, rows, task, category):
    with pytest.warns(category) as caught:
        learner.fit(rows, np.sin(X[:, 0]), task=task)
    assert {note.filename for note in caught if note.category is category} == {__file__}


def test_a_warning_of_a_fold_names_the_line_of_the_user():
    """Here contextlib is between the call of the user and the fold."""
    slow = {"slow": cm.ConditionalERMRegressor(lam=1.0, kappa=1.0, max_iter=1)}
    with pytest.warns(ConvergenceWarning) as caught:
        cm.compare(X, np.sin(X[:, 0]), task=TEN, learners=slow, shots=(0,))
    assert {note.filename for note in caught} == {__file__}
    assert len(caught) > 1


def test_a_warning_behind_joblib_names_the_line_of_the_user():
    with pytest.warns(ConstantFeatureWarning) as caught:
        cm.cross_validate_tasks(cm.ConditionalRidge(), CONSTANT, np.sin(X[:, 0]), task=TEN)
    assert {note.filename for note in caught} == {__file__}
