"""ConditionalRidge as its users see it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import draw_problem

import condmeta as cm
from condmeta.errors import DataError
from condmeta.feature_maps import MeanFourier, MeanInput, MeanInputOutput
from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import Stopping
from condmeta.meta.ridge import learn_prior
from condmeta.meta.rotation import Rotation


def draw(n_tasks=60, n=6, d=3, p=2, seed=0, effect=1.0, spread=0.3):
    """Return rows, labels, ids and side information; weights are linear in the latter."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n_tasks, p))
    W = effect * S @ rng.normal(size=(p, d)) + 1.0 + spread * rng.normal(size=(n_tasks, d))
    task = np.repeat(np.arange(n_tasks), n)
    X = rng.normal(size=(len(task), d)) * [1.0, 5.0, 0.2] + [3.0, 0.0, 10.0]
    y = np.einsum("ij,ij->i", X, W[task]) + rng.normal(size=len(task))
    return X, y, task, S


def table(S, ids=None):
    return cm.TaskTable(S, ids=range(len(S)) if ids is None else ids)


def fit(X, y, task, S, **params):
    return cm.ConditionalRidge(**params).fit(X, y, task=task, side_info=table(S))


def test_side_information_helps_a_task_without_points():
    X, y, task, S = draw(90)
    old, new = task < 60, task >= 60
    model = fit(X[old], y[old], task[old], S[:60])
    predicted = model.predict(X[new], task=task[new], side_info=table(S[60:], range(60, 90)))
    plain = cm.ConditionalRidge().fit(X[old], y[old], task=task[old])
    without = plain.predict(X[new], task=task[new])
    assert np.abs(predicted - y[new]).mean() < 0.5 * np.abs(without - y[new]).mean()
    assert model.kappa_ < np.inf


def test_five_points_then_three_are_eight():
    X, y, task, S = draw()
    model = fit(X, y, task, S)
    new = X[:8], y[:8]
    one = model.adapt(new[0][:5], new[1][:5], side_info=S[0]).update(new[0][5:], new[1][5:])
    all_at_once = model.adapt(*new, side_info=S[0])
    np.testing.assert_allclose(one.coef_, all_at_once.coef_, rtol=1e-10)


def test_update_is_adaptation_on_all_points():
    X, y, task, S = draw()
    first = np.arange(len(y)) % 6 < 4
    model = fit(X[first], y[first], task[first], S)
    expected = model.adapt(X, y, task=task, side_info=table(S))
    model.update(X[~first], y[~first], task=task[~first])
    np.testing.assert_allclose(
        model.predict(X, task=task), expected.predict(X, task=task), rtol=1e-9
    )


def test_learning_again_knows_of_updates():
    X, y, task, S = draw(40)
    first = (np.arange(len(y)) % 6 < 4) & (task < 30)
    # Choices may differ: which half judges depends on when points came.
    given = {"metric": "full", "noise": "per_task", "kappa": 1.0, "context": True}
    model = fit(X[first], y[first], task[first], S[:30], **given)
    late = ~first & (task < 35)  # more points of known tasks, and five tasks more
    model.update(X[late], y[late], task=task[late], side_info=table(S[30:35], range(30, 35)))
    rest = task >= 35
    model.partial_fit(X[rest], y[rest], task=task[rest], side_info=table(S[35:], range(35, 40)))
    one = fit(X, y, task, S, **given)
    np.testing.assert_allclose(model.predict(X, task=task), one.predict(X, task=task), atol=1e-8)
    assert model.n_tasks_ == 40


@pytest.mark.parametrize("chunks", [2, 7, 60])
def test_chunks_are_one_fit(chunks):
    X, y, task, S = draw()
    y = y + 1e4
    one, chunked = fit(X, y, task, S), cm.ConditionalRidge()
    parts = np.array_split(np.random.default_rng(1).permutation(60), chunks)
    for part in parts:
        at = np.isin(task, part)
        chunked.partial_fit(X[at], y[at], task=task[at], side_info=table(S[part], part))
    np.testing.assert_allclose(chunked.predict(X, task=task), one.predict(X, task=task), rtol=1e-8)
    np.testing.assert_allclose(chunked.theta_for(S[0]), one.theta_for(S[0]), rtol=1e-8)


