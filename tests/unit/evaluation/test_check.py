"""Checks of fitted models: against brute force and by simulation, for every kind of learner."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy import stats as distributions
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import condmeta as cm
from condmeta.errors import DataError
from condmeta.evaluation.check import _beyond
from condmeta.feature_maps import MeanInputOutput
from condmeta.fitted.known_statistics import statistics
from condmeta.inner.log_rms import log_rms_moments
from condmeta.inner.posterior import Gaussian
from condmeta.inner.posterior_check import check_posterior
from condmeta.inner.squared import SquaredState
from condmeta.meta.conformal import Calibration, Scores
from condmeta.meta.error_scale import HeldOut

FIXED = {"metric": "diagonal", "noise": "shared", "kappa": 1.0}
M = np.array([[1.0, 0.0, -1.0], [0.5, 1.0, 0.0]])


def draw(seed=0, T=60, n=18, first=0):
    """Draw tasks with w = s M + 1 + 0.5 N(0, I), noise 1, side columns s0 and s1."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(T, 2))
    w = S @ M + 1 + 0.5 * rng.normal(size=(T, 3))
    X, ids = rng.normal(size=(T, n, 3)), np.arange(first, first + T)
    y = np.einsum("tnd,td->tn", X, w) + rng.normal(size=(T, n))
    side = cm.TaskTable(S, ids=ids)
    return cm.TaskSet.from_arrays(X.reshape(-1, 3), y.ravel(), np.repeat(ids, n), side_info=side)


def shifted(tasks, which, by=6.0):
    """Return tasks of which some have other labels: y + by x0."""
    drifts = np.repeat(np.isin(np.arange(len(tasks)), which), tasks.sizes)
    return tasks.with_target(tasks.y + by * drifts * tasks.X[:, 0])


@pytest.fixture(scope="module")
def fitted():
    before, after = draw().split_points(10, "first")
    return cm.ConditionalRidge(**FIXED).fit(before), after


@pytest.mark.parametrize("own_noise", [False, True])
def test_check_posterior_is_that_of_the_joint_normal_distribution(own_noise):
    rng = np.random.default_rng(0)
    L, theta = np.tril(rng.normal(size=(3, 3))), rng.normal(size=(2, 3))
    inner = Gaussian(L, 0.5, own_noise)
    X, y, offsets = rng.normal(size=(9, 3)), rng.normal(size=9), np.array([0, 4, 9])
    before = SquaredState.of(X, y, offsets)
    s2 = inner.posterior(before, theta).s2
    fresh, ends = rng.normal(size=(5, 3)), np.array([0, 2, 5])
    r = rng.normal(size=5)
    found = check_posterior(inner, before, theta, SquaredState.of(fresh, r, ends), room=1.3)
    for t in range(2):
        old, new = X[offsets[t] : offsets[t + 1]], fresh[ends[t] : ends[t + 1]]
        P = np.linalg.inv(np.linalg.inv(L @ L.T) + old.T @ old / s2[t])
        V = new @ P @ new.T + s2[t] * np.eye(len(new))
        mine = r[ends[t] : ends[t + 1]]
        q, n = mine @ np.linalg.solve(1.3 * V, mine), len(new)
        expected = distributions.chi2.sf(q, n)
        if own_noise:
            expected = distributions.f.sf(q / n, n, len(old) + 4)
        assert found.p[t] == pytest.approx(expected, rel=1e-9)
        assert found.expected[t] == pytest.approx(np.trace(V) / n, rel=1e-9)


def test_logs_of_root_mean_squares():
    draws = np.log(np.sqrt((np.random.default_rng(0).normal(size=(200_000, 5)) ** 2).mean(axis=1)))
    mean, variance = log_rms_moments(np.array([5.0]))
    assert mean[0] == pytest.approx(draws.mean(), abs=4 * draws.std() / np.sqrt(len(draws)))
    assert variance[0] == pytest.approx(draws.var(), rel=0.02)


