"""ConditionalERMRegressor: the choice, side information of all kinds, files, sentences."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers import assert_same, draw_problem, unchanged

import condmeta
from condmeta import ConditionalERMRegressor, TaskSet, TaskTable
from condmeta.errors import ConvergenceWarning, DataError
from condmeta.feature_maps import Identity, MeanInput, MeanInputOutput
from condmeta.fitted.side_reader import SideReader
from condmeta.learners.learner import Learner
from condmeta.losses import Absolute, Pinball
from condmeta.meta.erm import learn_map
from condmeta.tasks.points import Points

X, Y, TASK, SIDE = draw_problem(n_tasks=25, d=3, seed=3)


def fit(feature_map="auto", **params):
    return ConditionalERMRegressor(feature_map, **params).fit(X, Y, task=TASK, side_info=SIDE)


def test_map_is_that_of_the_meta_solver():
    """Units and prepared rows: standardised X, centred y, Phi over its root mean square."""
    learner = fit(Identity(), lam=0.2, kappa=3.0)
    tasks = TaskSet.from_arrays(X, Y, TASK)
    Z = (tasks.X - X.mean(axis=0)) / X.std(axis=0)
    points = Points(np.column_stack([Z, np.ones(len(Z))]), tasks.y - np.median(Y), tasks.offsets)
    Phi = SIDE.take(tasks.ids.tolist()).numeric()
    size = np.sqrt(np.mean(Phi**2, axis=0))
    learned = learn_map(points, Phi / size, Absolute(), 0.2, 3.0)
    np.testing.assert_allclose(learner.M_ * size, learned.W[:-1].T, rtol=1e-9)
    np.testing.assert_allclose(learner.b_, learned.W[-1], rtol=1e-9)
    assert (learner.lam_, learner.kappa_, learner.choice_) == (0.2, 3.0, [])
    assert learner.objective_ == pytest.approx(learned.objective, rel=1e-12)
    assert learner.dual_gap_ <= 1e-6 * learner.objective_


def test_task_models_are_exact_minimisers_around_tau():
    learner = fit(lam=0.2, kappa=1.0)
    some = TASK == "t3"
    new = learner.adapt(X[some], Y[some], side_info=SIDE.numeric()[3])
    np.testing.assert_allclose(
        learner.predict(X[some], task=TASK[some]), new.predict(X[some]), rtol=1e-9
    )
    theta = learner.theta_for(SIDE.numeric()[3])
    none = learner.adapt(side_info=SIDE.numeric()[3])
    np.testing.assert_allclose(np.append(none.coef_, none.intercept_), theta, rtol=1e-12)


@pytest.fixture(scope="module")
def chosen():
    """A learner that chose lam and kappa."""
    return fit()


def test_choice_is_told_and_taken(chosen):
    learner = chosen
    scores = [each["score"] for each in learner.choice_]
    assert scores == sorted(scores)
    pairs = [(each["lam"], each["kappa"]) for each in learner.choice_]
    assert (learner.lam_, learner.kappa_) in pairs
    assert learner.lam_ >= pairs[0][0]
    given = fit(lam=0.5)
    assert given.lam_ == 0.5
    assert {each["lam"] for each in given.choice_} == {0.5}


def test_choice_does_not_depend_on_the_order_of_tasks(chosen):
    back = slice(None, None, -1)
    other = ConditionalERMRegressor().fit(X[back], Y[back], task=TASK[back], side_info=SIDE)
    assert other.kappa_ == chosen.kappa_
    assert other.lam_ == pytest.approx(chosen.lam_, rel=1e-9)


@pytest.mark.parametrize("feature_map", [MeanInput(), MeanInputOutput()], ids=repr)
def test_held_out_tasks_show_their_support_alone(feature_map, monkeypatch):
    """Phi of a left-out task is computed from four fifths of its points."""
    seen = []
    features = SideReader.features

    def spy(self, ids, table, points, tau=None):
        seen.append(points[2])
        return features(self, ids, table, points, tau)

    monkeypatch.setattr(SideReader, "features", spy)
    ConditionalERMRegressor(feature_map, kappa=1.0).fit(X, Y, task=TASK)
    whole, *views = (np.sort(np.diff(offsets)) for offsets in seen[:6])
    assert sum(view.sum() for view in views) == 4 * whole.sum() == 4 * len(X)


def test_separate_points_condition():
    points = TaskSet.from_arrays(X[::2], Y[::2], TASK[::2])
    learner = ConditionalERMRegressor(MeanInputOutput(), lam=0.3, kappa=1.0)
    learner.fit(X[1::2], Y[1::2], task=TASK[1::2], side_info=points)
    split = ConditionalERMRegressor(MeanInput(), kappa=1.0, conditioning="split").fit(
        X, Y, task=TASK
    )
    assert np.isfinite(learner.theta_for(points)).all()
    assert np.isfinite(split.predict(X, task=TASK)).all()


def test_more_features_than_tasks_are_solved_exactly():
    """The row space of Phi is enough: M from an explicit solve in all k columns."""
    rng = np.random.default_rng(0)
    wide = TaskTable(rng.normal(size=(25, 60)), SIDE.ids)
    params = {"lam": 0.2, "kappa": 2.0, "tol": 1e-10, "scale": "none", "fit_intercept": False}
    learner = ConditionalERMRegressor(Identity(), **params)
    learner.fit(X, Y, task=TASK, side_info=wide)
    tasks = TaskSet.from_arrays(X, Y, TASK)
    Phi = wide.take(tasks.ids.tolist()).numeric()
    size = np.sqrt(np.mean(Phi**2, axis=0))
    points = Points(tasks.X, tasks.y, tasks.offsets)
    learned = learn_map(points, Phi / size, Absolute(), 0.2, 2.0, tol=1e-10)
    assert learner.objective_ == pytest.approx(learned.objective, rel=1e-9)
    np.testing.assert_allclose(learner.M_, (learned.W[:-1] / size[:, None]).T, atol=1e-4)


def test_without_side_information():
    learner = ConditionalERMRegressor(feature_map=None).fit(X, Y, task=TASK)
    assert learner.M_.shape == (4, 0)
    assert {each["kappa"] for each in learner.choice_} <= {10.0, 1.0, 0.1}


@pytest.mark.parametrize("loss", ["absolute", "huber", "epsilon_insensitive", Pinball(0.8)])
def test_engines_agree(monkeypatch, loss):
    answers = []
    for name in ("numpy", "native"):
        monkeypatch.setenv("CONDMETA_ENGINE", name)
        learner = fit(loss=loss, lam=0.2, kappa=1.0, tol=1e-10)
        answers.append(learner.predict(X, task=TASK))
    np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-4)


def test_an_offset_of_y_goes_through(chosen):
    far = ConditionalERMRegressor().fit(X, Y + 2.0**20, task=TASK, side_info=SIDE)
    difference = far.predict(X, task=TASK) - chosen.predict(X, task=TASK)
    np.testing.assert_allclose(difference, 2.0**20, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_one_task(n):
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 2))
    learner = ConditionalERMRegressor().fit(rows, rows @ [1.0, 2.0])
    assert np.isfinite(learner.predict(rows)).all()
    if n == 30:
        assert learner.score(rows, rows @ [1.0, 2.0]) > 0.95


def test_tasks_of_one_point_and_constant_targets():
    learner = ConditionalERMRegressor().fit(X[:9], np.zeros(9), task=np.arange(9))
    np.testing.assert_array_equal(learner.predict(X[:9], task=np.arange(9)), np.zeros(9))
    assert learner.dual_gap_ == 0.0


def test_file_round_trip(tmp_path):
    learner = fit(loss=Pinball(0.8), kappa=1.0)
    learner.save(tmp_path / "erm.condmeta")
    again = condmeta.load(tmp_path / "erm.condmeta")
    np.testing.assert_array_equal(again.predict(X, task=TASK), learner.predict(X, task=TASK))
    one, two = (each.adapt(X[:4], Y[:4], side_info=[0.1, 1.0]) for each in (learner, again))
    assert_same(one.coef_, two.coef_)
    assert again.choice_ == learner.choice_
    assert again.dual_gap_ == learner.dual_gap_


def test_update_is_refused_and_squared_is_not():
    learner = fit(lam=0.2, kappa=1.0)
    with pytest.raises(DataError, match="update does not work with these settings"):
        learner.update(X[:2], Y[:2], task=TASK[:2])
    squared = fit(loss="squared", lam=0.2, kappa=1.0)
    more = squared.adapt(X[:4], Y[:4], side_info=[0.1, 1.0])
    some = squared.adapt(X[:2], Y[:2], side_info=[0.1, 1.0]).update(X[2:4], Y[2:4])
    np.testing.assert_allclose(some.coef_, more.coef_, rtol=1e-9)


def test_open_gap_is_a_warning():
    with pytest.warns(ConvergenceWarning, match="stopped after .* evaluations with dual_gap_="):
        learner = fit(lam=2.0, kappa=0.1, max_iter=3)
    assert learner.dual_gap_ > 1e-6 * learner.objective_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(lam=2.0, kappa=0.1)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"lam": 0.0}, r"'lam' .* must be 'auto' or a float in \(0, inf\). Got 0.0 instead"),
        ({"kappa": 0}, r"'kappa' .* must be 'auto' or a float in \(0, inf\]. Got 0 instead"),
        ({"kappa": "cv"}, r"'kappa' .* Got 'cv' instead"),
        ({"loss": "hinge"}, r"The loss 'hinge' is for classes"),
        ({"max_iter": 0}, r"'max_iter' .* must be a positive integer"),
    ],
)
def test_bad_parameters(params, sentence):
    learner = fit(lam=0.2, kappa=1.0)
    good = learner.get_params()
    with unchanged(learner, X, task=TASK):
        learner.set_params(**params)
        with pytest.raises(DataError, match=sentence):
            learner.fit(X, Y, task=TASK, side_info=SIDE)
        learner.set_params(**{name: good[name] for name in params})


def test_is_a_learner_with_a_linear_map():
    learner = fit(lam=0.2, kappa=1.0)
    assert isinstance(learner, Learner)
    assert len(learner.coef_frame(wide=True)) == 25
    assert len(learner.M_frame()) == 3 * 4


def test_far_target_moves_predictions_by_as_much():
    problem = draw_problem(8)
    learner = ConditionalERMRegressor(lam=2.0, kappa=1.0)
    call = {"task": problem.task, "side_info": problem.side}
    near = learner.fit(problem.X, problem.y, **call).predict(problem.X, task=problem.task)
    far = learner.fit(problem.X, problem.y + 1e8, **call).predict(problem.X, task=problem.task)
    np.testing.assert_allclose(far - 1e8, near, rtol=0, atol=1e-6)
