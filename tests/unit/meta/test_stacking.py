"""Combinations of candidates on held-out tasks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import QuantileRegressor

from condmeta.meta.criteria import CRITERIA, LOG_LOSS
from condmeta.meta.stacking import best_blend, best_weights, convex_weights, median_line


def chances(seed=0, n=80, C=3):
    """Return answers (n, C) in (0, 1), labels -1 or +1 that they predict, and weights of rows.

    Answers serve as predictions, probabilities and densities; of the deviance, labels are 2 or 0.
    """
    rng = np.random.default_rng(seed)
    y = np.sign(rng.normal(size=n))
    answers = expit(0.7 * rng.normal(size=(n, C)) + 0.5 * y[:, None])
    return answers, y, rng.integers(1, 4, size=n).astype(float)


@pytest.mark.parametrize("criterion", [*CRITERIA.values(), LOG_LOSS], ids=lambda c: c.title)
def test_scaled_errors_have_the_slope_of_the_loss(criterion):
    """Along the simplex, d/dw sum_i m_i (E w)_i^2 is the slope of the loss times a constant."""
    answers, y, m = chances(seed=1, C=4)
    y = y + (criterion is CRITERIA["deviance"])
    w = np.array([0.4, 0.3, 0.2, 0.1])
    E = criterion.scaled_errors(answers, y, w, m)
    slopes = []
    for v in np.eye(4)[1:] - np.eye(4)[0]:  # directions that keep the sum
        ends = [criterion.mean((answers @ (w + h * v))[:, None], y, m)[0] for h in (1e-6, -1e-6)]
        slopes.append([(ends[0] - ends[1]) / 2e-6, np.average((E @ w) * (E @ v), weights=m)])
    true, found = np.array(slopes).T
    np.testing.assert_allclose(found / true, (found / true)[0], rtol=1e-4)
    assert found[0] * true[0] > 0


@pytest.mark.parametrize("criterion", [*CRITERIA.values(), LOG_LOSS], ids=lambda c: c.title)
@pytest.mark.parametrize("seed", range(3))
def test_convex_weights_minimise_the_loss(criterion, seed):
    answers, y, m = chances(seed)
    y = y + (criterion is CRITERIA["deviance"])

    def lost(free):
        w = np.append(free, 1 - free.sum())
        return criterion.mean((answers @ w)[:, None], y, m)[0]

    starts = np.random.default_rng(seed).dirichlet(np.ones(3), 5)[:, :2]
    whole = {"type": "ineq", "fun": lambda free: 1 - free.sum()}
    least = min(
        minimize(lost, start, bounds=[(0, 1)] * 2, constraints=whole, method="COBYQA").fun
        for start in starts
    )
    w = convex_weights(answers, y, criterion, m)
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    assert lost(w[:2]) <= least + 1e-4 * abs(least)


@pytest.mark.parametrize(("n_tasks", "least", "most"), [(10, 0.1, 0.5), (1000, 0.0, 0.01)])
def test_few_tasks_shrink_the_weights(n_tasks, least, most):
    """The first candidate has half the error of the second, towards which the weights shrink."""
    rng = np.random.default_rng(0)
    answers = rng.normal(size=(n_tasks, 2)) * [1.0, 2.0]
    given = answers, np.zeros(n_tasks), np.arange(n_tasks), CRITERIA["squared"], None
    towards_first, towards_second = (best_weights(*given, np.eye(2)[k])[1] for k in (0, 1))
    assert towards_first <= best_weights(*given)[1] <= towards_second
    assert least <= towards_second - towards_first <= most


@pytest.mark.parametrize("name", ["squared", "absolute"])
def test_candidates_of_noise_cost_little(name):
    """The constant 0 is the best; a candidate of noise alone has an excess of 1."""
    excess = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y, answers = rng.normal(size=24), np.column_stack([np.zeros(24), rng.normal(size=(24, 6))])
        w = best_weights(answers, y, np.arange(24), CRITERIA[name])
        assert w.sum() == pytest.approx(1)
        excess.append((w[1:] ** 2).sum())  # the squared error beyond that of 0
    assert np.mean(excess) < 0.22
    assert max(excess) < 0.9


def test_differences_of_rounding_change_no_weight():
    rng = np.random.default_rng(1)
    y, answers = rng.normal(size=60), rng.normal(size=(60, 4))
    answers += y[:, None]
    given = y, np.arange(60), CRITERIA["absolute"]
    moved = answers + 1e-9 * rng.normal(size=answers.shape)
    np.testing.assert_array_equal(best_weights(answers, *given), best_weights(moved, *given))


def test_a_candidate_that_other_tasks_would_have_preferred_has_a_weight():
    """On these four tasks the first candidate alone is best, on others like them it may not be."""
    answers = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 0.2], [1.0, 0.2]])
    given = answers, np.zeros(4), np.arange(4), CRITERIA["squared"]
    squares = answers.T @ answers
    assert squares[0, 1] > squares[0, 0]  # any weight of the second increases the error
    assert best_weights(*given, None, np.array([1.0, 0.0]))[1] > 0.05


def test_the_mean_over_draws_is_better_on_new_tasks():
    """Three candidates are equally good, and their errors are those of whole tasks."""
    gains = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        task = np.repeat(np.arange(15), 4)
        y = rng.normal(size=60)
        answers = y[:, None] + rng.normal(size=(15, 3))[task] + 0.3 * rng.normal(size=(60, 3))
        lost = [
            (f(answers, y) ** 2).sum()  # of independent errors with equal variances
            for f in (
                lambda p, y, task=task: best_weights(p, y, task, CRITERIA["squared"]),
                lambda p, y: convex_weights(p, y, CRITERIA["squared"]),
            )
        ]
        gains.append(lost[1] - lost[0])
    assert np.mean(gains) > 2 * np.std(gains) / np.sqrt(30)


@pytest.mark.parametrize("name", ["squared", "absolute"])
def test_one_task_is_enough_to_leave_a_candidate_out(name):
    """The second candidate is the better one, but for a single label."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=48)
    answers = y[:, None] + rng.normal(size=(48, 2)) * [1.0, 0.5]
    given = y, np.arange(48), CRITERIA[name]
    assert best_weights(answers, *given)[1] > 0.5
    answers[7, 1] = 1e4
    np.testing.assert_array_equal(best_weights(answers, *given), [1.0, 0.0])


