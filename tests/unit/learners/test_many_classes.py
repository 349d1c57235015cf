"""More than two classes without order: one against the rest, probabilities that sum to one."""

import numpy as np
import pandas as pd
import pytest

import condmeta as cm
from condmeta.errors import DataError, ModelFileError, ReadingNote

NAMES = np.array(["bus", "car", "train"])
QUICK = {"metric": "diagonal", "kappa": 1.0}


def draw(n_tasks=60, n=12, seed=0):
    """Return X, y, task, and a side table that moves the slope of the first class."""
    rng = np.random.default_rng(seed)
    s, task = rng.normal(size=n_tasks), np.repeat(np.arange(n_tasks), n)
    X = rng.normal(size=(len(task), 2))
    score = np.column_stack([2 * s[task] * X[:, 0], X[:, 1] - 1, 0 * X[:, 0]])
    score += 0.5 * rng.normal(size=(n_tasks, 3))[task]
    y = NAMES[np.argmax(score + rng.gumbel(size=score.shape), axis=1)]
    return X, y, task, cm.TaskTable({"s": s}, range(n_tasks))


@pytest.fixture(scope="module")
def data():
    return draw()


@pytest.fixture(scope="module")
def fitted(data):
    X, y, task, side = data
    return cm.ConditionalLogistic(**QUICK).fit(X, y, task=task, side_info=side)


def test_classes_are_those_of_learners_against_the_rest(data, fitted):
    """K learners of two classes, divided by their sum: the definition."""
    X, y, task, side = data
    alone = []
    for k, name in enumerate(NAMES):
        one = cm.ConditionalLogistic(**QUICK).fit(X, y == name, task=task, side_info=side)
        alone.append(one.predict_proba(X, task=task)[:, 1])
        np.testing.assert_array_equal(fitted.M_[k], one.M_)
        np.testing.assert_array_equal(fitted.H_[k], one.H_)
        assert fitted.objective_[k] == one.objective_
    expected = np.column_stack(alone)
    expected /= expected.sum(axis=1, keepdims=True)
    chances = fitted.predict_proba(X, task=task)
    np.testing.assert_allclose(chances, expected, atol=1e-12)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-12)
    assert fitted.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(fitted.predict(X, task=task), NAMES[chances.argmax(axis=1)])
    scores = fitted.decision_function(X, task=task)
    np.testing.assert_allclose(np.exp(scores), chances, atol=1e-12)


def test_truth_is_found_on_new_tasks(fitted):
    X, y, task, side = draw(40, seed=1)
    true = np.searchsorted(NAMES, y)
    chances = fitted.predict_proba(X, task=task + 1000, side_info=cm.TaskTable(
        {"s": side.data["s"]}, range(1000, 1040)))  # fmt: skip
    loss = -np.log(chances[np.arange(len(y)), true]).mean()
    share = np.bincount(true) / len(true)
    assert loss < -(share * np.log(share)).sum() - 0.1  # better than the shares of the classes


def test_adapted_models_are_those_of_fit(data, fitted):
    X, y, task, side = data
    own = task == 3
    one = fitted.adapt(X[own], y[own], side_info={"s": side.data["s"][3]})
    assert one.coef_.shape == (3, 2)
    assert one.intercept_.shape == (3,)
    assert one.theta_.shape == (3, 3)
    assert (one.n_, repr(one)) == (12, "ClassModel(n=12, classes=3)")
    expected = fitted.predict_proba(X[:5], task=[3] * 5)
    np.testing.assert_allclose(one.predict_proba(X[:5]), expected, atol=1e-7)
    np.testing.assert_array_equal(one.predict(X[:5]), NAMES[expected.argmax(axis=1)])
    few = task < 4
    table = cm.TaskTable({"s": side.data["s"][:4]}, range(4))
    many = fitted.adapt(X[few], y[few], task=task[few], side_info=table)
    assert many.coef_.shape == (4, 3, 2)
    assert (len(many), list(many), repr(many)) == (
        4,
        [0, 1, 2, 3],
        "ClassModels(4 tasks, classes=3)",
    )
    np.testing.assert_allclose(many[3].predict_proba(X[:5]), expected, atol=1e-7)
    np.testing.assert_allclose(many.predict_proba(X[:5], task=[3] * 5), expected, atol=1e-7)
    np.testing.assert_array_equal(
        many.predict(X[few], task=task[few]), fitted.predict(X[few], task=task[few])
    )
    alone = fitted.adapt(side_info={"s": 0.0})  # no points: tau(s)
    np.testing.assert_allclose(alone.coef_, fitted.theta_for({"s": 0.0})[:, :2])


