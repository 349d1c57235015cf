"""Ordered classes and shares: truth found, order, probabilities, sentences, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import gammaln

import condmeta as cm
from condmeta.errors import DataError

# The tasks of these tests are few.
pytestmark = pytest.mark.filterwarnings("ignore::condmeta.errors.FewTasksWarning")
ORDER = ["bad", "fair", "good", "best"]
QUICK = {"metric": "diagonal", "kappa": 1.0}


def draw(n_tasks=60, n=8, spread=0.5, seed=0):
    """Return X, classes 0..3 with cuts -1, 0.5, 2, task and a side table."""
    rng = np.random.default_rng(seed)
    s, task = rng.normal(size=n_tasks), np.repeat(np.arange(n_tasks), n)
    X = rng.normal(size=(len(task), 1))
    slope, level = 1 + s + spread * rng.normal(size=n_tasks), spread * rng.normal(size=n_tasks)
    latent = level[task] + slope[task] * X[:, 0] + rng.logistic(size=len(task))
    y = np.digitize(latent, [-1.0, 0.5, 2.0])
    return X, y, task, cm.TaskTable({"s": s}, range(n_tasks))


def test_truth_is_found():
    X, y, task, side = draw(500, 10)
    model = cm.ConditionalOrdinal(metric="diagonal", kappa=0.1)
    model.fit(X, y, task=task, side_info=side)
    np.testing.assert_allclose(model.cuts_, [0, 1.5, 3.0], atol=0.15)
    np.testing.assert_allclose(model.theta_for({"s": 1.0}), [2.0, 1.0], atol=0.2)
    np.testing.assert_allclose(np.diag(model.H_), 0.25, atol=0.1)
    assert model.classes_.tolist() == [0, 1, 2, 3]


def test_probabilities_are_calibrated_for_new_tasks(engine):
    X, y, task, side = draw(800, 6)
    train = task < 400
    model = cm.ConditionalOrdinal(**QUICK).fit(X[train], y[train], task=task[train], side_info=side)
    P = model.predict_proba(X[~train], task=task[~train])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose(P.mean(axis=0), np.bincount(y[~train]) / (~train).sum(), atol=0.03)
    predicted = model.predict(X[~train], task=task[~train])
    np.testing.assert_array_equal(predicted, model.classes_[P.argmax(axis=1)])
    log_loss = -np.log(P[np.arange(len(P)), y[~train]]).mean()
    shares = np.bincount(y[train]) / train.sum()
    assert log_loss < -np.log(shares[y[~train]]).mean() - 0.1
    scores = model.decision_function(X[~train], task=task[~train])
    np.testing.assert_allclose(np.exp(scores), P)


def test_a_class_of_one_task_alone():
    """Folds that hold this task out have no such class; the choice raised an IndexError."""
    X, y, task, _ = draw(40)
    y[3] = 4
    model = cm.ConditionalOrdinal().fit(X, y, task=task)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    P = model.predict_proba(X, task=task)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert P[:, 4].mean() == pytest.approx(1 / len(y), rel=0.5)


@pytest.mark.parametrize("kind", ["classes", "pandas", "polars"])
def test_order_of_texts(kind):
    X, y, task, side = draw(20)
    texts = np.array(ORDER)[y]
    learner, labels = cm.ConditionalOrdinal(**QUICK), texts
    if kind == "classes":
        learner.set_params(classes=ORDER)
    elif kind == "pandas":
        labels = pd.Series(pd.Categorical(texts, ["none", *ORDER], ordered=True))
    else:
        labels = pl.Series(texts, dtype=pl.Enum(ORDER))
    learner.fit(X, labels, task=task, side_info=side)
    assert learner.classes_.tolist() == ORDER
    numbers = cm.ConditionalOrdinal(**QUICK).fit(X, y, task=task, side_info=side)
    assert learner.objective_ == numbers.objective_
    np.testing.assert_array_equal(
        learner.predict(X, task=task), np.array(ORDER)[numbers.predict(X, task=task)]
    )
    assert learner.score(X, texts, task=task) > 0.4


def test_adapted_models_and_files(tmp_path):
    X, y, task, side = draw(30)
    model = cm.ConditionalOrdinal(classes=[0, 1, 2, 3], **QUICK)
    model.fit(X, y, task=task, side_info=side)
    one = model.adapt(X[:8], y[:8], side_info={"s": 0.3})
    models = model.adapt(X[:8], y[:8], task=["a"] * 8, side_info={"a": {"s": 0.3}})
    np.testing.assert_allclose(one.predict_proba(X), models.predict_proba(X, task=["a"] * len(X)))
    np.testing.assert_array_equal(one.predict(X), models.predict(X, task=["a"] * len(X)))
    model.save(tmp_path / "model.condmeta")
    again = cm.load(tmp_path / "model.condmeta")
    np.testing.assert_array_equal(
        again.predict_proba(X, task=task), model.predict_proba(X, task=task)
    )
    np.testing.assert_array_equal(again.cuts_, model.cuts_)


def test_two_classes_are_the_logistic_learner():
    X, y, task, side = draw(40)
    one = cm.ConditionalOrdinal(**QUICK).fit(X, y > 1, task=task, side_info=side)
    other = cm.ConditionalLogistic(**QUICK).fit(X, y > 1, task=task, side_info=side)
    assert one.objective_ == pytest.approx(other.objective_, abs=1e-4)
    np.testing.assert_allclose(
        one.predict_proba(X, task=task), other.predict_proba(X, task=task), atol=1e-3
    )


@pytest.mark.parametrize(
    ("params", "labels", "sentence"),
    [
        ({}, ["a", "b", "c", "a"], r"^y holds texts, which have no order \('a', 'b',"),
        ({}, [1, 1, 1, 1], r"^y holds the single class \[1\]"),
        ({"classes": ["a", "b"]}, ["a", "b", "c", "a"], r"^y holds labels \['c'\] that are"),
        ({"classes": ["a", "a"]}, ["a", "b", "c", "a"], r"^The 'classes' parameter of"),
        ({"classes": [["a"], ["b", "c"]]}, ["a", "b", "c", "a"], r"^The 'classes' parameter of"),
    ],
)  # fmt: skip
def test_bad_classes_have_a_sentence(params, labels, sentence):
    with pytest.raises(DataError, match=sentence):
        cm.ConditionalOrdinal(**params).fit([[0.0], [1.0], [2.0], [3.0]], labels, task=[0, 0, 1, 1])


# -- shares ----------------------------------------------------------------------------------------


def draw_shares(n_tasks=40, n=4, seed=0):
    rng = np.random.default_rng(seed)
    s, task = rng.normal(size=n_tasks), np.repeat(np.arange(n_tasks), n)
    X, trials = rng.normal(size=(len(task), 1)), rng.integers(1, 9, size=len(task))
    f = 0.5 * s[task] + (1 + rng.normal(size=n_tasks))[task] * X[:, 0]
    return (
        X,
        rng.binomial(trials, 1 / (1 + np.exp(-f))),
        trials,
        task,
        cm.TaskTable({"s": s}, range(n_tasks)),
    )


def test_trials_are_rows_of_two_classes():
    X, successes, trials, task, side = draw_shares()
    at = np.repeat(np.arange(len(X)), trials)
    y = np.concatenate([[1] * k + [0] * (m - k) for k, m in zip(successes, trials, strict=True)])
    learner = cm.ConditionalLogistic(scale="none", **QUICK)
    long = learner.fit(X[at], y, task=task[at], side_info=side)
    want, objective = long.predict_proba(X, task=task), long.objective_
    short = learner.fit(X, successes, trials=trials, task=task, side_info=side)
    np.testing.assert_allclose(short.predict_proba(X, task=task), want, atol=1e-4)
    ways = gammaln(trials + 1) - gammaln(successes + 1) - gammaln(trials - successes + 1)
    assert short.objective_ == pytest.approx(objective + ways.sum(), abs=1e-3)
    assert short.classes_.tolist() == [0, 1]
    rows = short.adapt(X[at][:9], y[:9], side_info={"s": 0.0})
    first = np.unique(at[:9])
    m = np.bincount(at[:9])
    k = np.bincount(at[:9], weights=y[:9])
    shares = short.adapt(X[first], k, trials=m, side_info={"s": 0.0})
    np.testing.assert_allclose(shares.coef_, rows.coef_, atol=1e-6)


def test_shares_choose_their_settings():
    X, successes, trials, task, side = draw_shares()
    model = cm.ConditionalLogistic().fit(X, successes, trials=trials, task=task, side_info=side)
    assert model.choice_
    assert 0.3 < model.predict_proba(X, task=task)[:, 1].mean() < 0.7


@pytest.mark.parametrize(
    ("y", "trials", "sentence"),
    [
        ([1, 3], [2, 2], r"^Task 'a', row 1, has 3 successes in 2 trials: with trials="),
        ([1, 1], [2, 0], r"^Task 'a', row 1, has trials 0: successes are counted out"),
        ([1, 1], [2], r"^X has 2 rows and trials has 1"),
    ],
)  # fmt: skip
def test_bad_shares_have_a_sentence(y, trials, sentence):
    with pytest.raises(DataError, match=sentence):
        cm.ConditionalLogistic().fit([[0.0], [1.0]], y, trials=trials, task=["a", "a"])


def test_trials_for_a_model_of_classes_have_a_sentence():
    X, y, task, side = draw(10)
    model = cm.ConditionalLogistic(**QUICK).fit(
        X, np.array(["no", "yes"])[(y > 1) * 1], task=task, side_info=side
    )
    with pytest.raises(DataError, match=r"^trials= is for a model that was fitted with trials"):
        model.adapt(X[:2], [1, 1], trials=[2, 2], task=["a", "a"], side_info={"a": {"s": 0.0}})
