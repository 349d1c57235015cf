"""Precision of labels: variance s2 / precision, unlike `sample_weight`, which repeats rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import condmeta as cm
from condmeta.errors import DataError

LME4 = Path(__file__).parents[2] / "data" / "lme4"
RNG = np.random.default_rng(0)
T, N_EACH = 40, 6
TASK = np.repeat(np.arange(T), N_EACH)
X = RNG.normal(size=(len(TASK), 2))
P = RNG.integers(1, 20, len(TASK)).astype(float)
W = RNG.normal(size=(T, 3))
Y = (X * W[TASK, :2]).sum(axis=1) + W[TASK, 2] + 2 + 1.5 * RNG.normal(size=len(TASK)) / np.sqrt(P)
PLAIN = {"scale": "none", "metric": "full", "noise": "shared", "tol": 1e-6}


@pytest.fixture(scope="module")
def model():
    return cm.ConditionalRidge(**PLAIN).fit(X, Y, task=TASK, precision=P)


def rows_of(task):
    return np.column_stack([X[task == TASK], np.ones(N_EACH)]), Y[task == TASK], P[task == TASK]


def test_the_log_likelihood_is_that_of_the_labels(model):
    total = 0.0
    for task in range(T):
        rows, y, p = rows_of(task)
        covariance = rows @ model.H_ @ rows.T + model.s2_ * np.diag(1 / p)
        total += multivariate_normal(model.y_offset_ + rows @ model.b_, covariance).logpdf(y)
    np.testing.assert_allclose(model.objective_, total, rtol=1e-10)


def test_the_posterior_is_that_of_weighted_least_squares(model):
    rows, y, p = rows_of(3)
    by = np.diag(p) / model.s2_
    covariance = np.linalg.inv(np.linalg.inv(model.H_) + rows.T @ by @ rows)
    y = y - model.y_offset_
    mean = model.b_ + covariance @ rows.T @ by @ (y - rows @ model.b_)
    x = np.array([0.5, -1.0, 1.0])
    predicted, std = model.predict([x[:2]], task=[3], return_std=True, precision=[4.0])
    np.testing.assert_allclose(predicted, x @ mean + model.y_offset_)
    left = (np.eye(3) - covariance @ rows.T @ by @ rows) @ model.fitted_.inner.open_root
    variance = x @ (covariance + left @ left.T) @ x + model.s2_ / 4
    np.testing.assert_allclose(std, np.sqrt(variance))


def test_lme4_finds_the_same():
    """`lmer(y ~ x + (1 + x | g), weights = w, REML = FALSE)`, by tests/data/lme4/precision.R."""
    data, found = (
        pd.read_csv(LME4 / "precision.csv"),
        json.loads((LME4 / "precision.json").read_text()),
    )
    model = cm.ConditionalRidge(**PLAIN, max_iter=1000)
    model.fit(data[["x"]], data["y"], task=data["g"], precision=data["w"])
    assert model.objective_ == pytest.approx(found["log_likelihood"], abs=1e-5)
    assert np.sqrt(model.s2_) == pytest.approx(found["sigma"], rel=1e-3)
    np.testing.assert_allclose(model.theta_mean_[::-1], found["fixed"], rtol=1e-3)
    covariance = np.reshape(found["covariance"], (2, 2))
    np.testing.assert_allclose(model.H_[::-1, ::-1], covariance, rtol=5e-3)
    wide = model.coef_frame(wide=True)
    np.testing.assert_allclose(wide["x"], found["slopes"], atol=2e-3)
    np.testing.assert_allclose(wide["(intercept)"], found["intercepts"], atol=2e-3)


def test_means_of_measurements_have_intervals_that_cover():
    """90 % intervals of means of m measurements; as repetitions they are too short."""
    hit = {"precision": [], "sample_weight": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        task, m = np.repeat(np.arange(150), 4), rng.integers(2, 12, 600)
        x, w = rng.normal(size=(600, 1)), rng.normal(size=(150, 2))
        y = w[task, 0] * x[:, 0] + w[task, 1] + 2 * rng.normal(size=600) / np.sqrt(m)
        known = np.arange(600) % 4 > 0
        for name, found in hit.items():
            model = cm.ConditionalRidge(noise="shared").fit(
                x[known], y[known], task=task[known], **{name: m[known]}
            )
            new = {"precision": m[~known]} if name == "precision" else {}
            predicted, std = model.predict(x[~known], task=task[~known], return_std=True, **new)
            found += (np.abs(y[~known] - predicted) < 1.645 * std).tolist()
    # of 900 intervals: the standard error is 1 %
    assert 0.87 < np.mean(hit["precision"]) < 0.93
    assert np.mean(hit["sample_weight"]) < 0.85


def test_equal_precisions_are_another_unit_of_the_noise():
    one = cm.ConditionalRidge(**PLAIN).fit(X, Y, task=TASK)
    four = cm.ConditionalRidge(**PLAIN).fit(X, Y, task=TASK, precision=np.full(len(Y), 4.0))
    np.testing.assert_allclose(four.s2_, 4 * one.s2_, rtol=1e-3)
    np.testing.assert_allclose(four.objective_, one.objective_, rtol=1e-6)
    predicted = four.predict(X, task=TASK) - one.predict(X, task=TASK)
    np.testing.assert_allclose(predicted, 0, atol=1e-2)


def test_weights_repeat_rows_of_any_precision():
    weight = RNG.integers(0, 4, len(Y))
    some = {"task": TASK, "sample_weight": weight, "precision": P}
    model = cm.ConditionalRidge(metric="diagonal", tol=1e-5).fit(X, Y, **some)
    at = np.repeat(np.arange(len(Y)), weight)
    rows = cm.ConditionalRidge(metric="diagonal", tol=1e-5).fit(
        X[at], Y[at], task=TASK[at], precision=P[at]
    )
    kept = np.isin(TASK, TASK[at])
    assert model.objective_ == pytest.approx(rows.objective_, rel=1e-4)
    difference = model.predict(X[kept], task=TASK[kept]) - rows.predict(X[kept], task=TASK[kept])
    assert np.sqrt(np.mean(difference**2)) < 0.05 * Y.std()


@pytest.mark.parametrize("settings", [{}, {"random": "intercept"}, {"noise": "per_task"}])
def test_chunks_updates_and_one_fit_agree(settings):
    half = TASK < 20
    one = cm.ConditionalRidge(**settings).fit(X, Y, task=TASK, precision=P)
    chunked = cm.ConditionalRidge(**settings)
    for part in (half, ~half):
        chunked.partial_fit(X[part], Y[part], task=TASK[part], precision=P[part])
    want = one.predict(X, task=TASK)
    np.testing.assert_allclose(chunked.predict(X, task=TASK), want, atol=1e-8)
    first = np.arange(len(Y)) % N_EACH < 3
    model = one.adapt(X[:3], Y[:3], precision=P[:3])
    both = one.adapt(X[:6], Y[:6], precision=P[:6]).predict(X)
    np.testing.assert_allclose(model.update(X[3:6], Y[3:6], precision=P[3:6]).predict(X), both)
    assert model.n_ == 6
    grown = cm.ConditionalRidge(**settings)
    grown.fit(X[first], Y[first], task=TASK[first], precision=P[first])
    grown.update(X[~first], Y[~first], task=TASK[~first], precision=P[~first])
    assert grown.n_points(X, task=TASK).tolist() == [6.0] * len(Y)
    assert grown.fitted_.state.whole.log_precisions.sum() == pytest.approx(np.log(P).sum())


def test_rows_without_a_precision_have_one():
    half = TASK < 20
    chunked = cm.ConditionalRidge(**PLAIN).partial_fit(X[half], Y[half], task=TASK[half])
    chunked.partial_fit(X[~half], Y[~half], task=TASK[~half], precision=P[~half])
    whole = cm.ConditionalRidge(**PLAIN).fit(X, Y, task=TASK, precision=np.where(half, 1.0, P))
    assert chunked.objective_ == pytest.approx(whole.objective_, rel=1e-9)


def test_a_wide_table_with_precisions(tmp_path):
    wide = RNG.normal(size=(len(Y), 70))
    y = wide[:, 0] * (1 + W[TASK, 0]) + RNG.normal(size=len(Y)) / np.sqrt(P)
    one = cm.ConditionalRidge().fit(wide, y, task=TASK, precision=np.ones(len(Y)))
    none = cm.ConditionalRidge().fit(wide, y, task=TASK)
    np.testing.assert_allclose(one.predict(wide, task=TASK), none.predict(wide, task=TASK))
    precise = cm.ConditionalRidge().fit(wide, y, task=TASK, precision=P)
    precise.save(tmp_path / "wide.condmeta")
    again = cm.load(tmp_path / "wide.condmeta").predict(wide, task=TASK)
    np.testing.assert_array_equal(again, precise.predict(wide, task=TASK))


def test_a_file_keeps_the_statistics(model, tmp_path):
    model.save(tmp_path / "model.condmeta")
    again = cm.load(tmp_path / "model.condmeta")
    np.testing.assert_array_equal(again.predict(X, task=TASK), model.predict(X, task=TASK))
    more = {"task": [99] * 3, "precision": [1.0, 2.0, 3.0]}
    again.partial_fit(X[:3], Y[:3], **more)
    assert again.n_tasks_ == T + 1


def test_sentences():
    bad = P.copy()
    bad[7] = 0.0
    match = (
        r"^Task 1, row 7, has precision 0: the variance of a label is s2 / precision, which must"
    )
    with pytest.raises(DataError, match=match):
        cm.ConditionalRidge().fit(X, Y, task=TASK, precision=bad)
    with pytest.raises(DataError, match=r"^X has 240 rows and precision has 3"):
        cm.ConditionalRidge().fit(X, Y, task=TASK, precision=[1.0, 2.0, 3.0])
    own = cm.IndependentRegressor(lam=1.0).fit(X, Y, task=TASK).adapt(X[:2], Y[:2])
    with pytest.raises(DataError, match=r"^precision= works only with ConditionalRidge"):
        own.update(X[:1], Y[:1], precision=[1.0])
    with pytest.raises(DataError, match="must be 1-D"):  # a table of weights is no precision
        cm.ConditionalRidge().fit(X, Y, task=TASK, sample_weight=np.column_stack([P, P]))
