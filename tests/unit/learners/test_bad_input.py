"""Bad input: the sentence names task, column and remedy, and nothing is changed."""

import numpy as np
import pandas as pd
import pytest
from helpers import draw_problem, unchanged
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from condmeta import ConditionalSGDClassifier, ConditionalSGDRegressor, TaskSet, TaskTable
from condmeta.errors import DataError, DivergenceError
from condmeta.feature_maps import Identity

X, Y, TASK, SIDE = draw_problem()
ROWS = SIDE.numeric()
FRAME = pd.DataFrame(X, columns=["age", "size", "price"])
NUMBERED = np.array([17 + int(task[1:]) for task in TASK])
BAD_ROW = 3
BAD_TASK = TASK[BAD_ROW]


def put(array, at, value):
    """Return a copy with one value changed, of objects if the value needs it."""
    kind = array.dtype if isinstance(value, float) else object
    copy = np.array(array, dtype=kind)
    copy[at] = value
    return copy


def table(values, ids=SIDE.ids):
    return TaskTable(values, ids)


def refuses(learner, call, sentence, error=DataError, **predict):
    """Assert that a call says this and leaves the fitted learner as it was."""
    predict = predict or {"X": X, "task": TASK}
    with unchanged(learner, **predict), pytest.raises(error, match=sentence):
        call(learner)


@pytest.fixture
def learner():
    """A learner fitted on good data, which a failed call must leave alone."""
    return ConditionalSGDRegressor(Identity()).fit(X, Y, task=TASK, side_info=SIDE)


def fit(X=X, y=Y, task=TASK, side=SIDE):
    return lambda learner: learner.fit(X, y, task=task, side_info=side)


