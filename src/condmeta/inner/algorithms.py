"""The inner algorithms as objects, and the one interface through which learners use them.

`InnerAlgorithm` lists everything that an algorithm may provide; `solve` alone is required. The
built-in ones also solve many tasks at once. If their state allows it, they continue exactly when a
task gets further points.
"""

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from condmeta.errors import DataError, DivergenceError
from condmeta.inner.batch import batch_tasks, mean_loss_at, require_conjugate
from condmeta.inner.online import OnlineState, online_tasks
from condmeta.inner.squared import SquaredState
from condmeta.losses import LOSS, get_loss
from condmeta.persistence.fields import number
from condmeta.persistence.registry import construct, register

MOST_STATISTICS = 1 << 24  # numbers of a state, 134 MB: of tasks with many columns none is kept


class Solved(NamedTuple):
    """The solutions of T tasks.

    coef (T, d); gap (T,) or None if unknown; state, what further points or predictions need, or
    None; unsolved, positions of the tasks with a gap above the tolerance.
    """

    coef: np.ndarray
    gap: np.ndarray | None = None
    state: Any = None
    unsolved: np.ndarray | None = None


class InnerAlgorithm(Protocol):
    """What an inner algorithm A(theta, Z) may provide. Only `solve` is required.

    An algorithm need not inherit from this class. Learners ask for the optional members with
    `hasattr` and `getattr`, so an algorithm must not define one that it does not support. To add a
    likelihood with weights w ~ N(theta, H), of counts say, provide `solve_tasks`; for predictions
    that average over the posterior also a state with covariances: `condmeta.inner.row_posterior` is
    the example. `NoAdaptation` has no `solve`: its map is never learned by gradient steps.

    Attributes
    ----------
    loss : loss object, optional
        The loss that the learner reports; named "logistic", it gives class probabilities.
    resumable : bool, default False
        Whether `solve_tasks(..., state=)` continues exactly from the state that it returned.
        `update` needs it.

    Notes
    -----
    A state is a NamedTuple of arrays, each with one row for every task, so that learners can take
    and join rows. Model files hold a state and an algorithm if their classes are registered, with
    `register_tuple` and `register` of `condmeta.persistence.registry`. If predictions need the
    state, it has the class attribute `predicts = True`, so that model files always hold it.
    """

    def solve(self, theta, X, y) -> tuple[np.ndarray, np.ndarray, float]:
        """Solve one task: theta (d,), X (n, d), y (n,). Required.

        Returns w (d,); an (eps-)subgradient (d,) of the task's meta-loss at theta; and a bound on
        eps, nan if unknown.
        """

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Solve T tasks: theta (T, d), offsets (T+1,). Optional: else `solve` is called T times.

        `state` is that of the tasks' earlier points; it must not be changed. `weight` (N,) is
        passed only if there are weights: an algorithm that cannot use them has no such argument.
        """

    def spread(self, state, theta, rows, codes, precisions=1.0) -> np.ndarray:
        """Return the standard deviation (N,) of a new label at rows (N, d). Optional.

        `codes` (N,) are the positions of the rows' tasks; `precisions` (N,) those of the labels,
        passed only if there are some. `predict(..., return_std=True)` needs this method.
        """

    def variances(self, state, rows, codes) -> np.ndarray:
        """Return the variance (N,) of <x, w> at rows (N, d) over the posterior. Optional.

        With it the class probabilities average over the posterior.
        """


@register(restore=construct, fields={"lam": number(above=0), "loss": LOSS})
class Online:
    """Fine-tuning, one pass (`condmeta.inner.online`)."""

    resumable = True

    def __init__(self, lam: float, loss):
        self.lam, self.loss = float(lam), get_loss(loss)

    def solve(self, theta, X, y):
        """Return the mean iterate, the meta-gradient and nan (the pass computes no gap)."""
        solved = self.solve_tasks(theta[None], X, y, np.array([0, len(y)]))
        return solved.coef[0], solved.state.slope_sum[0] / max(len(y), 1), np.nan

    def solve_tasks(self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True) -> Solved:
        """Run each task's pass from its theta, or continue from `state` (left untouched)."""
        before = OnlineState.start(*theta.shape) if state is None else state
        state = OnlineState(*(array.copy() for array in before))
        bad = online_tasks(theta, X, y, offsets, self.lam, self.loss, *state, n_jobs)
        if bad >= 0:
            raise diverged(bad, self.lam)
        return Solved(state.coef(theta, self.lam), state=state if keep_state else None)


