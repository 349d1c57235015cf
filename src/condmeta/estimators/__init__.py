"""The learners, as scikit-learn estimators."""

from condmeta.estimators.baselines import (
    FixedBiasClassifier,
    FixedBiasRegressor,
    IndependentClassifier,
    IndependentRegressor,
    PooledClassifier,
    PooledRegressor,
)
from condmeta.estimators.sgd import ConditionalSGDClassifier, ConditionalSGDRegressor
from condmeta.estimators.storage import register_learner
from condmeta.estimators.task_model import TaskModel, TaskModels
from condmeta.persistence import read_model

__all__ = [
    "ConditionalSGDClassifier",
    "ConditionalSGDRegressor",
    "FixedBiasClassifier",
    "FixedBiasRegressor",
    "IndependentClassifier",
    "IndependentRegressor",
    "PooledClassifier",
    "PooledRegressor",
    "TaskModel",
    "TaskModels",
    "load",
]

LEARNERS = (
    ConditionalSGDRegressor,
    ConditionalSGDClassifier,
    IndependentRegressor,
    IndependentClassifier,
    PooledRegressor,
    PooledClassifier,
    FixedBiasRegressor,
    FixedBiasClassifier,
)
for learner in LEARNERS:
    register_learner(learner)


def load(path):
    """Read a learner that `save` wrote.

    The file is checked before it is read, and holds arrays and JSON only: opening it runs nothing.
    Every fault is a `condmeta.errors.ModelFileError` that says what to do.
    """
    return read_model(path)
