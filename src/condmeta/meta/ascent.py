r"""Quasi-Newton ascent in a box, for objectives that take less time than a general optimiser does.

The inverse of minus the Hessian is remembered by the last steps s_i and the falls of the gradient
y_i = g_i - g_{i+1} in the compact form of limited-memory BFGS (Byrd, Nocedal and Schnabel 1994):
with the rows of S and Y, R the upper triangle of S Y^T, D its diagonal and c = s^T y / y^T y of the
last pair,

    direction = c g + S^T v - c Y^T u,   u = R^-1 S g,   v = R^-T ((D + c Y Y^T) u - c Y g).

Coordinates that are at an end of the box and would leave it stand still; a step is cut at the box.
The first step is the gradient, which is right where a unit is about a standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

MEMORY = 20  # steps that are remembered
KEPT = 1e-4  # of the rise that the gradient promised, what a step must bring
SHORTEST = 1e-12  # step tried
STEEP = 0.9  # of the slope at its start: a step that ends as steep as that is tried longer
LONGER = 4.0
CURVED = 1e-10  # the least s^T y / y^T y that is remembered


class Ascent(NamedTuple):
    """Where an ascent ended, the values at its start and after every step, and its evaluations."""

    x: np.ndarray
    values: np.ndarray
    passes: int


class End(NamedTuple):
    """When an ascent ends: no coordinate can move by more than tol along the gradient.

    `most` are the most evaluations.
    """

    tol: float = 1e-2
    most: int = 300


TIGHT = End()


def ascend(slope: Callable, x, lowest, highest, end: End) -> Ascent:
    """Maximise a function from x (p,) within lowest (p,) <= x <= highest (p,); it never falls.

    Parameters
    ----------
    slope : callable
        x -> (value, gradient (p,)).
    """
    value, gradient = slope(x)
    memory, values, passes = Memory(len(x)), [value], 1
    while passes < end.most:
        room = _within(x + gradient, lowest, highest) - x
        if np.abs(room).max() <= end.tol:
            break
        direction = memory.direction(np.where(room, gradient, 0.0))
        direction[room == 0.0] = 0.0
        found, tried = _search(
            slope, x, values[-1], gradient, direction, lowest, highest, end.most - passes
        )
        passes += tried
        if found is None:
            break
        memory.add(found[0] - x, gradient - found[2])
        x, value, gradient = found
        values.append(value)
    return Ascent(x, np.array(values), passes)


def _within(x, lowest, highest) -> np.ndarray:
    return np.minimum(np.maximum(x, lowest), highest)


def _search(slope, x, value, gradient, direction, lowest, highest, most):
    """Return a point uphill with its value and gradient, or None, and the evaluations."""
    found, step, along, tried = None, 1.0, float(gradient @ direction), 0
    while tried < most and step >= SHORTEST:
        there = _within(x + step * direction, lowest, highest)
        reached, new_gradient = slope(there)
        tried += 1
        rise, promised = reached - value, float(gradient @ (there - x))
        if rise >= KEPT * max(promised, 0.0):  # False for nan as well
            higher = found is None or reached > found[1]
            found = (there, reached, new_gradient) if higher else found
            if step < 1 or not higher or float(new_gradient @ direction) < STEEP * along:
                break
            step *= LONGER
        elif found is not None:
            break
        else:
            # The top of the parabola through both values and the slope at the first.
            top = along * step / (2 * (along * step - rise)) if np.isfinite(rise) else 0.0
            step *= min(max(top, 0.1), 0.5)
    return found, tried


class Memory:
    """The last pairs (s, y), p numbers each, and their products."""

    def __init__(self, p: int):
        self.S, self.Y = np.empty((MEMORY, p)), np.empty((MEMORY, p))
        self.SY, self.YY = np.zeros((MEMORY, MEMORY)), np.zeros((MEMORY, MEMORY))
        self.size, self.scale = 0, 1.0

    def add(self, s, y) -> None:
        """Remember a pair, and forget the oldest; one without curvature is left out."""
        curvature, square = float(s @ y), float(y @ y)
        if curvature <= CURVED * square:
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
        """Return the step to the top of the remembered parabola."""
        m, c = self.size, self.scale
        if m == 0:
            return gradient.copy()
        S, Y, R = self.S[:m], self.Y[:m], self.SY[:m, :m]
        u = dtrtrs(R, S @ gradient)[0]
        right = R.diagonal() * u + c * (self.YY[:m, :m] @ u - Y @ gradient)
        v = dtrtrs(R, right, trans=1)[0]
        return c * gradient + v @ S - c * (u @ Y)
