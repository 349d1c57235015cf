r"""The losses, one row each.

Every loss l(z, y) is convex in the prediction z. All but the logistic one are a row of five
numbers: with the residual e = z - y they are

    l(z, y) = max over a in [low, high] of   a e - curvature a^2 / 2 - dead_zone |a|,

which gives value, slope and conjugate one formula each. The maximiser a is the slope; where it is
not unique (a kink) the slope is 0. The conjugate is

    l*(a) = a y + curvature a^2 / 2 + dead_zone |a|   for a in [low, high],   +inf elsewhere.

Labels of the classification losses are -1 and +1; `signed` rows have [low, high] for y = +1 and the
mirrored interval for y = -1.

To add a loss, add a row to `LOSSES`. A loss object of your own needs `value(z, y)` and
`slope(z, y)`, and for the batch inner algorithm `conjugate(a, y)`: see
`condmeta.testing.check_loss`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.persistence import register
from condmeta.persistence.fields import FLAG, TEXT, instance, number, one_of
from condmeta.typing import LossLike, Numbers

LOSS = instance()  # the schema of a loss in a model file: any registered object
LOGISTIC = -1.0  # the curvature by which the compiled engine knows the logistic loss


@register(
    fields={
        "name": TEXT, "curvature": number(low=0), "dead_zone": number(low=0),
        "low": number(infinite=True, high=0), "high": number(infinite=True, low=0),
        "signed": FLAG, "call": TEXT,
    }
)  # fmt: skip
@dataclass(frozen=True, repr=False)
class Loss:
    """A loss given by a row of numbers.

    Parameters
    ----------
    name : str
    curvature : float
        Second derivative inside the box; 0 for piecewise linear losses.
    dead_zone : float
        Half-width of the zone around y without loss.
    low, high : float
        Smallest and largest slope.
    signed : bool
        Whether the interval is mirrored for y = -1 (labels -1 and +1).
    call : str
        The call that made the loss, for its repr.

    Examples
    --------
    >>> from condmeta.losses import Huber
    >>> Huber(delta=1.0).value([0.5, 3.0], [0.0, 0.0])
    array([0.125, 2.5  ])
    """

    name: str
    curvature: float
    dead_zone: float
    low: float
    high: float
    signed: bool = False
    call: str = field(default="", compare=False, repr=False)

    def __repr__(self) -> str:
        return self.call or f"{self.name.capitalize()}()"

    @property
    def lipschitz(self) -> float:
        """L, the largest absolute slope."""
        return max(-self.low, self.high)

    @property
    def is_even(self) -> bool:
        """Whether the loss is the same for residuals e and -e."""
        return not self.signed and self.low == -self.high

    @property
    def native(self) -> tuple[float, float, float, float, bool]:
        """The row of numbers that the compiled engine reads."""
        return (self.curvature, self.dead_zone, self.low, self.high, self.signed)

    def box(self, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest slope for each label y."""
        y = np.asarray(y, dtype=float)
        low, high = np.full(y.shape, self.low), np.full(y.shape, self.high)
        if self.signed:
            low, high = np.where(y > 0, low, -high), np.where(y > 0, high, -low)
        return low, high

    def _bounds(self, y: Any) -> tuple[Any, Any]:
        """Return the slope bounds: two numbers, or two arrays if they depend on the labels."""
        return self.box(y) if self.signed else (self.low, self.high)

    def slope(self, z: Numbers, y: Numbers, tie: Numbers = 0.0) -> np.ndarray:
        """Return a subgradient in z; it is 0 at a kink, and within `tie` of it.

        `tie` is for piecewise linear losses only: the others have continuous slopes.
        """
        e = np.asarray(z, dtype=float) - y
        low, high = self._bounds(y)
        excess = np.abs(e)
        if self.dead_zone:
            excess = excess - self.dead_zone
        if self.curvature:
            return np.clip(np.sign(e) * np.maximum(excess, 0.0) / self.curvature, low, high)
        steps = np.asarray(np.copysign(high, e) if self.is_even else np.where(e > 0, high, low))
        steps[~(excess > tie)] = 0.0  # far faster than a product with the mask
        return steps[()]

    def value(self, z: Numbers, y: Numbers) -> np.ndarray:
        """Return l(z, y)."""
        e = np.asarray(z, dtype=float) - y
        if self.curvature:
            a = self.slope(z, y)
            return a * e - self.curvature * a**2 / 2 - self.dead_zone * np.abs(a)
        low, high = self._bounds(y)  # the largest of the linear pieces
        if not self.dead_zone:
            return high * np.abs(e) if self.is_even else np.maximum(high * e, low * e)
        pieces = np.maximum(high * (e - self.dead_zone), low * (e + self.dead_zone))
        return np.maximum(pieces, 0.0)

    def conjugate(self, a: Numbers, y: Numbers) -> np.ndarray:
        """Return l*(a) = sup over z of a z - l(z, y)."""
        a, y = np.asarray(a, dtype=float), np.asarray(y, dtype=float)
        low, high = self.box(y)
        inside = a * y + self.curvature * a**2 / 2 + self.dead_zone * np.abs(a)
        return np.where((a >= low) & (a <= high), inside, np.inf)


