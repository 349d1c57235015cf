"""`ConditionalRidge(noise="by_side")`: the noise of a task follows its side information."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import condmeta as cm
from condmeta.errors import DataError
from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import OneBlock
from condmeta.meta.prior import Prior
from condmeta.meta.ridge import RidgeModel
from condmeta.meta.side_noise import RIDGE, _slope, may_follow

Q_X = np.array([[1, 1], [2, 1], [0, 1], [1, 1], [3, 1], [2, 1], [1, 1], [0, 1.0]])
Q_Y = np.array([1, 3, 0.5, 2, 4, 1, -1, 0])
Q_PHI = np.array([[0.5], [-0.5], [1.0], [-1.0]])
Q_PRIOR = Prior(np.array([[0.2, 0.1], [1, 0.5]]), np.array([[0.5, 0], [0.1, 0.4]]), 0.8)
PLAIN = {"metric": "full", "kappa": 1.0, "context": False, "cold_start": "prior"}


def q_blocks():
    return OneBlock.of(SquaredState.of(Q_X, Q_Y, np.array([0, 2, 4, 6, 8])), Q_PHI)


def density(X, y, task, Phi1, W, H, s2):
    """Return the log density of all labels, task by task; s2 (T,)."""
    total = 0.0
    for t in range(len(Phi1)):
        x = X[task == t]
        cov = x @ H @ x.T + s2[t] * np.eye(len(x))
        total += multivariate_normal(x @ (Phi1[t] @ W), cov).logpdf(y[task == t])
    return total


@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_reference_values(monkeypatch, engine):
    monkeypatch.setenv("CONDMETA_ENGINE", engine)
    slope, _, loglik = q_blocks().map_sum(_slope, Q_PRIOR, np.array([0.3]))
    assert loglik == pytest.approx(-12.4141964399, abs=5e-11)
    assert slope[0] == pytest.approx(0.10427619, abs=5e-9)
    Phi1, task = np.column_stack([Q_PHI, np.ones(4)]), np.repeat(np.arange(4), 2)

    def value(delta):
        s2 = 0.8 * np.exp(delta * Q_PHI[:, 0])
        return density(Q_X, Q_Y, task, Phi1, Q_PRIOR.W, Q_PRIOR.H, s2)

    assert loglik == pytest.approx(value(0.3), abs=1e-10)
    assert slope[0] == pytest.approx((value(0.3 + 1e-5) - value(0.3 - 1e-5)) / 2e-5, abs=1e-8)


def test_the_gradient_of_the_prior():
    delta, h = np.array([0.3]), 1e-6
    model = RidgeModel(q_blocks(), 0.5, delta=delta)
    _, gradient = model.evaluate(Q_PRIOR)

    def value(**parts):
        return model.evaluate(Q_PRIOR._replace(**parts))[0]

    for name, array in (("W", Q_PRIOR.W), ("L", Q_PRIOR.L)):
        for at in np.argwhere(np.tril(np.ones_like(array)) if name == "L" else array):
            step = np.zeros_like(array)
            step[tuple(at)] = h
            slope = (value(**{name: array + step}) - value(**{name: array - step})) / (2 * h)
            assert getattr(gradient, name)[tuple(at)] == pytest.approx(slope, abs=1e-7)
    slope = (value(s2=0.8 * np.exp(h)) - value(s2=0.8 * np.exp(-h))) / (2 * h)
    assert gradient.s2 == pytest.approx(slope, abs=1e-7)


def simulated(T=200, n=8, delta=1.2, seed=0, own=0.0):
    """Return rows, ids and the side table; log s2_t = delta s + own N(0, 1)."""
    rng = np.random.default_rng(seed)
    s, u = rng.normal(size=(2, T))
    w = np.column_stack([1 + s, -s + u]) + 0.4 * rng.normal(size=(T, 2))
    X, task = rng.normal(size=(T * n, 1)), np.repeat(np.arange(T), n)
    noise = np.exp((delta * s + own * rng.normal(size=T)) / 2)
    y = X[:, 0] * w[task, 0] + w[task, 1] + noise[task] * rng.normal(size=T * n)
    return X, y, task, pd.DataFrame({"s": s, "u": u}, pd.RangeIndex(T, name="task")), noise


def fit(data, **params):
    X, y, task, side, _ = data
    return cm.ConditionalRidge(**params).fit(X, y, task=task, side_info=side)


def test_the_fit_maximises_the_likelihood_with_its_ridge():
    data = simulated(T=40, n=5)
    X, y, task, _, _ = data
    model = fit(data, noise="by_side", tol=1e-8, max_iter=2000, **PLAIN)
    fitted = model.fitted_
    rows, target = fitted.scales.rows(X), fitted.scales.target(y)
    Phi = fitted.tasks.Phi
    Z = (Phi - Phi.mean(axis=0)) / Phi.std(axis=0)
    Z1 = np.column_stack([Z, np.ones(len(Z))])
    delta = fitted.tau.noise[:-1] * Phi.std(axis=0)
    W = fitted.tau.weights.copy()
    W[-1] += Phi.mean(axis=0) @ W[:-1]
    W[:-1] *= Phi.std(axis=0)[:, None]
    L = np.linalg.cholesky(fitted.inner.factor @ fitted.inner.factor.T)
    d, k = W.shape[1], len(delta)

    def loss(p):
        W_, rest = p[: W.size].reshape(W.shape), p[W.size :]
        L_ = np.zeros((d, d))
        L_[np.tril_indices(d)] = rest[:3]
        s2 = np.exp(rest[3] + Z @ rest[4:])
        penalty = 0.5 * np.sum(np.linalg.solve(L_, W_[:-1].T) ** 2)
        penalty += RIDGE / 2 * rest[4:] @ rest[4:]
        return penalty - density(rows, target, task, Z1, W_, L_ @ L_.T, s2)

    start = np.concatenate([W.ravel(), L[np.tril_indices(d)], [np.log(fitted.inner.s2)], delta])
    assert len(start) == W.size + 4 + k
    best = minimize(loss, start, method="BFGS", options={"gtol": 1e-4})
    assert loss(start) - best.fun < 2e-3
    np.testing.assert_allclose(best.x[-k:], delta, atol=0.02)


@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_auto_finds_it_and_intervals_cover_by_tercile(monkeypatch, engine):
    monkeypatch.setenv("CONDMETA_ENGINE", engine)
    model = fit(simulated(T=300))
    assert model.noise_ == "by_side"
    X, y, task, side, noise = simulated(T=600, seed=1)
    ids = task + 1000
    table = side.set_axis(pd.RangeIndex(1000, 1600, name="task"))
    shown = np.arange(len(y)) % 8 < 3
    third = np.searchsorted(np.quantile(noise, [1 / 3, 2 / 3]), noise)[task]
    some = {"task": ids[shown], "side_info": table}
    cold = model.predict(X, task=ids, side_info=table, return_std=True)
    warm = model.adapt(X[shown], y[shown], **some).predict(X, task=ids, return_std=True)
    for (mean, std), judged in ((cold, np.ones(len(y), bool)), (warm, ~shown)):
        inside = np.abs(y - mean) < 1.645 * std
        shares = [inside[judged & (third == q)].mean() for q in range(3)]
        assert all(0.86 < share < 0.94 for share in shares), shares
    plain = fit(simulated(T=300), noise="shared")
    mean, std = plain.predict(X, task=ids, side_info=table, return_std=True)
    inside = np.abs(y - mean) < 1.645 * std
    assert inside[third == 0].mean() > 0.96
    assert inside[third == 2].mean() < 0.88


@pytest.mark.parametrize("own", [0.0, 1.0])
def test_it_is_not_chosen_where_noise_does_not_follow(own):
    for seed in range(5):
        assert fit(simulated(delta=0.0, seed=seed, own=own)).noise_ != "by_side"


def test_the_score_test_has_its_level():
    rng, passed = np.random.default_rng(0), 0
    for _ in range(400):
        Phi, own = rng.normal(size=(100, 3)), np.exp(rng.normal(size=100))
        scores = (own * rng.chisquare(5, size=100) - own.mean() * 5) / 2
        passed += may_follow(scores, Phi, np.full(100, 5))
    assert passed <= 12  # 1 % of 400, and four standard deviations
    follows = (np.exp(Phi[:, 0]) * rng.chisquare(5, size=100) - 5) / 2
    assert may_follow(follows, Phi, np.full(100, 5))


def test_update_adapt_files_merge_and_partial_fit_agree(tmp_path):
    X, y, task, side, _ = data = simulated(T=60)
    params = {"noise": "by_side", **PLAIN}
    whole = fit(data, **params)
    weights = whole.fitted_.tasks.coef
    adapted = whole.adapt(X, y, task=task, side_info=side)
    np.testing.assert_allclose(adapted._coef, weights, rtol=1e-8, atol=1e-10)
    # The posterior by hand, with the noise of each task.
    inner, store, scales = whole.fitted_.inner, whole.fitted_.tasks, whole.fitted_.scales
    factors = np.exp(store.Phi @ whole.fitted_.tau.noise[:-1] + whole.fitted_.tau.noise[-1])
    H = inner.factor @ inner.factor.T
    for t in (0, 33):
        rows, target = scales.rows(X[task == t]), scales.target(y[task == t])
        V = rows @ H @ rows.T + inner.s2 * factors[t] * np.eye(len(rows))
        mean = store.theta[t] + H @ rows.T @ np.linalg.solve(V, target - rows @ store.theta[t])
        np.testing.assert_allclose(store.coef[t], mean, rtol=1e-8)
    whole.save(tmp_path / "m.condmeta")
    again = cm.load(tmp_path / "m.condmeta")
    some = cm.load(tmp_path / "m.condmeta", tasks=[3, 5])
    asked = {"task": [3, 5], "return_std": True}
    expected = whole.predict(X[:2], **asked)
    for model in (again, some):
        np.testing.assert_allclose(model.predict(X[:2], **asked), expected, rtol=1e-12)
    new = cm.TaskTable({"s": [2.0, -2.0], "u": [0.0, 0.0]}, ids=["a", "b"])
    high, low = again.predict(X[:2], task=["a", "b"], side_info=new, return_std=True)[1]
    assert high > 1.5 * low
    first = np.arange(len(y)) % 8 < 5
    for model in (whole, again):
        model.update(X[:3], y[:3], task=[3, 3, "a"], side_info=new)
    np.testing.assert_array_equal(whole.fitted_.tasks.coef, again.fitted_.tasks.coef)
    one = whole.adapt(X[first & (task == 0)], y[first & (task == 0)], side_info={"s": 2.0, "u": 0})
    one.update(X[~first & (task == 0)], y[~first & (task == 0)])
    two = whole.adapt(X[task == 0], y[task == 0], side_info={"s": 2.0, "u": 0})
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9)
    half = task < 30
    parts = [
        cm.ConditionalRidge(**params).fit(
            X[m], y[m], task=task[m], side_info=side.loc[np.unique(task[m])]
        )
        for m in (half, ~half)
    ]
    both = cm.merge(*parts)
    fresh = fit(data, **params)
    np.testing.assert_allclose(
        both.predict(X, task=task, return_std=True), fresh.predict(X, task=task, return_std=True),
        rtol=1e-5,
    )  # fmt: skip
    stream = cm.ConditionalRidge(**params)
    for m in (half, ~half):
        stream.partial_fit(X[m], y[m], task=task[m], side_info=side.loc[np.unique(task[m])])
    np.testing.assert_allclose(stream.predict(X, task=task), fresh.predict(X, task=task), rtol=1e-5)


def test_fits_from_files_are_the_fit_in_memory(tmp_path):
    pytest.importorskip("duckdb")
    X, y, task, side, _ = simulated(T=80)
    frame = pd.DataFrame({"task": task, "x": X[:, 0], "y": y})
    frame = frame.join(side, on="task")
    frame.to_parquet(tmp_path / "rows.parquet")
    how = {"task": "task", "target": "y", "side": ["s", "u"]}
    learner = cm.ConditionalRidge(noise="by_side", **PLAIN)
    one = cm.TableModel(learner, **how).fit(frame)
    two = cm.TableModel(learner, **how).fit_files(tmp_path / "rows.parquet", memory="1GB")
    np.testing.assert_array_equal(one.predict(frame), two.predict(frame))
    assert two.learner_.noise_ == "by_side"


def test_standard_errors_sql_and_checks_know_the_noise():
    data = simulated(T=60)
    X, y, task = data[:3]
    model = fit(data, noise="by_side", **PLAIN)
    assert np.isfinite(model.summary().effects["std_error"]).all()
    assert "(standard deviation; it follows side information)" in str(model.summary())
    assert np.isfinite(cm.check(model, X[:16], y[:16], task=task[:16]).frame["z"]).all()
    fast = model.low_latency().adapt(X[:8], y[:8], {"s": 1.0, "u": 0.0})
    slow = model.adapt(X[:8], y[:8], side_info={"s": 1.0, "u": 0.0})
    np.testing.assert_allclose(fast.predict(X[:3]), slow.predict(X[:3]), rtol=1e-9)


def test_what_it_cannot_do_has_a_sentence():
    X, y, task, side, _ = simulated(T=30)
    given = {"task": task, "side_info": side}
    for params, more in (
        ({"feature_map": None}, {}), ({"kappa": np.inf}, {}),
        ({}, {"time": np.arange(len(y))}), ({"drift": 0.9}, {"time": np.arange(len(y))}),
    ):  # fmt: skip
        with pytest.raises(DataError, match="noise='by_side' works with ConditionalRidge"):
            cm.ConditionalRidge(noise="by_side", **params).fit(X, y, **given, **more)
    with pytest.raises(DataError, match="noise='by_side' works with"):
        cm.ConditionalLevels(noise="by_side").fit(X, y, task=list(zip(task % 5, task, strict=True)))


def test_it_goes_with_a_context():
    """Levels that go with the means of inputs, and noise that follows the side column."""
    rng, T, n = np.random.default_rng(4), 300, 8
    s, mean, task = rng.normal(size=T), 2 * rng.normal(size=T), np.repeat(np.arange(300), 8)
    X = mean[task] + rng.normal(size=T * n)
    level = 1.5 * mean + s + 0.2 * rng.normal(size=T)
    noise = np.exp(0.6 * s)
    y = -X + level[task] + noise[task] * rng.normal(size=T * n)
    side = pd.DataFrame({"s": s}, pd.RangeIndex(T, name="task"))
    old, new = task < 150, task >= 150
    shown = new & (np.arange(T * n) % n < 3)
    asked = new & ~shown

    def fitted(**params):
        model = cm.ConditionalRidge(**params)
        return model.fit(X[old, None], y[old], task=task[old], side_info=side[:150])

    def said(model):
        models = model.adapt(X[shown, None], y[shown], task=task[shown], side_info=side[150:])
        mean, std = models.predict(X[asked, None], task=task[asked], return_std=True)
        return np.abs(y[asked] - mean) < 1.645 * std, np.abs(y[asked] - mean).mean()

    model = fitted()
    assert (model.noise_, model.context_) == ("by_side", True)
    inside, error = said(model)
    third = np.searchsorted(np.quantile(noise[150:], [1 / 3, 2 / 3]), noise)[task[asked]]
    assert all(0.85 < inside[third == q].mean() < 0.95 for q in range(3))
    plain, before = said(fitted(noise="shared"))
    assert error < 1.005 * before
    assert plain[third == 0].mean() > 0.95
    given = fitted(noise="by_side", context=True)
    np.testing.assert_allclose(given.fitted_.tau.noise, model.fitted_.tau.noise, rtol=0.05)


def test_the_noise_of_a_task_far_from_all_others_is_that_of_the_nearest():
    data = simulated(T=60)
    model = fit(data, noise="by_side", **PLAIN)
    logs = np.log(model.fitted_.tau.noise_factors(model.fitted_.tasks.Phi))
    far = np.log(model.fitted_.tau.noise_factors(np.array([[50.0, 0.0], [-50.0, 0.0]])))
    np.testing.assert_allclose(far, [logs.max(), logs.min()])
