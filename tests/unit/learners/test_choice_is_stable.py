"""Ids, orders of rows and tasks, and columns that add nothing do not change what is learned."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import condmeta as cm

LEARNERS = {
    "ridge": cm.ConditionalRidge(),
    "ridge on trees": cm.ConditionalRidge(base="boosting"),
    "logistic": cm.ConditionalLogistic(),
    "erm": cm.ConditionalERMRegressor(),
    "own data": cm.IndependentRegressor(),
    "pooled": cm.PooledRegressor(),
    "pooled classes": cm.PooledClassifier(),
    "auto": cm.AutoRegressor(base=None, shots=(0, 2)),
    "auto on trees": cm.AutoRegressor(shots=(0, 2)),
    "auto classes": cm.AutoClassifier(base=None, shots=(0, 2)),
}


def draw(n_tasks, seed=0):
    """Return tasks of 1 to 9 rows; one input is a small integer, as years are."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), rng.integers(1, 10, size=n_tasks))
    S, X = rng.normal(size=(n_tasks, 2)), rng.normal(size=(len(task), 2))
    X[:, 1] = rng.integers(0, 7, size=len(task))
    w = S @ rng.normal(size=(2, 2)) * 0.5 + 0.5 * rng.normal(size=(n_tasks, 2))
    y = np.einsum("ij,ij->i", X, w[task]) + S[task, 0] + rng.normal(size=len(task))
    return X, y, task, S


def predictions(learner, X, y, task, S, rng=None):
    """Return predictions of all rows and of new tasks; with rng, renamed and in another order."""
    n_tasks, names, rows = len(S), np.arange(len(S)), np.arange(len(y))
    if rng is not None:
        names, rows = rng.permutation(10_000)[:n_tasks], rng.permutation(len(y))
    labels = y > np.median(y) if is_classifier(learner) else y
    side = None
    if "Conditional" in type(learner).__name__:
        side = cm.TaskTable(S, ids=[f"store {name}" for name in names])
    ids = np.array([f"store {name}" for name in names])[task]
    model = clone(learner).fit(X[rows], labels[rows], task=ids[rows], side_info=side)
    ask = model.decision_function if is_classifier(learner) else model.predict
    new = {} if side is None else {"side_info": cm.TaskTable(S[:5], ids=range(5))}
    return np.append(ask(X, task=ids), ask(X[:5], task=np.arange(5), **new))


@pytest.mark.parametrize("n_tasks", [30, 60, 200])
@pytest.mark.parametrize("name", LEARNERS)
def test_names_and_orders_do_not_matter(name, n_tasks):
    if name.endswith("on trees") and n_tasks != 60:
        pytest.skip("one number of tasks is enough")
    problem = draw(n_tasks)
    expected = predictions(LEARNERS[name], *problem)
    rng = np.random.default_rng(1)
    for _ in range(2):
        found = predictions(LEARNERS[name], *problem, rng)
        # Solvers stop at a tolerance, which rounding can move by a step.
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.std(expected))


@pytest.mark.parametrize("n_tasks", [30, 60, 200])
@pytest.mark.parametrize("what", ["a copy", "a multiple", "a constant"])
def test_side_columns_that_add_nothing_do_not_matter(n_tasks, what):
    X, y, task, S = draw(n_tasks)
    more = {"a copy": S[:, 0], "a multiple": -3 * S[:, 0] + 1, "a constant": np.ones(n_tasks)}
    one = predictions(LEARNERS["ridge"], X, y, task, S)
    other = predictions(LEARNERS["ridge"], X, y, task, np.column_stack([S, more[what]]))
    np.testing.assert_allclose(other, one, atol=0.01 * np.std(one))


def test_flights_of_forty_airports_never_choose_the_identity_metric():
    """Their levels differ by far more than their slopes."""
    flights, rng = cm.datasets.load_flights(), np.random.default_rng(0)
    for _ in range(5):
        some = np.sort(rng.permutation(len(flights))[:40])
        assert cm.ConditionalRidge().fit(flights.subset(some)).metric_ != "identity"
