"""Heads that bend in x: a transformer inside the learner."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, SplineTransformer

import condmeta as cm
from condmeta.errors import DataError
from condmeta.feature_maps import MeanInput


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(40), 10)
    X = rng.uniform(-2, 2, size=(400, 1))
    a, b = rng.normal(size=(2, 40))
    return X, a[task] * X[:, 0] + b[task] * X[:, 0] ** 2 + 0.1 * rng.normal(size=400), task


def test_it_is_the_learner_on_transformed_rows(data, tmp_path):
    X, y, task = data
    poly = PolynomialFeatures(2, include_bias=False)
    model = cm.ConditionalRidge(x_transform=poly).fit(X, y, task=task)
    plain = cm.ConditionalRidge().fit(poly.fit_transform(X), y, task=task)
    np.testing.assert_allclose(
        model.predict(X, task=task), plain.predict(poly.transform(X), task=task)
    )
    few, same = model.adapt(X[:5], y[:5]), plain.adapt(poly.transform(X[:5]), y[:5])
    np.testing.assert_allclose(few.coef_, same.coef_)
    few.update(X[5:8], y[5:8])
    np.testing.assert_allclose(few.predict(X[:3]), model.adapt(X[:8], y[:8]).predict(X[:3]))
    model.save(tmp_path / "bent.condmeta")
    loaded = cm.load(tmp_path / "bent.condmeta")
    assert np.array_equal(loaded.predict(X, task=task), model.predict(X, task=task))
    assert np.abs(model.predict(X, task=task) - y).mean() < 0.12


def test_splines_names_and_maps_of_points(data):
    X, y, task = data
    frame = pd.DataFrame({"age": X[:, 0]})
    model = cm.ConditionalRidge(MeanInput(), x_transform=SplineTransformer(4))
    model.fit(frame, y, task=task)
    names = model.coef_frame(wide=True).columns
    assert next(name for name in names if name.startswith("age_sp_")) == "age_sp_0"
    assert len(model.side_features_) == 6
    assert np.isfinite(model.predict(frame, task=task)).all()
    assert np.isfinite(model.predict(frame[:2], task=["new", "new"])).all()


def test_chunks_with_a_fixed_transformer(data):
    X, y, task = data
    poly = PolynomialFeatures(2, include_bias=False)
    one, chunked = (cm.ConditionalRidge(x_transform=poly) for _ in range(2))
    one.fit(X, y, task=task)
    for part in np.array_split(np.arange(40), 3):
        at = np.isin(task, part)
        chunked.partial_fit(X[at], y[at], task=task[at])
    np.testing.assert_allclose(chunked.predict(X, task=task), one.predict(X, task=task), atol=1e-8)


def test_what_a_transformer_may_not_give(data):
    X, y, task = data
    for function, sentence in (
        (lambda x: x[:3], r"gave an array of shape \(3, 1\)"),
        (lambda x: np.log(x - 5 + 0j).real * np.nan, "gave NaN or infinity in row 0"),
    ):
        with pytest.raises(DataError, match=sentence):
            cm.ConditionalRidge(x_transform=FunctionTransformer(function)).fit(X, y, task=task)
