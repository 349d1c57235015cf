"""The learners that an Auto learner chooses among."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.base import clone

READING = "scale", "fit_intercept", "task_column", "side_columns", "side_key", "n_jobs"
OF_PRIORS = ("x_transform",)  # parameters that only the learners with a prior have


class Kinds(NamedTuple):
    """The classes of the candidates: without other tasks, without task effects, with a prior."""

    own: type
    pooled: type
    conditional: type


def candidates(auto, kinds: Kinds, conditional: bool) -> dict[str, Any]:
    """Return the candidates by name; `conditional` adds the one with side information."""
    reading = {name: getattr(auto, name) for name in READING}
    learners = {"own data": kinds.own(**reading), "pooled": kinds.pooled(**reading)}
    how = reading | {name: getattr(auto, name) for name in OF_PRIORS if hasattr(auto, name)}
    learners["unconditional"] = kinds.conditional(None, missing_side="mean", **how)
    if conditional:
        how |= {"missing_side": auto.missing_side}
        learners["conditional"] = kinds.conditional(auto.feature_map, **how)
    return learners


def candidates_on_base(learners: dict[str, Any], numbers: bool) -> dict[str, Any]:
    """Return the candidates on a shared model; of numbers, a random intercept on it as well."""
    found = {f"{name} on base": clone(learners[name]) for name in learners if "conditional" in name}
    if numbers:
        mean = clone(learners["unconditional"]).set_params(random="intercept")
        found["task mean on base"] = mean
    return found
