r"""Quasi-Newton ascent in a box, with little overhead for objectives that are cheap to evaluate.

The inverse of minus the Hessian is approximated from the last steps s_i and the changes of the
gradient y_i = g_i - g_{i+1}, in the compact form of limited-memory BFGS (Byrd, Nocedal and Schnabel
1994). With rows s_i of S and y_i of Y, R the upper triangle of S Y^T, D its diagonal and
c = s^T y / y^T y of the last pair,

    direction = c g + S^T v - c Y^T u,   u = R^-1 S g,   v = R^-T ((D + c Y Y^T) u - c Y g).

Where about the right inverse B is known, it takes the place of c I.

Coordinates at a bound of the box that would leave it stay there; a step is clipped to the box.
Where the objective may fall without end towards a lower bound, steps to it would fail again and
again: with `reach`, a step goes at most this share of the way, unless the bound is near. The first
step is the gradient: it has about the right length if a unit is about a standard error.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

MEMORY = 20  # pairs (s, y) that are stored
SUFFICIENT_RISE = 1e-4  # share of the rise predicted by the gradient that a step must reach
MIN_STEP = 1e-12  # the shortest step tried
STEEP = 0.9  # if a step ends with a slope above this share of the first, a longer one is tried,
LONGER = 4.0  # by this factor
REACH = 0.8  # a share of the way to a lower bound,
NEAR = 1e-3  # which is not kept if the bound is as near as this
MIN_CURVATURE = 1e-10  # pairs with a smaller s^T y / y^T y are not stored


class Ascent(NamedTuple):
    """The end x (p,) of an ascent, values at the start and after every step, and evaluations."""

    x: np.ndarray
    values: np.ndarray
    passes: int


class Stopping(NamedTuple):
    """When an ascent stops: no coordinate can move by more than tol along the gradient.

    It also stops after `max_evaluations` of the function.
    """

    tol: float = 1e-2
    max_evaluations: int = 300


DEFAULT_STOPPING = Stopping()


def ascend(
    slope: Callable, x, lowest, highest, stopping: Stopping, inverse=None, holds=None, reach=1.0
) -> Ascent:
    """Maximise a function from x (p,), with lowest <= x <= highest (p,). No step decreases it.

    Parameters
    ----------
    slope : callable
        x -> (value, gradient (p,)).
    inverse : (p, p) array, optional
        About the inverse of minus the Hessian.
    holds : callable, optional
        x -> whether the units of the coordinates are about right there; else the ascent ends.
    reach : float
        The largest share of the way to a lower bound in one step.
    """
    value, gradient = slope(x)
    memory, values, passes = Memory(len(x), inverse), [value], 1
    while passes < stopping.max_evaluations:
        room = np.clip(x + gradient, lowest, highest) - x
        if np.abs(room).max() <= stopping.tol:
            break
        direction = memory.direction(np.where(room, gradient, 0.0))
        direction[room == 0.0] = 0.0
        left = stopping.max_evaluations - passes
        least = lowest
        if reach < 1:
            least = np.where(x - lowest < NEAR, lowest, x + reach * (lowest - x))
        found, tried = _search(slope, x, values[-1], gradient, direction, least, highest, left)
        passes += tried
        if found is None:
            break
        memory.add(found[0] - x, gradient - found[2])
        x, value, gradient = found
        values.append(value)
        if holds is not None and not holds(x):
            break
    return Ascent(x, np.array(values), passes)


def _search(slope, x, value, gradient, direction, lowest, highest, most):
    """Return (a higher point, its value, its gradient) or None, and the number of evaluations."""
    found, step, along, tried = None, 1.0, float(gradient @ direction), 0
    while tried < most and step >= MIN_STEP:
        there = np.clip(x + step * direction, lowest, highest)
        reached, new_gradient = slope(there)
        tried += 1
        rise, promised = reached - value, float(gradient @ (there - x))
        if rise >= SUFFICIENT_RISE * max(promised, 0.0):  # False for nan as well
            higher = found is None or reached > found[1]
            found = (there, reached, new_gradient) if higher else found
            if step < 1 or not higher or float(new_gradient @ direction) < STEEP * along:
                break
            step *= LONGER
        elif found is not None:
            break
        else:
            # The maximum of the parabola through both values, with the slope at the first.
            top = along * step / (2 * (along * step - rise)) if np.isfinite(rise) else 0.0
            step *= min(max(top, 0.1), 0.5)
    return found, tried


class Memory:
    """The last pairs (s, y), each of p numbers, and their inner products."""

    def __init__(self, p: int, inverse=None):
        self.S, self.Y = np.empty((MEMORY, p)), np.empty((MEMORY, p))
        self.SY, self.YY = np.zeros((MEMORY, MEMORY)), np.zeros((MEMORY, MEMORY))
        self.size, self.scale, self.inverse = 0, 1.0, inverse

    def add(self, s, y) -> None:
        """Store a pair in place of the oldest; a pair without curvature is left out."""
        curvature, square = float(s @ y), float(y @ y)
        if curvature <= MIN_CURVATURE * square:
            return
        if self.size == MEMORY:
            self.S[:-1], self.Y[:-1] = self.S[1:], self.Y[1:]
            self.SY[:-1, :-1], self.YY[:-1, :-1] = self.SY[1:, 1:], self.YY[1:, 1:]
            self.size -= 1
        at, self.size = self.size, self.size + 1
        self.S[at], self.Y[at] = s, y
        self.SY[: self.size, at] = self.S[: self.size] @ y  # the upper triangle alone
        self.YY[: self.size, at] = self.YY[at, : self.size] = self.Y[: self.size] @ y
        self.scale = curvature / square

    def direction(self, gradient) -> np.ndarray:
        """Return the step to the maximum of the quadratic approximation."""
        m, c = self.size, self.scale
        first = c * gradient if self.inverse is None else self.inverse @ gradient
        if m == 0:
            return first
        S, Y, R = self.S[:m], self.Y[:m], self.SY[:m, :m]
        u = dtrtrs(R, S @ gradient)[0]
        if self.inverse is None:
            changed, square = c * (u @ Y), c * (self.YY[:m, :m] @ u - Y @ gradient)
        else:
            changed = self.inverse @ (u @ Y)
            square = Y @ (changed - first)
        v = dtrtrs(R, R.diagonal() * u + square, trans=1)[0]
        return first + v @ S - changed
