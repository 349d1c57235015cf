"""`ConditionalRidge` on tables of more columns than a task has rows."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

import condmeta as cm
from condmeta.inner.low_rank import LowRankGaussian
from condmeta.meta.prior import carried_metrics

D, T, N = 80, 40, 12
rng = np.random.default_rng(0)
TASK = np.repeat(np.arange(T), N)
MEAN = rng.normal(size=D) / 4
SIZE = rng.normal(size=T)
X = rng.normal(size=(T * N, D))
LEVEL = 2 * SIZE + rng.normal(size=T)
Y = X @ MEAN + LEVEL[TASK] + 0.5 * rng.normal(size=T * N)
SIDE = cm.TaskTable({"size": SIZE}, ids=range(T))


@pytest.fixture(scope="module")
def model():
    return cm.ConditionalRidge().fit(X, Y, task=TASK, side_info=SIDE)


def test_tasks_differ_in_few_directions(model):
    inner = model.fitted_.inner
    assert isinstance(inner, LowRankGaussian)
    assert inner.factor.shape[0] == D + 1
    assert inner.factor.shape[1] < 30
    np.testing.assert_allclose(model.H_, inner.factor @ inner.factor.T)
    assert model.M_.shape == (D + 1, 1)


def test_new_tasks_are_predicted_better_than_by_the_pooled_ridge(model):
    size = np.random.default_rng(1).normal(size=30)
    draw = np.random.default_rng(2)
    rows, task = draw.normal(size=(30 * 20, D)), np.repeat(np.arange(100, 130), 20)
    level = 2 * size + draw.normal(size=30)
    y = rows @ MEAN + level[task - 100] + 0.5 * draw.normal(size=600)
    side = cm.TaskTable({"size": size}, ids=range(100, 130))
    pooled = RidgeCV(np.logspace(-2, 4, 13)).fit(X, Y).predict(rows)
    shown = np.arange(600) % 20 < 3

    def error(predicted):
        return np.sqrt(np.mean((predicted - y[~shown]) ** 2))

    alone = error(model.predict(rows[~shown], task=task[~shown], side_info=side))
    models = model.adapt(rows[shown], y[shown], task=task[shown], side_info=side)
    adapted = error(models.predict(rows[~shown], task=task[~shown]))
    assert adapted < 0.9 * alone < 0.9 * 0.7 * error(pooled[~shown])


def test_levels_that_go_with_inputs_do_not_harm_tasks_without_points():
    draw = np.random.default_rng(7)
    direction = draw.normal(size=D) / 3

    def rows(first, n_tasks, n):
        center, task = draw.normal(size=n_tasks), np.repeat(np.arange(n_tasks), n)
        rows = draw.normal(size=(len(task), D)) + center[task, None] * direction
        level = 2 * center + 0.5 * draw.normal(size=n_tasks)
        y = rows @ MEAN + level[task] + 0.5 * draw.normal(size=len(task))
        return rows, y, first + task

    known, new = rows(0, 60, 20), rows(100, 60, 20)
    pooled = RidgeCV(np.logspace(-2, 4, 13)).fit(*known[:2]).predict(new[0])
    errors = {}
    for cold_start in ("auto", "prior"):
        model = cm.ConditionalRidge(cold_start=cold_start).fit(*known[:2], task=known[2])
        errors[cold_start] = np.mean((model.predict(new[0], task=new[2]) - new[1]) ** 2)
        assert model.cold_start_ == {"auto": "pooled", "prior": "prior"}[cold_start]
    least = np.mean((pooled - new[1]) ** 2)
    assert errors["auto"] < 1.02 * least < errors["prior"]


def test_an_infinite_kappa_reads_no_side_information():
    draw = np.random.default_rng(8)
    y = Y + X[:, 0] * SIZE[TASK] * 3 + draw.normal(size=T * N)
    model = cm.ConditionalRidge(kappa=np.inf).fit(X, y, task=TASK, side_info=SIDE)
    assert not model.M_.any()
    assert cm.ConditionalRidge().fit(X, y, task=TASK, side_info=SIDE).M_.any()


def test_posterior_is_that_of_a_dense_normal_distribution():
    model = cm.ConditionalRidge(noise="shared").fit(X, Y, task=TASK, side_info=SIDE)
    fitted, H, at = model.fitted_, model.H_, TASK == 3
    theta, new = fitted.tasks.theta[3], fitted.scales.rows(X[:5])
    rows, y = fitted.scales.rows(X[at]), fitted.scales.target(Y[at])
    V = rows @ H @ rows.T + model.s2_ * np.eye(N)
    expected = theta + H @ rows.T @ np.linalg.solve(V, y - rows @ theta)
    np.testing.assert_allclose(fitted.tasks.coef[3], expected, atol=1e-9)
    P = H - H @ rows.T @ np.linalg.solve(V, rows @ H)
    _, std = model.predict(X[:5], task=np.full(5, 3), return_std=True)
    np.testing.assert_allclose(std, np.sqrt(np.einsum("ij,jk,ik->i", new, P, new) + model.s2_))


def test_update_is_the_model_of_all_rows(model):
    first = np.arange(T * N) % N < 8
    part = cm.ConditionalRidge().fit(X[first], Y[first], task=TASK[first], side_info=SIDE)
    whole = part.adapt(X, Y, task=TASK, side_info=SIDE)
    part.update(X[~first], Y[~first], task=TASK[~first])
    np.testing.assert_allclose(
        part.predict(X, task=TASK), whole.predict(X, task=TASK), rtol=1e-8, atol=1e-8
    )
    more = part.update(X[:N] + 1, Y[:N], task=np.full(N, 77), side_info={77: {"size": 0.3}})
    assert 77 in more.coef_frame(wide=True)["task"].tolist()


def test_parts_and_merged_learners_equal_one_fit(model):
    halves = []
    parts = cm.ConditionalRidge()
    for lo, hi in ((0, 15), (15, T)):
        at = (lo <= TASK) & (hi > TASK)
        side = SIDE.take(list(range(lo, hi)))
        parts.partial_fit(X[at], Y[at], task=TASK[at], side_info=side)
        halves.append(cm.ConditionalRidge().fit(X[at], Y[at], task=TASK[at], side_info=side))
    expected = model.predict(X, task=TASK)
    np.testing.assert_allclose(parts.predict(X, task=TASK), expected, rtol=1e-6, atol=1e-6)
    merged = cm.merge(*halves)
    np.testing.assert_allclose(merged.predict(X, task=TASK), expected, rtol=1e-6, atol=1e-6)


def test_order_of_tasks_does_not_matter(model):
    order = np.argsort(np.random.default_rng(5).permutation(T)[TASK], kind="stable")
    other = cm.ConditionalRidge().fit(X[order], Y[order], task=TASK[order], side_info=SIDE)
    np.testing.assert_allclose(
        other.predict(X, task=TASK), model.predict(X, task=TASK), rtol=1e-6, atol=1e-6
    )


def test_weights_are_repetitions(model):
    weight = np.ones(T * N)
    weight[::5] = 2
    rows = np.repeat(np.arange(T * N), weight.astype(int))
    weighted = cm.ConditionalRidge(metric="diagonal", noise="shared", kappa=1.0)
    weighted.fit(X, Y, task=TASK, side_info=SIDE, sample_weight=weight)
    repeated = cm.ConditionalRidge(metric="diagonal", noise="shared", kappa=1.0)
    repeated.fit(X[rows], Y[rows], task=TASK[rows], side_info=SIDE)
    np.testing.assert_allclose(
        weighted.predict(X, task=TASK), repeated.predict(X, task=TASK), rtol=0.02, atol=0.05
    )


def test_files_hold_it(model, tmp_path):
    model.save(tmp_path / "a.condmeta")
    again = cm.load(tmp_path / "a.condmeta")
    np.testing.assert_array_equal(again.predict(X, task=TASK), model.predict(X, task=TASK))
    again.update(X[:3], Y[:3], task=TASK[:3])
    again.partial_fit(X[:N], Y[:N], task=["new"] * N, side_info={"new": {"size": 1.0}})
    model.save(tmp_path / "b.condmeta", resume=False)
    slim = cm.load(tmp_path / "b.condmeta")
    np.testing.assert_array_equal(slim.predict(X, task=TASK), model.predict(X, task=TASK))
    model.save(tmp_path / "c.condmeta", tasks=False)
    assert (tmp_path / "c.condmeta").stat().st_size < (tmp_path / "b.condmeta").stat().st_size


def test_tables_checks_and_explanations(model):
    frame = model.coef_frame()
    assert len(frame) == T * (D + 1)
    assert np.isnan(frame["own"]).sum() >= T * D  # a task has fewer rows than columns
    assert len(model.M_frame()) == 2 * (D + 1)
    fine = cm.check(model, X, Y, task=TASK)
    assert fine.ground == "the model"
    off = cm.check(model, X, Y + 3 * X[:, 0], task=TASK)
    assert off.verdict != fine.verdict
    assert cm.explain(model, SIDE) is not None
    with pytest.raises(cm.errors.DataError, match="64 columns"):
        model.summary()


def test_full_metrics_are_compared_only_if_tasks_carry_them():
    assert "full" in carried_metrics(24, np.full(3, 2))
    assert "full" not in carried_metrics(50, np.full(100, 30))
    assert "full" in carried_metrics(50, np.full(200, 30))


def test_all_columns_may_still_differ():
    few = TASK < 25
    exact = cm.ConditionalRidge(metric="identity", noise="shared", random="all")
    exact.fit(X[few], Y[few], task=TASK[few])
    assert exact.fitted_.inner.factor.shape == (D + 1, D + 1)
