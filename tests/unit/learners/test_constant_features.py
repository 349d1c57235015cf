"""A feature with one value in all rows changes nothing, and is named."""

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import ConstantFeatureWarning
from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import OneBlock
from condmeta.meta.prior import LearnedPrior, Prior
from condmeta.meta.ridge import RidgeModel
from condmeta.meta.setting_path import evidence

INTERCEPT = {"scale": "standard", "fit_intercept": True}
REGRESSORS = [
    cm.ConditionalRidge(),
    cm.ConditionalRidge(scale="none"),
    cm.ConditionalRidge(scale="rows", metric="diagonal"),
    cm.ConditionalRidge(random="intercept"),
    cm.ConditionalRidge(random=["x0"]),
    cm.ConditionalSGDRegressor(**INTERCEPT),
    cm.ConditionalSGDRegressorCV(**INTERCEPT, random_state=0),
    cm.KernelConditionalSGDRegressor(**INTERCEPT),
    cm.ConditionalERMRegressor(),
    cm.ConditionalCoinRegressor(**INTERCEPT),
    cm.IndependentRegressor(),
    cm.PooledRegressor(),
    cm.AutoRegressor(base=None),
]
CLASSIFIERS = [
    cm.ConditionalLogistic(),
    cm.ConditionalLogistic(scale="none"),
    cm.IndependentClassifier(),
    cm.AutoClassifier(base=None),
]


def draw(seed=6, T=10, n=5):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(T), n)
    X, slope = rng.normal(size=(T * n, 2)), rng.normal(size=T)
    return X, X[:, 0] * slope[task] + 1.0 + rng.normal(size=T * n), task


def fit(learner, X, y, task):
    side = None
    if hasattr(learner, "feature_map"):
        side = cm.TaskTable(np.arange(max(task) + 1.0)[:, None] % 3, ids=range(max(task) + 1))
    return learner.fit(X, y, task=task, side_info=side)


@pytest.mark.parametrize("learner", REGRESSORS + CLASSIFIERS, ids=lambda it: repr(it)[:50])
@pytest.mark.parametrize("T", [10, 25])
@pytest.mark.filterwarnings("ignore::condmeta.errors.FewTasksWarning")
def test_a_constant_feature_changes_nothing(learner, T):
    X, y, task = draw(T=T)
    y = y if learner in REGRESSORS else y > 1
    rows = getattr(learner, "scale", "") == "rows"
    more = np.c_[X, np.full(len(X), 0.0 if rows else 0.1)]  # 0.1 is no dyadic fraction
    without = fit(learner, X, y, task).predict(X, task=task)
    with pytest.warns(ConstantFeatureWarning, match="Feature 'x2' has one value in all rows"):
        fitted = fit(learner, more, y, task)
    assert fitted.constant_features_ == ["x2"]
    predicted = fitted.predict(more, task=task)
    if learner in CLASSIFIERS:
        assert (predicted == without).all()
    else:
        # Sums over one more column round otherwise, and solvers stop at a tolerance.
        np.testing.assert_allclose(predicted, without, rtol=0, atol=1e-8)


def test_the_choice_is_the_same():
    for seed in range(8):
        X, y, task = draw(seed, T=10 + seed)
        one = cm.ConditionalRidge().fit(X, y, task=task)
        with pytest.warns(ConstantFeatureWarning):
            two = cm.ConditionalRidge().fit(np.c_[X, np.ones(len(X))], y, task=task)
        assert (one.metric_, one.noise_, one.kappa_) == (two.metric_, two.noise_, two.kappa_)
        np.testing.assert_array_equal(two.H_[2], 0.0)
        np.testing.assert_allclose(np.delete(np.delete(two.H_, 2, 0), 2, 1), one.H_, atol=1e-10)


def test_coefficients_of_constant_features_are_zero_and_keep_their_place():
    X, y, task = draw()
    with pytest.warns(ConstantFeatureWarning):
        model = cm.ConditionalRidge().fit(np.c_[np.full(50, 3.0), X], y, task=task)
    adapted = model.adapt(np.c_[np.full(4, 3.0), X[:4]], y[:4])
    assert adapted.coef_[0] == 0.0 != adapted.coef_[1]
    # another value than in training changes nothing either
    moved = model.update(np.array([[9.0, *X[0]]]), [5.0], task=[0])
    far, near = (moved.predict([[value, *X[0]]], task=[0]) for value in (-50.0, 3.0))
    np.testing.assert_array_equal(far, near)


def test_names_of_several_constant_features():
    X, y, task = draw()
    frame = pd.DataFrame(X, columns=["price", "size"]).assign(open=1.0, country=2.0)
    match = "2 features have one value in all rows: 'open', 'country'. They are left out"
    with pytest.warns(ConstantFeatureWarning, match=match):
        model = cm.ConditionalRidge().fit(frame, y, task=task)
    assert model.constant_features_ == ["open", "country"]