@register(fields={"name": one_of("logistic"), "lipschitz": number(low=1, high=1)})
@dataclass(frozen=True)
class LogisticLoss:
    """The logistic loss log(1 + exp(-y z)) for labels -1 and +1.

    Its conjugate is the negative entropy of p = -a y in [0, 1].

    Examples
    --------
    >>> from condmeta.losses import Logistic
    >>> Logistic().slope([0.0], 1.0)
    array([-0.5])
    """

    name: str = "logistic"
    lipschitz: float = 1.0
    native = (LOGISTIC, 0.0, -1.0, 0.0, True)
    signed = True

    def slope(self, z: Numbers, y: Numbers, tie: Numbers = 0.0) -> np.ndarray:
        """Return the derivative -y / (1 + exp(y z)); it has no kinks, so `tie` is not used."""
        margin = np.asarray(y, dtype=float) * np.asarray(z, dtype=float)
        # exp(-logaddexp(0, m)) = 1 / (1 + exp(m)) without overflow.
        return -np.asarray(y) * np.exp(-np.logaddexp(0.0, margin))

    def value(self, z: Numbers, y: Numbers) -> np.ndarray:
        """Return log(1 + exp(-y z))."""
        return np.logaddexp(0.0, -np.asarray(y, dtype=float) * np.asarray(z, dtype=float))

    def conjugate(self, a: Numbers, y: Numbers) -> np.ndarray:
        """Return p log p + (1 - p) log(1 - p) with p = -a y, +inf outside [0, 1]."""
        p = -np.asarray(a, dtype=float) * y
        inside = (p >= 0) & (p <= 1)
        safe = np.where(inside, p, 0.5)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = safe * np.log(safe) + (1 - safe) * np.log1p(-safe)
        return np.where(inside, np.nan_to_num(entropy, nan=0.0), np.inf)


def Absolute() -> Loss:  # noqa: N802 - used like a class
    """Return ``|e|``; L = 1, slope 0 at e = 0."""
    return Loss("absolute", 0.0, 0.0, -1.0, 1.0)


def Squared() -> Loss:  # noqa: N802
    """Return e^2 / 2 (half the square); L = inf, so the paper's bounds do not cover it."""
    return Loss("squared", 1.0, 0.0, -np.inf, np.inf)


def Huber(delta: float = 1.35) -> Loss:  # noqa: N802
    """Return e^2 / 2 for ``|e| <= delta``, ``delta |e| - delta^2 / 2`` beyond; L = delta."""
    _check_range("delta", delta, 0.0, np.inf)
    return Loss("huber", 1.0, 0.0, -float(delta), float(delta), call=f"Huber(delta={delta!r})")


def Pinball(q: float = 0.5) -> Loss:  # noqa: N802
    """Return max(-q e, (1 - q) e), minimised by the q-quantile of y; slope 0 at e = 0."""
    _check_range("q", q, 0.0, 1.0)
    return Loss("pinball", 0.0, 0.0, -float(q), 1.0 - float(q), call=f"Pinball(q={q!r})")


def EpsilonInsensitive(eps: float = 0.1) -> Loss:  # noqa: N802
    """Return ``max(|e| - eps, 0)``; L = 1, slope 0 at ``|e| = eps``."""
    _check_range("eps", eps, 0.0, np.inf)
    call = f"EpsilonInsensitive(eps={eps!r})"
    return Loss("epsilon_insensitive", 0.0, float(eps), -1.0, 1.0, call=call)


def Hinge() -> Loss:  # noqa: N802
    """Return max(1 - y z, 0) for labels -1 and +1; L = 1, slope 0 at y z = 1."""
    return Loss("hinge", 0.0, 0.0, -1.0, 0.0, signed=True)


def Logistic() -> LogisticLoss:  # noqa: N802
    """Return log(1 + exp(-y z)) for labels -1 and +1; L = 1."""
    return LogisticLoss()


LOSSES = {
    "absolute": Absolute, "squared": Squared, "huber": Huber, "pinball": Pinball,
    "epsilon_insensitive": EpsilonInsensitive, "hinge": Hinge, "logistic": Logistic,
}  # fmt: skip


def get_loss(loss: LossLike) -> Any:
    """Return the loss of a name, or the given object if it has `value` and `slope`.

    Examples
    --------
    >>> from condmeta.losses import get_loss
    >>> get_loss("hinge").lipschitz
    1.0
    """
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    if not isinstance(loss, str) and hasattr(loss, "value") and hasattr(loss, "slope"):
        return loss
    names = ", ".join(repr(name) for name in LOSSES)
    raise DataError(
        f"The 'loss' parameter must be one of {names}, or an object with methods 'value' and "
        f"'slope'. Got {loss!r} instead."
    )


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        allowed = f"a float in ({low:g}, {high:g})"
        raise DataError(f"The '{name}' parameter must be {allowed}. Got {value!r} instead.")
