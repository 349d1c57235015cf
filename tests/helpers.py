"""What several tests share: random tasks, the reference tasks D1 and D2, learners."""

from __future__ import annotations

import copy
import inspect
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, is_classifier

import condmeta
from condmeta import TaskTable
from condmeta.engine import compiled_core

native = pytest.mark.skipif(compiled_core() is None, reason="the compiled core was not built")

D1 = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([2, -1, 0.5]), np.array([0.5, 0.25])
D2 = (
    np.array([[1, 0.5], [-0.3, 1], [0.8, -0.6], [0.2, 0.9], [-1, 0.1]]),
    np.array([1.5, 0.2, -0.4, 2, 0.7]),
    np.array([0.3, -0.2]),
)


def draw_task(rng, n, d, loss="absolute"):
    """Return theta, X, y of one random task; labels -1 and +1 for the classification losses."""
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    if loss in ("hinge", "logistic"):
        y = np.where(y > 0, 1.0, -1.0)
    return rng.normal(size=d), X, y


class Problem(NamedTuple):
    """Rows of several tasks in shuffled order, and a side table with one row a task."""

    X: np.ndarray
    y: np.ndarray
    task: np.ndarray
    side: TaskTable

    def of(self, *ids):
        """Return X, y, task of some tasks, their rows in the old order."""
        at = np.isin(self.task, ids)
        return self.X[at], self.y[at], self.task[at]


def draw_square(n_tasks: int, n: int):
    """Return a generator, inputs in a square (N, 2), their tasks (N,), side information (T, 2)."""
    rng = np.random.default_rng(0)
    S = rng.normal(size=(n_tasks, 2))
    task = np.repeat(np.arange(n_tasks), n)
    return rng, rng.uniform(-2, 2, size=(n_tasks * n, 2)), task, S


def labels_for(cls, y) -> np.ndarray:
    """Return numbers y (N,) as labels that a class of learners reads."""
    if is_classifier(cls()):
        return (y > 0).astype(int)
    return np.round(np.exp(np.clip(y, -3, 3))) if cls is condmeta.ConditionalCount else y


def problem_for(cls, **how) -> Problem:
    """Return the tasks of `draw_problem` with labels for a class of learners."""
    problem = draw_problem(**how)
    return problem._replace(y=labels_for(cls, problem.y))


def draw_problem(n_tasks=6, d=3, p=2, seed=0, classes=False) -> Problem:
    """Return ragged tasks "t0", "t1", ... whose weights are linear in their side information."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, size=n_tasks)
    codes = rng.permutation(np.repeat(np.arange(n_tasks), sizes))
    S = rng.normal(size=(n_tasks, p))
    W = S @ rng.normal(size=(p, d)) + rng.normal(size=d)
    X = rng.normal(size=(len(codes), d))
    y = np.einsum("ij,ij->i", X, W[codes]) + 0.3 * rng.normal(size=len(codes))
    ids = np.array([f"t{t}" for t in range(n_tasks)])
    return Problem(X, (y > 0).astype(int) if classes else y, ids[codes], TaskTable(S, ids))


def draw_stores(n: int) -> pd.DataFrame:
    """Return a side table of n stores."""
    rng = np.random.default_rng(1)
    ids = [f"s{t:03d}" for t in range(n)]
    size, kind = rng.normal(size=n), rng.choice(["new", "old"], n)
    return pd.DataFrame({"store": ids, "size": size, "kind": kind})


def public_learners() -> list[type]:
    """Return every public class that is a scikit-learn estimator and learns from rows."""
    public = [getattr(condmeta, name) for name in condmeta.__all__]
    learners = [cls for cls in public if isinstance(cls, type) and issubclass(cls, BaseEstimator)]
    return [cls for cls in learners if "X" in inspect.signature(cls.fit).parameters]


def make(cls, **params):
    """Return a learner with those of the parameters that it has."""
    return cls(
        **{name: params[name] for name in params if name in inspect.signature(cls).parameters}
    )


CACHES = {"index", "_index", "kinds"}  # dictionaries made at the first look-up


def assert_same(a, b, where="object"):
    """Assert that two values are equal in depth, arrays bit for bit."""
    assert type(a) is type(b), f"{where}: {type(a).__name__} became {type(b).__name__}"
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, f"{where}: the type of the array changed"
        assert a.shape == b.shape, f"{where}: the shape changed"
        if a.dtype == object:
            assert_same(a.tolist(), b.tolist(), where)
        else:
            assert a.tobytes() == b.tobytes(), f"{where}: the numbers changed"
    elif isinstance(a, dict):
        keys = [[key for key in part if key not in CACHES] for part in (a, b)]
        assert sorted(map(repr, keys[0])) == sorted(map(repr, keys[1])), f"{where}: other keys"
        for key in keys[0]:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), f"{where}: the length changed"
        for i, parts in enumerate(zip(a, b, strict=True)):
            assert_same(*parts, f"{where}[{i}]")
    elif hasattr(a, "__dict__") and not isinstance(a, type) and not inspect.isroutine(a):
        assert_same(vars(a), vars(b), where)
    else:
        assert a == b or (a != a and b != b), f"{where}: {a!r} became {b!r}"


@contextmanager
def unchanged(learner, *call, **kwargs):
    """Run a block that must leave a fitted learner as it is: state and predictions."""
    before, predicted = copy.deepcopy(learner.__dict__), learner.predict(*call, **kwargs)
    yield
    assert list(learner.__dict__) == list(before)
    assert_same(learner.__dict__, before, type(learner).__name__)
    np.testing.assert_array_equal(learner.predict(*call, **kwargs), predicted)
