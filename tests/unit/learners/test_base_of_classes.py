"""A base under the heads of two classes: its log odds are one more input of theirs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers import draw_square
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import condmeta as cm
from condmeta.errors import DataError, ModelFileError
from condmeta.feature_maps import MeanInput
from condmeta.fitted.boosted_trees import BoostedTrees
from condmeta.tasks.splits import folds_by_content

N_TASKS, N = 80, 12
FIXED = {"metric": "diagonal", "kappa": 1.0}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def data():
    """Tasks whose weights differ, on top of a function that is not linear in x or s."""
    rng, X, task, S = draw_square(N_TASKS, N)
    shared = 4 * np.sin(2 * X[:, 0]) + 2 * (X[:, 1] ** 2 - 1) * (S[task, 0] > 0)
    own = np.einsum("ij,ij->i", X, 0.7 * rng.normal(size=(N_TASKS, 2))[task])
    y = np.where(rng.random(len(task)) < expit(shared + own), "yes", "no")
    return X, y, task, S


def side(S, ids=None):
    return cm.TaskTable(S, ids=range(len(S)) if ids is None else ids)


@pytest.fixture(scope="module")
def boosted(data):
    X, y, task, S = data
    old = task < 60
    learner = cm.ConditionalLogistic(base="boosting", **FIXED)
    return learner.fit(X[old], y[old], task=task[old], side_info=side(S))


def test_it_is_a_learner_with_the_log_odds_as_a_column_of_x(data):
    X, y, task, S = data
    old, Z = task < 60, np.hstack([X, S[task]])
    trees = HistGradientBoostingClassifier(random_state=0)
    boosted = cm.ConditionalLogistic(base=trees, **FIXED)
    boosted.fit(X[old], y[old], task=task[old], side_info=side(S))
    unseen = np.empty(old.sum())
    signs = np.where(y[old] == "yes", 1.0, -1.0)
    folds = folds_by_content(cm.TaskSet.from_arrays(X[old], signs, task[old]), 5)
    for fold in range(5):
        left_out = folds[task[old]] == fold
        trees.fit(Z[old][~left_out], y[old][~left_out])
        unseen[left_out] = logit(trees.predict_proba(Z[old][left_out])[:, 1])
    said = logit(trees.fit(Z[old], y[old]).predict_proba(Z)[:, 1])
    by_hand = cm.ConditionalLogistic(**FIXED).fit(
        np.column_stack([X[old], np.clip(unseen, -7, 7)]), y[old], task=task[old],
        side_info=side(S),
    )  # fmt: skip
    XX = np.column_stack([X, np.clip(said, -7, 7)])
    np.testing.assert_allclose(boosted.M_, by_hand.M_, rtol=1e-6, atol=1e-9)
    for method in ("predict_proba", "decision_function"):
        np.testing.assert_allclose(
            getattr(boosted, method)(X, task=task), getattr(by_hand, method)(XX, task=task),
            rtol=1e-6, atol=1e-9,
        )  # fmt: skip
    few = np.flatnonzero(task == 70)[:5]
    one = boosted.adapt(X[few], y[few], side_info=S[70])
    other = by_hand.adapt(XX[few], y[few], side_info=S[70])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    assert one.coef_.shape == (3,)


def test_a_base_catches_what_is_not_linear(data, boosted):
    X, y, task, S = data
    old, support = task < 60, (task >= 60) & (np.arange(len(y)) % N < 5)
    query = ~old & ~support
    plain = cm.ConditionalLogistic(**FIXED).fit(X[old], y[old], task=task[old], side_info=side(S))
    losses = []
    for model in (boosted, plain):
        new = side(S[60:], range(60, N_TASKS))
        few = model.adapt(X[support], y[support], task=task[support], side_info=new)
        losses.append(log_loss(y[query], few.predict_proba(X[query], task=task[query])))
    assert losses[0] < 0.85 * losses[1]


def test_every_way_to_a_model_is_the_same(data, boosted):
    X, y, task, S = data
    rows, support = np.flatnonzero(task == 70), np.flatnonzero(task == 70)[:5]
    one = boosted.adapt(X[support], y[support], side_info=S[70])
    many = boosted.adapt(X[support], y[support], task=task[support], side_info=side(S[70:71], [70]))
    expected = one.predict_proba(X[rows])
    np.testing.assert_allclose(many.predict_proba(X[rows], task=task[rows]), expected, rtol=1e-9)
    np.testing.assert_allclose(many[70].predict_proba(X[rows]), expected, rtol=1e-9)
    tasks = cm.TaskSet.from_arrays(X[rows], None, task[rows])
    np.testing.assert_allclose(many.predict_proba(tasks), expected, rtol=1e-9)
    assert np.array_equal(one.predict(X[rows]), np.where(expected[:, 1] > 0.5, "yes", "no"))
    # without points: by id, by the row of the task, and by adapting to nothing
    zero = boosted.predict_proba(X[rows], task=task[rows])  # its side row was given to fit
    given = boosted.predict_proba(X[rows], side_info=S[70])
    np.testing.assert_allclose(given, zero, rtol=1e-9)
    np.testing.assert_allclose(boosted.adapt(side_info=S[70]).predict_proba(X[rows]), zero)
    empty = boosted.adapt(task=[70], side_info=side(S[70:71], [70]))
    np.testing.assert_allclose(empty.predict_proba(X[rows], task=task[rows]), zero)


def test_a_file_gives_the_same_bits(data, boosted, tmp_path):
    X, y, task, S = data
    boosted.save(tmp_path / "boosted.condmeta")
    loaded = cm.load(tmp_path / "boosted.condmeta")
    assert np.array_equal(loaded.predict_proba(X, task=task), boosted.predict_proba(X, task=task))
    few = [model.adapt(X[:4], y[:4], side_info=S[0]) for model in (loaded, boosted)]
    assert np.array_equal(*(model.predict_proba(X) for model in few))


def test_trees_of_classes_as_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X) @ [1.0, -2.0, 0.5] + rng.normal(size=400) > 0
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    assert np.array_equal(BoostedTrees.of(model).predict(X), model.decision_function(X))


def bend(Z):
    return 2 * np.sin(3 * Z[:, 0])


class TooSure(ClassifierMixin, BaseEstimator):
    """A base that knows the log odds, and says three times as much."""

    def fit(self, Z, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, Z):
        chance = expit(3 * bend(Z))
        return np.column_stack([1 - chance, chance])


def test_the_prior_learns_how_far_to_trust_the_base():
    rng = np.random.default_rng(0)
    X, task = rng.uniform(-2, 2, size=(4000, 2)), np.repeat(np.arange(100), 40)
    y = rng.random(4000) < expit(bend(X))
    model = cm.ConditionalLogistic(None, base=TooSure(), metric="identity").fit(X, y, task=task)
    # No task differs from another, and nothing is linear: a third of what the base says is left.
    np.testing.assert_allclose(model.theta_mean_, [0, 0, 1 / 3, 0], atol=0.1)
    assert model.theta_mean_[2] == pytest.approx(1 / 3, abs=0.03)
    assert np.abs(model.predict_proba(X, task=task)[:, 1] - expit(bend(X))).mean() < 0.03


def test_certain_bases_and_one_class_in_a_fold(data):
    X, y, task, S = data
    model = cm.ConditionalLogistic(base=DecisionTreeClassifier(random_state=0), **FIXED)
    told = model.fit(X, y, task=task, side_info=side(S)).predict_proba(X, task=task)
    assert np.isfinite(told).all()  # though the tree says 0 and 1
    rare = np.where(task % 5 == 0, y, "no")  # without every fifth task there is one class
    told = model.set_params(base=GaussianNB()).fit(X, rare, task=task).predict_proba(X, task=task)
    assert np.isfinite(told).all()


def test_weights_are_repetition(data):
    X, y, task, S = data
    weight = np.random.default_rng(1).integers(0, 4, size=len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    learner = cm.ConditionalLogistic(base=GaussianNB(), tol=1e-6, **FIXED)
    one = learner.fit(X, y, task=task, side_info=side(S), sample_weight=weight.astype(float))
    told = one.predict_proba(X, task=task)
    other = learner.fit(X[rows], y[rows], task=task[rows], side_info=side(S))
    np.testing.assert_allclose(told, other.predict_proba(X, task=task), rtol=1e-5)


def test_frames_explanations_and_checks(data):
    X, y, task, S = data
    frame = pd.DataFrame({"store": task, "price": X[:, 0], "rain": X[:, 1]})
    stores = pd.DataFrame({"store": range(N_TASKS), "size": S[:, 0], "age": S[:, 1]})
    model = cm.ConditionalLogistic(base=GaussianNB(), task_column="store", **FIXED)
    late = np.arange(len(y)) % N >= 8
    model.fit(frame[~late], y[~late], side_info=stores)
    names = ["price", "rain", "(log odds)", "(intercept)"]
    assert list(model.coef_frame(wide=True).columns) == ["store", "n", *names]
    found = cm.explain(model, {"size": 0.5, "age": -1.0})
    np.testing.assert_allclose(found.theta_mean + found.contributions.sum(axis=1), found.theta)
    report = cm.check(model, frame[late], y[late])
    assert (report.verdict, report.ground) == ("keep", "the model")
    told = np.log(np.where(y == "yes", *model.predict_proba(frame).T[::-1]))
    np.testing.assert_allclose(
        report.frame["log_loss"], -told[late].reshape(N_TASKS, 4).mean(axis=1)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"rain": "snow"}))


def test_a_map_may_read_the_points_of_the_task(data):
    X, y, task, _ = data
    model = cm.ConditionalLogistic(MeanInput(), base=GaussianNB(), **FIXED).fit(X, y, task=task)
    assert len(model.side_features_) == 3
    many = model.adapt(X, y, task=task)
    np.testing.assert_allclose(
        model.adapt(X[:N], y[:N]).predict_proba(X[:N]), many.predict_proba(X[:N], task=task[:N])
    )
    points = cm.TaskSet.from_arrays(X, y == "yes", task)
    with pytest.raises(DataError, match="base= does not work with conditioning points"):
        model.fit(X, y, task=task, side_info=points)


def test_grid_search(data):
    X, y, task, _ = data
    frame = pd.DataFrame({"store": task, "price": X[:, 0], "rain": X[:, 1]})
    learner = cm.ConditionalLogistic(None, metric="identity", task_column="store")
    bases = {"base": [None, DecisionTreeClassifier(max_depth=6, random_state=0)]}
    search = GridSearchCV(learner, bases, scoring="neg_log_loss", cv=GroupKFold(3))
    search.fit(frame, y, groups=task)
    assert isinstance(search.best_params_["base"], DecisionTreeClassifier)


def test_update_on_a_base_equals_adapting_to_all_points(data):
    X, y, task, _ = data
    known = task != task[-1]
    first = np.flatnonzero(~known)[:3]
    learner = cm.ConditionalLogistic(None, base=GaussianNB(), **FIXED)
    learner.fit(X[known], y[known], task=task[known])
    learner.update(X[first], y[first], task=task[first])
    rest = np.flatnonzero(~known)[3:]
    learner.update(X[rest], y[rest], task=task[rest])
    both = learner.adapt(X[~known], y[~known])
    found = learner.predict_proba(X[~known], task=task[~known])
    np.testing.assert_allclose(found, both.predict_proba(X[~known]), rtol=1e-8)


def test_what_a_base_cannot_do(data, tmp_path):
    X, y, task, _ = data
    with pytest.raises(DataError, match="'boosting' or a scikit-learn classifier with predict_pro"):
        cm.ConditionalLogistic(base=LinearRegression()).fit(X, y, task=task)
    with pytest.raises(DataError, match="at least two tasks"):
        cm.ConditionalLogistic(base=GaussianNB()).fit(X, y)
    with pytest.raises(DataError, match="KNeighborsClassifier takes no sample_weight: use base='b"):
        cm.ConditionalLogistic(base=KNeighborsClassifier()).fit(
            X, y, task=task, sample_weight=np.ones(len(y))
        )
    own = cm.ConditionalLogistic(base=GaussianNB(), **FIXED).fit(X, y, task=task)
    with pytest.raises(ModelFileError, match=r"hold the base GaussianNB.* log odds as a column"):
        own.save(tmp_path / "own.condmeta")
