"""The covariance of a new task's weights: H, and what is open about the map."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.inner.likelihoods import Binomial, NegativeBinomial
from condmeta.inner.row_posterior import solve_rows
from condmeta.meta import unseen_map
from condmeta.meta.map_covariance import (
    information_of_theta,
    map_covariance,
    paired_information,
)
from condmeta.meta.prior import Prior
from condmeta.meta.rotation import Rotation
from condmeta.meta.unseen_map import of_features, open_prior, weigh_points
from condmeta.tasks.points import Points


def balanced(n_tasks=8, effect=0.0):
    """Tasks with the same rows, a two-level factorial of side columns: Lambda and R are exact."""
    X = np.tile([[1.0, 0.3], [-1.0, 1.0], [0.5, -0.4], [0.0, 1.0]], (n_tasks, 1))
    offsets = 4 * np.arange(n_tasks + 1)
    points = Points(X, np.zeros(len(X)), offsets)
    bits = (np.arange(n_tasks)[:, None] >> np.arange(2)) & 1
    Phi = 2.0 * bits - 1
    prior = Prior(effect * np.ones((3, 2)), np.array([[0.8, 0.0], [0.3, 0.5]]), 1.0)
    return points, Phi, prior


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kappa", [0.0, 2.0, np.inf])
def test_covariance_of_theta_is_the_inverse_information(kappa, exact, monkeypatch):
    """Labels of 0 are shares of a half: all tasks have the same weights of rows."""
    if not exact:
        monkeypatch.setattr(unseen_map, "EXACT", 0)
    points, Phi, prior = balanced(64)
    points = points._replace(X=np.tile([[2.0, 1.0], [-2.0, 1.0]], (128, 1)))
    prior = prior._replace(L=np.diag([0.8, 0.5]))
    law = Binomial()
    stats = weigh_points(points, Phi, law, prior)
    phi = np.column_stack([Phi[:, : 0 if np.isinf(kappa) else 2], np.ones(64)])
    known = information_of_theta(stats.gram, prior.L, np.ones(64))
    information = paired_information(phi, known)
    if 0 < kappa < np.inf:
        information[:4, :4] += np.kron(np.eye(2), kappa * np.linalg.inv(prior.H))
    if kappa:  # b = 0: a Cauchy density of the slope 2 b_1, another of the intercept b_2
        information[-2:, -2:] += np.diag([2 * 2.0**2, 2 * 1.0**2])
    covariance = np.linalg.inv(information)
    new = np.array([[1.0, -1.0], [0.0, 0.0], [3.0, 0.5]])
    F = open_prior(points, Phi, law, prior, kappa).factors(new)
    for features, found in zip(new, F @ np.swapaxes(F, 1, 2), strict=True):
        of_theta = np.kron(np.append(features, 1.0)[-phi.shape[1] :], np.eye(2))
        expected = prior.H + of_theta @ covariance @ of_theta.T
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_variances_of_the_map_are_those_of_its_inverse_information():
    """Tasks with other features have other weights of rows, and so say more or less."""
    points, Phi, prior = balanced(64)
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=Phi.shape)
    Phi -= Phi.mean(axis=0)
    points = points._replace(y=np.sign(rng.normal(size=len(points.y))))
    prior = prior._replace(W=np.array([[2.0, 0.5], [0.0, -1.0], [0.3, 0.2]]))
    found = open_prior(points, Phi, Binomial(), prior, 0.0)
    stats = weigh_points(points, Phi, Binomial(), prior)
    exact = map_covariance(stats, Phi, prior.theta(Phi), prior.L, np.ones(64), 0.0, robust=False)
    to_basis = np.linalg.inv(found.basis)
    directions = np.linalg.inv(np.block([[found.directions, np.zeros((2, 1))], [0, 0, 1]]))
    matrix = np.einsum("ab,bjcl,ec->ajel", directions, exact.matrix, directions)
    matrix = np.einsum("ij,ajel,ml->aiem", to_basis, matrix, to_basis)
    expected = np.einsum("aiai->ai", matrix)
    np.testing.assert_allclose(found.variances, expected, rtol=1e-6)


def test_features_may_have_other_units():
    points, Phi, prior = balanced()
    raw = 5.0 * Phi + [3.0, -2.0]
    rotation = Rotation.learn(raw)
    found = open_prior(points, rotation.apply(raw), Binomial(), prior, 1.0)
    np.testing.assert_allclose(
        of_features(found, rotation).factors(raw),
        found.factors(rotation.apply(raw)),
    )


def test_one_task_leaves_nothing_open():
    points, Phi, prior = balanced(1)
    F = open_prior(points, Phi, Binomial(), prior, 1.0).factors(Phi)[0]
    np.testing.assert_allclose(F @ F.T, prior.H, rtol=1e-8)


@pytest.mark.parametrize(("law", "most"), [(Binomial(), 4.0), (NegativeBinomial(0.5), 1.0)])
def test_a_coordinate_without_rows_adds_a_bounded_variance(law, most):
    """The mean of counts grows exponentially with the variance, a probability does not."""
    points, Phi, prior = balanced()
    X = points.X.copy()
    X[:, 1] = 0.0
    X[0, 1] = 1e-3  # nearly nothing is known of the second coefficient
    found = open_prior(points._replace(X=X), Phi, law, prior, 0.0)
    F = found.factors(Phi)
    scores = np.einsum("nd,tde->nte", X, F)
    around = np.einsum("nd,de->ne", X, prior.L)
    added = (scores**2).sum(axis=2).mean() - (around**2).sum(axis=1).mean()
    assert 0 < added <= 2 * most + 1e-9  # for two coordinates


def test_side_information_far_from_all_tasks_adds_a_bounded_variance():
    points, Phi, prior = balanced()
    found = open_prior(points, Phi, Binomial(), prior, 1.0)
    far, further = found.factors(np.array([[1e3, 0.0], [1e200, 0.0]]))
    np.testing.assert_allclose(far, further)
    with_map, around = (((points.X @ F) ** 2).sum(axis=1).mean() for F in (far, prior.L))
    np.testing.assert_allclose(with_map - around, 2 * 4.0, rtol=1e-6)  # for two coordinates


@pytest.mark.parametrize("law", [Binomial(), NegativeBinomial(0.5)])
def test_factors_of_their_own_equal_one_solve_for_each_task(law):
    rng = np.random.default_rng(0)
    sizes = np.array([3, 0, 6, 1])
    offsets = np.append(0, np.cumsum(sizes))
    X = rng.normal(size=(10, 3))
    y = rng.integers(4, size=10).astype(float)
    y = np.where(y > 1, 1.0, -1.0) if isinstance(law, Binomial) else y
    theta, F = rng.normal(size=(4, 3)), np.tril(rng.normal(size=(4, 3, 3)))
    points = Points(X, y, offsets)
    found = solve_rows(law, points, theta, F)
    for t in range(4):
        alone = solve_rows(law, points.take(np.array([t])), theta[t : t + 1], F[t])
        np.testing.assert_allclose(found.coef[t], alone.coef[0], atol=1e-7)
        np.testing.assert_allclose(found.state.covariance[t], alone.state.covariance[0], atol=1e-7)


def fitted(kind, n_tasks=24):
    rng = np.random.default_rng(1)
    s, X = rng.normal(size=(n_tasks, 2)), rng.normal(size=(n_tasks * 6, 2))
    task = np.repeat(np.arange(n_tasks), 6)
    f = X[:, 0] * s[task, 0] + s[task, 1]
    y = (
        rng.poisson(np.exp(f / 2))
        if kind is cm.ConditionalCount
        else f + rng.normal(size=len(f)) > 0
    )
    side = cm.TaskTable(s, ids=range(n_tasks))
    return kind(metric="diagonal", kappa=1.0), X, y, task, side


@pytest.mark.parametrize("kind", [cm.ConditionalLogistic, cm.ConditionalCount])
def test_unusual_side_information_leaves_more_open(kind):
    learner, X, y, task, side = fitted(kind)
    model = learner.fit(X, y, task=task, side_info=side)

    def ask(s):
        return model.adapt(side_info=s)._state.covariance[0].trace()

    usual, unusual = ask([0.0, 0.0]), ask([6.0, -6.0])
    assert unusual > 1.5 * usual > 1.5 * model.H_.trace()


@pytest.mark.parametrize("kind", [cm.ConditionalLogistic, cm.ConditionalCount])
def test_new_known_and_adapted_tasks_have_the_same_prior(kind, tmp_path):
    """A new task in `predict`, one that `adapt` solves, and one that `update` enrols are one."""
    learner, X, y, task, side = fitted(kind)
    model = learner.fit(X, y, task=task, side_info=side)
    new = cm.TaskTable([[4.0, -3.0]], ids=["new"])
    rows, labels, ids = X[:3], y[:3], ["new"] * 3
    ask = model.predict if kind is cm.ConditionalCount else model.predict_proba
    cold = ask(rows, task=ids, side_info=new)
    one = model.adapt(side_info=[4.0, -3.0])
    zero = one.predict(rows) if kind is cm.ConditionalCount else one.predict_proba(rows)
    np.testing.assert_allclose(cold, zero, rtol=1e-12)
    whole = model.adapt(rows, labels, side_info=[4.0, -3.0])
    one.update(rows[:1], labels[:1]).update(rows[1:], labels[1:])
    np.testing.assert_allclose(one.coef_, whole.coef_, atol=1e-7)
    model.update(rows[:1], labels[:1], task=ids[:1], side_info=new)
    model.update(rows[1:], labels[1:], task=ids[1:])
    store = model.fitted_.tasks
    np.testing.assert_allclose(
        store.state.covariance[store.index["new"]], whole._state.covariance[0], atol=1e-7
    )
    model.save(tmp_path / "model")
    again = cm.load(tmp_path / "model")
    ask_again = again.predict if kind is cm.ConditionalCount else again.predict_proba
    other = cm.TaskTable([[1.0, 2.0]], ids=["other"])
    given = {"task": ["other"] * 3, "side_info": other}
    np.testing.assert_array_equal(ask_again(rows, **given), ask(rows, **given))


def test_no_training_row_gets_more_than_four_from_a_coordinate():
    """The rows of a rare level are far from the average row, and their coefficient is unknown."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(1000) < 0.002, rng.normal(size=1000), np.ones(1000)])
    X[0, 0] = 1.0
    offsets = np.arange(0, 1001, 10)
    y = rng.poisson(np.exp(0.5 * X[:, 1])).astype(float)
    prior = Prior(np.zeros((1, 3)), np.diag([20.0, 0.5, 0.5]), 1.0)
    Z = np.empty((100, 0))
    found = open_prior(Points(X, y, offsets, None), Z, NegativeBinomial(0.1), prior, 1.0)
    added = (X @ found.basis) ** 2 * np.minimum(found.variances[-1], found.most)
    assert added.max() <= 4 + 1e-12
    plain = (X @ found.basis) ** 2 * found.variances[-1]
    assert plain.max() > 8  # without the bound it would be more
