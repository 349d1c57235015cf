"""What side information is worth: against brute force, known weights, and in words."""

from __future__ import annotations

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError
from condmeta.evaluation.advantage import Advantage, _agreeing, in_percent
from condmeta.evaluation.gains import Gain, gains
from condmeta.evaluation.leave_out import FLOOR, BlockEquations
from condmeta.evaluation.linear_gap import Interval, linear_gap
from condmeta.feature_maps import ComposedMap, Identity, MeanInput, MeanInputOutput, RandomFourier
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import Prior

UNITS = {"scale": "none", "fit_intercept": False}


def draw(T=60, n=8, d=2, k=2, seed=0, noise=0.5, own=0.3):
    """Draw tasks with w = M phi + b + own N(0, I); return them and their weights and features."""
    rng = np.random.default_rng(seed)
    M, Phi = rng.normal(size=(d, k)), rng.normal(size=(T, k))
    W = Phi @ M.T + 1 + own * rng.normal(size=(T, d))
    X = rng.normal(size=(T, n, d))
    y = np.einsum("tnd,td->tn", X, W) + noise * rng.normal(size=(T, n))
    columns = {f"s{j}": Phi[:, j] for j in range(k)}
    table = cm.TaskTable(columns, ids=range(T))
    tasks = cm.TaskSet.from_arrays(
        X.reshape(-1, d), y.ravel(), np.repeat(np.arange(T), n), side_info=table
    )
    return tasks, W, Phi


def test_fits_without_blocks_are_weighted_least_squares_on_the_rows():
    tasks, _, Phi = draw(T=12, n=5)
    H, s2 = np.array([[0.5, 0.2], [0.2, 0.4]]), 0.7
    block = np.arange(12) % 4
    stats = SquaredState.of(tasks.X, tasks.y, tasks.offsets)
    blocks = BlockEquations(stats, Phi, Prior(np.zeros((3, 2)), np.linalg.cholesky(H), s2), block)

    def normal(kept):
        G, u = np.zeros((6, 6)), np.zeros(6)
        for t in kept:
            X, y = tasks[int(t)].X, tasks[int(t)].y
            Z = np.einsum("nl,j->nlj", X, np.append(Phi[t], 1)).reshape(len(X), -1)
            V = X @ H @ X.T + s2 * np.eye(len(X))
            G, u = G + Z.T @ np.linalg.solve(V, Z), u + Z.T @ np.linalg.solve(V, y)
        return G, u

    floor = FLOOR * np.diag(np.diag(normal(range(12))[0]))
    for left_out in ([1], [1, 3]):
        G, u = normal(np.flatnonzero(~np.isin(block, left_out)))
        expected = np.linalg.solve(G + floor, u).reshape(2, 3)
        found = blocks.fits[left_out[0], left_out[-1]]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    G, _ = normal(range(12))
    _, u = normal(np.flatnonzero(block == 2))
    expected = np.linalg.solve(G + floor, u).reshape(2, 3)
    np.testing.assert_allclose(blocks.products()[0][2], expected, rtol=1e-9)


def test_weights_that_are_seen_give_the_gap_of_the_oracle():
    """Many exact points show w itself, and little is left to chance with 2000 tasks."""
    tasks, W, Phi = draw(T=2000, n=6, noise=0.02)
    best = cm.theory.best_linear(W, Phi)
    stats = SquaredState.of(tasks.X, tasks.y, tasks.offsets)
    groups = [np.array([0]), np.array([1])]
    found = linear_gap(stats, Phi, groups, np.arange(2000) % 10, 2).whole
    assert found.gap == pytest.approx(best.gap, rel=2e-3)
    assert found.share == pytest.approx(best.gap / best.mean, rel=2e-3)
    alone = [cm.theory.best_linear(W, Phi[:, [j]]).gap for j in range(2)]
    np.testing.assert_allclose(found.alone, alone, rtol=1e-2)
    np.testing.assert_allclose(found.unique, [best.gap - alone[1], best.gap - alone[0]], rtol=1e-2)
    predicted = np.mean((tasks.X @ (best.map.M @ (Phi - Phi.mean(axis=0)).T)) ** 2)
    assert found.predicted == pytest.approx(predicted, rel=1e-2)


