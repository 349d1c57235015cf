"""The choice of (lam, meta_step) on held-out tasks, against the same search written out."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError
from condmeta.feature_maps import MeanFourier, MeanInput
from condmeta.learners.grid_trial import best_pair

RNG = np.random.default_rng(0)
SIZES = RNG.integers(4, 9, size=30)
TASK = np.repeat(np.arange(30), SIZES)
X = RNG.normal(size=(len(TASK), 3)) + 1.0
W = RNG.normal(size=(30, 3)) + np.array([4.0, 0.0, -2.0])
Y = np.einsum("ij,ij->i", X, W[TASK]) + RNG.normal(size=len(TASK))
TASKS = cm.TaskSet.from_arrays(X, Y, TASK)
LAMS, STEPS = (0.1, 1.0, 10.0), (0.01, 0.1, 1.0)
SPLIT = cm.TaskSplit(2, held_out=8, random_state=3)


def written_out(fold, **params):
    """Return the mean query loss of every pair, fitting one learner after another."""
    errors = []
    for step in STEPS:
        for lam in LAMS:
            learner = cm.ConditionalSGDRegressor(lam=lam, meta_step=step, **params).fit(fold.train)
            predicted = learner.adapt(fold.support).predict(fold.query)
            task = np.repeat(np.arange(len(fold.query)), fold.query.sizes)
            lost = np.abs(fold.query.restore_order(predicted) - fold.query.y)
            errors.append(np.mean(np.bincount(task, lost) / fold.query.sizes))
    return np.array(errors)


@pytest.mark.parametrize(
    "params",
    [
        {"feature_map": None},
        {"feature_map": MeanInput()},
        {"feature_map": MeanInput(), "averaging": "linear"},
        {"feature_map": MeanInput(), "averaging": "last"},
        {"feature_map": MeanInput(), "gradient_at": "average"},
        {"feature_map": MeanInput(), "inner": "batch"},
        {"feature_map": MeanInput(), "scale": "standard", "fit_intercept": True},
        {"feature_map": MeanInput(), "conditioning": "split"},
        {"feature_map": MeanFourier(40, random_state=0)},  # more features than training tasks
    ],
    ids=str,
)
def test_errors_equal_the_search_written_out(engine, params):
    learner = cm.ConditionalSGDRegressorCV(lams=LAMS, meta_steps=STEPS, split=SPLIT, **params)
    learner.fit(TASKS)
    expected = np.array([written_out(fold, **params) for fold in SPLIT.split(TASKS)])
    found = [learner.cv_results_[f"split{i}_test_error"] for i in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    best = np.argmin(expected.mean(axis=0))
    assert learner.best_index_ == best
    assert learner.best_error_ == pytest.approx(expected.mean(axis=0)[best])
    assert learner.learning_curve_[-1] == pytest.approx(learner.best_error_, rel=1e-8)


def test_refit_is_the_plain_learner_at_the_chosen_pair(engine):
    chosen = cm.ConditionalSGDRegressorCV(MeanInput(), lams=LAMS, meta_steps=STEPS, random_state=0)
    chosen.fit(X, Y, task=TASK)
    plain = cm.ConditionalSGDRegressor(MeanInput(), lam=chosen.lam_, meta_step=chosen.meta_step_)
    plain.fit(X, Y, task=TASK)
    np.testing.assert_array_equal(chosen.M_, plain.M_)
    np.testing.assert_array_equal(chosen.predict(X, task=TASK), plain.predict(X, task=TASK))


def test_record_of_the_search():
    learner = cm.ConditionalSGDRegressorCV(None, lams=LAMS, meta_steps=STEPS, split=3).fit(TASKS)
    results = learner.cv_results_
    assert {len(column) for column in results.values()} == {9}
    assert {key for key in results if key.startswith("split")} == {
        f"split{i}_test_error" for i in range(3)
    }
    assert results["rank_test_error"][learner.best_index_] == 1
    assert results["param_lam"][learner.best_index_] == learner.lam_
    assert (results["n_tasks"] == 20).all()


def test_halving_drops_pairs_early_and_agrees_on_the_clear_winner(engine):
    tasks = cm.environments.paper_environment("two-clusters-mean-0").sample(160, 0)
    options = {"feature_map": MeanInput(), "random_state": 0}
    full = cm.ConditionalSGDRegressorCV(**options).fit(tasks)
    half = cm.ConditionalSGDRegressorCV(search="halving", **options).fit(tasks)
    steps = half.cv_results_["n_tasks"].sum() / full.cv_results_["n_tasks"].sum()
    assert steps <= 0.12
    assert half.best_error_ <= 1.02 * full.best_error_
    finished = half.cv_results_["n_tasks"] == 120
    np.testing.assert_allclose(
        half.cv_results_["mean_test_error"][finished],
        full.cv_results_["mean_test_error"][finished],
        rtol=1e-9,
    )


def test_ties_go_to_the_larger_lam_then_the_smaller_step():
    lam, step = np.array([1.0, 2.0, 2.0, 3.0]), np.array([1.0, 5.0, 4.0, 1.0])
    assert best_pair(np.array([1.0, 1.0, 1.0 + 1e-12, 2.0]), lam, step) == 2


def test_one_task_has_nothing_to_hold_out():
    learner = cm.ConditionalSGDRegressorCV().fit(X[:5], Y[:5])
    np.testing.assert_array_equal(learner.b_, 0.0)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"search": "random"},
            "'search' .* must be one of 'grid', 'halving'. Got 'random'",
        ),
        ({"inner": object()}, "inner"),
        ({"split": 40}, r"'n_splits' parameter of TaskSplit must be an int in \[2, 30\]"),
    ],
)
def test_bad_parameters(params, sentence):
    with pytest.raises(DataError, match=sentence):
        cm.ConditionalSGDRegressorCV(None, **params).fit(TASKS)


def test_separate_conditioning_points_are_refused():
    with pytest.raises(DataError, match="Use ConditionalSGDRegressor for separate"):
        cm.ConditionalSGDRegressorCV(MeanInput()).fit(X, Y, task=TASK, side_info=TASKS)


def test_a_pair_that_one_split_dropped_is_no_candidate(monkeypatch):
    """Its error is that of fewer tasks, and may look smaller than it is."""
    runs = iter([([1.0, 9.0, 2.0], [22, 22, 7]), ([9.0, 1.0, 0.0], [22, 22, 22])])
    monkeypatch.setattr(
        "condmeta.learners.sgd_cv.search_halving", lambda *_: tuple(map(np.array, next(runs)))
    )
    search = {"lams": (1.0,), "meta_steps": (0.01, 0.1, 1.0), "search": "halving"}
    learner = cm.ConditionalSGDRegressorCV(split=SPLIT, **search).fit(TASKS)
    assert learner.best_index_ != 2
    assert learner.best_error_ == 5.0
