r"""Biased regularisation with the squared loss, for many lam at once.

With R the rows and e the residuals y - X theta of a task's points, each times the square root of
how often it counts, n their number, and the smaller of R R^T = U diag(s) U^T and
R^T R = Q diag(s) Q^T,

    A(theta, Z) = theta + R^T U (U^T e / (s + n lam)) = theta + Q (Q^T R^T e / (s + n lam)) :

one decomposition serves every lam.
"""

from itertools import pairwise

import numpy as np


def ridge_path(theta, points, rows, at, lams) -> np.ndarray:
    """Return the predictions (M, L) for rows (M, d) of T problems, for each of L lams.

    theta (d,), where all problems start; points, those to solve from (see `Points`), and at (T+1,),
    the offsets of `rows` by problem.
    """
    X, y, offsets, weight = points
    predicted = np.empty((len(rows), len(lams)))
    for (lo, hi), (first, last) in zip(pairwise(offsets), pairwise(at), strict=True):
        R, e, new = X[lo:hi], y[lo:hi] - X[lo:hi] @ theta, rows[first:last]
        n = float(hi - lo)
        if weight is not None:
            root = np.sqrt(weight[lo:hi])
            R, e, n = R * root[:, None], e * root, float(weight[lo:hi].sum())
        if len(R) <= R.shape[1]:
            s, U = np.linalg.eigh(R @ R.T)
            right, left = U.T @ e, (new @ R.T) @ U
        else:
            s, Q = np.linalg.eigh(R.T @ R)
            right, left = Q.T @ (R.T @ e), new @ Q
        shrunk = right[:, None] / (np.maximum(s, 0.0)[:, None] + n * np.asarray(lams))
        predicted[first:last] = (new @ theta)[:, None] + left @ shrunk
    return predicted