def test_scores_are_kept_task_by_task():
    r, task = np.array([3.0, 4.0, 1.0, -2.0, 2.0, 6.0]), np.array([0, 0, 1, 1, 1, 2])
    one = np.ones(6)
    held = HeldOut(2 * r, 0 * one, 2 * one, one / np.bincount(task)[task], task)
    scores = Scores.of(held, 5 * one)  # the learner's own deviation counts, not the scale
    np.testing.assert_allclose(np.exp(2 * scores.of_task), [12.5, 3.0, 36.0])
    np.testing.assert_array_equal(scores.size, [2, 3, 1])
    mean, _ = Calibration({0: held, 5: held}).of_tasks(np.array([0, 3, 9]))
    shift, _ = log_rms_moments(scores.size)
    np.testing.assert_allclose(mean, (scores.of_task - shift).mean())


def test_named_tasks_are_those_of_benjamini_and_hochberg():
    p = np.array([0.9, 0.01, 0.021, 0.2, 0.001])
    for level in (0.001, 0.02, 0.05, 0.2):
        named = distributions.false_discovery_control(p) <= level
        np.testing.assert_array_equal(_beyond(p, level), named)


@pytest.mark.parametrize("fresh", [False, True])
def test_nothing_changed_is_kept_as_often_as_stated(fresh):
    """40 checks of data from the same environment; 95 % or more are to be kept."""
    verdicts = Counter()
    for seed in range(40):
        tasks = draw(seed)
        before, after = tasks.split_points(10, "first")
        model = cm.ConditionalRidge(**FIXED).fit(before)
        if fresh:
            after = draw(1000 + seed, T=40, n=8, first=1000)
        verdicts[cm.check(model, after).verdict] += 1
    assert verdicts["keep"] >= 38


def test_tasks_that_drift_are_named_and_the_rest_kept(fitted):
    model, after = fitted
    report = cm.check(model, shifted(after, [3, 7]))
    assert report.verdict == "update"
    assert report.n_update == 2
    frame = report.frame
    assert np.flatnonzero(frame["verdict"] == "update").tolist() == [3, 7]
    assert set(frame["verdict"]) == {"keep", "update"}
    assert frame["z"][[3, 7]].min() > 4
    assert (frame["rmse"] >= frame["mae"]).all()
    assert frame["known"].tolist() == [10] * 60
    residual = after[0].y - model.predict(after[0].X, task=[0] * 8)
    assert frame["mae"][0] == pytest.approx(np.abs(residual).mean())
    assert frame["rmse"][0] == pytest.approx(np.sqrt((residual**2).mean()))


def test_expected_errors_are_those_of_the_predictive_distribution(fitted):
    model, after = fitted
    frame = cm.check(model, after).frame
    _, std = model.predict(after, return_std=True)
    expected = np.sqrt((std.reshape(60, 8) ** 2).mean(axis=1))
    np.testing.assert_allclose(frame["expected"], expected, rtol=1e-9)
    assert abs(np.mean(frame["rmse"] / frame["expected"]) - 1) < 0.1


def test_many_tasks_that_drift_call_for_a_fit(fitted):
    model, after = fitted
    report = cm.check(model, shifted(after, range(0, 60, 3), by=3.0))
    assert report.verdict == "refit"
    assert 0.25 < report.drifting < 0.45
    assert set(report.frame["verdict"]) == {"keep", "update"}


def test_a_change_that_all_tasks_share_calls_for_a_fit(fitted):
    model, after = fitted
    report = cm.check(model, shifted(after, range(60), by=1.2))
    assert (report.verdict, report.n_update < 10) == ("refit", True)
    assert 0.1 < report.excess < 0.6


def test_unknown_tasks_are_judged_from_tau(fitted):
    model, _ = fitted
    fresh = draw(5, T=20, n=8, first=1000)
    report = cm.check(model, fresh)
    assert report.frame["known"].tolist() == [0] * 20
    sides = fresh.side.numeric()
    residual = fresh.y.reshape(20, 8) - np.einsum(
        "tnd,td->tn", fresh.X.reshape(20, 8, 3), model.theta_for(fresh.side)[:, :3]
    )
    rmse = np.sqrt(((residual - model.theta_for(fresh.side)[:, 3:]) ** 2).mean(axis=1))
    np.testing.assert_allclose(report.frame["rmse"], rmse)
    assert sides.shape == (20, 2)


