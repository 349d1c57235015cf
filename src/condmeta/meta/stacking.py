"""The best candidate, or the best convex combination of candidates, on held-out tasks.

Candidates predict means. Where the absolute error counts and labels are skewed, a line through the
predictions, shift + slope p, turns means into medians; it too must win on held-out tasks.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

LEAST_MEAN, LEAST_DENSITY = 1e-6, 1e-300
HALVES = 2
SMALLEST_SHARE = 0.05  # candidates with a smaller weight are left out
STEPS = 500  # of EM; a few candidates need no high accuracy
CLEAR = 3.0  # standard errors
ROUNDS = 20  # of least squares, for the least absolute error
SMALLEST_ERROR = 0.02  # of the mean error: a smaller one counts as this


class Criterion(NamedTuple):
    """A loss of predictions (N, C) of targets y (N,), and the convex weights that minimise it.

    `line` returns the shift and slope of least loss for one prediction; None if means need none.
    Rows count m (N,) times, or once if m is None. `density`: the predictions are densities of the
    labels, and y is not read.
    """

    title: str
    losses: Callable
    weights: Callable
    line: Callable | None = None
    density: bool = False

    def mean(self, answers, y, m=None) -> np.ndarray:
        """Return the mean loss of each candidate (C,)."""
        return np.average(self.losses(answers, y), axis=0, weights=m)


class Blend(NamedTuple):
    """How candidates are combined: shift + slope * (answers @ weights), with weights (C,)."""

    weights: np.ndarray
    shift: float = 0.0
    slope: float = 1.0

    def of(self, answers) -> np.ndarray:
        """Return the combination (N,) of predictions (N, C)."""
        return self.shift + self.slope * (answers @ self.weights)


def best_blend(answers, y, task, criterion: Criterion, m=None) -> Blend:
    """Return the combination of candidates that is best on held-out rows, arguments as below.

    A line is kept if it gains on tasks that it was not fitted to, and if predictions clearly are
    not medians: labels above and below them are not equally many, by three standard errors.
    """
    weights = best_weights(answers, y, task, criterion, m)
    mixed, (code, half) = answers @ weights, _halves(task)
    if criterion.line is None or len(np.unique(half)) < HALVES:
        return Blend(weights)
    lined = np.empty(len(y))
    for h in range(HALVES):
        other = half == h
        shift, slope = criterion.line(mixed[~other], y[~other], None if m is None else m[~other])
        lined[other] = shift + slope * mixed[other]
    before, after = criterion.mean(np.column_stack([mixed, lined]), y, m)
    above = np.bincount(code, np.sign(y - mixed) * (1.0 if m is None else m))  # of each task
    clear = abs(above.mean()) * np.sqrt(len(above)) > CLEAR * above.std(ddof=1)
    if after >= before or not clear:
        return Blend(weights)
    return Blend(weights, *criterion.line(mixed, y, m))


def best_weights(answers, y, task, criterion: Criterion, m=None) -> np.ndarray:
    """Return convex weights (C,) of candidates from their predictions of held-out rows.

    answers (N, C); y (N,); task (N,) int. The best candidate gets weight 1, unless the combination,
    fitted to one half of the tasks and judged by the other, is better.
    """
    errors = criterion.mean(answers, y, m)
    alone = np.eye(len(errors))[int(np.argmin(errors))]
    half = _halves(task)[1]
    if len(errors) == 1 or len(np.unique(half)) < HALVES:
        return alone
    judged = 0.0
    for h in range(HALVES):
        other = half == h
        here, there = (None, None) if m is None else (m[other], m[~other])
        mixed = answers[other] @ criterion.weights(answers[~other], y[~other], there)
        lost = criterion.losses(mixed[:, None], y[other])[:, 0]
        judged += float(np.sum(lost if here is None else here * lost))
    count = len(y) if m is None else m.sum()
    return criterion.weights(answers, y, m) if judged / count < errors.min() else alone


def _halves(task) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each row's task, counted from 0 (N,), and its half (N,)."""
    code = np.unique(task, return_inverse=True)[1]
    return code, code % HALVES


def convex_weights(answers, y, m=None) -> np.ndarray:
    """Return the convex weights of least squared error."""
    return _drop_small_weights(_all_weights(answers, y, m))


def _all_weights(answers, y, m=None) -> np.ndarray:
    """Return the weights of least squared error that are not negative and sum to one."""
    from scipy.optimize import nnls  # slow to import

    # The constraint that the weights sum to one is a further row with a large weight.
    errors = answers - y[:, None]
    errors = errors if m is None else np.sqrt(m / m.mean())[:, None] * errors
    scale = np.sqrt(np.mean(errors**2)) or 1.0
    heavy = 1e4 * np.sqrt(len(y))
    rows = np.vstack([errors / scale, np.full(answers.shape[1], heavy)])
    return nnls(rows, np.append(np.zeros(len(y)), heavy))[0]


