"""The solutions for many lam at once are those for each lam."""

import numpy as np
import pytest

from condmeta.inner.algorithms import Batch
from condmeta.inner.ridge_path import ridge_path
from condmeta.tasks.points import Points


@pytest.mark.parametrize("weighted", [False, True])
def test_path_gives_the_solution_of_every_lam(weighted):
    rng = np.random.default_rng(0)
    offsets, d, lams = np.array([0, 3, 15, 20]), 6, [1e-4, 0.3, 20.0]  # both forms
    X, y, theta = rng.normal(size=(20, d)), rng.normal(size=20), rng.normal(size=d)
    weight = rng.integers(1, 4, 20).astype(float) if weighted else None
    rows, at = rng.normal(size=(7, d)), np.array([0, 2, 2, 7])
    found = ridge_path(theta, Points(X, y, offsets, weight), rows, at, lams)
    for j, lam in enumerate(lams):
        given = {} if weight is None else {"weight": weight}
        coef = (
            Batch(lam, "squared").solve_tasks(np.tile(theta, (3, 1)), X, y, offsets, **given).coef
        )
        expected = np.einsum("ij,ij->i", rows, coef[np.repeat(np.arange(3), np.diff(at))])
        np.testing.assert_allclose(found[:, j], expected, rtol=1e-7, atol=1e-9)
