r"""Tasks that change with time: what earlier rows still say about a task's weights.

Rows say about the weights w what S = X^T X and e = X^T (y - X theta) say. Time passes in steps; a
step of Delta units changes these statistics, and the rows of the new time are added to them.

Decay: (S, X^T y, y^T y, n) are multiplied by rho^Delta: a row of age a counts rho^a times.

AR(1), towards theta: w' = theta + phi (w - theta) + N(0, (1 - phi^2) H) for a step of one unit.
With f = phi^Delta and H = L L^T,

    K = (I + (1 - f^2) S H / s2)^-1,   S' = f^2 K S,   e' = f K e,

are exactly what the rows say about w'. They are no longer sums over rows; y^T y and n stay those of
all rows, and the residuals ||y - X theta||^2 with them.
"""

from typing import NamedTuple

import numpy as np

from condmeta.engine import twin
from condmeta.inner.squared import SquaredState
from condmeta.persistence.fields import number, one_of
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.timed import Timed
from condmeta.tasks.weights import masses, repeats, task_sums

KINDS = "decay", "ar"


@register_tuple(
    fields={
        "kind": one_of(*KINDS), "rate": number(above=0, high=1), "noise": number(above=0, high=1),
        "unit": one_of("days", "numbers"),
    }
)  # fmt: skip
class Drift(NamedTuple):
    """How tasks change: kind "decay" or "ar", and the rate rho or phi in (0, 1] for one unit.

    noise is the share of the prior's s2 that is noise: around weights that stay, s2 contains how
    they have moved. Times are "numbers" in any unit, or dates, which count in "days".
    """

    kind: str
    rate: float
    noise: float = 1.0
    unit: str = "numbers"

    def __str__(self) -> str:
        name = {"decay": "a row counts", "ar": "AR(1), a task keeps"}[self.kind]
        unit = "a day" if self.unit == "days" else "a unit of time"
        return f"{name} {self.rate:.4g} after {unit}"


class Process(NamedTuple):
    """A drift, with the prior that it moves in: L (d, d), H = L L^T, and the noise s2."""

    drift: Drift
    factor: np.ndarray
    s2: float

    def aged(self, state: SquaredState, theta: np.ndarray, delta: np.ndarray) -> SquaredState:
        """Return statistics after `delta` (T,) units of time; theta (T, d)."""
        fade = self.drift.rate ** np.maximum(delta, 0.0)
        if self.drift.kind == "decay":
            parts = zip(state, (3, 2, 1, 1), strict=True)
            return SquaredState(*(a * fade.reshape(-1, *[1] * (n - 1)) for a, n in parts))
        e, residual = _from_theta(state, theta)
        S, e = ar_step(state.gram, e, self.factor, self.s2, fade)
        return _around(S, e, theta, residual, state.count)

    def absorb(
        self, state: SquaredState, clock: np.ndarray, theta: np.ndarray, rows: Timed, n_jobs=1
    ) -> tuple[SquaredState, np.ndarray]:
        """Return statistics with further rows, as of the latest time, and that time (T,).

        `clock` (T,) is the time of `state`; NaN if a task has no rows yet. Rows that are older than
        it count as what they say about the present. With decay that is exact. With AR(1) it is
        exact for late rows alone; that they share changes with rows of their time is ignored.
        """
        if self.drift.kind == "decay":
            return self._decayed(state, clock, theta, rows)
        late = rows.time < clock[rows.task_of_row]  # False where the clock is NaN
        if late.any():
            nothing = SquaredState.start(*theta.shape), np.full(len(theta), np.nan)
            old, since = self.absorb(*nothing, theta, rows.where(late), n_jobs)
            old = self.aged(old, theta, np.nan_to_num(clock - since))
            state = SquaredState(*(a + b for a, b in zip(state, old, strict=True)))
            rows = rows.where(~late)
        rows = rows.sorted()
        X, y, offsets, weight, _ = rows
        mass = np.ones(len(y)) if weight is None else masses(weight)
        e, residual = _from_theta(state, theta)
        given = X, y, mass, offsets, rows.steps(clock), self.drift.rate
        prior = theta, self.factor, self.s2
        S, e, _ = drift_pass(*given, state.gram, e, *prior, 1, 0, n_jobs)
        square = mass * (y - np.einsum("ni,ni->n", X, theta[rows.task_of_row])) ** 2
        residual, count = residual + task_sums(square, offsets), state.count + rows.points.count
        latest = rows.last()
        clock = np.where(np.isnan(latest), clock, latest)
        return _around(S, e, theta, residual, count), clock

    def _decayed(self, state, clock, theta, rows: Timed) -> tuple[SquaredState, np.ndarray]:
        now = np.fmax(clock, rows.last())
        state = self.aged(state, theta, np.nan_to_num(now - clock))
        (X, y, offsets, weight, time), task = rows, rows.task_of_row
        share = self.drift.rate ** (now[task] - time)
        if weight is not None:
            share = share * repeats(weight)
            share = share if weight.ndim == 1 else np.column_stack([share, weight[:, 1]])
        return state.extend(X, y, offsets, share), now

    def one_step_ahead(
        self, state: SquaredState, clock: np.ndarray, theta: np.ndarray, rows: Timed, n_jobs=1
    ) -> np.ndarray:
        """Return the prediction of each row (N,) from the rows before its time; rows are sorted."""
        X, y, offsets, weight, _ = rows
        mass = np.ones(len(y)) if weight is None else masses(weight)
        e, _ = _from_theta(state, theta)
        given = X, y, mass, offsets, rows.steps(clock), self.drift.rate
        prior, moves = (theta, self.factor, self.s2), int(self.drift.kind == "ar")
        return drift_pass(*given, state.gram, e, *prior, moves, 1, n_jobs)[2]


