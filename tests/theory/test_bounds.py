"""Theorems 1 and 2 as formulas: reference values, minimisers, special cases and errors."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize

import condmeta as cm
from condmeta.environments import Circle, Clusters, Latent
from condmeta.errors import DataError
from condmeta.feature_maps import CircleMap
from condmeta.inner import batch
from condmeta.losses import EpsilonInsensitive, Huber, Pinball, get_loss
from condmeta.paper.theory.sources import features_of
from condmeta.tasks import TaskSet
from condmeta.theory import (
    bound_fixed,
    bound_learned,
    effective_n,
    excess_risk,
    gradient_bound,
    guarantees,
    radii,
    stability,
)

REF = {"V": 1.5, "n": 10, "R": 2.0}
META = {"norm": 3.0, "T": 300, "K": np.sqrt(2)}


def test_reference_values():
    one, two = bound_fixed(**REF), bound_learned(**REF, **META)
    assert one.lam == two.lam == pytest.approx(0.8432740427, abs=1e-10)
    assert one.value == pytest.approx(1.8973665961, abs=1e-10)
    assert two.meta_step == pytest.approx(0.05)
    assert two.value == pytest.approx(2.4973665961, abs=1e-10)
    assert gradient_bound(R=2.0, K=np.sqrt(2)) == pytest.approx(3.4641016151, abs=1e-10)
    assert bound_learned(**REF, **META, lam=0.5, meta_step=0.1).value == pytest.approx(2.9125)


def test_reference_values_of_fine_tuning():
    one = bound_fixed(**REF, inner="online")
    two = bound_learned(**REF, **META, inner="online")
    assert one.lam == pytest.approx(1.5324832642, abs=1e-10)
    assert one.value == pytest.approx(3.4480873444, abs=1e-10)
    assert two.lam == pytest.approx(2.1672586163, abs=1e-10)
    assert two.value == pytest.approx(5.4763318867, abs=1e-10)


@pytest.mark.parametrize("inner", ["batch", "online"])
def test_the_settings_are_the_minimisers(inner):
    def value(logs):
        lam, step = np.exp(logs)
        return bound_learned(**REF, **META, L=1.3, lam=lam, meta_step=step, inner=inner).value

    best = bound_learned(**REF, **META, L=1.3, inner=inner)
    found = minimize(value, [0.0, -2.0], method="Nelder-Mead", options={"xatol": 1e-8})
    assert best.value == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose([best.lam, best.meta_step], np.exp(found.x), rtol=1e-4)
    assert best.value == pytest.approx(best.stability + best.bias + best.learning)


@pytest.mark.parametrize("inner", ["batch", "online"])
def test_special_cases(inner):
    """Independent learning: nothing to learn. Unconditional: no features."""
    alone = bound_learned(**REF, norm=0.0, T=300, inner=inner)
    assert (alone.learning, alone.meta_step) == (0, 0)
    if inner == "batch":
        assert alone == bound_fixed(**REF)
    plain = bound_learned(**REF, norm=3.0, T=300, inner=inner)
    assert plain.learning == pytest.approx(2.0 * 3.0 / np.sqrt(300))


def test_no_variance_needs_no_points():
    """V = 0: lam is infinite, the model is tau(s), and the first two terms are 0."""
    exact = bound_fixed(0.0, 10)
    assert exact.lam == np.inf
    assert exact.value == 0
    learned = bound_learned(0.0, **META, n=10)
    assert learned.value == learned.learning > 0
    held = bound_fixed(0.0, 10, R=2.0, lam=0.5)
    assert held.value == held.stability == stability(0.5, 10, R=2.0) == 1.6
    assert bound_fixed(1.0, 10, lam=np.inf).value == np.inf


def test_unequal_sizes_take_the_harmonic_mean():
    sizes = [24, 100, 251]
    assert effective_n(sizes) == pytest.approx(53.9076, abs=1e-4)
    each = [bound_fixed(1.5, n, lam=0.7).value for n in sizes]
    assert bound_fixed(1.5, sizes, lam=0.7).value == pytest.approx(np.mean(each))
    each = [bound_fixed(1.5, n, lam=0.7, inner="online").value for n in sizes]
    assert bound_fixed(1.5, sizes, lam=0.7, inner="online").value == pytest.approx(np.mean(each))


def test_radii():
    tasks = TaskSet.from_tasks([([[3.0, 4]], [0.0]), ([[0.0, 1], [0, 3]], [0, 0.0])])
    assert radii(tasks, how="max") == (5, 0)
    assert pytest.approx((25 + 5) / 2) == radii(tasks).R ** 2
    Phi = np.array([[1.0], [2.0]])
    R, K = radii(tasks, Phi)
    assert pytest.approx((25 * 2 + 5 * 5) / 2) == R**2 * (K**2 + 1)
    assert radii(tasks, Phi, how="max").K == 2
    empty = TaskSet.from_arrays(np.zeros((1, 2)), [0.0], ["a"])[:0]
    with pytest.raises(DataError, match="at least one task with points"):
        radii(empty)


def test_stability_is_within_a_factor_of_two_of_the_truth():
    """Points that share no coordinate are learned by heart: E[risk - loss] = 1 / (lam n)."""
    rng, d, n, lam = np.random.default_rng(0), 2000, 10, 1.0
    gaps = []
    for _ in range(50):
        at = rng.integers(d, size=n)
        X, y = np.eye(d)[at], rng.choice([-9.0, 9.0], n)
        w = batch(np.zeros(d), X, y, lam).coef
        # the label of a fresh point is +-9 at a fair coin, |w| < 9: its risk is 9
        gaps.append(9.0 - np.abs(X @ w - y).mean())
    ratio = np.mean(gaps) / stability(lam, n)
    assert 0.49 <= ratio <= 1


@pytest.mark.parametrize("loss", ["absolute", "huber", "pinball"])
def test_gradient_bound_holds_and_is_reached(loss):
    rng, L = np.random.default_rng(0), get_loss(loss).lipschitz
    for n in (1, 5, 20):
        X, Phi = rng.normal(size=(n, 3)), rng.normal(size=2)
        y = 100 + rng.normal(size=n)
        R, K = np.linalg.norm(X, axis=1).max(), np.linalg.norm(Phi)
        gradient = batch(rng.normal(size=3), X, y, 50.0, loss).gradient
        norm = np.linalg.norm(np.outer(gradient, np.append(Phi, 1)))
        limit = gradient_bound(L=L, R=R, K=K)
        assert norm <= limit * (1 + 1e-12)
        # one point far from its prediction has the largest slope (the lower one of the pinball)
        assert n > 1 or norm == pytest.approx(limit)


@pytest.mark.parametrize("meta_step", [0.01, 0.1, 1.0])
def test_learning_bounds_the_regret_on_every_sequence_of_tasks(meta_step):
    """Proposition 3 before its expectation: it holds for any tasks and any competitor (M, b)."""
    rng, T, lam = np.random.default_rng(1), 40, 0.5
    X, y = rng.normal(size=(T, 5, 3)), 3 * rng.normal(size=(T, 5))
    Phi1 = np.column_stack([rng.normal(size=(T, 2)), np.ones(T)])
    R = np.linalg.norm(X, axis=2).max()
    K = np.linalg.norm(Phi1[:, :2], axis=1).max()
    other, M = rng.normal(size=(3, 3)), np.zeros((3, 3))
    regret = 0.0
    for t in range(T):
        here = batch(M @ Phi1[t], X[t], y[t], lam, tol=1e-12)
        regret += here.primal - batch(other @ Phi1[t], X[t], y[t], lam, tol=1e-12).primal
        M = M - meta_step * np.outer(here.gradient, Phi1[t])
    norm = np.linalg.norm(other)
    bound = bound_learned(1.0, norm, 5, T, R=R, K=K, lam=lam, meta_step=meta_step)
    assert regret / T <= bound.learning


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: bound_fixed(-1.0, 10), r"V must be a float in \[0, inf\). Got -1.0"),
        (lambda: bound_fixed(np.nan, 10), "V must be"),
        (lambda: bound_fixed(1.0, 0), "at least 1 point for every task"),
        (lambda: bound_fixed(1.0, []), "n must hold at least one task"),
        (lambda: bound_fixed(1.0, 10, L=np.inf), "slopes of this loss are unbounded"),
        (lambda: bound_fixed(1.0, 10, lam=0.0), r"lam must be a float in \(0, inf\]"),
        (lambda: bound_fixed(1.0, 10, inner="both"), "inner must be 'batch' or 'online'"),
        (lambda: bound_learned(1.0, 1.0, 10, 0), "T must be an int of at least 1"),
        (lambda: bound_learned(1.0, 1.0, 10, 5, meta_step=0.0), "meta_step = 0 needs norm = 0"),
        (lambda: radii(TaskSet.from_arrays([[1.0]], [0], ["a"]), how="min"), "how must be"),
        (lambda: stability(-1, 10), "lam must be"),
    ],
)
def test_wrong_arguments_raise(call, sentence):
    with pytest.raises(DataError, match=sentence):
        call()


# --- the risk that the bounds are about ---

ENVS = [
    Circle(d=3, n=2, inputs="gaussian", x_center=[1.0, 0, -2], sigma_x=0.7, noise=0.4),
    Clusters([[1.0, 2], [0, 0]], [[1.0, 1], [-1, 0]], n=2, sigma_x=1.5, snr=None),
]


@pytest.mark.parametrize("env", ENVS)
def test_excess_risk_agrees_with_drawn_points(env):
    one = env.sample(1, random_state=3)
    coef = one.weights + 0.5
    risk = excess_risk(env, one, coef)[0]
    rng = np.random.default_rng(0)
    center = env.x_center if isinstance(env, Circle) else env.x_centers[one.clusters[0]]
    X = center + env.sigma_x * rng.normal(size=(200_000, env.d))
    noise = (env.noise or 0.0) * rng.normal(size=200_000)
    errors = np.abs(X @ (coef - one.weights)[0] - noise) - np.abs(noise)
    assert abs(errors.mean() - risk) <= 4 * errors.std() / np.sqrt(200_000)


def test_excess_risk_of_the_true_weights_is_zero():
    for env in ENVS:
        tasks = env.sample(5, random_state=0)
        np.testing.assert_allclose(excess_risk(env, tasks, tasks.weights), 0, atol=1e-15)


class LogCosh:
    """A loss of one's own: no closed form."""

    name, lipschitz = "log_cosh", 1.0

    def value(self, z, y):
        return np.log(np.cosh(np.clip(z - y, -50, 50)))

    def slope(self, z, y):
        return np.tanh(z - y)


