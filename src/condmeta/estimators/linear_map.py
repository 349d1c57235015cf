"""A learned map with explicit weights: tau(s) = M Phi(s) + b."""

from __future__ import annotations

import numpy as np

from condmeta.estimators import conditioning, tables
from condmeta.estimators.task_model import user_vector


class LinearMap:
    """What learners know of their map once `_learn` has set `_weights` and `_phi_mean`.

    `_weights` (k+1, width) has b in its last row; `_phi_mean` (k,) is the mean training Phi.
    """

    @property
    def M_(self) -> np.ndarray:  # noqa: N802
        """M (width, k) in the learner's units."""
        return self._fitted("_weights")[:-1].T

    @property
    def b_(self) -> np.ndarray:
        """b (width,) in the learner's units."""
        return self._fitted("_weights")[-1]

    @property
    def theta_mean_(self) -> np.ndarray:
        """Tau at the mean training Phi, in the user's units (intercept last)."""
        mean = self._fitted("_phi_mean")
        return user_vector(self._head.preparation, self._theta(mean))

    def M_frame(self, wide: bool = False):  # noqa: N802 - named after the paper's M
        """Return the map as a table, in the user's units: effect of each side feature.

        The last side feature, "(base)", is b: tau at Phi = 0.
        """
        self._ready()
        return tables.map_table(self, wide)

    def _theta(self, Phi) -> np.ndarray:
        """Return theta = M Phi + b of tasks (T, width), in the learner's units."""
        return Phi @ self._weights[:-1] + self._weights[-1]

    def _features(self, ids, table, points) -> np.ndarray:
        """Return Phi (T, k); what a task lacks is filled in by the mean training Phi.

        A known task without a side row has the Phi that it is known by.
        """
        at = self._known_sides(ids, table)
        if (at >= 0).any():
            Phi = np.empty((len(ids), self._map.n_features_out))
            Phi[at >= 0] = self._store.Phi[at[at >= 0]]
            if (at < 0).any():
                Phi[at < 0] = self._features(ids[at < 0], table, points)
            return Phi
        fill = self.__dict__.get("_phi_mean")
        if fill is None and (self._map.reads_points or self.missing_side == "mean"):
            fill = self._first_fill(ids, table, points)
        return conditioning.features_of(self._map, ids, table, points, fill, self.missing_side)

    def _known_sides(self, ids, table) -> np.ndarray:
        """Return where in the store tasks without a side row are known (T,); -1 is nowhere."""
        store = self.__dict__.get("_store")
        if store is None or store.Phi is None or self._map.reads_points:
            return np.full(len(ids), -1)
        has = np.zeros(len(ids), bool) if table is None else table.has(ids)
        return np.where(has, -1, store.positions(ids.tolist()))

    def _first_fill(self, ids, table, points) -> np.ndarray:
        """Return the mean Phi of those training tasks that have all that the maps read."""
        complete = np.ones(len(ids), bool)
        if self._map.reads_table:
            complete &= table.has(ids) if table is not None else False
        if self._map.reads_points and points is not None:
            complete &= np.diff(points[2]) > 0
        zeros = np.zeros(self._map.n_features_out)
        Phi = conditioning.features_of(self._map, ids, table, points, zeros, "mean")
        return Phi[complete].mean(axis=0) if complete.any() else zeros

    def _export_tau(self) -> dict:
        """Return what a model file holds of the map."""
        state = self.__dict__.get("_state")
        return {"weights": self._weights, "phi_mean": self._phi_mean, "state": state}

    def _restore_tau(self, parts: dict, width: int) -> None:
        """Take the map from a model file, or say that its arrays do not fit."""
        self._weights, self._phi_mean = parts["weights"], parts["phi_mean"]
        k = self._map.n_features_out
        expected = {"weights": (k + 1, width), "phi_mean": (k,)}
        found = {"weights": self._weights.shape, "phi_mean": self._phi_mean.shape}
        if found != expected:
            raise ValueError(f"arrays of shapes {found} instead of {expected}")
        if parts["state"] is not None:
            self._state = parts["state"]
