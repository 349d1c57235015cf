"""A learned map given by kernel evaluations: tau(s) = sum_j c_j (k(s_j, s) + 1) g_j."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators import conditioning, storage
from condmeta.estimators.kernel_sides import has_side
from condmeta.estimators.parameters import jobs_of
from condmeta.estimators.task_model import user_vector
from condmeta.kernels import LinearKernel, get_kernel
from condmeta.meta.kernel_sgd import (
    KernelMap,
    KernelState,
    kernel_theta,
    learning_curve,
    squared_norm,
    task_weights,
)
from condmeta.tasks.ids import name_task


class KernelTau:
    """What a learner knows of its map once it has `_kernel`, `_support` and `_state`."""

    @property
    def b_(self) -> np.ndarray:
        """b (width,) in the learner's units: the part of the map that is the same for all tasks."""
        return self._fitted("_support").weights.sum(axis=0)

    @property
    def M_(self):  # noqa: N802
        """A kernel learner has no M: its features are never written out."""
        raise AttributeError(self._no_matrix("M_"))

    @property
    def M_frame(self):  # noqa: N802
        """A kernel learner has no M: its features are never written out."""
        raise AttributeError(self._no_matrix("M_frame"))

    def _no_matrix(self, name: str) -> str:
        return (
            f"{type(self).__name__} has no {name}: it learns by kernel evaluations and never forms "
            "M. theta_for gives tau(s), norm_ the size of (M, b); ConditionalSGDRegressor with a "
            "feature map has an M."
        )

    @property
    def norm_(self) -> float:
        """||(M, b)||_F of the map in the learner's units, by kernel evaluations."""
        support = self._fitted("_support")
        return float(np.sqrt(max(squared_norm(*support, self._kernel, jobs_of(self)), 0.0)))

    @property
    def theta_mean_(self) -> np.ndarray:
        """Mean of tau over the training tasks, in the user's units (intercept last)."""
        self._fitted("_support")
        return user_vector(self._head.preparation, self._mean())

    def learning_curve(self, side_info=None) -> Iterator[np.ndarray]:
        """Iterate over tau(s) as it was learned from the first 1, 2, ..., T training tasks.

        The whole curve costs one kernel evaluation for each pair of a training task and a task of
        `side_info`, and two vectors of memory for each of the latter.

        Parameters
        ----------
        side_info : row or table
            As for `theta_for`.

        Returns
        -------
        iterator of (d,) arrays for a row, of (V, d) arrays for a table, as `theta_for` gives them

        Examples
        --------
        >>> import condmeta as cm
        >>> model = cm.KernelConditionalSGDRegressor().fit(
        ...     [[1.0], [1.0]], [1.0, 2.0], task=["a", "b"], side_info={"a": 0, "b": 9})
        >>> [theta.round(3).tolist() for theta in model.learning_curve(4.5)]
        [[0.0], [0.08]]
        """
        self._ready()
        state = self._past()
        rows, is_row = self._sides_for(side_info)
        if not has_side(rows).all():
            raise DataError("A learning curve needs side information of every task.")
        step = self._meta_step()
        curve = learning_curve(rows, *state, self._kernel, step, self.averaging)
        curve = (user_vector(self._head.preparation, theta) for theta in curve)
        return (theta[0] for theta in curve) if is_row else curve

    def save(
        self, path, *, tasks: bool = True, resume: bool = False, include_points: bool = False
    ) -> None:
        """Write the model to a file: arrays and JSON only, nothing in it can run.

        The map is a sum over training tasks, so that the file holds their side information as the
        kernel reads it (encoded), whatever `tasks` says; their ids go with `tasks=True` alone, and
        with "precomputed". A kernel that is a function cannot be stored.

        Parameters
        ----------
        path : str or path
            Written atomically: a crash leaves the old file or the new one.
        tasks : bool
            Whether the models of the tasks go with the map.
        resume : bool
            Whether to add what `partial_fit`, `update` and `learning_curve` need.
        include_points : bool
            Kernels on sets only: agree that the conditioning points of the training tasks, which
            are data, go into the file.
        """
        held = {"tasks": tasks, "resume": resume, "include_points": include_points}
        storage.save_learner(self, path, **held)

    def slim(self, tasks: bool = True, resume: bool = False, include_points: bool = False):
        """Return a copy that holds what `save` would write."""
        self._ready()
        if getattr(self._kernel, "reads_points", False) and not include_points:
            raise DataError(
                f"The map of {type(self._kernel).__name__} is a sum over points of the training "
                "tasks, which would go into the file. Say save(..., include_points=True) to agree, "
                "or use a kernel on side information."
            )
        slim = copy.copy(self)
        slim._theta_mean = self._mean()
        if not resume and self._state is not None:
            used = task_weights(len(self._state.sides), self._meta_step(), self.averaging) != 0
            sides, weights = self._support
            slim._state, slim._support = None, KernelMap(sides[used], weights[used])
        return storage.slimmed(slim, tasks, resume)

    def _past(self) -> KernelState:
        if self._state is None:
            raise DataError(
                "This model was saved without what partial_fit and learning_curve need. Save it "
                "with resume=True."
            )
        return self._state

    def _mean(self) -> np.ndarray:
        """Return the mean of tau over the training tasks (width,), which costs T^2 evaluations."""
        if "_theta_mean" not in self.__dict__:
            theta = self._tau(self._past().sides, self._support)
            self._theta_mean = theta.sum(axis=0) / max(len(theta), 1)
        return self._theta_mean

    def _tau(self, sides, support: KernelMap) -> np.ndarray:
        return kernel_theta(sides, *support, self._kernel, jobs_of(self))

    def _theta(self, sides) -> np.ndarray:
        """Return theta (T, width), the mean of tau for tasks without what the kernel reads."""
        here = has_side(sides)
        if here.all():
            return self._tau(sides, self._support)
        theta = np.empty((len(sides), self._head.preparation.width))
        theta[here] = self._tau(sides[here], self._support)
        theta[~here] = self._mean()
        return theta

    def _features(self, ids, table, points):
        """Return what the kernel reads of tasks."""
        fill = np.full(len(self._map.names_out_), np.nan)
        sides = conditioning.features_of(self._map, ids, table, points, fill, self.missing_side)
        if getattr(self._kernel, "one_size", False):
            self._require_one_size(ids, sides)
        return sides

    def _require_one_size(self, ids, sides) -> None:
        sizes = sides.sizes
        known = self._support.sides.sizes if "_support" in self.__dict__ else sizes
        expected = known[known > 0][:1]
        odd = (sizes > 0) & (sizes != expected) if len(expected) else np.zeros(len(sizes), bool)
        if odd.any():
            t = int(np.argmax(odd))
            raise DataError(
                f"{name_task(ids[t])} has {sizes[t]} conditioning points where others have "
                f"{expected[0]}, and {type(self._kernel).__name__} compares sets of one size. Use "
                "MeanEmbedding, which takes sets of any size."
            )

    def _choose_kernel(self) -> None:
        """Set the kernel; without side information it is 0, and tau is b for every task."""
        self._kernel = get_kernel(self.kernel)
        if not len(self._map.names_out_):
            self._kernel = LinearKernel()

    def _export_tau(self) -> dict:
        """Return what a model file holds of the map."""
        sides, weights = self._support
        state = self._state
        return {
            "sides": sides,
            "weights": weights if state is None else None,
            "gradients": None if state is None else state.gradients,
            "theta_mean": self._mean(),
        }

    def _restore_tau(self, parts: dict, width: int) -> None:
        """Take the map from a model file, or say that its arrays do not fit."""
        sides, gradients = parts["sides"], parts["gradients"]
        self._theta_mean, self._state = parts["theta_mean"], None
        self._choose_kernel()
        if gradients is None:
            self._support = KernelMap(sides, parts["weights"])
        else:
            self._set_state(KernelState(sides, gradients))
        first = self._tau(sides[:1], self._support)  # fails where sides and kernel do not fit
        fits = len(sides) == len(self._support.weights) and first.shape[1:] == (width,)
        if isinstance(sides, np.ndarray):
            fits = fits and sides.shape[1] == len(self._map.names_out_)
        if not fits:
            raise ValueError("the support has other sizes than the rest")
        if self._theta_mean.shape != (width,):
            raise ValueError(f"theta_mean has shape {self._theta_mean.shape}")

    def _set_state(self, state: KernelState) -> None:
        c = task_weights(len(state.sides), self._meta_step(), self.averaging)
        self._state = state
        self._support = KernelMap(state.sides, c[:, None] * state.gradients)
