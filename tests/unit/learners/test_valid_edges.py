"""Input that looks odd and is valid: one task, one row, one class, constants, large numbers."""

import warnings
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from helpers import draw_problem, labels_for, make, public_learners
from sklearn.base import is_classifier

from condmeta import (
    AutoRegressor,
    ConditionalCount,
    ConditionalLevels,
    ConditionalRidge,
    ConditionalSGDClassifier,
    ConditionalSGDRegressor,
    FixedBiasRegressor,
    IndependentRegressor,
    PooledRegressor,
    TaskTable,
)
from condmeta.feature_maps import Identity, MeanInput

# The tasks of these tests are few.
pytestmark = pytest.mark.filterwarnings("ignore::condmeta.errors.FewTasksWarning")

X, Y, TASK, SIDE = draw_problem()
REGRESSORS = [cls for cls in public_learners() if not is_classifier(cls())]
CLASSIFIERS = [cls for cls in public_learners() if is_classifier(cls())]
named = {"ids": lambda cls: cls.__name__}


class Zero:
    """A map of side tables that knows nothing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.zeros((len(X), 2))


@pytest.mark.parametrize("inner", ["online", "batch"])
def test_one_task_learns_the_zero_map_and_its_own_model(engine, inner):
    learner = ConditionalSGDRegressor(inner=inner, lam=0.1).fit(X, Y)
    np.testing.assert_array_equal(learner.b_, np.zeros(3))
    assert learner.n_tasks_ == 1
    np.testing.assert_array_equal(learner.predict(X), learner.adapt(X, Y).predict(X))
    assert learner.score(X, Y) > 0


@pytest.mark.parametrize("cls", REGRESSORS, **named)
@pytest.mark.parametrize("intercept", [True, False])
def test_constant_target(engine, cls, intercept):
    learner = cls(fit_intercept=intercept, scale="standard")
    learner.fit(X, np.full(len(Y), 5.0), task=TASK, side_info=SIDE)
    predicted = learner.predict(X, task=TASK)
    assert np.isfinite(predicted).all()
    if intercept:
        rtol = 0.01 if cls is ConditionalCount else 1e-12  # 1e-12 needs noise that can vanish
        np.testing.assert_allclose(predicted, 5.0, rtol=rtol)


@pytest.mark.parametrize("label", [0.0, 5.0])
@pytest.mark.parametrize("cls", [ConditionalRidge, AutoRegressor, ConditionalLevels])
def test_constant_target_of_many_tasks(cls, label):
    """With 20 tasks and more, settings are chosen on held-out tasks."""
    task = np.repeat(np.arange(40), 5)
    rows = np.random.default_rng(0).normal(size=(200, 2))
    ids = list(zip(task % 5, task, strict=True)) if cls is ConditionalLevels else task
    learner = cls().fit(rows, np.full(200, label), task=ids)
    np.testing.assert_allclose(learner.predict(rows, task=ids), label, rtol=1e-12, atol=1e-12)


FAR = 1e8
WITH_INNER = [cls for cls in REGRESSORS if {"lam", "inner"} <= set(cls().get_params())]


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize("cls", WITH_INNER, **named)
def test_far_target_moves_predictions_by_as_much(engine, cls, loss, inner):
    learner = cls(loss=loss, inner=inner, lam=2.0, scale="standard", fit_intercept=True, tol=1e-12)
    call = {"task": TASK, "side_info": SIDE}
    near = learner.fit(X, Y, **call).predict(X, task=TASK)
    spread = learner.theta_for(SIDE)
    far = learner.fit(X, Y + FAR, **call).predict(X, task=TASK)
    # y + 1e8 is itself rounded to 1.5e-8.
    np.testing.assert_allclose(far - FAR, near, rtol=0, atol=1e-6)
    np.testing.assert_allclose(far, near + FAR, rtol=1e-9)
    np.testing.assert_allclose(learner.theta_for(SIDE)[:, :3], spread[:, :3], atol=1e-6)
    np.testing.assert_allclose(learner.theta_for(SIDE)[:, 3] - FAR, spread[:, 3], atol=1e-6)


def test_far_target_after_adapt_and_update():
    learner = ConditionalSGDRegressor(fit_intercept=True, scale="standard", lam=2.0)
    near = learner.fit(X, Y, task=TASK).adapt(X[:5], Y[:5]).update(X[5:8], Y[5:8]).predict(X)
    far = learner.fit(X, Y + FAR, task=TASK).adapt(X[:5], Y[:5] + FAR)
    far = far.update(X[5:8], Y[5:8] + FAR).predict(X)
    np.testing.assert_allclose(far - FAR, near, rtol=0, atol=1e-6)


@pytest.mark.parametrize("inner", ["online", "batch"])
def test_tasks_of_one_row(engine, inner):
    ids = [f"row {i}" for i in range(len(Y))]
    learner = ConditionalSGDRegressor(inner=inner, lam=0.5).fit(X, Y, task=ids)
    assert learner.n_tasks_ == len(Y)
    predicted = learner.predict(X, task=ids)
    tau = np.einsum("ij,j->i", X, learner.b_)
    if inner == "online":  # one point alone returns theta
        np.testing.assert_allclose(predicted, tau, rtol=1e-12)
    else:
        assert (np.abs(Y - predicted) < np.abs(Y - tau)).all()


@pytest.mark.parametrize("cls", CLASSIFIERS, **named)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("inner", ["online", "batch"])
def test_one_class_within_a_task(engine, cls, loss, inner):
    labels = np.where(TASK == "t0", "no", np.where(Y > 0, "yes", "no"))
    learner = make(cls, loss=loss, inner=inner, lam=0.5).fit(X, labels, task=TASK)
    predicted = learner.predict(X, task=TASK)
    assert set(predicted) <= {"no", "yes"}
    assert learner.classes_.tolist() == ["no", "yes"]
    scores = learner.decision_function(X, task=TASK)
    np.testing.assert_array_equal(predicted == "yes", scores > 0)
    if hasattr(learner, "predict_proba"):
        proba = learner.predict_proba(X, task=TASK)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        np.testing.assert_array_equal(proba[:, 1] > 0.5, scores > 0)


@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_huge_lam_gives_theta(engine, inner, loss):
    theta = [1.0, -2.0, 0.5]
    learner = FixedBiasRegressor(theta, lam=1e12, inner=inner, loss=loss).fit(X, Y, task=TASK)
    np.testing.assert_allclose(learner.predict(X, task=TASK), X @ theta, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize("averaging", ["uniform", "linear", "last"])
def test_no_map_is_a_zero_map_bit_for_bit(engine, inner, averaging):
    params = {"inner": inner, "averaging": averaging, "lam": 0.3}
    none = ConditionalSGDRegressor(None, **params).fit(X, Y, task=TASK)
    zero = ConditionalSGDRegressor(Zero(), **params).fit(X, Y, task=TASK, side_info=SIDE)
    np.testing.assert_array_equal(zero.b_, none.b_)
    np.testing.assert_array_equal(zero.M_, np.zeros((3, 2)))
    np.testing.assert_array_equal(zero.predict(X, task=TASK), none.predict(X, task=TASK))


def test_auto_without_side_information_is_unconditional():
    auto, none = (ConditionalSGDRegressor(m).fit(X, Y, task=TASK) for m in ("auto", None))
    np.testing.assert_array_equal(auto.b_, none.b_)
    assert auto.M_.shape == (3, 0)
    assert auto.side_features_ == []


@pytest.mark.parametrize("cls", public_learners(), **named)
def test_one_row_at_a_time(cls):
    learner = make(cls, lam=1.0).fit(X, labels_for(cls, Y), task=TASK, side_info=SIDE)
    together = learner.predict(X, task=TASK)
    alone = [learner.predict(X[i : i + 1], task=TASK[i : i + 1])[0] for i in range(len(Y))]
    if is_classifier(learner):
        np.testing.assert_array_equal(alone, together)
    else:
        np.testing.assert_allclose(alone, together, rtol=1e-12)


@pytest.mark.parametrize("points", [(None, None), (X[:0], Y[:0]), (X[:0].tolist(), [])])
def test_adapt_on_no_points_is_zero_shot(points):
    learner = ConditionalSGDRegressor(Identity()).fit(X, Y, task=TASK, side_info=SIDE)
    model = learner.adapt(*points, side_info=[0.5, -1.0])
    np.testing.assert_array_equal(model.coef_, learner.theta_for([0.5, -1.0]))
    np.testing.assert_array_equal(model.theta_, model.coef_)
    assert model.n_ == 0
    np.testing.assert_array_equal(model.predict(X), learner.predict(X, side_info=[0.5, -1.0]))


def test_adapt_many_tasks_on_no_points():
    learner = ConditionalSGDRegressor(Identity()).fit(X, Y, task=TASK, side_info=SIDE)
    models = learner.adapt(task=["a", "b"], side_info=TaskTable([[1.0, 2], [3, 4]], ["b", "a"]))
    assert list(models) == ["a", "b"]
    np.testing.assert_array_equal(models["a"].coef_, learner.theta_for([3.0, 4.0]))
    np.testing.assert_array_equal(models.n_, [0, 0])


KINDS = {
    "str": [f"t{t}" for t in range(6)],
    "int": list(range(6)),
    "negative int": [-t for t in range(6)],
    "float": [t / 2 for t in range(6)],
    "date": [date(2024, 1, 1 + t) for t in range(6)],
    "datetime": [datetime(2024, 1, 1, t) for t in range(6)],
    "tuple": [("north", t) for t in range(6)],
    "mixed": ["a", 1, 2.5, date(2024, 1, 1), ("b", 3), False],
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_every_kind(kind):
    ids = KINDS[kind]
    task = [ids[int(name[1:])] for name in TASK]
    learner = ConditionalSGDRegressor(Identity())
    plain = learner.fit(X, Y, task=TASK, side_info=SIDE).predict(X, task=TASK)
    rows = dict(zip(ids, SIDE.numeric().tolist(), strict=True))
    learner.fit(X, Y, task=task, side_info=rows)
    np.testing.assert_array_equal(learner.predict(X, task=task), plain)
    assert set(learner.fitted_.tasks.ids.tolist()) == set(ids)
    learner.update(X[:1], Y[:1], task=task[:1])
    assert learner.adapt(X, Y, task=task, side_info=rows)[ids[0]].n_ == task.count(ids[0])


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(TASK),
        pd.Series(TASK),
        pd.Series(TASK, dtype="string"),
        pd.Index(TASK),
        pd.to_datetime([f"2024-01-0{1 + int(t[1:])}" for t in TASK]),
        np.array([int(t[1:]) for t in TASK], dtype=np.uint8),
        np.array([f"2024-01-0{1 + int(t[1:])}" for t in TASK], dtype="M8[D]"),
        [np.str_(t) for t in TASK],
    ],
    ids=lambda column: type(column).__name__ + str(getattr(column, "dtype", "")),
)
def test_columns_of_ids_of_every_kind(column):
    learner = ConditionalSGDRegressor(None)
    plain = learner.fit(X, Y, task=TASK).predict(X, task=TASK)
    np.testing.assert_array_equal(learner.fit(X, Y, task=column).predict(X, task=column), plain)


def interleaved(rng):
    """Return a new order of rows that keeps the order of tasks and of the rows in each."""
    first = {}
    for i, task in enumerate(TASK):
        first.setdefault(task, []).append(i)
    heads = [rows[0] for rows in first.values()]
    tails = rng.permutation(np.repeat(list(first), [len(rows) - 1 for rows in first.values()]))
    taken = dict.fromkeys(first, 0)
    for task in tails:
        taken[task] += 1
        heads.append(first[task][taken[task]])
    return np.array(heads)


@pytest.mark.parametrize("fmap", [Identity(), MeanInput()])
def test_shuffled_rows_change_nothing_but_the_order(engine, fmap):
    order = interleaved(np.random.default_rng(3))
    assert (np.diff(order) < 0).any()
    plain = ConditionalSGDRegressor(fmap).fit(X, Y, task=TASK, side_info=side_for(fmap))
    shuffled = ConditionalSGDRegressor(fmap).fit(
        X[order], Y[order], task=TASK[order], side_info=side_for(fmap)
    )
    np.testing.assert_array_equal(shuffled.M_, plain.M_)
    np.testing.assert_array_equal(
        shuffled.predict(X[order], task=TASK[order]), plain.predict(X, task=TASK)[order]
    )


def side_for(fmap):
    return SIDE if isinstance(fmap, Identity) else None


@pytest.mark.parametrize("cls", [IndependentRegressor, PooledRegressor])
def test_shuffled_rows_of_a_batch_learner(cls):
    order = np.random.default_rng(1).permutation(len(Y))
    plain = cls(lam=0.1).fit(X, Y, task=TASK).predict(X, task=TASK)
    shuffled = cls(lam=0.1).fit(X[order], Y[order], task=TASK[order])
    np.testing.assert_allclose(shuffled.predict(X, task=TASK), plain, rtol=1e-10, atol=1e-12)


def test_predictions_come_in_the_order_of_the_rows():
    learner = ConditionalSGDRegressor().fit(X, Y, task=TASK)
    by_hand = [X[i] @ learner.adapt(*own(TASK[i])).coef_ for i in range(len(Y))]
    np.testing.assert_allclose(learner.predict(X, task=TASK), by_hand, rtol=1e-12)


def own(task):
    return X[task == TASK], Y[task == TASK]


def test_unseen_level_of_a_category_is_reported():
    side = TaskTable({"kind": list("aabbcc")}, SIDE.ids)
    learner = ConditionalSGDRegressor().fit(X, Y, task=TASK, side_info=side)
    with pytest.warns(UserWarning, match="levels not seen in training, .*'kind': 'z'"):
        learner.theta_for({"kind": "z"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.theta_for({"kind": "a"})


def test_classifier_codes_the_greater_label_as_positive():
    learner = ConditionalSGDClassifier(lam=0.1).fit(X, Y > 0, task=TASK)
    assert learner.classes_.tolist() == [False, True]
    assert learner.predict(X, task=TASK).dtype == bool
    assert learner.score(X, Y > 0, task=TASK) > 0.5
