"""adapt solves new tasks and changes nothing; update adds points exactly, or says why not."""

from collections.abc import Mapping

import numpy as np
import pytest
from helpers import draw_problem, unchanged

from condmeta import (
    ConditionalSGDClassifier,
    ConditionalSGDRegressor,
    FixedBiasRegressor,
    IndependentRegressor,
    PooledRegressor,
    TaskModel,
    TaskModels,
    TaskSet,
    TaskTable,
    inner,
)
from condmeta.errors import DataError
from condmeta.feature_maps import Identity, MeanInput, MeanInputOutput
from condmeta.losses import LOSSES

PROBLEM = draw_problem()
X, Y, TASK, SIDE = PROBLEM
NEW = draw_problem(n_tasks=3, seed=8)
ROW = [0.5, -1.0]
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
SETTINGS = [
    {"scale": "none", "fit_intercept": False},
    {"scale": "standard", "fit_intercept": True},
    {"scale": "rows", "fit_intercept": True},
]


def fitted(loss="absolute", inner="online", fmap=None, **params):
    """Return a learner and the labels that suit its loss."""
    classes = loss in ("hinge", "logistic")
    cls = ConditionalSGDClassifier if classes else ConditionalSGDRegressor
    fmap = Identity() if fmap is None else fmap
    learner = cls(fmap, loss=loss, inner=inner, lam=2.0, **params)
    y = np.where(Y > 0, "yes", "no") if classes else Y
    side = SIDE if isinstance(fmap, Identity) else None
    return learner.fit(X, y, task=TASK, side_info=side), y


def test_adapt_knows_the_side_information_of_known_tasks():
    learner, _ = fitted()
    rows = np.isin(TASK, TASK[0])
    given = learner.adapt(X[rows], Y[rows], task=TASK[rows], side_info=SIDE)
    known = learner.adapt(X[rows], Y[rows], task=TASK[rows])
    np.testing.assert_array_equal(known.theta_, given[TASK[0]].theta_[None])
    with pytest.raises(DataError, match="1 task is missing from side_info: 'new'"):
        learner.adapt(X[:2], Y[:2], task=[TASK[0], "new"])


# Where further points can be added exactly.
exact = pytest.mark.parametrize(
    ("inner", "loss"), [*(("online", loss) for loss in LOSSES), ("batch", "squared")]
)


@exact
@pytest.mark.parametrize("params", SETTINGS, ids=lambda params: params["scale"])
def test_adapt_then_update_is_adapt_on_all(engine, inner, loss, params):
    learner, y = fitted(loss, inner, **params)
    model = learner.adapt(X[:5], y[:5], side_info=ROW)
    assert model.update(X[5:8], y[5:8]) is model
    whole = learner.adapt(X[:8], y[:8], side_info=ROW)
    np.testing.assert_allclose(model.coef_, whole.coef_, **CLOSE)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, **CLOSE)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), **CLOSE)
    assert model.n_ == whole.n_ == 8


@exact
def test_zero_shot_then_one_point_at_a_time(engine, inner, loss):
    learner, y = fitted(loss, inner)
    model = learner.adapt(side_info=ROW)
    for i in range(8):
        model.update(X[i : i + 1], y[i : i + 1])
    whole = learner.adapt(X[:8], y[:8], side_info=ROW)
    np.testing.assert_allclose(model.coef_, whole.coef_, **CLOSE)


@exact
def test_model_of_many_then_update(engine, inner, loss):
    learner, y = fitted(loss, inner)
    ids = ["a"] * 5 + ["b"] * 4
    side = TaskTable([ROW, [2.0, 2.0]], ["a", "b"])
    models = learner.adapt(X[:9], y[:9], task=ids, side_info=side)
    model = models["a"].update(X[9:12], y[9:12])
    rows = [*range(5), 9, 10, 11]
    whole = learner.adapt(X[rows], y[rows], side_info=ROW)
    np.testing.assert_allclose(model.coef_, whole.coef_, **CLOSE)
    assert models["a"].n_ == 5  # the mapping itself stays as it is


@exact
@pytest.mark.parametrize("params", SETTINGS, ids=lambda params: params["scale"])
def test_update_of_the_learner_is_adapt_on_all(engine, inner, loss, params):
    learner, y = fitted(loss, inner, **params)
    before = learner.M_.copy(), learner.b_.copy()
    more, labels = draw_problem(seed=5), y[:9]
    learner.update(more.X[:9], labels, task=TASK[:9])
    for task in np.unique(TASK[:9]):
        old, late = task == TASK, TASK[:9] == task
        whole = learner.adapt(
            np.vstack([X[old], more.X[:9][late]]), np.concatenate([y[old], labels[late]]),
            side_info=SIDE.row(task),
        )  # fmt: skip
        at = learner.fitted_.tasks.positions([task])[0]
        own = learner.fitted_.scales.to_user(learner.fitted_.tasks.coef[at])
        np.testing.assert_allclose(own[0], whole.coef_, **CLOSE)
        np.testing.assert_allclose(own[1], whole.intercept_, **CLOSE)
        assert learner.fitted_.tasks.sizes[at] == whole.n_
    np.testing.assert_array_equal(learner.M_, before[0])  # tau stays
    np.testing.assert_array_equal(learner.b_, before[1])


