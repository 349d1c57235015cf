"""Standard errors of comparisons, and the rules that depend on them."""

from __future__ import annotations

import numpy as np
import pytest

import condmeta as cm
from condmeta.evaluation.compare import _with_choice
from condmeta.evaluation.comparison import Comparison, by_task
from condmeta.evaluation.gains import gain_of
from condmeta.learners.held_out import HeldOutAnswers
from condmeta.meta.criteria import CRITERIA


def test_gain_has_the_standard_error_of_the_jackknife():
    rng = np.random.default_rng(0)
    without = rng.gamma(4.0, size=2000)
    with_side = 0.7 * without + rng.gamma(1.0, size=2000)
    found = gain_of(3, without, with_side, np.full(2000, 2))
    total = without.sum(), with_side.sum()
    again = 1 - (total[1] - with_side) / (total[0] - without)
    jackknife = np.sqrt(1999 / 2000 * ((again - again.mean()) ** 2).sum())
    assert found.gain == pytest.approx(1 - total[1] / total[0])
    assert found.gain_error == pytest.approx(jackknife, rel=0.01)
    assert (found.without, found.with_side) == pytest.approx((total[0] / 4000, total[1] / 4000))


def test_gain_of_few_tasks():
    """Three tasks whose errors without side information are alike: the error of a mean."""
    found = gain_of(0, np.full(3, 10.0), np.array([4.0, 5.0, 6.0]), np.ones(3))
    assert found.gain == pytest.approx(0.5)
    assert found.gain_error == pytest.approx(0.1 / np.sqrt(3))


def test_tasks_of_one_row_have_the_standard_error_of_a_mean():
    losses = np.random.default_rng(1).normal(size=(7, 2))
    expected = losses.std(axis=0, ddof=1) / np.sqrt(7)
    np.testing.assert_allclose(by_task(losses, np.arange(7)), expected)


def test_weights_repeat_rows():
    losses, task = np.random.default_rng(2).normal(size=(6, 2)), np.array([0, 0, 1, 1, 2, 2])
    times = np.array([1, 2, 3, 1, 1, 4])
    repeated = by_task(np.repeat(losses, times, axis=0), np.repeat(task, times))
    np.testing.assert_allclose(by_task(losses, task, times.astype(float)), repeated)


def trial(errors: dict[str, np.ndarray], shot=0) -> HeldOutAnswers:
    """Return answers with these absolute errors, a row a task, of targets that are 0."""
    T = len(next(iter(errors.values())))
    at = np.arange(T)
    return HeldOutAnswers(
        shot, at.astype(object), at % 5, at, at, np.zeros(T), np.column_stack(list(errors.values()))
    )


def compared(errors: dict[str, np.ndarray]) -> Comparison:
    models = dict.fromkeys(errors, cm.ConditionalRidge())
    tasks = cm.TaskSet.from_arrays([[0.0]], [0.0], [0])
    return Comparison(list(errors), models, [trial(errors)], CRITERIA["absolute"], None, [], tasks)


def test_within_one_percent_the_simplest_is_advised():
    same = np.linspace(1, 2, 30)
    assert compared({"unconditional": same, "conditional": same}).advised == "unconditional"
    close = {"unconditional": 1.009 * same, "conditional": same}
    assert compared(close).advised == "unconditional"
    better = {"unconditional": same, "conditional": 0.9 * same}
    assert compared(better).advised == "conditional"


@pytest.mark.parametrize(("behind", "advised"), [(1.5, "conditional"), (2.5, "auto")])
def test_a_learner_is_behind_beyond_two_standard_errors(behind, advised):
    """The paired difference to the best is 1 % and 1.5, or 2.5, standard errors."""
    best, noise = np.full(40, 1.0), np.tile([-0.1, 0.1], 20)
    error = noise.std(ddof=1) / np.sqrt(40)
    other = best + 0.01 + behind * error + noise
    found = compared({"auto": best, "conditional": other})
    row = found._rows_of("conditional")[0]
    assert row["behind"] == pytest.approx(0.01 + behind * error)
    assert row["behind_se"] == pytest.approx(error)
    assert found.advised == advised


def test_the_choice_is_made_on_other_folds():
    """Each of two candidates is right for one half of the folds: other folds mislead."""
    T = 200
    at = np.arange(T)
    fold = at % 2
    answers = np.column_stack([np.where(fold == 0, 0.0, 9.0), np.where(fold == 0, 9.0, 0.0)])
    given = HeldOutAnswers(0, at.astype(object), fold, at, at, np.zeros(T), answers)
    chosen = _with_choice(given, CRITERIA["absolute"], towards=None).answers[:, -1]
    np.testing.assert_allclose(chosen, 9.0)


def test_cross_validated_errors_are_means_over_query_points():
    rng = np.random.default_rng(4)
    tasks = cm.TaskSet.from_arrays(
        rng.normal(size=(60, 1)), rng.normal(size=60), np.repeat(np.arange(10), 6)
    )
    table = cm.cross_validate_tasks(
        cm.FixedBiasRegressor(theta=0.0, lam=1e12), tasks, split=cm.TaskSplit(5, support=2)
    )
    assert set(table["n_query"]) == {4}
    total = np.sum(np.asarray(table["error"]) * 4)
    assert total <= np.abs(tasks.y).sum()
    assert total == pytest.approx(4 / 6 * np.abs(tasks.y).sum(), rel=0.2)
