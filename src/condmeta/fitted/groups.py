"""Groups of tasks: what the tasks of a region say about another task of it.

A task id of several parts, such as (country, region, store), names the groups that it is in: its
first part, its first two parts, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError, DivergenceError
from condmeta.inner.nested import NestedGaussian, NestedState, TaskPriors, own_noise
from condmeta.inner.posterior import ROUNDS
from condmeta.inner.squared import SquaredState
from condmeta.inner.tree import Nodes, Tree, Upward, go_down, go_up, without_task
from condmeta.persistence import register
from condmeta.persistence.fields import floats, ids, instance, maybe, sequence
from condmeta.persistence.registry import construct
from condmeta.tasks.ids import as_id_array
from condmeta.tasks.messages import name_task, show_id
from condmeta.text import pluralize


@dataclass(frozen=True, eq=False)
class GroupLevel:
    """The groups of one level: ids (G,), mean (G, d) and covariance (G, d, d) of their effects.

    An effect is what the weights of the group's tasks have in common, beyond tau of their side
    information. Phi (G, k) is the mean of the features of these tasks; None if they are many.
    """

    ids: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    Phi: np.ndarray | None = None

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def index(self) -> dict[Any, int]:
        """Position of each id."""
        return {group: position for position, group in enumerate(self.ids.tolist())}

    def positions(self, groups) -> np.ndarray:
        """Return the position of each group, -1 where it is not known."""
        return np.fromiter(map(self.index.get, groups, repeat(-1)), np.int64, len(groups))

    def put(self, other: GroupLevel) -> GroupLevel:
        """Return it with the groups of another value, which replace those of the same id."""
        stays = np.array([group not in other.index for group in self.ids.tolist()], bool)
        pairs = zip(self.parts.values(), other.parts.values(), strict=True)
        joined = [None if new is None else np.append(mine[stays], new, 0) for mine, new in pairs]
        return GroupLevel(*joined)


@dataclass(frozen=True, eq=False)
class Groups:
    """What is known of groups: one `GroupLevel` for each level above the tasks, the top first."""

    levels: tuple[GroupLevel, ...]

    def known(self, ids) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield (level, positions among `ids`, positions of their groups), smallest groups first.

        A task is in one level: that of the smallest group that is known.
        """
        waiting = np.array([t for t, task in enumerate(ids.tolist()) if task is not None], np.int64)
        require_parts(ids[waiting].tolist(), len(self.levels) + 1)
        for level in range(len(self.levels) - 1, -1, -1):
            at = self.levels[level].positions(groups_of(ids[waiting].tolist(), level))
            yield level, waiting[at >= 0], at[at >= 0]
            waiting = waiting[at < 0]

    def fill(self, ids, Phi: np.ndarray) -> np.ndarray:
        """Return features (T, k) of tasks without side rows: the mean of their groups."""
        Phi = Phi.copy()
        for level, here, at in self.known(ids):
            found = self.levels[level].Phi
            Phi[here] = Phi[here] if found is None else found[at]
        return Phi

    def prior(self, ids, base: np.ndarray, inner: NestedGaussian) -> tuple[np.ndarray, NestedState]:
        """Return theta (T, d) and the state of new tasks `ids`, without points.

        base (T, d) is tau of their side information. The smallest group that is known shifts it.
        """
        theta, state = base.copy(), inner.start(base)
        for level, here, at in self.known(ids):
            groups = self.levels[level]
            theta[here] += groups.mean[at]
            state.covariance[here] = groups.covariance[at] + inner.covariance_below(level)
        return theta, state

    def put(self, other: Groups) -> Groups:
        """Return it with the groups of another value, which replace those of the same id."""
        pairs = zip(self.levels, other.levels, strict=True)
        return Groups(tuple(mine.put(new) for mine, new in pairs))


register(
    GroupLevel, export=lambda level: level.parts, restore=construct,
    fields={
        "ids": ids("G"), "mean": floats("G w"), "covariance": floats("G w w"),
        "Phi": maybe(floats("G k")),
    },
)  # fmt: skip
register(
    Groups, export=lambda groups: {"levels": list(groups.levels)},
    restore=lambda cls, parts: cls(tuple(parts["levels"])),
    fields={"levels": sequence(instance("GroupLevel", w="w", k="k"))},
)  # fmt: skip


def groups_of(ids: list, level: int) -> list:
    """Return the groups of a level that tasks are in: their first part, or several as a tuple."""
    return [task[0] for task in ids] if level == 0 else [task[: level + 1] for task in ids]


