"""Pooled maps against scikit-learn's ridge on the same design."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from condmeta.inner.squared import SquaredState
from condmeta.meta.blocks import OneBlock
from condmeta.meta.pooled_map import LARGEST, RIDGES, PooledForm, held_out_maps, pooled_map


def draw(n_tasks=30, n=5, d=2, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X, Phi = rng.normal(size=(n_tasks * n, d)), rng.normal(size=(n_tasks, k))
    task = np.repeat(np.arange(n_tasks), n)
    y = X @ np.ones(d) + (1 + X[:, 0]) * Phi[task, 0] + rng.normal(size=len(X)) + 3
    rows = np.column_stack([X, np.ones(len(X))])
    return X, y, Phi, task, SquaredState.of(rows, y, np.arange(n_tasks + 1) * n)


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("form", ["additive", "products"])
def test_it_is_the_ridge_of_all_rows(form, ridge):
    X, y, Phi, task, stats = draw()
    side = Phi[task]
    design = np.hstack([X, side])
    if form == "products":
        products = [X * side[:, [j]] for j in range(side.shape[1])]
        design = np.hstack([design, *products])
    expected = Ridge(ridge * len(y)).fit(design, y).predict(design)
    W = pooled_map(OneBlock.of(stats, Phi), PooledForm(form, ridge), (4, 3))
    theta = (Phi @ W[:-1] + W[-1])[task]
    found = np.einsum("ij,ij->i", np.column_stack([X, np.ones(len(X))]), theta)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    if form == "additive":
        assert not W[:-1, :-1].any()


def test_maps_of_folds_have_not_seen_the_held_out_tasks():
    *_, Phi, _, stats = draw()
    folds = [(np.arange(10, 30), np.arange(10)), (np.arange(10), np.arange(10, 30))]
    forms, maps = held_out_maps(stats, Phi, folds)
    for form, found in zip(forms, maps, strict=True):
        for (train, _), W in zip(folds, found, strict=True):
            blocks = OneBlock.of(stats.take(train), Phi[train])
            expected = pooled_map(blocks, form, W.shape)
            np.testing.assert_allclose(W, expected, rtol=1e-10, atol=1e-12)


def test_products_are_left_out_where_there_are_too_many_or_none():
    folds = [(np.arange(10), np.arange(10, 30))]
    *_, Phi, _, stats = draw(k=LARGEST // 3)
    assert {form.name for form in held_out_maps(stats, Phi, folds)[0]} == {"additive"}
    assert {form.name for form in held_out_maps(stats, Phi[:, :0], folds)[0]} == {"additive"}