def ar_step(S, e, L, s2: float, fade) -> tuple[np.ndarray, np.ndarray]:
    """Return S' (T, d, d) and e' (T, d) after a step of AR(1); fade (T,) is f = phi^Delta.

    With a = (1 - f^2) / s2 and G = S L (I + a L^T S L)^-1, K = I - a G L^T. S' is computed as
    f^2 (K S K^T + a G G^T), which stays positive however much the rows say.
    """
    a = ((1.0 - fade**2) / s2)[:, None, None]
    d = len(L)
    SL = S @ L
    A = a * (L.T @ SL) + np.eye(d)
    G = np.swapaxes(np.linalg.solve(A, np.swapaxes(SL, 1, 2)), 1, 2)
    K = np.eye(d) - a * (G @ L.T)
    after = K @ S @ np.swapaxes(K, 1, 2) + a * (G @ np.swapaxes(G, 1, 2))
    return (fade**2)[:, None, None] * after, fade[:, None] * np.einsum("tij,tj->ti", K, e)


@twin
def drift_pass(
    X, y, mass, offsets, steps, rate, gram, e, theta, factor, s2, moves, predicts, n_jobs
):
    """Return S (T, d, d), e (T, d) after all rows, and the prediction of each row (N,).

    X (N, d), y and mass (N,), by rising time in each task; steps (N,) is the time since the row
    before, rate is rho or phi. gram, e: the statistics before, e around theta (T, d). moves: 1 for
    AR(1), 0 for decay. With predicts = 1, a row is predicted from the rows before its time; else
    the third result is empty.
    """
    S, e, sizes = gram.copy(), e.copy(), np.diff(offsets)
    predicted, mean = np.empty(len(y) if predicts else 0), theta.copy()
    for rank in range(sizes.max(initial=0)):  # the rows of this rank, of all tasks that have one
        tasks = np.flatnonzero(sizes > rank)
        rows = offsets[tasks] + rank
        new = (steps[rows] > 0) | (rank == 0)
        at, f = tasks[new], rate ** steps[rows[new]]
        if moves:
            S[at], e[at] = ar_step(S[at], e[at], factor, s2, f)
        else:
            S[at], e[at] = S[at] * f[:, None, None], e[at] * f[:, None]
        x = X[rows]
        if predicts:
            A = factor.T @ S[at] @ factor / s2 + np.eye(len(factor))
            z = np.linalg.solve(A, (e[at] @ factor)[:, :, None])[:, :, 0] / s2
            mean[at] = theta[at] + z @ factor.T
            predicted[rows] = np.einsum("ti,ti->t", x, mean[tasks])
        error = y[rows] - np.einsum("ti,ti->t", x, theta[tasks])
        S[tasks] += mass[rows][:, None, None] * x[:, :, None] * x[:, None, :]
        e[tasks] += (mass[rows] * error)[:, None] * x
    return S, e, predicted


def _from_theta(state: SquaredState, theta) -> tuple[np.ndarray, np.ndarray]:
    """Return e = X^T (y - X theta) (T, d) and ||y - X theta||^2 (T,) of each task."""
    fitted = np.einsum("tij,tj->ti", state.gram, theta)
    residual = state.square + np.einsum("ti,ti->t", theta, fitted - 2 * state.moment)
    return state.moment - fitted, np.maximum(residual, 0.0)


def _around(S, e, theta, residual, count) -> SquaredState:
    """Return statistics from those around theta."""
    fitted = np.einsum("tij,tj->ti", S, theta)
    moment = e + fitted
    square = residual + np.einsum("ti,ti->t", theta, moment + e)
    return SquaredState(S, moment, np.maximum(square, 0.0), count)
