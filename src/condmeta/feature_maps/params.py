"""What all maps share: parameters that scikit-learn can read, set and clone."""

from __future__ import annotations

import inspect
from typing import Any

from condmeta.errors import DataError


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

    def set_params(self, **params: Any) -> FeatureMap:
        """Set constructor parameters by name."""
        for name, value in params.items():
            if name not in self._param_names():
                raise DataError(f"{type(self).__name__} has no parameter {name!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({shown})"