FIT_CASES = {
    "y too short": (fit(y=Y[:-1]), r"X has 27 rows and y has 26: they must be equally long"),
    "task too short": (fit(task=TASK[:-1]), r"X has 27 rows and task has 26"),
    "NaN in X": (
        fit(X=put(X, (BAD_ROW, 1), np.nan)),
        rf"Task '{BAD_TASK}' has NaN in feature 1 of X: fill it or drop the row",
    ),
    "infinity in X": (
        fit(X=put(X, (BAD_ROW, 1), -np.inf)),
        rf"Task '{BAD_TASK}' has infinity in feature 1 of X: fill it or drop",
    ),
    "NaN in a frame": (
        fit(X=FRAME.assign(size=put(X[:, 1], BAD_ROW, np.nan))),
        rf"Task '{BAD_TASK}' has NaN in column 'size' of X: fill it or drop",
    ),
    "NaN in y": (
        fit(y=put(Y, BAD_ROW, np.nan)),
        rf"Task '{BAD_TASK}' has NaN in y: fill it or drop the row",
    ),
    "infinity in y": (fit(y=put(Y, BAD_ROW, np.inf)), rf"Task '{BAD_TASK}' has infinity in y"),
    "NaN in side": (
        fit(side=table(put(ROWS, (2, 1), np.nan))),
        r"Task 't2' has NaN .* in side column 's1': feature_map=\"auto\" handles gaps",
    ),
    "infinity in side": (
        fit(side=table(put(ROWS, (2, 1), np.inf))),
        r"Task 't2' has infinity in side column 's1'",
    ),
    "no side table": (fit(side=None), r"Identity reads side information: pass side_info="),
    "side without task": (
        fit(task=None),
        r"without task=, so the task of each row of X is unknown. Pass task=",
    ),
    "side without key": (fit(side=ROWS), r"which task each row belongs to.*TaskTable\(values"),
    "tasks missing from side": (
        fit(side=table(ROWS[:1], ["t1"])),
        r"5 tasks are missing from side_info: 't0', 't2', 't3', 't4', 't5'\. Add the missing rows "
        r"to side_info, or set missing_side='mean'",
    ),
    "duplicate keys": (
        fit(side=pd.DataFrame({"s0": [1.0, 2.0, 3.0]}, index=["t0", "t0", "t1"])),
        r"occur more than once in the side table: 't0'\. Keep one row per task",
    ),
    "17 and '17'": (
        fit(task=NUMBERED, side=table(ROWS, [str(17 + t) for t in range(6)])),
        r"Ids 17 \(int\) and '17' \(str\) do not match: convert one of them",
    ),
    "text in an array": (
        fit(X=put(X, (BAD_ROW, 1), "red")),
        r"Feature 1 of X holds text \('red', \.\.\.\); X must be numeric: encode it",
    ),
    "text in a list": (
        fit(X=put(X, (BAD_ROW, 1), "red").tolist()),
        r"Feature 1 of X holds text \('red', \.\.\.\)",
    ),
    "numbers as text": (fit(X=X.astype(str)), r"Feature 0 of X holds text"),
    "text in a frame": (
        fit(X=FRAME.assign(size="red")),
        r"Column 'size' holds text \('red', \.\.\.\); X must be numeric: encode it, or take "
        r"TableModel, which reads text; or move it to the side table, or",
    ),
    "text in y": (fit(y=put(Y, 1, "high")), r"y holds text \('high', \.\.\.\); y must be numeric"),
    "complex X": (fit(X=X + 1j), r"Feature 0 of X holds complex numbers; X must be real"),
    "complex y": (fit(y=Y + 1j), r"y holds complex numbers; y must be real"),
    "object in y": (fit(y=put(Y, 1, {})), r"y holds objects \(of type dict\); y must be numeric"),
    "no y": (fit(y=None), r"ConditionalSGDRegressor requires y to be passed"),
    "no rows in a frame": (fit(FRAME[:0], Y[:0], TASK[:0]), r"There are no rows"),
    "no tasks": (lambda m: m.fit(TaskSet.from_arrays(X, Y, TASK)[:0]), r"There are no rows"),
    "missing id": (
        fit(task=put(TASK, 2, None)),
        r"task ids have 1 missing value among 27 rows \(row 2\): give every row an id",
    ),
    "y beside a TaskSet": (
        lambda m: m.fit(TaskSet.from_arrays(X, Y, TASK), Y),
        r"A TaskSet carries y and the task ids: pass it alone",
    ),
    "TaskSet without y": (
        lambda m: m.fit(TaskSet.from_arrays(X, None, TASK)),
        r"The TaskSet has no y\. Make it with a target",
    ),
    "conditioning points": (
        fit(side=TaskSet.from_arrays(X, Y, TASK)),
        r"side_info holds conditioning points, but no feature map reads points\. Use MeanInput",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FIT_CASES)
def test_fit(learner, case):
    refuses(learner, *FIT_CASES[case])


OTHER_ERRORS = {
    "object in X": (
        fit(X=put(X, (BAD_ROW, 1), {})),
        r"Feature 1 of X holds objects",
        TypeError,
    ),
    "no rows": (fit(X[:0], Y[:0], TASK[:0]), r"0 sample\(s\)", ValueError),
    "no columns": (fit(X[:, :0]), r"0 feature\(s\)", ValueError),
    "y of two columns": (fit(y=np.c_[Y, Y]), r"y should be a 1d array", ValueError),
}


@pytest.mark.parametrize("case", OTHER_ERRORS)
def test_fit_in_the_words_of_scikit_learn(learner, case):
    refuses(learner, *OTHER_ERRORS[case])


def test_gap_for_a_foreign_transformer_names_task_and_column():
    side = table(put(ROWS, (2, 1), np.nan))
    with pytest.raises(DataError, match=r"Task 't2' has NaN .* in side column 's1'"):
        ConditionalSGDRegressor(StandardScaler()).fit(X, Y, task=TASK, side_info=side)


# -- columns of a frame ----------------------------------------------------------------------------

WITH_IDS = FRAME.assign(store=TASK, area=np.arange(len(Y)))
BY_COLUMN = ConditionalSGDRegressor(task_column="store", side_columns=["area"])


@pytest.mark.parametrize(
    ("frame", "call", "sentence"),
    [
        (WITH_IDS, {}, r"Side column 'area' varies within task 't1' .*Use it as a feature instead"),
        (WITH_IDS.drop(columns="store"), {}, r"Column 'store' \(task\) is not in the table"),
        (WITH_IDS.drop(columns="area"), {}, r"Column 'area' \(side_columns\) is not in the table"),
        (X, {}, r"so X must be a DataFrame .*set_output\(transform='pandas'\)"),
        (WITH_IDS, {"task": TASK}, r"by task= or by task_column=, not by both"),
        (WITH_IDS.assign(area=1.0), {"side_info": SIDE}, r"side_info= or by side_columns="),
    ],
)  # fmt: skip
def test_columns(frame, call, sentence):
    good = WITH_IDS.assign(area=SIDE.take(TASK.tolist()).data["s0"])
    learner = ConditionalSGDRegressor(**BY_COLUMN.get_params()).fit(good, Y)
    refuses(learner, lambda m: m.fit(frame, Y, **call), sentence, X=good)


# -- a fitted learner ------------------------------------------------------------------------------

NARROW = X[:, :2]
AFTER_FIT = {
    "predict without task": (
        lambda m: m.predict(X),
        r"The model knows 6 tasks: say which one each row belongs to by task=, or by task_column=",
    ),
    "update without task": (lambda m: m.update(X, Y), r"The model knows 6 tasks: .*task="),
    "predict a new task": (
        lambda m: m.predict(X[:2], task=["t0", "new"]),
        r"1 task is missing from side_info: 'new'\. Add the missing rows to side_info, or set miss",
    ),
    "adapt without side": (lambda m: m.adapt(X[:2], Y[:2]), r"Give its row as side_info"),
    "missing id": (lambda m: m.predict(X[:2], task=["t0", None]), r"1 missing value among 2 rows"),
    "task of other length": (
        lambda m: m.predict(X[:3], task=["t0"]),
        r"X has 3 rows and task has 1 id",
    ),
    "NaN in predict": (
        lambda m: m.predict(put(X, (BAD_ROW, 1), np.nan), task=TASK),
        rf"Task '{BAD_TASK}' has NaN in feature 1 of X",
    ),
    "NaN in adapt": (
        lambda m: m.adapt(put(X, (3, 1), np.nan), Y, side_info=[1.0, 2.0]),
        r"Row 3 has NaN in feature 1 of X: fill it or drop the row",
    ),
    "NaN in update": (
        lambda m: m.update(X, put(Y, BAD_ROW, np.nan), task=TASK),
        rf"Task '{BAD_TASK}' has NaN in y",
    ),
    "text in predict": (
        lambda m: m.predict(put(X, (3, 2), "red"), task=TASK),
        r"Feature 2 of X holds text",
    ),
    "lengths in adapt": (lambda m: m.adapt(X[:3], Y[:2], side_info=[1.0, 2.0]), r"3 rows and y"),
    "no y in adapt": (lambda m: m.adapt(X[:3], side_info=[1.0, 2.0]), r"requires y to be passed"),
    "short side row": (
        lambda m: m.predict(X[:1], side_info=[1.0]),
        r"The side row has 1 value, expected 2: 's0', 's1'",
    ),
    "other side columns": (
        lambda m: m.adapt(X[:1], Y[:1], side_info={"area": 1.0}),
        r"The side information lacks 's0', 's1' and has the unknown 'area'",
    ),
    "features of a TaskSet": (
        lambda m: m.predict(TaskSet.from_arrays(NARROW, Y, TASK)),
        r"X has 2 features, but ConditionalSGDRegressor is expecting 3",
    ),
    "task beside a TaskSet": (
        lambda m: m.predict(TaskSet.from_arrays(X, Y, TASK), task=TASK),
        r"A TaskSet carries y and the task ids",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", AFTER_FIT)
def test_after_fit(learner, case):
    refuses(learner, *AFTER_FIT[case])


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.predict(NARROW, task=TASK),
        lambda m: m.adapt(NARROW, Y, side_info=[1.0, 2.0]),
        lambda m: m.adapt(NARROW, Y, task=TASK, side_info=SIDE),
        lambda m: m.update(NARROW, Y, task=TASK),
        lambda m: m.partial_fit(NARROW, Y, task=NUMBERED, side_info=SIDE),
    ],
)
def test_wrong_number_of_features(learner, call):
    sentence = "X has 2 features, but ConditionalSGDRegressor is expecting 3 features"
    refuses(learner, call, sentence, ValueError)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, X: m.predict(X, task=TASK),
        lambda m, X: m.adapt(X, Y),
        lambda m, X: m.adapt(X, Y, task=TASK),
        lambda m, X: m.update(X, Y, task=TASK),
        lambda m, X: m.adapt(FRAME, Y).predict(X),
        lambda m, X: m.adapt(FRAME, Y, task=TASK).predict(X, task=TASK),
    ],
)
@pytest.mark.parametrize(
    "frame", [FRAME[["size", "age", "price"]], FRAME.rename(columns={"age": "old"})]
)
def test_wrong_names_of_features(call, frame):
    learner = ConditionalSGDRegressor().fit(FRAME, Y, task=TASK)
    with unchanged(learner, FRAME, task=TASK), pytest.raises(ValueError, match="feature names"):
        call(learner, frame)


