"""One learner from several that saw different tasks."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.splines import Splines
from condmeta.inner.row_posterior import RowPosterior
from condmeta.learners.copies import with_fitted
from condmeta.learners.count import ConditionalCount
from condmeta.learners.forgetting import require_history
from condmeta.learners.gathered import refuse_base, unlearned
from condmeta.learners.logistic import ConditionalLogistic
from condmeta.learners.ordinal import ConditionalOrdinal
from condmeta.learners.ridge import ConditionalRidge
from condmeta.meta.task_statistics import refuse_known

MERGED = ConditionalRidge, ConditionalCount, ConditionalLogistic, ConditionalOrdinal
L = TypeVar("L")  # a learner


def merge(*learners: L) -> L:
    """Join learners of different tasks into one, as if it had been fitted to all these tasks.

    For learners that keep statistics of their tasks (`ConditionalRidge`, `ConditionalLevels`) or
    their rows (`ConditionalCount`, `ConditionalLogistic`, `ConditionalOrdinal`), with the same
    parameters and features. The map is learned again when it is first used, and equals that of one
    fit to all tasks, up to rounding.

    Parameters
    ----------
    *learners : two or more fitted learners
        Models from a file need `save(..., resume=True)`.

    Returns
    -------
    A new learner. The given learners do not change.

    Examples
    --------
    >>> import condmeta as cm
    >>> X, y, task = [[1.0], [2.0], [3.0], [4.0]], [1.0, 2.1, 2.9, 4.2], ["a", "a", "b", "b"]
    >>> north = cm.ConditionalRidge().fit(X[:2], y[:2], task=task[:2])
    >>> south = cm.ConditionalRidge().fit(X[2:], y[2:], task=task[2:])
    >>> both, one = cm.merge(north, south), cm.ConditionalRidge().fit(X, y, task=task)
    >>> bool(abs(both.predict([[5.0]], task=["a"]) - one.predict([[5.0]], task=["a"])) < 1e-8)
    True
    """
    if len(learners) < 2:
        raise DataError(f"merge takes two or more learners. Got {len(learners)}.")
    first, *others = learners
    _check(first, learners)
    if isinstance(first.fitted_.inner, RowPosterior):
        return with_fitted(first, _merged_rows(learners))
    value = first.fitted_
    for learner in learners:
        require_history(learner, learner.fitted_, "merge")
    for other in others:
        theirs = other.fitted_
        if value.info.get("nu_") != theirs.info.get("nu_"):
            raise DataError(
                "The learners gave outliers different weights, so their statistics cannot be "
                "added: fit them with noise='shared' or 'per_task'."
            )
        if value.info.get("time") != theirs.info.get("time"):
            raise DataError(
                "Only some of the learners have times, or their times are of different kinds."
            )
        if _transforms(value) != _transforms(theirs):
            raise DataError(
                "The learners transform x or y in different ways, so their statistics cannot be "
                "added: fit them with x_transform=None and y_transform=None."
            )
        value.state.refuse_known(theirs.state.ids, "merge joins learners of different tasks.")
        if value.reader.reads_points and not _same_scales(value.scales, theirs.scales):
            raise DataError(
                "Feature maps of points depend on the scale of the first call, and the learners "
                "have different scales. Use scale='none' or 'rows', or fit one learner."
            )
        factor = theirs.scales.units / value.scales.units  # powers of two: no digit is lost
        state = theirs.state if (factor == 1).all() else theirs.state.times(factor)
        value = value._replace(state=value.state.join(state), tau=None)
    return with_fitted(first, value)


def _merged_rows(learners: Any) -> Any:
    """Return the rows of all learners; nothing is learned from them yet."""
    value, *others = (unlearned(learner.fitted_) for learner in learners)
    refuse_base(learners[0])
    for other in others:
        if not np.array_equal(value.predictor.classes, other.predictor.classes):
            ours, theirs = value.predictor.classes.tolist(), other.predictor.classes.tolist()
            raise DataError(
                f"The learners know different classes, {ours} and {theirs}: fit each with rows of "
                "all classes, or fit one learner."
            )
        if value.info.get("exposure") != other.info.get("exposure"):
            raise DataError("Only some of the learners have an exposure.")
        refuse_known(
            value.state.tasks.ids, other.state.tasks.ids, "merge joins learners of different tasks."
        )
        value = value._replace(state=value.state.join(other.state.tasks))
    return value


def _check(first: Any, learners: Any) -> None:
    """Raise if the learners cannot be merged."""
    for learner in learners:
        kind = type(learner).__name__
        if not isinstance(learner, MERGED):
            names = ", ".join(merged.__name__ for merged in MERGED)
            raise DataError(f"merge is for {names}. Got {kind}.")
        if type(learner) is not type(first):
            kinds = f"{type(first).__name__} and {kind}"
            raise DataError(f"merge joins learners of one kind. Got {kinds}.")
        if not learner.__sklearn_is_fitted__() or learner.fitted_.state is None:
            raise DataError(
                f"A {kind} has nothing to merge, neither statistics nor rows of its tasks: it is "
                "not fitted, or its file was saved without resume=True."
            )
        ours, theirs = (x.get_params(deep=False) for x in (first, learner))
        unlike = [name for name in ours if repr(ours[name]) != repr(theirs[name])]
        if unlike:
            raise DataError(f"The learners differ in their parameters {unlike}.")
        if learner.fitted_.columns[:2] != first.fitted_.columns[:2]:
            raise DataError("The learners differ in their features.")


def _transforms(fitted: Any) -> tuple[Any, ...]:
    """Return what x and y were transformed by, as far as it can be compared."""
    splines = fitted.scales.transformer
    knots = splines.knots.tolist() if isinstance(splines, Splines) else None
    target = fitted.target
    return str(knots), None if target is None else (target.name, target.power, target.unit)


def _same_scales(ours: Any, theirs: Any) -> bool:
    names = "x_mean", "x_scale", "y_offset"
    return all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in names)
