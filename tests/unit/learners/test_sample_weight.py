"""A weight counts as repetition: 2 is the row twice, 0 is no row."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from helpers import draw_problem, unchanged
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LassoLars, LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import condmeta as cm
from condmeta.errors import DataError
from condmeta.feature_maps import MeanFourier, MeanInput, MeanInputOutput
from condmeta.meta.criteria import CRITERIA, LOG_LOSS
from condmeta.meta.stacking import convex_weights

GIVEN = {"kappa": 1.0, "context": False, "cold_start": "prior", "tol": 1e-6}
RIDGE = {"metric": "identity", "noise": "per_task", **GIVEN}
SHARED = {"metric": "diagonal", "noise": "shared", **GIVEN}
LEARNERS = {
    "ridge": cm.ConditionalRidge(**RIDGE),
    "ridge, unit rows": cm.ConditionalRidge(scale="rows", fit_intercept=False, **SHARED),
    "ridge, maps of points": cm.ConditionalRidge(
        [MeanInputOutput(), MeanFourier(3, random_state=0), "auto"], **SHARED
    ),
    "logistic": cm.ConditionalLogistic(metric="diagonal", kappa=1.0),
    "logistic, map of points": cm.ConditionalLogistic(MeanInput(), metric="identity", kappa=1.0),
    "erm": cm.ConditionalERMRegressor(lam=0.3, kappa=1.0),
    "erm, huber": cm.ConditionalERMRegressor(loss="huber", lam=0.3, kappa=1.0),
    "erm, insensitive": cm.ConditionalERMRegressor(
        MeanInput(), loss="epsilon_insensitive", lam=0.3, kappa=1.0
    ),
    "own data": cm.IndependentRegressor(lam=0.3),
    "own data, pinball": cm.IndependentRegressor(loss="pinball", lam=0.3),
    "own classes": cm.IndependentClassifier(lam=0.3),
    "own classes, hinge": cm.IndependentClassifier(loss="hinge", lam=0.3),
    "pooled": cm.PooledRegressor(lam=0.3),
    "pooled, absolute": cm.PooledRegressor(loss="absolute", lam=0.3),
    "pooled classes": cm.PooledClassifier(lam=0.3),
    "fixed": cm.FixedBiasRegressor(theta=0.5, inner="batch"),
    "fixed classes": cm.FixedBiasClassifier(inner="batch", scale="standard", fit_intercept=True),
}
each_learner = pytest.mark.parametrize("name", LEARNERS)
ONLINE = {
    "sgd": cm.ConditionalSGDRegressor(),
    "sgd, batch": cm.ConditionalSGDRegressor(inner="batch"),
    "sgd classes": cm.ConditionalSGDClassifier(),
    "sgd cv": cm.ConditionalSGDRegressorCV(),
    "coin": cm.ConditionalCoinRegressor(),
    "kernel": cm.KernelConditionalSGDRegressor(),
    "fixed, online": cm.FixedBiasRegressor(),
    "pooled, online": cm.PooledClassifier(inner="online"),
}


def draw(name=None, n_tasks=14):
    """Return rows with weights 0, 1, 2, 3, and the same rows repeated."""
    classes = name is not None and is_classifier(LEARNERS.get(name, ONLINE.get(name)))
    problem = draw_problem(n_tasks, classes=classes)
    weight = np.random.default_rng(1).integers(0, 4, size=len(problem.y)).astype(float)
    rows = np.repeat(np.arange(len(weight)), weight.astype(int))
    return problem, weight, rows


def pair(name):
    """Return the learner fitted to weights, and to repeated rows."""
    problem, weight, rows = draw(name)
    X, y, task, side = problem
    weighted = clone(LEARNERS[name]).fit(X, y, task=task, side_info=side, sample_weight=weight)
    repeated = clone(LEARNERS[name]).fit(X[rows], y[rows], task=task[rows], side_info=side)
    return problem, weighted, repeated


@each_learner
def test_fit_with_weights_is_fit_to_repeated_rows(name):
    problem, weighted, repeated = pair(name)
    # A learned prior is known up to tol standard errors, here a millionth.
    fine = 1e-5 if name.startswith(("ridge", "logistic")) else 1e-7
    close = {"rtol": fine, "atol": fine / 10}
    np.testing.assert_allclose(weighted.M_, repeated.M_, **close)
    np.testing.assert_allclose(weighted.b_, repeated.b_, **close)
    assert weighted.y_offset_ == pytest.approx(repeated.y_offset_, rel=1e-12)
    call = {"task": problem.task}
    for method in ("predict", "decision_function", "predict_proba", "n_points"):
        if hasattr(weighted, method):
            answers = [getattr(model, method)(problem.X, **call) for model in (weighted, repeated)]
            np.testing.assert_allclose(*answers, **close)
    np.testing.assert_allclose(
        weighted.coef_frame(wide=True).set_index("task").sort_index(),
        repeated.coef_frame(wide=True).set_index("task").sort_index(), **close,
    )  # fmt: skip


@each_learner
def test_adapt_with_weights_is_adapt_to_repeated_rows(name):
    problem, weight, rows = draw(name)
    X, y, task, side = problem
    model = clone(LEARNERS[name]).fit(X, y, task=task, side_info=side)
    reads = model.fitted_.reader.map.columns_ is not None
    row = side.row("t0") if reads else None
    at = np.flatnonzero(task == "t0")
    again = np.repeat(at, weight[at].astype(int))
    one = model.adapt(X[at], y[at], side_info=row, sample_weight=weight[at])
    other = model.adapt(X[again], y[again], side_info=row)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-7)
    assert one.n_ == other.n_ == weight[at].sum()
    table = {"side_info": side if reads else None}
    many = model.adapt(X, y, task=task, sample_weight=weight, **table)
    others = model.adapt(X[rows], y[rows], task=task[rows], **table)
    for found in others:
        np.testing.assert_allclose(many[found].coef_, others[found].coef_, rtol=1e-7, atol=1e-9)
        assert many[found].n_ == others[found].n_
    np.testing.assert_allclose(many["t0"].coef_, one.coef_, rtol=1e-9)


@pytest.mark.parametrize("name", ["ridge", "own data", "fixed"])
def test_update_with_weights(name):
    (X, y, task, side), weight, rows = draw("ridge")
    learner = clone(LEARNERS[name])
    if name == "fixed":
        learner.set_params(loss="squared")
    half = np.arange(len(y)) % 2 == 0
    start = {"task": task[half], "side_info": side}
    weighted = clone(learner).fit(X[half], y[half], **start)  # whole counts until weights come
    repeated = clone(learner).fit(X[half], y[half], **start)
    later = rows[~half[rows]]
    weighted.update(X[~half], y[~half], task=task[~half], sample_weight=weight[~half])
    repeated.update(X[later], y[later], task=task[later])
    for method in (weighted.predict, weighted.n_points):
        expected = getattr(repeated, method.__name__)(X, task=task)
        np.testing.assert_allclose(method(X, task=task), expected, rtol=1e-8)
    one = weighted.adapt(X[:2], y[:2], side_info=side.row("t0") if name == "ridge" else None)
    other = weighted.adapt(
        X[[0, 1, 2, 2, 2]], y[[0, 1, 2, 2, 2]],
        side_info=side.row("t0") if name == "ridge" else None,
    )  # fmt: skip
    one.update(X[1:3], y[1:3], sample_weight=[0.0, 3.0])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)
    assert one.n_ == other.n_ == 5


def test_chosen_by_held_out_tasks_all_weights_alike_change_little():
    problem = draw_problem(60, seed=3)
    X, y, task, side = problem
    once = cm.ConditionalRidge().fit(X, y, task=task, side_info=side)
    call = {"task": task, "side_info": side, "sample_weight": np.ones(len(y))}
    ones = cm.ConditionalRidge().fit(X, y, **call)
    assert (ones.metric_, ones.noise_, ones.kappa_) == (once.metric_, once.noise_, once.kappa_)
    np.testing.assert_allclose(ones.predict(X, task=task), once.predict(X, task=task), rtol=1e-8)


@pytest.mark.parametrize("feature_map", ["auto", MeanInput()])
def test_chunks_merge_and_files_are_exact(tmp_path, feature_map):
    (X, y, task, side), weight, _ = draw(n_tasks=30)
    learner = cm.ConditionalRidge(feature_map, scale="none", fit_intercept=False)
    call = {"task": task, "side_info": side if feature_map == "auto" else None}
    whole = clone(learner).fit(X, y, **call, sample_weight=weight)
    part = np.isin(task, [f"t{t}" for t in range(12)])

    def rows(at):
        ids = list(dict.fromkeys(task[at].tolist()))
        table = side.take(ids) if feature_map == "auto" else None
        return (X[at], y[at]), {"task": task[at], "side_info": table, "sample_weight": weight[at]}

    chunked, (first, how) = clone(learner), rows(part)
    chunked.partial_fit(*first, **how)
    second, how_second = rows(~part)
    chunked.partial_fit(*second, **how_second)
    north = clone(learner).fit(*first, **how)
    north.save(tmp_path / "north.condmeta", resume=True)
    merged = cm.merge(
        cm.load(tmp_path / "north.condmeta"), clone(learner).fit(*second, **how_second)
    )
    for model in (chunked, merged):
        np.testing.assert_allclose(
            model.predict(X, task=task), whole.predict(X, task=task), rtol=1e-8, atol=1e-8
        )
        np.testing.assert_allclose(model.M_, whole.M_, rtol=1e-7, atol=1e-8)
        assert (model.metric_, model.kappa_) == (whole.metric_, whole.kappa_)


def test_learning_again_after_an_update_knows_of_weights():
    (X, y, task, side), weight, _ = draw(n_tasks=30)
    weight += 0.5
    learner = cm.ConditionalRidge(metric="full", noise="shared", kappa=1.0, context=True)
    whole = clone(learner).fit(X, y, task=task, side_info=side, sample_weight=weight)
    seen = [(task[:i] == task[i]).sum() for i in range(len(task))]
    early = np.array(seen) < 2  # every task has some
    model = learner.fit(
        X[early], y[early], task=task[early], side_info=side, sample_weight=weight[early]
    )
    model.update(X[~early], y[~early], task=task[~early], sample_weight=weight[~early])
    model._model = model.fitted_._replace(tau=None)  # learn again
    np.testing.assert_allclose(model.predict(X, task=task), whole.predict(X, task=task), rtol=1e-8)


def test_fractions_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(30, 3)), rng.normal(size=30), rng.uniform(0.1, 0.9, size=30)
    ours = cm.PooledRegressor(lam=0.1, scale="none", fit_intercept=False)
    ours.fit(X, y, sample_weight=weight)
    theirs = Ridge(0.1 * weight.sum(), fit_intercept=False).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.b_, theirs.coef_, rtol=1e-9)
    labels = (y > 0).astype(int)
    ours = cm.PooledClassifier(lam=0.1, scale="none", fit_intercept=False)
    ours.fit(X, labels, sample_weight=weight)
    theirs = LogisticRegression(C=1 / (0.1 * weight.sum()), fit_intercept=False, tol=1e-10)
    theirs.fit(X, labels, sample_weight=weight)
    np.testing.assert_allclose(ours.b_, theirs.coef_[0], rtol=1e-5)


def test_base_and_transformer_learn_of_weights():
    (X, y, task, side), weight, rows = draw()
    learner = cm.ConditionalRidge(base=LinearRegression(), x_transform=StandardScaler(), **SHARED)
    weighted = clone(learner).fit(X, y, task=task, side_info=side, sample_weight=weight)
    repeated = clone(learner).fit(X[rows], y[rows], task=task[rows], side_info=side)
    np.testing.assert_allclose(
        weighted.predict(X, task=task), repeated.predict(X, task=task), rtol=1e-7, atol=1e-8
    )
    learner.set_params(base=LassoLars())
    with pytest.raises(DataError, match="The base LassoLars takes no sample_weight: use base='boo"):
        learner.fit(X, y, task=task, side_info=side, sample_weight=weight)


def test_conditioning_points_may_have_weights():
    (X, y, task, _), weight, rows = draw()
    # Rounding errors grow with every step of a fit: this one takes few.
    learner = cm.ConditionalRidge(MeanInput(), **SHARED | {"tol": 1e-3})
    weighted = cm.TaskSet.from_arrays(X, y, task, weight=weight)
    repeated = cm.TaskSet.from_arrays(X[rows], y[rows], task[rows])
    models = [
        clone(learner).fit(X, y, task=task, side_info=points) for points in (weighted, repeated)
    ]
    np.testing.assert_allclose(*(model.M_ for model in models), rtol=1e-8, atol=1e-10)


def test_taskset_carries_weights():
    (X, y, task, side), weight, _ = draw()
    learner = clone(LEARNERS["ridge"])
    call = {"task": task, "side_info": side, "sample_weight": weight}
    by_call = clone(learner).fit(X, y, **call).predict(X, task=task)
    tasks = cm.TaskSet.from_arrays(X, y, task, side, weight=weight)
    np.testing.assert_array_equal(clone(learner).fit(tasks).predict(X, task=task), by_call)
    with pytest.raises(DataError, match="A TaskSet carries y and the task ids"):
        learner.fit(tasks, sample_weight=weight)


@pytest.mark.parametrize("name", ONLINE)
def test_online_learners_say_why_they_take_no_weights(name):
    (X, y, task, _), weight, _ = draw(name)
    learner = clone(ONLINE[name])
    sentence = "takes no sample_weight: it reads one point after another"
    with pytest.raises(DataError, match=f"{type(learner).__name__} takes no sample_weight"):
        learner.fit(X, y, task=task, sample_weight=weight)
    with pytest.raises(DataError, match=sentence):
        learner.fit(cm.TaskSet.from_arrays(X, y, task, weight=weight))
    if hasattr(learner, "partial_fit"):
        with pytest.raises(DataError, match=sentence):
            learner.partial_fit(X, y, task=task, sample_weight=weight)
    many = np.tile(X, (4, 1)), np.tile(y, 4), np.repeat([f"{t}" for t in range(36)], len(X) // 9)
    n = min(len(many[0]), len(many[2]))
    learner.fit(many[0][:n], many[1][:n], task=many[2][:n])
    with unchanged(learner, X[:1], task=many[2][:1]):
        with pytest.raises(DataError, match=sentence):
            learner.adapt(X[:2], y[:2], sample_weight=[1.0, 2.0])
        with pytest.raises(DataError, match=f"{sentence}|update is exact"):
            learner.update(X[:2], y[:2], task=many[2][:2], sample_weight=[1.0, 2.0])
        model = learner.adapt(X[:2], y[:2])
        with pytest.raises(DataError, match=r"takes no sample_weight|update does not work"):
            model.update(X[:2], y[:2], sample_weight=[1.0, 2.0])


def test_unknown_arguments_of_online_learners_stay_errors():
    with pytest.raises(TypeError, match="fit got an unexpected keyword argument 'weights'"):
        cm.ConditionalSGDRegressor().fit([[1.0]], [1.0], weights=[1.0])


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        ([1, 1, -2, 1], r"Task 'a', row 2, has weight -2: a weight says how often a row counts"),
        ([1, np.nan, 1, 1], r"Task 'b', row 1, has weight nan: .* finite number of at least 0"),
        ([1, 1, 1, np.inf], r"Task 'b', row 3, has weight inf"),
        ([1, 1, 1], "X has 4 rows and sample_weight has 3"),
        ([[1], [1], [1], [1]], "sample_weight must be 1-D"),
        (["a", "b", "c", "d"], "sample_weight holds text"),
        ([0, 0, 0, 0], "Every weight is zero: there is nothing to learn from"),
    ],
)
def test_weights_that_make_no_sense(weight, sentence):
    X, y, task = np.arange(8.0).reshape(4, 2), np.arange(4.0), ["a", "b", "a", "b"]
    for learner in (cm.ConditionalRidge(), cm.IndependentRegressor()):
        with pytest.raises(DataError, match=sentence):
            learner.fit(X, y, task=task, sample_weight=weight)
        learner.fit(X, y, task=task)
        with unchanged(learner, X, task=task):
            if "Every weight" not in sentence:
                with pytest.raises(DataError, match=sentence.replace("Task 'a', row 2,", "Row 2")
                                   .replace("Task 'b', row 1,", "Row 1")
                                   .replace("Task 'b', row 3,", "Row 3")):  # fmt: skip
                    learner.adapt(X, y, sample_weight=weight)
                with pytest.raises(DataError, match=sentence):
                    learner.update(X, y, task=task, sample_weight=weight)


def test_points_that_count_nothing_are_no_points():
    (X, y, task, side), _, _ = draw()
    model = clone(LEARNERS["ridge"]).fit(X, y, task=task, side_info=side)
    nothing = model.adapt(X[:3], y[:3], side_info=side.row("t0"), sample_weight=[0, 0, 0])
    np.testing.assert_array_equal(nothing.coef_, model.adapt(side_info=side.row("t0")).coef_)
    assert nothing.n_ == 0
    weight = (task != "t3").astype(float)
    without = clone(model).fit(X, y, task=task, side_info=side, sample_weight=weight)
    assert without.n_tasks_ == model.n_tasks_ - 1
    at = task == "t3"
    expected = (
        X[at] @ without.theta_for(side.row("t3"))[:-1] + without.theta_for(side.row("t3"))[-1]
    )
    np.testing.assert_allclose(without.predict(X[at], task=task[at]), expected, rtol=1e-10)


def test_a_map_of_points_without_weights_says_so():
    class Largest:
        def transform_tasks(self, X, y, offsets):
            return np.maximum.reduceat(X, offsets[:-1], axis=0)

    (X, y, task, _), weight, _ = draw()
    with pytest.raises(DataError, match=r"Largest cannot use weights\. Give its method transform"):
        cm.ConditionalRidge(Largest()).fit(X, y, task=task, sample_weight=weight)


def test_weights_are_requested_as_usual():
    (X, y, task, side), weight, rows = draw()
    with sklearn.config_context(enable_metadata_routing=True):
        learner = clone(LEARNERS["ridge"]).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        pipe = make_pipeline(scaler, learner)
        pipe.fit(X, y, task=task, side_info=side, sample_weight=weight)
        repeated = make_pipeline(StandardScaler(), clone(LEARNERS["ridge"]))
        repeated.fit(X[rows], y[rows], task=task[rows], side_info=side)
        answers = [model.predict(X, task=task) for model in (pipe, repeated)]
        np.testing.assert_allclose(*answers, rtol=1e-8)
        assert not hasattr(cm.ConditionalSGDRegressor(), "sample_weight")
        with pytest.raises(TypeError, match="sample_weight"):
            cm.ConditionalSGDRegressor().set_fit_request(sample_weight=True)


def test_auto_fits_adapts_and_judges_with_weights(monkeypatch):
    # Other weights would change the folds.
    folds = "condmeta.tasks.splits.folds.folds_by_content"
    monkeypatch.setattr(folds, lambda tasks, n, salt: np.arange(len(tasks)) % n)
    order = "condmeta.learners.held_out.tasks_by_content"
    monkeypatch.setattr(order, lambda tasks: np.arange(len(tasks)))
    problem = draw_problem(20, seed=5)
    X, y, task, side = problem
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, size=len(y)).astype(float)
    call = {"task": task, "side_info": side, "sample_weight": weight}
    auto = cm.AutoRegressor(base=None, shots=(0, 2)).fit(X, y, **call)
    for name, learner in auto.learners_.items():
        alone = clone(learner).fit(X, y, **call)
        np.testing.assert_allclose(
            learner.predict(X, task=task), alone.predict(X, task=task), err_msg=name
        )
    np.testing.assert_allclose(
        auto.n_points(X, task=task), [weight[task == one].sum() for one in task]
    )
    tasks = cm.TaskSet.from_arrays(X, y, task, side, weight=weight)
    np.testing.assert_array_equal(clone(auto).fit(tasks).errors_, auto.errors_)
    heavier = clone(auto).fit(X, y, task=task, side_info=side, sample_weight=7 * weight)
    plain = clone(auto).fit(X, y, task=task, side_info=side)
    own = auto.candidates_.index("own data")  # given lam it does not know the size of weights
    np.testing.assert_allclose(heavier.errors_[:, own], auto.errors_[:, own], rtol=1e-6)
    assert not np.allclose(plain.errors_[:, own], auto.errors_[:, own], rtol=1e-3)
    one = auto.adapt(X[:3], y[:3], side_info=side.row("t0"), sample_weight=[1, 2, 0])
    other = auto.adapt(X[[0, 1, 1]], y[[0, 1, 1]], side_info=side.row("t0"))
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-8)
    one.update(X[3:5], y[3:5], [3, 1])
    other.update(X[[3, 3, 3, 4]], y[[3, 3, 3, 4]])
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-8)
    again = clone(auto).fit(X, y, task=task, side_info=side)
    twice = clone(auto).fit(X, y, task=task, side_info=side)
    again.update(X[:2], y[:2], task=task[:2], sample_weight=[2, 0])
    twice.update(X[[0, 0]], y[[0, 0]], task=task[[0, 0]])
    np.testing.assert_allclose(again.predict(X, task=task), twice.predict(X, task=task), rtol=1e-8)


@pytest.mark.parametrize("criterion", [*CRITERIA.values(), LOG_LOSS], ids=lambda c: c.title)
def test_combinations_count_rows_by_their_weights(criterion):
    rng = np.random.default_rng(0)
    answers, y = rng.uniform(0.1, 0.9, size=(60, 3)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    times = rng.integers(1, 4, size=60)
    rows = np.repeat(np.arange(60), times)
    np.testing.assert_allclose(
        convex_weights(answers, y, criterion, times.astype(float)),
        convex_weights(answers[rows], y[rows], criterion),
        atol=1e-6,
    )
