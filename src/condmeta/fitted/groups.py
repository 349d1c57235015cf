"""Groups of tasks: what the tasks of a region say about another task of it.

A task id of several parts, such as (country, region, store), names the groups that it is in: its
first part, its first two parts, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.fitted.task_store import TaskStore, narrow
from condmeta.inner.nested import NestedGaussian, NestedState, own_noise
from condmeta.inner.posterior import ROUNDS
from condmeta.inner.squared import SquaredState
from condmeta.inner.tree import Nodes, Tree, Upward, go_down, go_up, without_task
from condmeta.persistence import register
from condmeta.persistence.fields import floats, ids, instance, sequence
from condmeta.persistence.registry import construct
from condmeta.tasks.ids import as_id_array
from condmeta.tasks.messages import show_id


@dataclass(frozen=True, eq=False)
class GroupLevel:
    """The groups of one level: ids (G,), mean (G, d) and covariance (G, d, d) of their effects.

    An effect is what the weights of the group's tasks have in common, beyond tau of their side
    information.
    """

    ids: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

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
        mine, theirs = (self.ids, self.mean, self.covariance), (
            other.ids, other.mean, other.covariance,
        )  # fmt: skip
        parts = zip(mine, theirs, strict=True)
        return GroupLevel(*(np.concatenate([a[stays], b]) for a, b in parts))


@dataclass(frozen=True, eq=False)
class Groups:
    """What is known of groups: one `GroupLevel` for each level above the tasks, the top first."""

    levels: tuple[GroupLevel, ...]

    def prior(self, ids, base: np.ndarray, inner: NestedGaussian) -> tuple[np.ndarray, NestedState]:
        """Return theta (T, d) and the state of new tasks `ids`, without points.

        base (T, d) is tau of their side information. The smallest group that is known shifts it.
        """
        depth = len(self.levels) + 1
        named = np.array([t for t, task in enumerate(ids.tolist()) if task is not None], np.int64)
        require_parts(ids[named].tolist(), depth)
        theta, state = base.copy(), inner.start(base)
        waiting = named
        for level in range(depth - 2, -1, -1):
            groups = self.levels[level]
            at = groups.positions(groups_of(ids[waiting].tolist(), level))
            here, at = waiting[at >= 0], at[at >= 0]
            theta[here] += groups.mean[at]
            state.covariance[here] = groups.covariance[at] + inner.covariance_below(level)
            waiting = np.setdiff1d(waiting, here)
        return theta, state


register(
    GroupLevel, export=vars, restore=construct,
    fields={"ids": ids("G"), "mean": floats("G w"), "covariance": floats("G w w")},
)  # fmt: skip
register(
    Groups, export=lambda groups: {"levels": list(groups.levels)},
    restore=lambda cls, parts: cls(tuple(parts["levels"])),
    fields={"levels": sequence(instance("GroupLevel", w="w"))},
)  # fmt: skip


def groups_of(ids: list, level: int) -> list:
    """Return the groups of a level that tasks are in: their first part, or several as a tuple."""
    return [task[0] for task in ids] if level == 0 else [task[: level + 1] for task in ids]


def require_parts(ids: list, depth: int | None = None) -> int:
    """Return the number of parts of task ids, or raise if they have one part, or not `depth`."""
    parts = {len(task) if isinstance(task, tuple) else 1 for task in ids}
    if depth is None:
        depth = max(parts, default=1)
        if depth == 1:
            raise DataError(
                "ConditionalLevels learns from tasks in groups, but the task ids have one part: "
                f"{show_id(ids[0])}. Give the columns of all levels, the largest group first, such "
                "as task=['region', 'store'], or use ConditionalRidge."
            )
    if parts - {depth}:
        odd = next(t for t in ids if (len(t) if isinstance(t, tuple) else 1) != depth)
        raise DataError(
            f"The task id {show_id(odd)} does not have {depth} parts, as the ids of other tasks do: "
            "name each task by all its groups, the largest first, such as (region, store)."
        )
    return depth


def group_codes(ids: list) -> np.ndarray:
    """Return the groups (T, m) that tasks are in, as numbers; see `Tree.of`."""
    depth = len(ids[0])
    codes = np.empty((len(ids), depth - 1), np.int64)
    for level in range(depth - 1):
        known: dict[Any, int] = {}
        codes[:, level] = [known.setdefault(task[level], len(known)) for task in ids]
    return codes


class _Passes(NamedTuple):
    """The tasks of a store in the order of their tree, and what both passes leave."""

    tree: Tree
    stats: SquaredState
    base: np.ndarray
    up: Upward
    levels: list[Nodes]


def _passes(store: TaskStore, inner: NestedGaussian, n_jobs: int) -> _Passes:
    """Go up and down the tree; if tasks have their own noise, in turns with it."""
    tree = Tree.of(group_codes(store.ids.tolist()))
    state, factors = store.state.take(tree.order), inner.factors
    stats, s2 = state.squared, np.full(len(tree.order), inner.s2)
    H = factors[-1] @ factors[-1].T
    for turn in range((ROUNDS if inner.own_noise else 0) + 1):
        if turn > 0:
            C, Lambda = levels[-1].covariance[tree.parents[-1]], up.messages[-1]
            a = levels[-1].mean[tree.parents[-1]]
            mean = a + state.base + (up.g[-1] - np.einsum("tij,tj->ti", Lambda, a)) @ H
            pulled = Lambda @ C
            open_ = np.einsum("tij,ji->t", Lambda - pulled @ Lambda, H)
            open_ += np.einsum("tii->t", pulled)
            rss = stats.squared_errors(mean) + s2 * open_
            s2 = own_noise(rss, stats.count, inner.s2)
        up = go_up(stats, state.base, tree.parents, factors, s2, n_jobs)
        levels = go_down(up, tree.parents, factors)
    return _Passes(tree, stats, state.base, up, levels)


def regroup(store: TaskStore, inner: NestedGaussian, n_jobs=1) -> tuple[TaskStore, Groups]:
    """Return the models of tasks and of their groups, all given all points of the store.

    A task's theta and covariance become those given all other tasks, so that its own points lead to
    the exact posterior.
    """
    tree, stats, base, up, levels = _passes(store, inner, n_jobs)
    others = without_task(up, levels[-1], tree.parents[-1])
    H = inner.covariance_below(len(levels) - 1)
    theta, back = base + others.mean, np.argsort(tree.order)
    state = NestedState(*stats, base, others.covariance + H)
    mean = inner.posterior(state, theta, n_jobs).mean
    store = replace(store, theta=theta[back], coef=mean[back], state=state.take(back))
    ids = [store.ids[first].tolist() for first in tree.first]
    known = tuple(
        GroupLevel(as_id_array(groups_of(named, level)), *levels[level])
        for level, named in enumerate(ids)
    )
    return store, Groups(known)


def store_in_groups(
    inner: NestedGaussian, ids, theta, stats: SquaredState, n_jobs, Phi
) -> tuple[TaskStore, Groups]:
    """Return the models of tasks and of their groups, from the statistics of the tasks."""
    state = NestedState(*stats, theta, np.zeros_like(stats.gram))
    return regroup(
        TaskStore(ids, stats.count, theta, theta, state=state, Phi=narrow(Phi)), inner, n_jobs
    )


def regroup_some(
    store: TaskStore, groups: Groups, inner: NestedGaussian, changed, n_jobs=1
) -> tuple[TaskStore, Groups]:
    """Return `regroup` of the groups of the top level that have a changed task, others as before.

    changed (C,) : positions of the tasks with further points, and of new tasks
    """
    top = groups_of(store.ids.tolist(), 0)
    touched = {top[at] for at in changed.tolist()}
    at = np.flatnonzero(np.fromiter((group in touched for group in top), bool, len(top)))
    part, some = regroup(store.take(at), inner, n_jobs)
    levels = zip(groups.levels, some.levels, strict=True)
    return store.put(at, part), Groups(tuple(level.put(new) for level, new in levels))
