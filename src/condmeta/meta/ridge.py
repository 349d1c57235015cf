r"""A learned prior over task weights: mean W phi, covariance H, noise s2.

With phi_t = (Phi(s_t), 1) and W = (M, b),

    w_t ~ N(W phi_t, H),   y_ti ~ N(<x_ti, w_t>, s2),

and a ridge on the map, the fit maximises

    J = sum_t log N(y_t; X_t W phi_t, s2 I + X_t H X_t^T) - (kappa/2) tr(M^T H^-1 M).

One evaluation reads each task's statistics X^T X, X^T y, y^T y and n; its cost does not depend on
n. With H = L L^T, the posteriors of `condmeta.inner.posterior` give J and its gradient:

    dJ/dW = sum_t g_t phi_t^T - kappa H^-1 M,   dJ/dlog s2 = (sum_t rss_t / s2 - sum_t n_t) / 2,
    dJ/dL = sum_t g_t g_t^T L - L^-T R + kappa H^-1 M M^T L^-T, lower triangle.

Steps and coordinates are those of `meta.prior`.
"""

from functools import partial

import numpy as np

from condmeta.engine import twin
from condmeta.inner.posterior import posterior_of_statistics
from condmeta.inner.squared import SquaredState
from condmeta.meta.ascent import DEFAULT_STOPPING, Ascent, Stopping, ascend
from condmeta.meta.blocks import Block, Blocks, OneBlock, Sums
from condmeta.meta.prior import (
    METRICS,
    SHORT,
    SMALLEST,
    FactorFrame,
    Frame,
    LearnedPrior,
    Prior,
    PriorModel,
    maximise,
)
from condmeta.meta.side_noise import noise_factors

FLOOR = 0.3  # see `floors`
SMALL = 1 << 18  # multiplications of features and maps up to which the compiled loop is faster


def learn_prior(
    stats: SquaredState, Phi, metric: str, kappa: float, start: Prior | None = None, *,
    noise: float | None = None, stopping=DEFAULT_STOPPING, n_jobs=1, trace=None,
) -> LearnedPrior:  # fmt: skip
    """Fit the prior to the tasks.

    Parameters
    ----------
    stats : SquaredState of T tasks
    Phi : (T, k) array
        Standardised, so that one kappa suits all columns.
    metric : "identity", "diagonal" or "full"
    kappa : float in [0, inf]
        Infinity leaves the side information out: M = 0.
    start : Prior, optional
        Where to start, e.g. the fit of a neighbouring kappa.
    noise : float, optional
        s2 where it is known; it is learned else.
    stopping : Stopping
        Its `tol` is in standard errors of each parameter.
    trace : list, optional
        Receives J after every step.
    """
    blocks = OneBlock.of(stats, Phi, n_jobs)
    return learn_from_blocks(blocks, metric, kappa, start, noise, stopping, trace)


def learn_from_blocks(
    blocks: Blocks, metric: str, kappa: float, start: Prior | None = None, noise=None,
    stopping=DEFAULT_STOPPING, trace=None, inverse=None, totals: Sums | None = None, delta=None,
) -> LearnedPrior:  # fmt: skip
    """Fit the prior to tasks that are read block by block (see `learn_prior` and `maximise`).

    `totals` are `totals_of(blocks)`, where several fits need them. With `delta` (k,) the noise of a
    task is s2 exp(delta . Phi) (see `meta.side_noise`).
    """
    model = RidgeModel(blocks, kappa, noise, totals, delta)
    return maximise(model, metric, start, stopping, trace, inverse)


def totals_of(blocks: Blocks) -> Sums:
    """Return the sums of the statistics, of phi phi^T, and the number of tasks."""
    return blocks.map_sum(_totals)


@twin
def climb_prior(
    gram, moment, square, count, Phi1, kappa, W, L, s2, basis, C, units, metric, lowest, highest,
    tol, most,
):  # fmt: skip
    """Maximise J in one frame: return coordinates, values and evaluations (see `ascend`).

    gram, moment, square, count: see `SquaredState`; Phi1 (T, k+1); W, L, s2: the prior at the
    centre of the frame; basis, C, units: see `Frame`, with the unit of the noise last; metric: a
    position in METRICS.
    """
    model = RidgeModel(OneBlock(Block(SquaredState(gram, moment, square, count), Phi1)), kappa)
    factor = FactorFrame(L, basis, list(METRICS)[metric], units[:2], SHORT)
    frame = Frame(Prior(W, L, s2), factor, C, units[2])
    zero, stopping = np.zeros(frame.size), Stopping(tol, most)
    slope = partial(model.slope, frame)
    return ascend(slope, zero, lowest, highest, stopping, holds=frame.holds, reach=SHORT.reach)