def test_a_doubled_column_is_worth_much_alone_and_nothing_besides():
    tasks, _, Phi = draw(T=120)
    table = cm.TaskTable({"a": Phi[:, 0], "twin": Phi[:, 0], "b": Phi[:, 1]}, ids=range(120))
    found = cm.advantage(tasks.with_side(table), shots=(), **UNITS)
    plain = cm.advantage(tasks, shots=(), **UNITS)
    assert found.gap.value == pytest.approx(plain.gap.value, rel=1e-3)
    alone, unique = found.columns["twin"]
    assert alone.low > 0
    assert unique.value == pytest.approx(0, abs=1e-6 * alone.value)
    assert found.columns["b"][1].low > 0


def test_units_of_features_do_not_change_what_is_predicted():
    tasks, _, _ = draw()
    other = cm.TaskSet(1000 * tasks.X + 5, tasks.y, tasks.offsets, tasks.ids, tasks.side)
    one, two = (cm.advantage(each, shots=()) for each in (tasks, other))
    assert two.predicted.value == pytest.approx(one.predicted.value, rel=1e-6)
    assert two.share.value == pytest.approx(one.share.value, rel=1e-6)


def test_many_columns_use_the_leading_directions():
    rng = np.random.default_rng(0)
    tasks, _, Phi = draw(T=40)
    wide = np.hstack([Phi @ rng.normal(size=(2, 16)), 1e-3 * rng.normal(size=(40, 4))])
    found = cm.advantage(tasks.with_side(cm.TaskTable(wide, range(40))), shots=(), **UNITS)
    assert (found.n_directions, found.n_columns) == (9, 20)
    assert found.pays


def test_gains_are_those_of_two_learners_on_the_same_points():
    """With no points a fixed bias predicts <x, theta>, whatever the folds are."""
    tasks, _, _ = draw(T=30, n=4)
    options = {"scale": "none", "fit_intercept": False, "lam": 1.0}
    pair = tuple(cm.FixedBiasRegressor(theta=theta, **options) for theta in (0.0, 1.0))
    none, three = gains(pair, tasks, (0, 3, 9), 3, "random", 0)  # no task has ten points
    zero = np.abs(tasks.y).reshape(30, 4).mean(axis=1)
    one = np.abs(tasks.y - tasks.X.sum(axis=1)).reshape(30, 4).mean(axis=1)
    assert none.without == pytest.approx(zero.mean())
    assert none.with_side == pytest.approx(one.mean())
    assert none.gain == pytest.approx(1 - one.mean() / zero.mean())
    draws = np.random.default_rng(0).integers(30, size=(4000, 30))
    again = 1 - one[draws].mean(axis=1) / zero[draws].mean(axis=1)
    assert none.gain_error == pytest.approx(again.std(), rel=0.15)  # bootstrap over tasks
    assert (none.n_tasks, three.n_support, three.n_tasks) == (30, 3, 30)


def test_gains_of_side_information():
    tasks, _, _ = draw(T=25, n=4, k=1, seed=1)
    table = cm.advantage(tasks, shots=(0,), n_splits=2).frame
    assert table["n_support"].tolist() == [0]
    assert table["gain"][0] > 2 * table["gain_error"][0]


def made(low, gains=()):
    interval = Interval(0.5, low, 0.7)
    return Advantage(interval, interval, interval, {}, {}, list(gains), 0.9, 50, 2, 2)


def test_share_holds_zero_if_the_gap_does():
    share = Interval(0.3, 0.1, 0.5)
    assert _agreeing(share, Interval(2.0, -1.0, 5.0)) == (0.3, 0.0, 0.5)
    assert _agreeing(share, Interval(2.0, 1.0, 3.0)) == share
    assert _agreeing(Interval(0.3, -0.1, 0.5), Interval(2.0, 1.0, 3.0)) == (0.3, 0.0, 0.5)


def test_shares_of_columns_are_of_the_variance_that_share_is_of():
    tasks, _, _ = draw(T=40, n=5, k=1, seed=2)
    found = cm.advantage(tasks, shots=())
    ((alone, _),) = found.column_shares.values()
    assert alone.value == pytest.approx(found.share.value)  # the only column