def test_a_line_must_win_on_tasks_that_it_was_not_fitted_to():
    """Half of the tasks are 1 above their predictions, the others 10: no line serves both."""
    task = np.repeat(np.arange(20), 5)
    mixed = np.random.default_rng(0).normal(size=100)
    apart = mixed + np.where(task % 2 == 0, 1.0, 10.0)
    blend = best_blend(mixed[:, None], apart, task, CRITERIA["absolute"])
    assert (blend.shift, blend.slope) == (0.0, 1.0)
    alike = best_blend(mixed[:, None], mixed + 4.0, task, CRITERIA["absolute"])
    assert alike.shift == pytest.approx(4.0)


def test_complementary_candidates_are_combined():
    rng = np.random.default_rng(3)
    parts = rng.normal(size=(2, 200))
    answers = 2 * parts.T
    weights = best_weights(answers, parts.sum(axis=0), np.arange(200), CRITERIA["squared"])
    np.testing.assert_allclose(weights, 0.5, atol=0.02)


@pytest.mark.parametrize("criterion", [*CRITERIA.values(), LOG_LOSS], ids=lambda c: c.title)
def test_weights_repeat_rows(criterion):
    rng = np.random.default_rng(4)
    y = np.sign(rng.normal(size=40))
    answers = expit(rng.normal(size=(40, 3)) + y[:, None])
    task, times = np.arange(40) // 2, np.arange(40) % 3 + 1
    weighted = best_weights(answers, y, task, criterion, times.astype(float))
    parts = (np.repeat(part, times, axis=0) for part in (answers, y, task))
    np.testing.assert_allclose(weighted, best_weights(*parts, criterion), atol=1e-3)


def test_weighted_mixtures_are_those_of_repeated_rows():
    rng = np.random.default_rng(2)
    y, times = np.sign(rng.normal(size=40)), np.arange(40) % 4 + 1
    answers = expit(1.5 * rng.normal(size=(40, 2)) + y[:, None])
    found = convex_weights(answers, y, LOG_LOSS, times.astype(float))
    expected = convex_weights(np.repeat(answers, times, axis=0), np.repeat(y, times), LOG_LOSS)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert 0.1 < found[0] < 0.9
    assert abs(found[0] - convex_weights(answers, y, LOG_LOSS)[0]) > 0.01


