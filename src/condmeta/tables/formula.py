"""Models from formulas: `target ~ features | task ~ side columns`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

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
from condmeta.learners.form import Form
from condmeta.learners.levels import ConditionalLevels
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
from condmeta.tables.formula_file import learned_of_text, learned_to_text, unsafe_part
from condmeta.tables.formula_parts import FormulaParts
from condmeta.tables.formula_tables import as_pandas, read_tables
from condmeta.tables.formula_terms import FormulaTerms, list_terms
from condmeta.typing import Frame, LearnerLike, PathLike, Table, TaskId

ROLES = "sample_weight", "precision", "offset", "exposure", "trials", "time"
READ_BY = {"trials": "ConditionalLogistic", "exposure": "ConditionalCount"}


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
        self, formula: str, learner: LearnerLike, columns: Mapping[str, str] | None = None,
        terms: FormulaTerms | None = None,
    ):  # fmt: skip
        self.formula, self.learner_, self.columns = formula, learner, dict(columns or {})
        self._parts, self._terms = FormulaParts.of(formula), terms or FormulaTerms()

    def __repr__(self) -> str:
        return f"FormulaModel({self.formula!r}, {self.learner_!r})"

    def predict(
        self, table: Table, side_table: Table | None = None, **options: Any
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the rows of a table; new tasks need their side columns.

        `options`, such as return_std=True, go to the learner's `predict`.
        """
        X, _, call = self._read(table, side_table)
        return self.learner_.predict(X, **call, **options)

    def predict_proba(self, table: Table, side_table: Table | None = None) -> np.ndarray:
        """Return the probabilities of the classes (N, K); with trials, of failure and success."""
        X, _, call = self._read(table, side_table)
        return self.learner_.predict_proba(X, **call)

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
        """Return the models of new tasks (`TaskModels`), from their labelled rows.

        They read the columns of terms. To predict tables by them, `update` a copy of the model:
        `copy.deepcopy(model).update(rows).predict(table)`.
        """
        X, y, call = self._read(table, side_table, labelled=True)
        return self.learner_.adapt(X, y, **call)

    def update(self, table: Table, side_table: Table | None = None) -> FormulaModel:
        """Add labelled rows to known tasks, and add new tasks, in place; tau does not change."""
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
        reading = self._parts, self._terms, self.columns
        return read_tables(*reading, table, side_table, labelled)

    def save(self, path: PathLike, *, tasks: bool = True, resume: bool = True) -> None:
        """Write the model to a file, as `ConditionalRidge.save` does.

        The formula may hold columns, numbers, operators and functions such as log, C, poly and
        scale, so that opening the file cannot run code.
        """
        for terms in self._parts.terms():
            found = unsafe_part(terms)
            if found is not None:
                raise DataError(
                    f"The formula has the part {found!r}, which a model file cannot hold, "
                    "because it could run any code. Compute its column first, and fit again."
                )
        slim = copy.copy(self)
        slim.learner_ = self.learner_.slim(tasks, resume)
        persistence.write_model(path, slim, card=slim.card())

    def card(self) -> dict[str, Any]:
        """Return what a reader of the model wants to know."""
        return self.learner_.card() | {"formula": self.formula}


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
        products, `log(price)`, `I(price^2)`, `C(city)`, `poly(x, 2)`. Several task columns:
        "region:store"; of stores in regions, for `ConditionalLevels`, "region/store". All
        coefficients vary by task, and each depends on the side columns. As in lme4, "target ~ x + z
        + (1 | task)" lets the intercept alone vary, and "(1 + x | task ~ side columns)" the
        intercept and x, for learners with the parameter `random`; "(1 + x || task)" lets them vary
        independently, which sets metric="diagonal" and scale="none".
    table : DataFrame
        One row for each labelled point, with the task columns.
    side_table : DataFrame, optional
        One row for each task; by default the side columns are in `table`.
    learner : learner, optional
        By default `ConditionalRidge()`; for "region/store", `ConditionalLevels()`. A formula names
        a linear model: x_transform and y_transform of the learner are set to None if they are
        "auto". "0 + ..." or "... - 1" among the features leaves the intercept out.
    sample_weight, precision, offset, exposure, trials, time : str, optional
        Columns of `table` that `fit` of the learner reads under these names. Tables to predict need
        those of offset and exposure.
    intervals : bool
        Whether to calibrate intervals on held-out tasks, for `predict_interval`.

    Returns
    -------
    FormulaModel
        With `predict`, `predict_proba`, `predict_interval`, `adapt`, `update`, `summary`,
        `coef_frame`, `save`, and the fitted `learner_`.

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
    parts, terms = FormulaParts.of(formula), FormulaTerms()
    default = ConditionalLevels() if parts.nested else ConditionalRidge()
    learner = default if learner is None else clone(learner)
    if parts.nested and not isinstance(learner, ConditionalLevels):
        raise DataError(
            f"{formula!r} has nested groups, which {type(learner).__name__} does not support: "
            "use ConditionalLevels, or write ':' instead of '/' to join the columns to one id."
        )
    given = learner.get_params(deep=False)
    learner.set_params(**{name: None for name in Form._fields if given.get(name) == "auto"})
    listed = list_terms(parts.features)
    if listed == ["1"] or "1" not in listed:  # a column of ones, or no intercept
        learner.set_params(fit_intercept=False)
    given = sample_weight, precision, offset, exposure, trials, time
    columns = {role: name for role, name in zip(ROLES, given, strict=True) if name is not None}
    _check_roles(learner, columns, intervals)
    X, y, call = read_tables(parts, terms, columns, table, side_table, labelled=True)
    if parts.random is not None:
        _set_random(learner, formula, parts.random, X, table)
    if parts.independent:
        learner.set_params(metric="diagonal", scale="none")
    learner = calibrate(learner, X, y, **call) if intervals else learner.fit(X, y, **call)
    return FormulaModel(formula, learner, columns, terms)


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
        remedy = f"take {READ_BY[unread]}" if unread in READ_BY else "take another learner"
        if unread == "offset" and "exposure" in reads:
            remedy = "name a column of exp(offset) in exposure="
        raise DataError(f"{who} reads no {unread}: leave {unread}= out, or {remedy}.")


