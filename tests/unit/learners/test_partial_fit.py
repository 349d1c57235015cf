"""partial_fit: the same map as fit bit for bit, in any chunks, also after save and load."""

import numpy as np
import pytest
from helpers import draw_problem, unchanged

import condmeta
from condmeta import ConditionalSGDClassifier, ConditionalSGDRegressor, TaskSet
from condmeta.errors import DataError, DivergenceError
from condmeta.feature_maps import Identity, MeanInput, MeanInputOutput

PROBLEM = draw_problem(n_tasks=9, seed=2)
X, Y, TASK, SIDE = PROBLEM
ORDER = list(dict.fromkeys(TASK.tolist()))  # tasks in the order of their first row
MAPS = {"Identity": Identity(), "MeanInput": MeanInput(), "None": None}
CHUNKS = [[1] * 9, [2, 3, 4], [8, 1]]
ROW = [0.5, -1.0]


def stream(learner, chunks, y=Y, start=0):
    """Feed the tasks to partial_fit, so many at a time."""
    for size in chunks:
        some = ORDER[start : start + size]
        rows = np.isin(TASK, some)
        side = SIDE.take(some) if isinstance(learner.feature_map, Identity) else None
        assert learner.partial_fit(X[rows], y[rows], task=TASK[rows], side_info=side) is learner
        start += size
    return learner


def whole(learner, y=Y):
    side = SIDE if isinstance(learner.feature_map, Identity) else None
    return learner.fit(X, y, task=TASK, side_info=side)


def assert_same_map(one, two):
    np.testing.assert_array_equal(one.M_, two.M_)
    np.testing.assert_array_equal(one.b_, two.b_)
    np.testing.assert_array_equal(one.theta_mean_, two.theta_mean_)
    if isinstance(one.feature_map, Identity):
        np.testing.assert_array_equal(one.theta_for(SIDE), two.theta_for(SIDE))
        np.testing.assert_array_equal(one.theta_for(ROW), two.theta_for(ROW))
    assert one.n_tasks_ == two.n_tasks_ == 9


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize("scale", ["none", "rows"])
@pytest.mark.parametrize("fmap", MAPS)
def test_any_chunks_are_one_fit(engine, chunks, inner, scale, fmap):
    params = {"inner": inner, "scale": scale, "lam": 0.3}
    one = whole(ConditionalSGDRegressor(MAPS[fmap], **params))
    assert_same_map(stream(ConditionalSGDRegressor(MAPS[fmap], **params), chunks), one)


@pytest.mark.parametrize(
    "params",
    [
        {"averaging": "linear"},
        {"averaging": "last"},
        {"gradient_at": "average"},
        {"loss": "squared", "lam": 5.0},
        {"conditioning": "split"},
    ],
    ids=str,
)
@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize("fmap", ["Identity", "MeanInput"])
def test_every_way_of_averaging(engine, params, inner, fmap):
    params = {"lam": 0.3, "inner": inner} | params
    one = whole(ConditionalSGDRegressor(MAPS[fmap], **params))
    assert_same_map(stream(ConditionalSGDRegressor(MAPS[fmap], **params), [4, 1, 4]), one)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_classifier(engine, loss):
    y = np.where(Y > 0, "yes", "no")
    one = whole(ConditionalSGDClassifier(Identity(), loss=loss), y)
    two = ConditionalSGDClassifier(Identity(), loss=loss)
    rows = ORDER[0] == TASK
    two.partial_fit(X[rows], y[rows], task=TASK[rows], side_info=SIDE, classes=["yes", "no"])
    assert_same_map(stream(two, [3, 5], y, start=1), one)
    np.testing.assert_array_equal(two.classes_, ["no", "yes"])


def test_classes_of_the_first_call():
    learner = ConditionalSGDClassifier()
    with pytest.raises(DataError, match=r"single class.*In partial_fit give both by classes="):
        learner.partial_fit(X[:2], [1, 1], task=["a", "a"])
    assert not learner.__sklearn_is_fitted__()
    assert vars(learner) == vars(ConditionalSGDClassifier())
    learner.partial_fit(X[:2], [1, 1], task=["a", "a"], classes=[0, 1])
    learner.partial_fit(X[2:4], [0, 0], task=["b", "b"])
    with pytest.raises(DataError, match=r"labels \[2\] that are not classes: \[0, 1\]"):
        learner.partial_fit(X[4:6], [0, 2], task=["c", "c"])
    assert learner.n_tasks_ == 2
    with pytest.raises(DataError, match="ConditionalSGDRegressor has no classes"):
        ConditionalSGDRegressor().partial_fit(X[:2], Y[:2], classes=[0, 1])


def test_nameless_tasks_one_a_call():
    one, two = ConditionalSGDRegressor(), ConditionalSGDRegressor()
    for task in ORDER:
        one.partial_fit(X[task == TASK], Y[task == TASK])
    assert_same_map(one, whole(two))


def test_task_sets():
    tasks = TaskSet.from_arrays(X, Y, TASK, SIDE)
    one = ConditionalSGDRegressor(Identity())
    assert_same_map(one.partial_fit(tasks[:5]).partial_fit(tasks[5:]), whole(
        ConditionalSGDRegressor(Identity())))  # fmt: skip


def test_no_task_models_are_kept():
    learner = stream(ConditionalSGDRegressor(Identity()), [9])
    with pytest.raises(DataError, match="keep_tasks=True"):
        learner.coef_frame()
    with pytest.raises(DataError, match="1 task is missing from side_info: 't0'"):
        learner.predict(X[:1], task=["t0"])
    tau = learner.predict(X, task=TASK, side_info=SIDE)
    codes = [SIDE.ids.tolist().index(task) for task in TASK]
    np.testing.assert_allclose(tau, np.einsum("ij,ij->i", X, learner.theta_for(SIDE)[codes]))


