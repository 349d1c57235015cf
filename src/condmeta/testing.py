"""Checks for a loss, an inner algorithm, an outer step or a feature map of your own.

Each check raises an AssertionError that names what fails, and returns None otherwise.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from condmeta.inner import batch
from condmeta.losses import get_loss
from condmeta.outer_steps import get_outer_step
from condmeta.persistence import encode
from condmeta.tasks import TaskTable
from condmeta.typing import FeatureMapLike, InnerObject, LossLike, MetaStep, Numbers


def check_loss(loss: LossLike, labels: Sequence[float] = (-1.0, 0.3, 2.0)) -> None:
    """Check that a loss is convex and agrees with its slope, conjugate and Lipschitz constant.

    Parameters
    ----------
    loss : name or object with `value(z, y)` and `slope(z, y)`
        Optionally `conjugate(a, y)` and `lipschitz`.
    labels : sequence of float
        Values of y to try; (-1, 1) for classification losses.

    Examples
    --------
    >>> from condmeta.testing import check_loss
    >>> check_loss("huber")
    """
    loss = get_loss(loss)
    z = np.linspace(-4.0, 4.0, 161)
    for y in labels:
        value = np.asarray(loss.value(z, np.full_like(z, y)), dtype=float)
        slope = np.asarray(loss.slope(z, np.full_like(z, y)), dtype=float)
        assert value.shape == slope.shape == z.shape, "value and slope must work on arrays"
        assert np.isfinite(value).all(), f"value is not finite at y={y}"
        # A subgradient s at z: l(z') >= l(z) + s (z' - z) for all z'.
        below = value[:, None] + slope[:, None] * (z[None, :] - z[:, None])
        excess = below - value[None, :]
        assert (excess <= 1e-9 * (1 + np.abs(value))).all(), (
            f"slope is not a subgradient of value at y={y}: "
            f"the tangent exceeds the loss by {excess.max():.3g}"
        )
        if hasattr(loss, "lipschitz"):
            assert (np.abs(slope) <= loss.lipschitz + 1e-12).all(), (
                f"a slope of {np.abs(slope).max():.3g} exceeds lipschitz={loss.lipschitz}"
            )
        if hasattr(loss, "conjugate"):
            conjugate = np.asarray(loss.conjugate(slope, np.full_like(z, y)), dtype=float)
            difference = np.abs(value + conjugate - slope * z)
            assert (difference <= 1e-9 * (1 + np.abs(value) + np.abs(slope * z))).all(), (
                f"conjugate(slope) differs from slope z - value by {difference.max():.3g} at y={y}"
            )


def check_inner(inner: InnerObject, d: int = 4, n: int = 9, random_state: int = 0) -> None:
    """Check that an inner algorithm's `solve(theta, X, y)` keeps its contract.

    It must return (w, gradient, gap) with finite arrays of shape (d,), not change its arguments,
    return the same values again, and accept a single point.

    Examples
    --------
    >>> from condmeta.inner.algorithms import Batch
    >>> from condmeta.testing import check_inner
    >>> check_inner(Batch(lam=1.0, loss="absolute"))
    """
    rng = np.random.default_rng(random_state)
    for rows in (n, 1):
        theta, X, y = rng.normal(size=d), rng.normal(size=(rows, d)), rng.normal(size=rows)
        before = theta.copy(), X.copy(), y.copy()
        first, second = inner.solve(theta, X, y), inner.solve(theta, X, y)
        assert len(first) == 3, "solve must return (w, gradient, gap)"
        for old, new in zip(before, (theta, X, y), strict=True):
            assert np.array_equal(old, new), "solve must not change theta, X or y"
        for name, array in zip(("w", "gradient"), first, strict=False):
            assert np.shape(array) == (d,), f"{name} must have shape ({d},), got {np.shape(array)}"
            assert np.isfinite(array).all(), f"{name} is not finite"
        assert np.isnan(first[2]) or first[2] >= 0, f"gap must be >= 0 or nan, got {first[2]}"
        for one, two in zip(first, second, strict=True):
            assert np.array_equal(one, two, equal_nan=True), "solve must be repeatable"


def check_outer_step(
    outer: MetaStep, shape: tuple[int, int] = (4, 3), random_state: int = 0
) -> None:
    """Check that an outer step of Algorithm 1 keeps its contract.

    From (W, G, t, state) it must return a finite W of the same shape and the next state, not change
    its arguments, and return the same values again. A model file must be able to hold the state.

    Parameters
    ----------
    outer : float, function of t, or object with `start(W)` and `step(W, G, t, state)`
        What `ConditionalSGDRegressor(meta_step=...)` takes.
    shape : (k+1, d)
        The shape of the map.

    Examples
    --------
    >>> from condmeta.outer_steps import Adam
    >>> from condmeta.testing import check_outer_step
    >>> check_outer_step(Adam(0.1))
    """
    outer, rng = get_outer_step(outer), np.random.default_rng(random_state)
    W = np.zeros(shape)
    state = outer.start(W.copy())
    for t in range(1, 6):
        G = rng.normal(size=shape)
        stored, before, old = encode(state), W.copy(), G.copy()
        result, again = outer.step(W, G, t, state), outer.step(W, G, t, state)
        assert isinstance(result, tuple), "step must return the tuple (W, state)"
        assert len(result) == 2, f"step must return (W, state), got {len(result)} values"
        assert np.shape(result[0]) == shape, f"W must have shape {shape}, got {np.shape(result[0])}"
        assert np.isfinite(result[0]).all(), f"W is not finite at t={t}"
        for name, one, two in (("W", W, before), ("G", G, old)):
            assert np.array_equal(one, two), f"step must not change {name}"
        assert _same(encode(state), stored), "step must not change the state that it is given"
        assert np.array_equal(result[0], again[0]), "step must be repeatable"
        assert _same(encode(result[1]), encode(again[1])), "step must be repeatable"
        W, state = np.asarray(result[0]), result[1]


def _same(one: tuple[Any, list], two: tuple[Any, list]) -> bool:
    """Return whether two encoded values are equal."""
    arrays = zip(one[1], two[1], strict=False)
    return one[0] == two[0] and all(np.array_equal(a, b, equal_nan=True) for a, b in arrays)


def check_feature_map(
    feature_map: FeatureMapLike, values: Numbers | TaskTable | None = None,
) -> None:  # fmt: skip
    """Check that a feature map returns one finite row of fixed width for each task.

    Parameters
    ----------
    feature_map : object with `fit`, `transform`, or with `transform_tasks(X, y, offsets)`
    values : (T, p) array, optional
        A side table for a map of tables; random numbers by default.

    Examples
    --------
    >>> from condmeta.feature_maps import MeanInput
    >>> from condmeta.testing import check_feature_map
    >>> check_feature_map(MeanInput())
    """
    rng = np.random.default_rng(0)
    if hasattr(feature_map, "transform_tasks"):
        X, y, offsets = rng.normal(size=(9, 3)), rng.normal(size=9), np.array([0, 4, 4, 9])
        all_tasks, first_task, n_tasks = (X, y, offsets), (X[:4], y[:4], offsets[:2]), 3
        fit, transform = getattr(feature_map, "fit_tasks", None), feature_map.transform_tasks
    else:
        values = rng.normal(size=(6, 2)) if values is None else np.asarray(values)
        all_tasks, first_task, n_tasks = (values,), (values[:1],), len(values)
        fit, transform = feature_map.fit, feature_map.transform
    if fit is not None:
        fit(*all_tasks)
    Phi = np.asarray(transform(*all_tasks))
    assert Phi.ndim == 2, f"{transform.__name__} must return a matrix, got {Phi.ndim} axes"
    assert len(Phi) == n_tasks, f"{n_tasks} tasks gave {len(Phi)} rows"
    assert np.isfinite(Phi).all(), "values must be finite, for a task without points too"
    one = np.asarray(transform(*first_task))
    assert np.allclose(one, Phi[:1]), "the row of a task must not depend on the other tasks"


def check_gradient(inner: InnerObject, lam: float, loss: LossLike, random_state: int = 0) -> None:
    """Check that an inner algorithm's gradient is an eps-subgradient of the exact meta-loss.

    eps = (meta-loss at theta) - D(gradient). If the gap is known, eps <= gap is checked too.

    Examples
    --------
    >>> from condmeta.inner.algorithms import Online
    >>> from condmeta.testing import check_gradient
    >>> check_gradient(Online(lam=0.5, loss="absolute"), lam=0.5, loss="absolute")
    """
    rng = np.random.default_rng(random_state)
    theta, X, y = rng.normal(size=4), rng.normal(size=(8, 4)), rng.normal(size=8)
    _, gradient, gap = inner.solve(theta, X, y)
    here = batch(theta, X, y, lam, loss, tol=1e-12).primal
    worst = -np.inf
    for size in (0.1, 1.0, 10.0, 100.0, 1000.0):
        for _ in range(20):
            other = theta + size * rng.normal(size=4)
            there = batch(other, X, y, lam, loss, tol=1e-12).primal
            worst = max(worst, here + gradient @ (other - theta) - there)
    limit = gap if np.isfinite(gap) else here
    assert worst <= limit + 1e-8 * (1 + here), (
        f"the gradient misses the subgradient inequality by {worst:.3g}, more than {limit:.3g}"
    )
