"""Coordinates of features, and the map back."""

from __future__ import annotations

import numpy as np
import pytest

from condmeta.meta.rotation import Rotation


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("k", [3, 9])
def test_a_map_of_coordinates_is_a_map_of_features(k, centre):
    rng = np.random.default_rng(k)
    Phi = rng.normal(size=(5, k)) * np.arange(1, k + 1) + 3
    rotation = Rotation.learn(Phi, centre)
    Z = rotation.apply(Phi)
    W = rng.normal(size=(Z.shape[1] + 1, 2))
    expected = np.column_stack([Z, np.ones(5)]) @ W
    np.testing.assert_allclose(np.column_stack([Phi, np.ones(5)]) @ rotation.undo(W), expected)


def test_features_are_on_one_scale():
    Phi = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    Z = Rotation.learn(Phi).apply(Phi)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), 1)
    raw = Rotation.learn(Phi, False)
    np.testing.assert_allclose(raw.apply(Phi), Phi / np.sqrt((Phi**2).mean(axis=0)))


def test_more_features_than_tasks_keep_their_inner_products():
    Phi = np.random.default_rng(1).normal(size=(4, 10))
    rotation = Rotation.learn(Phi)
    scaled = (Phi - Phi.mean(axis=0)) / Phi.std(axis=0)
    Z = rotation.apply(Phi)
    np.testing.assert_allclose(Z @ Z.T, scaled @ scaled.T, atol=1e-10)
    assert Z.shape == (4, 4)
