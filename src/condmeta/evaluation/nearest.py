"""Which known tasks are like a new one, and how far away the new one may be."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

SAMPLE = 1000  # tasks whose nearest neighbour is looked up, to know what is far


class Nearest(NamedTuple):
    """The nearest known tasks of T others: their ids, points and distances, (T, c) each."""

    ids: np.ndarray
    n: np.ndarray
    distance: np.ndarray


class Neighbourhood:
    """The tasks that a learner keeps, at their Phi, each feature in its standard deviations.

    Attributes
    ----------
    farthest : float
        The largest distance of a task from its nearest neighbour. Of T + 1 tasks drawn alike one
        lies farther off than all the others with probability 1 / (T + 1).
    """

    def __init__(self, ids: np.ndarray, n: np.ndarray, Phi: np.ndarray):
        self.ids, self.n = ids, n
        scale = Phi.std(axis=0)
        self.scale = np.where(scale > 1e-12 * np.abs(Phi).max(axis=0), scale, 1.0)
        self.Z = Phi / self.scale

    @classmethod
    def of(cls, learner: Any) -> Neighbourhood | None:
        """Return the tasks with points of a learner, or None if it does not keep their Phi."""
        store = learner.__dict__.get("_store")
        if store is None or store.Phi is None or not store.Phi.shape[1]:
            return None
        there = (store.sizes > 0) & np.isfinite(store.Phi).all(axis=1)
        if there.sum() < 2:
            return None
        return cls(store.ids[there], store.sizes[there], store.Phi[there])

    @cached_property
    def _index(self):
        from sklearn.neighbors import NearestNeighbors

        return NearestNeighbors().fit(self.Z)

    @cached_property
    def farthest(self) -> float:
        at = np.unique(np.linspace(0, len(self.Z) - 1, SAMPLE).astype(int))
        # The nearest one of a known task is itself, or a twin at the same distance 0.
        return float(self._index.kneighbors(self.Z[at], 2)[0][:, 1].max())

    def nearest(self, Phi: np.ndarray, count: int = 1, ids: np.ndarray | None = None) -> Nearest:
        """Return the nearest tasks of those at Phi (T, k), the nearest first; of `ids`, other ones.

        A known task is not its own neighbour.
        """
        more = min(count + (ids is not None), len(self.Z))
        distance, at = self._index.kneighbors(Phi / self.scale, more)
        if ids is not None and more > 1:
            own = self.ids[at] == ids[:, None]
            own[~own.any(axis=1), -1] = True  # leave out the farthest instead
            keep = np.argsort(own, axis=1, kind="stable")[:, : more - 1]
            distance, at = (np.take_along_axis(part, keep, axis=1) for part in (distance, at))
        return Nearest(self.ids[at], self.n[at], distance)