@pytest.mark.parametrize("method", ["predict", "update"])
def test_ids_that_differ_by_type_alone_are_not_new_tasks(method):
    learner = ConditionalSGDRegressor().fit(X, Y, task=NUMBERED)
    call = (X[:1],) if method == "predict" else (X[:1], Y[:1])
    sentence = r"Ids '17' \(str\) and 17 \(int\) do not match: convert one of them"
    refuses(learner, lambda m: getattr(m, method)(*call, task=["17"]), sentence, X=X, task=NUMBERED)
    assert learner.predict(X[:1], task=["elsewhere"]).shape == (1,)


# -- a task's own model ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: m.predict(X[0]), r"X must be a 2-D table"),
        (lambda m: m.predict(NARROW), r"X must have shape \(rows, 3\).*Got shape \(27, 2\)"),
        (lambda m: m.predict(put(X, (3, 1), "red")), r"Feature 1 of X holds text"),
        (lambda m: m.predict(X + 1j), r"complex numbers; X must be real"),
        (lambda m: m.predict(put(X, (3, 1), np.inf)), r"Row 3 has infinity in feature 1 of X"),
        (lambda m: m.update(X[:2], [1.0, np.nan]), r"Row 1 has NaN in y"),
        (lambda m: m.update(X[:2], [1.0, "a"]), r"y holds text"),
        (lambda m: m.update(X[:2], Y[:1]), r"X has 2 rows and y has 1"),
        (lambda m: m.update(NARROW, Y), r"X must have shape \(rows, 3\)"),
    ],
)
def test_task_model(learner, call, sentence):
    model = learner.adapt(X[:4], Y[:4], side_info=[1.0, 2.0])
    before = model.coef_, model.n_
    with pytest.raises(DataError, match=sentence):
        call(model)
    np.testing.assert_array_equal(model.coef_, before[0])
    assert model.n_ == before[1]


