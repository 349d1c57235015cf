"""The best convex combination of candidates on held-out tasks.

The weights of least loss differ between draws of the tasks, the more so the fewer they are. So the
tasks get random importances many times, drawn from the exponential distribution (the Bayesian
bootstrap), and the weights are the mean over the draws. This is better on new tasks than the
weights of one draw, and better than the best candidate alone. Every task counts in every draw: one
task on which a candidate is far off keeps its weight small. All draws also shrink the weights
towards given ones, as strongly as two more tasks would: with ten tasks this counts, with a hundred
it hardly does.

Candidates predict means. Where the absolute error counts and labels are skewed, a line through the
predictions, shift + slope p, turns means into medians; it must win on held-out tasks.
"""

from typing import NamedTuple

import numpy as np

from condmeta.meta.criteria import Criterion, absolute_sizes
from condmeta.tasks.numbers import power_of_two

HALVES = 2
SMALLEST_SHARE = 0.05  # candidates with a smaller weight are left out
DIGITS = 3  # of a weight
DRAWS = 50  # of the importance of tasks
SHRINKAGE = 2.0  # tasks
ROUNDS = 20  # of least squares, for losses that are not squares
HALVINGS = 20  # of a step that increases the loss
SMALLEST_GAIN = 1e-7  # of the loss, in a round
HEAVY = 1e4  # weight of the row that says: weights sum to 1
JITTER = 1e-12  # of the mean square, so that the matrix of two equal candidates has a root
CLEAR = 3.0  # standard errors


class Blend(NamedTuple):
    """How candidates are combined: shift + slope * (answers @ weights), with weights (C,).

    Answers below `least` count as this.
    """

    weights: np.ndarray
    shift: float = 0.0
    slope: float = 1.0
    least: float = -np.inf

    def of(self, answers) -> np.ndarray:
        """Return the combination (N,) of predictions (N, C)."""
        return self.shift + self.slope * (np.maximum(answers, self.least) @ self.weights)


def best_blend(answers, y, task, criterion: Criterion, m=None, towards=None) -> Blend:
    """Return the combination of candidates that is best on held-out rows, arguments as below.

    A line is kept if it gains on tasks that it was not fitted to, and if predictions clearly are
    not medians: labels above and below them are not equally many, by three standard errors.
    """
    unit = power_of_two(np.abs(y).max())  # squares stay finite
    answers, y = np.maximum(answers, criterion.least) / unit, y / unit
    weights = best_weights(answers, y, task, criterion, m, towards)
    code = np.unique(task, return_inverse=True)[1]
    half = code % HALVES
    if not criterion.medians or len(np.unique(half)) < HALVES:
        return Blend(weights, least=criterion.least)
    mixed = answers @ weights
    lined = np.empty(len(y))
    for h in range(HALVES):
        other = half == h
        shift, slope = median_line(mixed[~other], y[~other], None if m is None else m[~other])
        lined[other] = shift + slope * mixed[other]
    before, after = criterion.mean(np.column_stack([mixed, lined]), y, m)
    above = np.bincount(code, np.sign(y - mixed) * (1.0 if m is None else m))  # of each task
    clear = abs(above.mean()) * np.sqrt(len(above)) > CLEAR * above.std(ddof=1)
    if after >= before or not clear:
        return Blend(weights)
    shift, slope = median_line(mixed, y, m)
    return Blend(weights, unit * shift, slope)


def best_weights(answers, y, task, criterion: Criterion, m=None, towards=None) -> np.ndarray:
    """Return convex weights (C,) of candidates: the mean over draws of the importance of tasks.

    answers (N, C), predictions of held-out rows; y (N,); task (N,) int; m (N,), how often rows
    count; towards (C,), the weights to shrink to, or equal ones. Every draw takes one step of least
    squares from the weights of all tasks: for the squared error this is exact.
    """
    E = criterion.scaled_errors(answers, y, convex_weights(answers, y, criterion, m), m)
    squares = _squares_of_tasks(E, np.unique(task, return_inverse=True)[1], m)
    rng, (T, C, _) = np.random.default_rng(0), squares.shape
    # Weights sum to 1, so that away @ w = w - towards.
    away = np.eye(C) - np.outer(np.full(C, 1 / C) if towards is None else towards, np.ones(C))
    of_best = np.diag(squares.mean(axis=0)).min()  # sum of squares in a task
    shrinkage = SHRINKAGE * of_best * away.T @ away
    total = np.zeros(C)
    for _ in range(DRAWS):
        importance = rng.exponential(size=T)
        total += _least_on_simplex(np.tensordot(importance, squares, 1) + shrinkage)
    return _drop_small_weights(total)


def convex_weights(answers, y, criterion: Criterion, m=None) -> np.ndarray:
    """Return the weights (C,) of least mean loss, at least 0 and of sum 1."""
    C = answers.shape[1]
    weights = np.full(C, 1 / C)
    loss = _loss(weights, answers, y, criterion, m)
    for _ in range(ROUNDS):
        E = criterion.scaled_errors(answers, y, weights, m)
        step = _least_on_simplex(E.T @ (E if m is None else m[:, None] * E)) - weights
        before = loss
        for halving in range(HALVINGS):
            tried = weights + 0.5**halving * step
            loss = _loss(tried, answers, y, criterion, m)
            if loss < before:
                weights = tried
                break
        if loss > before - SMALLEST_GAIN * abs(before):
            break
    return weights


def _loss(weights, answers, y, criterion: Criterion, m) -> float:
    return float(criterion.mean((answers @ weights)[:, None], y, m)[0])


def _squares_of_tasks(E, code, m) -> np.ndarray:
    """Return sum_i m_i E_i E_i^T over the rows of each task, (T, C, C)."""
    C = E.shape[1]
    out = np.empty((code.max() + 1, C, C))
    scaled = E if m is None else m[:, None] * E
    for i in range(C):
        for j in range(i + 1):
            out[:, i, j] = out[:, j, i] = np.bincount(code, scaled[:, i] * E[:, j])
    return out


def _least_on_simplex(squares) -> np.ndarray:
    """Return the w (C,) of least w^T squares w, at least 0 and of sum 1."""
    from scipy.optimize import nnls  # slow to import

    C = len(squares)
    size = np.trace(squares) / C or 1.0
    root = np.linalg.cholesky(squares / size + JITTER * np.eye(C), upper=True)
    # The constraint that the weights sum to one is a further row with a large weight.
    found = nnls(np.vstack([root, np.full(C, HEAVY)]), np.append(np.zeros(C), HEAVY))[0]
    return found / found.sum()


def median_line(answer, y, m=None) -> np.ndarray:
    """Return shift and slope of the line through predictions (N,) of least absolute error."""
    rows = np.column_stack([np.ones(len(y)), answer])
    weight = np.ones(len(y)) if m is None else m
    line = np.zeros(2)
    for round_ in range(ROUNDS + 1):
        size = absolute_sizes(y - rows @ line, m) if round_ else 1.0
        root = np.sqrt(weight / size)[:, None]
        line = np.linalg.lstsq(root * rows, root[:, 0] * y)[0]
    return line


def _drop_small_weights(weights) -> np.ndarray:
    """Return weights of sum 1, rounded: further digits depend on where the fits stopped."""
    weights = np.where(weights < SMALLEST_SHARE * weights.sum(), 0.0, weights)
    weights = np.round(weights / weights.sum(), DIGITS)
    return weights / weights.sum()
