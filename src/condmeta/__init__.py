"""Give every small task a good model.

condmeta learns, from many small related problems, where the linear model of a task should start,
given what is known about it; a new task is then solved from a handful of points, or from none.
Names are imported when first used, so that `import condmeta` loads NumPy alone; `__init__.pyi`
shows the same names to type checkers.
"""

from importlib import import_module

__version__ = "0.1.0"

_NAMES = {  # module: the public names that it defines
    "evaluation": """
        Advantage Calibrated CheckReport Comparison Explanation
        advantage calibrate check compare cross_validate_tasks explain""",
    "fitted.class_models": "ClassModel ClassModels",
    "fitted.count_distribution": "CountDistribution",
    "fitted.summary": "Summary",
    "fitted.task_model": "TaskModel TaskModels",
    "learners.auto_classifier": "AutoClassifier",
    "learners.auto_regressor": "AutoRegressor",
    "learners.baselines": """
        FixedBiasClassifier FixedBiasRegressor IndependentClassifier IndependentRegressor
        PooledClassifier PooledRegressor""",
    "learners.blend": "BlendedModel BlendedModels",
    "learners.coin": "ConditionalCoinRegressor",
    "learners.count": "ConditionalCount",
    "learners.erm": "ConditionalERMRegressor",
    "learners.kernel_sgd": "KernelConditionalSGDRegressor",
    "learners.levels": "ConditionalLevels",
    "learners.logistic": "ConditionalLogistic",
    "learners.merge": "merge",
    "learners.ordinal": "ConditionalOrdinal",
    "learners.ridge": "ConditionalRidge",
    "learners.sgd": "ConditionalSGDClassifier ConditionalSGDRegressor",
    "learners.sgd_cv": "ConditionalSGDRegressorCV",
    "learners.shrinkage": "Shrinkage shrink",
    "loading": "load",
    "tables": "TableModel",
    "tables.export": "export",
    "tables.formula": "FormulaModel from_formula",
    "tables.statistics": "from_statistics statistics_sql",
    "tasks": "TaskSet TaskSplit TaskTable",
    "versions": "show_versions",
}
_HOME = {name: f"condmeta.{home}" for home, names in _NAMES.items() for name in names.split()}
_MODULES = ["datasets", "environments", "errors", "experiments", "feature_maps", "inner"]
_MODULES += ["kernels", "losses", "outer_steps", "persistence", "plots", "testing", "theory"]

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
