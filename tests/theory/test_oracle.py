"""The best linear conditioning function: reference values, least squares, and closed forms."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from condmeta.environments import Circle, Clusters, paper_environment
from condmeta.errors import DataError
from condmeta.feature_maps import CircleMap, Identity, MeanInput, RandomFourier
from condmeta.theory import best_linear, variance

W = np.array([[1, 0], [2, 1], [0, 3], [-1, 1], [0.5, 0.5]])
PHI = np.array([[0.0, 1], [1, 1], [2, 0], [0, 0], [1, -1]])


def draw(seed, T=40, d=3, k=5, rank=None):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(T, rank or k)) @ rng.normal(size=(rank or k, k)) + rng.normal(size=k)
    return Phi @ rng.normal(size=(k, d)) + rng.normal(size=(T, d)), Phi, rng.dirichlet(np.ones(T))


def test_reference_of_five_atoms():
    best = best_linear(W, PHI)
    np.testing.assert_allclose(best.map.M, [[5 / 12, 5 / 6], [41 / 36, 1 / 9]], atol=1e-12)
    np.testing.assert_allclose(best.map.b, [0, 1 / 6], atol=1e-12)
    np.testing.assert_allclose(best.moments.w_rho, [0.5, 1.1])
    np.testing.assert_allclose(best.moments.nu, [0.8, 0.2])
    assert best.mean == pytest.approx(2.04)
    assert best.variance == pytest.approx(35 / 36)
    np.testing.assert_allclose(best.gap_forms(), 961 / 900)
    assert best.gap == pytest.approx(961 / 900)
    assert best.map.norm == pytest.approx(1.4850073783, abs=1e-10)
    expected = [[0.3542410316, 0.5857365725], [0.8769271189, 0.0468067222]]
    np.testing.assert_allclose(best.corr, expected, atol=1e-10)
    assert best.error == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_it_is_weighted_least_squares(seed):
    weights, Phi, p = draw(seed)
    best = best_linear(weights, Phi, p=p)
    fit = LinearRegression().fit(Phi, weights, sample_weight=p)
    np.testing.assert_allclose(best.map.M, fit.coef_, atol=1e-9)
    np.testing.assert_allclose(best.map.b, fit.intercept_, atol=1e-9)
    assert best.variance == pytest.approx(p @ ((weights - fit.predict(Phi)) ** 2).sum(axis=1))
    # Css is regular: there is one best pair
    np.testing.assert_allclose(best.min_norm.M, best.map.M, atol=1e-9)


@pytest.mark.parametrize(("d", "k", "rank"), [(3, 5, None), (4, 4, None), (3, 5, 2), (6, 2, 1)])
def test_the_three_forms_of_the_gap_agree(d, k, rank):
    """Also where Css, or Cww (fewer atoms than weights), is singular."""
    for T in (40, 4):
        weights, Phi, p = draw(7, T, d, k, rank)
        best = best_linear(weights, Phi, p=p)
        direct = variance(weights, "mean", p=p).value - best.variance
        np.testing.assert_allclose(best.gap_forms(), direct, rtol=1e-8, atol=1e-8)
        assert np.linalg.svd(best.corr, compute_uv=False).max() <= 1 + 1e-9


@pytest.mark.parametrize("rank", [None, 2])
def test_pythagoras_for_any_other_pair(rank):
    weights, Phi, p = draw(1, rank=rank)
    best, rng = best_linear(weights, Phi, p=p), np.random.default_rng(0)
    for _ in range(5):
        M, b = rng.normal(size=(3, 5)), rng.normal(size=3)
        off = (M - best.map.M) @ Phi.T + (b - best.map.b)[:, None]
        of_pair = variance(weights, Phi @ M.T + b, p=p).value
        assert best.excess(M, b) == pytest.approx(p @ (off**2).sum(axis=0))
        assert of_pair - best.variance == pytest.approx(best.excess(M, b))
    assert best.excess(*best.min_norm) == pytest.approx(0, abs=1e-9)


def test_least_norm_with_a_constant_feature():
    """The two pairs are one function; the joint one has the least norm of all (by lstsq)."""
    weights = draw(3)[0]
    Phi = np.column_stack([np.full(40, 2.0), draw(3)[1][:, :2]])
    best = best_linear(weights, Phi)
    np.testing.assert_allclose(best.map(Phi), best.min_norm(Phi), atol=1e-9)
    least = np.linalg.lstsq(np.column_stack([Phi, np.ones(40)]), weights, rcond=None)[0].T
    np.testing.assert_allclose(np.column_stack(best.min_norm), least, atol=1e-9)
    assert best.min_norm.norm < best.map.norm - 0.1
    assert abs(best.map.M[:, 0]).max() < 1e-9


def test_no_features_is_the_unconditional_case():
    for source in (W, paper_environment("circle"), paper_environment("two-clusters-mean-4")):
        best = best_linear(source, None)
        assert best.map.M.shape[1] == 0
        assert best.gap == 0
        assert best.variance == best.mean
        np.testing.assert_allclose(best.map.b, best.moments.w_rho)
        assert best.map.norm == pytest.approx(np.linalg.norm(best.moments.w_rho))


CASES = [
    (Circle(radius=3.0, center=[1, -1, 2, 0], d=4, sigma_w=0.8, n=1), CircleMap()),
    (Clusters([[2, 0], [0, 3]], [[1, 0], [-0.5, 0.8]], n=2, sigma_x=1.5), MeanInput()),
    (Clusters([[2, 0], [0, 3]], [[1, 0], [0, 0]], n=2, weights=[1, 3], inputs="unit"), MeanInput()),
]


@pytest.mark.parametrize(("env", "phi"), CASES)
def test_closed_form_of_environments_agrees_with_their_tasks(env, phi):
    exact, drawn = best_linear(env, phi), best_linear(env.sample(40_000, random_state=0), phi)
    for name in ("w_rho", "nu", "Cww", "Cws", "Css"):
        close = {"atol": 0.15, "err_msg": name}
        np.testing.assert_allclose(
            getattr(exact.moments, name), getattr(drawn.moments, name), **close
        )
    assert drawn.variance == pytest.approx(exact.variance, rel=0.02)
    assert drawn.gap == pytest.approx(exact.gap, rel=0.05)
    np.testing.assert_allclose(exact.map.M, drawn.map.M, atol=0.1)


def test_other_maps_are_drawn_for():
    env = Circle(radius=3.0, d=3, sigma_w=0.5, n=1)
    best = best_linear(env, [RandomFourier(40, std=6.0, random_state=0), Identity()])
    assert best.map.M.shape == (3, 41)
    assert 0 < best.error < 0.05
    # rich features come near tau_rho and cannot do better, but for 123 fitted numbers
    assert best.variance == pytest.approx(env.variances().tau, abs=4 * best.error)
    line = best_linear(env, Identity())
    assert line.variance > 4


def test_two_clusters_of_the_paper():
    env = paper_environment("two-clusters-mean-4", n=10)
    assert best_linear(env, MeanInput()).gap == pytest.approx(318.407960, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: best_linear(W, PHI[:3]), r"shape \(5, k\), one row per task. Got \(3, 2\)"),
        (lambda: best_linear(W, PHI * np.nan), "Phi of task number 0 is not finite"),
        (lambda: best_linear(W, MeanInput()), "give Phi as an array"),
        (lambda: best_linear(W, PHI).excess(np.ones((2, 3)), [0, 0]), "must have the shapes"),
        (lambda: best_linear(CASES[0][0], CircleMap(), p=[1.0]), "p is for a sample"),
    ],
)
def test_wrong_arguments_raise(call, sentence):
    with pytest.raises(DataError, match=sentence):
        call()
