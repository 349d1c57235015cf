"""The methods compared, in the order of the tables. One line adds one.

A method has `fit(train)` and `predict(support, query)`, which returns the predictions of the query
rows; both take `TaskSet`s. A method whose package is absent raises ImportError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import condmeta as cm
from benchmarks.accuracy import boosting, classifiers, maml, mixed, ridges, trees
from benchmarks.accuracy.data import FIRST, PROBLEMS
from benchmarks.accuracy.ours import Classifier, Learner


class Method(NamedTuple):
    """How to make a method; whether it is linear in x for each task, and whether it is ours.

    `classes` says that it predicts a probability. `everywhere` says that it runs on the tables of
    `registry.py` and `fresh.py`, not only on the first twelve data sets.
    """

    title: str
    make: Callable[[], Any]
    linear: bool = True
    ours: bool = False
    classes: bool = False
    everywhere: bool = True


METHODS: dict[str, Method] = {
    "ridge": Method("ConditionalRidge", lambda: Learner(cm.ConditionalRidge), ours=True),
    "ridge-base": Method(
        'ConditionalRidge, base="auto"',
        lambda: Learner(lambda: cm.ConditionalRidge(base="auto")), linear=False, ours=True,
    ),
    "ridge-linear": Method(
        "ConditionalRidge, linear",
        lambda: Learner(lambda: cm.ConditionalRidge(x_transform=None, y_transform=None)),
        ours=True,
    ),
    "ridge-no-side": Method(
        "ConditionalRidge, no side information",
        lambda: Learner(lambda: cm.ConditionalRidge(feature_map=None)), ours=True,
        everywhere=False,
    ),
    "auto": Method("AutoRegressor", lambda: Learner(cm.AutoRegressor), linear=False, ours=True),
    "auto-squared": Method(
        'AutoRegressor, criterion="squared"',
        lambda: Learner(lambda: cm.AutoRegressor(criterion="squared")), linear=False, ours=True,
    ),
    "pooled-ridge": Method("pooled ridge", ridges.Pooled),
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
    "lightgbm": Method(
        "LightGBM, shrunken task mean", boosting.LightGBM, linear=False, everywhere=False
    ),
    "lightgbm-squared": Method(
        "LightGBM squared, mean residual", lambda: trees.TunedTrees("l2"), linear=False
    ),
    "lightgbm-absolute": Method(
        "LightGBM absolute, mean residual", lambda: trees.TunedTrees("l1"), linear=False
    ),
    "lightgbm-mean-squared": Method(
        "LightGBM squared, task mean as column", lambda: trees.TreesOnTaskMean("l2"), linear=False
    ),
    "lightgbm-mean-absolute": Method(
        "LightGBM absolute, task mean as column", lambda: trees.TreesOnTaskMean("l1"), linear=False
    ),
    "maml": Method(
        "first-order MAML, network", maml.FirstOrderMaml, linear=False, everywhere=False
    ),
    "logistic": Method(
        "ConditionalLogistic", lambda: Classifier(cm.ConditionalLogistic), ours=True, classes=True
    ),
    "auto-classifier": Method(
        "AutoClassifier", lambda: Classifier(cm.AutoClassifier), linear=False, ours=True,
        classes=True,
    ),
    "pooled-logistic": Method(
        "pooled logistic regression", classifiers.PooledLogistic, classes=True
    ),
    "per-task-logistic": Method(
        "logistic regression per task", classifiers.LogisticPerTask, classes=True
    ),
    "gpboost-logit": Method(
        "GPBoost logit, random slopes", classifiers.GpboostLogit, classes=True
    ),
    "lightgbm-binary": Method(
        "LightGBM log loss, task share as column", lambda: trees.TreesOnTaskMean("binary"),
        linear=False, classes=True,
    ),
}  # fmt: skip


def methods_for(problem: str) -> list[str]:
    """Return the methods that can run on a data set."""
    return [
        name
        for name, method in METHODS.items()
        if method.classes == PROBLEMS[problem].classes and (method.everywhere or problem in FIRST)
    ]
