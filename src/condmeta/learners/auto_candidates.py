"""The learners that an Auto learner chooses among."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from condmeta.errors import DataError
from condmeta.learners.count import ConditionalCount

READING = "scale", "fit_intercept", "task_column", "side_columns", "side_key", "n_jobs"
TRANSFORMED = "transformed"
NO_SLOPE = 1e9  # a penalty that leaves a linear model its constant


class Kinds(NamedTuple):
    """The classes of the candidates: without other tasks, without task effects, with a prior."""

    own: type
    pooled: type
    conditional: type


def candidates(auto: Any, kinds: Kinds, conditional: bool) -> dict[str, Any]:
    """Return the candidates by name; `conditional` adds the one with side information."""
    reading = {name: getattr(auto, name) for name in READING}
    learners = {"own data": kinds.own(**reading), "pooled": kinds.pooled(**reading)}
    numbers = hasattr(auto, "x_transform")
    plain = {"x_transform": auto.x_transform, "y_transform": None} if numbers else {}
    how = reading | plain
    learners["unconditional"] = kinds.conditional(None, missing_side="mean", **how)
    if conditional:
        how |= {"missing_side": auto.missing_side}
        learners["conditional"] = kinds.conditional(auto.feature_map, **how)
    if numbers:
        splines = "auto" if auto.x_transform is None else auto.x_transform
        forms = {"x_transform": splines, "y_transform": "auto", "criterion": error_of(auto)}
        learners[TRANSFORMED] = clone(_plain(learners)).set_params(**forms)
    return learners


def error_of(auto: Any) -> str:
    """Return the error that learners of numbers aim at, by the criterion of an Auto learner."""
    return "absolute" if auto.criterion == "absolute" else "squared"


def refuse_negative(criterion: str, y: np.ndarray) -> None:
    """Raise if the deviance of counts is asked for, and some labels are negative."""
    if criterion == "deviance" and (y < 0).any():
        raise DataError(
            f"criterion='deviance' is for counts, and y holds {y.min():g}: use 'absolute', "
            "'squared' or 'log density'."
        )


def count_candidates(auto: Any, conditional: bool) -> dict[str, Any]:
    """Return the candidates that learn counts."""
    reading = {name: getattr(auto, name) for name in READING}
    found = {"unconditional counts": ConditionalCount(None, missing_side="mean", **reading)}
    if conditional and auto.feature_map is not None:
        how = reading | {"missing_side": auto.missing_side}
        found["conditional counts"] = ConditionalCount(auto.feature_map, **how)
    return found


def candidates_on_base(auto: Any, learners: dict[str, Any]) -> dict[str, Any]:
    """Return the candidates on a shared model.

    Of numbers also a random intercept, and the shared model alone, but for the median or the mean
    of what it leaves: the priors shrink towards means, which are no medians if labels are skewed.
    """
    found = {f"{name} on base": clone(learners[name]) for name in learners if "conditional" in name}
    if hasattr(auto, "x_transform"):
        found["task mean on base"] = clone(learners["unconditional"]).set_params(random="intercept")
        found["constant on base"] = clone(learners["pooled"]).set_params(
            loss=error_of(auto), lam=NO_SLOPE
        )
    return found


def without_repetition(learners: dict[str, Any]) -> dict[str, Any]:
    """Return fitted candidates without the transformed one, if it has chosen no transformation."""
    found = learners.get(TRANSFORMED)
    if found is None or found.y_transform_ is not None:
        return learners
    if found.x_transform_ is not _plain(learners).x_transform:
        return learners
    return {name: learner for name, learner in learners.items() if name != TRANSFORMED}


def _plain(learners: dict[str, Any]):
    return learners.get("conditional", learners["unconditional"])
