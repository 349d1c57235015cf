"""Numbers of columns."""

import numpy as np
import pytest

from condmeta.tasks.numbers import column_ends


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 3), (340, 3), (341, 3), (5000, 7), (3, 2000), (9, 0)])
def test_ends_of_columns_are_those_of_numpy(shape, order):
    X = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    low, high = column_ends(X)
    np.testing.assert_array_equal(low, X.min(axis=0))
    np.testing.assert_array_equal(high, X.max(axis=0))
