"""A base under the heads: boosting, a regressor of one's own, and offsets."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from helpers import draw_square
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold

import condmeta as cm
from condmeta.errors import DataError, ModelFileError
from condmeta.fitted.boosted_trees import BoostedTrees

N_TASKS, N = 60, 8


@pytest.fixture(scope="module")
def data():
    """Tasks whose weights differ, on top of a function that is not linear in x or s."""
    rng, X, task, S = draw_square(N_TASKS, N)
    shared = 3 * np.sin(2 * X[:, 0]) + X[:, 1] ** 2 * (S[task, 0] > 0)
    own = np.einsum("ij,ij->i", X, rng.normal(size=(N_TASKS, 2))[task])
    return X, shared + own + 0.2 * rng.normal(size=len(task)), task, S, shared


def side(S, ids=None):
    return cm.TaskTable(S, ids=range(len(S)) if ids is None else ids)


@pytest.fixture(scope="module")
def boosted(data):
    X, y, task, S, _ = data
    old = task < 45
    return cm.ConditionalRidge(base="boosting").fit(
        X[old], y[old], task=task[old], side_info=side(S)
    )


def test_a_base_catches_what_is_not_linear(data, boosted):
    X, y, task, S, _ = data
    old, support = task < 45, (task >= 45) & (np.arange(len(y)) % N < 4)
    query = ~old & ~support
    plain = cm.ConditionalRidge(x_transform=None, y_transform=None)
    plain.fit(X[old], y[old], task=task[old], side_info=side(S))
    new = side(S[45:], range(45, N_TASKS))
    errors = []
    for model in (boosted, plain):
        few = model.adapt(X[support], y[support], task=task[support], side_info=new)
        errors.append(np.abs(few.predict(X[query], task=task[query]) - y[query]).mean())
    assert errors[0] < 0.75 * errors[1]


def test_every_way_to_a_model_is_the_same(data, boosted):
    X, y, task, S, _ = data
    rows, support = np.flatnonzero(task == 50), np.flatnonzero(task == 50)[:5]
    many = boosted.adapt(X[support], y[support], task=task[support], side_info=side(S[50:51], [50]))
    one = boosted.adapt(X[support], y[support], side_info=S[50])
    two = boosted.adapt(X[support[:3]], y[support[:3]], side_info=S[50])
    two.update(X[support[3:]], y[support[3:]])
    known = cm.ConditionalRidge(base="boosting").fit(
        X[task < 45], y[task < 45], task=task[task < 45], side_info=side(S)
    )
    known.update(X[support], y[support], task=task[support])
    expected = many.predict(X[rows], task=task[rows])
    np.testing.assert_allclose(one.predict(X[rows]), expected, rtol=1e-12)
    np.testing.assert_allclose(many[50].predict(X[rows]), expected, rtol=1e-12)
    np.testing.assert_allclose(two.predict(X[rows]), expected, rtol=1e-9)
    np.testing.assert_allclose(known.predict(X[rows], task=task[rows]), expected, rtol=1e-9)


def test_zero_points_are_base_and_tau(data, boosted):
    X, _, task, S, _ = data
    new = task >= 45
    by_id = boosted.predict(X[new], task=task[new])  # their side rows were given to fit
    given = boosted.predict(X[new], task=task[new], side_info=side(S[45:], range(45, N_TASKS)))
    alone = boosted.adapt(side_info=S[50]).predict(X[task == 50])
    np.testing.assert_allclose(by_id, given, rtol=1e-12)
    np.testing.assert_allclose(alone, boosted.predict(X[task == 50], side_info=S[50]), rtol=1e-12)
    np.testing.assert_allclose(alone, by_id[task[new] == 50], rtol=1e-12)


def test_a_file_predicts_the_same_bits(data, boosted, tmp_path):
    X, _, task, _, _ = data
    boosted.save(tmp_path / "boosted.condmeta")
    loaded = cm.load(tmp_path / "boosted.condmeta")
    assert np.array_equal(loaded.predict(X, task=task), boosted.predict(X, task=task))


def test_a_base_of_ones_own(data, tmp_path):
    X, y, task, S, _ = data
    model = cm.ConditionalRidge(base=LinearRegression())
    model.fit(X, y, task=task, side_info=side(S))
    assert np.isfinite(model.predict(X, task=task)).all()
    with pytest.raises(ModelFileError, match="cannot hold the base LinearRegression"):
        model.save(tmp_path / "own.condmeta")


def test_heads_learn_from_tasks_that_the_base_has_not_seen(data):
    """A base that learns its rows by heart leaves nothing over of tasks that it has seen."""
    X, y, task, S, _ = data

    class ByHeart(LinearRegression):
        def fit(self, Z, y):
            self.known_ = {row.tobytes(): label for row, label in zip(Z, y, strict=True)}
            return self

        def predict(self, Z):
            return np.array([self.known_.get(row.tobytes(), 0.0) for row in Z])

    model = cm.ConditionalRidge(base=ByHeart()).fit(X, y, task=task, side_info=side(S))
    assert model.s2_ > 0.01
    assert np.trace(model.H_) > 0.1


def test_offsets_are_a_base_that_the_user_runs(data):
    X, y, task, S, shared = data
    model = cm.ConditionalRidge().fit(X, y, task=task, side_info=side(S), offset=shared)
    residual = cm.ConditionalRidge().fit(X, y - shared, task=task, side_info=side(S))
    np.testing.assert_allclose(
        model.predict(X, task=task, offset=shared), residual.predict(X, task=task) + shared
    )
    few = model.adapt(X[:4], y[:4], side_info=S[0], offset=shared[:4])
    np.testing.assert_allclose(
        few.coef_, residual.adapt(X[:4], (y - shared)[:4], side_info=S[0]).coef_
    )
    with pytest.raises(DataError, match=r"offset has shape \(3,\), expected one number"):
        model.fit(X, y, task=task, side_info=side(S), offset=shared[:3])
    with pytest.raises(DataError, match="offset holds nan in row 2"):
        model.predict(X[:3], task=task[:3], offset=[0.0, 1.0, np.nan])


def test_what_a_base_cannot_do(data):
    X, y, task, _, _ = data
    with pytest.raises(DataError, match="rows of all tasks at once"):
        cm.ConditionalRidge(base="boosting").partial_fit(X, y, task=task)
    with pytest.raises(
        DataError, match="must be None, 'auto', 'boosting' or a scikit-learn regressor"
    ):
        cm.ConditionalRidge(base="forest").fit(X, y, task=task)
    with pytest.raises(DataError, match="at least two tasks"):
        cm.ConditionalRidge(base=LinearRegression()).fit(X, y)


def test_trees_as_arrays_know_gaps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X) @ [1.0, -2.0, 0.5] + rng.normal(size=400)
    model = HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(X, y)
    assert np.array_equal(BoostedTrees.of(model).predict(X), model.predict(X))


def test_small_shared_models_grow_in_one_thread(monkeypatch):
    """Threads that wait for each other cost far more than they gain on few rows."""
    used = []
    monkeypatch.setattr(
        "condmeta.learners.shared_base.limit_threads",
        lambda jobs: used.append(jobs) or contextlib.nullcontext(),
    )
    rng = np.random.default_rng(0)
    X, y, task = rng.normal(size=(240, 1)), rng.normal(size=240), np.repeat(np.arange(24), 10)
    cm.ConditionalRidge(base="boosting", n_jobs=2).fit(X, y, task=task)
    monkeypatch.setattr("condmeta.learners.shared_base.ROWS_FOR_THREADS", 100)
    cm.ConditionalRidge(base="boosting", n_jobs=2).fit(X, y, task=task)
    assert used == [1, 2]


class Recorder(RegressorMixin, BaseEstimator):
    """A model that keeps the groups of the rows that it was fitted to."""

    seen: list = []

    def fit(self, X, y, groups=None):
        self.model_ = LinearRegression().fit(X, y)
        self.seen.append(groups)
        return self

    def predict(self, X):
        return self.model_.predict(X)


def test_a_base_of_ones_own_gets_the_tasks_of_its_rows(data):
    """One that takes groups can hold out whole tasks itself."""
    X, y, task, S, _ = data
    Recorder.seen.clear()
    cm.ConditionalRidge(base=Recorder()).fit(X, y, task=task, side_info=side(S))
    assert len(Recorder.seen) == 6  # five folds, and all tasks
    assert len(np.unique(Recorder.seen[-1])) == N_TASKS
    np.testing.assert_array_equal(np.bincount(Recorder.seen[-1]), np.bincount(task))
    folds = [np.unique(groups) for groups in Recorder.seen[:-1]]
    assert all(len(groups) < N_TASKS for groups in folds)


def test_a_search_over_groups_holds_out_whole_tasks(data):
    X, y, task, S, _ = data
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=GroupKFold(3))
    model = cm.ConditionalRidge(base=search).fit(X, y, task=task, side_info=side(S))
    assert np.isfinite(model.predict(X[:3], task=task[:3])).all()
    plain = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=3)  # no groups, and no warning
    cm.ConditionalRidge(base=plain).fit(X, y, task=task, side_info=side(S))


def draw_interaction(seed=0):
    """Return rows with an effect that neither splines nor heads can follow, and a linear one."""
    rng = np.random.default_rng(seed)
    task, X = np.repeat(np.arange(60), 12), rng.normal(size=(720, 3))
    own = X[:, 2] * rng.normal(size=60)[task] + 0.2 * rng.normal(size=720)
    return X, 3 * np.sign(X[:, 0] * X[:, 1]) + own, X @ [1.0, 2.0, 3.0] + own, task


def test_a_base_is_chosen_where_it_pays(tmp_path):
    X, y, _, task = draw_interaction()
    model = cm.ConditionalRidge(base="auto").fit(X, y, task=task)
    assert (model.base_, model.x_transform_, model.y_transform_) == ("boosting", None, None)
    assert model.transform_choice_[0]["base"] == "boosting"
    asked = cm.ConditionalRidge(base="boosting").fit(X, y, task=task)
    np.testing.assert_array_equal(model.predict(X, task=task), asked.predict(X, task=task))
    model.save(tmp_path / "auto.condmeta")
    loaded = cm.load(tmp_path / "auto.condmeta")
    assert loaded.base_ == "boosting"
    np.testing.assert_array_equal(loaded.predict(X, task=task), model.predict(X, task=task))


def test_a_base_is_refused_where_it_does_not_pay():
    X, _, y, task = draw_interaction()
    model = cm.ConditionalRidge(base="auto").fit(X, y, task=task)
    plain = cm.ConditionalRidge().fit(X, y, task=task)
    assert model.base_ is None
    np.testing.assert_array_equal(model.predict(X, task=task), plain.predict(X, task=task))
    few = cm.ConditionalRidge(base="auto").fit(X[:180], y[:180], task=task[:180])  # 15 tasks
    assert few.base_ is None
    assert few.transform_choice_ == []


def test_a_base_is_chosen_on_the_scale_of_labels():
    X, y, _, task = draw_interaction()
    model = cm.ConditionalRidge(base="auto", y_transform="log").fit(X, np.exp(y), task=task)
    asked = cm.ConditionalRidge(base="boosting").fit(X, y, task=task)
    assert model.base_ == "boosting"
    inside = np.abs(y) < np.quantile(np.abs(y), 0.9)  # ends of the range are cut
    expected = np.exp(asked.predict(X[inside], task=task[inside]))
    np.testing.assert_allclose(model.predict(X[inside], task=task[inside]), expected)


def test_who_chooses_a_base():
    X, y, _, task = draw_interaction()
    with pytest.raises(DataError, match="base= needs the rows of all tasks at once"):
        cm.ConditionalRidge(base="auto").partial_fit(X, y, task=task)
    with pytest.raises(DataError, match=r"must be None, 'boosting' or .* Got 'auto' instead"):
        cm.ConditionalLogistic(base="auto").fit(X, y > 0, task=task)
    sentence = "'base' parameter of ConditionalRidge must be None, 'auto', 'boosting' or a scikit"
    with pytest.raises(DataError, match=sentence):
        cm.ConditionalRidge(base="trees").fit(X, y, task=task)
