"""Attributes of a learner that read its fitted value."""

from __future__ import annotations

from typing import Any

from condmeta.learners.parameters import is_auto


class from_info:  # noqa: N801 - reads like `property`
    """An attribute of the fitted value's `info`, by its name in the class.

    `default` is its value where `info` has none; without, that is an AttributeError.
    """

    def __init__(self, *default: Any):
        self.default = default

    def __set_name__(self, owner: Any, name: str):
        self.name = name

    def __get__(self, learner: Any, owner: Any = None):
        if learner is None:
            return self
        info = learner.fitted_.info
        if self.name in info:
            return info[self.name]
        if not self.default:
            raise AttributeError(f"This {type(learner).__name__} has no {self.name}.")
        return self.default[0]


class chosen_transform:  # noqa: N801 - reads like `property`
    """An attribute `x_transform_` or `y_transform_`: the parameter, or what "auto" has chosen."""

    def __set_name__(self, owner: Any, name: str):
        self.name = name

    def __get__(self, learner: Any, owner: Any = None):
        if learner is None:
            return self
        given = getattr(learner, self.name.removesuffix("_"))
        return learner.fitted_.info.get(self.name) if is_auto(given) else given
