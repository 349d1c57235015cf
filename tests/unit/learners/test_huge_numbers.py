"""Finite numbers of any size: right where a regression can bear them, a sentence where not."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import condmeta as cm
from condmeta.errors import ConstantFeatureWarning, DataError
from condmeta.tasks.numbers import standard_deviation

T, N_EACH = 40, 8
RNG = np.random.default_rng(0)
TASK = np.repeat(np.arange(T), N_EACH)
X = RNG.normal(size=(len(TASK), 3)) + 1
SIZE = RNG.normal(size=T)
Y = X[:, 0] * SIZE[TASK] + 2 * X[:, 1] + 5 + 0.3 * RNG.normal(size=len(TASK))
SIDE = cm.TaskTable(SIZE[:, None], ids=range(T))
HUGE, TINY = 2.0**500, 2.0**-660  # about 3e150 and 1e-199; powers of two change no digit

STANDARD = {"scale": "standard", "fit_intercept": True}
REGRESSORS = {  # predictions of all of these are multiplied by c if y is
    "ridge": cm.ConditionalRidge(),
    "random intercept": cm.ConditionalRidge(random="intercept"),
    "ridge, per task": cm.ConditionalRidge(noise="per_task"),
    "ridge on boosting": cm.ConditionalRidge(base="boosting"),
    "sgd": cm.ConditionalSGDRegressor(loss="squared", **STANDARD),
    "sgd cv": cm.ConditionalSGDRegressorCV(loss="squared", random_state=0, **STANDARD),
    "kernel": cm.KernelConditionalSGDRegressor(loss="squared", **STANDARD),
    "erm": cm.ConditionalERMRegressor(),
    "erm squared": cm.ConditionalERMRegressor(loss="squared"),
    "coin": cm.ConditionalCoinRegressor(**STANDARD),
    "own data": cm.IndependentRegressor(),
    "pooled": cm.PooledRegressor(),
    "auto": cm.AutoRegressor(base=None, shots=(0, 4)),
}
CLASSIFIERS = {
    "logistic": cm.ConditionalLogistic(),
    "sgd": cm.ConditionalSGDClassifier(**STANDARD),
    "own data": cm.IndependentClassifier(),
}


def predictions(learner, X, y, side=SIDE):
    learner.fit(X, y, task=TASK, side_info=side)
    new = learner.adapt(X[:3], y[:3], side_info=side.data["s0"][1:2].tolist())
    return np.concatenate([learner.predict(X, task=TASK), new.predict(X[:5])])


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("factor", [HUGE, 2.0**990, 1 / HUGE])
def test_y_times_c_gives_predictions_times_c(name, factor):
    learner = REGRESSORS[name]
    want = predictions(learner, X, Y)
    # the search for a prior ends within a hundredth of a standard error
    np.testing.assert_allclose(predictions(learner, X, Y * factor) / factor, want, atol=2e-4)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("factor", [2.0**990, TINY, [HUGE, 1.0, TINY]], ids=["1e298", "0", "one"])
def test_units_of_x_change_nothing(name, factor):
    learner = REGRESSORS[name]
    want = predictions(learner, X, Y)
    np.testing.assert_allclose(predictions(learner, X * factor, Y), want, rtol=1e-10)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_units_of_x_change_no_class(name):
    learner = CLASSIFIERS[name]
    want = predictions(learner, X, Y > 5)
    np.testing.assert_array_equal(predictions(learner, X * 2.0**990, Y > 5), want)
    np.testing.assert_array_equal(predictions(learner, X * TINY, Y > 5), want)


@pytest.mark.parametrize("name", REGRESSORS)
def test_x_far_from_zero(name):
    """Around 2^40 a float has 13 binary places, and these X need ten of them."""
    learner, rows = REGRESSORS[name], np.round(X * 1024) / 1024
    want, far = predictions(learner, rows, Y), predictions(learner, rows + 2.0**40, Y)
    assert np.sqrt(np.mean((far - want) ** 2)) < 5e-3 * Y.std()


def test_rows_of_unit_norm_bear_any_size():
    learner = cm.ConditionalRidge(scale="rows")
    want = predictions(learner, X, Y)
    np.testing.assert_array_equal(predictions(learner, X * HUGE, Y), want)
    np.testing.assert_array_equal(predictions(learner, X * TINY, Y), want)


@pytest.mark.parametrize("factor", [2.0**990, TINY])
def test_units_of_side_columns_change_nothing(factor):
    for learner in (cm.ConditionalRidge(), cm.ConditionalRidge(cm.feature_maps.Identity())):
        want = predictions(learner, X, Y)
        side = cm.TaskTable(SIZE[:, None] * factor, ids=range(T))
        np.testing.assert_allclose(predictions(learner, X, Y, side), want, rtol=1e-8)


def test_what_ridge_reports_is_in_the_units_of_y():
    one = cm.ConditionalRidge().fit(X, Y, task=TASK, side_info=SIDE)
    two = cm.ConditionalRidge().fit(X, Y * HUGE, task=TASK, side_info=SIDE)
    np.testing.assert_allclose(two.s2_ / HUGE / HUGE, one.s2_, rtol=1e-3)
    # each label has a density in units of y
    np.testing.assert_allclose(two.objective_ + len(Y) * np.log(HUGE), one.objective_, rtol=1e-5)
    stds = (model.predict(X, task=TASK, return_std=True)[1] for model in (one, two))
    np.testing.assert_allclose(next(stds), next(stds) / HUGE, rtol=1e-3)
    coef, far = (model.adapt(side_info=[1.0]).coef_ for model in (one, two))
    np.testing.assert_allclose(far / HUGE, coef, atol=1e-3)


def test_a_file_keeps_the_units(tmp_path):
    model = cm.ConditionalRidge().fit(X * HUGE, Y * 2.0**990, task=TASK)
    model.save(tmp_path / "model.condmeta")
    again = cm.load(tmp_path / "model.condmeta")
    np.testing.assert_array_equal(
        again.predict(X * HUGE, task=TASK), model.predict(X * HUGE, task=TASK)
    )


def test_merged_learners_may_have_other_units():
    half = TASK < 20
    parts = [
        cm.ConditionalRidge().fit(X[at], Y[at] * factor, task=TASK[at])
        for at, factor in ((half, HUGE), (~half, HUGE / 2**450))
    ]
    whole = cm.ConditionalRidge().fit(X, Y * np.where(half, HUGE, HUGE / 2**450), task=TASK)
    merged = cm.merge(*parts).predict(X, task=TASK)
    np.testing.assert_allclose(merged / HUGE, whole.predict(X, task=TASK) / HUGE, atol=1e-6)


BAD_ROW = np.array([[1.0, 1.0, 1.0], [1e160, 1.0, 1.0]])


@pytest.mark.parametrize("name", [*REGRESSORS, "logistic"])
@pytest.mark.parametrize("method", ["update", "partial_fit", "adapt"])
@pytest.mark.filterwarnings("error")
def test_a_refused_row_changes_nothing(name, method):
    learner = REGRESSORS.get(name) or CLASSIFIERS[name]
    y = Y if name in REGRESSORS else Y > 5
    learner.fit(X, y, task=TASK, side_info=SIDE)
    if not hasattr(learner, method):
        pytest.skip(f"{name} has no {method}")
    if method == "partial_fit" and getattr(learner, "base", None) is not None:
        pytest.skip("a base needs all rows at once")
    value, before = learner._model, learner.predict(X, task=TASK)
    call = {"side_info": SIDE.data["s0"][1:2].tolist()}
    if method != "adapt":
        call = {"task": ["new"] * 2, "side_info": cm.TaskTable([[1.0]], ids=["new"])}
        call = {"task": [3, 3]} if method == "update" else call
    if method == "partial_fit":
        call = {"task": [99, 99], "side_info": cm.TaskTable([[1.0]], ids=[99])}
    with pytest.raises(DataError, match=r"too large to be squared|update does not work"):
        getattr(learner, method)(BAD_ROW, y[:2], **call)
    assert learner._model is value
    np.testing.assert_array_equal(learner.predict(X, task=TASK), before)


@pytest.mark.parametrize("name", ["ridge", "levels", "decay"])
def test_a_row_far_from_all_others_counts_or_is_refused(name):
    """As x grows, x w = y says w_0 = 0; beside x^2 the digits of 1 are lost from 1e7 on."""
    learner, y, task, side, call = OTHERS.get(name, (REGRESSORS["ridge"], Y, TASK, SIDE, {}))
    learner.fit(X, y, task=task, side_info=side, **call)
    call, value = {key: [9.0] for key in call}, learner._model

    def updated(far):
        after = copy.deepcopy(learner).update([[far, 1.0, 1.0]], [5.0], task=[task[0]], **call)
        return after.predict(X[:40], task=task[:40])

    np.testing.assert_allclose(updated(5e5), updated(1e5), atol=5e-4)
    for far in (1e7, -1e10, 1e20, 1e50):
        with pytest.raises(DataError, match=r"has .* in feature 0 of X, .* too far from earlier"):
            updated(far)
        with pytest.raises(
            DataError, match=r"too far from earlier rows .* fit with more rows like it"
        ):
            learner.adapt([[far, 1.0, 1.0]], [5.0], task=["new"], side_info={"new": [1.0]}, **call)
        model = learner.adapt(X[:1], Y[:1], side_info=[1.0], **call)
        with pytest.raises(DataError, match=r"^Row 0 has .* too far from earlier rows"):
            model.update([[far, 1.0, 1.0]], [5.0], **call)
    assert learner._model is value


def fed(learner, rows, y, tasks):
    """Take in rows of some tasks, with their side information."""
    groups = isinstance(learner, cm.ConditionalLevels)
    ids = {task: (task % 4, task) if groups else task for task in tasks.tolist()}
    side, at = {ids[task]: [SIZE[task]] for task in ids}, np.isin(TASK, tasks)
    task = [ids[task] for task in TASK[at].tolist()]
    return learner.partial_fit(rows[at], y[at], task=task, side_info=side)


STREAMS = {
    "ridge": (cm.ConditionalRidge(), Y),
    "ridge of unscaled rows": (cm.ConditionalRidge(scale="none"), Y),
    "ridge without an intercept": (cm.ConditionalRidge(fit_intercept=False), Y),
    "ridge of many columns": (cm.ConditionalRidge(), Y),
    "levels": (cm.ConditionalLevels(), Y),
    "sgd": (cm.ConditionalSGDRegressor(), Y),
    "sgd of scaled rows": (cm.ConditionalSGDRegressor(**STANDARD), Y),
    "sgd classes": (cm.ConditionalSGDClassifier(), Y > 5),
    "kernel": (cm.KernelConditionalSGDRegressor(), Y),
    "coin": (cm.ConditionalCoinRegressor(), Y),
    "logistic": (cm.ConditionalLogistic(), Y > 5),
    "counts": (cm.ConditionalCount(), np.floor(np.exp((Y - Y.mean()) / 4))),
    "ordered": (cm.ConditionalOrdinal(classes=[0, 1, 2]), np.digitize(Y, [3, 7])),
}


def test_streams_are_all_learners_with_partial_fit():
    known = {type(learner) for learner, _ in STREAMS.values()}
    learners = {getattr(cm, name) for name in cm.__all__ if isinstance(getattr(cm, name), type)}
    assert {kind for kind in learners if hasattr(kind, "partial_fit")} == known


@pytest.mark.filterwarnings("ignore::condmeta.errors.FewTasksWarning")
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_partial_fit_refuses_a_value_far_from_earlier_rows(name, fitted):
    """Beside its square the digits of other tasks are lost, whose predictions would change."""
    learner, y = STREAMS[name]
    rows = X if name != "ridge of many columns" else np.hstack([X, RNG.normal(size=(len(X), 70))])
    learner = fed(fed(clone(learner), rows, y, np.arange(10)), rows, y, np.arange(10, 20))
    if fitted:
        assert learner.fitted_.tau is not None  # learned
    value, far = learner._model, rows.copy()
    for size in (1e10, -1e7):
        far[-1, 1] = size
        with pytest.raises(
            DataError,
            match=r"^Task (39|\(3, 39\)) has .*e\+\d+ in feature 1 of X, where rows are usually "
            r"[\d.]+ from [\d.]+: it is too far from earlier rows for its square to be "
            r"added to theirs\. Correct the value, drop the row, or fit with more rows like it\.$",
        ):
            fed(learner, far, y, np.arange(30, 40))
        assert learner._model is value
    far[-1, 1] = 1e5  # a bad value, but the others are not lost
    fed(learner, far, y, np.arange(30, 40))


@pytest.mark.filterwarnings("ignore::condmeta.errors.ConstantFeatureWarning")
@pytest.mark.parametrize("name", ["ridge", "logistic", "ridge of unscaled rows"])
def test_what_is_far_is_learned_from_all_rows_so_far(name):
    learner, y = STREAMS[name]
    rows = X.copy()
    rows[TASK < 10, 1] = 0.0  # nothing is known of the column yet
    rows[(TASK >= 10) & (TASK < 20), 1] *= 1e8
    learner = fed(clone(learner), rows, y, np.arange(10))
    for tasks in np.arange(10, 20), np.arange(20, 30):
        fed(learner, rows, y, tasks)
    rows[-1, 1] = 1e16
    with pytest.raises(DataError, match="too far from earlier rows"):
        fed(learner, rows, y, np.arange(30, 40))


UNCENTRED = {
    "sgd": cm.ConditionalSGDRegressor(),
    "sgd cv": cm.ConditionalSGDRegressorCV(),
    "sgd of unit rows": cm.ConditionalSGDRegressor(scale="rows"),
    "kernel": cm.KernelConditionalSGDRegressor(),
    "coin": cm.ConditionalCoinRegressor(),
    "ridge": cm.ConditionalRidge(scale="none"),
    "ridge without an intercept": cm.ConditionalRidge(fit_intercept=False),
    "own data": cm.IndependentRegressor(scale="none"),
}


@pytest.mark.parametrize("shift", [1e4, 2.0**40, -1e12])
@pytest.mark.parametrize("name", UNCENTRED)
def test_columns_far_from_zero_are_named_if_rows_are_not_centred(name, shift):
    learner, rows = UNCENTRED[name], pd.DataFrame(X.copy(), columns=["price", "size", "age"])
    learner.fit(rows, Y, task=TASK, side_info=SIDE)  # no warning
    rows["size"] += shift
    text = (
        r"^Values of column 'size' of X are around -?1.* and differ by about \d.*: without "
        r"centring, the column hardly distinguishes rows\. Use scale='standard' with "
        r"fit_intercept=True, or subtract a constant from the column\.$"
    )
    with pytest.warns(ConstantFeatureWarning, match=text):
        learner.fit(rows, Y, task=TASK, side_info=SIDE)
    if hasattr(learner, "partial_fit"):
        with pytest.warns(ConstantFeatureWarning, match=text):
            clone(learner).partial_fit(rows, Y, task=TASK, side_info=SIDE)


@pytest.mark.parametrize("name", ["sgd", "kernel", "coin", "ridge"])
def test_a_far_value_is_named_if_rows_are_not_centred(name):
    rows = X.copy()
    rows[11, 2] = 1e10
    with pytest.warns(ConstantFeatureWarning, match=r"^Task 1 has 1e\+10 in feature 2 of X: comp"):
        UNCENTRED[name].fit(rows, Y, task=TASK, side_info=SIDE)


@pytest.mark.parametrize("learner", [cm.ConditionalRidge(), cm.AutoRegressor(base=None)])
def test_a_value_that_hides_all_others_is_named(learner):
    rows = pd.DataFrame(X.copy(), columns=["price", "size", "age"])
    rows.loc[11, "size"] = -1e30
    with pytest.warns(ConstantFeatureWarning, match=r"^Task 1 has -1e\+30 in column 'size' of X: "):
        learner.fit(rows, Y, task=TASK)
    rows.loc[11, "size"] = -1e4  # a bad value, but the others are not lost
    learner.fit(rows, Y, task=TASK)


@pytest.mark.filterwarnings("ignore::condmeta.errors.ConstantFeatureWarning")
def test_a_constant_column_may_change_later():
    """A day's time stamp in a table of one day: it has no weight, so its size is of no matter."""
    rows = np.column_stack([X, np.full(len(X), 1.7e12)])
    learner = cm.ConditionalRidge().fit(rows, Y, task=TASK, side_info=SIDE)
    alone = cm.ConditionalRidge().fit(X, Y, task=TASK, side_info=SIDE)
    more = np.append(X[:1], 1.7e12 + 8.64e7)[None]
    found = learner.update(more, Y[:1], task=TASK[:1]).predict(rows, task=TASK)
    want = alone.update(X[:1], Y[:1], task=TASK[:1]).predict(X, task=TASK)
    np.testing.assert_allclose(found, want, atol=1e-4)  # 1.7e12 has a rounding error of 2e-4


