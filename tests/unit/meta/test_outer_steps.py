"""Outer steps of Algorithm 1: the constant step as before, others as their papers print them."""

import itertools

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError, DivergenceError, ModelFileError
from condmeta.outer_steps import Adam, Decay, Momentum
from condmeta.persistence import register
from condmeta.testing import check_outer_step

HOW = [("uniform", "current"), ("linear", "current"), ("last", "current"), ("uniform", "average")]


def tasks(n_tasks=20, seed=0):
    return cm.environments.Circle(d=3, n=5).sample(n_tasks, seed)


def fitted(data=None, **options):
    options = {"feature_map": cm.feature_maps.CircleMap(), "lam": 0.5} | options
    return cm.ConditionalSGDRegressor(**options).fit(tasks() if data is None else data)


def weights(learner):
    return np.column_stack([learner.M_, learner.b_])


@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize(("averaging", "gradient_at"), HOW)
def test_a_constant_step_as_an_object_is_the_number(engine, inner, averaging, gradient_at):
    how = {"inner": inner, "averaging": averaging, "gradient_at": gradient_at}
    number = weights(fitted(meta_step=0.3, **how))
    for step in (Decay(0.3, 0.0), Momentum(0.3, 0.0), lambda t: 0.3):
        np.testing.assert_allclose(weights(fitted(meta_step=step, **how)), number, rtol=1e-9)


class InPlace:
    """The constant step, written into its argument: against the rules, but easily done."""

    def start(self, W):
        return None

    def step(self, W, G, t, state):
        W -= 0.3 * G
        return W, state


@pytest.mark.parametrize(("averaging", "gradient_at"), HOW)
def test_a_step_that_writes_into_its_map_does_not_change_the_average(averaging, gradient_at):
    how = {"averaging": averaging, "gradient_at": gradient_at}
    number = weights(fitted(meta_step=0.3, **how))
    np.testing.assert_allclose(weights(fitted(meta_step=InPlace(), **how)), number, rtol=1e-9)


def reference(data, update, averaging="uniform"):
    """Algorithm 1 written out, every iterate kept; `update(W, G, t)` returns the next map."""
    angle = 2 * np.pi * data.side.data["s"]
    iterates = [np.zeros((3, data.n_features))]
    for t, task in enumerate(data, start=1):
        phi1 = np.array([np.cos(angle[t - 1]), np.sin(angle[t - 1]), 1.0])
        W = iterates[-1]
        gradient = cm.inner.online(phi1 @ W, task.X, task.y, lam=0.5).gradient
        iterates.append(update(W, np.outer(phi1, gradient), t))
    if averaging == "last":
        return iterates[-1].T
    return np.mean(iterates[:-1], axis=0).T


def test_schedules_momentum_and_adam_as_printed(engine):
    data = tasks()
    found = fitted(data, meta_step=Decay(0.4, 0.5))
    expected = reference(data, lambda W, G, t: W - 0.4 / np.sqrt(t) * G)
    np.testing.assert_allclose(weights(found), expected, rtol=1e-9)

    moves = [0.0]

    def heavy_ball(W, G, t):
        moves.append(0.9 * moves[-1] - 0.1 * G)  # the same method in terms of moves
        return W + moves[-1]

    found = fitted(data, meta_step=Momentum(0.1, 0.9), averaging="last")
    np.testing.assert_allclose(weights(found), reference(data, heavy_ball, "last"), rtol=1e-9)

    gradients = []

    def adam(W, G, t):
        gradients.append(G)
        ages = np.arange(t)[::-1]
        m = sum(0.9**a * g for a, g in zip(ages, gradients, strict=True)) / sum(0.9**ages)
        v = sum(0.99**a * g**2 for a, g in zip(ages, gradients, strict=True)) / sum(0.99**ages)
        return W - 0.2 * m / (np.sqrt(v) + 1e-8)

    found = fitted(data, meta_step=Adam(0.2, 0.9, 0.99))
    np.testing.assert_allclose(weights(found), reference(data, adam), rtol=1e-9)


@pytest.mark.parametrize("step", [Decay(0.3), Momentum(0.1), Adam(0.1)], ids=repr)
@pytest.mark.parametrize(("averaging", "gradient_at"), HOW)
def test_a_stream_goes_on_bit_for_bit_also_from_a_file(tmp_path, step, averaging, gradient_at):
    data, how = tasks(), {"averaging": averaging, "gradient_at": gradient_at}
    whole = weights(fitted(data, meta_step=step, **how))
    map_ = cm.feature_maps.CircleMap()
    parts = cm.ConditionalSGDRegressor(map_, lam=0.5, meta_step=step, **how)
    parts.partial_fit(data.subset(np.arange(7))).save(tmp_path / "stream.condmeta")
    again = cm.load(tmp_path / "stream.condmeta").partial_fit(data.subset(np.arange(7, 20)))
    np.testing.assert_array_equal(weights(again), whole)
    assert again.get_params()["meta_step"] == step


def test_a_refused_call_leaves_the_stream_as_it_was():
    class Breaks(Momentum):
        def step(self, W, G, t, state):
            return (W * np.nan if t == 5 else W - G, state)

    data = tasks()
    learner = cm.ConditionalSGDRegressor(None, meta_step=Breaks(0.1)).partial_fit(
        data.subset(np.arange(3))
    )
    before = learner.b_.copy()
    with pytest.raises(DivergenceError, match="The meta-steps diverge at meta_step="):
        learner.partial_fit(data.subset(np.arange(3, 9)))
    np.testing.assert_array_equal(learner.b_, before)
    assert learner.n_tasks_ == 3


