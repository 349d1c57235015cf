r"""A general latent variable alpha behind the weights and the inputs of a task (Appendix B.1).

With w(alpha) = E[w | alpha] and 2 sigma(alpha)^2 = E[||w - w(alpha)||^2 | alpha],

    tau_rho(X) = E[w(alpha) | X],
    Var(w_rho)^2   = E 2 sigma(alpha)^2 + E ||w(alpha) - w_rho||^2,
    Var(tau_rho)^2 = E 2 sigma(alpha)^2 + E ||w(alpha) - tau_rho(X)||^2,
    gap = (1/2) int (1 - eps(a, a')) ||w(a) - w(a')||^2,   eps(a, a') = int p(X|a) p(X|a') / p(X).

The clusters of Example 1 are the case of finitely many alpha.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.paper.environments import drawing
from condmeta.paper.environments.posterior import flat_points, gaussian_posterior, sums_of_points
from condmeta.paper.environments.sampled import read_only
from condmeta.paper.environments.variances import Variances
from condmeta.tasks import TaskSet
from condmeta.typing import Numbers, RandomState

NODES = 2000  # draws of alpha that stand for its distribution in tau_rho
DRAWS = 5000  # tasks drawn for the variances
BLOCK = 1 << 22  # posterior probabilities held at a time


class Latent(drawing.DrawnEnvironment):
    """Draw tasks whose weights and inputs depend on a latent variable alpha.

    A task draws alpha, weights w ~ N(w(alpha), sigma(alpha)^2 I), n inputs x ~ N(x(alpha),
    sigma_x^2 I) and labels y = <x, w> + noise. There is no side table; the inputs are the side
    information, and they tell of w only what they tell of alpha.

    Parameters
    ----------
    draw : function (generator, T) -> array
        T draws of alpha, one row for each task.
    w, x : functions of these rows that return (T, d)
        Means of the weights and centres of the inputs.
    sigma_w : float in [0, inf), or a function of the rows that returns (T,)
        Standard deviation of each weight around w(alpha).
    sigma_x : float in (0, inf)
    n, snr, noise
        As for `Clusters`.
    n_nodes : int
        `tau` is the posterior mean over this many draws of alpha, the same for all tasks: an
        approximation of tau_rho. Use more nodes if alpha has many dimensions, or if a task has many
        points.

    Attributes
    ----------
    d : int
    w_rho : (d,) array
        Mean of w(alpha) over the nodes.

    Examples
    --------
    >>> import numpy as np
    >>> env = Latent(
    ...     lambda rng, T: rng.normal(size=(T, 1)), w=lambda a: np.hstack([2 * a, a]),
    ...     x=lambda a: np.hstack([a, 0 * a]), n=5)
    >>> env.sample(3, random_state=0).X.shape
    (15, 2)
    >>> v = env.variances()
    >>> abs(v.gap - 5 * 5 / 6) < 4 * v.error      # alpha is normal: Var w(alpha) n / (n + 1)
    True
    """

    def __init__(
        self, draw: Callable[..., Any], w: Callable[..., Any], x: Callable[..., Any], *,
        sigma_w: float | Callable[..., Any] = 1.0, sigma_x: float = 1.0, n: int = 20,
        snr: float | None = 1.0, noise: float | None = None, n_nodes: int = NODES,
    ):  # fmt: skip
        self.draw, self.w, self.x, self.n_nodes = draw, w, x, n_nodes
        nodes = draw(np.random.default_rng(0), drawing.check_count(n_nodes, "n_nodes", "Latent"))
        self.d = np.shape(w(nodes))[-1]
        self._set_options(n, 0.0 if callable(sigma_w) else sigma_w, sigma_x, snr, "gaussian", noise)
        self.sigma_w = sigma_w
        self.w_nodes, self.x_nodes = (read_only(part) for part in self._at(nodes)[:2])

    @property
    def w_rho(self) -> np.ndarray:
        """Mean of the weights, (d,)."""
        return self.w_nodes.mean(axis=0)

    def _at(self, alpha: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return w(alpha) (T, d), x(alpha) (T, d) and sigma(alpha) (T,)."""
        T = len(alpha)
        spread = self.sigma_w(alpha) if callable(self.sigma_w) else np.full(T, self.sigma_w)
        parts = {"w": (self.w(alpha), (T, self.d)), "x": (self.x(alpha), (T, self.d))}
        parts["sigma_w"] = spread, (T,)
        read = {}
        for name, (values, shape) in parts.items():
            read[name] = np.asarray(values, dtype=np.float64)
            if read[name].shape != shape or not np.isfinite(read[name]).all():
                raise DataError(
                    f"The function '{name}' of Latent must return finite numbers of the shape "
                    f"{shape} for {T} rows of alpha. Got the shape {read[name].shape}."
                )
        if (read["sigma_w"] < 0).any():
            raise DataError("The function 'sigma_w' of Latent must not return negative numbers.")
        return read["w"], read["x"], read["sigma_w"]

    def _draw_places(self, rng: np.random.Generator, T: int) -> drawing.Places:
        means, centers, spread = self._at(self.draw(rng, T))
        return drawing.Places(means, centers, spread[:, None], {})

    def tau(self, points: TaskSet | Numbers, offsets: Numbers | None = None) -> np.ndarray:
        """Return tau_rho(X) = E[w(alpha) | X] of each task, (T, d), over the nodes.

        The arguments are those of `Clusters.posterior`.
        """
        sums, counts = sums_of_points(*flat_points(points, offsets, self.d))
        flat = np.zeros(len(self.x_nodes))
        step = max(1, BLOCK // len(flat))
        blocks = [slice(lo, lo + step) for lo in range(0, len(counts), step)]
        parts = [
            gaussian_posterior(sums[at], counts[at], self.x_nodes, flat, self.sigma_x)
            @ self.w_nodes
            for at in blocks
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.d))

    def variances(self, n_tasks: int = DRAWS, random_state: RandomState = 1) -> Variances:
        """Return V(0)^2, V(w_rho)^2 and V(tau_rho)^2 by Monte Carlo, with the error of the gap.

        The means are over drawn (alpha, X); ``error`` is the standard error of
        V(w_rho)^2 - V(tau_rho)^2. The variance of `tau` is that of its nodes, at least
        V(tau_rho)^2.
        """
        T = drawing.check_count(n_tasks, "n_tasks", "variances", least=2)
        streams = drawing.open_streams(random_state)
        means, centers, spread = self._at(self.draw(streams.place, T))
        X = self._draw_inputs(streams.inputs, centers, self.n)
        tau = self.tau(X.reshape(-1, self.d), np.arange(T + 1) * self.n)
        own = float(self.d * (spread**2).mean())
        zero, mean, best = (((means - at) ** 2).sum(axis=1) for at in (0.0, self.w_rho, tau))
        error = float((mean - best).std(ddof=1) / np.sqrt(T))
        return Variances(*(own + float(part.mean()) for part in (zero, mean, best)), error)

    def __repr__(self) -> str:
        return f"Latent({self.n_nodes} nodes, {self._options_text()})"