@pytest.mark.parametrize(
    ("X", "task", "sentence"),
    [
        (X[:2], ["t0", "t9"], r"1 task is missing from the adapted tasks: 't9'"),
        (X[:2], ["t0"], r"X has 2 rows and task has 1 id"),
        (put(X, (3, 1), np.nan), TASK, rf"Task '{BAD_TASK}' has NaN in feature 1 of X"),
        (NARROW, TASK, r"X must have shape \(rows, 3\)"),
    ],
)
def test_task_models(learner, X, task, sentence):
    models = learner.adapt(*draw_problem()[:2], task=TASK, side_info=SIDE)
    with pytest.raises(DataError, match=sentence):
        models.predict(X, task=task)


# -- before fit, classes, divergence ---------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.predict(X, task=TASK),
        lambda m: m.adapt(X, Y),
        lambda m: m.update(X, Y, task=TASK),
        lambda m: m.theta_for([1.0, 2.0]),
        lambda m: m.coef_frame(),
        lambda m: m.M_frame(),
        lambda m: m.save("nowhere"),
        lambda m: m.score(X, Y, task=TASK),
    ],
)
def test_before_fit(call):
    learner = ConditionalSGDRegressor()
    with pytest.raises(NotFittedError, match="ConditionalSGDRegressor instance is not fitted yet"):
        call(learner)
    assert vars(learner) == vars(ConditionalSGDRegressor())
    with pytest.raises(AttributeError, match="not fitted yet"):
        learner.M_  # noqa: B018


