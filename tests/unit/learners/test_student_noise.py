"""`ConditionalRidge(noise="student")` and "robust": heavy tails, and rows that are wild."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import t as student

import condmeta as cm
from condmeta.errors import DataError
from condmeta.inner.student import StudentGaussian

T, N = 60, 8
PLAIN = {"context": False, "cold_start": "prior", "x_transform": None, "y_transform": None}
FIXED = PLAIN | {"metric": "diagonal", "kappa": 1.0}


def drawn(seed=0, df=None, wild=0.0, n_tasks=T, first=0):
    """Draw tasks with normal noise, or of Student's; some rows are 10 deviations off.

    Ids are numbers from `first` on.
    """
    rng = np.random.default_rng(seed)
    s, task = rng.normal(size=(n_tasks, 1)), np.repeat(np.arange(n_tasks), N)
    w = np.column_stack([s[:, 0], 1 + s[:, 0]]) + 0.5 * rng.normal(size=(n_tasks, 2))
    X, size = rng.normal(size=(n_tasks * N, 1)), n_tasks * N
    truth = X[:, 0] * w[task, 0] + w[task, 1]
    noise = rng.normal(size=size) if df is None else rng.standard_t(df, size=size)
    y = truth + noise + 10 * (rng.random(size) < wild) * rng.choice([-1, 1], size=size)
    side = cm.TaskTable(s, ids=range(first, first + n_tasks), columns=["size"])
    return X, y, task + first, side, truth


def fit(data, **params):
    X, y, task, side, _ = data
    return cm.ConditionalRidge(**params).fit(X, y, task=task, side_info=side)


@pytest.fixture(scope="module")
def heavy():
    data = drawn(df=3)
    return data, fit(data, noise="student", **FIXED)


def test_the_likelihood_of_equal_tasks_is_maximised():
    rng = np.random.default_rng(1)
    X, task = rng.normal(size=(900, 1)), np.repeat(np.arange(60), 15)
    y = 2 * X[:, 0] + 1 + rng.standard_t(3, size=900)
    model = cm.ConditionalRidge(None, noise="student", tol=1e-3, **PLAIN).fit(X, y, task=task)

    def minus(p):
        r = y - p[0] * X[:, 0] - p[1]
        return -student.logpdf(r, model.nu_, scale=np.exp(p[2])).sum()

    best = minimize(minus, np.array([0.0, 0.0, 0.0]))
    assert model.nu_ == 3
    np.testing.assert_allclose(model.theta_mean_, best.x[:2], atol=0.01)
    assert model.s2_ == pytest.approx(np.exp(2 * best.x[2]), rel=0.05)
    assert model.objective_ == pytest.approx(-best.fun, abs=2.0)


def test_normal_noise_has_the_bits_of_shared_noise():
    data = drawn()
    model, normal = (fit(data, noise=noise, **PLAIN) for noise in ("student", "shared"))
    assert (model.noise_, model.nu_) == ("student", np.inf)
    X, _, task, *_ = data
    for mine, theirs in zip(
        model.predict(X, task=task, return_std=True),
        normal.predict(X, task=task, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)


def test_wild_rows_cost_little():
    data = drawn(wild=0.05)
    X, _, task, _, truth = data
    errors = {
        noise: np.abs(fit(data, noise=noise, **PLAIN).predict(X, task=task) - truth).mean()
        for noise in ("auto", "student")
    }
    assert errors["student"] < 0.8 * errors["auto"]


def test_one_label_far_away_changes_little():
    data = drawn(df=5)
    X, y, task, side, truth = data
    far = y.copy()
    far[3] += 1e3
    errors = {
        noise: [
            np.abs(model.predict(X, task=task) - truth).mean()
            for labels in (y, far)
            for model in [fit((X, labels, task, side, None), noise=noise, **FIXED)]
        ]
        for noise in ("student", "shared")
    }
    assert errors["student"][1] < 1.1 * errors["student"][0]  # nu falls from 10 to 3
    assert errors["shared"][1] > 3 * errors["shared"][0]


def test_adapt_agrees_with_the_models_of_fit(heavy):
    (X, y, task, side, _), model = heavy
    assert isinstance(model.fitted_.inner, StudentGaussian)
    again = model.adapt(X, y, task=task, side_info=side)
    assert np.abs(again.predict(X, task=task) - model.predict(X, task=task)).mean() < 0.01


def test_deviations_are_those_of_students_law(heavy):
    (X, _, task, *_), model = heavy
    _, std = model.predict(X, task=task, return_std=True)
    assert (std**2 > model.s2_ * model.nu_ / (model.nu_ - 2)).all()
    more = np.full(len(X), 4.0)
    _, sharper = model.predict(X, task=task, return_std=True, precision=more)
    noise = model.s2_ * model.nu_ / (model.nu_ - 2)
    np.testing.assert_allclose(std**2 - sharper**2, 0.75 * noise)


def test_update_weighs_new_rows_by_the_known_ones(heavy):
    (X, y, task, side, _), _ = heavy
    model = fit((X, y, task, side, None), noise="student", **FIXED)
    X_new, y_new = np.array([[0.5], [0.5]]), np.array([y[:N].mean() + 1e3, 1.0])
    before = model.predict(X[:N], task=task[:N])
    model.update(X_new[:1], y_new[:1], task=[0])
    assert np.abs(model.predict(X[:N], task=task[:N]) - before).max() < 0.05
    assert isinstance(model.fitted_.inner, StudentGaussian)
    one = model.adapt(X[:N], y[:N], side_info=[0.0])
    before = one.predict(X[:N])
    assert one.update(X_new[:1], y_new[:1]).n_ == N + 1
    assert np.abs(one.predict(X[:N]) - before).max() < 0.05
    more = cm.TaskTable([[0.3]], ["new"], ["size"])
    model.update(X_new, y_new, task=["new", "new"], side_info=more)
    alone = model.adapt(X_new, y_new, side_info=[0.3])
    np.testing.assert_allclose(
        model.predict(X[:2], task=["new", "new"]), alone.predict(X[:2]), rtol=1e-10
    )


def test_partial_fit_goes_on_with_the_weights_of_fit(heavy):
    (X, y, task, side, _), _ = heavy
    model = fit((X, y, task, side, None), noise="student", **FIXED)
    first = model.s2_
    X, y, task, side, _ = drawn(seed=2, df=3, first=T)
    y[::40] += 1e3
    model.partial_fit(X, y, task=task, side_info=side)
    assert (model.noise_, model.n_tasks_) == ("student", 2 * T)
    assert model.s2_ == pytest.approx(first, rel=0.2)
    assert isinstance(model.fitted_.inner, StudentGaussian)


def test_files_hold_the_noise(heavy, tmp_path):
    (X, y, task, *_), model = heavy
    model.save(tmp_path / "model.condmeta", resume=True)
    loaded = cm.load(tmp_path / "model.condmeta")
    assert (loaded.noise_, loaded.nu_) == (model.noise_, model.nu_)
    for mine, theirs in zip(
        loaded.predict(X, task=task, return_std=True),
        model.predict(X, task=task, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)
    pair = (each.adapt(X[:4], y[:4], side_info=[0.1]).coef_ for each in (loaded, model))
    np.testing.assert_array_equal(*pair)


def test_low_latency_has_the_bits_of_adapt(heavy):
    (X, y, *_), model = heavy
    fast = model.low_latency().adapt(X[:4], y[:4], [0.1])
    slow = model.adapt(X[:4], y[:4], side_info=[0.1])
    np.testing.assert_array_equal(fast.predict(X[:5]), slow.predict(X[:5]))


def test_the_summary_names_the_law(heavy):
    _, model = heavy
    assert f"(scale of Student's t, {model.nu_:g} degrees of freedom)" in str(model.summary())


def test_intervals_of_calibrate_cover(heavy):
    (X, y, task, side, _), _ = heavy
    learner = cm.ConditionalRidge(noise="student", **FIXED)
    found = cm.calibrate(learner, X, y, task=task, side_info=side)
    X, y, task, side, _ = drawn(seed=5, df=3, n_tasks=200, first=T)
    lower, upper = found.predict_interval(X, task=task, side_info=side)
    assert 0.85 < np.mean((y >= lower) & (y <= upper)) < 0.97


@pytest.mark.parametrize("wild", [0.0, 0.03])
def test_robust_is_chosen_where_rows_are_wild(wild):
    chosen = [fit(drawn(seed, n_tasks=100, wild=wild), noise="robust").noise_ for seed in range(3)]
    assert chosen.count("student") >= 2 if wild else "student" not in chosen


def test_what_is_refused():
    X, y, task, side, _ = drawn(df=3)
    for noise in ("student", "robust"):
        words = f"noise='{noise}' needs the rows of all tasks at once"
        with pytest.raises(DataError, match=words):
            cm.ConditionalRidge(noise=noise).partial_fit(X, y, task=task, side_info=side)
        with pytest.raises(DataError, match=words):
            cm.ConditionalLevels(noise=noise).fit(X, y, task=list(zip(task % 5, task, strict=True)))
    with pytest.raises(
        DataError, match="noise='student' works with up to 64 columns, without drift"
    ):
        cm.ConditionalRidge(noise="student", drift=0.9).fit(
            X, y, task=task, side_info=side, time=np.tile(np.arange(N), T)
        )
    one = fit(drawn(df=3), noise="student", **FIXED)
    other = fit(drawn(1, first=T), noise="student", **FIXED)
    assert one.nu_ < other.nu_
    with pytest.raises(DataError, match="gave outliers different weights"):
        cm.merge(one, other)
