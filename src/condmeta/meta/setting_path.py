"""The order in which the priors of several settings are fitted, and their evidence.

With W integrated out, the log evidence of a fit is

    J + (k d / 2) log kappa + (1/2) logdet H - (1/2) logdet Lambda - (p / 2) log T,
    Lambda = sum_t phi_t phi_t^T (x) (I - A_t^-1) + kappa diag(1, .., 1, 0) (x) I
             + diag(0, .., 0, 1) (x) L^T P L,

with A_t as in `inner.posterior`, p the number of free entries of H, and P the diagonal matrix of
the precisions of b in its prior (`meta.constant_prior`), 0 if that is flat.
"""

import numpy as np

from condmeta.inner.posterior import precision
from condmeta.inner.squared import SquaredState
from condmeta.meta.prior import METRICS, SMALLEST, LearnedPrior, Prior


def path(candidates, learn):
    """Yield the fits of all pairs (metric, kappa), each from the one before it.

    The first kappa of a metric starts from the first kappa of the simpler metric;
    `learn(metric, kappa, start)` fits one pair.
    """
    metrics = [name for name in METRICS if any(c.metric == name for c in candidates)]
    kappas = sorted({c.kappa for c in candidates}, reverse=True)
    first: Prior | None = None
    for metric in metrics:
        start = first
        for kappa in kappas:
            learned = learn(metric, kappa, start)
            start = learned.prior
            first = start if kappa == kappas[0] else first
            yield (metric, kappa), learned


def evidence(
    stats: SquaredState, Phi, metric: str, kappa: float, learned: LearnedPrior, root_of_b=0.0
) -> float:
    """Return the log evidence of a fit, up to a constant that all settings share.

    `root_of_b` (d,) has the square roots of P.
    """
    d = stats.moment.shape[1]
    k = 0 if np.isinf(kappa) else Phi.shape[1]
    phi = np.column_stack([Phi[:, :k], np.ones(len(Phi))])
    # The limit of a singular H exists, but not its terms one by one.
    H = learned.prior.H
    L = np.linalg.cholesky(H + max(1e-10 * np.trace(H) / d, SMALLEST) * np.eye(d))
    A = precision(stats.gram, L, np.full(len(phi), learned.prior.s2))
    pull = np.eye(d) - np.linalg.inv(A)
    Lambda = np.einsum("ta,tb,tij->aibj", phi, phi, pull, optimize=True).reshape(-1, (k + 1) * d)
    ridge = np.repeat(np.append(np.full(k, kappa), 0.0), d) if k else np.zeros(d)
    Lambda[np.arange(len(ridge)), np.arange(len(ridge))] += ridge
    # b is integrated over the directions that some row has: the likelihood is flat in the others.
    sizes, directions = np.linalg.eigh(stats.gram.sum(axis=0))
    flat = L.T @ directions[:, sizes <= d * np.finfo(float).eps * sizes[-1]]
    of_b = L.T * root_of_b
    Lambda[-d:, -d:] += flat @ flat.T + of_b @ of_b.T
    logdet = np.log(np.maximum(np.linalg.eigvalsh(Lambda), SMALLEST)).sum()
    free = {"identity": 1, "diagonal": d, "full": d * (d + 1) // 2}[metric]
    value = learned.objective + (k * d / 2 * np.log(kappa) if k else 0.0)
    value = value + np.log(np.diag(L)).sum() - logdet / 2
    return float(value - free / 2 * np.log(len(phi)))
