"""What a user passes as X and y becomes an array of numbers, or an error that says why not."""

import numpy as np
import pandas as pd
import pytest

from condmeta.errors import DataError
from condmeta.tasks import arrays


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.ones(3), r"X must be a 2-D table .* shape \(3,\).*Reshape your data"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.ones((2, 1)) * 1j, "X holds complex numbers; X must be real"),
        (np.array([["a"], ["b"]]), r"X holds text \('a'"),
        (np.array([[1.0, "Rome"]], object), r"X holds text \('Rome'"),
        (np.array([[{}]], object), r"X holds objects \(of type dict\)"),
        ([[1, 2], [3]], "rows of unequal length"),
        (np.array([["2024-05-01"]], "M8[D]"), "X holds dates"),
    ],
)
def test_unusable_x_says_what_is_wrong(X, sentence):
    with pytest.raises(DataError, match=sentence):
        arrays.as_matrix(X)


def test_sparse_x_stays_sparse():
    from scipy.sparse import csr_array

    X = arrays.as_matrix(csr_array(np.eye(2)))
    assert (len(X), X.nnz, X.dtype) == (2, 2, np.float64)
    assert arrays.as_matrix(X) is X
    with pytest.raises(DataError, match="sparse matrix of complex128; it must hold real numbers"):
        arrays.as_matrix(csr_array(np.eye(2) * 1j))


def test_numbers_stored_as_objects_are_numbers():
    X = np.array([[1, 2.5], [None, True]], object)
    np.testing.assert_array_equal(arrays.as_matrix(X), [[1, 2.5], [np.nan, 1]])


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.ones((2, 1)), r"y must be 1-D \(one number a row\), got an array of shape \(2, 1\)"),
        (pd.DataFrame({"y": [1]}), "y must be 1-D .* pass one column"),
        (["a", "b"], r"y holds text \('a', \.\.\.\); y must be numeric: encode it as numbers"),
        ([[1], [1, 2]], "y must be 1-D"),
    ],
)
def test_unusable_y_says_what_is_wrong(y, sentence):
    with pytest.raises(DataError, match=sentence):
        arrays.as_vector(y)
