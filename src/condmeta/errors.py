"""The exceptions and warnings that condmeta raises.

Each message names the task, the column or the parameter, and the remedy.
"""


class DataError(ValueError):
    """The data or a parameter cannot be used; nothing was changed.

    `remedy` ends the sentence. Errors of columns with the same remedy become one error: see
    `condmeta.tasks.each_column`.
    """

    def __init__(self, what: str = "", remedy: str = ""):
        super().__init__(what + remedy)
        self.what, self.remedy = what, remedy


class DivergenceError(ArithmeticError):
    """An online pass overflowed the range of floating-point numbers."""


class ModelFileError(ValueError):
    """A model file is truncated, damaged, foreign or from a newer version."""


class ConvergenceWarning(UserWarning):
    """A batch solve stopped before its duality gap reached the tolerance."""


class FewTasksWarning(UserWarning):
    """A learner got fewer tasks than it needs, for example to estimate its scales."""


class OneTaskWarning(UserWarning):
    """`task=` is missing, so all rows count as one task."""


class NoGroupsWarning(UserWarning):
    """Task ids have one part, so `ConditionalLevels` finds no groups of tasks."""


class ReadingNote(UserWarning):
    """A column is not read as it is written, because it holds dates or numbers with units."""


class ConstantFeatureWarning(UserWarning):
    """A feature has, or nearly has, one value in all training rows, or in all but one."""


class MemoryUseWarning(UserWarning):
    """The statistics of the tasks will take more than a gigabyte."""


class EngineWarning(UserWarning):
    """A large fit runs on the NumPy engine because the compiled one is not installed."""
