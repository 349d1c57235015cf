"""save and load: the same predictions bit for bit, and nothing in the file that should not be."""

import json
import zipfile
from datetime import date

import numpy as np
import pandas as pd
import pytest
from helpers import assert_same, draw_problem, labels_for, public_learners, unchanged
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import SplineTransformer, StandardScaler

import condmeta as cm
from condmeta import feature_maps, losses
from condmeta.errors import DataError, ModelFileError
from condmeta.persistence import read_card

# The tasks of these tests are few.
pytestmark = pytest.mark.filterwarnings("ignore::condmeta.errors.FewTasksWarning")

X, Y, TASK, SIDE = draw_problem()
ROW = [0.5, -1.0]
RAW = cm.TaskTable(
    {
        "area": [1.0, np.nan, 3.0, 2.0, 5.0, 4.0],
        "open": [True, False, None, True, True, False],
        "city": ["Rome", "Bonn", None, "Rome", "Kyiv", "Bonn"],
    },
    SIDE.ids,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.condmeta"


def again(learner, path, **flags):
    learner.save(path, **flags)
    return cm.load(path)


WITH_MAPS = [cls for cls in public_learners() if hasattr(cls, "theta_for")]


def assert_predicts_the_same(one, two, task=TASK, **call):
    np.testing.assert_array_equal(two.predict(X, task=task), one.predict(X, task=task))
    np.testing.assert_array_equal(two.b_, one.b_)
    np.testing.assert_array_equal(two.theta_mean_, one.theta_mean_)
    if hasattr(one, "M_"):
        np.testing.assert_array_equal(two.M_, one.M_)
    if call:
        np.testing.assert_array_equal(two.theta_for(**call), one.theta_for(**call))
        model, loaded = (m.adapt(X[:4], Y[:4], **call) for m in (one, two))
        np.testing.assert_array_equal(loaded.coef_, model.coef_)


@pytest.mark.parametrize("cls", WITH_MAPS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("resume", [True, False])
def test_every_learner(engine, path, cls, resume):
    y = np.where(Y > 0, "yes", "no") if is_classifier(cls()) else labels_for(cls, Y)
    learner = cls(scale="standard", fit_intercept=True)
    learner.fit(X, y, task=TASK, side_info=SIDE)
    loaded = again(learner, path, resume=resume)
    assert type(loaded) is cls
    assert loaded.get_params() == learner.get_params()
    assert_predicts_the_same(learner, loaded)
    assert_same(loaded.theta_for(ROW), learner.theta_for(ROW))
    assert_same(loaded.coef_frame().to_dict("list"), learner.coef_frame().to_dict("list"))
    if hasattr(learner, "M_frame"):
        assert_same(loaded.M_frame().to_dict("list"), learner.M_frame().to_dict("list"))
    assert loaded.n_features_in_ == 3
    if resume:
        assert_same(vars(loaded.fitted_.tasks), vars(learner.fitted_.tasks))
        assert_same(again(loaded, path, resume=True).fitted_.tasks.coef, loaded.fitted_.tasks.coef)


IDS = {
    "str": [f"t{t}" for t in range(6)],
    "int": list(range(6)),
    "float": [t / 2 for t in range(6)],
    "bool": [True, False],
    "date": [date(2024, 1, 1 + t) for t in range(6)],
    "tuple": [("north", t) for t in range(6)],
    "tuple of dates": [(date(2024, 1, 1), f"s{t}") for t in range(6)],
    "mixed": ["a", 1, 2.5, date(2024, 1, 1), ("b", 3), False],
}


@pytest.mark.parametrize("kind", IDS)
def test_ids(path, kind):
    ids = IDS[kind]
    task = [ids[int(name[1:]) % len(ids)] for name in TASK]
    learner = cm.ConditionalSGDRegressor().fit(X, Y, task=task)
    loaded = again(learner, path, resume=True)
    assert_predicts_the_same(learner, loaded, task)
    assert_same(loaded.fitted_.tasks.ids.tolist(), learner.fitted_.tasks.ids.tolist())
    loaded.update(X[:2], Y[:2], task=task[:2])
    learner.update(X[:2], Y[:2], task=task[:2])
    assert_predicts_the_same(learner, loaded, task)


MAPS = {
    "auto": ("auto", RAW, {"area": None, "open": True, "city": "Rome"}),
    "none": (None, None, None),
    "RandomFourier": (feature_maps.RandomFourier(5, 2.0, random_state=3), SIDE, ROW),
    "unseeded": (feature_maps.RandomFourier(5, 2.0), SIDE, ROW),
    "CircleMap": (feature_maps.CircleMap(), cm.TaskTable(SIDE.data["s0"], SIDE.ids), [0.3]),
    "Nystroem": (Nystroem(n_components=4, random_state=0), SIDE, ROW),
    "StandardScaler": (StandardScaler(), SIDE, ROW),
    "list": ([feature_maps.Identity(), SplineTransformer(4), "auto"], SIDE, ROW),
    "MeanInput": (feature_maps.MeanInput(), None, None),
    "MeanInputOutput": (feature_maps.MeanInputOutput(), None, None),
    "MeanFourier": (feature_maps.MeanFourier(6, random_state=1), None, None),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps(path, name):
    fmap, side, row = MAPS[name]
    learner = cm.ConditionalSGDRegressor(fmap).fit(X, Y, task=TASK, side_info=side)
    loaded = again(learner, path)
    assert_predicts_the_same(learner, loaded, **({} if row is None else {"side_info": row}))
    assert loaded.side_features_ == learner.side_features_
    model, other = (m.adapt(X[:4], Y[:4], side_info=row) for m in (learner, loaded))
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


def test_frames(path):
    frame = pd.DataFrame(X, columns=["age", "size", "price"]).assign(store=TASK)
    side = pd.DataFrame(RAW.data, index=pd.Index(RAW.ids, name="store"))
    learner = cm.ConditionalSGDRegressor(task_column="store").fit(frame, Y, side_info=side)
    loaded = again(learner, path)
    np.testing.assert_array_equal(loaded.predict(frame), learner.predict(frame))
    pd.testing.assert_frame_equal(loaded.coef_frame(), learner.coef_frame())
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"age": "old"}))


