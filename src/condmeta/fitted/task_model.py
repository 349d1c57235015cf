"""Models of tasks, as `adapt` returns them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.at_times import Models, drift_of, required_clock, row_clock
from condmeta.fitted.count_distribution import CountDistribution
from condmeta.fitted.kept_rows import KeptRows
from condmeta.fitted.predictor import LinearPredictor
from condmeta.fitted.prepared import check_size
from condmeta.fitted.user_rows import read_points, read_rows
from condmeta.inner.algorithms import Solved, row_options
from condmeta.inner.prior_covariance import PriorFactors
from condmeta.inner.row_posterior import RowPosterior
from condmeta.tasks import TaskSet
from condmeta.tasks.checks import check_finite
from condmeta.tasks.ids import factorize, positions
from condmeta.tasks.messages import explain_absent
from condmeta.tasks.points import Points
from condmeta.tasks.weights import Weighted, repeats
from condmeta.text import pluralize
from condmeta.typing import Ids, Matrix, Values

MANY_COLUMNS = 256  # of which statistics are not always kept


class TaskModel:
    """The fitted model of one task, as `adapt` returns it.

    (A `TaskSet` holds the rows of many tasks, a `TaskTable` one row of side information per task.)

    Attributes
    ----------
    coef_ : (d,) array
    intercept_ : float
    theta_ : (d,) array, or (d+1,) with the intercept last
        Where the model started, tau(s).
    n_ : int, or float if points have weights
        Points that the model has seen; 0 is zero-shot.
    gap_ : float or None
        Duality gap of the solution; None where there is none.

    Examples
    --------
    >>> import condmeta as cm
    >>> learner = cm.FixedBiasRegressor(theta=1.0).fit([[1.0], [2.0]], [1.0, 2.0])
    >>> model = learner.adapt([[1.0], [1.0]], [3.0, 3.0])
    >>> model.update([[1.0]], [3.0]).coef_, model.n_
    (array([1.66666667]), 3)
    """

    def __init__(
        self,
        predictor: LinearPredictor,
        theta: np.ndarray,
        coef: np.ndarray,
        n: int,
        state: Any = None,
        gap: float | None = None,
        sides: np.ndarray | None = None,
        rows: KeptRows | None = None,
        start: PriorFactors | None = None,
    ):
        self._predictor, self._theta, self._coef, self._state = predictor, theta, coef, state
        self._sides, self._rows, self._start = sides, rows, start
        self.n_ = n.item() if isinstance(n, np.generic) else n
        self.gap_ = gap

    @property
    def coef_(self) -> np.ndarray:
        return self._predictor.scales.to_user(self._coef)[0]

    @property
    def intercept_(self) -> float:
        return float(self._predictor.scales.to_user(self._coef)[1])

    @property
    def theta_(self) -> np.ndarray:
        return self._predictor.scales.user_vector(self._theta)

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Return the scores of rows X (N, d); their sign is the class."""
        return self._predictor.scores(self._read(X), self._coef[None], sides=self._sides)

    def _read(self, X) -> np.ndarray:
        X = read_rows(self._predictor, X)
        check_finite(X, None, feature_names=self._predictor.feature_names)
        return X

    @overload
    def predict(
        self, X: Matrix, return_std: Literal[False] = False, time: Values = None
    ) -> np.ndarray: ...
    @overload
    def predict(
        self, X: Matrix, return_std: Literal[True], time: Values = None
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def predict(
        self, X: Matrix, return_std: bool = False, time: Values = None
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the predictions for rows X (N, d), and their standard deviations if asked for.

        Counts are means for an exposure of 1. Standard deviations are those of `ConditionalRidge`
        and `ConditionalCount`; other learners have none. `time` (N,), or one for all rows, is as in
        the `predict` of `ConditionalRidge`.
        """
        predictor, rows = self._predictor, self._read(X)
        models = Models(self._coef[None], self._theta[None], self._state, self._sides, None)
        models = models.at(predictor.inner, row_clock(predictor.inner, time, len(rows)))
        predicted = predictor.predict(
            rows, models.coef, models.codes, sides=models.sides, state=models.state
        )
        if not return_std:
            return predicted
        if predictor.label_kind == "count":
            return predicted, self.predict_distribution(X).std
        std = predictor.std(rows, models.theta, models.state, models.codes)
        return predicted, predictor.label_std(predicted, std)

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Return class probabilities (N, K); logistic loss only."""
        given = {"sides": self._sides, "state": self._state}
        return self._predictor.probabilities(self._read(X), self._coef[None], **given)

    def predict_distribution(self, X: Matrix, exposure: Values = 1.0) -> CountDistribution:
        """Return the distribution of the counts at rows X (N, d); `ConditionalCount` only."""
        given = self._read(X), self._coef[None]
        found = self._predictor.count_distribution(*given, state=self._state)
        return found.with_exposure(exposure)

    def update(
        self, X: Matrix, y: Values, sample_weight: Values = None, precision: Values = None,
        time: Values = None,
        exposure: Values = None, trials: Values = None,
    ) -> TaskModel:  # fmt: skip
        """Add points; the result equals one `adapt` on all of them. Weights as for `adapt`.

        With Student's noise, earlier points keep their weights, and the new points are weighed
        given the earlier ones. `precision` and `time` (n,) are for `ConditionalRidge`, `exposure`
        for `ConditionalCount`, `trials` for `ConditionalLogistic`.
        """
        predictor = self._predictor
        require_resumable(predictor, self._state)
        if precision is not None and not hasattr(predictor.inner, "spread"):
            raise DataError("precision= works only with ConditionalRidge.")
        sizes = {"precision": precision, "exposure": exposure, "trials": trials}
        name = next((name for name, size in sizes.items() if size is not None), "precision")
        given = Weighted(sample_weight, sizes[name], name, time=time)
        X, y, weight, clock = read_points(predictor, read_rows(predictor, X), y, given)
        y, drift = predictor.on_scale(y), drift_of(predictor.inner)
        clock = None if drift is None else required_clock(clock, len(y), drift.unit)
        if predictor.shared is not None:
            X, y = predictor.shared.head_inputs(X, y, np.repeat(self._sides, len(X), axis=0))
        scales = predictor.scales
        rows = scales.transformed(X)
        check_size(rows, y, scales, predictor.feature_names)
        more = scales.with_ones(scales.rescaled(rows)), scales.target(y), np.array([0, len(y)])
        options: dict[str, Any] = {"state": self._state} | row_options(weight, clock)
        if self._rows is not None:  # its posterior follows from all rows
            self._rows = self._rows.extend(np.array([0]), Points(*more, weight))
            more, options = self._rows[:3], row_options(self._rows.weight) | {"state": self._start}
        solved = predictor.inner.solve_tasks(self._theta[None], *more, **options)
        self._coef, self._state = solved.coef[0], solved.state
        self.n_ += len(y) if weight is None else float(repeats(weight).sum())
        return self

    def __repr__(self) -> str:
        return f"TaskModel(n={self.n_}, features={len(self.coef_)})"


class TaskModels(Mapping):
    """Models of many tasks, a mapping from task id to `TaskModel`.

    Attributes
    ----------
    ids : (T,) array
    coef_ : (T, d) array
    intercept_ : (T,) array
    theta_ : (T, d) array, or (T, d+1) with the intercept last
    n_ : (T,) array
    gap_ : (T,) array or None

    Examples
    --------
    >>> import condmeta as cm
    >>> learner = cm.FixedBiasRegressor(theta=1.0).fit([[1.0], [2.0]], [1.0, 2.0])
    >>> models = learner.adapt([[1.0], [1.0]], [3.0, 3.0], task=["a", "b"])
    >>> list(models), models["b"].predict([[2.0]])
    (['a', 'b'], array([2.]))
    """

    def __init__(
        self,
        predictor: LinearPredictor,
        ids: np.ndarray,
        theta: np.ndarray,
        solved: Solved,
        rows: KeptRows | None,
        n: np.ndarray,
        sides: np.ndarray | None = None,
        start: object = None,
    ):
        self._predictor, self._theta, self._coef, self._rows = predictor, theta, solved.coef, rows
        self._solved_state, self._sides, self._start = solved.state, sides, start
        self.ids = ids
        self.n_ = n
        self.gap_ = solved.gap

    @property
    def coef_(self) -> np.ndarray:
        return self._predictor.scales.to_user(self._coef)[0]

    @property
    def theta_(self) -> np.ndarray:
        return self._predictor.scales.user_vector(self._theta)

    @property
    def intercept_(self) -> np.ndarray:
        return self._predictor.scales.to_user(self._coef)[1]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids.tolist())

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {task: t for t, task in enumerate(self.ids.tolist())}

    def __contains__(self, task) -> bool:
        return task in self._index

    def __getitem__(self, task) -> TaskModel:
        return self.at(self._index[task])

    def at(self, t: int) -> TaskModel:
        """Return the model of the task at position t."""
        state = self._solved_state  # `adapt` keeps that of one task, and of tasks that drift
        if state is not None:
            state = type(state)(*(array[t : t + 1] for array in state))
        elif self._predictor.keeps_state:
            state = self._solve_again(np.array([t]))
        gap = None if self.gap_ is None else float(self.gap_[t])
        sides = None if self._sides is None else self._sides[t : t + 1]
        kept = isinstance(self._predictor.inner, RowPosterior)
        rows = self._rows.take(np.array([t])) if kept else None
        start = self._start.take(np.array([t])) if kept and self._start is not None else None
        parts = self._theta[t], self._coef[t], self.n_[t], state, gap, sides, rows, start
        return TaskModel(self._predictor, *parts)

    def _solve_again(self, at):
        X, y, offsets, weight = self._rows.take(at)
        inner, options = self._predictor.inner, row_options(weight)
        options |= {} if self._start is None else {"state": self._start.take(at)}
        return inner.solve_tasks(self._theta[at], X, y, offsets, **options).state

    def decision_function(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return the scores of rows X (N, d), each by the model of its task.

        `task` holds an id for each row; a `TaskSet` in place of X carries its own.
        """
        score = self._predictor.scores
        return self._by_row(lambda X, codes: score(X, self._coef, codes, 1, self._sides), X, task)

    @overload
    def predict(
        self, X: Matrix, *, task: Ids = None, return_std: Literal[False] = False,
        time: Values = None,
    ) -> np.ndarray: ...  # fmt: skip
    @overload
    def predict(
        self, X: Matrix, *, task: Ids = None, return_std: Literal[True], time: Values = None
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def predict(
        self, X: Matrix, *, task: Ids = None, return_std: bool = False, time: Values = None
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the predictions for rows X (N, d), each by the model of its task.

        `return_std` and `time` are as for `TaskModel.predict`; a `TaskSet` carries its times.
        """
        predictor = self._predictor
        time = X.time if isinstance(X, TaskSet) else time
        reads_state = return_std or predictor.averages
        state = self._state if reads_state else self._solved_state

        def models(codes) -> Models:
            now = Models(self._coef, self._theta, state, self._sides, codes)
            return now.at(predictor.inner, row_clock(predictor.inner, time, len(codes)))

        def predict(X, codes):
            of = models(codes)
            return predictor.predict(X, of.coef, of.codes, 1, of.sides, of.state)

        def std(X, codes):
            of = models(codes)
            return predictor.std(X, of.theta, of.state, of.codes)

        predicted = self._by_row(predict, X, task)
        if not return_std:
            return predicted
        if predictor.label_kind == "count":
            return predicted, self.predict_distribution(X, task=task).std
        return predicted, predictor.label_std(predicted, self._by_row(std, X, task))

    def predict_proba(self, X: Matrix, *, task: Ids = None) -> np.ndarray:
        """Return class probabilities (N, K); logistic loss only."""
        given: dict[str, Any] = {"sides": self._sides}
        if hasattr(self._predictor.inner, "variances"):
            given["state"] = self._state
        compute = self._predictor.probabilities
        return self._by_row(lambda X, codes: compute(X, self._coef, codes, **given), X, task)

    def predict_distribution(
        self, X: Matrix, *, task: Ids = None, exposure: Values = 1.0
    ) -> CountDistribution:
        """Return the distribution of the counts at rows X (N, d); `ConditionalCount` only."""
        compute, state = self._predictor.count_distribution, self._state
        moments = self._by_row(
            lambda X, codes: np.column_stack(compute(X, self._coef, codes, 1, state)[:2]), X, task
        )
        found = CountDistribution(*moments.T, self._predictor.inner.alpha)
        return found.with_exposure(exposure)

    @cached_property
    def _state(self):
        if self._solved_state is not None:
            return self._solved_state
        return self._solve_again(np.arange(len(self.ids)))

    def _by_row(self, value, X, task) -> np.ndarray:
        """Return value(rows, positions of their tasks), in the order of the call."""
        if isinstance(X, TaskSet):
            return X.restore_order(self._by_row(value, X.X, np.repeat(X.ids, X.sizes)))
        X = read_rows(self._predictor, X)
        codes, ids = factorize(task)
        found = positions(self.ids, ids)
        if (found < 0).any():
            raise DataError(explain_absent(self.ids, ids[found < 0], "the adapted tasks"))
        if len(codes) != len(X):
            raise DataError(f"X has {len(X)} rows and task has {pluralize(len(codes), 'id')}.")
        names = self._predictor.feature_names
        check_finite(X, None, lambda row: ids[codes[row]], feature_names=names)
        return value(X, found[codes])

    def __repr__(self) -> str:
        features = len(self._predictor.scales.x_mean)
        return f"TaskModels({pluralize(len(self), 'task')}, features={features})"


def require_resumable(predictor: LinearPredictor, state) -> None:
    """Raise if points cannot be added exactly."""
    if not predictor.resumable:
        why = (
            "with these settings: it needs inner='online', or inner='batch' with loss='squared', "
            "and no feature map of the task's own points"
        )
        if isinstance(predictor.inner, RowPosterior):
            why = f"with this {predictor.owner}: its feature map reads points, or its file is old"
        raise DataError(
            f"update does not work {why}. Call adapt with all the points of the task instead."
        )
    if state is None:
        if predictor.scales.width > MANY_COLUMNS:
            raise DataError(
                f"{predictor.owner} keeps no statistics of tasks with {predictor.scales.width} "
                "coefficients, so update is not possible: call adapt with all the points of the "
                "task, or use ConditionalRidge."
            )
        raise DataError(
            "This model was saved without the statistics that update needs. Save it with "
            "resume=True, or call adapt with all the points of the task."
        )
