"""Learners that need rows, fitted to parts: the prior of a sample, then `update` with the rest."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import condmeta as cm
from condmeta.errors import DataError, ReadingNote
from condmeta.learners import task_sample
from condmeta.learners.sampled import fit_sampled, needs_rows
from condmeta.learners.task_sample import keyed_tasks

T, D = 90, 2


def draw(kind, seed=0, weighted=False):
    """Return shuffled tasks with labels of a kind, and the side table; 5 tasks have no rows."""
    rng = np.random.default_rng(seed)
    task = rng.permutation(np.repeat(np.arange(T), rng.integers(2, 9, T)))
    s, X = rng.normal(size=(T + 5, 1)), rng.normal(size=(len(task), D))
    f = (X * (s[task] + 0.5 * rng.normal(size=(T, D))[task])).sum(axis=1)
    weight, y = None, f + rng.normal(size=len(f))
    if kind == "class":
        y = (y > 0).astype(float)
    if kind == "ordered":
        y = np.digitize(y, [-1.0, 1.0]).astype(float)
    if kind == "count":
        y = rng.poisson(np.exp(np.clip(f, -3, 2))).astype(float)
    if weighted:
        weight = rng.integers(0, 3, len(task)).astype(float)
        weight[np.isin(task, [3, 4])] = 0.0
    side = cm.TaskTable({"size": s[:, 0]}, ids=[f"t{t}" for t in range(T + 5)])
    return cm.TaskSet.from_arrays(X, y, task=[f"t{t}" for t in task], weight=weight), side


class InMemory:
    """Parts that are sets of tasks."""

    def __init__(self, parts):
        self.parts = parts

    def map(self, function, each=()):
        each = list(each) or [()] * len(self.parts)
        return [function(tasks, *more) for tasks, more in zip(self.parts, each, strict=True)]


def parts_of(tasks, count):
    group = np.arange(len(tasks)) % count
    return [tasks.subset(np.flatnonzero(group == part)) for part in range(count)]


def fitted_values(learner):
    return getattr(learner.fitted_, "parts", [learner.fitted_])


def reference(learner, parts, side, n):
    """Fit to the n tasks with the smallest keys; then `update` with the rest of each part."""
    found = [keyed_tasks(part) for part in parts]
    keys = np.concatenate([one.keys[one.sizes > 0] for one in found])
    limit = np.sort(keys)[n - 1]
    sample = task_sample.joined([task_sample.sample_of(part, limit) for part in parts])
    assert len(sample) == n
    learner.fit(task_sample.with_side(sample, side))
    for part, one in zip(parts, found, strict=True):
        order = dict(zip(one.ids, one.keys, strict=True))
        rest = [task for task in sorted(order, key=order.get)
                if order[task] > limit and one.sizes[one.ids == task] > 0]  # fmt: skip
        some = part.subset([part.position(task) for task in rest])
        learner.update(task_sample.with_side(some, side))
    return learner


LEARNERS = {
    "class": lambda: cm.ConditionalLogistic(metric="diagonal", kappa=1.0),
    "classes": lambda: cm.ConditionalLogistic(metric="identity", kappa=1.0),
    "count": lambda: cm.ConditionalCount(metric="diagonal", kappa=1.0),
    "ordered": lambda: cm.ConditionalOrdinal(metric="diagonal", kappa=1.0),
    "base": lambda: cm.ConditionalRidge(
        base=RandomForestRegressor(5, random_state=0), metric="diagonal", kappa=1.0
    ),
    "y_transform": lambda: cm.ConditionalRidge(y_transform="yeo-johnson", kappa=1.0),
}
KINDS = {"classes": "ordered", "base": "number", "y_transform": "number"}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("count", [1, 4])
def test_models_are_those_of_the_sample_and_update(name, count, tmp_path):
    tasks, side = draw(KINDS.get(name, name))
    parts = parts_of(tasks, count)
    found = fit_sampled(LEARNERS[name](), InMemory(parts), tmp_path, lambda: side, 40)
    wanted = reference(LEARNERS[name](), parts, side, 40)
    for one, other in zip(fitted_values(found), fitted_values(wanted), strict=True):
        at = one.tasks.positions(other.tasks.ids.tolist())
        assert len(other.tasks) == 90
        assert len(one.tasks) == 95
        for field in ("sizes", "theta", "coef", "sides"):
            left, right = (getattr(store, field) for store in (one.tasks, other.tasks))
            if right is not None:
                np.testing.assert_array_equal(left[at], right)
        np.testing.assert_array_equal(one.tau.M, other.tau.M)
    rows, ids = np.random.default_rng(1).normal(size=(95, D)), [f"t{t}" for t in range(95)]
    np.testing.assert_array_equal(
        found.predict(rows, task=ids, side_info=side),
        wanted.predict(rows, task=ids, side_info=side),
    )
    empty = ["t90", "t94"]  # known by their side rows alone
    np.testing.assert_array_equal(
        found.predict(rows[:2], task=empty), wanted.predict(rows[:2], task=empty, side_info=side)
    )
    assert found.n_tasks_ == 40
    with pytest.raises(DataError, match="without the statistics that update needs"):
        found.update(rows[:1], np.zeros(1), task=["t1"])


def test_the_order_of_parts_and_tasks_does_not_matter(tmp_path):
    tasks, side = draw("class")
    parts = parts_of(tasks, 3)
    turned = [part.subset(np.arange(len(part))[::-1]) for part in parts[::-1]]
    one, other = (
        fit_sampled(LEARNERS["class"](), InMemory(some), tmp_path, lambda: side, 40).fitted_
        for some in (parts, turned)
    )
    at = other.tasks.positions(one.tasks.ids.tolist())
    np.testing.assert_array_equal(one.tasks.coef, other.tasks.coef[at])


def test_rows_of_weight_zero(tmp_path):
    tasks, side = draw("class", weighted=True)
    parts = parts_of(tasks, 3)
    found = fit_sampled(LEARNERS["class"](), InMemory(parts), tmp_path, lambda: side, 40)
    wanted = reference(LEARNERS["class"](), parts, side, 40)
    one, other = found.fitted_.tasks, wanted.fitted_.tasks
    assert one.sizes[one.positions(["t3", "t4"])].tolist() == [0, 0]
    np.testing.assert_array_equal(one.coef[one.positions(other.ids.tolist())], other.coef)


def test_all_tasks_are_the_sample_if_they_are_few(tmp_path, recwarn):
    tasks, side = draw("class")
    found = fit_sampled(LEARNERS["class"](), InMemory(parts_of(tasks, 3)), tmp_path, lambda: side)
    assert found.n_tasks_ == T
    assert not [w for w in recwarn if "prior_tasks" in str(w.message)]
    whole = LEARNERS["class"]().fit(tasks.with_side(side))
    at = found.fitted_.tasks.positions(whole.fitted_.tasks.ids.tolist())
    np.testing.assert_allclose(found.fitted_.tasks.coef[at], whole.fitted_.tasks.coef, atol=1e-6)


def test_a_sample_is_bounded_by_its_rows(tmp_path, monkeypatch):
    tasks, side = draw("class")
    monkeypatch.setattr(task_sample, "ROWS", 200)
    with pytest.warns(ReadingNote, match=r"its prior from \d\d of 90 tasks; prior_tasks= sets"):
        found = fit_sampled(
            LEARNERS["class"](), InMemory(parts_of(tasks, 3)), tmp_path, lambda: side
        )
    store = found.fitted_.tasks
    assert 200 - 8 < store.sizes[: found.n_tasks_].sum() <= 200


def test_without_models_of_tasks(tmp_path):
    tasks, side = draw("class")
    learner = LEARNERS["class"]().set_params(keep_tasks=False)
    fit_sampled(learner, InMemory(parts_of(tasks, 2)), tmp_path, lambda: side, 40)
    assert learner.fitted_.tasks is None


def test_which_learners_need_rows():
    assert not needs_rows(cm.ConditionalRidge())
    assert needs_rows(cm.ConditionalRidge(base="boosting"))
    with pytest.raises(DataError, match=r"PooledRegressor needs all rows at once\. Use Cond"):
        needs_rows(cm.PooledRegressor())
