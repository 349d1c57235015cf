"""The columns that the terms of a formula make of a table, by the package formulaic."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tables.formula_file import names_in
from condmeta.tasks.messages import show_ids
from condmeta.text import pluralize


class FormulaTerms:
    """Turn tables into the columns of terms, each part of a formula by itself.

    The first table of a part settles the levels of its text columns, and the numbers that terms
    such as `poly(x, 2)` learn. Later tables are encoded by these.

    Attributes
    ----------
    levels : dict of part -> dict of column -> array of levels; of numbers, the median
    """

    def __init__(
        self, levels: dict[str, dict[str, Any]] | None = None, learned: dict[str, Any] | None = None
    ):
        self.levels = {} if levels is None else levels
        self._stored = {} if learned is None else learned  # from a file
        self._specs: dict[str, Any] = {}  # of formulaic

    @property
    def learned(self) -> dict[str, Any]:
        """What the terms of each part have learned."""
        return self._stored | {part: spec.transform_state for part, spec in self._specs.items()}

    def columns(self, part: str, terms: str, table: Any) -> Any:
        """Return the columns of terms as a table, without the intercept."""
        from formulaic import Formula
        from formulaic.errors import DataMismatchWarning, FormulaicError

        try:
            if part in self._stored and part not in self._specs:
                self._specs[part] = self._restored_spec(part, terms)
            spec = self._specs.get(part, Formula.from_spec(terms))
            with warnings.catch_warnings():
                if part != "target":  # the learner compares classes itself
                    warnings.simplefilter("error", DataMismatchWarning)
                matrix = spec.get_model_matrix(table, na_action="raise", context={})
        except DataMismatchWarning:
            raise self._unseen_levels(part, terms, table) from None
        except (FormulaicError, ValueError) as error:
            _refuse_gaps(terms, table)
            shown = terms.removeprefix("0 + ") if part == "target" else terms
            raise _not_computed(shown, error, table) from None
        if part not in self.levels:
            used = sorted(map(str, matrix.model_spec.required_variables))
            self.levels[part] = {name: _levels(table[name]) for name in used}
        self._specs[part] = matrix.model_spec
        return matrix.drop(columns="Intercept", errors="ignore")

    def _unseen_levels(self, part: str, terms: str, table: Any) -> DataError:
        """Return the error about levels that fit did not see, and that would count as the first."""
        for name, levels in self.levels[part].items():
            new = [] if np.ndim(levels) == 0 else [v for v in table[name] if v not in levels]
            if new:
                return DataError(
                    f"Column {name!r} holds {show_ids(dict.fromkeys(new))}, which fit did not see, "
                    f"so that no effect is known: drop these rows. The levels seen in fit are "
                    f"{show_ids(levels)}."
                )
        return DataError(
            f"The terms {terms!r} hold a level that fit did not see, so that no effect is known: "
            "drop its rows."
        )

    def _restored_spec(self, part: str, terms: str) -> Any:
        """Return what formulaic would know, from the levels and the learned numbers of a file."""
        from formulaic import Formula, ModelSpec
        from pandas import Categorical, DataFrame

        levels = self.levels[part]
        n = max((np.size(each) for each in levels.values()), default=1)
        columns = {
            name: np.full(n, each) if np.ndim(each) == 0
            else Categorical([each[i % len(each)] for i in range(n)], categories=each)
            for name, each in levels.items()
        }  # fmt: skip
        spec = ModelSpec.from_spec(Formula.from_spec(terms))
        spec = spec.update(transform_state=self._stored[part])
        table = DataFrame(columns, index=range(n))
        return spec.get_model_matrix(table, na_action="raise", context={}).model_spec


def list_terms(terms: str) -> list[str]:
    """Return the terms one by one; "1" is the intercept."""
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    try:
        return [str(term) for term in Formula.from_spec(terms)]
    except FormulaicError as error:
        raise _not_computed(terms, error) from None


def variables(terms: str) -> list[str]:
    """Return the columns that terms read."""
    from formulaic import Formula

    # formulaic leaves out the columns inside poly(), scale() and the like.
    found = names_in(terms) or Formula.from_spec(terms).required_variables
    return sorted(map(str, found))


def _not_computed(terms: str, error: Exception, table: Any = None) -> DataError:
    have = [] if table is None else list(table.columns)
    absent = sorted(names_in(terms) - set(have) - {"np"})
    if have and absent:
        return DataError(
            f"The terms {terms!r} cannot be computed: the table has no column {absent[0]!r}; it "
            f"has {', '.join(map(repr, have))}."
        )
    if terms.count("(") != terms.count(")"):
        return DataError(f"The terms {terms!r} cannot be computed: a bracket is not closed.")
    reason = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).splitlines()[0]
    return DataError(f"The terms {terms!r} cannot be computed: {reason}")


def _refuse_gaps(terms: str, table: Any) -> None:
    """Raise if a column of some terms has missing values."""
    for name in sorted(names_in(terms) & set(table.columns)):
        gaps = np.flatnonzero(table[name].isna())
        if len(gaps):
            raise DataError(
                f"Column {name!r} has {pluralize(len(gaps), 'missing value')}, the first in row "
                f"{gaps[0]}: drop these rows, as lme4 does, or fill them in."
            )


def _levels(column: Any) -> np.ndarray | float:
    """Return the levels of a text column, in their order; of numbers, the median."""
    if column.dtype.kind in "iuf":
        return float(np.median(column))
    if hasattr(column, "cat"):
        return np.array(column.cat.categories.tolist(), dtype=object)
    return np.array(sorted(column.unique().tolist()), dtype=object)
