"""A fitted value as SQL: rows are scored by a join with the table of coefficients.

With slopes a and the level l of a task at the mean features m, a prediction is l + <a, x - m>. For
a task that is not in the table, a and l are linear in its encoded side columns: tau(s). Of tasks in
groups only those in the table are scored, as others depend on their groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.feature_maps.table_encoder import EncodedColumn, TableEncoder
from condmeta.fitted.against_rest import one_class_only
from condmeta.fitted.dialects import SqlDialect, find_dialect, number
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.splines import Splines
from condmeta.fitted.sql_averaged import ordered_columns, two_class_columns
from condmeta.fitted.sql_labels import (
    SCORE,
    class_of,
    label_of,
    mean_count,
    probability_of,
    slope_of,
)
from condmeta.fitted.sql_splines import bend_columns
from condmeta.fitted.sql_std import (
    require_std,
    variance_by_features,
    variance_columns,
    variance_names,
    variance_of_new,
    varies_by_side,
)
from condmeta.fitted.tau import LinearTau
from condmeta.tasks.ids import id_columns

LEVEL = "(level)"  # the prediction at the mean features
SCORE_VARIANCE = "score_variance"  # in units of the learner
MEAN = "(mean)"  # of a transformed y
REMEDIES = {  # of models that have no SQL
    "has an x_transform": ", or fit it with x_transform=None or 'splines'",
}


class Tables(NamedTuple):
    """The names of the tables in a query."""

    rows: str = "rows"
    coefficients: str = "coefficients"
    side: str = "side"


class SqlSource(NamedTuple):
    """How an encoded column is computed from a column of the table.

    column : str
    form : the expression; {0} stands for the column
    codes : the numbers that its levels have, if it is one
    """

    column: str
    form: str = "{0}"
    codes: dict[str, int] | None = None

    def literal(self, level: str, sql: SqlDialect) -> str:
        """Return a level as a literal."""
        return sql.text(level) if self.codes is None else str(self.codes[level])


Sources = Mapping[str, SqlSource]  # of encoded columns that are computed from others
NO_SOURCES: Sources = {}


def task_columns(fitted: Fitted) -> list[str]:
    """Return the names of the id columns in the table of coefficients."""
    return list(id_columns(fitted.tasks.ids[:1].tolist(), fitted.columns.task_name))


def coefficient_columns(fitted: Fitted, std: bool = False) -> dict[str, np.ndarray]:
    """Return the table that the query joins: ids, n, the level, and one slope for each feature.

    With `std` also the columns of the variance (see `condmeta.fitted.sql_std`).
    """
    require_linear(fitted)
    store, columns = fitted.tasks, fitted.columns
    slopes, levels = _around_mean(fitted, store.coef)
    table = id_columns(store.ids.tolist(), columns.task_name) | {"n": store.sizes, LEVEL: levels}
    table |= dict(zip(feature_names(fitted), slopes.T, strict=True))
    if _needs_variance(fitted, std):
        table |= variance_columns(fitted, feature_names(fitted))
    return table


def feature_names(fitted: Fitted) -> list[str]:
    """Return the names of the features."""
    return fitted.scales.names(fitted.columns.names)


def score_query(
    fitted: Fitted, dialect: str, tables: Tables,
    features: Sequence[EncodedColumn] | None = None, impute: bool = False, std: bool = False,
    sources: Sources = NO_SOURCES, side_sources: Sources = NO_SOURCES, exposure: str | None = None,
    bounds: tuple[float, float] = (-inf, inf),
) -> str:  # fmt: skip
    """Return a query that adds a column `prediction` to the rows of a table.

    `features` says how the features are computed from the columns of the rows, and `impute` whether
    gaps are filled; by default they are columns of that name. `sources` and `side_sources` say how
    columns that the tables lack are computed. `std` adds `prediction_std`. If y is
    transformed, there is a column `score` as well: the prediction of the transformed y. So there is
    for two classes: `prediction` is its sign, and `probability` that of the second class, if the
    learner has probabilities. Ordered classes have a probability each. Counts have a column of
    exposures, or an exposure of 1. Splines are columns too. Predictions of numbers end at `bounds`.
    """
    one_class_only(fitted, "SQL")
    require_linear(fitted)
    if std:
        require_std(fitted)
    sql, names, scales = find_dialect(dialect), feature_names(fitted), fitted.scales
    varies = _needs_variance(fitted, std)
    fence, inputs = sql.fence if varies else "", names[: scales.n_inputs]
    columns = [EncodedColumn(name, None) for name in inputs] if features is None else features
    x = [_encoded(column, "r", sql, impute, sources) for column in columns]
    rows = f"{sql.name(tables.rows)} AS r"
    if scales.transformer is not None:
        bends = bend_columns(scales.transformer, x, names)
        rows = _nested(_select(sql, "r", bends, rows), "r", fence)
        x += [sql.name("r", name) for name in bends]
    centred = [_minus(term, mean) for term, mean in zip(x, scales.x_mean, strict=True)]
    ids = task_columns(fitted)

    def combined(level: str, slope: Callable[[int], str]) -> str:
        products = [f"{slope(j)} * {term}" for j, term in enumerate(centred)]
        return "\n      + ".join([level, *products])

    known = combined(sql.name("c", LEVEL), lambda j: sql.name("c", names[j]))
    has_points = f"{sql.name('c', 'n')} > 0"
    parts = [f"CASE\n    WHEN {has_points} THEN\n      {known}"]
    join = _join(sql, tables.coefficients, "c", ids)
    alone, phi = fitted.groups is None, []
    if fitted.reader.names and alone:
        phi = [_encoded(column, "s", sql, True, side_sources) for column in side_columns(fitted)]
        start = _start(fitted, combined, ["1e0", *phi])
        parts.append(f"    WHEN {sql.name('s', ids[0])} IS NOT NULL THEN\n      {start}")
        join += _join(sql, tables.side, "s", ids)
    rest = known
    if alone and (not fitted.reader.names or fitted.reader.missing_side == "mean"):
        mean = [number(value) for value in fitted.tau.phi_mean]
        rest = f"COALESCE({known},\n      {_start(fitted, combined, ['1e0', *mean])})"
    parts.append(f"    ELSE\n      {rest}\n  END")
    score, source, bounded = "\n".join(parts), f"{rows}{join}", bounds != (-inf, inf)
    if fitted.target is None and fitted.predictor.classes is None and not (varies or bounded):
        return _select(sql, "r", {"prediction": score}, source)
    found = {SCORE: score}
    if varies:
        own = [sql.name("c", name) for name in variance_names(names)]
        mean = [number(value) for value in fitted.tau.phi_mean]
        cases = [f"CASE\n    WHEN {has_points} THEN\n      {_quadratic(own, centred)}"]
        if phi and varies_by_side(fitted):
            new = _variance_of_new(fitted, phi, centred)
            cases.append(f"    WHEN {sql.name('s', ids[0])} IS NOT NULL THEN\n      {new}")
        new = _variance_of_new(fitted, mean, centred)
        found[SCORE_VARIANCE] = "\n".join([*cases, f"    ELSE\n      {new}\n  END"])
    query, levels = _select(sql, "r", found, source), _answers(fitted, sql, std, exposure)
    if bounded and fitted.predictor.label_kind == "number":
        levels[-1]["prediction"] = _clipped(levels[-1]["prediction"], bounds)
    for answers in levels:
        query = _select(sql, "q", answers, _nested(query, "q", fence))
    return query


def _needs_variance(fitted: Fitted, std: bool) -> bool:
    """Return whether predictions, probabilities or deviations depend on the score's variance."""
    return std or hasattr(fitted.inner, "variances")


