"""Boosted trees as a shared model: what they start from, their size and their number.

f(z) = slope z + trees(z), or trees(z) alone. The setting is the one of least error on rows of tasks
that were left out. Trees that start from a linear model extrapolate, and cost nothing where a
linear model is right.
"""

from __future__ import annotations

from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from condmeta.fitted.boosted_trees import BoostedTrees, Line
from condmeta.fitted.gap_columns import GapColumns
from condmeta.fitted.indicator_groups import IndicatorGroups
from condmeta.tasks.numbers import power_of_two

LEAVES = 8, 16  # of a tree; the start is chosen with the first
STAGES = (2, 5, 10, 20, 35, 50), (75, 100), (150, 200)  # numbers of trees; the first choose
PENALTIES = np.logspace(-2, 4, 7)  # of the linear model, for columns of deviation one
MOST_ROWS = 50_000  # to compare settings on
LARGEST_LOG_ODDS = 7.0  # of one class alone, and of forests, which output exactly 0 or 1
LOSSES = {"absolute": "absolute_error", "squared": "squared_error", "log loss": "log_loss"}


class BoostingRows(NamedTuple):
    """Rows Z (N, p) with labels y (N,), weights (N,) or None, task (N,) and fold (N,).

    `groups` are columns that trees read as categories, and `gaps` those with gaps.
    """

    Z: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    task: np.ndarray
    fold: np.ndarray
    groups: IndicatorGroups | None = None
    gaps: GapColumns | None = None

    def where(self, keep) -> BoostingRows:
        """Return some of the rows."""
        *parts, groups, gaps = self
        return BoostingRows(*(None if part is None else part[keep] for part in parts), groups, gaps)

    def for_trees(self, Z: np.ndarray) -> np.ndarray:
        """Return rows Z (N, p) as trees read them."""
        Z = Z if self.gaps is None else self.gaps.apply(Z)
        return Z if self.groups is None else self.groups.apply(Z)


class TreeSetting(NamedTuple):
    """How trees grow: their loss, whether they start from a linear model, the leaves of each."""

    criterion: str
    linear: bool
    leaves: int


def fit_boosting(rows: BoostingRows, criterion: str) -> tuple[BoostedTrees, np.ndarray]:
    """Choose a setting and fit it to all rows; return it with out-of-task predictions (N,)."""
    rows = rows._replace(groups=IndicatorGroups.learn(rows.Z), gaps=GapColumns.learn(rows.Z))
    few, loss = _sample(rows), attrgetter("loss")
    starts = (False,) if criterion == "log loss" else (True, False)
    best = min(
        (TreeTrial(few, TreeSetting(criterion, start, LEAVES[0])) for start in starts), key=loss
    )
    best = min((best, TreeTrial(few, best.setting._replace(leaves=LEAVES[1]))), key=loss)
    best.grow_on()
    unseen = best.unseen
    if few is not rows:
        unseen = np.empty(len(rows.y))
        for left, grown in _left_out(rows, best.setting):
            unseen[left] = grown.extend(best.count).stages(rows.Z[left], [best.count])[0]
    return Grown(rows, best.setting).extend(best.count).model(), unseen


class TreeTrial:
    """Trees of one setting that grow on all folds but one in turn.

    `count` is the best number of trees, `loss` its mean loss, and `unseen` (N,) its out-of-task
    predictions.
    """

    def __init__(self, rows: BoostingRows, setting: TreeSetting):
        self.rows, self.setting = rows, setting
        self.folds = list(_left_out(rows, setting))
        self.loss = np.inf
        self._grow(STAGES[0])

    def grow_on(self) -> None:
        """Grow more trees while more are better."""
        for before, stages in pairwise(STAGES):
            if self.count < before[-1]:
                break
            self._grow(stages)

    def _grow(self, stages) -> None:
        unseen = np.empty((len(stages), len(self.rows.y)))
        for left, grown in self.folds:
            unseen[:, left] = grown.extend(stages[-1]).stages(self.rows.Z[left], stages)
        losses = _losses(unseen, self.rows, self.setting.criterion)
        at = int(np.argmin(losses))
        if losses[at] < self.loss:
            self.count, self.loss, self.unseen = stages[at], losses[at], unseen[at]