EVERY_ENV = [
    *ENVS,
    Circle(d=4, n=6),  # the package's own circle: unit inputs, noise that differs by task
    Clusters([[1.0, 2], [0, 0]], [[1.0, 1], [-1, 0]], n=4, inputs="unit"),
    Latent(lambda rng, T: rng.normal(size=(T, 2)), w=lambda a: a, x=lambda a: a**2, n=3),
]
LOSSES = ["absolute", "squared", Huber(0.7), Pinball(0.2), EpsilonInsensitive(0.5), LogCosh()]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: getattr(loss, "name", loss))
@pytest.mark.parametrize("env", EVERY_ENV, ids=repr)
def test_excess_risk_of_every_loss_and_input_agrees_with_drawn_points(env, loss):
    tasks = env.sample(3, random_state=3)
    coef = tasks.weights + np.array([[0.5], [-1.0], [0.1]])
    risk, error = excess_risk(env, tasks, coef, loss=loss, return_error=True)
    X, y = env.sample_points(tasks, 50_000, random_state=1)
    value = get_loss(loss).value
    ours, best = (value(np.einsum("tnd,td->tn", X, w), y) for w in (coef, tasks.weights))
    drawn, spread = (ours - best).mean(axis=1), (ours - best).std(axis=1) / np.sqrt(50_000)
    assert (abs(drawn - risk) <= 4.5 * np.hypot(spread, error) + 1e-12).all()
    is_closed = loss == "squared" or (env.inputs == "gaussian" and not isinstance(loss, LogCosh))
    assert (error == 0).all() == is_closed