def test_tables_have_a_column_of_classes(fitted):
    coef, effects = fitted.coef_frame(), fitted.M_frame(wide=True)
    assert list(coef)[:3] == ["class", "task", "feature"]
    assert len(coef) == 3 * 60 * 3
    assert effects["class"].tolist() == ["bus"] * 2 + ["car"] * 2 + ["train"] * 2
    assert fitted.theta_mean_.shape == (3, 3)
    assert fitted.theta_for(pd.DataFrame({"s": [0.0, 1.0]}, index=[7, 8])).shape == (2, 3, 3)


def test_model_file(data, fitted, tmp_path):
    X, _, task, _ = data
    path = tmp_path / "classes.condmeta"
    for how in ({}, {"resume": False}):
        fitted.save(path, **how)
        again = cm.load(path)
        np.testing.assert_array_equal(
            again.predict_proba(X, task=task), fitted.predict_proba(X, task=task)
        )
    fitted.save(path, tasks=False)
    new = cm.load(path).predict_proba(X[:3], side_info={"s": 1.0})
    np.testing.assert_array_equal(new, fitted.predict_proba(X[:3], side_info={"s": 1.0}))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda value: value._replace(classes=value.classes[:2], parts=value.parts[:2]),
         "must be three or more"),
        (lambda value: value._replace(parts=value.parts[:2]), r"parts"),
        (lambda value: value._replace(parts=(*value.parts[:2], value.parts[2].slim(False, True))),
         r"must have the tasks and columns of the first"),
        (lambda value: value._replace(classes=np.array(["a", "a", "b"])), "different labels"),
        (lambda value: value._replace(parts=(*value.parts[:2], value.parts[2]._replace(
            predictor=value.parts[2].predictor._replace(classes=np.array([3, 4]))))),
         "must be 0 and 1"),
    ],
)  # fmt: skip
def test_hostile_files_are_refused(fitted, tmp_path, change, sentence):
    path, model = tmp_path / "bad.condmeta", cm.ConditionalLogistic(**QUICK)
    model._model = change(fitted.fitted_)
    model.save(path)
    with pytest.raises(ModelFileError, match=sentence):
        cm.load(path)


def test_other_learners_do_not_hold_several_classes(fitted, tmp_path):
    model = cm.FixedBiasClassifier()
    model._model = fitted.fitted_
    model.save(tmp_path / "other.condmeta")
    with pytest.raises(ModelFileError, match="is none of FixedBiasClassifier"):
        cm.load(tmp_path / "other.condmeta")


def test_baselines_and_other_losses(data):
    X, y, task, _ = data
    for kind in (cm.IndependentClassifier, cm.PooledClassifier):
        model = kind().fit(X, y, task=task)
        np.testing.assert_allclose(model.predict_proba(X, task=task).sum(axis=1), 1)
    hinge = cm.PooledClassifier(loss="hinge").fit(X, y, task=task)
    scores = hinge.decision_function(X, task=task)
    np.testing.assert_array_equal(hinge.predict(X, task=task), NAMES[scores.argmax(axis=1)])
    assert not hasattr(hinge, "predict_proba")
    models = hinge.adapt(X[:24], y[:24], task=task[:24])
    np.testing.assert_array_equal(
        models.predict(X[:24], task=task[:24]), hinge.predict(X[:24], task=task[:24])
    )


def test_base_of_several_classes(data):
    X, y, task, side = data
    model = cm.ConditionalLogistic(base="boosting", **QUICK).fit(X, y, task=task, side_info=side)
    np.testing.assert_allclose(model.predict_proba(X[:9], task=task[:9]).sum(axis=1), 1)