def require_parts(ids: list, depth: int | None = None) -> None:
    """Raise if a task id does not have `depth` parts, or as many as the first one."""
    for task in ids:
        parts = len(task) if isinstance(task, tuple) else 1
        depth = parts if depth is None else depth
        if parts != depth:
            raise DataError(
                f"The task id {show_id(task)} has {pluralize(parts, 'part')}, and other ids have "
                f"{depth}: name each task by all its groups, the largest first, such as "
                "(region, store)."
            )


def group_codes(ids: list) -> np.ndarray:
    """Return the groups (T, m) that tasks are in, as numbers; see `Tree.of`."""
    depth = len(ids[0])
    codes = np.empty((len(ids), depth - 1), np.int64)
    for level in range(depth - 1):
        known: dict[Any, int] = {}
        codes[:, level] = [known.setdefault(task[level], len(known)) for task in ids]
    return codes


class _Passes(NamedTuple):
    """What both passes over a tree leave: see `go_up` and `go_down`."""

    up: Upward
    levels: list[Nodes]


def _passes(tree: Tree, state: NestedState, inner: NestedGaussian, n_jobs: int) -> _Passes:
    """Go up and down the tree; if tasks have their own noise, in turns with it."""

    def go(s2) -> _Passes:
        up = go_up(state.squared, state.base, tree.parents, inner.factors, s2, n_jobs)
        return _Passes(up, go_down(up, tree.parents, inner.factors))

    s2 = np.full(len(tree.order), inner.s2)
    found = go(s2)
    for _ in range(ROUNDS if inner.own_noise else 0):
        s2 = own_noise(_residuals(found, tree, state, inner, s2), state.count, inner.s2)
        found = go(s2)
    return found


def _residuals(found: _Passes, tree: Tree, state: NestedState, inner, s2) -> np.ndarray:
    """Return the expected ||y - X w||^2 of tasks (T,); see `tree_likelihood`."""
    Lambda, groups, parent = found.up.messages[-1], found.levels[-1], tree.parents[-1]
    a, pulled = groups.mean[parent], Lambda @ groups.covariance[parent]
    H = inner.covariance_below(len(found.levels) - 1)
    mean = a + state.base + (found.up.g[-1] - np.einsum("tij,tj->ti", Lambda, a)) @ H
    left = np.einsum("tij,ij->t", Lambda - pulled @ Lambda, H) + np.einsum("tii->t", pulled)
    return state.squared.squared_errors(mean) + s2 * left


class Grouped(NamedTuple):
    """Tasks given all points: where they start and their weights (T, d), priors, and groups."""

    theta: np.ndarray
    coef: np.ndarray
    priors: TaskPriors
    groups: Groups


def regroup(ids, stats: SquaredState, base, Phi, inner: NestedGaussian, n_jobs=1) -> Grouped:
    """Return the models of tasks and of their groups, all given all points.

    A task's theta and covariance are those given all other tasks, so that its own points lead to
    the exact posterior.

    Parameters
    ----------
    ids : (T,) array; stats : SquaredState; base : (T, d) array, tau of the side information
    Phi : (T, k) array or None
    """
    tree = Tree.of(group_codes(ids.tolist()))
    order, back = tree.order, np.argsort(tree.order)
    blank = np.empty((len(ids), 0, 0))
    before = NestedState(*stats.take(order), base[order], blank)
    try:
        up, levels = _passes(tree, before, inner, n_jobs)
        others = without_task(up, levels[-1], tree.parents[-1])
        theta, H = before.base + others.mean, inner.covariance_below(len(levels) - 1)
        state = before._replace(covariance=others.covariance + H)
        coef = inner.posterior(state, theta, n_jobs).mean
    except (np.linalg.LinAlgError, DivergenceError):
        largest = ids[np.argmax(np.einsum("tii->t", stats.gram))]
        raise DivergenceError(
            f"{name_task(largest)} has rows that are too large compared with those of other "
            "tasks in its group: their sums leave the range of floating-point numbers. Correct "
            "or drop them."
        ) from None
    known = tuple(
        GroupLevel(
            as_id_array(groups_of(ids[first].tolist(), level)), *levels[level],
            None if Phi is None else tree.means(Phi[order], level),
        )
        for level, first in enumerate(tree.first)
    )  # fmt: skip
    return Grouped(theta[back], coef[back], state.priors.take(back), Groups(known))


def same_top(ids: list, changed) -> np.ndarray:
    """Return the positions of the tasks in a group of the top level that has a changed task."""
    top = groups_of(ids, 0)
    touched = {top[at] for at in changed.tolist()}
    return np.flatnonzero(np.fromiter((group in touched for group in top), bool, len(top)))