def _nested(query: str, alias: str, fence: str) -> str:
    """Return a query as a table of another one."""
    indented = f"{query}{fence}".rstrip().replace("\n", "\n  ")
    return f"(\n  {indented}\n) AS {alias}"


def _select(sql: SqlDialect, alias: str, columns: dict[str, str], source: str) -> str:
    """Return a query of a table with further columns."""
    shown = ",\n  ".join(
        f"{expression} AS {sql.name(name)}" for name, expression in columns.items()
    )
    return f"SELECT {alias}.*,\n  {shown}\nFROM {source}\n"


def _answers(
    fitted: Fitted, sql: SqlDialect, std: bool, exposure: str | None
) -> list[dict[str, str]]:
    """Return predictions and what goes with them from the columns of scores, query after query."""
    target, score, predictor = fitted.target, sql.name("q", SCORE), fitted.predictor
    variance = sql.name("q", SCORE_VARIANCE)
    if predictor.label_kind == "count":
        size = None if exposure is None else sql.name("q", exposure)
        return [{"prediction": mean_count(score, variance, size)}]
    if predictor.averages:
        cuts = fitted.inner.likelihood.cuts
        return ordered_columns(predictor.classes.tolist(), cuts, score, variance, sql)
    if predictor.classes is not None and hasattr(fitted.inner, "variances"):
        return two_class_columns(predictor.classes, score, variance, sql)
    if predictor.classes is not None:
        found = {"prediction": class_of(predictor.classes, score, sql)}
        if predictor.probabilistic:
            found["probability"] = probability_of(score)
        return [found]
    label, steps = score if target is None else label_of(target, score), []
    if target is not None and target.spread:  # a long expression, computed once
        label, steps = sql.name("q", MEAN), [{MEAN: label}]
    found = {"prediction": label}
    if std:
        root = f"{number(fitted.scales.y_scale)} * SQRT({variance})"
        root = root if target is None else f"{root} * {slope_of(target, label)}"
        found["prediction_std"] = f"CASE WHEN {score} IS NOT NULL THEN {root} END"
    return [*steps, found]


def _clipped(value: str, bounds: tuple[float, float]) -> str:
    """Return a value, or the end of the bounds that it lies beyond."""
    ends = [f"{value} {sign} {number(end)} THEN {number(end)}"
            for sign, end in zip("<>", bounds, strict=True) if isfinite(end)]  # fmt: skip
    return f"CASE WHEN {' WHEN '.join(ends)} ELSE {value} END"


