"""Expected errors and p-values, against integrals, closed forms and drawn errors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats as distributions
from scipy.integrate import quad

import condmeta as cm
from condmeta.evaluation import expectation
from condmeta.evaluation.check import _all_worse, _beyond, _by_chance
from condmeta.evaluation.expectation import Judged, judge
from condmeta.inner.log_rms import denoised_moments, log_rms_moments
from condmeta.inner.squared import SquaredState

SIZES = np.array([3, 8, 20])
TAIL = distributions.t(10)


def moments(n):
    """Return mean and variance of log sqrt(chi2_n / n), by integration."""

    def integral(f):
        return quad(lambda x: f(0.5 * np.log(x / n)) * distributions.chi2.pdf(x, n), 0, np.inf)[0]

    mean = integral(lambda x: x)
    return mean, integral(lambda x: (x - mean) ** 2)


def tasks_of(sizes, y=None):
    ids = np.repeat(np.arange(len(sizes)), sizes)
    X = np.ones((len(ids), 1))
    return cm.TaskSet.from_arrays(X, np.zeros(len(ids)) if y is None else y, ids)


def test_logs_of_root_mean_squares():
    found = np.array(log_rms_moments(SIZES))
    np.testing.assert_allclose(found, np.transpose([moments(n) for n in SIZES]), rtol=1e-6)


def test_sampling_noise_is_taken_out_of_the_logs():
    """The logs of tasks vary by 0.3 around 1; those of few rows by more, and are smaller."""
    rng, n = np.random.default_rng(0), np.tile([4, 9], 20_000)
    true = 1 + 0.3 * rng.normal(size=len(n))
    logs = true + 0.5 * np.log(rng.chisquare(n) / n)
    mean, variance = denoised_moments(logs, n)
    assert mean == pytest.approx(1, abs=0.01)
    assert variance == pytest.approx(0.09, abs=0.005)
    assert denoised_moments(np.array([1.0]), np.array([4]))[1] == np.inf


def test_p_of_held_out_errors_is_the_tail_of_their_logs():
    tasks, errors = tasks_of(SIZES), np.array([1.0, 2.0, 5.0])
    mean, variance = np.array([0.1, 0.2, 0.3]), np.array([0.04, 0.09, 0.01])
    found = expectation._tail_of_logs(errors, mean, variance, tasks)
    shift, noise = np.transpose([moments(n) for n in SIZES])
    expected = TAIL.sf((np.log(errors) - shift - mean) / np.sqrt(variance + noise))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_p_is_about_uniform_where_errors_are_as_expected():
    rng, n = np.random.default_rng(1), np.full(4000, 6)
    errors = np.exp(0.5 + 0.4 * rng.normal(size=4000)) * np.sqrt(rng.chisquare(6, 4000) / 6)
    p = expectation._tail_of_logs(errors, 0.5, 0.16, tasks_of(n))
    assert np.mean(p < 0.5) == pytest.approx(0.5, abs=0.03)
    assert 0.06 < np.mean(p < 0.1) < 0.11  # the tails that we assume are slightly heavier


def test_errors_are_compared_with_the_median_task_of_the_same_size():
    """Tasks with few rows have smaller errors by chance: without that shift p would differ."""
    rng, n = np.random.default_rng(2), np.tile([2, 30], 2000)
    y = rng.normal(size=n.sum())
    model = cm.FixedBiasRegressor(theta=0.0).fit([[1.0]], [0.0])
    found = judge(model, tasks_of(n, y))
    few, many = found.p[n == 2], found.p[n == 30]
    assert found.expected[0] == pytest.approx(1, abs=0.03)
    for p in (few, many):
        assert np.mean(p < 0.5) == pytest.approx(0.5, abs=0.06)
        assert np.mean(p < 0.05) < 0.09


def test_spread_of_differences_is_robust_and_keeps_the_known_noise():
    off = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 50.0])
    noise = np.array([0.1, 0.1, 0.1, 0.1, 0.4, 0.1])
    variance = (1.4826 * 0.75) ** 2 - 0.1 + noise
    expected = TAIL.sf(off / np.sqrt(variance))
    np.testing.assert_allclose(expectation._tail_by_spread(off, noise), expected)
    small = expectation._tail_by_spread(np.full(3, 0.01), np.full(3, 4.0))
    np.testing.assert_allclose(small, TAIL.sf(0.005), rtol=1e-3)


@pytest.mark.parametrize("kept", [True, False])
def test_room_for_what_was_learned(kept):
    """1.5 standard errors of s2, k / T for H, and once more k / T where tau alone predicts."""
    sizes = np.array([7, 2, 9, 4])
    fitted = SimpleNamespace(
        tasks=SimpleNamespace(sizes=sizes) if kept else None,
        tau=SimpleNamespace(weights=np.zeros((3, 3))),
        n_tasks=4,
    )
    nu = (4 + 0 + 6 + 1) if kept else 4  # residuals beyond three coefficients a task
    before = SquaredState.start(2, 3)._replace(count=np.array([0, 5]))
    errors = 1.5 * np.sqrt(2 / nu)
    expected = [1 + errors + 2 * 0.75, 1 + errors + 0.75]
    np.testing.assert_allclose(expectation._room(fitted, before), expected)


def test_excess_is_that_of_the_error_over_all_rows():
    n = np.array([1, 3])
    rmse = Judged({"rmse": np.array([2.0, 1.0])}, "rmse", np.ones(2), np.ones(2), "")
    assert rmse.excess(n) == pytest.approx(np.sqrt((4 + 3) / 4) - 1)
    loss = Judged({"log_loss": np.array([2.0, 1.0])}, "log_loss", np.ones(2), np.ones(2), "")
    assert loss.excess(n) == pytest.approx(5 / 4 - 1)


def test_p_of_drawn_losses_counts_the_found_one():
    drawn = np.arange(1.0, 401.0)
    assert expectation._tail(drawn, 301.0) == pytest.approx(101 / 401)
    assert expectation._tail(drawn, 0.0) == 1.0
    rare = expectation._tail(np.random.default_rng(0).gamma(4.0, 2.0, 400), 40.0)
    assert rare == pytest.approx(distributions.gamma.sf(40.0, 4.0, scale=2.0), rel=0.8)


def test_labels_are_drawn_from_the_scores():
    """Sure scores of the second class: its labels lose little, the others much."""
    tasks = tasks_of([50])
    positive = np.full(50, 0.95)

    def draw(t, at, rng):
        return np.full((50, expectation.DRAWS), np.log(0.95 / 0.05))

    _, expected = expectation._by_drawing(tasks, positive, np.zeros(1), draw)
    entropy = -(0.95 * np.log(0.95) + 0.05 * np.log(0.05))
    assert expected[0] == pytest.approx(entropy, rel=0.05)


def test_errors_of_a_calibrated_learner_are_in_units_of_y():
    tasks = tasks_of([4, 4], np.array([1.0, 2, 3, 4, 5, 6, 7, 8]))
    scale = np.array([1.0, 2, 2, 1, 3, 3, 3, 3])
    model = SimpleNamespace(
        model=SimpleNamespace(
            predict=lambda *_, return_std, **__: (np.zeros(8), scale),
            n_points=lambda _: np.zeros(8, int),
        ),
        with_std=True,
        calibration=SimpleNamespace(of_tasks=lambda n: (np.log([2.0, 3.0]), np.full(2, 0.1))),
    )
    expected, _ = expectation._by_held_out(model, tasks, {})
    np.testing.assert_allclose(expected, [2 * np.sqrt(2.5), 3 * 3])


def test_selected_tasks_are_those_of_benjamini_and_hochberg():
    p = np.array([0.9, 0.001, 0.02, 0.012, 0.04])
    adjusted = distributions.false_discovery_control(p)
    for level in (0.004, 0.03, 0.05):
        assert _beyond(p, level).tolist() == (adjusted <= level).tolist()


def test_numbers_of_tasks_by_chance():
    assert _by_chance(3, 10, 0.2) == pytest.approx(1 - distributions.binom.cdf(2, 10, 0.2))
    assert _by_chance(0, 10, 0.2) == 1.0


def test_errors_common_to_all_tasks_are_no_news():
    """z of 100 tasks that share an error of variance 0.04: their sum has variance 100 + 400."""
    z, n = np.full(100, 0.4), np.ones(100)
    errors = {"mae": np.full(100, 1.2)}
    alone = Judged(errors, "mae", np.ones(100), np.ones(100), "", 0.0)
    shared = alone._replace(shared=0.04)
    sure = distributions.norm.sf(40 / np.sqrt(500))
    assert _all_worse(alone, z, n, 0.0125)
    assert not _all_worse(shared, z, n, sure * 0.99)
    assert _all_worse(shared, z, n, sure * 1.01)


def test_four_tests_share_the_false_alarms():
    """A p of one task between a quarter and the whole of the level is no reason to update."""
    tasks = cm.environments.Circle(d=2, n=20).sample(60, random_state=0)
    before, after = tasks.split_points(10, "first")
    model = cm.ConditionalRidge(metric="identity", noise="shared", kappa=1.0).fit(before)
    one = after.subset([int(np.argmin(judge(model, after).p))])
    p = float(judge(model, one).p[0])
    assert cm.check(model, one, false_alarm=3.9 * p).n_update == 0
    assert cm.check(model, one, false_alarm=4.1 * p).n_update == 1
    report = cm.check(model, after)
    beyond = np.mean(judge(model, after).p < 0.05)
    assert report.drifting == pytest.approx(max((beyond - 0.05) / 0.95, 0.0))
