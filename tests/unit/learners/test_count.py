"""Counts: truth found, exposure, edges, distributions, sentences, files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import nbinom
from sklearn.linear_model import PoissonRegressor

import condmeta as cm
from condmeta.errors import DataError

# The tasks of these tests are few.
pytestmark = pytest.mark.filterwarnings("ignore::condmeta.errors.FewTasksWarning")


def draw(n_tasks=60, n=8, alpha=0.5, spread=0.3, seed=0):
    """Return X, y, task, exposure and a side table that moves intercept and slope."""
    rng = np.random.default_rng(seed)
    s, task = rng.normal(size=n_tasks), np.repeat(np.arange(n_tasks), n)
    X, exposure = rng.normal(size=(len(task), 1)), rng.uniform(0.5, 4.0, size=len(task))
    slope, level = (
        a + b * s + spread * rng.normal(size=n_tasks) for a, b in ((0.3, 0.4), (1, 0.5))
    )
    mean = exposure * np.exp(level[task] + slope[task] * X[:, 0])
    if alpha:
        mean = mean * rng.gamma(1 / alpha, alpha, size=len(mean))
    y = rng.poisson(mean).astype(float)
    return X, y, task, exposure, cm.TaskTable({"s": s}, range(n_tasks))


QUICK = {"metric": "diagonal", "kappa": 1.0}


@pytest.fixture(scope="module")
def fitted():
    X, y, task, exposure, side = draw()
    model = cm.ConditionalCount(**QUICK)
    return model.fit(X, y, task=task, exposure=exposure, side_info=side)


def test_truth_is_found():
    X, y, task, exposure, side = draw(600, 8)
    model = cm.ConditionalCount(metric="diagonal", kappa=0.1)
    model.fit(X, y, task=task, exposure=exposure, side_info=side)
    assert model.alpha_ == pytest.approx(0.5, abs=0.06)
    np.testing.assert_allclose(model.theta_for({"s": 1.0}), [0.7, 1.5], atol=0.08)
    np.testing.assert_allclose(model.theta_for({"s": -1.0}), [-0.1, 0.5], atol=0.08)
    np.testing.assert_allclose(np.sqrt(np.diag(model.H_)), 0.3, atol=0.08)


def test_poisson_counts_are_told_from_others():
    X, y, task, exposure, side = draw(200, 10, alpha=0)
    call = {"task": task, "exposure": exposure, "side_info": side}
    assert cm.ConditionalCount(**QUICK).fit(X, y, **call).alpha_ < 0.02
    given = cm.ConditionalCount(alpha=0, **QUICK).fit(X, y, **call)
    assert given.alpha_ == pytest.approx(1e-4)


def test_equal_tasks_are_one_poisson_regression():
    """Tasks that do not differ have scikit-learn's coefficients of all rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    y = rng.poisson(np.exp(0.5 + X @ [0.4, -0.3])).astype(float)
    task = np.repeat([0, 1], 2000)
    model = cm.ConditionalCount(alpha=0, metric="identity").fit(X, y, task=task)
    theirs = PoissonRegressor(alpha=0, tol=1e-8).fit(X, y)
    ours = model.coef_frame(wide=True).iloc[0, 2:].to_numpy(float)
    np.testing.assert_allclose(ours, [*theirs.coef_, theirs.intercept_], atol=0.02)


def test_exposure_is_an_offset(fitted):
    X, y, task, exposure, side = draw()
    double = cm.ConditionalCount(**QUICK).fit(
        X, y, task=task, exposure=2 * exposure, side_info=side
    )
    call = {"task": task, "exposure": exposure}
    np.testing.assert_allclose(double.predict(X, **call), fitted.predict(X, **call) / 2, rtol=1e-3)
    twice = fitted.predict(X, task=task, exposure=2 * exposure)
    np.testing.assert_allclose(twice, 2 * fitted.predict(X, **call), rtol=1e-12)
    assert fitted.score(X, y, **call) > 0.5


