r"""A model of the rows of all tasks, for tasks without points: the pooled map of counts.

The prior of `meta.logistic` is the best start for a task with points: it has the slopes within
tasks. For a task without any, the slopes of all rows together may be better (compare
`meta.pooled_map`). Each row is a task of its own here,

    f_ti = <x_ti, beta> + <m, phi_t> + N(0, v),

with the alpha of the prior, so that v has all that tasks differ by.
"""

from collections.abc import Iterator

import numpy as np

from condmeta.inner.likelihoods import NegativeBinomial
from condmeta.meta.ascent import Stopping
from condmeta.meta.prior import Prior
from condmeta.meta.shared_rows import ColumnParts, learn_shared_rows
from condmeta.tasks.points import Points


def pooled_priors(
    points: Points, Phi, kappas, alpha: float, stopping: Stopping, n_jobs: int = 1
) -> Iterator[tuple[float, Prior]]:
    """Yield each kappa with the model of all rows, as a prior of tasks.

    L has the root of v at the intercept, the last column. A kappa counts tasks, as it does in the
    prior of tasks; each fit starts the next.
    """
    N, (T, d), start = len(points.y), (len(Phi), points.X.shape[1]), None
    rows = points._replace(offsets=np.arange(N + 1))
    parts = ColumnParts(np.array([d - 1]), np.arange(d - 1))
    by_row = np.repeat(Phi, points.sizes, axis=0)
    kind = {"likelihood": NegativeBinomial, "parameter": alpha}
    how = kind | {"stopping": stopping, "n_jobs": n_jobs}
    for kappa in kappas:
        by_rows = kappa * N / T
        start = learn_shared_rows(rows, parts, by_row, "identity", by_rows, start, **how).prior
        W, L = np.zeros((Phi.shape[1] + 1, d)), np.zeros((d, d))
        W[-len(start.W) :, -1], W[-1, :-1], L[-1, -1] = start.W[:, 0], start.beta, start.L[0, 0]
        yield kappa, Prior(W, L, alpha)
