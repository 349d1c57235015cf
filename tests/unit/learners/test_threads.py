"""Several threads that change one learner: no update is lost, and readers see whole values."""

import copy
import gc
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import condmeta as cm
from condmeta.learners import writing

T = 30
RNG = np.random.default_rng(3)
TASK = np.repeat(np.arange(T), 6)
X = RNG.normal(size=(len(TASK), 2))
Y = X[:, 0] * RNG.normal(size=T)[TASK] + RNG.normal(size=len(TASK))


def in_threads(functions):
    """Run functions at the same time, and raise what one of them raised."""
    errors, start = [], threading.Barrier(len(functions))

    def run(function):
        start.wait()
        try:
            function()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


LEARNERS = [
    cm.ConditionalRidge(),
    cm.ConditionalSGDRegressor(),
    cm.IndependentRegressor(lam=1.0),
    cm.AutoRegressor(base=None, shots=(0, 2)),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda it: type(it).__name__)
def test_no_update_is_lost_and_readers_are_never_disturbed(learner):
    learner.fit(X, Y, task=TASK)
    want = copy.deepcopy(learner)
    stop = threading.Event()

    def write(task):
        for i in range(20):
            learner.update(X[i : i + 1], Y[i : i + 1], task=[task])
            with pytest.raises(ValueError, match="NaN"):
                learner.update([[np.nan, 1.0]], [1.0], task=[task])

    def read():
        while not stop.is_set():
            assert np.isfinite(learner.predict(X[:3], task=TASK[:3])).all()

    def write_all():
        try:
            in_threads([lambda task=task: write(task) for task in range(4)])
        finally:
            stop.set()

    in_threads([write_all, read, read])
    for task in range(4):
        want.update(X[:20], Y[:20], task=np.full(20, task))
    np.testing.assert_array_equal(learner.n_points(X, task=TASK), want.n_points(X, task=TASK))
    difference = learner.predict(X, task=TASK) - want.predict(X, task=TASK)
    np.testing.assert_allclose(difference, 0, atol=1e-8)


@pytest.mark.parametrize("cls", [cm.ConditionalRidge, cm.ConditionalSGDRegressor])
def test_no_partial_fit_is_lost(cls):
    learner = cls().partial_fit(X[TASK < 10], Y[TASK < 10], task=TASK[TASK < 10])

    def write(tasks):
        for task in tasks:
            learner.partial_fit(X[task == TASK], Y[task == TASK], task=TASK[task == TASK])

    def read():  # ridge learns at its first use, which must not undo a partial_fit
        for _ in range(20):
            learner.adapt(X[:2], Y[:2])

    parts = np.array_split(np.arange(10, T), 3)
    in_threads([*(lambda tasks=tasks: write(tasks) for tasks in parts), read])
    assert learner.n_tasks_ == T


def test_predictions_and_deviations_come_from_one_value():
    """A deviation that is read after an update would be smaller than that of the prediction."""
    learner = cm.ConditionalRidge(noise="shared").fit(X, Y, task=TASK)
    values, stop = {}, threading.Event()

    def key(found):
        return tuple(np.concatenate(found).round(12))

    values[key(learner.predict(X[:1], task=[0], return_std=True))] = True
    seen = []

    def read():
        while not stop.is_set():
            seen.append(key(learner.predict(X[:1], task=[0], return_std=True)))

    def write():
        for i in range(60):
            learner.update(X[i : i + 1], Y[i : i + 1], task=[0])
            values[key(learner.predict(X[:1], task=[0], return_std=True))] = True
        stop.set()

    in_threads([write, read])
    assert set(seen) <= set(values)


def test_locks_do_not_hinder_copies_and_pickles_and_go_with_their_learner():
    learner = cm.ConditionalRidge().fit(X, Y, task=TASK)
    learner.update(X[:1], Y[:1], task=[0])
    for again in (pickle.loads(pickle.dumps(learner)), copy.copy(learner), copy.deepcopy(learner)):
        again.update(X[:1], Y[:1], task=[0])
        assert again.n_points(X[:1], task=[0]) == 8
    assert not clone(learner).__sklearn_is_fitted__()
    known = len(writing._locks)
    del learner, again
    gc.collect()
    assert len(writing._locks) < known


def test_table_models_count_all_rows():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(task=TASK, y=Y)
    model = cm.TableModel(task="task", target="y").fit(frame)

    def write():
        for i in range(15):
            model.update(frame[i : i + 1])

    in_threads([write] * 4)
    assert model.n_rows_ == len(frame) + 60