def test_a_diverging_inner_pass_names_its_task():
    X, y = np.full((12, 1), 1e3), np.arange(12.0)
    learner = cm.ConditionalSGDRegressor(None, loss="squared", lam=1e-6, meta_step=Decay(0.1))
    with pytest.raises(DivergenceError, match=r"Task 'b': The online pass diverges"):
        learner.fit(X[[0, *range(1, 12)]], y, task=["a"] + ["b"] * 11)


def test_a_stream_keeps_its_kind_of_step():
    data = tasks()
    first, rest = data.subset(np.arange(5)), data.subset(np.arange(5, 20))
    for one, two in itertools.permutations([0.1, Adam()]):
        learner = cm.ConditionalSGDRegressor(None, meta_step=one).partial_fit(first)
        with pytest.raises(DataError, match="meta_step has changed its kind"):
            learner.set_params(meta_step=two).partial_fit(rest)


class Wrong:
    def __init__(self, result):
        self.result = result

    def start(self, W):
        return None

    def step(self, W, G, t, state):
        return self.result(W, G)


@pytest.mark.parametrize(
    ("result", "sentence", "check"),
    [
        (lambda W, G: W - G, r"Wrong.step must return \(W, state\). Got ndarray", "the tuple"),
        (lambda W, G: (W[:1], None), r"must return W of shape \(1, 3\)|\(3, 3\)", "W must have"),
    ],
)
def test_a_wrong_result_is_named(result, sentence, check):
    with pytest.raises(DataError, match=sentence):
        fitted(meta_step=Wrong(result))
    with pytest.raises(AssertionError, match=check):
        check_outer_step(Wrong(result))


def in_place(W, G):
    W -= G
    return W, None


def test_check_outer_step_finds_what_would_break_a_stream():
    for step in (0.1, lambda t: 1 / t, Decay(0.1), Momentum(0.1), Adam()):
        check_outer_step(step)
    with pytest.raises(AssertionError, match="must not change W"):
        check_outer_step(Wrong(in_place))
    with pytest.raises(ModelFileError, match="which a model file cannot hold"):
        check_outer_step(Wrong(lambda W, G: (W - G, object())))
    with pytest.raises(AssertionError, match="W is not finite at t=1"):
        check_outer_step(Wrong(lambda W, G: (W + np.inf, None)))


@pytest.mark.parametrize("step", [0.0, -1, True, "fast", Adam, np.nan, None])
def test_what_is_no_step_is_refused_in_words(step):
    with pytest.raises(DataError, match="'meta_step' parameter of ConditionalSGDRegressor must be"):
        fitted(meta_step=step)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Decay(0.0), r"'rate' parameter of Decay must be a float in \(0, inf\)"),
        (lambda: Decay(1.0, -0.5), r"'power' parameter of Decay must be a float in \[0, inf\)"),
        (lambda: Momentum(1.0, 1.0), r"'momentum' parameter of Momentum must be .* \[0, 1\)"),
        (lambda: Adam(beta2=1.0), r"'beta2' parameter of Adam must be a float in \[0, 1\)"),
        (lambda: fitted(meta_step=lambda t: -1.0), r"meta_step\(1\) must be a float in \[0, inf\)"),
    ],
)
def test_ranges(make, sentence):
    with pytest.raises(DataError, match=sentence):
        make()


def test_a_function_cannot_be_stored_and_says_so(tmp_path):
    with pytest.raises(ModelFileError, match=r"meta_step.* is the function .*lambda"):
        fitted(meta_step=lambda t: 0.1).save(tmp_path / "model.condmeta")


@register(name="tests.Sign")
class Sign:
    """Somebody's own step, with a dict as its state."""

    def start(self, W):
        return {"count": 0, "last": W}

    def step(self, W, G, t, state):
        return W - 0.1 * np.sign(G), {"count": state["count"] + 1, "last": G}


def test_ones_own_step_is_stored_by_register(tmp_path):
    check_outer_step(Sign())
    learner = fitted(meta_step=Sign())
    assert learner.fitted_.state.memory["count"] == 20
    learner.save(tmp_path / "model.condmeta")
    again = cm.load(tmp_path / "model.condmeta")
    assert again.fitted_.state.memory["count"] == 20


def test_classifiers_and_experiments_take_outer_steps():
    data = tasks(24)
    classes = data.with_target(np.where(data.y > 0, 1, -1))
    number, step = (
        cm.ConditionalSGDClassifier(None, meta_step=m).fit(classes) for m in (0.1, Decay(0.1, 0.0))
    )
    np.testing.assert_allclose(step.b_, number.b_, rtol=1e-9)
    results = cm.experiments.run(
        data, {"adam": cm.ConditionalSGDRegressor(None, meta_step=Adam())}, setting=((10, 7, 7),),
        grid={"lam": [0.1, 1.0], "meta_step": [0.1, 1.0]}, seeds=1,
    )  # fmt: skip
    assert (results.columns["split"] == "validation").sum() == 2  # Adam has its own steps
    assert np.isnan(results.columns["meta_step"]).all()
