"""AutoRegressor: what it chooses, and that its answers are those of what it chose."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import condmeta as cm
from condmeta.errors import DataError
from condmeta.learners.held_out import hold_out, of_all_rounds
from condmeta.meta.criteria import CRITERIA
from condmeta.meta.stacking import best_weights, convex_weights


def draw(n_tasks=60, n=8, effect=1.5, spread=0.3, bend=0.0, seed=0):
    """Return rows of tasks; `effect` of side information, `bend` away from linear."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_tasks, 2))
    w = effect * S[:, :1] * [1.0, -1.0] + spread * rng.normal(size=(n_tasks, 2))
    task = np.repeat(np.arange(n_tasks), n)
    X = rng.uniform(-2, 2, size=(len(task), 2))
    y = np.einsum("ij,ij->i", X, w[task]) + bend * np.sin(3 * X[:, 0])
    return X, y + 0.3 * rng.normal(size=len(task)), task, S


def fit(X, y, task, S, **params):
    side = None if S is None else cm.TaskTable(S, ids=range(len(S)))
    return cm.AutoRegressor(**params).fit(X, y, task=task, side_info=side)


def chosen(model, shot):
    at = model.shots_.tolist().index(shot)
    return model.candidates_[int(np.argmax(model.weights_[at]))]


def test_side_information_is_used_where_it_pays():
    model = fit(*draw(), base=None)
    assert model.candidates_ == ["own data", "pooled", "unconditional", "conditional"]
    assert chosen(model, 0) == "conditional"
    assert "0 points: " in model.report_
    assert (model.errors_[0, 3] < 0.6 * model.errors_[0, :3]).all()


def test_a_base_is_used_where_it_pays():
    X, y, task, S = draw(bend=3.0)
    model = fit(X, y, task, S)
    assert chosen(model, 5).endswith("on base")
    straight = fit(*draw(60, 10))
    assert not chosen(straight, 5).endswith("on base")


def test_the_base_alone_has_the_same_error_in_every_unit():
    X, y, task, S = draw(bend=3.0)
    model, tiny = (fit(X, unit * np.exp(y), task, S, shots=(0,)) for unit in (1.0, 2.0**-40))
    at = model.candidates_.index("constant on base")
    np.testing.assert_allclose(tiny.errors_[:, at], model.errors_[:, at] * 2.0**-40, rtol=1e-9)


def test_weights_are_convex_for_every_number_of_points():
    model = fit(*draw(), shots=(0, 3, 100), base=None)
    assert model.shots_.tolist() == [0, 3]  # no task has more than 100 points
    assert (model.weights_ >= 0).all()
    np.testing.assert_allclose(model.weights_.sum(axis=1), 1.0)


def test_all_ways_to_a_prediction_agree():
    X, y, task, S = draw(bend=1.0)
    old = task < 50
    model = fit(X[old], y[old], task[old], S)
    support, query = np.flatnonzero(task == 55)[:3], np.flatnonzero(task == 55)[3:]
    one = model.adapt(X[support], y[support], side_info=S[55])
    many = model.adapt(
        X[support], y[support], task=task[support], side_info=cm.TaskTable(S[55:56], ids=[55])
    )
    np.testing.assert_allclose(one.predict(X[query]), many.predict(X[query], task=task[query]))
    np.testing.assert_allclose(one.predict(X[query]), many[55].predict(X[query]))
    two = model.adapt(X[support[:1]], y[support[:1]], side_info=S[55])
    two.update(X[support[1:]], y[support[1:]])
    assert two.n_ == 3
    np.testing.assert_allclose(one.predict(X[query]), two.predict(X[query]), rtol=1e-8)
    model.update(X[support], y[support], task=task[support])
    np.testing.assert_allclose(
        one.predict(X[query]), model.predict(X[query], task=task[query]), rtol=1e-8
    )


def test_a_failed_update_changes_nothing():
    X, y, task, S = draw()
    model = fit(X, y, task, S, base=None)
    before = model.predict(X, task=task)
    with pytest.raises(DataError):
        model.update(X[:3], [1.0, np.nan, 2.0], task=task[:3])
    assert np.array_equal(before, model.predict(X, task=task))


