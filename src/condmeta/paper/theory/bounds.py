r"""The excess-risk bounds of the paper, and the lam and meta_step that minimise them.

The loss is convex with slopes of at most L, inputs have ||x|| <= R and features ||Phi(s)|| <= K.
In Theorem 1 V = Var(tau) is that of the given bias. In Theorem 2 V = Var(tau_{M,b}) and
N = ||(M, b)||_F are those of any linear function, with which the learned function is compared:

    E excess risk <= c L^2 R^2 r / lam + lam V^2 / 2                                      (1)
                     + meta_step L^2 R^2 (K^2 + 1) / 2 + N^2 / (2 meta_step T)            (2)

             batch inner              online inner (fine-tuning)
    r        1 / n                    (1 + ln n) / n
    c        2                        2 for a given tau, 4 for a learned one

The second column is not in the paper, which states that fine-tuning has the same rates; it follows
from the regret of the online pass. If tasks differ in size, r is its mean over the tasks. The
slopes of the squared loss are unbounded (L = inf), so the bounds do not cover it.

The bounds need tau(s) to be independent of the training points, given the task. This holds if the
side information does not come from the training points, or if some points are used only to
condition (``conditioning="split"``).
"""

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.losses import get_loss
from condmeta.typing import InnerName, LossLike, Numbers


class Bound(NamedTuple):
    """Hold a bound on the expected excess risk, its three terms, lam and meta_step.

    Attributes
    ----------
    value : float
        The bound: stability + bias + learning.
    stability : float
        c L^2 R^2 r / lam, the bound on the risk of a task minus its mean training loss.
    bias : float
        lam V^2 / 2, the cost of regularising towards tau(s).
    learning : float
        The cost of learning tau from T tasks; 0 for a given tau.
    lam : float
        As given, or the minimiser; inf if V = 0 (the task's model is then tau(s) itself).
    meta_step : float
        As given, or the minimiser; 0 for a given tau.

    Examples
    --------
    >>> import condmeta as cm
    >>> cm.theory.bound_fixed(V=1.5, n=9, R=2.0).value
    2.0
    """

    value: float
    stability: float
    bias: float
    learning: float
    lam: float
    meta_step: float


def stability(lam: float, n: Numbers, *, L: float = 1.0, R: float = 1.0) -> float:
    """Return 2 L^2 R^2 / (lam n), a bound on E[risk - mean loss] of the batch inner algorithm.

    `n` is the number of points of a task, or an array (T,) with one number for each task.

    Examples
    --------
    >>> import condmeta as cm
    >>> cm.theory.stability(0.5, 10, R=2.0)
    1.6
    """
    return bound_fixed(0.0, n, L=L, R=R, lam=_positive(lam, "lam")).stability


def gradient_bound(*, L: float = 1.0, R: float = 1.0, K: float = 0.0) -> float:
    """Return L R sqrt(K^2 + 1), a bound on the norm of the meta-gradient.

    Examples
    --------
    >>> import condmeta as cm
    >>> cm.theory.gradient_bound(R=2.0, K=0.0)
    2.0
    """
    L, R, K = (_finite(v, name) for v, name in ((L, "L"), (R, "R"), (K, "K")))
    return L * R * float(np.sqrt(K**2 + 1))


def largest_slope(loss: LossLike) -> float:
    """Return L, the largest absolute slope of a loss; raise if there is none."""
    loss = get_loss(loss)
    name = repr(getattr(loss, "name", type(loss).__name__))
    if not hasattr(loss, "lipschitz"):
        raise DataError(
            f"The bounds need the largest absolute slope of a loss: {name} has no attribute "
            "'lipschitz'. Add it."
        )
    if not np.isfinite(loss.lipschitz):
        raise DataError(
            f"There is no bound for the loss {name}: its slopes are unbounded. Use another loss, "
            "such as 'absolute' or 'huber'."
        )
    return loss.lipschitz


def effective_n(sizes: Numbers) -> float:
    """Return the harmonic mean of the numbers of points, 1 / E[1/n].

    Examples
    --------
    >>> import condmeta as cm
    >>> round(cm.theory.effective_n([24, 100, 251]), 4)
    53.9076
    """
    return 1 / _rate(sizes, "batch")


def bound_fixed(
    V: float, n: Numbers, *, L: float = 1.0, R: float = 1.0,
    lam: float | None = None, inner: InnerName = "batch",
) -> Bound:  # fmt: skip
    """Return the bound of Theorem 1, on the excess risk of a given conditioning function.

    With the best lam = 2 R L / (V sqrt(n)) the bound is 2 R L V / sqrt(n).

    Parameters
    ----------
    V : float in [0, inf)
        Var(tau), not its square.
    n : int or array (T,)
        Points of a task, or of each task.
    L, R : float
        Largest slope of the loss (1 for the absolute loss), and the largest or the root mean square
        norm of x.
    lam : float in (0, inf], optional
        By default the minimiser of the bound.
    inner : {"batch", "online"}

    Examples
    --------
    >>> import condmeta as cm
    >>> bound = cm.theory.bound_fixed(V=1.5, n=10, R=2.0)
    >>> round(bound.value, 6), round(bound.lam, 6)
    (1.897367, 0.843274)
    """
    return _bound(2.0, V, n, L, R, lam, inner, 0.0, 0.0)