def _variance_of_new(fitted: Fitted, phi: list[str], centred: list[str]) -> str:
    """Return the variance of the score of a task without points, which may follow features."""
    if getattr(fitted.inner, "prior_covariance", None) is not None:
        return variance_by_features(fitted, phi, centred)
    form, noise = [number(value) for value in variance_of_new(fitted)], fitted.tau.noise
    if noise is not None:
        terms = [f"{number(by)} * {term}" for by, term in zip(noise, [*phi, "1e0"], strict=True)]
        low, high = map(number, fitted.tau.noise_range)
        log = " + ".join(terms)
        log = f"CASE WHEN {log} < {low} THEN {low} WHEN {log} > {high} THEN {high} ELSE {log} END"
        form[0] += f" + {number(fitted.inner.s2)} * (EXP({log}) - 1e0)"
    return _quadratic(form, centred)


def _quadratic(form: list[str], centred: list[str]) -> str:
    """Return a quadratic form of centred features (see `variance_names`)."""
    pairs = [f"{a} * {b}" for i, a in enumerate(centred) for b in centred[: i + 1]]
    products = [f"{f} * {term}" for f, term in zip(form[1:], [*centred, *pairs], strict=True)]
    return "\n      + ".join([form[0], *products])


def require_linear(fitted: Fitted) -> None:
    """Raise if predictions are not a join and a sum of products."""
    predictor, scales = fitted.predictor, fitted.scales
    lacking = {
        "has a base": predictor.shared is not None,
        "has an x_transform": not isinstance(scales.transformer, Splines | None),
        "scales each row": scales.scale == "rows",
        "learns its map by a kernel": not isinstance(fitted.tau, LinearTau),
        "reads the points of tasks": fitted.reader.reads_points,
        "keeps no task models": fitted.tasks is None,
    }
    why = next((reason for reason, holds in lacking.items() if holds), None)
    if why is not None:
        raise DataError(
            f"SQL needs a linear model of the rows, and this {predictor.owner} {why}. Score the "
            f"rows with predict{REMEDIES.get(why, '')}."
        )
    side_columns(fitted)


def side_columns(fitted: Fitted) -> list[EncodedColumn]:
    """Return how the features Phi are computed from side columns."""
    parts = fitted.reader.map.parts_
    if not all(isinstance(part, TableEncoder) for part in parts):
        raise DataError(
            'SQL needs side columns encoded by feature_map="auto". Score new tasks with predict.'
        )
    return [column for part in parts for column in part.columns_out()]


def _around_mean(fitted: Fitted, weights) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes (..., d) in the user's units, and levels (...) at the mean features."""
    scales, d = fitted.scales, len(fitted.scales.x_mean)
    levels = np.full(weights.shape[:-1], scales.y_offset)
    if scales.fit_intercept:
        levels += weights[..., d] * scales.y_scale
    return scales.to_user(weights)[0], levels


def _start(fitted: Fitted, combined: Callable, phi: list[str]) -> str:
    """Return the model of a task without points; `phi` are a one and the encoded side columns."""
    slopes, levels = _around_mean(fitted, np.roll(fitted.tau.cold_weights, 1, axis=0))  # b first
    levels[1:] -= fitted.scales.y_offset  # the offset counts once

    def total(values) -> str:
        parts = [f"{number(v)} * {p}" for v, p in zip(values[1:], phi[1:], strict=True) if v]
        return f"({' + '.join([number(values[0]), *parts])})"

    return combined(total(levels), lambda j: total(slopes[:, j]))


def _encoded(
    column: EncodedColumn, table: str, sql: SqlDialect, fill: bool, sources: Sources
) -> str:
    """Return the expression of an encoded column."""
    found = sources.get(column.source, SqlSource(column.source))
    source = found.form.replace("{0}", sql.name(table, found.column))
    if column.levels is not None:
        named = [found.literal(level, sql) for level in column.levels if level is not None]
        tests = [f"{source} IN ({', '.join(named)})"] if named else []
        tests += [f"{source} IS NULL"] if None in column.levels else []
        return f"CASE WHEN {' OR '.join(tests)} THEN 1e0 ELSE 0e0 END"
    value = source
    if column.boolean:
        value = f"CASE WHEN {source} THEN 1e0 WHEN NOT {source} THEN 0e0 END"  # NULL stays NULL
    if fill:
        value = f"COALESCE({value}, {number(column.fill)})"
    value = _minus(value, column.mean)
    return value if column.scale == 1.0 else f"({value} / {number(column.scale)})"


def _minus(term: str, mean: float) -> str:
    return term if mean == 0.0 else f"({term} - {number(mean)})".replace("- -", "+ ")


def _join(sql: SqlDialect, table: str, alias: str, ids: list[str]) -> str:
    on = " AND ".join(f"{sql.name(alias, name)} = {sql.name('r', name)}" for name in ids)
    return f"\nLEFT JOIN {sql.name(table)} AS {alias} ON {on}"