@pytest.mark.parametrize("fmap", MAPS)
@pytest.mark.parametrize("flags", [{}, {"resume": True}, {"tasks": False}], ids=str)
def test_resumes_after_save_and_load(engine, tmp_path, fmap, flags):
    one = whole(ConditionalSGDRegressor(MAPS[fmap], averaging="linear"))
    two = stream(ConditionalSGDRegressor(MAPS[fmap], averaging="linear"), [4])
    two.save(tmp_path / "half.condmeta", **flags)
    assert_same_map(stream(condmeta.load(tmp_path / "half.condmeta"), [3, 2], start=4), one)


def test_goes_on_after_fit():
    rows = np.isin(TASK, ORDER[:4])
    learner = ConditionalSGDRegressor(Identity())
    learner.fit(X[rows], Y[rows], task=TASK[rows], side_info=SIDE.take(ORDER[:4]))
    kept = learner.predict(X[rows], task=TASK[rows])
    assert_same_map(stream(learner, [5], start=4), whole(ConditionalSGDRegressor(Identity())))
    np.testing.assert_array_equal(learner.predict(X[rows], task=TASK[rows]), kept)


SEEN = r"was seen before \(1 such tasks in this call\)\..*to add points to a known task use update"


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("saved", [True, False])
def test_seen_task_is_an_error_that_names_update(tmp_path, keep, saved):
    by_fit = whole(ConditionalSGDRegressor(Identity(), keep_tasks=keep))
    by_stream = stream(ConditionalSGDRegressor(Identity(), keep_tasks=keep), [9])
    for learner in (by_fit, by_stream):
        if saved:
            learner.save(tmp_path / "model.condmeta")
            learner = condmeta.load(tmp_path / "model.condmeta")
        with (
            unchanged(learner, X, task=TASK, side_info=SIDE),
            pytest.raises(DataError, match="Task 't3' " + SEEN),
        ):
            learner.partial_fit(X[:2], Y[:2], task=["t3", "new"], side_info={
                "t3": ROW, "new": ROW})  # fmt: skip
        learner.partial_fit(X[:2], Y[:2], task=["new", "new"], side_info={"new": ROW})
        with pytest.raises(DataError, match="Task 'new' " + SEEN):
            learner.partial_fit(X[:2], Y[:2], task=["new", "new"], side_info={"new": ROW})


def test_encodings_are_frozen_at_the_first_call():
    learner = ConditionalSGDRegressor(fit_intercept=True, scale="standard")
    stream_side = SIDE.take(ORDER[:4])
    rows = np.isin(TASK, ORDER[:4])
    learner.partial_fit(X[rows], Y[rows], task=TASK[rows], side_info=stream_side)
    before = learner.y_offset_, learner.fitted_.scales.x_scale.copy()
    rows = np.isin(TASK, ORDER[4:])
    learner.partial_fit(9 * X[rows], Y[rows] + 50, task=TASK[rows], side_info=SIDE)
    assert learner.y_offset_ == before[0]
    np.testing.assert_array_equal(learner.fitted_.scales.x_scale, before[1])


@pytest.mark.parametrize("inner", ["online", "batch"])
def test_a_task_whose_targets_are_zero_does_not_diverge(engine, inner):
    y = np.where(ORDER[5] == TASK, 0.0, Y)
    params = {"loss": "squared", "inner": inner, "lam": 5.0}
    one = whole(ConditionalSGDRegressor(Identity(), **params), y)
    assert_same_map(stream(ConditionalSGDRegressor(Identity(), **params), [1] * 9, y), one)


def test_steps_that_diverge_are_an_error():
    learner = stream(ConditionalSGDRegressor(None, loss="squared", inner="batch"), [2])
    learner.set_params(meta_step=1e4)
    with (
        unchanged(learner, X, task=TASK),
        pytest.raises(
            DivergenceError,
            match=r"meta-steps diverge at meta_step=10000\. Use a smaller meta_step",
        ),
    ):
        stream(learner, [7], start=2)


FAILURES = {
    "NaN": ({"X": np.full((2, 3), np.nan)}, DataError, "Task 'new' has NaN in feature 0 of X"),
    "lengths": ({"y": Y[:1]}, DataError, "X has 2 rows and y has 1"),
    "no side row": ({"side_info": None}, DataError, "missing from side_info: 'new'"),
    "divergence": ({"X": np.full((2, 3), 1e5)}, DivergenceError, "Task 'new': The online"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_changes_nothing(engine, case):
    learner = stream(ConditionalSGDRegressor(Identity(), loss="squared", lam=5.0), [9])
    change, error, sentence = FAILURES[case]
    call = {"X": X[:2], "y": Y[:2], "task": ["new", "new"], "side_info": {"new": ROW}} | change
    with (
        unchanged(learner, X, task=TASK, side_info=SIDE),
        pytest.raises(error, match=sentence),
    ):
        learner.partial_fit(**call)
    learner.partial_fit(X[:2], Y[:2], task=["new", "new"], side_info={"new": ROW})
    assert learner.n_tasks_ == 10


@pytest.mark.parametrize("fmap", [MeanInputOutput(), None])
def test_failure_of_the_first_call_leaves_an_unfitted_learner(fmap):
    learner = ConditionalSGDRegressor(fmap)
    with pytest.raises(DataError, match="NaN"):
        learner.partial_fit(np.full((2, 3), np.nan), Y[:2])
    assert vars(learner) == vars(ConditionalSGDRegressor(fmap))
