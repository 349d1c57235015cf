"""Types of arguments and results, for annotations and editors.

The names are for type checkers. When a program runs, words are words, every other name is `Any`,
and nothing is loaded for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

__all__ = [
    "Averaging",
    "Axes",
    "Base",
    "ColdStart",
    "Conditioning",
    "CriterionName",
    "DatePart",
    "Drift",
    "Environment",
    "ErrorName",
    "Estimator",
    "FeatureMapLike",
    "Figure",
    "FittedModel",
    "Frame",
    "GradientAt",
    "Ids",
    "InnerLike",
    "InnerName",
    "InnerObject",
    "Inputs",
    "KernelLike",
    "KernelName",
    "KernelObject",
    "Labels",
    "LearnerLike",
    "LossLike",
    "LossName",
    "Matrix",
    "MetaStep",
    "Metric",
    "Missing",
    "MissingSide",
    "Names",
    "Noise",
    "Numbers",
    "Order",
    "PathLike",
    "RandomColumns",
    "RandomState",
    "Scale",
    "Search",
    "Shots",
    "SideInfo",
    "Splitter",
    "Table",
    "TaskId",
    "Tau",
    "Transformer",
    "Values",
    "XTransform",
    "YTransform",
]  # fmt: skip

Frame: TypeAlias = Any  # a result: a table of the library that the input came from

Averaging: TypeAlias = Literal["uniform", "linear", "last"]
ColdStart: TypeAlias = Literal["auto", "prior", "pooled", "mixture"]
Conditioning: TypeAlias = Literal["shared", "split"]
DatePart: TypeAlias = Literal["weekday", "month", "days"]
ErrorName: TypeAlias = Literal["absolute", "squared"]
CriterionName: TypeAlias = Literal["absolute", "squared", "deviance", "log density"]
GradientAt: TypeAlias = Literal["current", "average"]
InnerName: TypeAlias = Literal["online", "batch"]
Inputs: TypeAlias = Literal["gaussian", "unit"]
KernelName: TypeAlias = Literal["linear", "gaussian", "laplace", "precomputed"]
LossName: TypeAlias = Literal[
    "absolute", "squared", "huber", "pinball", "epsilon_insensitive", "hinge", "logistic"
]
Metric: TypeAlias = Literal["auto", "identity", "diagonal", "full"]
Missing: TypeAlias = Literal["error", "impute"]
MissingSide: TypeAlias = Literal["error", "mean"]
Noise: TypeAlias = Literal["auto", "shared", "per_task", "by_side", "student", "robust"]
Order: TypeAlias = Literal["random", "first"]
Scale: TypeAlias = Literal["none", "standard", "rows"]
Search: TypeAlias = Literal["grid", "halving"]
YTransform: TypeAlias = Literal["auto", "log", "yeo-johnson"] | None

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from typing import Protocol

    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from narwhals.typing import IntoSeries
    from numpy.typing import ArrayLike
    from scipy.sparse import sparray, spmatrix

    from condmeta.feature_maps.params import FeatureMap
    from condmeta.outer_steps import OuterStep
    from condmeta.paper.environments.sampled import SampledTaskSet
    from condmeta.tasks import TaskSet, TaskTable

    class Estimator(Protocol):
        """A model with scikit-learn's `fit` and `predict`."""

        @property
        def fit(self) -> Callable[..., Any]: ...
        @property
        def predict(self) -> Callable[..., Any]: ...

    class Transformer(Protocol):
        """Something with scikit-learn's `fit` and `transform`."""

        @property
        def fit(self) -> Callable[..., Any]: ...
        @property
        def transform(self) -> Callable[..., Any]: ...

    class LearnerLike(Protocol):
        """A learner of condmeta, or one's own with the same methods."""

        @property
        def fit(self) -> Callable[..., Any]: ...
        @property
        def adapt(self) -> Callable[..., Any]: ...

    class FittedModel(Protocol):
        """What a fit leaves: a learner, a `Calibrated`, a `TableModel`."""

        @property
        def adapt(self) -> Callable[..., Any]: ...

    class Splitter(Protocol):
        """Something with scikit-learn's `split`."""

        @property
        def split(self) -> Callable[..., Any]: ...

    class LossObject(Protocol):
        """A loss of one's own; `condmeta.testing.check_loss` says what it must satisfy."""

        def value(self, z: Any, y: Any) -> Any: ...
        def slope(self, z: Any, y: Any) -> Any: ...

    class KernelObject(Protocol):
        """A kernel of `condmeta.kernels`, or one's own with the same method."""

        def gram(self, A: Any, B: Any) -> Any: ...

    class InnerObject(Protocol):
        """An inner algorithm of one's own, see `condmeta.inner.algorithms.InnerAlgorithm`."""

        def solve(self, theta: Any, X: Any, y: Any) -> Any: ...

    class PointMapObject(Protocol):
        """A feature map of one's own that reads the points of tasks."""

        @property
        def reads_points(self) -> bool: ...
        @property
        def transform_tasks(self) -> Callable[..., Any]: ...

    class Environment(Protocol):
        """A source of tasks with known weights: of `condmeta.environments`, or one's own."""

        @property
        def sample(self) -> Callable[..., SampledTaskSet]: ...

    class Table(Protocol):
        """A table of pandas, polars, PyArrow, Dask, ...: something with columns."""

        @property
        def columns(self) -> Any: ...

    PathLike: TypeAlias = str | os.PathLike[str]
    TaskId: TypeAlias = Hashable
    Matrix: TypeAlias = ArrayLike | Table | sparray | spmatrix | TaskSet  # rows (N, d)
    # These may be None where a parameter is optional. Ids may be the name of a column.
    Values: TypeAlias = ArrayLike | IntoSeries | None  # (N,): targets, weights, times
    Ids: TypeAlias = ArrayLike | IntoSeries | Table | Sequence[Hashable] | None  # (N,)
    SideInfo: TypeAlias = TaskTable | Table | Mapping[Any, Any] | ArrayLike | TaskSet | None
    Names: TypeAlias = str | Sequence[str] | None  # one column, or several
    Labels: TypeAlias = Sequence[Hashable] | np.ndarray | None  # names of classes
    Numbers: TypeAlias = ArrayLike
    RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
    Shots: TypeAlias = int | Sequence[int]

    OneMap: TypeAlias = FeatureMap | Transformer | PointMapObject
    FeatureMapLike: TypeAlias = Literal["auto"] | OneMap | Sequence[OneMap] | None
    Base: TypeAlias = Literal["boosting"] | Estimator | None
    XTransform: TypeAlias = Literal["auto", "splines"] | Transformer | None
    RandomColumns: TypeAlias = Literal["auto", "all", "intercept"] | Sequence[str | int]
    Drift: TypeAlias = (
        Literal["auto"]
        | float
        | tuple[Literal["decay", "ar"], float]
        | tuple[Literal["decay", "ar"], float, float]
        | None
    )
    Tau: TypeAlias = Literal["zero", "mean", "best"] | ArrayLike | Callable[[Any], ArrayLike]
    LossLike: TypeAlias = LossName | LossObject
    KernelLike: TypeAlias = KernelName | KernelObject | Callable[[Any, Any], float]
    InnerLike: TypeAlias = InnerName | InnerObject
    MetaStep: TypeAlias = float | Callable[[int], float] | OuterStep
else:

    def __getattr__(name: str) -> Any:
        """Return `Any` for a name that only type checkers read."""
        if name in __all__:
            return Any
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
