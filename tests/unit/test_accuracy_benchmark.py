"""The protocol of `benchmarks.accuracy`, with our own methods and a ridge per task only."""

import os
import sys
from unittest import mock

import numpy as np
import pytest

from condmeta.environments import Circle
from condmeta.feature_maps import CircleMap
from condmeta.tasks import TaskSet, TaskTable

with mock.patch.dict(os.environ):  # the package limits threads for the processes it starts
    from benchmarks.accuracy import __main__, page, picture, store, summary
    from benchmarks.accuracy.data import PROBLEMS
    from benchmarks.accuracy.design import Design, independent
    from benchmarks.accuracy.methods import METHODS
    from benchmarks.accuracy.mixed import posterior
    from benchmarks.accuracy.problem import Problem, split
    from benchmarks.accuracy.run import Outcome, measure
    from benchmarks.accuracy.verdict import gap


def _circle(seed):
    tasks = Circle(radius=3.0, d=2, n=12).sample(60, random_state=seed)
    Phi = CircleMap().fit_transform(tasks.side.data["s"][:, None])
    return tasks.with_side(TaskTable(Phi, ids=tasks.ids))


SMALL = Problem("circle", _circle, 40, 15, (0, 1, 4), 6)


def test_supports_are_nested_and_apart_from_query_and_training():
    drawn = split(SMALL, 3)
    rows = [set(part.row_order.tolist()) for part in (*drawn.supports, drawn.query)]
    assert [len(part) for part in rows] == [0, 15, 60, 90]
    assert rows[1] <= rows[2]
    assert not rows[2] & rows[3]
    assert drawn.query.sizes.tolist() == [6] * 15
    assert len(drawn.train) == 40
    assert not set(drawn.train.ids) & set(drawn.query.ids)


def test_the_same_seed_draws_the_same_rows():
    one, two, other = split(SMALL, 0), split(SMALL, 0), split(SMALL, 1)
    assert np.array_equal(one.query.X, two.query.X)
    assert not np.array_equal(one.query.X, other.query.X)


def test_small_tasks_train_and_never_test():
    sizes = [3] * 10 + [9] * 10
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    tasks = TaskSet(np.zeros((120, 1)), np.zeros(120), offsets, range(20))
    drawn = split(Problem("", lambda _: tasks, 12, 8, (0, 5)), 0)
    assert set(drawn.query.ids) <= set(range(10, 20))
    assert set(range(10)) <= set(drawn.train.ids)


@pytest.fixture(scope="module")
def errors():
    return {
        name: np.mean([measure(SMALL, METHODS[name].make, seed)[0] for seed in range(2)], axis=0)
        for name in ("ridge", "ridge-no-side", "per-task")
    }


def test_side_information_helps_and_most_without_points(errors):
    assert (errors["ridge"] < errors["ridge-no-side"]).all()
    assert errors["ridge"][0] < 0.8 * errors["ridge-no-side"][0]
    assert (errors["ridge"] < errors["per-task"]).all()


def test_without_points_a_ridge_per_task_predicts_the_training_mean():
    drawn = split(SMALL, 0)
    expected = np.abs(drawn.query.y - drawn.train.y.mean()).mean()
    assert measure(SMALL, METHODS["per-task"].make, 0)[0][0] == pytest.approx(expected, rel=1e-12)


def test_ours_answers_in_the_order_of_the_rows():
    drawn = split(SMALL, 0)
    method = METHODS["ridge"].make()
    method.fit(drawn.train)
    models = method.model.adapt(drawn.supports[2])
    predicted = method.predict(drawn.supports[2], drawn.query)
    for t, task in enumerate(drawn.query):
        rows = slice(*drawn.query.offsets[t : t + 2])
        np.testing.assert_allclose(predicted[rows], models[task.id].predict(task.X))


def test_fixed_effects_are_all_products():
    train = split(SMALL, 0).train
    design = Design(train)
    F, x, s = design.fixed(train), design.inputs(train), design.side(train)
    assert F.shape == (len(x), 9)
    columns = {tuple(column.round(9)) for column in F.T}
    assert {tuple((x[:, i] * s[:, j]).round(9)) for i in range(2) for j in range(2)} <= columns
    assert {tuple(column.round(9)) for column in np.column_stack([x, s]).T} <= columns
    np.testing.assert_allclose([x.mean(0), x.std(0)], [[0, 0], [1, 1]], atol=1e-12)
    assert len(independent(np.column_stack([F, F[:, 1] - F[:, 2], 0 * F[:, 0]]))) == 9