class Grown:
    """A linear model of rows, or none, and the trees of scikit-learn on what it leaves."""

    def __init__(self, rows: BoostingRows, setting: TreeSetting):
        from sklearn import ensemble  # slow to import

        kind = "Classifier" if setting.criterion == "log loss" else "Regressor"
        categories = 0 if rows.groups is None else rows.groups.count
        self.trees = getattr(ensemble, f"HistGradientBoosting{kind}")(
            loss=LOSSES[setting.criterion], max_leaf_nodes=setting.leaves, warm_start=True,
            early_stopping=False, random_state=0,
            categorical_features=list(range(categories)) or None,
        )  # fmt: skip
        self.line = fit_line(rows) if setting.linear else None
        plus = np.count_nonzero(rows.y > 0)
        self.one_class = kind == "Classifier" and plus in (0, len(rows.y))  # no tree can grow
        self.rows = rows

    def extend(self, count: int) -> Grown:
        """Grow more trees, up to `count`."""
        if not self.one_class:
            Z, y = self.rows.Z, self.rows.y
            target = y if self.line is None else y - self.line.predict(Z)
            trees = self.trees.set_params(max_iter=count)
            trees.fit(self.rows.for_trees(Z), target, sample_weight=self.rows.weight)
        return self

    def stages(self, Z, counts) -> np.ndarray:
        """Return the predictions of rows Z (N, p) with each number of trees (counts, N)."""
        if self.one_class or not len(Z):  # models of scikit-learn refuse an empty array
            constant = np.copysign(LARGEST_LOG_ODDS, self.rows.y[0])
            return np.full((len(counts), len(Z)), constant)
        classes, seen = hasattr(self.trees, "classes_"), self.rows.for_trees(Z)
        grow = self.trees.staged_decision_function if classes else self.trees.staged_predict
        found = np.array([np.ravel(out) for n, out in enumerate(grow(seen), 1) if n in counts])
        return found if self.line is None else found + self.line.predict(Z)

    def model(self) -> BoostedTrees:
        """Return the same model as arrays."""
        return BoostedTrees.of(self.trees, self.line, self.rows.groups, self.rows.gaps)


def _left_out(rows: BoostingRows, setting: TreeSetting):
    """Yield a mask of each fold's rows (N,), and the model of the other rows, without trees."""
    for fold in np.unique(rows.fold):
        left = rows.fold == fold
        yield left, Grown(rows.where(~left), setting)


def fit_line(rows: BoostingRows) -> Line:
    """Fit a ridge regression; constant columns have slope 0."""
    from sklearn.linear_model import RidgeCV  # loads a quarter of scikit-learn

    unit = power_of_two(np.abs(rows.Z).max(axis=0))  # squares stay finite
    Z = rows.Z / unit
    centre = np.average(Z, axis=0, weights=rows.weight)
    spread = np.sqrt(np.average((Z - centre) ** 2, axis=0, weights=rows.weight))
    spread[spread <= 1e-14 * np.abs(centre)] = np.inf
    ridge = RidgeCV(PENALTIES).fit((Z - centre) / spread, rows.y, sample_weight=rows.weight)
    return Line(unit * centre, ridge.coef_ / spread / unit, float(ridge.intercept_))


def _losses(unseen, rows: BoostingRows, criterion: str) -> np.ndarray:
    """Return the mean loss of predictions (stages, N), without and with the level of a row's task.

    The level is the shrunken mean residual of the task's other rows. What a task's own model
    corrects anyway should not decide alone.
    """
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    if criterion == "log loss":
        return np.average(np.logaddexp(0.0, -rows.y * unseen), axis=1, weights=weight)
    size = np.abs if criterion == "absolute" else np.square
    lost = [size(r) + size(r - _level(r, rows.task, weight)) for r in rows.y - unseen]
    return np.average(lost, axis=1, weights=weight)


def _level(residual, task, weight) -> np.ndarray:
    """Return the mean residual of the task's other rows (N,), shrunken by two variances."""
    count, total = np.bincount(task, weight), np.bincount(task, weight * residual)
    mean = total / np.where(count > 0, count, 1.0)
    within = np.average((residual - mean[task]) ** 2, weights=weight)
    between = np.average(mean**2, weights=count) - within * (count > 0).sum() / count.sum()
    ratio = within / max(between, 1e-6 * within + 1e-300)
    return (total[task] - weight * residual) / (count[task] - weight + ratio)


def _sample(rows: BoostingRows) -> BoostingRows:
    """Return the rows of some tasks, of all folds alike."""
    step = -(-len(rows.y) // MOST_ROWS)
    return rows if step == 1 else rows.where(rows.task // len(np.unique(rows.fold)) % step == 0)
