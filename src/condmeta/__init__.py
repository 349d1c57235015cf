"""Give every small task a good model.

condmeta learns, from many small related problems, where the linear model of a task should start,
given what is known about it; a new task is then solved from a handful of points, or from none.
Names are imported when first used, so that `import condmeta` loads NumPy alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOME = {
    "AutoClassifier": "condmeta.estimators",
    "AutoRegressor": "condmeta.estimators",
    "BlendedModel": "condmeta.estimators",
    "BlendedModels": "condmeta.estimators",
    "ConditionalCoinRegressor": "condmeta.estimators",
    "ConditionalERMRegressor": "condmeta.estimators",
    "ConditionalLogistic": "condmeta.estimators",
    "ConditionalRidge": "condmeta.estimators",
    "ConditionalSGDClassifier": "condmeta.estimators",
    "ConditionalSGDRegressor": "condmeta.estimators",
    "FixedBiasClassifier": "condmeta.estimators",
    "FixedBiasRegressor": "condmeta.estimators",
    "IndependentClassifier": "condmeta.estimators",
    "IndependentRegressor": "condmeta.estimators",
    "KernelConditionalSGDRegressor": "condmeta.estimators",
    "PooledClassifier": "condmeta.estimators",
    "PooledRegressor": "condmeta.estimators",
    "TaskModel": "condmeta.estimators",
    "TaskModels": "condmeta.estimators",
    "ConditionalSGDRegressorCV": "condmeta.estimators",
    "TableModel": "condmeta.table",
    "TaskSet": "condmeta.tasks",
    "TaskSplit": "condmeta.tasks",
    "TaskTable": "condmeta.tasks",
    "Advantage": "condmeta.evaluation",
    "advantage": "condmeta.evaluation",
    "Calibrated": "condmeta.evaluation",
    "calibrate": "condmeta.evaluation",
    "Comparison": "condmeta.evaluation",
    "compare": "condmeta.evaluation",
    "CheckReport": "condmeta.evaluation",
    "check": "condmeta.evaluation",
    "cross_validate_tasks": "condmeta.evaluation",
    "Explanation": "condmeta.evaluation",
    "explain": "condmeta.evaluation",
    "load": "condmeta.loading",
    "merge": "condmeta.estimators",
    "show_versions": "condmeta.versions",
}
_MODULES = (
    "datasets",
    "environments",
    "errors",
    "experiments",
    "feature_maps",
    "inner",
    "kernels",
    "losses",
    "persistence",
    "plots",
    "testing",
    "theory",
)

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name: str):
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"condmeta.{name}")
    else:
        raise AttributeError(f"module 'condmeta' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from condmeta import (
        datasets,
        environments,
        errors,
        experiments,
        feature_maps,
        inner,
        kernels,
        losses,
        persistence,
        plots,
        testing,
        theory,
    )
    from condmeta.estimators import (
        AutoClassifier,
        AutoRegressor,
        BlendedModel,
        BlendedModels,
        ConditionalCoinRegressor,
        ConditionalERMRegressor,
        ConditionalLogistic,
        ConditionalRidge,
        ConditionalSGDClassifier,
        ConditionalSGDRegressor,
        ConditionalSGDRegressorCV,
        FixedBiasClassifier,
        FixedBiasRegressor,
        IndependentClassifier,
        IndependentRegressor,
        KernelConditionalSGDRegressor,
        PooledClassifier,
        PooledRegressor,
        TaskModel,
        TaskModels,
        merge,
    )
    from condmeta.evaluation import (
        Advantage,
        Calibrated,
        CheckReport,
        Comparison,
        Explanation,
        advantage,
        calibrate,
        check,
        compare,
        cross_validate_tasks,
        explain,
    )
    from condmeta.loading import load
    from condmeta.table import TableModel
    from condmeta.tasks import TaskSet, TaskSplit, TaskTable
    from condmeta.versions import show_versions