def bound_learned(
    V: float, norm: float, n: Numbers, T: int, *, L: float = 1.0, R: float = 1.0, K: float = 0.0,
    lam: float | None = None, meta_step: float | None = None, inner: InnerName = "batch",
) -> Bound:  # fmt: skip
    """Return the bound of Theorem 2, on the excess risk of the function that Algorithm 1 learns.

    The bound holds for every linear function: `V` and `norm` may be those of any M, b.
    Unconditional learning is the case K = 0, norm = ||w_rho||, V = Var(w_rho). Independent learning
    is the case norm = 0, V = Var(0); its best meta_step is 0.

    Parameters
    ----------
    V : float in [0, inf)
        Var(tau_{M,b}), not its square.
    norm : float in [0, inf)
        ||(M, b)||_F.
    n : int or array
        Points of a task, or of each task.
    T : int
        Number of training tasks.
    L, R, K : float
        Largest slope of the loss, and largest norms of x and Phi; see `radii` for unbounded inputs.
    lam, meta_step : float, optional
        By default the minimisers of the bound: lam = 2 R L / (V sqrt(n)), or sqrt(8 r) R L / V for
        the online inner algorithm, and meta_step = norm / (L R sqrt(K^2 + 1) sqrt(T)).
    inner : {"batch", "online"}

    Examples
    --------
    >>> import condmeta as cm
    >>> bound = cm.theory.bound_learned(V=1.5, norm=3.0, n=10, T=300, R=2.0, K=2**0.5)
    >>> round(bound.value, 6), round(bound.meta_step, 6)
    (2.497367, 0.05)
    """
    G = gradient_bound(L=L, R=R, K=K)
    norm = _finite(norm, "norm")
    if isinstance(T, bool) or not isinstance(T, int | np.integer) or T < 1:
        raise DataError(f"T must be an int of at least 1. Got {T!r} instead.")
    if meta_step is None:
        meta_step = norm / (G * np.sqrt(T)) if norm else 0.0
    meta_step = _finite(meta_step, "meta_step")
    if norm and not meta_step:
        raise DataError("meta_step = 0 needs norm = 0. Give a larger one, or None for the best.")
    learning = meta_step * G**2 / 2 + (norm**2 / (2 * meta_step * T) if norm else 0.0)
    return _bound(4.0 if inner == "online" else 2.0, V, n, L, R, lam, inner, learning, meta_step)


def _bound(
    c: Any, V: Any, n: Any, L: Any, R: Any, lam: Any, inner: Any, learning: Any, meta_step: Any
) -> Bound:
    V, L, R = _finite(V, "V"), _finite(L, "L"), _finite(R, "R")
    r = _rate(n, inner)
    if lam is None:
        lam = np.sqrt(2 * c * r) * L * R / V if V else np.inf
    lam = _positive(lam, "lam")
    bias = lam * V**2 / 2 if V else 0.0
    spread = c * L**2 * R**2 * r / lam
    total = spread + bias + learning
    return Bound(*map(float, (total, spread, bias, learning, lam, meta_step)))


def _rate(n: Any, inner: str) -> float:
    """Return the mean over the tasks of 1/n, or of (1 + ln n)/n for the online pass."""
    if inner not in ("batch", "online"):
        raise DataError(f"inner must be 'batch' or 'online'. Got {inner!r} instead.")
    sizes = np.atleast_1d(np.asarray(n, dtype=np.float64))
    if not sizes.size or not (np.isfinite(sizes) & (sizes >= 1)).all():
        raise DataError(
            f"n must hold at least one task, and at least 1 point for every task. Got {n}."
        )
    return float(np.mean((1 + np.log(sizes)) / sizes if inner == "online" else 1 / sizes))


def _finite(value: Any, name: str) -> float:
    if not (np.ndim(value) == 0 and 0 <= value < np.inf):
        remedy = " The slopes of this loss are unbounded: use another loss." * (name == "L")
        raise DataError(f"{name} must be a float in [0, inf). Got {value!r} instead.{remedy}")
    return float(value)


def _positive(value: Any, name: str) -> float:
    if not (np.ndim(value) == 0 and value > 0):
        raise DataError(f"{name} must be a float in (0, inf]. Got {value!r} instead.")
    return float(value)