def test_a_feature_that_varies_in_a_later_chunk_counts():
    X, y, task = draw(T=40)
    late = np.where(task < 20, 1.0, X[:, 1])
    both = np.c_[X[:, 0], late]
    chunked = cm.ConditionalRidge()
    for part in (task < 20, task >= 20):
        chunked.partial_fit(both[part], y[part], task=task[part])
    whole = cm.ConditionalRidge().fit(both, y, task=task)
    assert chunked.constant_features_ == whole.constant_features_ == []
    difference = chunked.predict(both, task=task) - whole.predict(both, task=task)
    np.testing.assert_allclose(difference, 0, atol=1e-8)


def test_without_an_intercept_a_constant_feature_stays():
    X, y, task = draw()
    model = cm.ConditionalRidge(fit_intercept=False).fit(np.c_[X, np.ones(50)], y, task=task)
    assert model.constant_features_ == []
    with pytest.warns(ConstantFeatureWarning):
        model.fit(np.c_[X, np.zeros(50)], y, task=task)
    assert model.constant_features_ == ["x2"]


def test_nothing_but_zeros():
    _, y, task = draw()
    with pytest.warns(ConstantFeatureWarning):
        model = cm.ConditionalRidge(fit_intercept=False).fit(np.zeros((50, 2)), y, task=task)
    np.testing.assert_array_equal(model.predict(np.ones((50, 2)), task=task), 0.0)


@pytest.mark.parametrize("T", [12, 30])
def test_a_duplicated_feature_does_no_harm(T):
    X, y, task = draw(T=T)
    twice = np.c_[X, X[:, 0]]
    for learner in (cm.ConditionalRidge(), cm.AutoRegressor(base=None)):
        predicted = learner.fit(twice, y, task=task).predict(twice, task=task)
        without = learner.fit(X, y, task=task).predict(X, task=task)
        assert np.sqrt(np.mean((predicted - without) ** 2)) < 0.3 * y.std()


def test_a_category_with_one_level():
    X, y, task = draw()
    frame = pd.DataFrame({"shop": task, "x": X[:, 0], "country": "DE", "y": y})
    with pytest.warns(ConstantFeatureWarning, match="Feature 'country=DE' has one value"):
        model = cm.TableModel(task="shop", target="y").fit(frame)
    without = cm.TableModel(task="shop", target="y").fit(frame.drop(columns="country"))
    predicted = [m.predict(frame) for m in (model, without)]
    np.testing.assert_allclose(*predicted, atol=1e-10)


@pytest.mark.parametrize(
    "fit_to_folds",
    [
        lambda tasks: cm.calibrate(cm.ConditionalRidge(), tasks, shots=(0,)),
        lambda tasks: cm.AutoRegressor(base=None).fit(tasks),
        lambda tasks: cm.compare(tasks, base=None, shots=(0,)),
        lambda tasks: cm.compare(tasks, learners={"ridge": cm.ConditionalRidge()}, shots=(0,)),
    ],
)
def test_folds_warn_of_no_columns(fit_to_folds):
    """A level of one task is absent from a fold: only the column of the whole table is named."""
    X, y, task = draw(T=20)
    frame = pd.DataFrame({"x": X[:, 0], "rare": task == 3, "open": 1.0, "shop": task, "y": y})
    tasks = cm.TaskSet.from_frame(frame, task="shop", target="y")
    with pytest.warns(ConstantFeatureWarning) as caught:
        fit_to_folds(tasks)
    (note,) = caught
    assert str(note.message).startswith("Feature 'open' has one value in all rows")


def test_the_evidence_of_a_direction_that_no_row_has():
    """A duplicated column adds a direction without rows: the evidence of b leaves it out."""
    X, y, _ = draw()
    offsets = np.arange(0, 51, 5)
    Phi, s2 = np.zeros((10, 0)), 0.7

    def value(rows, L):
        stats = SquaredState.of(rows, y, offsets)
        prior = Prior(np.zeros((1, len(L))), L, s2)
        J, _ = RidgeModel(OneBlock.of(stats, Phi), np.inf).evaluate(prior)
        return evidence(stats, Phi, "identity", np.inf, LearnedPrior(prior, J, 1))

    one = value(X[:, :1], np.array([[1.0]]))
    twice = value(X[:, [0, 0]], np.sqrt(0.5) * np.eye(2))  # x (w1 + w2): the same model
    # with b1 + b2 = sqrt(2) u for a unit direction u, du = db / sqrt(2)
    np.testing.assert_allclose(twice, one - np.log(2) / 2, atol=1e-6)
