"""The methods compared, in the order of the tables. One line adds one.

A method has `fit(train)` and `predict(support, query)`, which returns the predictions of the query
rows; both take `TaskSet`s. A method whose package is absent raises ImportError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import condmeta as cm
from benchmarks.accuracy import boosting, maml, mixed, ridges
from benchmarks.accuracy.ours import Learner


class Method(NamedTuple):
    """How to make a method; whether it is linear in x for each task, and whether it is ours."""

    title: str
    make: Callable[[], Any]
    linear: bool = True
    ours: bool = False


METHODS: dict[str, Method] = {
    "ridge": Method("ConditionalRidge", lambda: Learner(cm.ConditionalRidge), ours=True),
    "ridge-no-side": Method(
        "ConditionalRidge, no side information",
        lambda: Learner(lambda: cm.ConditionalRidge(feature_map=None)), ours=True,
    ),
    "auto": Method("AutoRegressor", lambda: Learner(cm.AutoRegressor), linear=False, ours=True),
    "pooled": Method("pooled ridge, then ridge per task", ridges.PooledThenPerTask),
    "per-task": Method("RidgeCV per task", ridges.RidgePerTask),
    "statsmodels": Method("statsmodels MixedLM, random slopes", mixed.Statsmodels),
    "statsmodels-intercept": Method(
        "statsmodels MixedLM, random intercept", mixed.StatsmodelsIntercept
    ),
    "lme4": Method("lme4, random slopes", mixed.Lme4),
    "mixedlm": Method("mixedlm, random slopes", mixed.Mixedlm),
    "mixedlm-rs": Method("mixedlm-rs, random slopes", mixed.MixedlmRs),
    "gpboost": Method("GPBoost linear, random slopes", mixed.GpboostLinear),
    "gpboost-trees": Method(
        "GPBoost trees, random intercept", boosting.GpboostTrees, linear=False
    ),
    "lightgbm": Method("LightGBM, shrunken task mean", boosting.LightGBM, linear=False),
    "maml": Method("first-order MAML, network", maml.FirstOrderMaml, linear=False),
}  # fmt: skip