def test_side_information_outside_what_was_seen(fitted):
    model, _ = fitted
    fresh = draw(5, T=20, n=8, first=1000)
    one = fresh.side.data["s0"].copy()
    one[4] = 50.0
    few = cm.check(model, fresh.with_side(cm.TaskTable({"s0": one, "s1": fresh.side.data["s1"]},
                                                       fresh.ids)))  # fmt: skip
    low, high = model.fitted_.reader.map.seen_.ranges["s0"]
    assert f"s0 50.0: above the training range {low:g} to {high:g}" in few.frame["side"][4]
    assert few.frame["verdict"][4] == "refit"  # its errors are large as well
    far = cm.TaskTable({"s0": one * 0 + 50, "s1": fresh.side.data["s1"]}, fresh.ids)
    many = cm.check(model, fresh.with_side(far))
    assert (many.verdict, many.n_outside) == ("refit", 20)


def test_side_information_that_changed(fitted):
    model, after = fitted
    S = {name: column.copy() for name, column in after.side.data.items()}
    S["s1"][[2, 5]] += 0.5
    report = cm.check(model, after.with_side(cm.TaskTable(S, after.ids)))
    assert (report.verdict, report.n_changed, report.n_outside) == ("keep", 2, 0)
    assert report.frame["side"].tolist().count("changed: s1") == 2
    S["s1"] += 0.5
    report = cm.check(model, after.with_side(cm.TaskTable(S, after.ids)))
    assert (report.verdict, report.n_changed) == ("refit", 60)
    assert str(report).endswith("; side information of 60 changed.")


def test_held_out_errors_are_the_ground_of_a_calibrated_learner():
    before, after = draw().split_points(10, "first")
    model = cm.calibrate(cm.ConditionalSGDRegressor(scale="standard", fit_intercept=True), before)
    report = cm.check(model, after)
    assert (report.verdict, report.ground) == ("keep", "held-out tasks")
    assert report.excess < 0.1
    worse = cm.check(model, shifted(after, range(60), by=5.0))
    assert worse.verdict == "refit"


def test_learners_without_standard_deviations_compare_tasks():
    before, after = draw().split_points(10, "first")
    model = cm.ConditionalSGDRegressor(scale="standard", fit_intercept=True).fit(before)
    assert cm.check(model, after).verdict == "keep"
    report = cm.check(model, shifted(after, [3], by=40.0))
    assert (report.verdict, report.ground) == ("update", "the other tasks")
    assert np.flatnonzero(report.frame["verdict"] == "update").tolist() == [3]
    assert np.ptp(report.frame["expected"]) == 0
    all_alike = cm.check(model, after.with_target(10 * after.y))
    assert all_alike.verdict == "keep"
    assert "a change common to all tasks cannot be detected: fit with intervals" in str(all_alike)


def test_a_file_without_statistics_compares_tasks(fitted, tmp_path):
    model, after = fitted
    model.save(tmp_path / "a.condmeta", resume=False)
    model.save(tmp_path / "b.condmeta", resume=True)
    assert cm.check(cm.load(tmp_path / "a.condmeta"), after).ground == "the other tasks"
    again = cm.check(cm.load(tmp_path / "b.condmeta"), after)
    np.testing.assert_array_equal(again.frame["z"], cm.check(model, after).frame["z"])


def test_labels_are_taken_as_they_are_with_a_base():
    before, after = draw(T=30).split_points(10, "first")
    model = cm.ConditionalRidge(base=LinearRegression(), **FIXED).fit(before)
    residual = after.y - model.predict(after)
    frame = cm.check(model, after).frame
    np.testing.assert_allclose(frame["mae"], np.abs(residual).reshape(30, 8).mean(axis=1))


