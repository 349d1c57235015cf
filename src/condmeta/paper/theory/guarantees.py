"""Theorem 2 for an environment: independent, unconditional and conditional learning compared."""

from typing import Any, Literal, NamedTuple

from condmeta.paper.environments import own
from condmeta.paper.theory.bounds import Bound, bound_learned, largest_slope
from condmeta.paper.theory.kernel_oracle import environment_path, is_kernel
from condmeta.paper.theory.oracle import best_linear
from condmeta.paper.theory.radii import radii
from condmeta.paper.theory.sources import N_TASKS, draw, loss_of_numbers
from condmeta.typing import (
    Environment,
    FeatureMapLike,
    InnerName,
    KernelLike,
    LossLike,
    Numbers,
    RandomState,
)


class Guarantees(NamedTuple):
    """Hold the bounds of Theorem 2 for three ways of learning, each at its best lam, meta_step.

    Attributes
    ----------
    independent, unconditional, conditional : Bound
        For tau = 0, tau = w_rho, and the best linear function of the features.

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.Circle(radius=8.0, center=1.0, d=20)
    >>> bounds = cm.theory.guarantees(env, cm.feature_maps.CircleMap(), T=1000)
    >>> [round(bound.value, 1) for bound in bounds]
    [20.9, 19.4, 11.7]
    >>> bounds.sentence
    'Conditional learning has the smallest bound, 11.7: 40 % below that of unconditional learning.'
    """

    independent: Bound
    unconditional: Bound
    conditional: Bound

    @property
    def sentence(self) -> str:
        """What the bounds say; if that of conditional learning says nothing, why not."""
        found, rivals = self.conditional.value, {"independent": self.independent.value}
        rivals["unconditional"] = self.unconditional.value
        rival = min(rivals, key=lambda name: rivals[name])
        least = rivals[rival]
        if found < least:
            gain = f"{1 - found / least:.0%}".replace("%", " %")
            return (
                f"Conditional learning has the smallest bound, {found:.3g}: {gain} below that of "
                f"{rival} learning."
            )
        bound = (
            f"The bound of conditional learning, {found:.3g}, is not below that of {rival} "
            f"learning, {least:.3g}"
        )
        share = self.conditional.learning / found
        if share < 0.5:
            return f"{bound}: the features explain too little of the weights of tasks."
        percent = f"{share:.0%}".replace("%", " %")
        return (
            f"{bound}: {percent} of it is the cost of learning the map from T tasks. This cost "
            "grows with the norms of the features and of the best map, which are huge for many "
            "random features, and falls like 1 / sqrt(T). Take more tasks, fewer or smaller "
            "features, or a kernel, whose bound weighs norm against variance."
        )

    def __repr__(self) -> str:
        parts = (f"{name}={bound!r}" for name, bound in self._asdict().items())
        return f"Guarantees({', '.join(parts)})\n{self.sentence}"


def guarantees(
    environment: Environment, feature_map: FeatureMapLike | KernelLike, T: int, *,
    n: Numbers | None = None, loss: LossLike = "absolute", inner: InnerName = "batch",
    how: Literal["rms", "max"] = "rms", n_tasks: int = N_TASKS, random_state: RandomState = 0,
) -> Guarantees:  # fmt: skip
    """Return the bounds of independent, unconditional and conditional learning.

    Parameters
    ----------
    environment : environment
        If the feature map reads points, it reads the points of these tasks; the n training points
        are additional ones.
    feature_map : map, list of maps, "auto", kernel or None
        For a kernel the bound is the least over functions of its space: a smaller norm may be
        worth more variance.
    T : int
        Number of training tasks.
    n : int or array, optional
        Training points of a task, or of each task; by default `environment.n`.
    loss : str or loss
        Determines L: a loss of numbers, as environments draw no classes, with bounded slopes.
    inner : {"batch", "online"}
    how : {"rms", "max"}
        How `radii` computes R and K from drawn tasks; "max" needs bounded inputs.
    n_tasks, random_state
        Number and seed of the tasks drawn to compute R and K, and the variances if they have no
        closed form.

    Examples
    --------
    >>> import condmeta as cm
    >>> env = cm.environments.paper_environment("two-clusters-mean-0")
    >>> bounds = cm.theory.guarantees(env, cm.feature_maps.MeanInput(), T=300, n=10)
    >>> bounds.conditional.value < bounds.unconditional.value == bounds.independent.value
    True
    """
    L = largest_slope(loss_of_numbers(loss))
    tasks = draw(environment, n_tasks, random_state)
    drawn = {"n_tasks": n_tasks, "random_state": random_state}
    shared = {"n": own.n_points(environment) if n is None else n, "T": T, "inner": inner}
    plain = best_linear(environment, None, **drawn)
    R, K = radii(tasks, feature_map, how=how)
    norm2 = float(plain.moments.w_rho @ plain.moments.w_rho)
    shared |= {"L": L, "R": R}
    return Guarantees(
        bound_learned((plain.mean + norm2) ** 0.5, 0.0, **shared),
        bound_learned(plain.mean**0.5, norm2**0.5, **shared),
        min(
            (
                bound_learned(V, norm, K=K, **shared)
                for V, norm in _pairs(environment, feature_map, **drawn)
            ),
            key=lambda bound: bound.value,
        ),
    )


def _pairs(environment: Any, feature_map: Any, **drawn: Any) -> list[tuple[float, float]]:
    """Return V and ||(M, b)||_F of the functions to compare with."""
    if is_kernel(feature_map):
        path = environment_path(environment, feature_map, **drawn)
        return [(found.root, function.norm) for function, found, _ in path]
    best = best_linear(environment, feature_map, **drawn)
    return [(best.variance**0.5, best.min_norm.norm)]