def _set_random(learner: Any, formula: str, terms: str, X: Any, table: Any) -> None:
    """Let the coefficients of some terms differ between tasks, and no others."""
    if "random" not in learner.get_params():
        raise DataError(
            f"{formula!r} has effects in brackets, and in {type(learner).__name__} all "
            "coefficients differ by task. Write '| task' without brackets, or use a learner with "
            "the parameter random, such as ConditionalRidge or ConditionalLogistic."
        )
    alone = [INTERCEPT]
    if not learner.fit_intercept and list(X.columns) != alone:
        raise DataError(
            f"{formula!r} has no intercept, but brackets include one: keep the intercept, or "
            "write '0 + x | task', so that all coefficients differ by task."
        )
    columns = [] if learner.fit_intercept else alone
    if terms:
        columns = list(FormulaTerms().columns("random", terms, as_pandas(table, "")).columns)
    absent = [column for column in columns if column not in X.columns]
    if absent:
        raise DataError(
            f"The brackets hold {absent[0]!r}, which is not a feature: add {terms!r} outside the "
            "brackets too."
        )
    random = "all" if set(columns) == set(X.columns) else columns or "intercept"
    learner.set_params(random=random)


def _export(model: FormulaModel) -> dict:
    terms = model._terms
    return {
        "formula": model.formula,
        "learner": model.learner_,
        "columns": model.columns,
        "levels": terms.levels,
        "learned": learned_to_text(terms.learned),
    }


def _restore(cls: Any, parts: dict) -> FormulaModel:
    terms = FormulaTerms(parts["levels"], learned_of_text(parts["learned"]))
    return cls(parts["formula"], parts["learner"], parts.get("columns"), terms)


def _check(parts: dict, sizes: dict[str, int]) -> None:
    """Raise if a file holds a formula that could run code, or parts that do not fit it."""
    try:
        formula = FormulaParts.of(parts["formula"])
        learned = learned_of_text(parts["learned"])
    except (DataError, ValueError, RecursionError) as error:
        raise InvalidFieldError("formula", f"must be one of FormulaModel: {error}") from None
    for terms in formula.terms():
        found = unsafe_part(terms)
        if found is not None:
            raise InvalidFieldError("formula", f"must not have the part {found!r}")
    if not parts.get("columns", {}).keys() <= set(ROLES):
        raise InvalidFieldError("columns", f"must be some of {', '.join(ROLES)}")
    if not hasattr(parts["learner"], "fitted_"):
        raise InvalidFieldError("learner", "must be a fitted learner")
    expected = {"features", "target"} | (set() if formula.side is None else {"side"})
    if set(parts["levels"]) != expected or set(learned) != expected:
        raise InvalidFieldError("levels", f"must be of the parts {', '.join(sorted(expected))}")


persistence.register(
    FormulaModel,
    export=_export,
    restore=_restore,
    fields={
        "formula": TEXT, "learner": instance(), "columns": optional(mapping(TEXT)),
        "levels": mapping(mapping(either(number(), labels()))), "learned": TEXT,
    },
    rule=_check,
)  # fmt: skip
