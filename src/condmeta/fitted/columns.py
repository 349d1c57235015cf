"""The columns that a fit saw."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.persistence.fields import (
    ANY,
    TEXT,
    InvalidFieldError,
    maybe,
    number,
    one_of,
    sequence,
)
from condmeta.persistence.registry import register_tuple


def _n_features(state: dict, sizes: dict[str, int]) -> None:
    sizes["n"] = state["n_features"]
    if state["names"] is not None and len(state["names"]) != sizes["n"]:
        raise InvalidFieldError("names", f"must be {sizes['n']} names")


@register_tuple(
    name="InputColumns",
    fields={
        "n_features": number(low=0, whole=True), "names": maybe(sequence(TEXT)), "task_name": ANY,
        "backend": maybe(one_of("pandas", "polars", "pyarrow")),
    },
    rule=_n_features,
)  # fmt: skip
class Columns(NamedTuple):
    """The columns that `fit` saw: features of X, the task column, and the kind of table."""

    n_features: int
    names: tuple[str, ...] | None = None
    task_name: Any = None
    backend: str | None = None

    @property
    def feature_names(self) -> np.ndarray:
        """The names (d,) as scikit-learn keeps them; an AttributeError if X had none."""
        if self.names is None:
            raise AttributeError("X had no feature names in fit.")
        return np.array(self.names, dtype=object)