@register(restore=construct, fields={"lam": number(above=0), "loss": LOSS, "tol": number(above=0)})
class Batch:
    """Biased regularisation, the exact minimiser (`condmeta.inner.batch`)."""

    def __init__(self, lam: float, loss, tol: float = 1e-6):
        self.lam, self.loss, self.tol = float(lam), require_conjugate(get_loss(loss)), tol

    @property
    def resumable(self) -> bool:
        """Whether further points can be added exactly: only with the squared loss."""
        return getattr(self.loss, "name", None) == "squared"

    def solve(self, theta, X, y):
        """Return the minimiser, the meta-gradient and the duality gap."""
        task = X, y, np.array([0, len(y)])
        coef, gradient, gap, _ = batch_tasks(theta[None], *task, self.lam, self.loss, self.tol, 1)
        return coef[0], gradient[0], float(gap[0])

    def solve_tasks(
        self, theta, X, y, offsets, state=None, n_jobs=1, keep_state=True, weight=None
    ) -> Solved:
        """Solve each task around its theta; with `state`, on its earlier points as well."""
        if state is not None:
            state = state.extend(X, y, offsets, weight)
            return Solved(state.coef(theta, self.lam), np.zeros(len(theta)), state)
        coef, _, gap, _ = batch_tasks(
            theta, X, y, offsets, self.lam, self.loss, self.tol, n_jobs, weight
        )
        if self.resumable:
            keep_state &= theta.size * theta.shape[1] <= MOST_STATISTICS
            return Solved(coef, gap, SquaredState.of(X, y, offsets, weight) if keep_state else None)
        unit = mean_loss_at(theta, X, y, offsets, self.loss, weight)
        reached = gap <= np.maximum(self.tol * unit, 1e-15)
        return Solved(coef, gap, unsolved=np.flatnonzero(~reached))


INNER = {"online": Online, "batch": Batch}


def get_inner(inner, lam: float, loss, tol: float):
    """Return the inner algorithm of a name, or the object itself if it has `solve`."""
    if inner == "online":
        return Online(lam, loss)
    if inner == "batch":
        return Batch(lam, loss, tol)
    if not isinstance(inner, str) and hasattr(inner, "solve"):
        return inner
    raise DataError(
        "The 'inner' parameter must be 'online', 'batch' or an object with a method 'solve'. "
        f"Got {inner!r} instead."
    )


def solve_tasks(
    inner, theta, X, y, offsets, n_jobs=1, keep_state=True, weight=None, start=None, time=None
) -> Solved:
    """Solve T tasks by any inner algorithm, built-in or the user's own.

    `weight` (N,) and `time` (N,) are passed on only if there are some; `start`, the state of tasks
    without points, only if tasks have priors of their own.
    """
    if hasattr(inner, "solve_tasks"):
        options = {"n_jobs": n_jobs, "keep_state": keep_state} | row_options(weight, time)
        options |= {} if start is None else {"state": start}
        return inner.solve_tasks(theta, X, y, offsets, **options)
    coef, gap = theta.copy(), np.zeros(len(theta))
    for t, (lo, hi) in enumerate(pairwise(offsets)):
        if lo < hi:
            coef[t], _, gap[t] = solve_one(inner, coef[t], X[lo:hi], y[lo:hi])
    return Solved(coef, gap)


def solve_one(inner, theta, X, y) -> tuple[np.ndarray, np.ndarray, float]:
    """Return what an inner algorithm of the user's own finds for one task, checked."""
    name, shape = type(inner).__name__, np.shape(theta)
    found = inner.solve(theta, X, y)
    if not isinstance(found, tuple) or len(found) != 3:
        what = f"a tuple of {len(found)}" if isinstance(found, tuple) else type(found).__name__
        raise DataError(
            f"The method solve of {name} must return three values: the weights, a gradient of the "
            f"task's meta-loss at theta, and a bound on its error (nan if unknown). It returned "
            f"{what}."
        )
    for value, what in zip(found, ("weights", "a gradient"), strict=False):
        if np.shape(value) != shape:
            raise DataError(
                f"The method solve of {name} returned {what} of shape {np.shape(value)}; theta "
                f"has the shape {shape}."
            )
    return found


def can_resume(inner) -> bool:
    """Return whether points can be added to a task exactly: by its state, or by its kept rows."""
    return bool(getattr(inner, "resumable", False) or getattr(inner, "keeps_rows", False))


def row_options(weight, time=None) -> dict:
    """Return the arguments `weight` and `time` if there are any: not all algorithms have them."""
    return {name: of for name, of in (("weight", weight), ("time", time)) if of is not None}


def diverged(position: int, lam: float) -> DivergenceError:
    """Return the error for the task at this position: its online pass diverges."""
    error = DivergenceError(
        f"The online pass diverges at lam={lam:g}. Use inner='batch', a larger lam, a loss with "
        "bounded slopes, or scale='standard'."
    )
    error.position = position
    return error
