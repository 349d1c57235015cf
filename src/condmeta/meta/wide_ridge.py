r"""The ridge on the map of many columns, chosen by leaving tasks out.

The mean of task t's weights is B phi_t with phi_t = (1, z_t), B = (b, M), b ~ N(0, I / lam) and
M ~ N(0, c I / lam). With V the covariance of the labels around their mean (`meta.wide_noise`), the
labels have the covariance K / lam + V with the kernel K of `WideRows`. `meta.wide_solve` computes
the posterior mean of B.

lam and c are chosen by leaving out one task after the other. With Q = (K / lam + V)^-1 the
residuals of task t from a fit without it are exactly Q_tt^-1 (Q y)_t.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotri

from condmeta.meta.wide_noise import TaskNoise
from condmeta.meta.wide_rows import WideRows

SHARES = (0.0, 0.1, 1.0)  # candidates of c times k: no side information, a little, much
STRENGTHS = np.logspace(-3, 3, 7)  # candidates of the mean of K / lam, relative to that of V
AROUND = np.array([0.1, 0.3, 1.0, 3.0, 10.0])  # candidates of lam, relative to a good one


class Ridge(NamedTuple):
    """The penalty lam on b, and the size c of M relative to b."""

    lam: float
    c: float


def choose_ridge(data: WideRows, y, noise: TaskNoise, near: Ridge | None = None) -> Ridge:
    """Choose lam and c by leaving out one task after the other, on a sample of the rows.

    With `near`, c stays and lam is looked for around that one.
    """
    part, rows = data.sample()
    noise, y = noise.take(rows, part.offsets), y[rows]
    if near is not None:
        return Ridge(_best_lam(part.kernel(near.c), y, noise, near.lam * AROUND)[0], near.c)
    size = noise.s2 + float(np.einsum("ij,ij->", noise.Z, noise.Z)) / len(y)
    k, best, least, strengths = data.Phi.shape[1], Ridge(np.inf, 0.0), None, STRENGTHS
    for share in SHARES if k else SHARES[:1]:
        c = share / max(k, 1)
        K = part.kernel(c)
        unit = max(float(np.trace(K)) / len(K), 1e-300) / size
        lam, errors = _best_lam(K, y, noise, unit / strengths)
        if least is None or is_better(errors, least):
            best, least = Ridge(lam, c), errors
        strengths = unit / (best.lam * AROUND)
    return best


def is_better(errors, before) -> bool:
    """Return whether the errors of tasks (T,) are smaller, by two standard errors of the sum."""
    gain = before - errors
    return bool(gain.sum() > 2 * np.sqrt(len(gain)) * gain.std())


def _best_lam(K, y, noise: TaskNoise, lams) -> tuple[float, np.ndarray]:
    """Return lam with the least error, and the errors of tasks: a candidate, or from a parabola.

    The search starts in the middle and goes on while the error falls.
    """
    lams, found = np.sort(lams), {}

    def error(at: int) -> float:
        if at not in found:
            found[at] = left_out_errors(K, y, noise, lams[at])
        return float(found[at].sum())

    at, least = -1, len(lams) // 2
    while at != least:
        at = least
        least = min((i for i in (at, at - 1, at + 1) if 0 <= i < len(lams)), key=error)
    if 0 < at < len(lams) - 1:
        x = np.log(lams[at - 1 : at + 2])
        a, b, _ = np.polyfit(x - x[1], [error(i) for i in (at - 1, at, at + 1)], 2)
        lam = float(np.exp(x[1] - b / (2 * a))) if a > 0 else lams[at]
        errors = left_out_errors(K, y, noise, lam)
        if errors.sum() < error(at):
            return lam, errors
    return float(lams[at]), found[at]


def left_out_errors(K, y, noise: TaskNoise, lam: float) -> np.ndarray:
    """Return e_t^T V_t^-1 e_t (T,), with e_t the residuals of a fit without task t."""
    e = left_out_residuals(K, y, noise, lam)
    return np.add.reduceat(e * noise.solve(e), noise.offsets[:-1])


def left_out_residuals(K, y, noise: TaskNoise, lam: float) -> np.ndarray:
    """Return the residuals (N,) of each task from a fit without it."""
    factor = cholesky(noise.add_to(K / lam), lower=True, overwrite_a=True)
    Q = dpotri(factor, lower=1, overwrite_c=1)[0]  # the lower triangle
    Qy, residual = dsymv(1.0, Q, y, lower=1), np.empty(len(y))
    for lo, hi in pairwise(noise.offsets):
        residual[lo:hi] = solve(Q[lo:hi, lo:hi], Qy[lo:hi], lower=True, assume_a="pos")
    return residual