def test_merge_is_one_fit():
    X, y, task, S = draw()
    parts = [np.arange(17), np.arange(17, 30), np.arange(30, 60)]
    models = []
    for part in parts:
        at = np.isin(task, part)
        models.append(
            cm.ConditionalRidge().fit(X[at], y[at], task=task[at], side_info=table(S[part], part))
        )
    before = models[0].predict(X[:6], task=task[:6])
    merged, one = cm.merge(*models), fit(X, y, task, S)
    np.testing.assert_allclose(merged.predict(X, task=task), one.predict(X, task=task), rtol=1e-8)
    assert merged.n_tasks_ == 60
    assert np.array_equal(before, models[0].predict(X[:6], task=task[:6]))


def test_merge_says_what_keeps_learners_apart():
    X, y, task, S = draw(20)
    model = fit(X, y, task, S)
    with pytest.raises(DataError, match=r"20 tasks were seen before: .* different tasks"):
        cm.merge(model, fit(X, y, task, S))
    with pytest.raises(DataError, match=r"differ in their parameters \['metric'\]"):
        cm.merge(model, fit(X, y, task, S, metric="full"))
    with pytest.raises(DataError, match="Got PooledRegressor"):
        cm.merge(model, cm.PooledRegressor().fit(X, y))
    with pytest.raises(DataError, match="is not fitted"):
        cm.merge(model, cm.ConditionalRidge())
    with pytest.raises(DataError, match="differ in their features"):
        cm.merge(model, fit(X[:, :2], y, task, S))
    with pytest.raises(DataError, match="two or more"):
        cm.merge(model)


def test_a_task_seen_twice_is_refused():
    X, y, task, S = draw(20)
    model = fit(X, y, task, S)
    with pytest.raises(DataError, match=r"1 task was seen before: 3\. Use update"):
        model.partial_fit(X[18:24], y[18:24], task=task[18:24], side_info=table(S[3:4], [3]))
    assert model.n_tasks_ == 20


def test_standard_deviations_are_honest():
    """On data from the model, errors over their standard deviations have variance one."""
    rng = np.random.default_rng(0)
    X, y, task, S = draw(300, 8, seed=5)
    train = task < 200
    model = fit(X[train], y[train], task[train], S[:200])
    support = ~train & (np.arange(len(y)) % 8 < 3)
    query = ~train & ~support
    side = table(S[200:], range(200, 300))
    few = model.adapt(X[support], y[support], task=task[support], side_info=side)
    for predicted, std in (
        few.predict(X[query], task=task[query], return_std=True),
        model.predict(X[query], task=task[query], side_info=side, return_std=True),
    ):
        z = (y[query] - predicted) / std
        groups = z.reshape(100, -1)
        error = 3 * (groups**2).mean(axis=1).std() / 10
        assert abs((z**2).mean() - 1) < max(error, 0.1)
    order = rng.permutation(query.sum())
    again = few.predict(X[query][order], task=task[query][order], return_std=True)
    zero_shot_std = std
    _, std = few.predict(X[query], task=task[query], return_std=True)
    assert np.array_equal(again[1], std[order])
    assert (std < zero_shot_std).all()  # points tell something
    single = model.adapt(X[support][:3], y[support][:3], side_info=S[200])
    np.testing.assert_allclose(single.predict(X[query][:5], return_std=True)[1], std[:5])


def test_known_tasks_have_standard_deviations():
    X, y, task, S = draw()
    model = fit(X, y, task, S)
    predicted, std = model.predict(X, task=task, return_std=True)
    assert np.array_equal(predicted, model.predict(X, task=task))
    models = model.adapt(X, y, task=task, side_info=table(S))
    np.testing.assert_allclose(std, models.predict(X, task=task, return_std=True)[1])
    with pytest.raises(DataError, match="return_std=True is for ConditionalRidge"):
        cm.FixedBiasRegressor().fit(X, y, task=task).adapt(X[:2], y[:2]).predict(X, return_std=True)


def test_offset_of_the_target_does_not_matter():
    X, y, task, S = draw()
    a, b = (fit(X, label, task, S, metric="diagonal") for label in (y, y + 1e8))
    np.testing.assert_allclose(
        b.predict(X, task=task) - 1e8, a.predict(X, task=task), rtol=1e-5, atol=1e-5
    )