@pytest.mark.parametrize(
    "loss", [losses.Huber(0.7), losses.Pinball(0.9), losses.EpsilonInsensitive(0.2)]
)
@pytest.mark.parametrize("inner", ["online", "batch"])
def test_loss_objects(path, loss, inner):
    learner = cm.ConditionalSGDRegressor(loss=loss, inner=inner, lam=0.3).fit(X, Y, task=TASK)
    loaded = again(learner, path)
    assert loaded.loss == loss
    assert_predicts_the_same(learner, loaded, side_info=None)


def test_path_may_be_text_and_an_old_file_is_replaced(tmp_path):
    name = str(tmp_path / "model.condmeta")
    for lam in (0.5, 2.0):
        learner = cm.PooledRegressor(lam=lam).fit(X, Y, task=TASK)
        assert again(learner, name).lam == lam
    assert [file.name for file in tmp_path.iterdir()] == ["model.condmeta"]


# -- what is in the file ---------------------------------------------------------------------------

SECRET = 0.7391826540918273
SECRET_ID = "store of Ms Confidential"


def secret_learner(**params):
    y, task = Y.copy(), TASK.astype(object)
    y[task == "t0"] = SECRET
    task[task == "t0"] = SECRET_ID
    return cm.ConditionalSGDRegressor(**params).fit(X, y, task=task), task


def holds(path, *secrets):
    """Say whether some value stands in the file, as bytes of a number or as text."""
    data = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        assert all(member.compress_type == zipfile.ZIP_STORED for member in file.infolist())
    found = []
    for secret in secrets:
        if isinstance(secret, str):
            forms = [secret.encode(code) for code in ("utf-8", "utf-32-le", "utf-16-le")]
        else:
            forms = [
                np.float64(secret).tobytes(),
                np.float32(secret).tobytes(),
                repr(secret).encode(),
            ]
        found.append(any(form in data for form in forms))
    return any(found)


@pytest.mark.parametrize("inner", ["online", "batch"])
@pytest.mark.parametrize("resume", [True, False])
def test_no_rows_in_the_file(path, inner, resume):
    learner, _ = secret_learner(inner=inner, loss="squared", lam=2.0)
    learner.save(path, resume=resume)
    assert holds(path, SECRET_ID)
    assert holds(path, float(learner.b_[0]))
    if not resume:
        assert not holds(path, SECRET, *X.ravel().tolist(), *Y.tolist())


def test_no_ids_in_a_file_without_tasks(path):
    for learner in (secret_learner()[0], secret_learner(keep_tasks=False)[0]):
        learner.save(path, tasks=False)
        assert not holds(path, SECRET_ID, "t1", SECRET)
        learner.save(path)
        assert holds(path, "t1")


def test_a_map_without_tasks_still_serves_new_ones(path):
    learner = cm.ConditionalSGDRegressor().fit(X, Y, task=TASK, side_info=RAW)
    row = {"area": 2.0, "open": None, "city": "Kyiv"}
    loaded = again(learner, path, tasks=False)
    np.testing.assert_array_equal(loaded.theta_for(row), learner.theta_for(row))
    model, other = (m.adapt(X[:4], Y[:4], side_info=row) for m in (learner, loaded))
    np.testing.assert_array_equal(model.update(X[4:6], Y[4:6]).coef_, other.update(
        X[4:6], Y[4:6]).coef_)  # fmt: skip
    with pytest.raises(DataError, match="missing from side_info"):
        loaded.predict(X[:1], task=["t0"])
    with pytest.raises(DataError, match="keep_tasks=True"):
        loaded.coef_frame()


