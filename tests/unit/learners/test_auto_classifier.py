"""AutoClassifier: what it chooses, and that its probabilities are those of what it chose."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

import condmeta as cm
from condmeta.errors import DataError
from condmeta.fitted.shared_model import fit_shared_model
from condmeta.learners.held_out import hold_out
from condmeta.meta.criteria import LOG_LOSS, log_losses
from condmeta.meta.stacking import best_weights, convex_weights


def draw(n_tasks=60, n=10, effect=1.5, spread=0.5, bend=0.0, seed=0):
    """Return rows of tasks; `effect` of side information, `bend` away from linear."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_tasks, 2))
    w = effect * S[:, :1] * [1.0, -1.0] + spread * rng.normal(size=(n_tasks, 2))
    task = np.repeat(np.arange(n_tasks), n)
    X = rng.uniform(-2, 2, size=(len(task), 2))
    f = np.einsum("ij,ij->i", X, w[task]) + bend * np.sin(3 * X[:, 0])
    chance = 1 / (1 + np.exp(-f))
    return X, np.where(rng.random(len(task)) < chance, "yes", "no"), task, S


def fit(X, y, task, S, **params):
    side = None if S is None else cm.TaskTable(S, ids=range(len(S)))
    return cm.AutoClassifier(**params).fit(X, y, task=task, side_info=side)


def test_side_information_is_used_where_it_pays():
    model = fit(*draw(), shots=(0, 3), base=None)
    assert model.candidates_ == ["own data", "pooled", "unconditional", "conditional"]
    assert model.candidates_[int(np.argmax(model.weights_[0]))] == "conditional"
    assert (model.errors_[0, 3] < 0.9 * model.errors_[0, :3]).all()
    assert model.report_.startswith("Mean log loss on held-out tasks. 0 points: ")
    assert model.classes_.tolist() == ["no", "yes"]


def test_a_base_is_used_where_it_pays():
    model = fit(*draw(bend=4.0), shots=(0, 5))
    plain = ["own data", "pooled", "unconditional", "conditional"]
    assert model.candidates_ == [*plain, "unconditional on base", "conditional on base"]
    assert (model.errors_[:, 5] < 0.85 * model.errors_[:, :4].min(axis=1)).all()
    assert (model.weights_[:, 4:].sum(axis=1) > 0.9).all()
    few = fit(*draw(19, bend=4.0), shots=(0, 5))
    assert few.candidates_ == plain  # 190 rows


def test_trials_on_a_base_are_those_of_its_log_odds_as_a_column(monkeypatch):
    # The column would change the order of the tasks and the folds.
    order, folds = "learners.held_out.tasks_by_content", "tasks.splits.folds.folds_by_content"
    monkeypatch.setattr(f"condmeta.{order}", lambda tasks: np.arange(len(tasks)))
    monkeypatch.setattr(f"condmeta.{folds}", lambda tasks, n, salt: np.arange(len(tasks)) % n)
    X, y, task, _ = draw(30, bend=4.0)
    tasks = cm.TaskSet.from_arrays(X, np.where(y == "yes", 1.0, -1.0), task)
    shared = fit_shared_model(GaussianNB(), tasks, True, "log loss")
    learner = cm.ConditionalLogistic(None, metric="identity")
    how = (5,), "first", 0
    (one,) = hold_out({"unconditional on base": learner}, tasks, shared, *how)
    column = np.column_stack([tasks.X, shared.unseen])
    (other,) = hold_out({"plain": learner}, tasks.with_rows(column, tasks.y), None, *how)
    np.testing.assert_allclose(one.answers, other.answers, rtol=1e-12)


def test_errors_are_log_losses_of_tasks_that_were_held_out():
    X, y, task, _ = draw(30)
    model = fit(X, y, task, None, shots=(0,), base=None)
    # without points and side information every candidate but the first says about one half
    assert model.errors_[0, 0] == pytest.approx(np.log(2))
    assert (np.abs(model.errors_[0] - np.log(2)) < 0.05).all()


