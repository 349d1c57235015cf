r"""The dual of a piecewise loss: a quadratic program in a box.

    min over low <= a <= high of   1/2 ||X^T a||^2 / c + 1/2 sum_i q_i a_i^2 + <r, a>

with X (n, d), r = y - X theta, c = lam n, and q_i the curvature of the loss. An interior-point
method (Mehrotra's predictor and corrector; a d x d or n x n linear system, whichever is smaller)
finds which slopes are at a bound. The free ones then solve a linear system: the answer is exact to
rounding and does not depend on where the iteration stopped.
"""

import numpy as np

MAX_STEPS = 100
MAX_SWAPS = 30


def solve_box_qp(X, r, c, q, low, high, target, count) -> np.ndarray:
    """Return the minimiser a (n,); `target` bounds the complementarity sum, n times the gap.

    `count` is the number of points, each as often as it counts.
    """
    reached = None
    for tighter in (1.0, 1e-3, 1e-6):  # a wrong guess of the bounds: go further along the path
        a, lower, upper = _interior_point(X, r, c, q, low, high, tighter * target)
        exact = _finish(X, r, c, q, low, high, a, lower, upper, count)
        if exact is not None:
            return exact
        reached = a if reached is None else reached
    return reached


def _interior_point(X, r, c, q, low, high, target):
    """Follow the central path; return a and the multipliers of its two bounds."""
    n, d = X.shape
    gram = X @ X.T / c if n <= d else None

    def gradient(a):
        return X @ (X.T @ a) / c + q * a + r

    def factor(diagonal):
        """Return a solver for (X X^T / c + diag) s = b."""
        if gram is not None:
            matrix = gram + np.diag(diagonal)
            return lambda b: np.linalg.solve(matrix, b)
        scaled = X / diagonal[:, None]
        inner = c * np.eye(d) + X.T @ scaled
        return lambda b: b / diagonal - scaled @ np.linalg.solve(inner, scaled.T @ b)

    a = (low + high) / 2
    g = gradient(a)
    start = max(np.abs(g).mean(), np.finfo(float).tiny)
    lower, upper = np.maximum(g, 0) + start, np.maximum(-g, 0) + start
    for _ in range(MAX_STEPS):
        above, below = a - low, high - a
        total = above @ lower + below @ upper
        if total <= target:
            break
        solve = factor(q + lower / above + upper / below)
        step = solve(-g)
        d_lower = -lower - lower * step / above
        d_upper = -upper + upper * step / below
        length = _longest((above, step), (below, -step), (lower, d_lower), (upper, d_upper))
        after = (above + length * step) @ (lower + length * d_lower)
        after += (below - length * step) @ (upper + length * d_upper)
        centre = (after / total) ** 3 * total / (2 * n)
        fix_lower = centre - step * d_lower
        fix_upper = centre + step * d_upper
        step = solve(-g + fix_lower / above - fix_upper / below)
        d_lower = fix_lower / above - lower - lower * step / above
        d_upper = fix_upper / below - upper + upper * step / below
        length = 0.995 * _longest((above, step), (below, -step), (lower, d_lower), (upper, d_upper))
        a = a + length * step
        lower, upper = lower + length * d_lower, upper + length * d_upper
        g = gradient(a)
        if length < 1e-10:
            break
    return np.clip(a, low, high), lower, upper


def _longest(*pairs) -> float:
    """Return the longest step in (0, 1] that keeps every value positive."""
    length = 1.0
    for value, change in pairs:
        shrinking = change < 0
        length = min(length, (-value[shrinking] / change[shrinking]).min(initial=1.0))
    return length


def _finish(X, r, c, q, low, high, a, lower, upper, count):
    """Solve for the free slopes with the others at their bounds; None if the sets do not settle.

    A free slope that leaves the box is set to its bound; a slope at its bound becomes free if its
    gradient points inside. The free ones take the smallest correction that makes their gradient
    vanish; rows may therefore be dependent (duplicates, more free points than features).
    """

    def gradient(a):
        return X @ (X.T @ a) / c + q * a + r

    def solve(system, b):
        return np.linalg.solve(system, b) if q.any() else np.linalg.lstsq(system, b)[0]

    width, scale = high - low, lower + upper + np.abs(r).max()
    at_low = (a - low) / width < lower / scale
    at_high = ~at_low & ((high - a) / width < upper / scale)
    slack = 1e-12 * (np.abs(r).max() + np.einsum("ij,ij->i", X, X).max() * count / c)
    for _ in range(MAX_SWAPS):
        free = ~(at_low | at_high)
        a = np.where(at_low, low, np.where(at_high, high, a))
        g = gradient(a)
        if not np.isfinite(g).all():
            return None
        if free.any():
            F = X[free]
            system = F @ F.T / c + np.diag(q[free])
            for _ in range(2):  # the second one removes the rounding errors of the first
                a[free] -= solve(system, g[free])
                g = gradient(a)
        too_low, too_high = free & (a < low), free & (a > high)
        inside = (at_low & (g < -slack)) | (at_high & (g > slack))
        if not (too_low | too_high | inside).any():
            return a if np.abs(g[free]).max(initial=0.0) <= 1e3 * slack else None
        at_low = (at_low & ~inside) | too_low
        at_high = (at_high & ~inside) | too_high
    return None