def test_sentences():
    clear, none = Gain(0, 50, 2.0, 1.0, 0.5, 0.1), Gain(1, 50, 2.0, 1.9, 0.05, 0.1)
    loss = Gain(5, 50, 1.0, 1.3, -0.3, 0.1)
    assert repr(made(0.4, [clear, none, loss])) == (
        "Side information explains 50 % [40, 70] of the variance of task coefficients; on new "
        "tasks it cuts the error by 50 % ± 10 at 0 points, and raises the error by 30 % ± 10 at "
        "5 points, and makes no clear difference (5 % ± 10 at 1 point)."
    )
    assert made(0.4).sentence.endswith("of the variance of task coefficients.")
    assert made(-0.1, [none]).sentence.startswith("Side information does not pay: it explains 50 %")
    assert "50 % [0, 70] of the variance" in made(-0.1, [clear]).sentence
    assert "not clearly more than 0, but it helps: on new" in made(-0.1, [clear]).sentence


def test_shares_in_words_stay_within_0_and_100_percent():
    assert in_percent(Interval(0.85, -0.02, 1.06)) == "85 % [0, 100]"


def test_a_gain_of_nothing_does_not_help():
    """A gain may be clear, thousands of rows, and still round to 0 %."""
    tiny = Gain(0, 5000, 2.0, 1.993, 0.0035, 0.001)
    said = made(-0.1, [tiny]).sentence
    assert "helps" not in said
    assert said.startswith("Side information does not pay: it explains 50 % [0, 70]")
    assert said.endswith("; on new tasks it changes the error by less than 1 % at 0 points.")
    both = made(0.4, [tiny, tiny._replace(n_support=5, gain=-0.004)]).sentence
    assert both.endswith("; on new tasks it changes the error by less than 1 % at 0 points, "
                         "at 5 points.")  # fmt: skip
    assert "0 %" not in both.replace("50 %", "").replace("40 %", "")


def test_tables():
    tasks, _, _ = draw()
    found = cm.advantage(tasks, shots=())
    columns, coefficients = found.columns_frame, found.coefficients_frame
    assert columns["column"].tolist() == ["s0", "s1"]
    assert (columns["alone_low"] <= columns["alone"]).all()
    assert coefficients["coefficient"].tolist() == ["x0", "x1", "intercept"]
    assert coefficients["explained"].sum() == pytest.approx(found.gap.value)


def test_raw_columns_of_maps():
    table = cm.TaskTable({"a=b": [1.0, None, 2.0], "a": ["b", "c", None]}, ids=range(3))
    assert raw_columns(ComposedMap("auto").fit(table)) == ["a=b", "a=b", "a", "a", "a"]
    numbers = cm.TaskTable({"p": [1.0, 2.0], "q": [0.0, 1.0]}, ids=range(2))
    points = cm.TaskSet([[1.0], [2.0]], [0.0, 1.0], [0, 1, 2], [0, 1], feature_names=["x"])
    maps = [Identity(), RandomFourier(3, std=1.0), MeanInput()]
    found = raw_columns(ComposedMap(maps).fit(numbers, points))
    assert found[:5] == ["p", "q", *["RandomFourier"] * 3]
    assert len(found) == 6


def test_errors():
    tasks, _, _ = draw(T=20)
    with pytest.raises(DataError, match="There is no side information to judge: pass side_info="):
        cm.advantage(tasks, feature_map=None)
    with pytest.raises(DataError, match="does not work with a feature map that reads y"):
        cm.advantage(tasks, feature_map=MeanInputOutput())
    with pytest.raises(DataError, match=r"'coverage' parameter must be a float in \(0, 1\)"):
        cm.advantage(tasks, coverage=90)
    with pytest.raises(DataError, match="'scale' parameter must be one of 'none'"):
        cm.advantage(tasks, scale="rank")
    with pytest.raises(DataError, match="'shots' parameter must hold ints of at least 0"):
        cm.advantage(tasks, shots=(0, 0.5))
    with pytest.raises(DataError, match="There are 5 tasks with 40 points and 3 coefficients"):
        cm.advantage(tasks[:5])
    with pytest.raises(DataError, match="needs the targets of the tasks"):
        cm.advantage(cm.TaskSet([[1.0]], None, [0, 1], [0]))


def test_weights_are_refused():
    tasks = cm.TaskSet.from_arrays([[1.0], [2.0]], [1, 2], task=["a", "b"], weight=[1, 2])
    with pytest.raises(DataError, match="advantage takes no sample weights"):
        cm.advantage(tasks)
