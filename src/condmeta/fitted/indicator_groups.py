"""Indicators that exclude each other are the levels of one category, which a tree splits at once.

One-hot columns cost a tree one split a level. As codes of one column, any set of levels can go to
one side of a split. The groups are found in the rows, so that it does not matter who encoded them:
neighbouring columns of two values each, of which no row has more than one on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condmeta.persistence.fields import InvalidFieldError, flags, floats, instance, integers
from condmeta.persistence.registry import register_tuple

MOST_LEVELS = 250  # of a category, for scikit-learn's trees


def _numbered(state: dict, sizes: dict[str, int]) -> None:
    found = np.unique(state["group"])
    if not np.array_equal(found[found >= 0], np.arange(found.max(initial=-1) + 1)):
        raise InvalidFieldError("group", "must number the groups from 0")


@register_tuple(fields={"group": integers("p", low=-1), "middle": floats("p")}, rule=_numbered)
class IndicatorGroups(NamedTuple):
    """The group of each column (p,), -1 if it has none, and the middle of its two values (p,)."""

    group: np.ndarray
    middle: np.ndarray

    @classmethod
    def learn(cls, Z: np.ndarray) -> IndicatorGroups:
        """Find the groups in rows Z (N, p)."""
        low, high = Z.min(axis=0, initial=np.inf), Z.max(axis=0, initial=-np.inf)
        runs: list[list[int]] = []
        taken = np.zeros(len(Z), bool)  # rows with an indicator of the last run on
        for j in range(Z.shape[1]):
            on = Z[:, j] == high[j]
            if low[j] == high[j] or not (on | (Z[:, j] == low[j])).all():
                taken[:] = True  # no indicator: the next one begins a run
                continue
            if not runs or (taken & on).any() or len(runs[-1]) == MOST_LEVELS:
                runs.append([])
                taken[:] = False
            runs[-1].append(j)
            taken |= on
        group, middle = np.full(Z.shape[1], -1), np.zeros(Z.shape[1])
        for number, run in enumerate(run for run in runs if len(run) > 1):
            group[run], middle[run] = number, low[run] / 2 + high[run] / 2
        return cls(group, middle)

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def width(self) -> int:
        """Number of columns that trees read."""
        return self.count + int((self.group < 0).sum())

    def apply(self, Z: np.ndarray) -> np.ndarray:
        """Return a column of codes for each group, 0 if no indicator is on, then the others."""
        if not self.count:
            return Z
        columns = [np.flatnonzero(self.group == g) for g in range(self.count)]
        codes = [_first_on(Z[:, of] > self.middle[of]) for of in columns]
        return np.column_stack([*codes, Z[:, self.group < 0]])


def _first_on(on: np.ndarray) -> np.ndarray:
    """Return 1 + the first column that is on in each row, or 0 (N,)."""
    return np.where(on.any(axis=1), 1 + on.argmax(axis=1), 0)


def _levels_fit(state: dict, sizes: dict[str, int]) -> None:
    group = state["groups"].group
    if np.bincount(group[group >= 0]).max(initial=0) >= sizes["levels"]:
        raise InvalidFieldError("left", "must have a column for each level")
    if state["chosen"].max(initial=-1) >= sizes["sets"]:
        raise InvalidFieldError("chosen", "must name sets of levels")


@register_tuple(
    fields={
        "groups": instance("IndicatorGroups"), "chosen": integers("nodes", low=-1),
        "left": flags("sets levels"),
    },
    rule=_levels_fit,
)  # fmt: skip
class CategorySplits(NamedTuple):
    """Which codes go left: node -> a set of levels (nodes,), -1 for a threshold; left (sets, L)."""

    groups: IndicatorGroups
    chosen: np.ndarray
    left: np.ndarray

    @classmethod
    def of(cls, groups: IndicatorGroups, model, nodes: np.ndarray) -> CategorySplits:
        """Read the sets of levels off a fitted model of scikit-learn; nodes of all its trees.

        Levels that a model has not seen go where gaps go.
        """
        chosen = np.full(len(nodes), -1)
        split = np.flatnonzero(nodes["is_categorical"].astype(bool) & (nodes["is_leaf"] == 0))
        chosen[split] = np.arange(len(split))
        trees = [predictors[0].raw_left_cat_bitsets for predictors in model._predictors]
        words = np.ascontiguousarray(np.concatenate(trees), dtype="<u4")
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(bool)
        encoder = model._preprocessor.named_transformers_["encoder"]
        unseen = nodes["missing_go_to_left"][split].astype(bool)
        n_levels = np.bincount(groups.group[groups.group >= 0]).max() + 1
        left = np.repeat(unseen[:, None], n_levels, axis=1)
        for row, node in enumerate(nodes[split]):
            known = encoder.categories_[node["feature_idx"]].astype(int)
            left[row, known] = bits[row, : len(known)]
        return cls(groups, chosen, left)

    def goes_left(self, at: np.ndarray, x: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        """Return where values x go at nodes `at`; at thresholds, `otherwise`."""
        chosen = self.chosen[at]
        by_level = chosen >= 0
        found = otherwise.copy()
        found[by_level] = self.left[chosen[by_level], x[by_level].astype(int)]
        return found
