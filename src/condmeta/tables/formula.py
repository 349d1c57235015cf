"""Models from formulas: `target ~ features | task ~ side columns`."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import clone

from condmeta import persistence
from condmeta.errors import DataError
from condmeta.evaluation.calibrate import Calibrated, calibrate
from condmeta.evaluation.check import CheckReport, check
from condmeta.evaluation.explain import explain
from condmeta.evaluation.explanation import Explanation
from condmeta.fitted.summary import Summary
from condmeta.fitted.tables import INTERCEPT
from condmeta.fitted.task_model import TaskModel, TaskModels
from condmeta.learners.count import ConditionalCount
from condmeta.learners.inputs import Form
from condmeta.learners.ridge import ConditionalRidge
from condmeta.persistence.fields import (
    TEXT,
    InvalidFieldError,
    either,
    instance,
    labels,
    mapping,
    number,
    optional,
)
from condmeta.tables.formula_file import (
    learned_of_text,
    learned_to_text,
    names_in,
    unsafe_part,
)
from condmeta.tables.formula_parts import Parts
from condmeta.tasks import TaskTable
from condmeta.tasks.frames import is_frame, require_columns
from condmeta.tasks.messages import show_id
from condmeta.typing import Frame, LearnerLike, PathLike, Table, TaskId

ROLES = "sample_weight", "precision", "offset", "exposure", "trials", "time"
OF_NEW_ROWS = "offset", "exposure", "time"  # roles that predictions need


class FormulaModel:
    """A fitted learner with the formula that makes its features; the result of `from_formula`.

    Attributes
    ----------
    formula : str
    learner_ : fitted learner, or `Calibrated` with intervals
    columns : dict of role -> column
        The columns of weights, offsets and the like.

    Examples
    --------
    >>> import pandas as pd, condmeta as cm
    >>> sales = pd.DataFrame({"store": list("aabb"), "price": [1.0, 2, 1, 2]})
    >>> sales["sold"] = [3.0, 5.0, 4.0, 7.0]
    >>> model = cm.from_formula("sold ~ price | store", sales)
    >>> isinstance(model, cm.FormulaModel), model.learner_.n_tasks_
    (True, 2)
    """

    def __init__(
        self, formula: str, learner: LearnerLike, columns: Mapping[str, str] | None = None
    ):
        self.formula, self.learner_, self.columns = formula, learner, dict(columns or {})
        self._parts = Parts.of(formula)
        self._specs: dict[str, Any] = {}  # of formulaic, by part
        self._levels: dict[str, dict[str, Any]] = {}  # of columns; of numbers, the median
        self._learned: dict[str, Any] = {}  # what the terms of each part learned, from a file

    def __repr__(self) -> str:
        return f"FormulaModel({self.formula!r}, {self.learner_!r})"

    def _fit(self, table: Any, side_table: Any, intervals: bool) -> FormulaModel:
        X, y, call = self._read(table, side_table, labelled=True)
        if self._parts.random is not None:
            self._set_random(X, table)
        if intervals:
            self.learner_ = calibrate(self.learner_, X, y, **call)
        else:
            self.learner_.fit(X, y, **call)
        return self

    def _set_random(self, X: Any, table: Any) -> None:
        """Let the coefficients of the named terms differ between tasks, and no others."""
        name, terms = type(self.learner_).__name__, self._parts.random
        if "random" not in self.learner_.get_params():
            raise DataError(
                f"{self.formula!r} has effects that differ by task, and {name} shares none between "
                "tasks. Write '| task' without brackets, or take a learner with the parameter "
                "random, such as ConditionalRidge or ConditionalLogistic."
            )
        columns: list[str] = []
        if terms:
            made = FormulaModel(self.formula, self.learner_)._matrix(
                "random", terms, _pandas(table, "")
            )
            columns = list(made.columns)
        absent = [column for column in columns if column not in X.columns]
        if absent:
            raise DataError(
                f"The effects in brackets have {absent[0]!r}, which is not among the features: add "
                f"{terms!r} to them."
            )
        random = "all" if set(columns) == set(X.columns) else columns or "intercept"
        self.learner_.set_params(random=random)

    def predict(
        self, table: Table, side_table: Table | None = None, **options: Any
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the rows of a table; new tasks need their side columns.

        `options`, such as return_std=True, go to the learner's `predict`.
        """
        X, _, call = self._read(table, side_table)
        return self.learner_.predict(X, **call, **options)

    def predict_interval(
        self, table: Table, side_table: Table | None = None, *, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of intervals that contain a new label with probability `coverage`.

        Models of numbers need intervals=True in `from_formula`; counts have a distribution.
        """
        X, _, call = self._read(table, side_table)
        if isinstance(self.learner_, Calibrated):
            return self.learner_.predict_interval(X, coverage=coverage, **call)
        if not isinstance(self.learner_, ConditionalCount):
            raise DataError("The model has no intervals: fit it with intervals=True.")
        ends = self.learner_.predict_distribution(X, **call).interval(coverage)
        return ends[:, 0], ends[:, 1]

    def adapt(self, table: Table, side_table: Table | None = None) -> TaskModel | TaskModels:
        """Return the models of new tasks (`TaskModels`), from their labelled rows."""
        X, y, call = self._read(table, side_table, labelled=True)
        return self.learner_.adapt(X, y, **call)

    def update(self, table: Table, side_table: Table | None = None) -> FormulaModel:
        """Add labelled rows of known tasks, and new tasks; tau stays as it is."""
        X, y, call = self._read(table, side_table, labelled=True)
        self.learner_.update(X, y, **call)
        return self

    def summary(self, level: float = 0.95, robust: bool | None = None) -> Summary:
        """Return effects with intervals, named by the terms of the formula."""
        return self.learner_.summary(level, robust)

    def check(
        self, table: Table, side_table: Table | None = None, *, false_alarm: float = 0.05
    ) -> CheckReport:
        """Judge the model by new labelled rows: keep, update or refit (see `condmeta.check`)."""
        X, y, call = self._read(table, side_table, labelled=True)
        for weight in ("sample_weight", "precision"):  # errors of rows are judged one by one
            call.pop(weight, None)
        return check(self.learner_, X, y, false_alarm=false_alarm, **call)

    def explain(self, *, task: TaskId | None) -> Explanation:
        """Explain where the models of known tasks start, by term (see `condmeta.explain`)."""
        return explain(self.learner_, task=task)

    def coef_frame(self, wide: bool = False, std: bool = False) -> Frame:
        """Return the coefficients of the tasks (see `ConditionalRidge.coef_frame`)."""
        return self.learner_.coef_frame(wide, std)

    def _read(self, table: Any, side_table: Any, labelled: bool = False):
        """Return X as a table, y or None, and the further arguments of a call of the learner."""
        table = _pandas(table, "the table")
        require_columns(table, self._parts.task)
        target, terms = (part.strip() for part in self._parts.rows.split("~"))
        X = self._matrix("features", terms, table)
        if not X.shape[1]:
            X = X.assign(**{INTERCEPT: 1.0})
        y = self._target(target, table) if labelled else None
        ids = table[self._parts.task[0] if len(self._parts.task) == 1 else self._parts.task]
        call = {"task": ids, "side_info": self._side(table, side_table)}
        for role, column in self.columns.items():
            if labelled or (role in OF_NEW_ROWS and (role != "time" or column in table.columns)):
                require_columns(table, [column], role)
                call[role] = table[column]
        return X, y, call

    def _target(self, target: str, table: Any) -> Any:
        """Return the labels: numbers, or the names of classes."""
        y = self._matrix("target", f"0 + {target}", table)
        if y.shape[1] == 1:
            return y.iloc[:, 0]
        if target not in table.columns:
            raise DataError(f"The target {target!r} must be a number, or a column of classes.")
        return table[target]

    def _side(self, table: Any, side_table: Any) -> TaskTable | None:
        """Return the side rows of tasks: of the side table, or of columns that tasks share."""
        task, terms = self._parts.task, self._parts.side
        if terms is None:
            return None
        if side_table is None:
            if not set(_variables(terms)) <= set(table.columns):
                return None  # of known tasks
            rows = table[[*task, *_variables(terms)]].drop_duplicates()
        else:
            rows = _pandas(side_table, "the side table")
            require_columns(rows, task)
        twice = rows[task].duplicated()
        if twice.any():
            first = tuple(rows[task][twice].iloc[0])
            raise DataError(
                f"Task {show_id(first[0] if len(task) == 1 else first)} has several rows of side "
                f"columns: {', '.join(_variables(terms))} must be constant within a task."
            )
        return TaskTable(self._matrix("side", terms, rows), rows[task])

    def save(self, path: PathLike, *, tasks: bool = True, resume: bool = True) -> None:
        """Write the model to a file, as `ConditionalRidge.save` does.

        The formula may hold columns, numbers, operators and functions such as log, C, poly and
        scale, so that opening the file cannot run code.
        """
        for terms in self._all_terms():
            found = unsafe_part(terms)
            if found is not None:
                raise DataError(
                    f"The formula has the part {found!r}, which files do not hold, as it could run "
                    "any code: compute its column before, and fit again."
                )
        slim = copy.copy(self)
        slim.learner_ = self.learner_.slim(tasks, resume)
        persistence.write_model(path, slim, card=slim.card())

    def card(self) -> dict[str, Any]:
        """Return what a reader of the model wants to know."""
        return self.learner_.card() | {"formula": self.formula}

    def _all_terms(self) -> list[str]:
        more = [part for part in (self._parts.side, self._parts.random) if part]
        return [part.strip() for part in self._parts.rows.split("~")] + more

    def _restored_spec(self, name: str, terms: str) -> Any:
        """Return the specification of terms by what a file holds: levels, and learned numbers."""
        from formulaic import Formula, ModelSpec
        from pandas import Categorical, DataFrame

        levels = self._levels[name]
        n = max((np.size(each) for each in levels.values()), default=1)
        columns = {
            key: np.full(n, each) if np.ndim(each) == 0
            else Categorical([each[i % len(each)] for i in range(n)], categories=each)
            for key, each in levels.items()
        }  # fmt: skip
        spec = ModelSpec.from_spec(Formula.from_spec(terms))
        spec = spec.update(transform_state=self._learned[name])
        table = DataFrame(columns, index=range(n))
        return spec.get_model_matrix(table, na_action="raise", context={}).model_spec

    def _matrix(self, name: str, terms: str, table: Any) -> Any:
        """Return the columns of terms as a table, without the intercept."""
        from formulaic import Formula
        from formulaic.errors import FormulaicError

        try:
            if name in self._learned and name not in self._specs:
                self._specs[name] = self._restored_spec(name, terms)
            spec = self._specs.get(name, Formula.from_spec(terms))
            matrix = spec.get_model_matrix(table, na_action="raise", context={})
        except (FormulaicError, ValueError) as error:
            reason = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).splitlines()[0]
            raise DataError(f"The terms {terms!r} cannot be computed: {reason}") from None
        if name not in self._levels:
            used = sorted(map(str, matrix.model_spec.required_variables))
            self._levels[name] = {key: _levels(table[key]) for key in used}
        self._specs[name] = matrix.model_spec
        return matrix.drop(columns="Intercept", errors="ignore")


def from_formula(
    formula: str, table: Table, side_table: Table | None = None,
    learner: LearnerLike | None = None, *, sample_weight: str | None = None,
    precision: str | None = None, offset: str | None = None, exposure: str | None = None,
    trials: str | None = None, time: str | None = None, intervals: bool = False,
) -> FormulaModel:  # fmt: skip
    """Fit a learner to the terms of a formula; needs the package formulaic.

    Parameters
    ----------
    formula : str
        "target ~ features | task ~ side columns". Both sides take the terms of R's formulas:
        products, `log(price)`, `C(city)`, `poly(x, 2)`. Several task columns: "region:store". All
        coefficients vary by task, and each depends on the side columns. As in lme4, "target ~ x + z
        + (1 | task)" lets the intercept alone vary, and "(1 + x | task ~ side columns)" the
        intercept and x, for learners with the parameter `random`.
    table : DataFrame
        One row for each labelled point, with the task columns.
    side_table : DataFrame, optional
        One row for each task; by default the side columns are in `table`.
    learner : learner, optional
        By default `ConditionalRidge()`. A formula names a linear model: x_transform and y_transform
        of the learner are None where they are "auto". "0 + ..." among the features leaves the
        intercept out.
    sample_weight, precision, offset, exposure, trials, time : str, optional
        Columns of `table` that `fit` of the learner reads under these names. Tables to predict need
        those of offset and exposure.
    intervals : bool
        Whether to calibrate intervals on held-out tasks, for `predict_interval`.

    Returns
    -------
    FormulaModel
        With `predict`, `predict_interval`, `adapt`, `update`, `summary`, `coef_frame`, `save`, and
        the fitted `learner_`.

    Examples
    --------
    >>> import condmeta as cm
    >>> table = cm.datasets.load_flights().to_frame(side=True)
    >>> model = cm.from_formula("air_time ~ hour + winter | dest ~ lat + lon", table)
    >>> model.summary().effects["side"].tolist()[:3]
    ['(base)', 'lat', 'lon']
    >>> model.predict(table[:2]).shape
    (2,)
    """
    try:
        import formulaic  # noqa: F401
    except ImportError:
        raise ImportError(
            'Formulas need the package formulaic: pip install "condmeta[formula]".'
        ) from None
    learner = ConditionalRidge() if learner is None else clone(learner)
    given = learner.get_params(deep=False)
    learner.set_params(**{name: None for name in Form._fields if given.get(name) == "auto"})
    terms = Parts.of(formula).rows.split("~")[1].strip()
    if terms == "1" or re.match(r"0\s*\+", terms):  # a column of ones, or no intercept
        learner.set_params(fit_intercept=False)
    given = sample_weight, precision, offset, exposure, trials, time
    columns = {role: name for role, name in zip(ROLES, given, strict=True) if name is not None}
    _check_roles(learner, columns, intervals)
    return FormulaModel(formula, learner, columns)._fit(table, side_table, intervals)


def _check_roles(learner: Any, columns: dict[str, str], intervals: bool) -> None:
    """Refuse columns that the learner does not read."""
    reads = set(inspect.signature(learner.fit).parameters)
    if intervals:
        reads &= set(inspect.signature(calibrate).parameters)
    unread = next((role for role in columns if role not in reads), None)
    if unread is not None:
        who = (
            f"calibrate (intervals=True) of {type(learner).__name__}"
            if intervals
            else type(learner).__name__
        )
        raise DataError(f"{who} reads no {unread}: leave {unread}= out, or take another learner.")


def _variables(terms: str) -> list[str]:
    """Return the columns that terms read."""
    from formulaic import Formula

    # formulaic leaves out what stands inside poly(), scale() and the like.
    found = names_in(terms) or Formula.from_spec(terms).required_variables
    return sorted(map(str, found))


def _pandas(table: Any, what: str) -> Any:
    """Return a table as pandas, with rows numbered from 0."""
    if not is_frame(table):
        raise DataError(f"A formula needs {what} as a DataFrame. Got {type(table).__name__}.")
    frame = nw.from_native(table, eager_only=True).to_pandas()
    return frame.reset_index(drop=frame.index.names == [None])


def _levels(column: Any) -> np.ndarray | float:
    """Return the levels of a column of names, in their order; of numbers, the median."""
    if column.dtype.kind in "iuf":
        return float(np.median(column))
    if hasattr(column, "cat"):
        return np.array(column.cat.categories.tolist(), dtype=object)
    return np.array(sorted(column.unique().tolist()), dtype=object)


def _export(model: FormulaModel) -> dict:
    learned = {name: spec.transform_state for name, spec in model._specs.items()}
    return {
        "formula": model.formula,
        "learner": model.learner_,
        "columns": model.columns,
        "levels": model._levels,
        "learned": learned_to_text(model._learned | learned),
    }


def _restore(cls: Any, parts: dict) -> FormulaModel:
    model = cls(parts["formula"], parts["learner"], parts.get("columns"))
    model._levels, model._learned = parts["levels"], learned_of_text(parts["learned"])
    return model


def _check(parts: dict, sizes: dict[str, int]) -> None:
    """Raise if a file holds a formula that could run code, or parts that do not fit it."""
    try:
        model = FormulaModel(parts["formula"], parts["learner"])
        learned = learned_of_text(parts["learned"])
    except (DataError, ValueError, RecursionError) as error:
        raise InvalidFieldError("formula", f"must be one of FormulaModel: {error}") from None
    for terms in model._all_terms():
        found = unsafe_part(terms)
        if found is not None:
            raise InvalidFieldError("formula", f"must not have the part {found!r}")
    if not parts.get("columns", {}).keys() <= set(ROLES):
        raise InvalidFieldError("columns", f"must be some of {', '.join(ROLES)}")
    if not hasattr(parts["learner"], "fitted_"):
        raise InvalidFieldError("learner", "must be a fitted learner")
    expected = {"features", "target"} | (set() if model._parts.side is None else {"side"})
    if set(parts["levels"]) != expected or set(learned) != expected:
        raise InvalidFieldError("levels", f"must be of the parts {', '.join(sorted(expected))}")


persistence.register(
    FormulaModel,
    export=_export,
    restore=_restore,
    fields={
        "formula": TEXT, "learner": instance(), "columns": optional(mapping(TEXT)),
        "levels": mapping(mapping(either(number(), labels("l")))), "learned": TEXT,
    },
    rule=_check,
)  # fmt: skip
