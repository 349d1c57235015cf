"""Standard deviations in SQL: the variance of a new label as a quadratic form of centred features.

With t = (x - m, 1), a label of a task has the variance s2 + t^T P t, P the covariance of its
weights. Both are in the table of coefficients, one column for each pair of features, in units of
the learner: they are squares, which might overflow in others. Mean counts and probabilities of
ordered classes need the same form, of the variance of <x, w> alone: s2 is 0 there.
"""

from __future__ import annotations

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.dialects import number
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.known_statistics import known_statistics
from condmeta.inner.posterior import BLOCK, Gaussian
from condmeta.inner.row_posterior import RowPosterior
from condmeta.inner.squared import SquaredState
from condmeta.inner.student import StudentGaussian

VARIANCE = "(variance)"


def variance_names(features: list[str]) -> list[str]:
    """Return the columns of the quadratic form: 1, then each feature, then each pair."""
    pairs = [f"{VARIANCE} {a} * {b}" for i, a in enumerate(features) for b in features[: i + 1]]
    return [VARIANCE, *(f"{VARIANCE} {name}" for name in features), *pairs]


def variance_columns(fitted: Fitted, features: list[str]) -> dict[str, np.ndarray]:
    """Return the columns of the quadratic form, with a row for each known task."""
    if isinstance(fitted.inner, RowPosterior):
        form = _form(fitted, fitted.tasks.state.covariance, 0.0)
        return dict(zip(variance_names(features), form.T, strict=True))
    require_std(fitted)
    state = known_statistics(fitted)
    if state is None:
        raise DataError(
            "Standard deviations need the statistics of the tasks, which this model was saved "
            "without. Save it with resume=True."
        )
    theta = fitted.tasks.theta
    block = max(BLOCK // theta.shape[1] ** 2, 1)
    parts = [
        _form(
            fitted,
            *fitted.inner.label_covariances(
                state.take(slice(lo, lo + block)), theta[lo : lo + block]
            ),
        )
        for lo in range(0, len(theta), block)
    ]
    return dict(zip(variance_names(features), np.concatenate(parts).T, strict=True))


def variance_of_new(fitted: Fitted) -> np.ndarray:
    """Return the numbers of the quadratic form of a task without points and of noise s2."""
    if isinstance(fitted.inner, RowPosterior):
        return _form(fitted, (fitted.inner.factor @ fitted.inner.factor.T)[None], 0.0)[0]
    require_std(fitted)
    width = fitted.scales.width
    blank = SquaredState.start(1, width), np.zeros((1, width))
    return _form(fitted, *fitted.inner.label_covariances(*blank))[0]


def varies_by_side(fitted: Fitted) -> bool:
    """Return whether the variance of a task without points depends on its side information."""
    return (
        fitted.tau.noise is not None or getattr(fitted.inner, "prior_covariance", None) is not None
    )


def variance_by_features(fitted: Fitted, phi: list[str], centred: list[str]) -> str:
    """Return the variance of <x, w> of a task without points, as `PriorCovariance` has it.

    With t as above it is sum_i g_i <t, B_i>^2, g the growth of each coordinate; `phi` are the
    features of the task and `centred` those of the row, as expressions.
    """
    inner = fitted.inner
    cold = inner.cold_covariance is not None
    basis, mean, directions, variances, most = (
        inner.cold_covariance if cold else inner.prior_covariance
    )
    unit = np.append(1 / fitted.scales.x_scale, np.ones(len(basis) - len(centred)))
    row = [*centred, *["1e0"] * (len(basis) - len(centred))]
    away = [f"({term} - {number(middle)})" for term, middle in zip(phi, mean, strict=True)]
    squares = [_square(_products(axis, away)) for axis in directions.T]
    terms = []
    for weights, by, bound in zip((basis * unit[:, None]).T, variances.T, most, strict=True):
        if weights.any():
            opened = _products(by, [*squares, "1e0"])
            cut = f"CASE WHEN {opened} > {number(bound)} THEN {number(bound)} ELSE {opened} END"
            terms.append(f"(1e0 + {cut}) * {_square(_products(weights, row))}")
    return "\n      + ".join(terms) if terms else "0e0"


def _products(numbers, terms: list[str]) -> str:
    return " + ".join(f"{number(a)} * {term}" for a, term in zip(numbers, terms, strict=True))


def _square(term: str) -> str:
    return f"({term}) * ({term})"


def require_std(fitted: Fitted) -> None:
    """Raise if the variance of a label is not such a form."""
    if type(fitted.inner) not in (Gaussian, StudentGaussian):
        raise DataError("Standard deviations in SQL are for ConditionalRidge without drift.")


def _form(fitted: Fitted, P: np.ndarray, s2) -> np.ndarray:
    """Return the numbers (T, q) in the order of `variance_names`."""
    scales = fitted.scales
    d = len(scales.x_mean)
    by = 1 / scales.x_scale
    rows, columns = np.tril_indices(d)
    pairs = P[:, rows, columns] * (by[rows] * by[columns]) * np.where(rows == columns, 1.0, 2.0)
    level, single = np.broadcast_to(s2, len(P)), np.zeros((len(P), d))
    if scales.fit_intercept:
        level, single = s2 + P[:, d, d], 2.0 * P[:, d, :d] * by
    return np.column_stack([level, single, pairs])