def test_the_sentence_names_task_column_and_remedy():
    frame = pd.DataFrame(X, columns=["price", "size", "age"])
    learner = cm.ConditionalRidge().fit(frame, Y, task=TASK)
    bad = pd.DataFrame(BAD_ROW, columns=frame.columns)
    with pytest.raises(
        DataError,
        match=r"^Task 3 has 1e\+160 in column 'price' of X, which is learned in units of 0\.98\d: "
        r"it is too large to be squared\. Correct the value, drop the row, or give all rows in "
        r"another unit\.$",
    ):
        learner.update(bad, [1.0, 2.0], task=[3, 3])
    model = learner.adapt(frame[:2], Y[:2])
    with pytest.raises(DataError, match=r"^Row 1 has 1e\+160 in column 'price' of X"):
        model.update(bad, [1.0, 2.0])
    with pytest.raises(DataError, match=r"^Task 0 has 1e\+150 in y, which is learned in"):
        learner.update(frame[:1], [1e150], task=[0])
    plain = cm.ConditionalSGDRegressor()
    with pytest.raises(DataError, match=r"in feature 0 of X.* use scale='standard', or give all"):
        plain.fit(X * [1e200, 1, 1], Y, task=TASK, side_info=SIDE)
    with pytest.raises(DataError, match=r"in y, which is learned in units of 1"):
        plain.fit(X, Y * 1e200, task=TASK, side_info=SIDE)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308])