def test_auto_regressor():
    before, after = draw(T=30).split_points(10, "first")
    model = cm.AutoRegressor(base=None, shots=(0, 2)).fit(before)
    report = cm.check(model, after)
    assert (report.verdict, report.ground, len(report.frame)) == ("keep", "held-out tasks", 30)
    assert cm.check(model, shifted(after, range(30), by=5.0)).verdict == "refit"
    new = cm.check(model, draw(T=60, seed=1, first=100))
    assert (new.verdict, new.frame["known"].max()) == ("keep", 0)


def classes(seed=0, T=60, n=30):
    tasks = draw(seed, T, n)
    rng = np.random.default_rng(seed + 1)
    score = (tasks.X * (np.repeat(tasks.side.numeric(), n, axis=0) @ M)).sum(axis=1)
    return tasks.with_target((rng.random(len(score)) < 1 / (1 + np.exp(-2 * score))).astype(float))


@pytest.mark.parametrize(
    ("learner", "ground", "error"),
    [
        (cm.ConditionalLogistic(metric="diagonal", kappa=1.0), "the model", "log_loss"),
        (cm.ConditionalSGDClassifier(loss="logistic", lam=0.1), "the probabilities", "log_loss"),
        (cm.ConditionalSGDClassifier(), "the other tasks", "error_rate"),
        (cm.AutoClassifier(base=None, shots=(0, 5)), "the probabilities", "log_loss"),
    ],
)
def test_classes(learner, ground, error):
    before, after = classes().split_points(20, "first")
    learner.fit(before)
    report = cm.check(learner, after)
    assert report.ground == ground
    frame = report.frame
    if error == "log_loss":
        positive = learner.predict_proba(after)[:, 1]
        loss = -np.log(np.where(after.y == 1, positive, 1 - positive)).reshape(60, 10)
        np.testing.assert_allclose(frame["log_loss"], loss.mean(axis=1))
    else:
        wrong = (learner.predict(after) != after.y).reshape(60, 10)
        np.testing.assert_allclose(frame["error_rate"], wrong.mean(axis=1))
    wrong = np.where(np.arange(600) < 10, 1 - learner.predict(after), after.y)
    assert cm.check(learner, after.with_target(wrong)).frame["z"][0] > frame["z"][0] + 1
    if ground == "the model":
        assert report.verdict == "keep"
        assert cm.check(learner, after.with_target(1 - after.y)).verdict == "refit"


def test_probabilities_give_the_expected_log_loss():
    before, after = classes().split_points(20, "first")
    model = cm.ConditionalLogistic(metric="diagonal", kappa=1.0).fit(before)
    p = model.predict_proba(after)[:, 1]
    entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p)).reshape(60, 10).mean(axis=1)
    np.testing.assert_allclose(cm.check(model, after).frame["expected"], entropy, rtol=0.1)


def test_tables_come_back_in_their_own_kind():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"shop": np.repeat(list("abcdef"), 10), "x": rng.normal(size=60)})
    y = frame["x"].to_numpy() + 0.1 * rng.normal(size=60)
    side = pl.DataFrame({"shop": list("abcdef"), "city": list("RRBBRB")})
    model = cm.ConditionalRidge(task_column="shop").fit(frame, y, side_info=side)
    report = cm.check(model, frame, y, side_info=side)
    assert isinstance(report.frame, pl.DataFrame)
    assert report.frame["shop"].to_list() == list("abcdef")
    by_id = cm.check(model, frame[::-1], y[::-1])  # rows in another order, no side information
    assert by_id.frame.sort("shop")["rmse"].to_list() == pytest.approx(
        report.frame["rmse"].to_list()
    )


