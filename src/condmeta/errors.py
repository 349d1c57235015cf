"""The exceptions and warnings that condmeta raises.

Each carries one sentence that names the task, the column or the parameter, and the remedy.
"""


class DataError(ValueError):
    """The data given do not fit together; nothing was changed."""


class DivergenceError(ArithmeticError):
    """An online pass left the range of floating-point numbers."""


class ModelFileError(ValueError):
    """A model file is truncated, damaged, foreign or from a newer version."""


class ConvergenceWarning(UserWarning):
    """A batch solve stopped before its duality gap reached the tolerance."""


class FewTasksWarning(UserWarning):
    """A learner without anything to tune was given fewer tasks than it needs for its scales."""


class EngineWarning(UserWarning):
    """Large work runs on the NumPy engine because the compiled one is absent."""
