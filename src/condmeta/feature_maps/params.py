"""Bases of maps and kernels: parameters for scikit-learn, and random Fourier features."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from condmeta.errors import DataError
from condmeta.persistence.fields import ANY, floats, number, optional
from condmeta.tasks.messages import bad_parameter
from condmeta.tasks.splits import make_generator
from condmeta.typing import RandomState

FOURIER = {  # the schema of random Fourier features in model files
    "n_features": number(low=1, whole=True), "std": number(above=0), "random_state": ANY,
    "U_": optional(floats("k p")), "v_": optional(floats("k")),
}  # fmt: skip


@contextmanager
def naming_failures(what: str) -> Iterator[None]:
    """Turn the errors of someone's transformer into a DataError that names it."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip()}"
        raise DataError(f"{what} cannot read these values ({reason}).") from error


class FeatureMap:
    """Give a map parameters that scikit-learn can read, set and clone."""

    reads_points = False

    @classmethod
    def _param_names(cls) -> list[str]:
        if cls.__init__ is object.__init__:
            return []
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's parameters."""
        return {name: getattr(self, name) for name in self._param_names()}

    def set_params(self, **params: Any) -> Self:
        """Set constructor parameters by name."""
        for name, value in params.items():
            if name not in self._param_names():
                raise DataError(f"{type(self).__name__} has no parameter {name!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({shown})"


class Fourier:
    """Draw random Fourier features phi(x) = sqrt(2/k) cos(U x + v)."""

    def __init__(self, n_features: int = 100, std: float = 1.0, random_state: RandomState = None):
        self.n_features = n_features
        self.std = std
        self.random_state = random_state

    def _draw(self, n_columns: int) -> None:
        name, k, std = type(self).__name__, self.n_features, self.std
        if not isinstance(k, Integral) or k < 1:
            raise bad_parameter(f"n_features of {name}", "an int in [1, inf)", k)
        if not isinstance(std, Real) or not 0 < std < np.inf:
            raise bad_parameter(f"std of {name}", "a float in (0, inf)", std)
        rng = make_generator(self.random_state)
        self.U_ = rng.normal(0.0, std, size=(k, n_columns))
        self.v_ = rng.uniform(0.0, 2 * np.pi, size=k)

    def _phi(self, X: np.ndarray) -> np.ndarray:
        phi = X @ self.U_.T  # then in place: the cosines take most of the time
        phi += self.v_
        np.cos(phi, out=phi)
        phi *= np.sqrt(2.0 / self.v_.size)
        return phi