def test_a_weight_of_two_is_the_row_twice():
    X, y, task, exposure, _ = draw(8)
    rng = np.random.default_rng(0)
    times = rng.integers(0, 3, size=len(y))
    at = np.repeat(np.arange(len(y)), times)
    learner = cm.ConditionalCount(metric="identity", scale="none")
    one = learner.fit(X, y, task=task, exposure=exposure, sample_weight=times)
    first = one.objective_, one.alpha_, one.b_
    two = learner.fit(X[at], y[at], task=task[at], exposure=exposure[at])
    assert first[0] == pytest.approx(two.objective_, abs=1e-3)
    assert first[1] == pytest.approx(two.alpha_, rel=1e-2)
    np.testing.assert_allclose(first[2], two.b_, atol=1e-2)


def test_adapted_models_agree_with_predict(fitted, engine):
    X, y, task, exposure, _ = draw()
    at = task < 3
    models = fitted.adapt(
        X[at], y[at], task=task[at], exposure=exposure[at],
        side_info=cm.TaskTable({"s": fitted.fitted_.tasks.Phi[:3, 0]}, range(3)),
    )  # fmt: skip
    call = {"task": task[at], "exposure": exposure[at]}
    want = fitted.predict_distribution(X[at], **call)
    got = models.predict_distribution(X[at], **call)
    assert got.mean.shape == want.mean.shape
    mean, std = models.predict(X[at], task=task[at], return_std=True)
    rate = fitted.predict_distribution(X[at], task=task[at], exposure=1)
    assert mean.shape == rate.mean.shape
    one = fitted.adapt(X[:8], y[:8], exposure=exposure[:8], side_info={"s": 0.0})
    found = one.predict_distribution(X[:8], exposure=exposure[:8])
    np.testing.assert_allclose(found.mean, exposure[:8] * one.predict(X[:8]))
    np.testing.assert_allclose(
        one.predict(X[:8], return_std=True)[1], one.predict_distribution(X[:8]).std
    )
    assert std.min() > 0


def test_zero_shot_has_no_overflow(fitted):
    far = np.array([[1e3], [-1e3], [30.0]])
    counts = fitted.adapt(side_info={"s": 3.0}).predict_distribution(far)
    for values in (counts.mean, counts.std, counts.median, counts.interval()):
        assert np.isfinite(values).all()
    assert np.isfinite(counts.log_density([0, 5, 1e6])).all()
    assert np.isfinite(counts.proba(5)).all()


def test_edges_have_answers(engine):
    """Tasks of zeros, of one row, with huge counts; all rows zero; one task."""
    X = np.linspace(-1, 1, 9)[:, None]
    y = np.array([0.0, 0, 0, 5, 1e8, 3, 2, 1, 0])
    task = ["zero"] * 3 + ["one"] + ["huge"] + ["plain"] * 4
    model = cm.ConditionalCount(metric="identity").fit(X, y, task=task)
    predicted = model.predict(X, task=task)
    assert np.isfinite(predicted).all()
    assert (predicted >= 0).all()
    assert predicted[:3].max() < predicted[3]
    nothing = cm.ConditionalCount(metric="identity").fit(X, np.zeros(9), task=task)
    assert nothing.predict(X, task=task).max() < 0.2


def test_distribution_is_a_mixture_of_negative_binomials():
    m, v, alpha = np.array([0.4, 3.0]), np.array([0.3, 1.2]), 0.25
    counts = cm.CountDistribution(m, v, alpha)
    rng = np.random.default_rng(0)
    f = m[:, None] + np.sqrt(v)[:, None] * rng.normal(size=(2, 400_000))
    mu, r = np.exp(f), 1 / alpha
    y = rng.negative_binomial(r, r / (r + mu))
    np.testing.assert_allclose(counts.mean, y.mean(axis=1), rtol=0.02)
    np.testing.assert_allclose(counts.std, y.std(axis=1), rtol=0.1)
    np.testing.assert_allclose(counts.median, np.median(y, axis=1), atol=1)
    np.testing.assert_allclose(counts.quantile(0.9), np.quantile(y, 0.9, axis=1), rtol=0.02, atol=1)
    p = counts.proba(200)
    for k in (0, 1, 7):
        np.testing.assert_allclose(p[:, k], (y == k).mean(axis=1), atol=3e-3)
        np.testing.assert_allclose(counts.cumulative(k), p[:, : k + 1].sum(axis=1), atol=1e-5)
    known = cm.CountDistribution(m, np.zeros(2), alpha)
    np.testing.assert_allclose(known.proba(3)[0], nbinom.pmf(range(4), r, r / (r + np.exp(0.4))))