def test_points_of_known_tasks_follow_their_law():
    """Fresh points have the task's own weights, centre and noise level, also after a split."""
    env = Clusters([[1.0, 2], [5, 0]], [[1.0, 1], [-1, 0]], n=6, snr=2.0, sigma_x=0.5)
    tasks = env.sample(4, random_state=0)
    support = tasks.split_points(2, random_state=0)[0].subset([2, 0])
    np.testing.assert_array_equal(support.noise, tasks.noise[[2, 0]])
    clean = np.einsum("ij,ij->i", tasks.X, np.repeat(tasks.weights, 6, axis=0)).reshape(4, 6)
    np.testing.assert_allclose(tasks.noise, clean.std(axis=1) / np.sqrt(2.0))
    X, y = env.sample_points(support, 100_000, random_state=0)
    np.testing.assert_allclose(X.mean(axis=1), support.centers, atol=0.01)
    residuals = y - np.einsum("tnd,td->tn", X, support.weights)
    np.testing.assert_allclose(residuals.std(axis=1), support.noise, rtol=0.02)


def test_excess_risk_says_what_it_needs():
    tasks = ENVS[0].sample(2, random_state=0)
    with pytest.raises(DataError, match="'hinge' is for classes, and environments draw numbers"):
        excess_risk(ENVS[0], tasks, tasks.weights, loss="hinge")

    class Own:
        pass

    with pytest.raises(DataError, match=r"no closed form for Own .* sample_points"):
        excess_risk(Own(), tasks, tasks.weights)
    with pytest.raises(DataError, match=r"coef must have the shape \(2, 3\)"):
        excess_risk(ENVS[0], ENVS[0].sample(2, random_state=0), [1.0])