def test_files_give_the_same_predictions(tmp_path):
    X, y, task, S = draw(bend=3.0)
    model = fit(X, y, task, S)
    model.save(tmp_path / "auto.condmeta")
    loaded = cm.load(tmp_path / "auto.condmeta")
    assert np.array_equal(model.predict(X, task=task), loaded.predict(X, task=task))
    assert loaded.report_ == model.report_


def test_few_tasks_are_said():
    X, y, task, S = draw(4)
    model = fit(X, y, task, S)
    assert model.report_ == "conditional: 4 tasks are too few to hold any out."
    assert np.isnan(model.errors_).all()
    assert np.isfinite(model.predict(X, task=task)).all()


def test_five_tasks_are_enough_to_choose():
    X, y, task, S = draw(5)
    y = 3.0 + np.random.default_rng(0).normal(size=len(y))  # no task differs from another
    model = fit(X, y, task, S, shots=(0,), base=None)
    assert model.errors_[0, model.candidates_.index("pooled")] < 1.1
    assert model.weights_[0, model.candidates_.index("conditional")] < 1


@pytest.mark.parametrize(("n_tasks", "rounds"), [(5, 5), (20, 5), (33, 3), (50, 2), (51, 1)])
def test_few_tasks_are_held_out_in_several_rounds(monkeypatch, n_tasks, rounds):
    found = []

    def spy(*given):
        found.append(hold_out(*given))
        return found[-1]

    monkeypatch.setattr("condmeta.learners.auto.hold_out", spy)
    X, y, task, S = draw(n_tasks)
    fit(X, y, task, S, shots=(0, 2), base=None)
    assert len(found) == rounds
    joined = of_all_rounds(found)[1]
    assert sorted(joined.ids) == sorted(range(n_tasks))
    assert len(joined.y) == rounds * len(found[0][1].y)
    np.testing.assert_array_equal(joined.ids[joined.task], task[joined.row])
    np.testing.assert_array_equal(joined.y, y[joined.row])
    assert len({tuple(sorted(each[1].row)) for each in found}) == rounds  # other points each time


def test_tasks_without_further_points_are_said():
    X, y, task, S = draw(12, 3)
    model = fit(X, y, task, S, shots=(3, 5), base=None)
    assert model.report_ == (
        "conditional: 0 tasks have more than 3 points, too few to hold any out."
    )
    assert np.isfinite(model.predict(X, task=task)).all()
    with pytest.raises(DataError, match=r"'shots' parameter .* one or more ints"):
        fit(X, y, task, S, shots=())


@pytest.mark.parametrize("support", ["first", "random"])
def test_shown_points_are_not_judged(support):
    X, y, task, _ = draw(20)
    tasks = cm.TaskSet.from_arrays(X, y, task)
    (trial,) = hold_out({"pooled": cm.PooledRegressor()}, tasks, None, (5,), support, 0)
    late = np.sort(y[np.arange(len(y)) % 8 >= 5])
    assert trial.answers.shape == (60, 1)
    assert np.array_equal(np.sort(trial.y), late) == (support == "first")
    assert np.array_equal(np.bincount(trial.task), np.full(20, 3))


def test_parameters_out_of_range():
    with pytest.raises(DataError, match=r"'criterion' .* one of 'absolute', 'squared'"):
        cm.AutoRegressor(criterion="log").fit([[1.0], [2.0]], [1.0, 2.0])
    with pytest.raises(DataError, match=r"'order' .* one of 'random', 'first'"):
        cm.AutoRegressor(order="last").fit([[1.0], [2.0]], [1.0, 2.0])