def test_update_enrols_new_tasks():
    learner, _ = fitted()
    side = TaskTable([ROW, [1.0, 1.0], [2.0, 0.0]], ["n0", "n1", "no points"])
    task = ["n0", "t0", "n1", "n0"]
    expected = learner.adapt(X[[0, 3]], Y[[0, 3]], side_info=ROW).predict(X)
    theta = learner.theta_for([2.0, 0.0])
    learner.update(X[:4], Y[:4], task=task, side_info=side)
    np.testing.assert_allclose(learner.predict(X, task=["n0"] * len(Y)), expected, rtol=1e-12)
    np.testing.assert_allclose(learner.predict(X, task=["no points"] * len(Y)), X @ theta)
    assert learner.fitted_.tasks.sizes.tolist()[-3:] == [2, 1, 0]
    assert learner.n_tasks_ == 6  # what the map was learned from


def test_update_gives_points_to_a_task_that_had_none():
    table = TaskTable(np.vstack([SIDE.numeric(), ROW]), [*SIDE.ids, "spare"])
    learner = ConditionalSGDRegressor(Identity()).fit(X, Y, task=TASK, side_info=table)
    learner.update(X[:6], Y[:6], task=["spare"] * 6)
    expected = learner.adapt(X[:6], Y[:6], side_info=ROW).predict(X)
    np.testing.assert_allclose(learner.predict(X, task=["spare"] * len(Y)), expected, rtol=1e-12)


def test_update_of_a_model_of_one_task_needs_no_id():
    learner = FixedBiasRegressor(lam=2.0).fit(X[:5], Y[:5])
    learner.update(X[5:8], Y[5:8])
    whole = FixedBiasRegressor(lam=2.0).fit(X[:8], Y[:8])
    np.testing.assert_allclose(learner.predict(X), whole.predict(X), **CLOSE)


def test_update_from_a_task_set_and_from_a_frame_agree():
    learners = [fitted()[0] for _ in range(2)]
    learners[0].update(X[:9], Y[:9], task=TASK[:9])
    learners[1].update(TaskSet.from_arrays(X[:9], Y[:9], TASK[:9]))
    np.testing.assert_array_equal(*(m.predict(X, task=TASK) for m in learners))


@pytest.mark.parametrize("cls", [IndependentRegressor, PooledRegressor])
def test_update_of_a_baseline(cls):
    learner = cls(lam=0.5).fit(X, Y, task=TASK)
    learner.update(X[:5], Y[:5], task=["new"] * 5)
    expected = learner.adapt(X[:5], Y[:5]).predict(X)
    np.testing.assert_allclose(learner.predict(X, task=["new"] * len(Y)), expected, **CLOSE)


REFUSED = r"update does not work with these settings: it needs inner='online', or inner='batch'"


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"inner": "batch", "loss": "absolute"}, REFUSED),
        ({"inner": "batch", "loss": "logistic"}, REFUSED),
        (
            {"fmap": MeanInput()},
            REFUSED + r".* no feature map of the task's own points",
        ),
        ({"keep_tasks": False}, r"keeps no task models to update: fit with keep_tasks=True"),
    ],
)
def test_update_is_refused_where_it_is_not_exact(params, sentence):
    learner, y = fitted(**params)
    call = {"task": TASK, "side_info": SIDE if "fmap" not in params else None}
    with unchanged(learner, X, **call), pytest.raises(DataError, match=sentence):
        learner.update(X[:2], y[:2], task=TASK[:2])
    if params.get("keep_tasks", True):
        model = learner.adapt(X[:3], y[:3], side_info=None if "fmap" in params else ROW)
        with pytest.raises(DataError, match=REFUSED):
            model.update(X[:2], y[:2])
        with pytest.raises(DataError, match=REFUSED):
            learner.adapt(X, y, **call)["t0"].update(X[:2], y[:2])


@pytest.mark.parametrize("fmap", [Identity(), MeanInputOutput()])
@pytest.mark.parametrize("inner", ["online", "batch"])
def test_adapt_never_changes_the_learner(fmap, inner):
    learner, _ = fitted(inner=inner, fmap=fmap, fit_intercept=True, scale="standard")
    table = isinstance(fmap, Identity)
    with unchanged(learner, X, task=TASK):
        model = learner.adapt(X[:5], Y[:5], side_info=ROW if table else None)
        if inner == "online" and table:
            model.update(X[5:], Y[5:])
        models = learner.adapt(X, Y, task=TASK, side_info=SIDE if table else None)
        models.predict(X, task=TASK)
        learner.adapt(TaskSet.from_arrays(X, Y, TASK, SIDE if table else None))
        learner.coef_frame(), learner.M_frame(), learner.score(X, Y, task=TASK)


# -- what adapt returns ----------------------------------------------------------------------------