@pytest.mark.parametrize("n", [5, 40])
def test_guarantees_are_the_bounds_of_three_ways_of_learning(n):
    """Variance and norm of each way, by hand from many drawn tasks."""
    env = Circle(radius=2.0, center=1.0, d=6)
    T, feature_map = 200, CircleMap()
    found = guarantees(env, feature_map, T=T, n=n)
    tasks = env.sample(40_000, random_state=1)
    W, Phi = tasks.weights, features_of(tasks, feature_map, len(tasks))
    R, K = radii(env.sample(2000, random_state=0), feature_map)
    mean = W.mean(axis=0)
    rows = np.column_stack([Phi, np.ones(len(W))])
    best = np.linalg.lstsq(rows, W)[0]
    expected = [
        (np.sqrt((W**2).sum(axis=1).mean()), 0.0, {}),
        (np.sqrt(((W - mean) ** 2).sum(axis=1).mean()), np.linalg.norm(mean), {}),
        (np.sqrt(((W - rows @ best) ** 2).sum(axis=1).mean()), np.linalg.norm(best), {"K": K}),
    ]
    for bound, (V, norm, more) in zip(found, expected, strict=True):
        by_hand = bound_learned(V, norm, n=n, T=T, L=1.0, R=R, inner="batch", **more)
        assert bound.value == pytest.approx(by_hand.value, rel=0.02)


def test_a_bound_that_says_nothing_is_said_to():
    env = cm.environments.Circle(radius=8.0, center=1.0, d=20)
    good = cm.theory.guarantees(env, cm.feature_maps.CircleMap(), T=1000)
    assert re.fullmatch(
        r"Conditional learning has the smallest bound, 11\.7: 40 % below .*\.", good.sentence
    )
    many = cm.feature_maps.RandomFourier(200, std=5.0, random_state=0)
    bad = cm.theory.guarantees(env, many, T=1000, n_tasks=2000)
    assert bad.conditional.value > 10 * bad.unconditional.value
    value = f"{bad.conditional.value:.3g}"
    assert bad.sentence.startswith(f"The bound of conditional learning, {value}, is not below")
    assert "100 % of it is the cost of learning the map from T tasks" in bad.sentence
    flat = cm.theory.guarantees(Circle(d=2, n=6), cm.kernels.GaussianKernel(), T=50, n_tasks=200)
    assert flat.sentence.endswith(": the features explain too little of the weights of tasks.")
    assert repr(bad).endswith(f"\n{bad.sentence}")
    assert repr(bad).startswith("Guarantees(independent=Bound(value=")


class Ramp:
    """One coordinate, w = s around 3: the best map is simple, and w_rho long."""

    n = 10

    def sample(self, n_tasks, random_state=None):
        rng = np.random.default_rng(random_state)
        s = 3 + 0.3 * rng.normal(size=n_tasks)
        X = rng.normal(size=(self.n * n_tasks, 1))
        y = X[:, 0] * np.repeat(s, self.n)
        side = cm.TaskTable({"s": s}, ids=range(n_tasks))
        offsets = self.n * np.arange(n_tasks + 1)
        return cm.environments.SampledTaskSet(
            X, y, offsets, list(range(n_tasks)), side, weights=s[:, None]
        )


def test_the_smallest_bound_may_be_that_of_independent_learning():
    found = {T: cm.theory.guarantees(Ramp(), cm.feature_maps.Identity(), T) for T in (2, 3, 10)}
    for bounds in found.values():
        assert bounds.conditional.value < bounds.unconditional.value
    assert found[2].independent.value < found[2].conditional.value
    assert found[2].sentence.startswith(
        f"The bound of conditional learning, {found[2].conditional.value:.3g}, is not below that "
        f"of independent learning, {found[2].independent.value:.3g}: "
    )
    assert found[3].sentence.endswith("below that of independent learning.")
    assert found[10].sentence.endswith("below that of unconditional learning.")


class NoSlope:
    """A loss of one's own that does not say how steep it is."""

    def value(self, z, y):
        return np.sqrt(1 + (z - y) ** 2)

    def slope(self, z, y):
        return (z - y) / self.value(z, y)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ("squared", "no bound for the loss 'squared': its slopes are unbounded"),
        ("logistic", "'logistic' is for classes"),
        (NoSlope(), "'NoSlope' has no attribute 'lipschitz'"),
    ],
)
def test_losses_without_a_bound_are_named(loss, sentence):
    with pytest.raises(DataError, match=sentence):
        cm.theory.guarantees(Circle(d=2, n=6), CircleMap(), T=50, loss=loss)
