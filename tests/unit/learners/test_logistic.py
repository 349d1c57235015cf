"""ConditionalLogistic as its users see it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import draw_problem
from scipy.special import expit

import condmeta as cm
from condmeta.errors import DataError
from condmeta.feature_maps import MeanInput, MeanInputOutput
from condmeta.inner.averaged import averaged_logistic
from condmeta.persistence import read_card


def draw(n_tasks=120, n=10, d=3, p=2, seed=0, effect=1.0, spread=0.7, first=0):
    """Return rows, labels, ids and side information; weights are linear in the latter."""
    M = np.random.default_rng(seed).normal(size=(p, d))
    rng = np.random.default_rng([seed, first])
    S = rng.normal(size=(n_tasks, p))
    W = effect * S @ M + 0.3 + spread * rng.normal(size=(n_tasks, d))
    task = np.repeat(np.arange(n_tasks), n)
    X = rng.normal(size=(len(task), d))
    y = rng.random(len(task)) < expit(np.einsum("ij,ij->i", X, W[task]))
    return (
        X,
        np.where(y, "yes", "no"),
        task + first,
        cm.TaskTable(S, ids=first + np.arange(n_tasks)),
    )


@pytest.fixture(scope="module")
def model():
    X, y, task, side = draw()
    return cm.ConditionalLogistic().fit(X, y, task=task, side_info=side)


def losses(y, p):
    return -np.log(np.where(y == "yes", p[:, 1], p[:, 0]))


def test_side_information_helps_a_task_without_points(model):
    """Against no side information, by far; against the probabilities of the true prior, by 2 %."""
    X, y, task, side = draw(400, first=1000)
    plain = cm.ConditionalLogistic(feature_map=None).fit(*draw()[:2], task=draw()[2])
    ours = losses(y, model.predict_proba(X, task=task, side_info=side))
    gain = losses(y, plain.predict_proba(X, task=task)) - ours
    by_task = gain.reshape(400, -1).mean(axis=1)
    assert model.kappa_ < np.inf
    assert by_task.mean() > 5 * by_task.std() / np.sqrt(400)
    M, S = np.random.default_rng(0).normal(size=(2, 3)), np.column_stack(list(side.data.values()))
    means = np.einsum("ij,ij->i", X, (S @ M + 0.3)[task - 1000])
    p = averaged_logistic(means, 0.49 * np.einsum("ij,ij->i", X, X))
    assert ours.mean() < 1.02 * losses(y, np.column_stack([1 - p, p])).mean()


def test_every_way_to_ask_gives_the_same_probabilities(model):
    X, y, task, side = draw()
    known = model.predict_proba(X, task=task)
    adapted = model.adapt(X, y, task=task, side_info=side)
    np.testing.assert_allclose(adapted.predict_proba(X, task=task), known, atol=1e-12)
    one, mine = side.take([3]), task == 3
    row = {name: column[0] for name, column in one.data.items()}
    alone = model.adapt(X[mine], y[mine], side_info=row)
    np.testing.assert_allclose(alone.predict_proba(X[mine]), known[mine], atol=1e-12)
    np.testing.assert_allclose(adapted[3].predict_proba(X[mine]), known[mine], atol=1e-12)
    tasks = cm.TaskSet.from_arrays(X, None, task, side_info=side)
    np.testing.assert_allclose(model.predict_proba(tasks), known, atol=1e-12)


def test_every_way_to_ask_about_a_task_without_points(model):
    X, _, task, side = draw(2, first=2000)
    new = model.predict_proba(X, task=task, side_info=side)
    row = {name: column[0] for name, column in side.data.items()}
    both = model.adapt(task=[2000, 2001], side_info=side)
    for same in (
        model.predict_proba(X[:10], side_info=row),
        model.adapt(side_info=row).predict_proba(X[:10]),
        both.predict_proba(X, task=task)[:10],
    ):
        np.testing.assert_allclose(same, new[:10], atol=1e-14)


def test_probabilities_agree_with_predictions_and_doubt(model):
    X, _, task, side = draw(80, first=3000)
    p = model.predict_proba(X, task=task, side_info=side)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    predicted = model.predict(X, task=task, side_info=side)
    np.testing.assert_array_equal(predicted == "yes", p[:, 1] > 0.5)
    scores = model.decision_function(X, task=task, side_info=side)
    np.testing.assert_array_equal(predicted == "yes", scores > 0)
    sure = np.abs(expit(scores) - 0.5)
    assert (np.abs(p[:, 1] - 0.5) <= sure + 1e-8).all()
    assert np.median(sure - np.abs(p[:, 1] - 0.5)) > 0.005


@pytest.mark.parametrize("resume", [False, True])
def test_files_keep_the_probabilities(model, tmp_path, resume):
    X, _, task, side = draw()
    model.save(tmp_path / "m", resume=resume)
    again = cm.load(tmp_path / "m")
    known = model.predict_proba(X, task=task)
    np.testing.assert_array_equal(again.predict_proba(X, task=task), known)
    assert read_card(tmp_path / "m")["resumable"] is resume
    model.save(tmp_path / "map", tasks=False)
    shared = cm.load(tmp_path / "map")
    new = X, {"task": task + 5000, "side_info": cm.TaskTable(side.data, ids=side.ids + 5000)}
    np.testing.assert_array_equal(
        shared.predict_proba(new[0], **new[1]), model.predict_proba(new[0], **new[1])
    )


def test_engines_give_the_same_model(monkeypatch, model):
    X, y, task, side = draw()
    monkeypatch.setenv("CONDMETA_ENGINE", "numpy")
    other = cm.ConditionalLogistic().fit(X, y, task=task, side_info=side)
    assert (other.metric_, other.kappa_) == (model.metric_, model.kappa_)
    ours, theirs = (m.predict_proba(X, task=task) for m in (model, other))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_order_of_rows_and_tasks_does_not_matter(model):
    X, y, task, side = draw()
    order = np.random.default_rng(0).permutation(120)
    rows = np.concatenate([np.flatnonzero(task == t) for t in order])
    other = cm.ConditionalLogistic().fit(X[rows], y[rows], task=task[rows], side_info=side)
    assert (other.metric_, other.kappa_) == (model.metric_, model.kappa_)
    np.testing.assert_allclose(
        other.predict_proba(X, task=task), model.predict_proba(X, task=task), atol=1e-4
    )


@pytest.mark.parametrize("feature_map", [MeanInput(), MeanInputOutput()])
@pytest.mark.parametrize("conditioning", ["shared", "split"])
def test_maps_of_points(feature_map, conditioning):
    X, y, task, _ = draw(40, 6)
    model = cm.ConditionalLogistic(feature_map, conditioning=conditioning).fit(X, y, task=task)
    p = model.predict_proba(X, task=task)
    assert np.isfinite(p).all()
    assert model.score(X, y, task=task) > 0.5


def test_few_separable_and_one_class_tasks():
    X = np.array([[-1.0], [1.0], [2.0], [3.0], [-5.0]])
    model = cm.ConditionalLogistic().fit(X, [0, 1, 1, 1, 0], task=[0, 0, 1, 1, 2])
    p = model.predict_proba(X, task=[0, 0, 1, 1, 2])
    assert np.isfinite(p).all()
    assert ((p > 0) & (p < 1)).all()
    assert np.isfinite(model.H_).all()


def test_outlier_of_a_new_task(engine, model):
    """It says the sign of a coefficient, and no more as it grows; from 1e6 on digits are lost."""

    def adapted(far):
        task = model.adapt([[far, 0, 0], [1, 1, 1]], ["yes", "no"], side_info=[0.0, 0.0])
        return task.predict_proba([[1.0, 1.0, 1.0], [far, 0, 0]])[:, 1]

    np.testing.assert_allclose(adapted(1e5), adapted(1e3), atol=0.01)
    with pytest.raises(DataError, match=r"^Row 0 has 1e\+12 in feature 0 of X, .* too far from"):
        adapted(1e12)


def test_choice_is_reported(model):
    assert {"metric", "kappa", "score", "weight"} == set(model.choice_[0])
    assert sum(row["weight"] for row in model.choice_) == pytest.approx(1)
    assert (model.choice_[0]["metric"], model.choice_[0]["kappa"]) == (model.metric_, model.kappa_)
    given = cm.ConditionalLogistic(metric="diagonal", kappa=2.0)
    X, y, task, side = draw(30)
    given.fit(X, y, task=task, side_info=side)
    assert (given.metric_, given.kappa_, given.choice_) == ("diagonal", 2.0, [])
    assert not (given.H_ - np.diag(np.diag(given.H_))).any()


@pytest.mark.parametrize("params", [{"metric": "round"}, {"kappa": -1.0}, {"tol": 0.0}])
def test_bad_parameters(params):
    problem = draw_problem(classes=True)
    with pytest.raises(DataError, match=f"The '{next(iter(params))}' parameter"):
        cm.ConditionalLogistic(**params).fit(problem.X, problem.y, task=problem.task)