LABELS = np.where(Y > 0, "high", "low")


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.arange(len(Y)) % 3, r"Only binary classification.*y holds 3 classes\. Use Cond"),
        (np.ones(len(Y)), r"y holds the single class \[1\.0\]"),
        (Y, r"Unknown label type: continuous"),
        (put(LABELS, BAD_ROW, None), rf"Task '{BAD_TASK}' has NaN in y: fill it or drop the row"),
        (put((Y > 0) * 1.0, BAD_ROW, np.nan), rf"Task '{BAD_TASK}' has NaN in y"),
        (put((Y > 0) * 1.0, BAD_ROW, np.inf), rf"Task '{BAD_TASK}' has infinity in y"),
        (LABELS[:-1], r"X has 27 rows and y has 26"),
    ],
)
def test_labels_that_are_not_two_classes(labels, sentence):
    learner = ConditionalSGDClassifier().fit(X, LABELS, task=TASK)
    refuses(learner, lambda m: m.fit(X, labels, task=TASK), sentence, ValueError)


@pytest.mark.parametrize("method", ["adapt", "update", "partial_fit"])
def test_label_that_is_no_class_of_the_fit(method):
    learner = ConditionalSGDClassifier().fit(X, LABELS, task=TASK)
    task = ["new"] * 2 if method == "partial_fit" else ["t0", "t1"]
    sentence = r"y holds labels \['odd'\] that are not classes: \['high', 'low'\]"
    call = getattr(learner, method)
    refuses(learner, lambda m: call(X[:2], ["low", "odd"], task=task), sentence)


def test_loss_of_the_other_kind():
    with pytest.raises(DataError, match=r"'absolute' is for numbers\. Use 'hinge' or 'logistic'"):
        ConditionalSGDClassifier(loss="absolute").fit(X, LABELS, task=TASK)


REMEDY = r"The online pass diverges at lam=.*Use inner='batch', a larger lam"


@pytest.mark.parametrize(
    ("call", "who"),
    [
        (lambda m: m.fit(1e4 * X, Y, task=TASK, side_info=SIDE), "Task 't0': "),
        (lambda m: m.update(1e4 * X, Y, task=TASK), "Task 't0': "),
        (lambda m: m.adapt(1e4 * X, Y, task=TASK, side_info=SIDE), "Task 't0': "),
        (lambda m: m.adapt(1e4 * X, Y, side_info=[1.0, 2.0]), "^"),
        (
            lambda m: m.partial_fit(1e4 * X, Y, task=["new"] * 27, side_info={"new": [1.0, 2.0]}),
            "Task 'new': ",
        ),
    ],
)  # fmt: skip
def test_diverging_online_pass(engine, call, who):
    learner = ConditionalSGDRegressor(Identity(), loss="squared", lam=5.0)
    learner.fit(X, Y, task=TASK, side_info=SIDE)
    refuses(learner, call, who + REMEDY, DivergenceError)
