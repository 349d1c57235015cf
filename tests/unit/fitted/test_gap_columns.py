"""Trees read gaps that were filled and marked as gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd

import condmeta as cm
from condmeta.blas_threads import limit_threads
from condmeta.fitted import boosting
from condmeta.fitted.boosting import BoostingRows, fit_boosting
from condmeta.fitted.gap_columns import GapColumns


def draw(seed=0, n_tasks=100, n=20):
    """Return rows with gaps of large values, the same rows as a table encodes them, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_tasks * n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=len(X))
    gap = rng.random(X.shape) < 0.5 * (X > 0)
    known = np.where(gap, np.nan, X)
    filled = np.where(gap, np.nanmean(known, axis=0), X)
    encoded = np.stack([filled, gap], axis=2).reshape(len(X), 6)
    return known, encoded, y, np.repeat(np.arange(n_tasks), n)


def test_marked_gaps_are_found():
    known, encoded, _, _ = draw()
    found = GapColumns.learn(encoded)
    assert found.marked.tolist() == [True, False] * 3
    np.testing.assert_array_equal(found.apply(encoded)[:, ::2], known)
    one = encoded[:1].copy()
    one[0, 1] = 1.0  # a new row with a gap
    assert np.isnan(found.apply(one)[0, 0])
    assert one[0, 0] == encoded[0, 0]


def test_other_indicators_mark_no_gaps():
    rng = np.random.default_rng(0)
    x, shop = rng.normal(size=(200, 1)), np.arange(200) // 20
    rare = (shop == 3)[:, None]
    size = rng.normal(size=10)[shop][:, None]  # one value in the only shop of its kind
    size[shop == 3] = size.mean() + 2.0
    few = (np.arange(200) < 2)[:, None]
    for pair in ([x, rare], [size, rare], [x, few], [1.0 - rare, rare], [x, x]):
        Z = np.hstack(pair).astype(float)
        found = GapColumns.learn(Z)
        assert not found.marked.any()
        assert found.apply(Z) is Z
    assert not GapColumns.learn(np.empty((0, 2))).marked.any()


def test_trees_use_gaps(monkeypatch):
    _, encoded, y, task = draw()
    rows = BoostingRows(encoded, y, None, task, task % 5)
    none = GapColumns(np.zeros(6, bool), np.zeros(6))
    with limit_threads(1):
        errors = [np.abs(fit_boosting(rows, "squared")[1] - y).mean()]
        monkeypatch.setattr(boosting.GapColumns, "learn", lambda Z: none)
        errors.append(np.abs(fit_boosting(rows, "squared")[1] - y).mean())
    assert errors[0] < 0.98 * errors[1]


def test_a_table_with_gaps(tmp_path):
    known, _, y, task = draw(n_tasks=40, n=12)
    table = pd.DataFrame(known, columns=["a", "b", "c"]).assign(shop=task, sold=y)
    learner = cm.ConditionalRidge(base="boosting")
    model = cm.TableModel(learner, task="shop", target="sold", missing="impute").fit(table)
    assert model.learner_.fitted_.predictor.shared.model.gaps.marked.sum() == 3
    model.save(tmp_path / "gaps.condmeta")
    loaded = cm.load(tmp_path / "gaps.condmeta")
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
