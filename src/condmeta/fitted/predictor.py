"""From weight vectors and rows to predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.count_distribution import CountDistribution
from condmeta.fitted.scales import Scales
from condmeta.fitted.shared_model import SharedModel
from condmeta.fitted.target import TargetScale
from condmeta.inner.averaged import averaged_logistic
from condmeta.inner.row_posterior import Counts, Ordinal
from condmeta.inner.scores import row_scores, sparse_scores
from condmeta.persistence.fields import (
    FLAG,
    TEXT,
    InvalidFieldError,
    instance,
    labels,
    maybe,
    optional,
    sequence,
)
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.arrays import is_sparse


def _has_its_classes(state: dict, sizes: dict[str, int]) -> None:
    """Raise if the model would predict a class that is not there."""
    inner, classes = state["inner"], state["classes"]
    number = len(inner.gaps) + 2 if isinstance(inner, Ordinal) else 2
    if classes is not None and len(classes) != number:
        raise InvalidFieldError("classes", f"must be {number} labels")


@register_tuple(
    rule=_has_its_classes,
    fields={
        "owner": TEXT, "scales": instance("Preparation", d="d", w="w", n="n"),
        "inner": instance(d="w"), "classes": maybe(labels("c")),
        "shared": maybe(instance("Base", s="s")),
        "feature_names": maybe(sequence(TEXT, "n")), "resumable": FLAG, "weighs": FLAG,
        "target": optional(maybe(instance("Target"))),
    }
)  # fmt: skip
class LinearPredictor(NamedTuple):
    """What turns a task's weight vector into predictions; the same for all tasks of one fit.

    Attributes
    ----------
    owner : str
        The learner's class, for messages.
    scales : Scales
    inner : inner algorithm, or None before the learner has learned it
    classes : (K,) array or None
    shared : SharedModel or None
        A model of all tasks; per-task models are fitted to its residuals, or to its log odds.
    feature_names : tuple of str or None
        Columns of X as `fit` saw them.
    resumable : bool
        Whether a task can take further points exactly.
    weighs : bool
        Whether rows may have weights.
    target : TargetScale or None
        The scale of the labels; scores are on it.
    """

    owner: str
    scales: Scales
    inner: Any
    classes: np.ndarray | None = None
    shared: SharedModel | None = None
    feature_names: tuple[str, ...] | None = None
    resumable: bool = False
    weighs: bool = False
    target: TargetScale | None = None

    @property
    def probabilistic(self) -> bool:
        """Whether the scores are log odds."""
        return getattr(getattr(self.inner, "loss", None), "name", "") == "logistic"

    @property
    def label_kind(self) -> str:
        """The kind of its labels (see `condmeta.fitted.label_codes`)."""
        if self.classes is not None:
            return "class"
        return "count" if isinstance(self.inner, Counts) else "number"

    @property
    def averages(self) -> bool:
        """Whether predictions are averages over the posterior, not a function of the score."""
        return self.label_kind == "count" or (self.classes is not None and len(self.classes) > 2)

    @property
    def keeps_state(self) -> bool:
        """Whether a task's model needs more than its weights: for `update`, or to predict."""
        more = hasattr(self.inner, "variances") or hasattr(self.inner, "spread")
        return self.resumable or more

    def scores(self, X, W, codes=None, n_jobs=1, sides=None) -> np.ndarray:
        """Return <row, W[codes]> of each row of X (N, d), plus the output of a shared regressor.

        W (T, width); without `codes` (N,) all rows belong to the first task. `sides` (T, k) are the
        side coordinates that the shared model reads of the tasks.
        """
        scores = self._linear(self.rows(X, codes, sides), W, codes, n_jobs)
        if self.shared is not None and not self.shared.classes:
            scores += self.shared.predict(X, sides[_positions(codes, len(X))])
        return _finite(scores)

    def _linear(self, rows, W, codes, n_jobs) -> np.ndarray:
        if codes is None:
            scores = rows @ W[0]
        else:
            scores = (sparse_scores if is_sparse(rows) else row_scores)(rows, W, codes, n_jobs)
        return self.scales.answer(scores)

    def rows(self, X, codes=None, sides=None) -> np.ndarray:
        """Return the rows of the linear model (N, width), with the log odds of a shared model."""
        if self.shared is not None and self.shared.classes:
            X, _ = self.shared.head_inputs(X, None, sides[_positions(codes, len(X))])
        return self.scales.rows(X)

    def predict(self, X, W, codes=None, n_jobs=1, sides=None, state=None) -> np.ndarray:
        """Return predictions (N,): numbers, classes, or mean counts for an exposure of 1.

        The parameters are those of `probabilities`; `state` is read if `averages`.
        """
        if self.label_kind == "count":
            return self.count_distribution(X, W, codes, n_jobs, state).mean
        if self.averages:
            chances = self.probabilities(X, W, codes, n_jobs, sides, state)
            return self.classes[np.argmax(chances, axis=1)]
        return self.decide(self.scores(X, W, codes, n_jobs, sides))

    def decide(self, scores: np.ndarray) -> np.ndarray:
        """Return predictions: the scores as labels, or the class by their sign (0 is negative)."""
        if self.classes is not None:
            return self.classes[(scores > 0).astype(int)]
        return scores if self.target is None else self.target.undo(scores)

    def on_scale(self, y: np.ndarray) -> np.ndarray:
        """Return labels on the scale of the scores, before any centring."""
        return y if self.target is None else self.target.apply(y)

    def label_std(self, predicted: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return the standard deviations of labels from those of scores, to first order."""
        return std if self.target is None else std * self.target.slope(predicted)

    def count_distribution(self, X, W, codes=None, n_jobs=1, state=None) -> CountDistribution:
        """Return the distribution of counts at rows X, for an exposure of 1."""
        if self.label_kind != "count":
            raise AttributeError("predict_distribution is for ConditionalCount.")
        mean, variance = self._moments(self.rows(X), W, codes, n_jobs, state)
        return CountDistribution(mean, variance, self.inner.alpha)

    def _moments(self, rows, W, codes, n_jobs, state) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance (N,) of <x, w> over the posterior."""
        variance = self.inner.variances(state, rows, _positions(codes, len(rows)))
        return _finite(self._linear(rows, W, codes, n_jobs)), variance

    def std(self, X, theta, state, codes=None, precision=None) -> np.ndarray:
        """Return the standard deviation of a new label's score at rows X, from the posteriors.

        The noise of the label has variance s2 / precision (N,), or s2.
        """
        if not hasattr(self.inner, "spread"):
            raise DataError(
                "return_std=True is for ConditionalRidge: other learners have no standard "
                "deviations."
            )
        if state is None:
            raise DataError(
                "Standard deviations need the statistics of the tasks, which this model was saved "
                "without. Save it with resume=True."
            )
        rows, codes = self.scales.rows(X), _positions(codes, len(X))
        given = {} if precision is None else {"precisions": precision}
        std = self.inner.spread(state, theta, rows, codes, **given)
        return _finite(self.scales.y_scale * std)

    def probabilities(self, X, W, codes=None, n_jobs=1, sides=None, state=None) -> np.ndarray:
        """Return the class probabilities (N, K) of rows X; the parameters are as for `scores`.

        Where the inner algorithm has a posterior, they average over it (`state`).
        """
        if not self.probabilistic:
            raise AttributeError("predict_proba is available with loss='logistic' only.")
        rows = self.rows(X, codes, sides)
        if isinstance(self.inner, Ordinal):
            return self.inner.likelihood.probabilities(
                *self._moments(rows, W, codes, n_jobs, state)
            )
        if hasattr(self.inner, "variances"):
            positive = averaged_logistic(*self._moments(rows, W, codes, n_jobs, state))
        else:
            positive = np.exp(-np.logaddexp(0.0, -self._linear(rows, W, codes, n_jobs)))
        return np.column_stack([1.0 - positive, positive])


def _finite(answers: np.ndarray) -> np.ndarray:
    if not np.isfinite(answers).all():
        row = int(np.argmin(np.isfinite(answers)))
        raise DataError(
            f"The prediction of row {row} leaves the range of floating-point numbers. Divide its "
            "features by their size; if these are ordinary, the model is wrong: fit it again."
        )
    return answers


def _positions(codes, n_rows: int) -> np.ndarray:
    """Return the position of each row's task; all zero where there is one task."""
    return np.zeros(n_rows, np.int64) if codes is None else codes
