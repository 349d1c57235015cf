"""A model that was fitted with an offset is not used without one."""

import numpy as np
import pytest

import condmeta as cm
from condmeta.errors import DataError

RNG = np.random.default_rng(0)
TASK = np.repeat(np.arange(25), 6)
X = RNG.normal(size=(150, 2))
OFFSET = 10 * RNG.normal(size=150)
Y = X[:, 0] * RNG.normal(size=25)[TASK] + OFFSET + 0.1 * RNG.normal(size=150)
FORGOTTEN = (
    r"^The model was fitted with an offset: give offset= here as well.* or offset=0 for rows"
)


@pytest.fixture
def model():
    return cm.ConditionalRidge().fit(X, Y, task=TASK, offset=OFFSET)


def test_a_forgotten_offset_is_an_error(model):
    for call in (
        lambda: model.predict(X, task=TASK),
        lambda: model.score(X, Y, task=TASK),
        lambda: model.adapt(X[:3], Y[:3]),
        lambda: model.update(X[:3], Y[:3], task=TASK[:3]),
        lambda: model.partial_fit(X[:3], Y[:3], task=[99] * 3),
    ):
        with pytest.raises(DataError, match=FORGOTTEN):
            call()
    assert model.n_points(X[:1], task=TASK[:1]) == 6


def test_zero_leaves_it_out(model):
    whole = model.predict(X, task=TASK, offset=OFFSET)
    part = model.predict(X, task=TASK, offset=0)
    np.testing.assert_allclose(part + OFFSET, whole)
    np.testing.assert_array_equal(model.predict(X, task=TASK, offset=np.zeros(150)), part)
    same = model.adapt(X[:3], Y[:3] - OFFSET[:3], offset=0).predict(X)
    np.testing.assert_array_equal(same, model.adapt(X[:3], Y[:3], offset=OFFSET[:3]).predict(X))
    assert np.isfinite(model.adapt().predict(X)).all()  # no points: nothing to take it off


def test_models_without_an_offset_need_none():
    model = cm.ConditionalRidge().fit(X, Y, task=TASK, offset=0)
    np.testing.assert_array_equal(
        model.predict(X, task=TASK), model.predict(X, task=TASK, offset=0.0)
    )


def test_chunks_and_files_remember_it(tmp_path):
    whole = cm.ConditionalRidge().fit(X, Y, task=TASK, offset=OFFSET)
    chunked, half = cm.ConditionalRidge(), TASK < 12
    for part in (half, ~half):
        chunked.partial_fit(X[part], Y[part], task=TASK[part], offset=OFFSET[part])
    np.testing.assert_allclose(
        chunked.predict(X, task=TASK, offset=OFFSET), whole.predict(X, task=TASK, offset=OFFSET)
    )
    chunked.save(tmp_path / "model.condmeta")
    with pytest.raises(DataError, match=FORGOTTEN):
        cm.load(tmp_path / "model.condmeta").predict(X, task=TASK)


@pytest.mark.parametrize("kind", ["ridge", "auto", "calibrated"])
def test_check_takes_the_offset(kind):
    """Labels less the offset are judged; without the offset it is an error, as elsewhere."""
    before = np.arange(150) % 5 < 4
    rows = X[before], Y[before]
    call = {"task": TASK[before], "offset": OFFSET[before]}
    if kind == "calibrated":
        model = cm.calibrate(cm.ConditionalRidge(), *rows, shots=(0, 1), **call)
    else:
        learner = cm.ConditionalRidge() if kind == "ridge" else cm.AutoRegressor(base=None)
        model = learner.fit(*rows, **call)
    new = X[~before], Y[~before]
    report = cm.check(model, *new, task=TASK[~before], offset=OFFSET[~before])
    plain = model.model if kind == "calibrated" else model
    errors = Y[~before] - OFFSET[~before] - (
        plain.predict(X[~before], task=TASK[~before]) if kind == "calibrated"
        else plain.predict(X[~before], task=TASK[~before], offset=0)
    )  # fmt: skip
    found = np.average(report.frame["mae"], weights=report.frame["n"])
    np.testing.assert_allclose(found, np.abs(errors).mean(), rtol=1e-9)
    with pytest.raises(DataError, match=FORGOTTEN):
        cm.check(model, *new, task=TASK[~before])