def test_no_exposure_is_no_count(fitted):
    X, _, task, *_ = draw()
    counts = fitted.predict_distribution(X[:2], task=task[:2], exposure=[0.0, 1.0])
    assert counts.mean[0] == counts.median[0] == 0
    assert counts.proba(1)[0].tolist() == [1.0, 0.0]
    assert counts.interval()[0].tolist() == [0.0, 0.0]


def test_intervals_cover():
    X, y, task, exposure, side = draw(300, 6)
    train = task < 200
    model = cm.ConditionalCount(**QUICK).fit(
        X[train], y[train], task=task[train], exposure=exposure[train], side_info=side
    )
    new = ~train
    interval = model.predict_distribution(X[new], task=task[new], exposure=exposure[new]).interval(
        0.8
    )
    covered = np.mean((y[new] >= interval[:, 0]) & (y[new] <= interval[:, 1]))
    assert 0.8 <= covered < 0.93  # ends are whole numbers: never less than asked for


def test_held_out_density_beats_ridge():
    X, y, task, exposure, side = draw(200, 8)
    train, new = task < 150, task >= 150
    fit = {"task": task[train], "side_info": side}
    counts = cm.ConditionalCount().fit(X[train], y[train], exposure=exposure[train], **fit)
    density = counts.predict_distribution(
        X[new], task=task[new], exposure=exposure[new]
    ).log_density(y[new])
    ridge = cm.ConditionalRidge().fit(X[train], y[train], **fit)
    mean, std = ridge.predict(X[new], task=task[new], return_std=True)
    theirs = -0.5 * np.log(2 * np.pi * std**2) - (y[new] - mean) ** 2 / (2 * std**2)
    assert density.mean() > theirs.mean() + 0.3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"y": [1.0, -2.0]}, r"^Task 'a', row 1, has -2 in y: a count is at least 0. For"),
        ({"exposure": [1.0, 0.0]}, r"^Task 'a', row 1, has exposure 0: the expected count is"),
        ({"exposure": [1.0, np.nan]}, r"^Task 'a', row 1, has exposure nan"),
        ({"exposure": [1.0]}, r"^X has 2 rows and exposure has 1\."),
        ({"y": [1.0, np.nan]}, r"^Task 'a' has NaN in y"),
    ],
)  # fmt: skip
def test_bad_rows_have_a_sentence(call, sentence):
    given = {"y": [1.0, 2.0], "task": ["a", "a"]} | call
    with pytest.raises(DataError, match=sentence):
        cm.ConditionalCount().fit([[0.0], [1.0]], **given)


def test_exposure_must_be_given_again(fitted):
    X, y, task, *_ = draw()
    for method in (fitted.predict, fitted.predict_distribution):
        with pytest.raises(
            DataError, match=r"^The model was fitted with an exposure: give exposure="
        ):
            method(X, task=task)
    with pytest.raises(DataError, match=r"^The model was fitted with an exposure"):
        fitted.adapt(X[:2], y[:2], side_info={"s": 0.0})
    with pytest.raises(
        DataError, match=r"^Row 1 has exposure -1: it must be a finite number of at le"
    ):
        fitted.predict(X[:2], task=task[:2], exposure=[1, -1])
    with pytest.raises(DataError, match=r"^The model was fitted with an exposure"):
        fitted.update(X, y, task=task)
    assert fitted.adapt(side_info={"s": 0.0}).predict([[0.0]]) > 0