def test_it_is_no_worse_than_its_best_candidate_on_new_tasks():
    X, y, task, S = draw(160, effect=0.7)
    old = task < 100
    model = fit(X[old], y[old], task[old], S, shots=(0, 2, 5), base=None)
    support, query = (~old & (np.arange(len(y)) % 10 < 5)), (~old & (np.arange(len(y)) % 10 >= 5))
    side = cm.TaskTable(S, ids=range(160))

    def judged(learner):
        models = learner.adapt(X[support], y[support], task=task[support], side_info=side)
        return log_loss(y[query] == "yes", models.predict_proba(X[query], task=task[query])[:, 1])

    best = min(map(judged, model.learners_.values()))
    assert judged(model) < 1.02 * best


def test_all_ways_to_a_prediction_agree():
    X, y, task, S = draw(bend=1.0)
    old = task < 50
    model = fit(X[old], y[old], task[old], S, shots=(0, 3))
    support, query = np.flatnonzero(task == 55)[:3], np.flatnonzero(task == 55)[3:]
    one = model.adapt(X[support], y[support], side_info=S[55])
    many = model.adapt(
        X[support], y[support], task=task[support], side_info=cm.TaskTable(S[55:56], ids=[55])
    )
    told = one.predict_proba(X[query])
    np.testing.assert_allclose(told, many.predict_proba(X[query], task=task[query]))
    np.testing.assert_allclose(told, many[55].predict_proba(X[query]))
    np.testing.assert_allclose(told.sum(axis=1), 1.0)
    assert np.array_equal(one.predict(X[query]), model.classes_[(told[:, 1] > 0.5).astype(int)])
    assert set(many.predict(X[query], task=task[query])) <= {"no", "yes"}
    new = cm.TaskTable(S[55:56], ids=[55])
    zero = model.predict_proba(X[query], task=task[query], side_info=new)
    np.testing.assert_allclose(zero, model.adapt(side_info=S[55]).predict_proba(X[query]))
    assert model.score(X[old], y[old], task=task[old]) > 0.7


def test_files_give_the_same_probabilities(tmp_path):
    X, y, task, S = draw(bend=4.0)
    model = fit(X, y, task, S, shots=(0, 3))
    assert any("on base" in name for name in model.learners_)
    model.save(tmp_path / "auto.condmeta")
    loaded = cm.load(tmp_path / "auto.condmeta")
    assert np.array_equal(model.predict_proba(X, task=task), loaded.predict_proba(X, task=task))
    assert loaded.report_ == model.report_


def test_why_no_tasks_are_held_out_is_said():
    X, y, task, S = draw(8)
    model = fit(X, y, task, S)
    assert model.report_ == "conditional: 8 tasks are too few to hold any out."
    X, y, task, S = draw(20)
    rare = np.where(task < 3, y, "no")
    model = fit(X, rare, task, S)
    assert model.report_ == "conditional: the class 'yes' is in 3 tasks, too few to hold any out."
    model = fit(X, np.where(task < 1, y, "no"), task, S)
    assert model.report_ == "conditional: the class 'yes' is in 1 task, too few to hold any out."


def test_bad_input():
    X, y, task, S = draw(12)
    with pytest.raises(DataError, match=r"'order' .* one of 'random', 'first'"):
        fit(X, y, task, S, order="last")
    regressor = cm.AutoRegressor(base=None).fit(X, X[:, 0], task=task)
    with pytest.raises(DataError, match="this model predicts numbers"):
        regressor.adapt(X[:2], X[:2, 0]).predict_proba(X)


def test_mixture_weights_are_the_best():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.05, 0.95, size=4000)
    y = np.where(rng.random(4000) < truth, 1.0, -1.0)
    logit = np.log(truth / (1 - truth))
    noisy = [1 / (1 + np.exp(-(logit + rng.normal(size=4000)))) for _ in range(2)]
    answers = np.column_stack([*noisy, np.full(4000, 0.5)])
    weights = convex_weights(answers, y, LOG_LOSS)

    def loss(free):
        mixed = answers @ np.append(free, 1 - free.sum())
        return log_losses(mixed[:, None], y).mean()

    exact = minimize(loss, [0.4, 0.4], bounds=[(0, 1)] * 2).fun
    assert loss(weights[:2]) == pytest.approx(exact, abs=1e-3)
    assert best_weights(answers, y, np.arange(4000) // 5, LOG_LOSS)[2] < 0.3
