"""A loss, an inner algorithm and a feature map of one's own run through the learner."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import draw_problem

from condmeta import ConditionalSGDRegressor, KernelConditionalSGDRegressor, testing
from condmeta.errors import ConvergenceWarning, DataError, DivergenceError
from condmeta.inner import algorithms, batch
from condmeta.losses import get_loss

X, Y, TASK, SIDE = draw_problem()


class Pseudo:
    """The pseudo-Huber loss sqrt(1 + e^2) - 1, without a conjugate."""

    lipschitz = 1.0

    def value(self, z, y):
        return np.sqrt(1 + (np.asarray(z) - y) ** 2) - 1

    def slope(self, z, y):
        e = np.asarray(z, dtype=float) - y
        return e / np.sqrt(1 + e**2)


class Conjugate(Pseudo):
    """The same with l*(a) = a y + 1 - sqrt(1 - a^2)."""

    def conjugate(self, a, y):
        return a * y + 1 - np.sqrt(np.maximum(1 - np.asarray(a) ** 2, 0.0))


class Median:
    """An inner algorithm: the batch minimiser of the absolute loss, by the public function."""

    def solve(self, theta, X, y):
        run = batch(theta, X, y, 0.5, "absolute")
        return run.coef, run.gradient, run.gap


class Squares:
    """A map of side tables: s and its squares."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.column_stack([X, X**2])


class Spread:
    """A map of points: the range of each input."""

    def transform_tasks(self, X, y, offsets):
        ends = pairwise(offsets)
        return np.array(
            [np.ptp(X[a:b], axis=0) if a < b else np.zeros(X.shape[1]) for a, b in ends]
        )


def test_parts_keep_their_contracts():
    testing.check_loss(Pseudo())
    testing.check_loss(Conjugate())
    testing.check_inner(Median())
    testing.check_gradient(Median(), lam=0.5, loss="absolute")
    testing.check_feature_map(Squares())
    testing.check_feature_map(Spread())


def test_loss_online(engine):
    learner = ConditionalSGDRegressor(loss=Pseudo(), lam=0.5).fit(X, Y, task=TASK)
    assert learner.score(X, Y, task=TASK) > 0
    model = learner.adapt(X[:5], Y[:5]).update(X[5:8], Y[5:8])
    np.testing.assert_allclose(model.coef_, learner.adapt(X[:8], Y[:8]).coef_, rtol=1e-10)


def test_loss_batch(engine):
    learner = ConditionalSGDRegressor(loss=Conjugate(), inner="batch", lam=0.5, tol=1e-8)
    learner.fit(X, Y, task=TASK)
    assert (learner.gap_ <= 1e-7).all()
    sentence = r"Pseudo has no method 'conjugate', which inner='batch' needs.*use inner='online'"
    before = learner.predict(X, task=TASK)
    with pytest.raises(DataError, match=sentence):
        learner.set_params(loss=Pseudo()).fit(X, Y, task=TASK)
    np.testing.assert_array_equal(learner.predict(X, task=TASK), before)


def test_inner_is_the_built_in_one():
    own = ConditionalSGDRegressor(inner=Median()).fit(X, Y, task=TASK)
    built_in = ConditionalSGDRegressor(inner="batch", lam=0.5).fit(X, Y, task=TASK)
    np.testing.assert_allclose(own.b_, built_in.b_, rtol=1e-9)
    np.testing.assert_allclose(own.predict(X, task=TASK), built_in.predict(X, task=TASK), rtol=1e-9)
    np.testing.assert_allclose(own.adapt(X[:3], Y[:3]).coef_, built_in.adapt(X[:3], Y[:3]).coef_)


class NoGradient(Median):
    """Its third task has a gradient that is not a number."""

    def __init__(self):
        self.calls = 0

    def solve(self, theta, X, y):
        self.calls += 1
        w, gradient, gap = super().solve(theta, X, y)
        return w, np.full_like(gradient, np.nan) if self.calls == 3 else gradient, gap


@pytest.mark.parametrize("learner", [ConditionalSGDRegressor, KernelConditionalSGDRegressor])
def test_a_gradient_that_is_not_finite_is_blamed_on_its_algorithm(learner):
    third = list(dict.fromkeys(TASK.tolist()))[2]
    with pytest.raises(DivergenceError, match=f"Task '?{third}'?: .*solve of NoGradient returned"):
        learner(inner=NoGradient()).fit(X, Y, task=TASK, side_info=SIDE)


class Moves(Median):
    """Against the rules, it writes into theta."""

    def solve(self, theta, X, y):
        found = super().solve(theta.copy(), X, y)
        theta += 1.0
        return found


def test_an_algorithm_that_writes_into_theta_does_not_change_the_model():
    models = []
    for inner in (Moves(), Median()):
        learner = ConditionalSGDRegressor(inner=inner).fit(X, Y, task=TASK, side_info=SIDE)
        models.append(learner.adapt(X[:5], Y[:5], side_info=[0.5, -1.0]))
    for name in ("theta_", "coef_"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))


@pytest.mark.parametrize("fmap", [Squares(), Spread(), [Squares(), Spread()]])
def test_feature_map(engine, fmap):
    side = None if isinstance(fmap, Spread) else SIDE
    learner = ConditionalSGDRegressor(fmap).fit(X, Y, task=TASK, side_info=side)
    assert learner.M_.shape == (3, {Squares: 4, Spread: 3}.get(type(fmap), 7))
    assert len(learner.side_features_) == learner.M_.shape[1]
    assert np.isfinite(learner.predict(X, task=TASK)).all()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            lambda X: X[:1],
            r"Broken gave an array of shape \(1, 2\).*expected.*\(6, k\)",
        ),
        (lambda X: np.full((len(X), 2), np.nan), r"Task 't\d' got NaN or infinity .* map Broken"),
        (lambda X: np.full((len(X), 2), "a"), r"Broken gave an array .* expected numbers"),
    ],
)
def test_map_that_breaks_its_contract(values, sentence):
    class Broken(Squares):
        def transform(self, X):
            return values(X)

    with pytest.raises(DataError, match=sentence):
        ConditionalSGDRegressor(Broken()).fit(X, Y, task=TASK, side_info=SIDE)


def test_tasks_that_are_not_solved_are_named(monkeypatch):
    exact = algorithms.batch_tasks

    def lazy(*call):
        coef, gradient, gap, slopes = exact(*call)
        return coef, gradient, np.where(np.arange(len(gap)) == 2, 0.5, gap), slopes

    monkeypatch.setattr(algorithms, "batch_tasks", lazy)
    learner = ConditionalSGDRegressor(inner="batch")
    third = list(dict.fromkeys(TASK.tolist()))[2]
    sentence = rf"1 task was not solved to tol=1e-06: '{third}'\. .*A larger lam"
    with pytest.warns(ConvergenceWarning, match=sentence):
        learner.fit(X, Y, task=TASK)
    assert learner.gap_[2] == 0.5


def test_gap_certifies_every_kept_task():
    learner = ConditionalSGDRegressor(inner="batch", lam=0.3).fit(X, Y, task=TASK)
    loss = get_loss("absolute")
    for t, task in enumerate(learner.fitted_.tasks.ids):
        at = task == TASK
        assert 0 <= learner.gap_[t] <= 1e-6 * loss.value(X[at] @ learner.b_, Y[at]).mean()
    with pytest.raises(AttributeError, match="gap_ needs keep_tasks=True and inner='batch'"):
        ConditionalSGDRegressor().fit(X, Y, task=TASK).gap_  # noqa: B018
