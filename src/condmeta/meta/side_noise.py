r"""Noise that follows side information: s2_t = s2 exp(delta . phi_t).

With the expected residuals rss_t = E ||y_t - X_t w||^2 given the labels (`posterior_pass`),

    dJ/d delta = sum_t phi_t (rss_t / s2_t - n_t) / 2 - 10 delta,

where 10 is a ridge: phi_t is standardised, so that delta of .3 costs half a unit of log likelihood.
Delta and log s2 take Fisher's steps, with the information sum_t n_t phi_t phi_t^T / 2, in turn with
fits of the prior, in which s2_t / s2 is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import chi2

from condmeta.inner.posterior import posterior_of_statistics
from condmeta.meta.blocks import Block, Blocks, Sums
from condmeta.meta.prior import LearnedPrior, Prior

RIDGE = 10.0
STEPS = 3  # of delta, between two fits of the prior
ROUNDS = 5  # of such steps and a fit
SETTLED = 1e-3  # of the log likelihood that a round of steps gains
LARGEST_STEP = 2.0  # of log s2_t at a typical task
LARGEST_LOG = 30.0  # of s2_t / s2: a task far from all others has no infinite noise
LEVEL = 0.01  # of the test whether noise may follow side information


def noise_factors(
    Phi: np.ndarray, delta: np.ndarray | None, limits: Sequence[float] = (-LARGEST_LOG, LARGEST_LOG)
) -> np.ndarray | None:
    """Return s2_t / s2 (T,) of tasks with features Phi (T, k); None if it is 1.

    `limits` of its logarithm: far from all training tasks nothing is known about the noise.
    """
    return None if delta is None else np.exp(np.clip(Phi @ delta, *limits))


def learn_side_noise(
    blocks: Blocks, learned: LearnedPrior, refit: Callable[[Prior, np.ndarray], LearnedPrior]
) -> tuple[LearnedPrior, np.ndarray]:
    """Return the prior and delta (k,) that maximise J; `refit(start, delta)` fits the prior."""
    delta = None
    for _ in range(ROUNDS):
        prior, delta, gained = fisher_steps(blocks, learned.prior, delta)
        learned = refit(prior, delta)
        if gained < SETTLED:
            break
    return learned, delta


def fisher_steps(
    blocks: Blocks, prior: Prior, delta: np.ndarray | None, n_steps: int = STEPS
) -> tuple[Prior, np.ndarray, float]:
    """Return the prior with another s2, delta, and about how much J has grown."""
    gained, k = 0.0, None
    for _ in range(n_steps):
        slope, information, _ = blocks.map_sum(_slope, prior, delta)
        k = len(slope) - 1
        delta = np.zeros(k) if delta is None else delta
        ridge = np.append(np.full(k, RIDGE), 0.0)
        slope = slope - ridge * np.append(delta, 0.0)
        step = np.linalg.lstsq(information + np.diag(ridge), slope, rcond=None)[0]
        step *= min(1.0, LARGEST_STEP / max(np.linalg.norm(step), 1e-300))
        delta, prior = delta + step[:-1], prior._replace(s2=float(prior.s2 * np.exp(step[-1])))
        gained += float(step @ slope) / 2
    return prior, delta, gained


def may_follow(scores: np.ndarray, Phi: np.ndarray, count: np.ndarray) -> bool:
    """Return whether the noise of tasks may follow Phi (T, k), by a score test at delta = 0.

    scores (T,) are (rss_t / s2 - n_t) / 2. The variance of the sum is read off the tasks, so that
    tasks with a noise of their own do not pass for a pattern.
    """
    centred = Phi - np.average(Phi, axis=0, weights=np.maximum(count, 1e-300))
    parts = centred * scores[:, None]
    total = parts.sum(axis=0)
    covariance = parts.T @ parts
    statistic = total @ np.linalg.pinv(covariance, hermitian=True) @ total
    return bool(statistic > chi2.isf(LEVEL, np.linalg.matrix_rank(covariance, hermitian=True)))


def _slope(block: Block, prior: Prior, delta: np.ndarray | None) -> Sums:
    """Return sums: of phi (rss / s2_t - n) / 2, of n phi phi^T / 2, and the log likelihood."""
    given, Phi1, n_jobs = block
    theta = Phi1[:, -len(prior.W) :] @ prior.W
    factors = noise_factors(Phi1[:, :-1], delta)
    s2 = prior.s2 if factors is None else prior.s2 * factors
    _, _, rss, loglik, _ = posterior_of_statistics(given, theta, prior.L, s2, n_jobs, False)
    count = given.count.astype(float)
    slope = Phi1.T @ (rss / s2 - count) / 2
    return slope, (Phi1 * count[:, None]).T @ Phi1 / 2, loglik.sum()
