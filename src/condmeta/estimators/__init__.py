"""The learners, as scikit-learn estimators."""

from condmeta.estimators.auto_classifier import AutoClassifier
from condmeta.estimators.auto_regressor import AutoRegressor
from condmeta.estimators.baselines import (
    FixedBiasClassifier,
    FixedBiasRegressor,
    IndependentClassifier,
    IndependentRegressor,
    PooledClassifier,
    PooledRegressor,
)
from condmeta.estimators.blend import BlendedModel, BlendedModels
from condmeta.estimators.coin import ConditionalCoinRegressor
from condmeta.estimators.erm import ConditionalERMRegressor
from condmeta.estimators.kernel_sgd import KernelConditionalSGDRegressor
from condmeta.estimators.logistic import ConditionalLogistic
from condmeta.estimators.merge import merge
from condmeta.estimators.ridge import ConditionalRidge
from condmeta.estimators.sgd import ConditionalSGDClassifier, ConditionalSGDRegressor
from condmeta.estimators.sgd_cv import ConditionalSGDRegressorCV
from condmeta.estimators.storage import export_auto, register_learner, restore_auto
from condmeta.estimators.task_model import TaskModel, TaskModels
from condmeta.persistence import register

__all__ = [
    "AutoClassifier",
    "AutoRegressor",
    "BlendedModel",
    "BlendedModels",
    "ConditionalCoinRegressor",
    "ConditionalERMRegressor",
    "ConditionalLogistic",
    "ConditionalRidge",
    "ConditionalSGDClassifier",
    "ConditionalSGDRegressor",
    "ConditionalSGDRegressorCV",
    "FixedBiasClassifier",
    "FixedBiasRegressor",
    "IndependentClassifier",
    "IndependentRegressor",
    "KernelConditionalSGDRegressor",
    "PooledClassifier",
    "PooledRegressor",
    "TaskModel",
    "TaskModels",
    "merge",
]

LEARNERS = (
    ConditionalRidge,
    ConditionalLogistic,
    ConditionalSGDRegressor,
    ConditionalSGDRegressorCV,
    ConditionalSGDClassifier,
    ConditionalCoinRegressor,
    ConditionalERMRegressor,
    KernelConditionalSGDRegressor,
    IndependentRegressor,
    IndependentClassifier,
    PooledRegressor,
    PooledClassifier,
    FixedBiasRegressor,
    FixedBiasClassifier,
)
for learner in LEARNERS:
    register_learner(learner)
for cls in (AutoRegressor, AutoClassifier):
    register(cls, export=export_auto, restore=restore_auto)
