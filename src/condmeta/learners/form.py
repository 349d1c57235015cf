"""The form of a model: transformations of x and y, and a base."""

from __future__ import annotations

from typing import Any, NamedTuple


class Form(NamedTuple):
    """What a model is fitted to: transformations of x and y, and a base; None where there is none.

    The fields are called as the parameters of learners that ask for them.
    """

    x_transform: Any = None
    y_transform: str | None = None
    base: Any = None

    def words(self) -> dict[str, str | None]:
        """Return all by name; an object of the user's is "given"."""
        return {
            name: value if value is None or isinstance(value, str) else "given"
            for name, value in self._asdict().items()
        }
