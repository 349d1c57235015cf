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
from condmeta.persistence import read_model, register

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
    "load",
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


def load(path):
    """Read a learner that `save` wrote.

    The file is checked before it is read, and holds arrays and JSON only: opening it runs nothing.
    Every fault is a `condmeta.errors.ModelFileError` that says what to do.

    Examples
    --------
    >>> import condmeta as cm, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "pooled.condmeta"
    ...     cm.PooledRegressor(lam=0.5).fit([[0.0], [1.0]], [0.0, 1.0]).save(path)
    ...     cm.load(path)
    PooledRegressor(lam=0.5)
    """
    return read_model(path)
