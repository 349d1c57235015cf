r"""One prior in place of several that are about equally good: their mixture, by its moments.

Settings whose held-out losses differ by less than the noise of these losses should not replace one
another at random. A setting c has as weight p_c the share of bootstrap samples of the held-out
tasks in which it is the best. The mixture of the priors N(W_c phi, H_c) has mean W phi with
W = sum_c p_c W_c, and a covariance whose mean over the training tasks is

    H = sum_c p_c (H_c + (W_c - W) E[phi phi^T] (W_c - W)^T).
"""

import numpy as np

from condmeta.inner.posterior import lower_root
from condmeta.meta.blocks import with_one
from condmeta.meta.prior import Prior

SAMPLES = 400  # of the bootstrap
LEAST_WEIGHT = 0.05  # settings with a smaller one are left out


def bootstrap_weights(losses: dict) -> dict:
    """Return the weights of candidates from their losses (T,) on held-out tasks.

    A sample weighs every task by an exponential variable (the Bayesian bootstrap).

    Examples
    --------
    >>> bootstrap_weights({"good": np.zeros(9), "bad": np.ones(9)})
    {'good': 1.0}
    """
    table = np.array(list(losses.values()))
    draws = np.random.default_rng(0).exponential(size=(SAMPLES, table.shape[1]))
    best = np.argmin(draws @ table.T, axis=1)
    return normalised(dict(zip(losses, np.bincount(best, minlength=len(table)), strict=True)))


def evidence_weights(scores: dict) -> dict:
    """Return the weights of candidates from minus their log evidence."""
    least = min(scores.values())
    return normalised({candidate: np.exp(least - score) for candidate, score in scores.items()})


def normalised(weights: dict) -> dict:
    """Return weights that sum to one, without small ones."""
    total = sum(weights.values())
    kept = {c: w for c, w in weights.items() if w >= LEAST_WEIGHT * total}
    total = sum(kept.values())
    return {candidate: float(weight / total) for candidate, weight in kept.items()}


def mix(priors: list[Prior], weights, Phi) -> Prior:
    """Return the mixture of priors as one prior; `Phi` (T, k) of the training tasks."""
    if len(priors) == 1:
        return priors[0]
    W = sum(p * prior.W for p, prior in zip(weights, priors, strict=True))
    phi, H = with_one(Phi), 0.0
    for p, prior in zip(weights, priors, strict=True):
        between = phi @ (prior.W - W)
        H = H + p * (prior.H + between.T @ between / len(phi))
    parameters = [p * np.log(prior.s2) for p, prior in zip(weights, priors, strict=True)]
    return Prior(W, lower_root(H), np.exp(sum(parameters)))