def test_numbers_next_to_infinity_are_refused(value):
    y = Y.copy()
    y[5] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"Task 0 has .*1.7e.308 in y"):
            cm.ConditionalRidge().fit(X, y, task=TASK)


def test_standard_deviation_of_any_size():
    assert standard_deviation(np.array([1e300, -1e300])) == pytest.approx(1e300)
    assert standard_deviation(np.array([1.0, 2.0, 4.0])) == np.std([1.0, 2.0, 4.0])


def test_a_wide_table_bears_any_size():
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(len(TASK), 70))
    y = wide[:, 0] * (1 + SIZE[TASK]) + wide[:, 1] + 0.3 * rng.normal(size=len(TASK))
    fits = [(1.0, 1.0), (HUGE, 1.0), (1.0, HUGE), (TINY, 1 / HUGE)]
    models = [cm.ConditionalRidge().fit(wide * a, y * b, task=TASK) for a, b in fits]
    want, *found = (
        model.predict(wide * a, task=TASK) / b for model, (a, b) in zip(models, fits, strict=True)
    )
    for predicted in found:
        np.testing.assert_allclose(predicted, want, atol=2e-2 * y.std())
    np.testing.assert_allclose(models[2].s2_ / HUGE / HUGE, models[0].s2_, rtol=2e-2)


