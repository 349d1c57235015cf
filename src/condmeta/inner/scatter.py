"""Statistics of each task around its own means: the same bits whatever the other tasks are."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from condmeta.inner.packed import cut, packed, square_of, triangle
from condmeta.inner.scaled import ScaledTasks
from condmeta.inner.squared import SquaredState
from condmeta.persistence.fields import InvalidFieldError, counts, floats, maybe, optional
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.numbers import put_rows, tree_sum
from condmeta.tasks.weights import masses, repeats, task_sums

LARGEST = 1e101  # of the rows of a file in the learner's units; those of a fit are below 1e100


def _is_a_triangle(state: dict, sizes: dict[str, int]) -> None:
    p = sizes["d"] + 1
    if sizes["q"] != p * (p + 1) // 2:
        raise InvalidFieldError("triangles", f"must have {p * (p + 1) // 2} columns")
    if not (np.abs(state["mean"]) < LARGEST).all():
        raise InvalidFieldError("mean", f"must be below {LARGEST:g} in size")
    rows, columns = triangle(p)
    size = state["triangles"][:, rows == columns]
    if not ((size >= 0) & (size < LARGEST**2)).all():
        raise InvalidFieldError("triangles", "must have sums of squares on the diagonal")
    most = np.sqrt(size[:, rows]) * np.sqrt(size[:, columns])
    if not (np.abs(state["triangles"]) <= most * (1 + 1e-6) + 1e-100).all():
        raise InvalidFieldError("triangles", "must have products within those of the diagonal")


def _upgrade(cls, state: dict) -> dict:
    """Return the state of a file that holds both triangles of each matrix."""
    squares = state.get("scatter")
    if "triangles" in state or not isinstance(squares, np.ndarray) or squares.ndim != 3:
        return state
    if squares.shape[1] != squares.shape[2]:
        return state
    rest = {name: part for name, part in state.items() if name != "scatter"}
    return rest | {"triangles": np.ascontiguousarray(packed(squares))}


@register_tuple(
    rule=_is_a_triangle,
    upgrade=_upgrade,
    fields={
        "count": counts("T"), "mean": floats("T d+1"), "triangles": floats("T q"),
        "mass": optional(maybe(floats("T", low=0))), "log_precision": optional(maybe(floats("T"))),
    }
)  # fmt: skip
class Scatter(NamedTuple):
    """Statistics of the points (x, y) of each of T tasks.

    count (T,); mean (T, d+1); `scatter`, the sum of (z - mean)(z - mean)^T, z = (x, y), of which
    triangles (T, (d+1)(d+2)/2) holds the lower triangle by rows. A point with a weight counts that
    many times in all three. No digits are lost if x or y have large means, and a constant column
    has a scatter of exactly zero.

    If labels have a precision, points enter mean and scatter with weight times precision. mass (T,)
    is then the sum of these, and log_precision (T,) that of weight times log precision.
    """

    count: np.ndarray
    mean: np.ndarray
    triangles: np.ndarray
    mass: np.ndarray | None = None
    log_precision: np.ndarray | None = None

    @classmethod
    def of(cls, X, y, offsets, weight=None) -> Self:
        """Return the statistics of tasks with points X (N, d), y (N,), offsets (T+1,).

        A point counts weight (N,) times, more than 0; weight (N, 2) holds precisions as well.
        """
        sizes, p = np.diff(offsets), X.shape[1] + 1
        count = total = sizes if weight is None else task_sums(repeats(weight), offsets)
        extra = ()
        if weight is not None and weight.ndim == 2:
            times, precision = weight.T
            weight = masses(weight)
            total = task_sums(weight, offsets)
            extra = total, task_sums(times * np.log(precision), offsets)
        mean, triangles = np.zeros((len(sizes), p)), np.zeros((len(sizes), p * (p + 1) // 2))
        # Tasks of equal size form one stack: the loop runs over sizes, not over tasks.
        for n in np.unique(sizes[sizes > 0]):
            average = np.full((1, n), 1.0 / n)
            for tasks in cut(np.flatnonzero(sizes == n), n * p):
                rows = offsets[tasks][:, None] + np.arange(n)
                points = np.empty((len(tasks), n, p))
                points[:, :, :-1], points[:, :, -1] = X[rows], y[rows]
                if weight is not None:
                    average = (weight[rows] / total[tasks, None])[:, None, :]
                first = points[:, :1].copy()
                points -= first  # a constant column is then exactly zero
                middle = average @ points
                points -= middle
                mean[tasks] = (first + middle)[:, 0]
                if weight is not None:
                    points *= np.sqrt(weight[rows])[:, :, None]
                triangles[tasks] = packed(np.swapaxes(points, 1, 2) @ points)
        return cls(count, mean, triangles, *extra)

    @property
    def scatter(self) -> np.ndarray:
        """The whole matrices (T, d+1, d+1), made anew at each call."""
        return self.triangles[:, square_of(self.mean.shape[1])]

    @property
    def masses(self) -> np.ndarray:
        """The weight of each task's points in its mean (T,)."""
        return self.count if self.mass is None else self.mass

    @property
    def log_precisions(self) -> np.ndarray:
        """The sum of the log precisions of each task's points (T,)."""
        return np.zeros(len(self.count)) if self.log_precision is None else self.log_precision

    def take(self, at) -> Self:
        """Return the statistics of the tasks at positions `at`."""
        return type(self)(*(None if array is None else array[at] for array in self))

    def times(self, factor: np.ndarray) -> Self:
        """Return the statistics of points z times a factor (d+1,)."""
        by = packed(np.outer(factor, factor)[None])
        return self._replace(mean=self.mean * factor, triangles=self.triangles * by)

    def transformed(self, A, centre) -> Self:
        """Return the statistics of A (z - centre), for A (p, d+1) and centre (d+1,)."""
        triangles = np.empty((len(self.mean), len(A) * (len(A) + 1) // 2))
        for tasks in cut(np.arange(len(self.mean)), A.shape[1] ** 2):
            triangles[tasks] = packed(A @ self.take(tasks).scatter @ A.T)
        return self._replace(mean=(self.mean - centre) @ A.T, triangles=triangles)

    def join(self, other: Self) -> Self:
        """Return the statistics of these tasks, then of further ones."""
        return self.joined([self, other])

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Return the statistics of the tasks of all parts; the list is emptied.

        A part is dropped when it is copied, so that memory holds the matrices about once.
        """
        count, mean = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        extra = ()
        if any(part.mass is not None for part in parts):
            extra = (
                np.concatenate([part.masses for part in parts]),
                np.concatenate([part.log_precisions for part in parts]),
            )
        triangles = np.empty((len(count), parts[0].triangles.shape[1]))
        end = len(count)
        while parts:
            part = parts.pop().triangles
            triangles[end - len(part) : end] = part
            end -= len(part)
        return cls(count, mean, triangles, *extra)

    def extend(self, other: Self) -> Self:
        """Return the statistics with further points of the same tasks added."""
        mass = self.masses + other.masses
        share = other.masses / np.where(mass > 0, mass, 1)
        gap = other.mean - self.mean
        rows, columns = triangle(gap.shape[1])
        spread = (self.masses * share)[:, None] * gap[:, rows] * gap[:, columns]
        triangles = self.triangles + other.triangles + spread
        mean = self.mean + share[:, None] * gap
        extra = ()
        if self.mass is not None or other.mass is not None:
            extra = mass, self.log_precisions + other.log_precisions
        return type(self)(self.count + other.count, mean, triangles, *extra)

    def extend_at(self, at, other: Self) -> Self:
        """Return the statistics with further points `other` of the tasks at positions `at`."""
        part, whole = self.take(at).extend(other), self
        if part.mass is not None:
            whole = self._replace(mass=self.masses, log_precision=self.log_precisions)
        pairs = zip(whole, part, strict=True)
        return type(self)(*(None if new is None else put_rows(old, at, new) for old, new in pairs))

    def overall(self, leaves: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation (d+1,) of all points of the tasks in some leaves.

        Leaves are positions of tasks; there are 2^b of them (see `tree_sum`).
        """
        at = next(filter(len, leaves), leaves[0])
        first = self.mean[at[0]] if len(at) else np.zeros(self.mean.shape[1])

        def map_sum(function, *params):
            return tree_sum(function(self, leaf, *params) for leaf in leaves)

        return moments(map_sum, first)

    def statistics(self, mean, scale, intercept: bool, at=None) -> SquaredState:
        """Return the statistics of rows (x - mean) / scale and labels y - mean, of tasks at `at`.

        mean (d+1,), of x and y; scale (d,). With an intercept the rows end with a one.
        """
        return self.scaled(mean, scale, intercept, at).squared

    def scaled(self, mean, scale, intercept: bool, at=None) -> ScaledTasks:
        """Return what `statistics` is made of, for a caller that may not need whole matrices."""
        at = np.arange(len(self.mean)) if at is None else np.asarray(at, np.int64)
        mass, by = self.masses[at].astype(float), 1 / np.append(scale, 1.0)
        count = self.count[at]
        return ScaledTasks(self.triangles, self.mean, mass, at, mean, by, bool(intercept), count)


def moments(map_sum, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation (d+1,) of all points.

    `map_sum(function, *params)` is the sum of function(scatter, at, *params) over leaves; `first`
    (d+1,) is the mean of one task: around it that of a constant column is exact.
    """
    n, total = map_sum(_first_moments, first)
    mean = first + total / (n or 1)
    (squares,) = map_sum(_second_moments, mean)
    return mean, np.sqrt(squares / (n or 1))


def _first_moments(part: Scatter, at, around) -> tuple[np.ndarray, np.ndarray]:
    mass = part.masses[at]
    return mass.sum(), mass @ (part.mean[at] - around)


def _second_moments(part: Scatter, at, mean) -> tuple[np.ndarray]:
    within = part.triangles[at].sum(axis=0)[np.diag(square_of(len(mean)))]
    return (within + part.masses[at] @ (part.mean[at] - mean) ** 2,)