def test_more_side_features_than_tasks():
    """The fit in the row space is the fit in all coordinates."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    stats = SquaredState.of(X, y, np.arange(21) * 5)
    Phi = rng.normal(size=(20, 50))
    rotation = Rotation.learn(Phi)
    few, all_ = rotation.apply(Phi), (Phi - Phi.mean(axis=0)) / Phi.std(axis=0)
    assert few.shape == (20, 20)
    theirs = learn_prior(stats, all_, "diagonal", 20.0, stopping=Stopping(1e-6, 300)).prior.theta(
        all_
    )
    ours = learn_prior(stats, few, "diagonal", 20.0, stopping=Stopping(1e-6, 300)).prior
    np.testing.assert_allclose(ours.theta(few), theirs, atol=1e-5)
    M, b = rotation.undo(ours.W)[:-1], rotation.undo(ours.W)[-1]
    np.testing.assert_allclose(Phi @ M + b, theirs, atol=1e-5)


def test_a_constant_side_column_changes_nothing():
    X, y, task, S = draw()
    with_it = fit(X, y, task, np.column_stack([S, np.full(60, 3.0)]))
    without = fit(X, y, task, S)
    assert with_it.choice_[0]["metric"] == without.choice_[0]["metric"]
    predicted = with_it.predict(X, task=task)
    np.testing.assert_allclose(predicted, without.predict(X, task=task), atol=1e-10)


def test_labels_in_the_side_information_do_not_fool_the_choice():
    """Phi of a left-out task comes from its support alone: its query labels are not in it."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(400, 2)), np.repeat(np.arange(100), 4)
    y = rng.normal(size=400)
    model = cm.ConditionalRidge(MeanInputOutput()).fit(X, y, task=task)
    assert model.kappa_ >= 100


def test_maps_of_points_in_chunks():
    X, y, task, _ = draw()
    for feature_map in (MeanInput(), MeanFourier(5, random_state=0)):
        one = cm.ConditionalRidge(feature_map, scale="none").fit(X, y, task=task)
        chunked = cm.ConditionalRidge(feature_map, scale="none")
        for part in np.array_split(np.arange(60), 3):
            at = np.isin(task, part)
            chunked.partial_fit(X[at], y[at], task=task[at])
        answers = (m.predict(X, task=task) for m in (chunked, one))
        np.testing.assert_allclose(*answers, rtol=1e-7)


def test_one_task_and_one_point():
    model = cm.ConditionalRidge().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    assert model.predict([[4.0]]) == pytest.approx(4.0, abs=0.1)
    alone = cm.ConditionalRidge().fit([[1.0]], [5.0])
    assert alone.predict([[1.0]]) == pytest.approx(5.0)


def test_zero_point_tasks_of_the_side_table():
    X, y, task, S = draw(60)
    some = task < 50
    model = cm.ConditionalRidge().fit(X[some], y[some], task=task[some], side_info=table(S))
    np.testing.assert_allclose(
        model.predict(X[-6:], task=task[-6:]),
        model.predict(X[-6:], side_info=S[-1]),
    )
    assert model.n_tasks_ == 50


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"metric": "round"}, "'metric' .* 'auto' or one of 'identity', 'diagonal', 'full'"),
        ({"noise": 1.0}, "'noise' .* must be 'auto' or one of 'shared', 'per_task'"),
        ({"kappa": -1.0}, r"'kappa' .* must be 'auto' or a float in \[0, inf\]"),
        ({"max_iter": 0}, "'max_iter' .* a positive integer"),
    ],
)
def test_parameters_out_of_range(params, sentence):
    with pytest.raises(DataError, match=sentence):
        cm.ConditionalRidge(**params).fit([[1.0], [2.0]], [1.0, 2.0])


def test_settings_can_be_fixed():
    problem = draw_problem(8)
    fixed = {"metric": "full", "noise": "per_task", "kappa": 5.0}
    model = cm.ConditionalRidge(**fixed)
    model.fit(problem.X, problem.y, task=problem.task, side_info=problem.side)
    assert (model.metric_, model.noise_, model.kappa_) == tuple(fixed.values())
    assert model.choice_ == []
    assert np.linalg.eigvalsh(model.H_).min() >= 0


def test_many_tasks_are_chosen_on_a_sample(monkeypatch):
    monkeypatch.setattr("condmeta.meta.task_statistics.SAMPLE", 30)
    X, y, task, S = draw(60)
    model = fit(X, y, task, S)
    assert len(model.fitted_.state.sample) == 30
    chunked = cm.ConditionalRidge()
    for part in np.array_split(np.arange(60)[::-1], 4):
        at = np.isin(task, part)
        chunked.partial_fit(X[at], y[at], task=task[at], side_info=table(S[part], part))
    np.testing.assert_allclose(
        model.predict(X, task=task), chunked.predict(X, task=task), rtol=1e-8
    )