@pytest.mark.parametrize("alpha", [-1.0, np.inf, "wide"])
def test_alpha_has_a_range(alpha):
    with pytest.raises(
        DataError, match=r"^The 'alpha' parameter of ConditionalCount must be 'auto' or"
    ):
        cm.ConditionalCount(alpha=alpha).fit([[0.0], [1.0]], [1, 2], task=[0, 1])


def test_distribution_refuses_bad_questions(fitted):
    counts = fitted.adapt(side_info={"s": 0.0}).predict_distribution([[0.0]])
    with pytest.raises(DataError, match=r"^The largest count must be an int of at least 0"):
        counts.proba(-1)
    with pytest.raises(DataError, match=r"^The 'q' parameter must be a float in \(0, 1\)"):
        counts.quantile(1.0)
    with pytest.raises(DataError, match=r"^The 'coverage' parameter must be a float in \(0, 1\)"):
        counts.interval(90)


def test_files_keep_everything(fitted, tmp_path):
    X, _, task, exposure, _ = draw()
    fitted.save(tmp_path / "counts.condmeta")
    again = cm.load(tmp_path / "counts.condmeta")
    call = {"task": task, "exposure": exposure}
    np.testing.assert_array_equal(again.predict(X, **call), fitted.predict(X, **call))
    assert again.alpha_ == fitted.alpha_
    with pytest.raises(DataError, match="fitted with an exposure"):
        again.predict(X, task=task)


def test_some_coefficients_are_shared(tmp_path):
    X, y, task, exposure, side = draw(80)
    X = np.column_stack([X, np.random.default_rng(1).normal(size=len(X))])
    y = y + np.random.default_rng(2).poisson(np.exp(0.7 * X[:, 1]))
    call = {"task": task, "exposure": exposure, "side_info": side}
    model = cm.ConditionalCount(random=[0], **QUICK).fit(X, y, **call)
    table = model.coef_frame(wide=True)
    assert table["x1"].nunique() == 1
    assert table["x0"].nunique() == len(table)
    assert not model.M_[1].any()
    assert not model.H_[1].any()
    model.save(tmp_path / "shared.condmeta")
    again = cm.load(tmp_path / "shared.condmeta")
    rows = {"task": task[:9], "exposure": exposure[:9]}
    np.testing.assert_array_equal(again.predict(X[:9], **rows), model.predict(X[:9], **rows))
    new = model.adapt(X[:8], y[:8], exposure=exposure[:8], side_info={"s": 0.0})
    assert new.coef_[1] == pytest.approx(table["x1"].iloc[0])
    chosen = cm.ConditionalCount(random="intercept").fit(X, y, **call)  # settings on held-out tasks
    assert chosen.coef_frame(wide=True)[["x0", "x1"]].nunique().tolist() == [1, 1]
    with pytest.raises(DataError, match=r"^random names 'z', which is not among the 2 columns"):
        cm.ConditionalCount(random=["z"]).fit(X, y, **call)
    with pytest.raises(DataError, match=r"^The 'random' parameter of ConditionalCount must be"):
        cm.ConditionalCount(random="some").fit(X, y, **call)


@pytest.mark.parametrize("seed", [0, 4])
def test_levels_that_sum_to_the_intercept_do_not_blow_up_counts(seed):
    """A direction without rows had a variance of 1e100 or so, and rounding made 1e304 of it."""
    rng = np.random.default_rng(seed)
    task, weekday = np.repeat(np.arange(60), 25), rng.integers(0, 7, 1500)
    effect = np.array([0, -0.1, 0, 0.1, 0.3, 0.6, -0.5])[weekday]
    mean = np.exp(2 + 0.5 * rng.normal(size=60)[task] + effect)
    y, X = rng.negative_binomial(2, 2 / (2 + mean)), np.eye(7)[weekday]
    model = cm.ConditionalCount().fit(X, y, task=task)
    assert model.predict(X, task=task).max() < y.max()
    assert model.predict(X, task=np.full(len(X), "new")).max() < y.max()