def test_resume_decides_whether_update_goes_on(path):
    learner, task = secret_learner()
    plain = again(learner, path, resume=False)
    sentence = (
        r"saved without the statistics that update needs\. Save it with resume=True, or call adapt"
    )
    with unchanged(plain, X, task=task), pytest.raises(DataError, match=sentence):
        plain.update(X[:5], Y[:5], task=task[:5])
    assert plain.adapt(X[:5], Y[:5]).update(X[5:8], Y[5:8]).n_ == 8  # new tasks are free to
    full = again(learner, path, resume=True)
    for model in (learner, full):
        model.update(X[:5], Y[:5], task=task[:5]).update(X[5:8], Y[5:8], task=["new"] * 3)
    np.testing.assert_array_equal(full.predict(X, task=task), learner.predict(X, task=task))


def test_saving_changes_nothing(path):
    learner, task = secret_learner()
    with unchanged(learner, X, task=task):
        learner.save(path)
        learner.save(path, tasks=False)
    learner.update(X[:5], Y[:5], task=task[:5])


def test_same_model_same_bytes(path, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    learner = cm.ConditionalSGDRegressor().partial_fit(X, Y, task=TASK)
    learner.save(path)
    cm.load(path).save(tmp_path / "again.condmeta")
    assert path.read_bytes() == (tmp_path / "again.condmeta").read_bytes()


def test_card(path):
    frame = pd.DataFrame(X, columns=["age", "size", "price"]).assign(store=TASK)
    y = np.where(Y > 0, "yes", "no")
    learner = cm.ConditionalSGDClassifier(task_column="store", lam=0.25)
    learner.fit(frame, y, side_info=pd.DataFrame(RAW.data, index=pd.Index(RAW.ids, name="store")))
    learner.save(path, resume=True)
    card = read_card(path)
    assert card["class"] == "ConditionalSGDClassifier"
    assert card["condmeta_version"] == cm.__version__
    assert card["engine"] in ("native", "numpy")
    assert card["resumable"] is True
    assert card["sizes"] == {
        "training_tasks": 6, "kept_tasks": 6, "features": 3,
        "side_features": len(learner.side_features_),
    }  # fmt: skip
    assert card["schema"] == {
        "features": ["age", "size", "price"], "task": "store",
        "side_columns": ["area", "open", "city"], "classes": ["no", "yes"],
    }  # fmt: skip
    assert card["settings"]["lam"] == "0.25"
    assert card["settings"]["loss"] == "'hinge'"
    assert {"created", "python_version", "numpy_version", "format_version"} <= set(card)
    assert json.dumps(card)
    learner.save(path, tasks=False)
    assert read_card(path)["resumable"] is False
    assert read_card(path)["sizes"]["kept_tasks"] == 0


# -- what a file cannot hold -----------------------------------------------------------------------


class Quartic:
    """A loss of one's own."""

    def value(self, z, y):
        return (np.asarray(z) - y) ** 4 / 4

    def slope(self, z, y):
        return np.clip((np.asarray(z) - y) ** 3, -9, 9)


class Twice(feature_maps.Identity):
    """A map of one's own: a subclass of a known one is no known one."""

    def transform(self, X):
        return 2.0 * X


class Still:
    """An inner algorithm of one's own."""

    def solve(self, theta, X, y):
        return theta, np.zeros_like(theta), 0.0


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"loss": Quartic()}, "Quartic"),
        ({"feature_map": Twice()}, "Twice"),
        ({"feature_map": [feature_maps.Identity(), Twice()]}, "Twice"),
        ({"inner": Still()}, "Still"),
    ],
)
def test_python_objects_are_refused_and_pickle_is_named(path, params, name):
    params = {"feature_map": feature_maps.Identity()} | params
    learner = cm.ConditionalSGDRegressor(**params).fit(X, Y, task=TASK, side_info=SIDE)
    path.write_text("an older file")
    with (
        unchanged(learner, X, task=TASK),
        pytest.raises(
            ModelFileError, match=rf"{name}, which a model file cannot hold\. pickle and joblib can"
        ),
    ):
        learner.save(path)
    assert path.read_text() == "an older file"


def test_unfitted_learner_and_absent_file(path):
    with pytest.raises(NotFittedError):
        cm.PooledRegressor().save(path)
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        cm.load(path)