class RidgeModel(PriorModel):
    """J of labels with normal noise, from statistics."""

    limits = SHORT  # the ridge on the map grows without end where a standard deviation goes to zero

    def __init__(
        self, blocks: Blocks, kappa: float, noise=None, totals: Sums | None = None, delta=None
    ):
        self.blocks, self.noise, self.delta = blocks, noise, delta
        totals = totals_of(blocks) if totals is None else totals
        self.gram, self.moment, self.square, n_points, products, n_tasks = totals
        super().__init__((int(n_tasks), len(self.moment)), n_points, products, kappa)

    def climb(self, frame: Frame, stopping: Stopping, inverse=None) -> Ascent:
        """Maximise J in one frame, by one compiled call if the matrices are small."""
        (T, d), rows = self.shape, self.rows
        block = self.blocks.only if rows * d * (T + rows) <= SMALL else None
        if block is None:
            return super().climb(frame, stopping, inverse)
        stats, constant = block.stats, 0.0
        if self.delta is not None:
            factors = noise_factors(block.Phi1[:, :-1], self.delta)
            stats, constant = stats.divided(factors), -0.5 * float(stats.count @ np.log(factors))
        Phi1 = np.ascontiguousarray(block.Phi1[:, -rows:])
        units = np.append(frame.factor.units, frame.noise_unit)
        found = Ascent(*climb_prior(
            *stats, Phi1, self.kappa, *frame.start, frame.factor.basis, frame.C, units,
            list(METRICS).index(frame.metric), *frame.bounds(*self.noise_range()), *stopping,
        ))  # fmt: skip
        return found._replace(values=found.values + constant)

    def likelihood(self, prior: Prior, inverse, correlated: bool):
        """Return the log likelihood and its derivatives, from the statistics of the tasks."""
        value, rss, by_W, gg, R = self.blocks.map_sum(_evaluate, prior, correlated, self.delta)
        by_log_s2 = (float(rss) / prior.s2 - self.n_points) / 2  # of rss_t / (s2_t / s2)
        return float(value), by_W, gg @ prior.L - inverse.T @ R, by_log_s2

    def noise_range(self) -> tuple[float, float]:
        """Return the range of s2: the known one, or above 0, which labels fitted exactly reach."""
        if self.noise is not None:
            return self.noise, self.noise
        return max(1e-10 * float(self.square) / self.n_points, SMALLEST), np.inf

    def natural_variance(self, s2: float) -> float:
        """Return s2 over the mean of ||x||^2."""
        return s2 / max(float(np.trace(self.gram)) / self.n_points, SMALLEST)

    def floors(self, s2: float, metric: str) -> np.ndarray:
        """Return a share of the standard errors (d,) of coefficients from one task of mean size."""
        squares = self.gram.diagonal() / self.shape[0]
        squares = np.full_like(squares, squares.mean()) if metric == "identity" else squares
        variances = np.divide(s2, squares, out=np.zeros_like(squares), where=squares > 0)
        return FLOOR * np.sqrt(variances)

    def start(self) -> Prior:
        """Return a pooled ridge of all tasks as b, M = 0, half its noise as s2, and a small L."""
        d = len(self.moment)
        system = self.gram.copy()
        system[np.arange(d), np.arange(d)] += max(1e-6 * np.trace(system) / d, SMALLEST)
        W = np.zeros((self.rows, d))
        W[-1] = np.linalg.solve(system, self.moment)
        (errors,) = self.blocks.map_sum(_errors, W[-1])
        s2 = float(np.clip(0.5 * errors / self.n_points, *self.noise_range()))
        return Prior(W, np.sqrt(self.natural_variance(s2)) * np.eye(d), s2)


def _totals(block: Block) -> Sums:
    """Return the sums of the statistics, of phi phi^T, and the number of tasks."""
    gram, moment, square, count = block.stats
    sums = gram.sum(axis=0), moment.sum(axis=0), square.sum(), count.sum()
    return *sums, block.Phi1.T @ block.Phi1, np.int64(len(moment))


def _evaluate(block: Block, prior: Prior, correlated: bool, delta=None) -> Sums:
    """Return the sums of loglik, of rss, of phi g^T, of g g^T, and R (see `posterior_pass`).

    With `delta` it is the sum of rss over the factors of the noise.
    """
    given, Phi1, n_jobs = block
    W, L, s2 = prior
    factors = noise_factors(Phi1[:, :-1], delta)
    s2 = s2 if factors is None else s2 * factors
    Phi1 = Phi1[:, -len(W) :]
    g, R, rss, loglik, _ = posterior_of_statistics(given, Phi1 @ W, L, s2, n_jobs, correlated)
    rss = rss if factors is None else rss / factors
    return loglik.sum(), rss.sum(), Phi1.T @ g, g.T @ g, R


def _errors(block: Block, w) -> Sums:
    """Return the sum of ||y - X w||^2, w (d,)."""
    theta = np.broadcast_to(w, (len(block.Phi1), len(w)))
    return (block.stats.squared_errors(theta).sum(),)
