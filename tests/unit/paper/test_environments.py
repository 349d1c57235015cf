"""Environments: what is drawn, what is known in closed form, and that the two agree."""

import pickle
import time
from itertools import pairwise

import numpy as np
import pytest

from condmeta.environments import (
    PAPER_SETTINGS,
    Circle,
    Clusters,
    SampledTaskSet,
    paper_environment,
)
from condmeta.errors import DataError
from condmeta.paper.environments.posterior import log_softmax
from condmeta.tasks import TaskSet, TaskTable

THREE = Clusters([[2, 0], [0, 3], [-1, -1]], [[1, 0], [-0.5, 0.8], [-0.3, -0.9]], n=2, sigma_w=0.7)
TWO = Clusters([[1, 2, 3], [-1, 0, 1]], [[1, 0, -1], [0, 0.5, 0.5]], n=4, sigma_x=2.0)
NAMES = list(PAPER_SETTINGS)


def misses(tasks, bias):
    """Return ||w - bias||^2 of each task."""
    return ((tasks.weights - bias) ** 2).sum(axis=1)


def assert_mean(values, expected, n_errors=4.0):
    """Check a mean within four standard errors."""
    assert abs(values.mean() - expected) <= n_errors * values.std() / np.sqrt(values.size)


# --- closed forms of clusters ---


def test_three_clusters_reference():
    v = THREE.variances()
    assert v.mean == pytest.approx(5.424444444, abs=1e-9)
    assert v.gap == pytest.approx(2.608002567, abs=1e-9)
    assert v.error < 1e-12
    X = [[0.4, 0.1], [0.2, -0.3]]
    np.testing.assert_allclose(
        THREE.posterior(X), [[0.501687757, 0.194023237, 0.304289006]], atol=1e-9
    )
    np.testing.assert_allclose(THREE.tau(X), [[0.699086508, 0.277780704]], atol=1e-9)


def test_two_clusters_reference():
    assert TWO.variances().gap == pytest.approx(1.5258496397, abs=1e-9)


@pytest.mark.parametrize(
    ("D", "share"), [(0.5, 0.0589459755), (1, 0.2040542656), (2, 0.5504004908), (4, 0.9314025912)]
)
def test_gap_of_two_clusters_at_distance_D(D, share):
    """Table of 1 - eps(D); the gap is that share of ||w1 - w2||^2 / 4."""
    env = Clusters([[2.0], [0.0]], [[D], [0.0]], n=1)
    assert env.variances().gap == pytest.approx(share, abs=1e-9)
    # n points of deviation sigma tell as much as one of deviation sigma / sqrt(n)
    same = Clusters([[2.0], [0.0]], [[3 * D], [0.0]], n=9, sigma_x=9.0)
    assert same.variances().gap == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("D", [0.1, 1.7, 6.3, 20.0])
def test_gap_agrees_with_the_formula_of_two_equal_clusters(D):
    """eps(D) = exp(-D^2/8) E[sech(D Z / 2)], by a fine sum that shares no code."""
    z = np.linspace(-12, 12, 200_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    eps = np.exp(-(D**2) / 8) * (density / np.cosh(D * z / 2)).sum() * (24 / 200_000)
    env = Clusters([[2.0, 0.0], [0.0, 0.0]], [[0.0, D], [0.0, 0.0]], n=1)
    assert env.variances().gap == pytest.approx(1 - eps, rel=1e-9)


def test_unequal_priors():
    """Checked value: pi = 0.2 gives eps_01 = 0.750883 at sqrt(n) dx / sx of D with LB 1.011965."""
    D = np.sqrt(-8 * np.log(1.011965 * 2 * np.sqrt(0.2 * 0.8)))
    env = Clusters([[1.0], [0.0]], [[D], [0.0]], n=1, weights=[0.2, 0.8])
    assert 1 - env.variances().gap / (0.2 * 0.8) == pytest.approx(0.750883, abs=2e-6)


def test_clusters_that_inputs_cannot_tell_apart_leave_no_gap():
    env = Clusters([[5, 0], [-5, 0], [0, 0]], [[0, 0], [0, 0], [8, 0]], n=1)
    assert env.variances().gap == pytest.approx(0.0, abs=1e-9)
    alike = Clusters([[5, 0], [-5, 0]], [[1, 1], [1, 1]])
    assert alike.variances().gap == 0.0


def test_gap_does_not_depend_on_where_the_centres_lie():
    moved = Clusters(THREE.w_centers, THREE.x_centers + 1e6, n=2, sigma_w=0.7)
    assert moved.variances().gap == pytest.approx(THREE.variances().gap, rel=1e-7)
    X = np.array([[0.4, 0.1], [0.2, -0.3]])
    np.testing.assert_allclose(moved.posterior(X + 1e6), THREE.posterior(X), rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "zero", "mean", "gap"),
    [
        ("one-cluster", 340, 20, 0),
        ("two-clusters-mean-4", 660, 340, 320),
        ("two-clusters-mean-0", 340, 340, 320),
        ("circle", 84, 84, 64),
    ],
)
def test_variances_of_the_papers_settings(name, zero, mean, gap):
    env = paper_environment(name)
    v = env.variances() if name == "circle" else env.variances(n=10)
    assert (v.zero, v.mean) == (zero, mean)
    assert v.gap == pytest.approx(gap, abs=1e-9)
    assert v.gap_independent == pytest.approx(zero - mean + gap, abs=1e-9)
    assert v.gap_mean == zero - mean == pytest.approx(env.w_rho @ env.w_rho)