def test_blup_is_the_posterior_mean():
    rng = np.random.default_rng(0)
    Z, r, root = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(3, 3))
    G, s2 = root @ root.T, 0.7
    expected = np.linalg.solve(Z.T @ Z / s2 + np.linalg.inv(G), Z.T @ r / s2)
    mean, covariance = posterior(Z, r, G, s2)
    np.testing.assert_allclose(mean, expected)
    np.testing.assert_allclose(covariance, np.linalg.inv(Z.T @ Z / s2 + np.linalg.inv(G)))
    np.testing.assert_allclose(posterior(Z[:0], r[:0], G, s2)[1], G)


def test_a_gap_is_judged_by_the_paired_difference():
    noise = np.array([0.0, 3.0, -3.0, 1.0])
    errors = {"a": 10 + noise, "b": 10.05 + noise, "c": 10.2 + noise}
    assert gap(errors, "b", errors).within  # half a per cent
    found = gap(errors, "c", errors)
    assert (found.best, found.se) == ("a", pytest.approx(0, abs=1e-12))
    assert not found.within  # two per cent, and the noise is common


def test_the_page_marks_the_best_what_is_within_and_what_did_not_finish():
    splits = [[4.0, 3.0, 2.0, 1.5, 1.0], [4.2, 3.1, 2.0, 1.5, 1.0]]
    better = [[row[0] / 2, *row[1:]] for row in splits]
    near = [[1.001 * value for value in row] for row in splits]
    times = [0.1, 0.1], [1e-3, 1e-3]
    outcomes = {
        "ridge": Outcome(near, *times),
        "pooled": Outcome(better, *times),
        "maml": Outcome([], [], [], "> 60 s"),
    }
    text = page.page({"circle": outcomes}, "")
    assert "| 4 of 5 (80 %) | 75 %" in text
    assert "| circle | 0 | 4.104 | pooled ridge, then ridge per task 2.05 | 100.2 " in text
    assert "on 1 of 1 data sets; the worst is circle: +100.2 %" in text
    ours, pooled, maml = text.splitlines()[-3:]
    assert ours.count("✓") == 4
    assert pooled.count("**") == 10
    assert "> 60 s" in maml


def test_the_picture_of_readme_shows_the_numbers_that_it_prints():
    rng = np.random.default_rng(0)
    found = {name: rng.uniform(8, 80, size=(3, 9)) for name in picture.METHODS}
    (ax,) = picture.draw(found).axes
    for line, (name, values) in zip(ax.lines, found.items(), strict=True):
        assert line.get_label() == name
        np.testing.assert_allclose(line.get_ydata(), values.mean(axis=0))
        assert f"| {name} | {values[:, 0].mean():.1f} ± " in picture.table(found)


def test_outcomes_of_another_run_are_added(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    one, two, new = (
        Outcome([[error] * 5], [1.0], [1.0], squared=[[error] * 5]) for error in (3.0, 4.0, 5.0)
    )
    for folder, kept in (
        (here, {"exam": {"auto": one, "pooled": two}}),
        (there, {"exam": {"auto": new}}),
    ):
        folder.mkdir()
        store.write(kept, folder / store.FILE.name)
    call = ["accuracy", "--data", "--write", "--folder", str(here), "--add", str(there)]
    monkeypatch.setattr(sys, "argv", call)
    __main__.main()
    kept = store.read(here / store.FILE.name)
    assert (kept["exam"]["auto"].errors, kept["exam"]["pooled"].errors) == (
        [[5.0] * 5],
        [[4.0] * 5],
    )
    assert "exam" in (here / "RESULTS.md").read_text()


def test_the_summary_counts_cells_and_orders_methods_by_their_distance():
    def outcome(*rows):
        return Outcome([list(row) for row in rows], [1.0], [1.0])

    sizes = len(PROBLEMS["exercise"].sizes)
    outcomes = {
        "exercise": {
            "auto": outcome([1.0] * sizes, [1.0] * sizes),
            "pooled-ridge": outcome([1.2] * sizes, [1.2] * sizes),
            "per-task": outcome([0.9] + [2.0] * (sizes - 1), [0.9] + [2.0] * (sizes - 1)),
            "lme4": Outcome([], [], [], failure="> 60 s"),
        }
    }
    lines = summary.summary(outcomes, ["validation"]).splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in rows] == ["AutoRegressor", "pooled ridge", "RidgeCV per task"]
    behind = 100 * (1 / 0.9 - 1) / sizes
    assert rows[0][1:3] == [f"{100 * (sizes - 1) / sizes:.0f} %", f"{behind:.1f} %"]
    assert rows[0][4:] == [str(sizes), "1"]
    assert summary.summary(outcomes, ["fresh"]).count("\n") == 1  # a head, and no rows