def test_unseen_levels_are_reported_and_not_warned_of():
    rng = np.random.default_rng(0)
    task, X = np.repeat(np.arange(8), 6), rng.normal(size=(48, 1))
    side = {t: {"city": "Rome" if t % 2 else "Bonn"} for t in range(8)}
    model = cm.ConditionalRidge().fit(X, X[:, 0], task=task, side_info=side)
    report = cm.check(model, X[:6], X[:6, 0], task=["new"] * 6, side_info={"new": {"city": "Oslo"}})
    assert report.frame["side"].tolist() == ["city Oslo: a level not seen in training"]


def test_sentence_and_errors(fitted):
    model, after = fitted
    report = cm.check(model, shifted(after, [3]))
    assert str(report).startswith("update: errors of 60 tasks are ")
    assert " those expected from the model; tasks to update: 1, drifting: " in str(report)
    kept = dataclasses.replace(report, verdict="keep", excess=0.04)
    assert "are 4 % above those expected from the model, which may be chance; tasks" in str(kept)
    assert "chance" not in str(dataclasses.replace(kept, excess=-0.04))
    refit = dataclasses.replace(report, verdict="refit")
    assert "; tasks that stand out: 1." in str(refit)
    assert "update" not in str(refit) + refit._repr_html_()
    assert "update</td>" in report._repr_html_()
    with pytest.raises(DataError, match=r"'false_alarm' parameter must be a float in \(0, 1\)"):
        cm.check(model, after, false_alarm=5)
    with pytest.raises(
        DataError, match=r"check needs a fitted learner, such as ConditionalRidge\. Got Lin"
    ):
        cm.check(LinearRegression(), after)
    with pytest.raises(DataError, match="no rows to check the model with"):
        cm.check(model, after[:0])


def test_rows_without_ids_are_those_of_a_model_of_one_task(fitted):
    model, after = fitted
    with pytest.raises(DataError, match="The model knows 60 tasks: say which one each row"):
        cm.check(model, after.X, after.y)
    alone = cm.ConditionalRidge(None, **FIXED).fit(after.X[:20], after.y[:20])
    assert cm.check(alone, after.X[20:30], after.y[20:30]).frame["known"].tolist() == [20]
    with pytest.raises(NotFittedError):
        cm.check(cm.ConditionalRidge(), after)
    with pytest.raises(NotFittedError):
        cm.check(cm.AutoRegressor(), after)


def test_points_that_condition_new_tasks():
    tasks = draw(T=40)
    model = cm.ConditionalRidge(MeanInputOutput(), **FIXED).fit(tasks)
    fresh = draw(5, T=20, first=1000)
    given, rows = fresh.split_points(10, "first")
    frame = cm.check(model, rows.X, rows.y, task=np.repeat(rows.ids, 8), side_info=given).frame
    residual = rows.y - model.predict(rows.X, task=np.repeat(rows.ids, 8), side_info=given)
    np.testing.assert_allclose(frame["mae"], np.abs(residual).reshape(20, 8).mean(axis=1))


def test_weights_of_rows_count_in_what_is_expected():
    """A row of weight 1/2 twice is a row: whichever, the same errors are expected."""
    before, after = draw(T=30).split_points(10, "first")
    options = {"metric": "diagonal", "noise": "per_task", "kappa": 1.0}
    ids = np.repeat(before.ids, before.sizes)
    plain = cm.ConditionalRidge(**options).fit(before)
    halves = cm.ConditionalRidge(**options).fit(
        np.repeat(before.X, 2, axis=0), np.repeat(before.y, 2), task=np.repeat(ids, 2),
        side_info=before.side, sample_weight=np.full(2 * len(ids), 0.5),
    )  # fmt: skip
    one, two = (cm.check(model, after).frame["expected"] for model in (plain, halves))
    np.testing.assert_allclose(two, one, rtol=1e-3)
    third = cm.ConditionalRidge(**options).fit(
        before.X, before.y, task=ids, side_info=before.side, sample_weight=np.full(len(ids), 0.33)
    )
    count = third.fitted_.tasks.sizes
    assert count[0] == pytest.approx(3.3)
    np.testing.assert_array_equal(
        statistics(third.fitted_, third.fitted_.tasks.ids)[1].count, count
    )