TIME = np.tile(np.arange(float(N_EACH)), T)
GROUPED = [(task % 4, task) for task in TASK.tolist()]
GROUPED_SIDE = {(task % 4, task): [float(SIZE[task])] for task in range(T)}
COUNTS, ORDER = np.floor(np.exp((Y - Y.mean()) / 4)), ["low", "fair", "high"]
RATINGS = np.array(ORDER)[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
OTHERS = {  # models that need more than rows, labels, tasks and side information
    "decay": (cm.ConditionalRidge(drift=0.9), Y, TASK, SIDE, {"time": TIME}),
    "ar": (cm.ConditionalRidge(drift=("ar", 0.9, 0.5)), Y, TASK, SIDE, {"time": TIME}),
    "context": (cm.ConditionalRidge(context=True), Y, TASK, SIDE, {}),
    "levels": (cm.ConditionalLevels(), Y, GROUPED, GROUPED_SIDE, {}),
    "counts": (cm.ConditionalCount(), COUNTS, TASK, SIDE, {}),
    "ordered": (cm.ConditionalOrdinal(classes=ORDER), RATINGS, TASK, SIDE, {}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_bear_rows_and_labels_of_any_size(name):
    learner, y, task, side, call = OTHERS[name]

    def predicted(rows, labels):
        return learner.fit(rows, labels, task=task, side_info=side, **call).predict(rows, task=task)

    want = predicted(X, y)
    for size in (HUGE, TINY):
        np.testing.assert_array_equal(predicted(X * size, y), want)
    if y is Y:
        for size in (HUGE, 1 / HUGE):
            np.testing.assert_allclose(predicted(X, y * size) / size, want, atol=2e-4)
    elif y is COUNTS:
        with pytest.raises(DataError, match=r"has .*e\+300 in y, .* it is too large to be squared"):
            predicted(X, 1e300 * y)