def test_auto_chooses_by_the_probability_of_the_true_class(data, tmp_path):
    X, y, task, side = data
    auto = cm.AutoClassifier(shots=(0, 4)).fit(X, y, task=task, side_info=side)
    assert auto.candidates_ == ["own data", "pooled", "unconditional", "conditional"]
    assert auto.candidates_[int(auto.weights_[0].argmax())] == "conditional"
    assert auto.errors_[0, 0] == pytest.approx(np.log(3))  # own data without points: 1/3 each
    chances = auto.predict_proba(X, task=task)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(auto.predict(X, task=task), NAMES[chances.argmax(axis=1)])
    assert auto.decision_function(X[:2], task=task[:2]).shape == (2, 3)
    model = auto.adapt(X[:4], y[:4], side_info={"s": 0.0})
    assert model.predict_proba(X[:2]).shape == (2, 3)
    auto.save(tmp_path / "auto.condmeta")
    again = cm.load(tmp_path / "auto.condmeta")
    np.testing.assert_array_equal(again.predict_proba(X, task=task), chances)
    assert cm.check(auto, X[:240], y[:240], task=task[:240]).verdict == "keep"


def test_compare(data):
    X, y, task, side = data
    found = cm.compare(X, y, task=task, side_info=side, shots=(0, 4))
    assert found.best[0] in ("conditional", "auto")
    assert found.criterion.title == "log loss"
    assert found.errors[0, found.names.index("own data")] == pytest.approx(np.log(3))
    assert "probability of ${data.positive}" in found.to_html()
    codes = np.searchsorted(NAMES, y)  # numbers are classes if the learners are classifiers
    own = {"logistic": cm.ConditionalLogistic(**QUICK), "pooled": cm.PooledClassifier()}
    given = cm.compare(X, codes, task=task, side_info=side, shots=(0, 4), learners=own)
    assert given.errors[0, 0] < given.errors[0, 1]


def test_check_finds_labels_of_another_law(data, fitted):
    X, y, task, _ = data
    assert cm.check(fitted, X[:240], y[:240], task=task[:240]).verdict == "keep"
    assert cm.check(fitted, X[:240], np.roll(y[:240], 5), task=task[:240]).verdict != "keep"


def test_questions_about_one_map_have_a_sentence(fitted):
    for ask, what in (
        (lambda: cm.explain(fitted, {"s": 0.0}), "explain"),
        (fitted.to_sql, "SQL"),
        (lambda: cm.plots.MapDisplay.from_estimator(fitted), "A picture of the map"),
    ):
        with pytest.raises(
            DataError, match=rf"^{what} works with up to two classes, and this model has 3\."
        ):
            ask()


def test_labels_must_be_classes(data, fitted):
    X, *_ = data
    with pytest.raises(DataError, match=r"^y holds labels \['ship'\] that are not classes"):
        fitted.adapt(X[:2], ["bus", "ship"], side_info={"s": 0.0})
    with pytest.raises(DataError, match=r"^y holds the single class \['bus'\]"):
        cm.ConditionalLogistic().fit(X[:4], ["bus"] * 4, task=[0, 0, 1, 1])
    with pytest.raises(DataError, match=r"y holds 3 classes\. Use ConditionalLogistic"):
        cm.ConditionalSGDClassifier(lam=1.0).fit(X[:6], [0, 1, 2] * 2, task=[0, 0, 0, 1, 1, 1])


def test_tables_find_classes_and_say_so(data):
    X, y, task, side = data
    rows = pd.DataFrame({"city": task, "cost": X[:, 0], "time": X[:, 1], "mode": y})
    cities = pd.DataFrame({"city": range(60), "size": side.data["s"]})
    model = cm.TableModel(task="city", target="mode")
    with pytest.warns(ReadingNote, match=r"holds 3 classes \('bus', 'car', 'train'\): each is"):
        model.fit(rows, cities)
    assert type(model.learner_).__name__ == "ConditionalLogistic"
    table = model.predict_frame(rows)
    chances = table[[f"probability of {name}" for name in NAMES]].to_numpy()
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert set(table["prediction"]) <= set(NAMES)
    assert model.score(rows) > 0.6
    coefficients = model.adapt_frame(rows[:24], cities)
    assert coefficients["class"].tolist()[:3] == NAMES.tolist()
    with pytest.raises(DataError, match="a classifier takes at most 100 classes"):
        cm.TableModel(task="city", target="mode").fit(
            rows.assign(mode=[f"t{i}" for i in range(720)])
        )
