"""Gradient-boosted trees as plain arrays, which a model file can hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.fitted.gap_columns import GapColumns
from condmeta.fitted.indicator_groups import CategorySplits, IndicatorGroups
from condmeta.persistence import register
from condmeta.persistence.fields import (
    InvalidFieldError,
    flags,
    floats,
    instance,
    integers,
    maybe,
    number,
    optional,
)
from condmeta.persistence.registry import register_tuple

BLOCK = 1 << 18  # pairs of a row and a tree in a temporary


@register_tuple(fields={"centre": floats("p"), "slope": floats("p"), "intercept": number()})
class Line(NamedTuple):
    """A linear model intercept + slope (x - centre); centre and slope have shape (p,)."""

    centre: np.ndarray
    slope: np.ndarray
    intercept: float

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions of rows X (N, p)."""
        return (X - self.centre) @ self.slope + self.intercept


class BoostedTrees:
    """The trees of a fitted `HistGradientBoostingRegressor`.

    Its categorical features are groups of indicators (`IndicatorGroups`). The trees of a
    `HistGradientBoostingClassifier` of two classes predict the log odds of the second.

    Parameters
    ----------
    baseline : float
    starts : (trees + 1,) int array
        Where the nodes of each tree begin; a tree's first node is its root.
    feature, left, right : (nodes,) int arrays
        Children by position among all nodes; a leaf is its own child.
    threshold, value : (nodes,) arrays
        A row goes left if its feature is at most the threshold.
    missing_left : (nodes,) bool array
    line : Line, optional
        A linear model that the trees add to.
    splits : CategorySplits, optional
        Groups of indicators that are categories, and the splits of their levels.
    gaps : GapColumns, optional
        Columns with gaps that the next column marks.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> X = np.arange(100.0)[:, None]
    >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0] ** 2)
    >>> bool((BoostedTrees.of(model).predict(X) == model.predict(X)).all())
    True
    """

    splits: CategorySplits | None = None  # files of older versions have neither
    gaps: GapColumns | None = None

    def __init__(
        self, baseline, starts, feature, left, right, threshold, value, missing_left, line=None,
        splits=None, gaps=None,
    ):  # fmt: skip
        self.baseline = baseline
        self.starts = starts
        self.feature = feature
        self.left = left
        self.right = right
        self.threshold = threshold
        self.value = value
        self.missing_left = missing_left
        self.line = line
        self.splits = splits
        self.gaps = gaps

    @classmethod
    def of(
        cls, model, line: Line | None = None, groups: IndicatorGroups | None = None,
        gaps: GapColumns | None = None,
    ) -> BoostedTrees:  # fmt: skip
        """Read the trees off a fitted model, which was given `groups.apply(gaps.apply(rows))`."""
        trees = [predictors[0].nodes for predictors in model._predictors]
        nodes = np.concatenate(trees)
        starts = np.cumsum([0, *map(len, trees)])
        root = np.repeat(starts[:-1], np.diff(starts))
        leaf, own = nodes["is_leaf"].astype(bool), np.arange(len(nodes))
        left, right = (np.where(leaf, own, root + nodes[side]) for side in ("left", "right"))
        baseline = float(np.ravel(model._baseline_prediction)[0])
        splits = CategorySplits.of(groups, model, nodes) if groups and groups.count else None
        gaps = gaps if gaps is not None and gaps.marked.any() else None
        return cls(
            baseline, starts, np.where(leaf, 0, nodes["feature_idx"]).astype(np.int64),
            left.astype(np.int64), right.astype(np.int64), nodes["num_threshold"].astype(float),
            nodes["value"].astype(float), nodes["missing_go_to_left"].astype(bool), line,
            splits, gaps,
        )  # fmt: skip

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions of rows X (N, p)."""
        total, count = np.full(len(X), self.baseline), max(BLOCK // len(self.starts), 1)
        if self.line is not None:
            total += self.line.predict(X)
        X = X if self.gaps is None else self.gaps.apply(X)
        X = X if self.splits is None else self.splits.groups.apply(X)
        for lo in range(0, len(X), count):
            part = slice(lo, lo + count)
            for leaf in self._leaves(X[part]).T:  # tree by tree, as scikit-learn adds them up
                total[part] += self.value[leaf]
        return total

    def _leaves(self, X) -> np.ndarray:
        """Return the leaf of each row in each tree (N, trees)."""
        roots = self.starts[:-1]
        leaves = np.tile(roots, len(X))
        pair, row = np.arange(len(leaves)), np.repeat(np.arange(len(X)), len(roots))
        at = leaves
        while len(pair):  # pairs of a row and a tree that have not reached a leaf
            x = X[row, self.feature[at]]
            goes_left = np.where(np.isnan(x), self.missing_left[at], x <= self.threshold[at])
            if self.splits is not None:
                goes_left = self.splits.goes_left(at, x, goes_left)
            below = np.where(goes_left, self.left[at], self.right[at])
            leaves[pair], moved = below, below != at
            pair, row, at = pair[moved], row[moved], below[moved]
        return leaves.reshape(len(X), len(roots))


def _trees_end(state: dict, sizes: dict[str, int]) -> None:
    """Refuse trees with cycles: children come after their parents, in the same tree."""
    starts, nodes = state["starts"], sizes["nodes"]
    if starts[0] != 0 or starts[-1] != nodes or (np.diff(starts) < 1).any():
        raise InvalidFieldError("starts", "must rise from 0 to the number of nodes")
    own, ends = np.arange(nodes), np.repeat(starts[1:], np.diff(starts))
    leaf = (state["left"] == own) & (state["right"] == own)
    for side in "left", "right":
        child = state[side]
        if not (leaf | ((child > own) & (child < ends))).all():
            raise InvalidFieldError(side, "must name later nodes of the same tree")
    splits = state.get("splits")
    if splits is not None and (state["feature"][splits.chosen >= 0] >= splits.groups.count).any():
        raise InvalidFieldError("splits", "must choose levels of categories")


register(
    BoostedTrees,
    fields={
        "baseline": number(), "starts": integers("trees+1", low=0),
        "feature": integers("nodes", low=0), "left": integers("nodes", low=0),
        "right": integers("nodes", low=0), "threshold": floats("nodes", nan=True),
        "value": floats("nodes"), "missing_left": flags("nodes"),
        "line": optional(maybe(instance("Line"))),
        "splits": optional(maybe(instance("CategorySplits", nodes="nodes"))),
        "gaps": optional(maybe(instance("GapColumns"))),
    },
    rule=_trees_end,
)  # fmt: skip