@pytest.mark.parametrize("m", [2, 3, 4, 6])
def test_variances_agree_with_samples(m):
    """Quadrature in one, two and three dimensions, and the drawn points beyond."""
    rng = np.random.default_rng(m)
    env = Clusters(
        2 * rng.normal(size=(m, 6)), 0.5 * rng.normal(size=(m, 6)), n=3, weights=rng.random(m)
    )
    v = env.variances()
    tasks = env.sample(20_000, random_state=1)
    assert_mean(misses(tasks, 0.0), v.zero)
    assert_mean(misses(tasks, env.w_rho), v.mean)
    assert_mean(misses(tasks, env.tau(tasks)), v.tau, 5.0)
    assert v.error < (1e-6 if m <= 4 else 0.02)
    assert v.tau < v.mean - 1


def test_more_points_explain_more():
    gaps = [THREE.variances(n).gap for n in (1, 2, 5, 50)]
    assert all(a < b for a, b in pairwise(gaps))
    v = THREE.variances(1000)
    assert v.tau == pytest.approx(2 * 0.49, abs=1e-6)


# --- posterior ---


def test_posterior_is_bayes_rule():
    """Against densities multiplied out, ragged tasks and an empty one."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 3, 3, 4, 8])
    X = rng.normal(size=(8, 2))
    env = Clusters(THREE.w_centers, THREE.x_centers, sigma_x=1.3, weights=[1, 2, 3])
    square = ((X[:, None] - env.x_centers) ** 2).sum(axis=2)
    density = np.exp(-square / (2 * 1.3**2))
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        mass = np.array([1, 2, 3]) * density[lo:hi].prod(axis=0)
        np.testing.assert_allclose(
            env.posterior(X, offsets)[t], mass / mass.sum(), rtol=1e-12, atol=1e-15
        )
    np.testing.assert_allclose(env.posterior(X, offsets)[1], [1 / 6, 1 / 3, 1 / 2])
    np.testing.assert_allclose(env.tau(X[:0], [0, 0]), env.w_rho[None])


def test_posterior_survives_extreme_scores():
    far = Clusters([[1.0], [2.0], [3.0]], [[1e8], [0.0], [-1e8]], sigma_x=1e-3, n=100)
    p = far.posterior([[1e8], [1e8]])
    np.testing.assert_array_equal(p, [[1.0, 0.0, 0.0]])
    assert far.variances().gap == pytest.approx(2 / 3)
    none = Clusters([[1.0], [2.0]], [[1.0], [-1.0]], weights=[0.0, 1.0])
    np.testing.assert_array_equal(none.posterior([[50.0]]), [[0.0, 1.0]])
    assert none.variances().gap == 0.0
    scores = np.array([[1e300, 0.0], [-1e300, -1e300]])
    np.testing.assert_allclose(np.exp(log_softmax(scores)), [[1, 0], [0.5, 0.5]])


def test_posterior_of_a_task_set_equals_that_of_its_arrays():
    tasks = THREE.sample(7, random_state=0)
    np.testing.assert_array_equal(THREE.posterior(tasks), THREE.posterior(tasks.X, tasks.offsets))


def test_posterior_finds_the_cluster_when_clusters_are_far_apart():
    env = paper_environment("two-clusters-mean-0")
    tasks = env.sample(50, random_state=0)
    np.testing.assert_array_equal(env.posterior(tasks).argmax(axis=1), tasks.clusters)
    np.testing.assert_allclose(env.tau(tasks), env.w_centers[tasks.clusters])


def test_unit_inputs_reveal_the_cluster_with_one_point():
    """Clusters 0 and 1 share their centre: only their priors tell them apart."""
    w = [[3.0, 0], [-3, 0], [0, 1]]
    env = Clusters(w, [[0, 0], [0, 0], [0.1, 0]], n=1, weights=[0.25, 0.25, 0.5], inputs="unit")
    tasks = env.sample(4000, random_state=0)
    expected = np.where(tasks.clusters[:, None] == 2, [0, 0, 1], [0.5, 0.5, 0])
    np.testing.assert_array_equal(env.posterior(tasks), expected)
    assert env.variances().gap == pytest.approx(0.25 * 1.0)
    assert_mean(misses(tasks, env.tau(tasks)), env.variances().tau)
    np.testing.assert_array_equal(env.posterior(tasks.X[:0], [0, 0]), [env.weights])


def test_points_must_fit():
    with pytest.raises(DataError, match="must have 2 features"):
        THREE.tau([[1.0, 2.0, 3.0]])
    with pytest.raises(DataError, match="rise from 0 to 2"):
        THREE.tau([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    with pytest.raises(DataError, match="must rise"):
        THREE.tau([[1.0, 2.0], [3.0, 4.0]], [0, 2, 1, 2])


# --- circle ---

CIRCLE = Circle(radius=3.0, center=[1, -1, 2, 0, 0.5, 0], d=6, sigma_w=0.8, n=1)


def test_circle_reference():
    v = CIRCLE.variances()
    assert v.tau == pytest.approx(3.84)
    assert v.mean == pytest.approx(12.84)
    assert v.gap == pytest.approx(9.0)
    assert v.gap_independent == pytest.approx(15.25)
    tasks = CIRCLE.sample(20_000, random_state=0)
    assert_mean(misses(tasks, CIRCLE.tau(tasks)), v.tau)
    assert_mean(misses(tasks, CIRCLE.w_rho), v.mean)
    assert_mean(misses(tasks, 0.0), v.zero)


def test_h_goes_round_the_centre():
    h = CIRCLE.tau([0, 0.25, 0.5, 0.75])
    np.testing.assert_allclose(h[:, :2] - [1, -1], [[3, 0], [0, 3], [-3, 0], [0, -3]], atol=1e-14)
    np.testing.assert_array_equal(h[:, 2:], [[2, 0, 0.5, 0]] * 4)


def test_tau_reads_s_in_every_form():
    tasks = CIRCLE.sample(5, random_state=0)
    s = tasks.side.data["s"]
    np.testing.assert_array_equal(CIRCLE.tau(tasks), CIRCLE.tau(s))
    np.testing.assert_array_equal(CIRCLE.tau(tasks.side), CIRCLE.tau(s))
    np.testing.assert_array_equal(CIRCLE.tau(tasks[::-1]), CIRCLE.tau(s[::-1]))
    assert CIRCLE.tau(0.5).shape == (1, 6)
    with pytest.raises(DataError, match="no side table"):
        CIRCLE.tau(THREE.sample(2, random_state=0))
    with pytest.raises(DataError, match="no column 's'"):
        CIRCLE.tau(TaskTable({"r": [1.0]}, ids=[0]))
    with pytest.raises(DataError, match="one number for each task"):
        CIRCLE.tau(np.zeros((2, 2)))


# --- what is drawn ---


def test_inputs_and_weights_have_the_stated_distribution():
    env = Clusters(
        [[4.0] * 5, [0.0] * 5], [[1.0] * 5, [-2.0] * 5], sigma_w=0.5, sigma_x=2.0, weights=[1, 3]
    )
    tasks = env.sample(4000, random_state=0)
    assert_mean((tasks.clusters == 0).astype(float), 0.25)
    for j in range(2):
        own = tasks[tasks.clusters == j]
        assert_mean((own.weights - env.w_centers[j]).ravel(), 0.0)
        assert own.weights.std(axis=0) == pytest.approx(np.full(5, 0.5), rel=0.06)
        assert_mean((own.X - env.x_centers[j]).ravel(), 0.0)
        assert own.X.std(axis=0) == pytest.approx(np.full(5, 2.0), rel=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_unit_inputs_lie_on_a_sphere(name):
    env = paper_environment(name, inputs="unit", sigma_x=3.0)
    tasks = env.sample(50, random_state=0)
    if name == "circle":
        centers = np.ones((50, 20))
    else:
        centers = env.x_centers[tasks.clusters]
    steps = tasks.X - np.repeat(centers, 20, axis=0)
    np.testing.assert_allclose(np.linalg.norm(steps, axis=1), 3.0)
    assert np.abs(steps.mean(axis=0)).max() < 5 * 3 / np.sqrt(20 * 1000)


@pytest.mark.parametrize("snr", [0.25, 1.0, 4.0])
def test_noise_follows_the_clean_labels_of_its_task(snr):
    """Labels minus <x, w> over the deviation of <x, w> within the task is N(0, 1 / snr)."""
    tasks = paper_environment("two-clusters-mean-4", snr=snr).sample(1000, random_state=0)
    clean = np.einsum("ij,ij->i", tasks.X, np.repeat(tasks.weights, 20, axis=0))
    spread = np.repeat(clean.reshape(1000, 20).std(axis=1), 20)
    noise = (tasks.y - clean) / spread * np.sqrt(snr)
    assert_mean(noise, 0.0)
    assert_mean(noise**2, 1.0)
    assert_mean(noise**4, 3.0)


def test_no_noise_and_given_noise():
    quiet = THREE.sample(0 + 9, random_state=0)
    env = {"w_centers": THREE.w_centers, "x_centers": THREE.x_centers, "n": 50}
    exact = Clusters(**env, snr=None).sample(100, random_state=0)
    clean = np.einsum("ij,ij->i", exact.X, np.repeat(exact.weights, 50, axis=0))
    np.testing.assert_allclose(exact.y, clean, atol=1e-12)
    loud = Clusters(**env, noise=3.0).sample(100, random_state=0)
    np.testing.assert_array_equal(loud.X, exact.X)
    assert (loud.y - clean).std() == pytest.approx(3.0, rel=0.05)
    np.testing.assert_array_equal(Clusters(**env, noise=0.0).sample(100, 0).y, exact.y)
    assert len(quiet) == 9


@pytest.mark.parametrize("name", NAMES)
def test_seeds(name):
    env = paper_environment(name)
    tasks = env.sample(40, random_state=3)
    again, longer = env.sample(40, random_state=3), env.sample(100, random_state=3)
    for key in ("X", "y", "weights", "clusters"):
        if getattr(tasks, key) is not None:
            np.testing.assert_array_equal(getattr(again, key), getattr(tasks, key))
            np.testing.assert_array_equal(getattr(longer[:40], key), getattr(tasks, key))
    assert not np.array_equal(env.sample(40, random_state=4).X, tasks.X)
    assert not np.array_equal(env.sample(40).X, env.sample(40).X)
    rng = np.random.default_rng(0)
    first, second = env.sample(2, rng), env.sample(2, rng)
    assert not np.array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.X, env.sample(2, np.random.default_rng(0)).X)
    old = np.random.RandomState(0)
    np.testing.assert_array_equal(env.sample(2, old).X, env.sample(2, np.random.RandomState(0)).X)


def test_options_share_the_other_draws():
    """Gaussian and unit inputs of one seed have the same weights, clusters and directions."""
    gauss = paper_environment("two-clusters-mean-4").sample(30, random_state=0)
    unit = paper_environment("two-clusters-mean-4", inputs="unit").sample(30, random_state=0)
    np.testing.assert_array_equal(gauss.weights, unit.weights)
    np.testing.assert_array_equal(gauss.clusters, unit.clusters)


def test_sampling_takes_milliseconds():
    env = paper_environment("two-clusters-mean-4")
    env.sample(480, random_state=0)
    times = []
    for seed in range(7):
        start = time.process_time()
        env.sample(480, random_state=seed)
        times.append(time.process_time() - start)
    assert min(times) < 0.03


# --- the sampled task set ---


@pytest.fixture
def tasks():
    return paper_environment("two-clusters-mean-4", n=4).sample(12, random_state=0)


def clean_error(part):
    """Return how far labels without noise are from <x, w>."""
    rows = np.repeat(part.weights, part.sizes, axis=0)
    return np.abs(np.einsum("ij,ij->i", part.X, rows) - part.y).max()


def test_truth_stays_with_its_task():
    tasks = paper_environment("circle", snr=None).sample(12, random_state=0)
    parts = [
        tasks,
        tasks[3:7],
        tasks[::-1],
        tasks[[5, 1]],
        tasks[tasks.side.data["s"] > 0.5],
        tasks.subset([11, 0, 4]),
        *tasks.split_tasks((5, 4), random_state=0),
        *tasks.split_points(3, random_state=0),
        *tasks[::2].split_points(3)[0].split_tasks(2),
        tasks.with_target(tasks.y),
        pickle.loads(pickle.dumps(tasks)),
    ]
    for part in parts:
        assert isinstance(part, SampledTaskSet)
        assert isinstance(part, TaskSet)
        assert part.weights.shape == (len(part), 20)
        assert clean_error(part) < 1e-12


def test_clusters_stay_with_their_task(tasks):
    np.testing.assert_array_equal(tasks[[7, 2]].clusters, tasks.clusters[[7, 2]])
    part = tasks.split_points(2)[1]
    np.testing.assert_array_equal(part.clusters, tasks.clusters)
    assert paper_environment("circle").sample(2, random_state=0)[:1].clusters is None


def test_tasks_added_by_a_side_table_have_no_truth(tasks):
    more = tasks.with_side(TaskTable({"a": [1.0, 2.0]}, ids=[3, 99]))
    assert len(more) == 13
    assert np.isnan(more.weights[-1]).all()
    assert more.clusters[-1] == -1
    np.testing.assert_array_equal(more.weights[:-1], tasks.weights)


def test_truth_is_read_only_and_checked(tasks):
    with pytest.raises(ValueError, match="read-only"):
        tasks.weights[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        tasks.clusters[0] = 1
    with pytest.raises(DataError, match=r"weights must have the shape \(1, 1\)"):
        SampledTaskSet([[1.0]], [1.0], [0, 1], ["a"], weights=[[1.0, 2.0]])
    with pytest.raises(DataError, match="clusters must have 1 entries"):
        SampledTaskSet([[1.0]], [1.0], [0, 1], ["a"], weights=[[1.0]], clusters=[0, 1])
    assert repr(tasks).startswith("SampledTaskSet(12 tasks")


# --- parameters ---


def test_papers_settings():
    for name, setting in PAPER_SETTINGS.items():
        env = paper_environment(name)
        assert (env.d, env.n, env.snr) == (20, 20, 1.0)
        assert setting.n_tasks == (300, 100, 80)
        assert setting.train_points == 0.5
        assert setting.grid == ((16, 1e-7, 1e7) if name == "circle" else (14, 1e-5, 1e5))
        assert env.inputs == ("unit" if name == "circle" else "gaussian")
    np.testing.assert_array_equal(paper_environment("two-clusters-mean-4").w_rho, np.full(20, 4.0))
    np.testing.assert_array_equal(paper_environment("two-clusters-mean-0").w_rho, np.zeros(20))
    assert paper_environment("circle", n=7).n == 7
    with pytest.raises(DataError, match="'name' parameter of paper_environment must be one of"):
        paper_environment("square")


@pytest.mark.parametrize("make", [lambda **k: Clusters([[1.0, 2]], [[1.0, 2]], **k), Circle])
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": 0}, "'n' parameter of .* must be an int of at least 1. Got 0 instead"),
        ({"n": 2.5}, "'n' parameter"),
        ({"sigma_w": -1}, r"'sigma_w' parameter of .* must be a float in \[0, inf\)"),
        ({"sigma_x": 0}, r"'sigma_x' parameter of .* must be a float in \(0, inf\)"),
        ({"snr": 0.0}, "'snr' parameter"),
        ({"snr": np.nan}, "'snr' parameter"),
        ({"noise": -0.1}, "'noise' parameter"),
        ({"inputs": "cube"}, "'inputs' parameter of .* must be 'gaussian' or 'unit'"),
    ],
)
def test_wrong_parameters(make, options, sentence):
    with pytest.raises(DataError, match=sentence):
        make(**options)


def test_wrong_shapes():
    with pytest.raises(DataError, match=r"one shape \(m, d\)"):
        Clusters([[1.0, 2.0]], [[1.0]])
    with pytest.raises(DataError, match="must be finite"):
        Clusters([[np.inf]], [[1.0]])
    with pytest.raises(DataError, match="'weights' parameter of Clusters must be 1 numbers"):
        Clusters([[1.0]], [[1.0]], weights=[0.5, 0.5])
    with pytest.raises(DataError, match="with a sum > 0"):
        Clusters([[1.0]], [[1.0]], weights=[0.0])
    with pytest.raises(DataError, match="two features"):
        Clusters([[1.0]], [[1.0]], inputs="unit")
    with pytest.raises(DataError, match="'d' parameter of Circle must be an int of at least 2"):
        Circle(d=1)
    with pytest.raises(DataError, match="'center' parameter of Circle must be one finite number"):
        Circle(center=[1.0, 2.0])
    with pytest.raises(DataError, match="'n_tasks' parameter"):
        THREE.sample(0)
    with pytest.raises(DataError, match="'random_state' parameter"):
        THREE.sample(1, random_state="a")


def test_repr_names_the_options():
    assert repr(THREE).startswith("Clusters(3 clusters, d=2, n=2, sigma_w=0.7")
    assert "noise=0.5" in repr(Circle(noise=0.5))
    assert "inputs='unit'" in repr(Circle())