def skewed_predictions(seed=0, n=600):
    """Return means (n, 2) of exponential labels, the labels and their tasks."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(1, 5, size=n)
    return np.column_stack([mean, mean + 0.1]), rng.exponential(mean), np.arange(n) // 4


def test_the_median_line_is_the_least_absolute_deviation():
    answers, y, _ = skewed_predictions()
    weight = np.arange(len(y)) % 3 + 1.0
    for m in (None, weight):
        exact = QuantileRegressor(quantile=0.5, alpha=0).fit(answers[:, :1], y, sample_weight=m)
        shift, slope = median_line(answers[:, 0], y, m)
        lost = [np.average(np.abs(y - a - b * answers[:, 0]), weights=m)
                for a, b in ((shift, slope), (exact.intercept_, exact.coef_[0]))]  # fmt: skip
        assert lost[0] < 1.001 * lost[1]
    assert slope == pytest.approx(np.log(2), abs=0.1)  # the median of an exponential of mean 1


def test_means_of_skewed_labels_become_medians():
    answers, y, task = skewed_predictions()
    blend = best_blend(answers, y, task, CRITERIA["absolute"])
    new, label, _ = skewed_predictions(1)
    np.testing.assert_allclose(blend.of(new), blend.shift + blend.slope * (new @ blend.weights))
    assert np.abs(label - blend.of(new)).mean() < 0.97 * np.abs(label - new[:, 0]).mean()
    assert best_blend(answers, y, task, CRITERIA["squared"])[1:3] == (0.0, 1.0)


def test_lines_are_left_out_where_labels_lie_evenly():
    left_out = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.normal(size=24)
        y = p + rng.standard_cauchy(size=24)
        found = best_blend(p[:, None], y, np.arange(24), CRITERIA["absolute"])
        left_out += found[1:3] == (0.0, 1.0)
    assert left_out >= 38
    alone = best_blend(p[:1, None], y[:1], np.zeros(1, int), CRITERIA["absolute"])
    assert alone[1:3] == (0.0, 1.0)


def test_predictions_without_error_need_no_line():
    y = np.arange(20.0)
    np.testing.assert_allclose(median_line(y, y), [0, 1], atol=1e-9)


def test_absolute_weights_beat_those_of_squares_under_wild_labels():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    answers = np.column_stack([y + 0.1 * rng.normal(size=400), np.zeros(400)])
    wild = np.where(np.arange(400) % 10 == 0, -30 * y, y)  # a tenth of the labels is nonsense
    lost = [np.abs(wild - answers @ convex_weights(answers, wild, f)).mean()
            for f in (CRITERIA["absolute"], CRITERIA["squared"])]  # fmt: skip
    assert lost[0] < 0.95 * lost[1]


@pytest.mark.parametrize("name", ["absolute", "squared"])
@pytest.mark.parametrize("unit", [2.0**-700, 2.0**900])
def test_labels_may_have_any_unit(name, unit):
    answers, y, task = skewed_predictions()
    plain = best_blend(answers, y, task, CRITERIA[name])
    scaled = best_blend(unit * answers, unit * y, task, CRITERIA[name])
    np.testing.assert_allclose(scaled.weights, plain.weights, rtol=1e-9)
    assert scaled.shift == pytest.approx(unit * plain.shift, rel=1e-6)
    assert scaled.slope == pytest.approx(plain.slope, rel=1e-6)


def test_no_step_increases_the_loss():
    """Densities of very different sizes: whole steps from equal weights end far from the best."""
    lost = {"found": [], "best": []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        answers, y = np.exp(10 * rng.normal(size=(20, 3))), np.zeros(20)

        def loss(w, answers=answers, y=y):
            return CRITERIA["log density"].mean((answers @ w)[:, None], y)[0]

        w = np.full(3, 1 / 3)
        for _ in range(3000):  # EM, of which every step decreases the loss
            w = w * (answers / (answers @ w)[:, None]).mean(axis=0)
        lost["best"].append(loss(w))
        lost["found"].append(loss(convex_weights(answers, y, CRITERIA["log density"])))
    np.testing.assert_allclose(lost["found"], lost["best"], atol=1e-3)
