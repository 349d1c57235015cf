"""The public names, for type checkers: `__init__.py` imports them when they are first used."""

from condmeta import datasets as datasets
from condmeta import environments as environments
from condmeta import errors as errors
from condmeta import experiments as experiments
from condmeta import feature_maps as feature_maps
from condmeta import inner as inner
from condmeta import kernels as kernels
from condmeta import losses as losses
from condmeta import outer_steps as outer_steps
from condmeta import persistence as persistence
from condmeta import plots as plots
from condmeta import testing as testing
from condmeta import theory as theory
from condmeta.evaluation import Advantage as Advantage
from condmeta.evaluation import Calibrated as Calibrated
from condmeta.evaluation import CheckReport as CheckReport
from condmeta.evaluation import Comparison as Comparison
from condmeta.evaluation import Explanation as Explanation
from condmeta.evaluation import advantage as advantage
from condmeta.evaluation import calibrate as calibrate
from condmeta.evaluation import check as check
from condmeta.evaluation import compare as compare
from condmeta.evaluation import cross_validate_tasks as cross_validate_tasks
from condmeta.evaluation import explain as explain
from condmeta.fitted.class_models import ClassModel as ClassModel
from condmeta.fitted.class_models import ClassModels as ClassModels
from condmeta.fitted.count_distribution import CountDistribution as CountDistribution
from condmeta.fitted.summary import Summary as Summary
from condmeta.fitted.task_model import TaskModel as TaskModel
from condmeta.fitted.task_model import TaskModels as TaskModels
from condmeta.learners.auto_classifier import AutoClassifier as AutoClassifier
from condmeta.learners.auto_regressor import AutoRegressor as AutoRegressor
from condmeta.learners.baselines import FixedBiasClassifier as FixedBiasClassifier
from condmeta.learners.baselines import FixedBiasRegressor as FixedBiasRegressor
from condmeta.learners.baselines import IndependentClassifier as IndependentClassifier
from condmeta.learners.baselines import IndependentRegressor as IndependentRegressor
from condmeta.learners.baselines import PooledClassifier as PooledClassifier
from condmeta.learners.baselines import PooledRegressor as PooledRegressor
from condmeta.learners.blend import BlendedModel as BlendedModel
from condmeta.learners.blend import BlendedModels as BlendedModels
from condmeta.learners.coin import ConditionalCoinRegressor as ConditionalCoinRegressor
from condmeta.learners.count import ConditionalCount as ConditionalCount
from condmeta.learners.erm import ConditionalERMRegressor as ConditionalERMRegressor
from condmeta.learners.kernel_sgd import (
    KernelConditionalSGDRegressor as KernelConditionalSGDRegressor,
)
from condmeta.learners.levels import ConditionalLevels as ConditionalLevels
from condmeta.learners.logistic import ConditionalLogistic as ConditionalLogistic
from condmeta.learners.merge import merge as merge
from condmeta.learners.ordinal import ConditionalOrdinal as ConditionalOrdinal
from condmeta.learners.ridge import ConditionalRidge as ConditionalRidge
from condmeta.learners.sgd import ConditionalSGDClassifier as ConditionalSGDClassifier
from condmeta.learners.sgd import ConditionalSGDRegressor as ConditionalSGDRegressor
from condmeta.learners.sgd_cv import ConditionalSGDRegressorCV as ConditionalSGDRegressorCV
from condmeta.learners.shrinkage import Shrinkage as Shrinkage
from condmeta.learners.shrinkage import shrink as shrink
from condmeta.loading import load as load
from condmeta.tables.export import export as export
from condmeta.tables.formula import FormulaModel as FormulaModel
from condmeta.tables.formula import from_formula as from_formula
from condmeta.tables.statistics import from_statistics as from_statistics
from condmeta.tables.statistics import statistics_sql as statistics_sql
from condmeta.tables.table_model import TableModel as TableModel
from condmeta.tasks import TaskSet as TaskSet
from condmeta.tasks import TaskSplit as TaskSplit
from condmeta.tasks import TaskTable as TaskTable
from condmeta.versions import show_versions as show_versions

__version__: str