def absolute_weights(answers, y, m=None) -> np.ndarray:
    """Return the convex weights of least absolute error, by least squares with changing weights."""
    solve, errors = lambda m: _all_weights(answers, y, m), lambda w: y - answers @ w
    return _drop_small_weights(_reweighted(solve, errors, m))


def median_line(answer, y, m=None) -> np.ndarray:
    """Return shift and slope of the line through predictions (N,) of least absolute error."""
    rows = np.column_stack([np.ones(len(y)), answer])

    def solve(m):
        root = np.ones((len(y), 1)) if m is None else np.sqrt(m)[:, None]
        return np.linalg.lstsq(root * rows, root[:, 0] * y)[0]

    return _reweighted(solve, lambda line: y - rows @ line, m)


def _reweighted(solve: Callable, errors: Callable, m) -> np.ndarray:
    """Return the solution of least absolute error, from a solver of least squares with weights."""
    found = solve(m)
    for _ in range(ROUNDS):
        size = np.abs(errors(found))
        least = SMALLEST_ERROR * np.average(size, weights=m)
        if least == 0:
            break
        found = solve((1.0 if m is None else m) / np.maximum(size, least))
    return found


def mixture_weights(answers, y, m=None) -> np.ndarray:
    """Return the convex weights of least log loss, by EM: no step increases it."""
    return mixture(_label_probabilities(answers, y), m)


def mixture(likely, m=None) -> np.ndarray:
    """Return the convex weights of the mixture of densities (N, C) with most likelihood, by EM."""
    weights = np.full(likely.shape[1], 1 / likely.shape[1])
    for _ in range(STEPS):
        share = likely / (likely @ weights)[:, None]
        weights = weights * np.average(share, axis=0, weights=m)
    return _drop_small_weights(weights)


def log_losses(answers, y) -> np.ndarray:
    """Return -log P(label); answers are probabilities of the label +1, and y is -1 or +1."""
    return -np.log(_label_probabilities(answers, y))


def _label_probabilities(answers, y) -> np.ndarray:
    return np.clip(np.where(y[:, None] > 0, answers, 1 - answers), 1e-15, 1.0)


def deviances(answers, y) -> np.ndarray:
    """Return Poisson deviances of predicted means; a mean below `LEAST_MEAN` counts as this."""
    mean = np.maximum(answers, LEAST_MEAN)
    return 2 * (xlogy(y, y)[:, None] - xlogy(y[:, None], mean) - y[:, None] + mean)


def deviance_weights(answers, y, m=None) -> np.ndarray:
    """Return the convex weights of least Poisson deviance: a convex problem."""
    from scipy.optimize import minimize  # slow to import

    mean, C = np.maximum(answers, LEAST_MEAN), answers.shape[1]
    m = np.full(len(y), 1 / len(y)) if m is None else m / m.sum()

    def lost(w):
        mixed = np.maximum(mean @ w, LEAST_MEAN)
        return m @ (mixed - xlogy(y, mixed)), mean.T @ (m * (1 - y / mixed))

    whole = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(C)}
    start, box = np.full(C, 1 / C), [(0.0, 1.0)] * C
    found = minimize(lost, start, jac=True, bounds=box, constraints=whole, method="SLSQP")
    return _drop_small_weights(np.clip(found.x, 0.0, 1.0))


def density_losses(answers, y) -> np.ndarray:
    """Return minus the logarithms of densities."""
    return -np.log(np.maximum(answers, LEAST_DENSITY))


def density_weights(answers, y, m=None) -> np.ndarray:
    """Return the convex weights of the mixture with the highest log density."""
    return mixture(np.maximum(answers, LEAST_DENSITY), m)


def _drop_small_weights(weights) -> np.ndarray:
    weights = np.where(weights < SMALLEST_SHARE * weights.sum(), 0.0, weights)
    return weights / weights.sum()


CRITERIA = {
    "absolute": Criterion(
        "absolute error", lambda p, y: np.abs(p - y[:, None]), absolute_weights, median_line
    ),
    "squared": Criterion("squared error", lambda p, y: (p - y[:, None]) ** 2, convex_weights),
    "deviance": Criterion("Poisson deviance", deviances, deviance_weights),
    "log density": Criterion("minus log density", density_losses, density_weights, density=True),
}
OF_COUNTS = "deviance", "log density"  # criteria by which counts are judged
LOG_LOSS = Criterion("log loss", log_losses, mixture_weights)
