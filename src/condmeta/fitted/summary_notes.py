"""Sentences below a summary: what its numbers depend on, and what to write to have others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from condmeta.fitted.against_rest import AgainstRest
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.tables import BASE, INTERCEPT, differing_coefficients, level_names
from condmeta.fitted.text_table import Table
from condmeta.inner.row_posterior import Bernoulli, Counts, Ordinal, RowPosterior
from condmeta.meta.levels import NONE

NO_ROWS = {  # how a task without rows is predicted, by `cold_start_`
    "pooled": "one model of all rows",
    "mixture": "the mean of the effects and one model of all rows",
}


def settings_in_words(fitted: Fitted) -> Iterator[str]:
    """Say which settings make numbers or predictions differ from maximum likelihood."""
    info, differing = fitted.info, differing_coefficients(fitted)
    kappa = info.get("kappa_", 0) if fitted.reader.names else 0
    if kappa == np.inf:
        yield "Side information is not used (kappa=inf)."
    elif kappa > 0:
        yield (
            f"A penalty (kappa={kappa:g}) shrinks the effects and is part of the log likelihood: "
            "kappa=0 gives maximum likelihood."
        )
        dependent = _dependent_sides(fitted)
        if dependent:
            yield (
                "The tasks determine only differences between effects of "
                f"{', '.join(dependent[:4])}, as with all levels of a category. The penalty "
                f"fixes the rest, so their standard errors, and those of {BASE}, are large: give "
                "a 0/1 column for all levels but one."
            )
    if _has_weak_prior(fitted):
        yield (
            "A weak prior of the coefficients of an average task is part of the log likelihood: "
            "kappa=0 gives maximum likelihood."
        )
    metric, scaled = info["metric_"], fitted.scales.scale != "none"
    if np.count_nonzero(differing) > 1 and (
        metric == "identity" or (metric == "diagonal" and scaled)
    ):
        columns = " in scaled columns" if scaled else ""
        yield (
            f'The covariance between tasks has the shape metric="{metric}"{columns}: metric="full" '
            "estimates every standard deviation and correlation."
        )
    for name, form in zip(level_names(fitted), info.get("levels_", ()), strict=False):
        if form == NONE:
            yield (
                f"Differences between groups by {name} are left out, by Akaike's criterion: "
                'metric="full" estimates them.'
            )
    if info.get("context_"):
        yield (
            "In predictions the level of a task also depends on the means of its features "
            "(context), which the effects above leave out: context=False switches this off."
        )
    if info.get("cold_start_", "prior") != "prior":
        yield (
            f"A task without rows is predicted by {NO_ROWS[info['cold_start_']]}: "
            'cold_start="prior" predicts it by the effects above.'
        )


def _dependent_sides(fitted: Fitted) -> list[str]:
    """Return the side features of which a sum is constant over the tasks."""
    Phi = fitted.tasks.Phi[fitted.tasks.sizes > 0]
    if len(Phi) <= Phi.shape[1] + 1:
        return []
    centred = Phi - Phi.mean(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred)
    loose = np.abs(axes[:, values <= 1e-12 * values[-1]]).max(axis=1, initial=0.0) > 1e-6
    names = [name for name, part in zip(fitted.reader.names, loose, strict=True) if part]
    return names if len(names) > 1 else []  # one alone is constant


def _has_weak_prior(fitted: Fitted) -> bool:
    """Return whether the constant of the map has a prior (see `condmeta.meta.constant_prior`)."""
    if not isinstance(fitted.inner, Bernoulli | Ordinal) or fitted.info["kappa_"] == 0:
        return False
    several = isinstance(fitted.inner, Ordinal) and len(fitted.inner.gaps) > 0
    slopes = differing_coefficients(fitted)[: len(fitted.scales.x_mean)]
    return fitted.n_tasks > 1 and (not several or bool(slopes.any()))


def law_in_words(fitted: Fitted | AgainstRest) -> str | None:
    """Describe the distribution of counts or classes; None for numbers."""
    inner, classes = fitted.inner, fitted.predictor.classes
    if isinstance(fitted, AgainstRest):
        return "log odds of each class against the rest"
    if isinstance(inner, Counts):
        return f"log rates; counts have variance mu + {inner.alpha:.4g} mu^2"
    if isinstance(inner, Ordinal) and len(inner.gaps):
        cuts = ", ".join(f"{cut:.4g}" for cut in inner.likelihood.cuts)
        return f"log odds of a higher class, with cuts at {cuts}"
    return f"log odds of {classes[1]}" if isinstance(inner, RowPosterior) else None


def no_standard_error(effects: Table, lacking: np.ndarray) -> str:
    """Say why some effects have no standard error, and what to do."""
    names, sides = effects["coefficient"], effects["side"][lacking]
    sides = [side for side in dict.fromkeys(sides.tolist()) if side != BASE]
    if sides and set(names[lacking]) == set(names[effects["side"] != BASE]):
        return (
            f"Effects of {_some(sides)} have no standard error: the tasks determine only "
            "their differences, as with all levels of a category. Give a 0/1 column for all levels "
            "but one, or a kappa above 0."
        )
    columns = [name for name in dict.fromkeys(names[lacking].tolist()) if name != INTERCEPT]
    return (
        f"Coefficients of {_some(columns)} have no standard error: the rows do not determine them, "
        "because one column is a linear combination of others, as with all levels of a category. "
        "Leave that column out, or give a 0/1 column for all levels but one."
    )


def _some(names: list[str]) -> str:
    """Return the first four names, and the number of others."""
    rest = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + rest
