"""The learners that an Auto learner chooses among."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from condmeta.errors import DataError
from condmeta.learners.count import ConditionalCount
from condmeta.learners.form import Form
from condmeta.learners.inputs import Inputs
from condmeta.learners.transforms import with_transforms

READING = "scale", "fit_intercept", "task_column", "side_columns", "side_key", "n_jobs"
NO_SLOPE = 1e30  # a penalty that leaves a linear model its constant, in every unit of y


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
    return learners


def transformed_candidate(auto: Any, learners: dict[str, Any], given: Inputs) -> dict[str, Any]:
    """Return the prior with splines of x or another scale of y, if they pay on held-out tasks.

    The absolute error decides whether they do: a few wild labels hide it from the squared one. The
    folds then judge by the criterion that counts, and the candidate predicts medians or means.
    """
    if not hasattr(auto, "x_transform"):
        return {}
    plain = learners.get("conditional", learners["unconditional"])
    splines = "auto" if auto.x_transform is None else auto.x_transform
    open_form = clone(plain).set_params(x_transform=splines, y_transform="auto")
    form = with_transforms(open_form, given).form
    if form == Form(plain.x_transform):
        return {}
    chosen = form._asdict() | {"criterion": error_of(auto)}
    return {"transformed": clone(plain).set_params(**chosen)}


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
