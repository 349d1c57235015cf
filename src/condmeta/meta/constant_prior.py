r"""A weak prior of b, the constant of the map: slopes that all tasks share, and their intercept.

A flat prior of b makes the probabilities of new tasks too extreme if there are few tasks. With
a = c b, where c_j is the standard deviation of input j over all rows, or the value of a constant
one, the slopes of classes have a multivariate Cauchy density, and so has their intercept:

    -log p(b) = sum_g (q_g + 1) / 2 log(1 + |a_g|^2),   g = slopes, intercept,

up to a constant, with q_g the number of coordinates in g. A Cauchy density is a normal density with
an unknown variance: the slopes together show how large slopes are, and large ones are hardly
shrunk. It pulls each group by at most (q_g + 1) / 2 labels, whatever the number of tasks, and an
intercept far from 0 by less: a rare class stays rare. The unit is one unit of log odds, for any
unit of x.

Given that variance at the mode, the precision of a_g is (q_g + 1) / (1 + |a_g|^2). Counts have no
such prior, as their rates have a unit, nor has the intercept of more than two ordered classes: it
would depend on the direction of the order. kappa = 0 asks for maximum likelihood: no prior. One
task alone shares nothing, and has no prior either.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from condmeta.inner.likelihoods import Likelihood, NegativeBinomial
from condmeta.tasks.numbers import power_of_two
from condmeta.tasks.points import Points
from condmeta.tasks.weights import masses

CONSTANT = 1e-12  # of the size of a column: a smaller spread is that of rounding


class ConstantPrior(NamedTuple):
    """The sizes c (d,) of the inputs in a = c b, and which of them (d,) are constant."""

    size: np.ndarray
    constant: np.ndarray

    @classmethod
    def of(cls, points: Points, likelihood: type[Likelihood], kappa: float) -> Self:
        """Return the prior for points; sizes of zero are a flat prior."""
        X, weight = points.X, masses(points.weight)
        largest = np.abs(X).max(axis=0, initial=0.0)
        one_task = np.count_nonzero(np.diff(points.offsets)) < 2
        if likelihood is NegativeBinomial or kappa == 0 or one_task:
            return cls(np.zeros_like(largest), largest < 0)
        unit = power_of_two(largest)  # squares neither overflow nor underflow
        mean = np.average(X / unit, axis=0, weights=weight)
        spread = np.sqrt(np.average((X / unit - mean) ** 2, axis=0, weights=weight))
        constant = unit * spread <= CONSTANT * largest
        of_constant = largest if points.y.max(initial=0.0) <= 1 else 0.0  # two classes: -1 and 1
        return cls(np.where(constant, of_constant, unit * spread), constant)

    def cost(self, b) -> tuple[float, np.ndarray]:
        """Return -log p(b), up to a constant, and its gradient (d,)."""
        value, root = 0.0, self.root(b)
        for group in (~self.constant, self.constant):
            a = self.size[group] * b[group]
            value += (np.count_nonzero(self.size[group]) + 1) / 2 * np.log1p(a @ a)
        return float(value), root * (root * b)

    def root(self, b) -> np.ndarray:
        """Return the square roots (d,) of the precisions of b."""
        root = np.zeros_like(self.size)
        for group in (~self.constant, self.constant):
            size = self.size[group]
            a = size * b[group]
            root[group] = size * np.sqrt((np.count_nonzero(size) + 1) / (1 + a @ a))
        return root