def test_convex_weights_are_the_best():
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    answers = np.column_stack([y + rng.normal(size=500), y + rng.normal(size=500), 3 * y])
    weights = convex_weights(answers, y, CRITERIA["squared"])
    np.testing.assert_allclose(weights[:2], 0.5, atol=0.1)
    best = np.mean((answers @ weights - y) ** 2)
    for other in rng.dirichlet(np.ones(3), size=300):
        assert np.mean((answers @ other - y) ** 2) >= best - 0.01
    assert best_weights(answers[:, :1], y, np.arange(500), CRITERIA["absolute"]).tolist() == [1.0]
    noise = np.column_stack([y + 0.1 * rng.normal(size=500), rng.normal(size=500)])
    assert best_weights(noise, y, np.arange(500) // 5, CRITERIA["absolute"])[0] > 0.95


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_absolute_weights_are_near_the_linear_program(seed):
    """min sum_i e_i with -e_i <= a_i . w - y_i <= e_i."""
    rng = np.random.default_rng(seed)
    y = rng.exponential(size=300) ** 2
    answers = y[:, None] * rng.uniform(0.3, 1.0, 4) + rng.normal(size=(300, 4)) * [0.5, 1, 1.5, 2]
    slack = -np.eye(300)
    best = linprog(
        np.append(np.zeros(4), np.ones(300)),
        np.vstack([np.hstack([answers, slack]), np.hstack([-answers, slack])]),
        np.append(y, -y), np.append(np.ones(4), np.zeros(300))[None], [1.0],
    ).fun / 300  # fmt: skip

    def error(weights):
        return np.abs(answers @ weights - y).mean()

    assert error(convex_weights(answers, y, CRITERIA["absolute"])) < 1.01 * best
    assert error(convex_weights(answers, y, CRITERIA["squared"])) > 1.02 * best


def test_labels_on_another_scale_are_a_candidate_where_that_pays():
    """Labels of tasks that differ by factors are normal as logarithms."""
    rng = np.random.default_rng(0)
    task, X = np.repeat(np.arange(60), 8), rng.normal(size=(480, 1))
    y = np.exp(X[:, 0] + rng.normal(size=60)[task] + 0.5 * rng.normal(size=480))
    skewed = cm.AutoRegressor(base=None, shots=(0, 3)).fit(X, y, task=task)
    at, plain = (skewed.candidates_.index(name) for name in ("transformed", "unconditional"))
    assert (skewed.errors_[:, at] < 0.95 * skewed.errors_[:, plain]).all()
    assert skewed.weights_[1, at] > 0.5
    normal = cm.AutoRegressor(base=None, shots=(0, 3)).fit(X, np.log(y), task=task)
    assert "transformed" not in normal.candidates_


def test_a_transformed_candidate_predicts_means_for_squared_errors():
    """A few wild labels hid from squared errors that another scale pays: it was no candidate."""
    rng = np.random.default_rng(0)
    task, X = np.repeat(np.arange(60), 8), rng.normal(size=(480, 1))
    y = np.exp(X[:, 0] + rng.normal(size=60)[task] + 0.8 * rng.normal(size=480))
    few = {"base": None, "shots": (0, 3)}
    model = cm.AutoRegressor(**few, criterion="squared").fit(X, y, task=task)
    at = model.candidates_.index("transformed")
    assert model.weights_[1, at] > 0.5
    means = model.learners_["transformed"]
    assert means.criterion == "squared"
    medians = cm.AutoRegressor(**few).fit(X, y, task=task).learners_["transformed"]
    assert means.adapt(X[:3], y[:3]).predict([[0.0]]) > 1.1 * medians.adapt(X[:3], y[:3]).predict(
        [[0.0]]
    )


def test_the_base_alone_predicts_medians_of_skewed_labels():
    rng = np.random.default_rng(0)
    task, X = np.repeat(np.arange(60), 8), rng.normal(size=(480, 1))
    y = np.exp(np.sin(3 * X[:, 0]) + rng.normal(size=480))  # tasks do not differ
    model = cm.AutoRegressor(shots=(0, 3)).fit(X, y, task=task)
    names = "constant on base", "task mean on base"
    constant, mean = (model.errors_[:, model.candidates_.index(name)] for name in names)
    assert (constant < mean).all()
    squared = cm.AutoRegressor(shots=(0,), criterion="squared").fit(X, y, task=task)
    constant, mean = (squared.errors_[0, squared.candidates_.index(name)] for name in names)
    assert constant == pytest.approx(mean, rel=0.02)
