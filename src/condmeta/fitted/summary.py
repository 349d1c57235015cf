"""What a mixed model's summary prints: effects of side columns, variances between tasks, noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from condmeta.errors import DataError
from condmeta.fitted.against_rest import AgainstRest
from condmeta.fitted.at_times import drift_of
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.splines import Splines
from condmeta.fitted.standard_errors import MapErrors, map_std
from condmeta.fitted.summary_notes import law_in_words, no_standard_error, settings_in_words
from condmeta.fitted.tables import (
    BASE,
    by_class,
    coefficient_names,
    differing_coefficients,
    level_names,
    map_effects,
)
from condmeta.fitted.text_table import CORR, Table, cells_of, in_a_line, text_of
from condmeta.inner.nested import NestedGaussian
from condmeta.meta.rotation import Rotation
from condmeta.notebook import html_block, html_table, paragraph
from condmeta.tasks.frames import make_frame
from condmeta.text import pluralize
from condmeta.typing import Frame


@dataclass(frozen=True, repr=False)
class Summary:
    """Effects of side columns on coefficients, and how tasks differ beyond them.

    It prints as a table, and as HTML in a notebook. There are no p-values: a p-value tests one
    effect that was planned before the data were seen, and the map has many effects, shrunken by a
    penalty that was chosen on the same data. Read the intervals instead.

    Attributes
    ----------
    effects : table
        `coefficient`, `side`, `effect`, `std_error`, `lower`, `upper`. An effect is the change of
        the coefficient for one unit of the side column; "(base)" is the coefficient where all side
        columns are zero (for one-hot columns: no level). Coefficients that tasks share (`random`)
        have no effects of side columns; constant columns have no row.
    between : table
        `coefficient`, `std` of its differences between tasks that side information leaves, and
        its correlation with each coefficient, of those that may differ (`random`). For
        `ConditionalLevels` `level` says whether tasks, or which groups of them, differ.
    noise : float or None
        Standard deviation of labels around a task's model; None for `Shrinkage`, counts and
        classes.
    n_tasks, n_rows : int
        Tasks, and their rows (or estimates).
    log_likelihood : float
        Of all labels, less the penalty on the map.
    level : float
        Coverage of the intervals [lower, upper].
    robust : bool
        Whether standard errors hold also if variances differ between tasks.
    title : str
    drift : str or None
        How tasks change with time, in words; None if they do not.
    scale : str or None
        The scale of y that all numbers are on, "log" or "yeo-johnson"; None for y itself.
    by_side : bool
        Whether the noise of a task follows its side information; `noise` is then that of a task
        with mean side information.
    nu : float or None
        Degrees of freedom of Student's noise, and `noise` is its scale; None: noise is normal.
    splines : bool
        Whether coefficients are those of splines of x, named such as "x0 (bend 1)".
    law : str or None
        The distribution of counts or classes, in words; None for numbers.
    settings : tuple of str
        A sentence for each setting by which predictions or numbers differ from those of maximum
        likelihood with these effects, and what to write instead.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> X, y = np.arange(8.0)[:, None], np.array([0.0, 1.1, 1.9, 3.1, 8.2, 9.8, 12.1, 14.0])
    >>> model = cm.ConditionalRidge(metric="diagonal").fit(X, y, task=np.repeat(["a", "b"], 4))
    >>> str(model.summary()).splitlines()[0]
    'ConditionalRidge: 8 rows of 2 tasks, log likelihood -6.83, noise 0.1659 (standard deviation)'
    """

    effects: Frame
    between: Frame
    noise: float | None
    n_tasks: int
    n_rows: int
    log_likelihood: float
    level: float
    robust: bool
    title: str
    _tables: tuple[Table, Table]
    drift: str | None = None
    scale: str | None = None
    by_side: bool = False
    splines: bool = False
    nu: float | None = None
    law: str | None = None
    settings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, fitted: Fitted | AgainstRest, level: float, robust: bool | None, title: str
    ) -> Summary:
        """Summarise a fitted value with a learned prior."""
        if not 0 < level < 1:
            raise DataError(f"The 'level' of a summary must be in (0, 1). Got {level!r} instead.")
        parts = fitted.parts if isinstance(fitted, AgainstRest) else (fitted,)
        errors = [MapErrors.of(part, robust) for part in parts]
        found = iter(errors)
        effects = by_class(fitted, lambda part: _effects(part, next(found), level))
        between = by_class(fitted, _between)
        return cls(
            *(make_frame(table, fitted.columns.backend) for table in (effects, between)),
            noise=float(np.sqrt(fitted.info["s2_"])) if "s2_" in fitted.info else None,
            n_tasks=fitted.n_tasks,
            n_rows=round(float(fitted.tasks.sizes.sum())),
            log_likelihood=float(np.sum(fitted.info["objective_"])),
            level=level, robust=errors[0].robust, title=title, _tables=(effects, between),
            drift=None if drift_of(fitted.inner) is None else str(drift_of(fitted.inner)),
            scale=None if fitted.target is None else fitted.target.name,
            by_side=getattr(fitted.tau, "noise", None) is not None,
            splines=isinstance(fitted.scales.transformer, Splines),
            nu=getattr(fitted.inner, "nu", None),
            law=law_in_words(fitted),
            settings=tuple(settings_in_words(parts[0])),
        )  # fmt: skip

    @property
    def _lines(self) -> list[str]:
        """The three sentences above and between the tables."""
        tasks, likely = pluralize(self.n_tasks, "task"), f"log likelihood {self.log_likelihood:.2f}"
        estimates = self.noise is None and self.law is None
        rows = pluralize(self.n_rows, "estimate" if estimates else "row")
        what = "standard deviation" + ("; it follows side information" if self.by_side else "")
        what = what if self.nu is None else f"scale of Student's t, {self.nu:g} degrees of freedom"
        noise = "" if self.noise is None else f", noise {self.noise:.4g} ({what})"
        kind = "robust" if self.robust else "model-based"
        drift = "" if self.drift is None else f"; drift: {self.drift}"
        scale = "" if self.scale is None else f"; all numbers are on the {self.scale} scale of y"
        splines = "; x has splines (bends)" if self.splines else ""
        scale += "" if self.law is None else f"; {self.law}"
        has_side = any(side != BASE for side in self._tables[0]["side"])
        effects = "Effects of side columns" if has_side else "Coefficients of an average task"
        return [
            f"{self.title}: {rows} of {tasks}, {likely}{noise}{drift}{scale}{splines}",
            f"{effects}, with {100 * self.level:g} % intervals ({kind}):",
            "Differences between tasks that side columns do not explain:",
        ]

    def __repr__(self) -> str:
        head, *titles = self._lines
        parts = [
            f"{title}\n{text_of(in_a_line(table))}"
            for title, table in zip(titles, self._tables, strict=True)
        ]
        return "\n\n".join([head, *parts, *self._notes])

    def _repr_html_(self) -> str:
        head, *titles = self._lines
        tables = (
            html_table(list(table), cells_of(table), title)
            for title, table in zip(titles, map(in_a_line, self._tables), strict=True)
        )
        return html_block(paragraph(head), *tables, *map(paragraph, self._notes))

    @property
    def _notes(self) -> list[str]:
        """What the numbers depend on, and why some effects have no standard error."""
        effects = self._tables[0]
        lacking = np.isnan(effects["std_error"])
        if not lacking.any():
            return list(self.settings)
        return [*self.settings, no_standard_error(effects, lacking)]


def _effects(fitted: Fitted, errors: MapErrors, level: float) -> Table:
    names, sides = coefficient_names(fitted), [BASE, *fitted.reader.names]
    unit = fitted.reader.map.units_out()
    in_features = np.vstack([map_effects(fitted), fitted.scales.user_vector(fitted.tau.b)])
    values = Rotation(*unit, None).undo(in_features)
    spread = map_std(fitted, errors, *unit)
    values, spread = (np.roll(array, 1, axis=0).T.ravel() for array in (values, spread))
    reach = float(stdtrit(errors.freedom, (1 + level) / 2)) * spread
    table = {
        "coefficient": np.repeat(names, len(sides)),
        "side": np.array(sides * len(names)),
        "effect": values,
        "std_error": spread,
        "lower": values - reach,
        "upper": values + reach,
    }
    estimated = differing_coefficients(fitted)[:, None] | (np.arange(len(sides)) == 0)
    estimated &= fitted.scales.kept[:, None]
    return {key: column[estimated.ravel()] for key, column in table.items()}


def _between(fitted: Fitted) -> Table:
    C, differing = fitted.scales.user_matrix(), differing_coefficients(fitted)
    C = C[differing]
    names = np.array(coefficient_names(fitted))[differing].tolist()
    if not isinstance(fitted.inner, NestedGaussian):
        return {"coefficient": np.array(names)} | _spread(names, C @ fitted.info["H_"] @ C.T)
    factors, columns = C @ fitted.inner.factors, level_names(fitted)
    levels = [_spread(names, L @ L.T) for L in factors]
    table = {"level": np.repeat(np.array(columns, str), len(names))}
    table["coefficient"] = np.array(names * len(factors))
    return table | {key: np.concatenate([level[key] for level in levels]) for key in levels[0]}


def _spread(names: list[str], H) -> Table:
    """Return standard deviations and correlations of a covariance (d, d)."""
    std = np.sqrt(np.maximum(np.diag(H), 0.0))
    varies = np.where(std > 0, std, np.nan)
    correlation = H / np.outer(varies, varies)
    return {"std": std} | {f"{CORR}{name}": correlation[:, j] for j, name in enumerate(names)}
