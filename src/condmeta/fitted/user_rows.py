"""Rows, labels and weights that a user gives, as checked arrays."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import column_or_1d

from condmeta.errors import DataError
from condmeta.fitted.label_codes import encode
from condmeta.fitted.predictor import LinearPredictor
from condmeta.inner.low_rank import LowRankGaussian
from condmeta.tasks.arrays import as_matrix, is_sparse
from condmeta.tasks.checks import check_finite
from condmeta.tasks.containers import refuse_odd
from condmeta.tasks.frames import column_names, is_frame
from condmeta.tasks.numbers import refuse_masked, to_floats
from condmeta.tasks.times import read_times
from condmeta.tasks.weights import read_weight, repeats, split_time


def numbers(X):
    """Return an array of objects as floats, or name the column that holds no real numbers.

    Anything that is numeric already, or is a table, is returned unchanged.
    """
    refuse_odd(X, "X")
    if not isinstance(X, (np.ndarray, list, tuple)):
        return X
    refuse_masked(X, "X")
    try:
        array = np.asarray(X)
        # A list with a text among its numbers would become an array of texts.
        array = array if array.dtype.kind != "U" or X is array else np.asarray(X, dtype=object)
    except ValueError:
        raise DataError("X has rows of unequal length; it must be a 2-D table.") from None
    if array.ndim != 2 or array.dtype.kind not in "OUScMm":
        return X
    out = np.empty(array.shape)
    for j, column in enumerate(array.T):
        try:
            out[:, j] = to_floats(column, f"Feature {j} of X")
        except DataError as sentence:
            # Append scikit-learn's own words: its users look for them.
            if array.dtype.kind == "c":
                raise DataError(f"{sentence} (Complex data not supported)") from None
            if "objects (of type" in str(sentence):
                raise TypeError(f"{sentence} (argument must be a string or a number)") from None
            raise
    return out


def read_target(y, n_rows: int, owner: str) -> np.ndarray:
    """Return y (N,), of any type, or raise if it does not fit X."""
    if y is None:
        raise DataError(f"{owner} requires y to be passed, but the target y is None.")
    refuse_odd(y, "y")
    if getattr(getattr(y, "dtype", None), "kind", "") == "c":
        raise DataError("y holds complex numbers; y must be real. (Complex data not supported)")
    if type(y) is not np.ndarray or y.ndim != 1:
        refuse_masked(y, "y")
        y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise DataError(f"X has {n_rows} rows and y has {len(y)}: they must be equally long.")
    return y


def read_rows(predictor: LinearPredictor, X) -> np.ndarray:
    """Return the rows X (N, d) of a call to an adapted model; they may hold NaN."""
    names = predictor.feature_names
    if names is not None and is_frame(X) and tuple(column_names(X)) != tuple(names):
        raise DataError(
            "The feature names should match those that were passed during fit: "
            f"{list(names)}. Got {list(column_names(X))} instead."
        )
    X, d = as_matrix(numbers(X)), predictor.scales.n_inputs
    if is_sparse(X) and not isinstance(predictor.inner, LowRankGaussian):
        X = X.toarray()
    if X.shape[1] != d:
        raise DataError(
            f"X must have shape (rows, {d}), one column for each feature of the fit. "
            f"Got shape {X.shape} instead."
        )
    return X


def read_points(predictor: LinearPredictor, X, y, weight):
    """Return the points of one task, how often each counts (None: once), and its time or None."""
    y = read_target(y, len(X), predictor.owner)
    y = encode(y, predictor.label_kind, predictor.classes, weight)
    check_finite(X, y, feature_names=predictor.feature_names)
    weight, time = split_time(weight)
    time = None if time is None else read_times(time, len(X))
    if weight is None:
        return X, y, None, time
    if not predictor.weighs:
        raise no_weights(predictor.owner)
    weight = read_weight(weight, len(X))
    counts = repeats(weight) > 0
    return X[counts], y[counts], weight[counts], None if time is None else time[counts]


def no_weights(owner: str) -> DataError:
    """Return the error of an online learner that is given weights."""
    return DataError(
        f"{owner} takes no sample_weight: it reads one point after another, and a step of double "
        "length is not the same as two steps. Leave it out, repeat the rows, or use a learner "
        "that solves its tasks exactly, as ConditionalRidge, ConditionalLogistic, "
        "ConditionalERMRegressor or a baseline with inner='batch'."
    )