def test_task_model_is_the_inner_algorithm_from_theta():
    learner, _ = fitted()
    model = learner.adapt(X[:5], Y[:5], side_info=ROW)
    run = inner.online(learner.theta_for(ROW), X[:5], Y[:5], 2.0, "absolute")
    assert isinstance(model, TaskModel)
    np.testing.assert_allclose(model.coef_, run.coef, rtol=1e-12)
    np.testing.assert_allclose(model.theta_, learner.theta_for(ROW))
    assert model.intercept_ == 0.0
    assert repr(model) == "TaskModel(n=5, features=3)"
    batch, _ = fitted(inner="batch", tol=1e-10)
    model = batch.adapt(X[:5], Y[:5], side_info=ROW)
    run = inner.batch(batch.theta_for(ROW), X[:5], Y[:5], 2.0, "absolute", 1e-10)
    np.testing.assert_allclose(model.coef_, run.coef, rtol=1e-9)
    assert 0 <= model.gap_ <= 1e-10 * 10


def test_task_models_are_a_mapping_in_order():
    learner, _ = fitted()
    models = learner.adapt(NEW.X, NEW.y, task=NEW.task, side_info=NEW.side)
    assert isinstance(models, TaskModels)
    assert isinstance(models, Mapping)
    order = list(dict.fromkeys(NEW.task.tolist()))
    assert list(models) == models.ids.tolist() == order
    assert len(models) == 3
    assert "t0" in models
    assert "t9" not in models
    with pytest.raises(KeyError, match="t9"):
        models["t9"]
    assert models.coef_.shape == models.theta_.shape == (3, 3)
    assert models.intercept_.shape == models.n_.shape == (3,)
    predicted = models.predict(NEW.X, task=NEW.task)
    for task, model in models.items():
        at = NEW.task == task
        alone = learner.adapt(NEW.X[at], NEW.y[at], side_info=NEW.side.row(task))
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-12)
        np.testing.assert_allclose(predicted[at], alone.predict(NEW.X[at]), rtol=1e-12)
        assert model.n_ == at.sum()
    assert repr(models) == "TaskModels(3 tasks, features=3)"


def test_task_models_of_a_task_set():
    learner, _ = fitted()
    tasks = TaskSet.from_arrays(NEW.X, NEW.y, NEW.task, NEW.side)
    one = learner.adapt(tasks)
    two = learner.adapt(NEW.X, NEW.y, task=NEW.task, side_info=NEW.side)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_classes_of_task_models():
    learner, y = fitted("logistic")
    models = learner.adapt(X, y, task=TASK, side_info=SIDE)
    assert set(models.predict(X, task=TASK)) <= {"no", "yes"}
    proba = models.predict_proba(X, task=TASK)
    np.testing.assert_allclose(
        proba[:, 1], 1 / (1 + np.exp(-models.decision_function(X, task=TASK)))
    )
    one = learner.adapt(X[:4], y[:4], side_info=ROW)
    np.testing.assert_allclose(one.predict_proba(X).sum(axis=1), 1.0)
    hinge, y = fitted("hinge")
    with pytest.raises(AttributeError, match="loss='logistic' only"):
        hinge.adapt(X, y, side_info=ROW).predict_proba(X)


# -- the user's units ------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scale", ["none", "standard", "rows"])
@pytest.mark.parametrize("inner", ["online", "batch"])
def test_coefficients_are_in_the_units_of_the_user(scale, intercept, inner):
    learner, _ = fitted(inner=inner, scale=scale, fit_intercept=intercept)
    shown = 3.0 * X + 1.0
    rows = shown / np.linalg.norm(shown, axis=1, keepdims=True) if scale == "rows" else shown
    model = learner.adapt(X[:6], Y[:6], side_info=ROW)
    np.testing.assert_allclose(model.predict(shown), rows @ model.coef_ + model.intercept_)
    models = learner.adapt(X, Y, task=TASK, side_info=SIDE)
    at = [models.ids.tolist().index(task) for task in TASK]
    by_hand = np.einsum("ij,ij->i", rows, models.coef_[at]) + models.intercept_[at]
    np.testing.assert_allclose(models.predict(shown, task=TASK), by_hand)
    if not intercept:
        np.testing.assert_array_equal(models.intercept_, 0.0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scale", ["none", "standard", "rows"])
def test_theta_is_the_zero_shot_model(scale, intercept):
    learner, _ = fitted(scale=scale, fit_intercept=intercept)
    theta, model = learner.theta_for(ROW), learner.adapt(side_info=ROW)
    assert theta.shape == (3 + intercept,)
    np.testing.assert_array_equal(theta[:3], model.coef_)
    if intercept:
        assert theta[3] == model.intercept_
    np.testing.assert_array_equal(model.theta_, theta)
    np.testing.assert_allclose(learner.predict(X, side_info=ROW), model.predict(X), rtol=1e-12)
    together = learner.theta_for(SIDE)
    each = [learner.theta_for(row) for row in SIDE.numeric()]
    np.testing.assert_allclose(together, each, rtol=1e-12)
