"""The paper's grid: 196 pairs (lam, meta_step), 300 training tasks, 180 judged after every one.

Two clusters, w_rho = 4, seed 0: d = k = 20, n = 10 points to learn from, m = 10 to be judged by.
Slow peers run over the first training tasks only, and their times are scaled up; the notes state
how many tasks. Our floating-point operations, for each pair and each training task, with V tasks
to be judged:
V (2 (n + m) d + n (n - 1) + 2 m n + 9 d + 2 n + 2 m) + 6 (k + 1) d + 4 n d + n (n - 1).
This benchmark alone: `python -m benchmarks.grid`.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

import numpy as np

from benchmarks.common import (
    agree,
    at_least,
    fastest,
    interleaved,
    no_goal,
    require,
    row,
    show_time,
    timed,
)
from condmeta.engine import compiled_core
from condmeta.environments import PAPER_SETTINGS, paper_environment
from condmeta.losses import Absolute
from condmeta.meta.grid import GridPoints, grid_curves, grid_train

NAME = "two-clusters-mean-4"
REPEATS = 7
DIRECT_STEPS, JAX_STEPS, LOOP_STEPS, LOOP_PAIRS = 12, 12, 2, 4


class Grid(NamedTuple):
    """The training tasks, the evaluation tasks, and the pairs."""

    train: GridPoints
    Phi: np.ndarray
    support: GridPoints
    query: GridPoints
    Phi_held: np.ndarray
    lam: np.ndarray
    meta_step: np.ndarray

    @classmethod
    def draw(cls) -> Grid:
        """Draw the tasks of seed 0 with their mean inputs as side information."""
        setting = PAPER_SETTINGS[NAME]
        n_train, *held = setting.n_tasks
        tasks = paper_environment(NAME).sample(n_train + sum(held), random_state=0)
        d, n = tasks.n_features, int(tasks.offsets[1] * setting.train_points)
        X, y = tasks.X.reshape(len(tasks), -1, d), tasks.y.reshape(len(tasks), -1)
        values = np.geomspace(*setting.grid[1:], setting.grid[0])
        lam, meta_step = (side.ravel() for side in np.meshgrid(values, values, indexing="ij"))
        Phi = X[:, :n].mean(axis=1)
        return cls(
            _points(X[:n_train, :n], y[:n_train, :n]), Phi[:n_train],
            _points(X[n_train:, :n], y[n_train:, :n]), _points(X[n_train:, n:], y[n_train:, n:]),
            Phi[n_train:], lam, meta_step,
        )  # fmt: skip

    def part(self, steps: int, tasks: int | None = None, pairs: int | None = None) -> Grid:
        """Return it with the first training tasks, and some of the evaluation tasks and pairs."""
        lanes = slice(None)
        if pairs is not None:
            lanes = np.linspace(0, len(self.lam) - 1, pairs).astype(int)
        return Grid(
            _head(self.train, steps), self.Phi[:steps], _head(self.support, tasks),
            _head(self.query, tasks), self.Phi_held[:tasks], self.lam[lanes], self.meta_step[lanes],
        )  # fmt: skip

    def blocks(self):
        """Return train, support and query as arrays (tasks, n, d) and (tasks, n)."""
        d = self.Phi.shape[1]
        return [(X.reshape(len(at) - 1, -1, d), y.reshape(len(at) - 1, -1))
                for X, y, at in (self.train, self.support, self.query)]  # fmt: skip

    def flops(self) -> float:
        """Return the operations of our algebra; see the formula above."""
        (T, d), V = self.Phi.shape, len(self.Phi_held)
        n, m = self.support.offsets[1], self.query.offsets[1]
        judged = 2 * (n + m) * d + n * (n - 1) + 2 * m * n + 9 * d + 2 * n + 2 * m
        trained = 6 * (d + 1) * d + 4 * n * d + n * (n - 1)
        return float(len(self.lam) * T * (V * judged + trained))


def gram(grid: Grid, engine: str, n_jobs: int = 1) -> np.ndarray:
    """Return the mean error after every training task (T, L), by condmeta's engine."""
    (T, d), V, L = grid.Phi.shape, len(grid.Phi_held), len(grid.lam)
    core, loss = compiled_core(), Absolute()
    if engine == "native":
        train, curves, loss = core.grid_train, core.grid_curves, loss.native
    else:
        train, curves = grid_train.reference, grid_curves.reference
    state = np.zeros((d + 1, d, L)), np.zeros((d + 1, d, L)), np.zeros(d + 1)
    gradients = np.empty((T, d, L))
    pairs = grid.lam, grid.meta_step
    train(*state, *grid.train, grid.Phi, *pairs, loss, False, False, gradients, n_jobs)
    kk = grid.Phi @ grid.Phi_held.T + 1.0
    group = np.zeros(V, dtype=np.int64)
    return curves(
        gradients, kk, *grid.support, *grid.query, group, 1, *pairs, loss, False, False, n_jobs
    )[0]


def direct(grid: Grid) -> np.ndarray:
    """Return the same by the recursion as it is written, vectorised over tasks and pairs.

    w (V, d, L) is formed for all evaluation tasks and pairs at once, after every training task.
    """
    (X, y), (Xs, ys), (Xq, yq) = grid.blocks()
    lam, step = grid.lam, grid.meta_step
    d, k, L = X.shape[2], grid.Phi.shape[1], len(lam)
    M, mean_M = np.zeros((k + 1, d, L)), np.zeros((k + 1, d, L))
    Phi1, held1 = (np.column_stack([phi, np.ones(len(phi))]) for phi in (grid.Phi, grid.Phi_held))
    curve = np.empty((len(X), L))
    for t in range(len(X)):
        mean_M += (M - mean_M) / (t + 1)
        theta = np.tensordot(Phi1[t], M, 1)
        _, w = online_direct(theta[None], X[t : t + 1], y[t : t + 1], lam)
        M += step * Phi1[t][:, None, None] * (lam * (w[0] - theta))
        mean, _ = online_direct(np.tensordot(held1, mean_M, 1), Xs, ys, lam)
        curve[t] = np.abs(Xq @ mean - yq[:, :, None]).mean(axis=(0, 1))
    return curve


def online_direct(theta, X, y, lam) -> tuple[np.ndarray, np.ndarray]:
    """Run w_{i+1} = w_i - (s_i x_i + lam (w_i - theta)) / (lam i); return the mean and last w."""
    w, mean = theta.copy(), np.zeros_like(theta)
    for i in range(X.shape[1]):
        x = X[:, i, :, None]
        mean += w
        s = np.sign((x * w).sum(axis=1) - y[:, i, None])
        w = w - (s[:, None, :] * x + lam * (w - theta)) / (lam * (i + 1))
    return mean / X.shape[1], w


def loops(grid: Grid) -> np.ndarray:
    """Return the same by plain loops over pairs, tasks and points, vectors in NumPy."""
    (X, y), (Xs, ys), (Xq, yq) = grid.blocks()
    curve = np.empty((len(X), len(grid.lam)))
    for pair, (lam, step) in enumerate(zip(grid.lam, grid.meta_step, strict=True)):
        d, k = X.shape[2], grid.Phi.shape[1]
        M, b, mean_M, mean_b = np.zeros((d, k)), np.zeros(d), np.zeros((d, k)), np.zeros(d)
        for t in range(len(X)):
            mean_M, mean_b = mean_M + (M - mean_M) / (t + 1), mean_b + (b - mean_b) / (t + 1)
            theta = M @ grid.Phi[t] + b
            _, w = online_loop(theta, X[t], y[t], lam)
            g = -lam * (w - theta)
            M, b = M - step * np.outer(g, grid.Phi[t]), b - step * g
            errors = []
            for phi, *points in zip(grid.Phi_held, Xs, ys, Xq, yq, strict=True):
                mean, _ = online_loop(mean_M @ phi + mean_b, points[0], points[1], lam)
                errors.append(np.mean(np.abs(points[2] @ mean - points[3])))
            curve[t, pair] = np.mean(errors)
    return curve


def online_loop(theta, X, y, lam) -> tuple[np.ndarray, np.ndarray]:
    """Run the recursion on one task; return the mean iterate and the last."""
    w, total = theta, np.zeros_like(theta)
    for i in range(len(y)):
        total += w
        s = np.sign(X[i] @ w - y[i])
        w = w - (s * X[i] + lam * (w - theta)) / (lam * (i + 1))
    return total / len(y), w


def jax_direct():
    """Return the recursion in JAX, vmap over tasks and pairs and scan over steps, or None."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)

    def inner(theta, X, y, lam):
        def point(state, data):
            w, total, i = state
            x, label = data
            s = jnp.sign(x @ w - label)
            return (w - (s * x + lam * (w - theta)) / (lam * i), total + w, i + 1), None

        (w, total, _), _ = jax.lax.scan(point, (theta, jnp.zeros_like(theta), 1.0), (X, y))
        return total / len(y), w

    def pair(lam, step, train, Phi1, support, query, held1):
        def task(state, data):
            M, mean_M, t = state
            X, y, phi = data
            mean_M = mean_M + (M - mean_M) / t
            theta = phi @ M
            _, w = inner(theta, X, y, lam)
            mean, _ = jax.vmap(inner, (0, 0, 0, None))(held1 @ mean_M, *support, lam)
            error = jnp.abs(jnp.einsum("vmd,vd->vm", query[0], mean) - query[1]).mean()
            return (M + step * jnp.outer(phi, lam * (w - theta)), mean_M, t + 1), error

        start = jnp.zeros((Phi1.shape[1], train[0].shape[2]))
        return jax.lax.scan(task, (start, start, 1.0), (*train, Phi1))[1]

    run = jax.jit(jax.vmap(pair, (0, 0, None, None, None, None, None), out_axes=1))

    def call(grid: Grid) -> np.ndarray:
        train, support, query = grid.blocks()
        Phi1, held1 = (
            np.column_stack([phi, np.ones(len(phi))]) for phi in (grid.Phi, grid.Phi_held)
        )
        return np.asarray(run(grid.lam, grid.meta_step, train, Phi1, support, query, held1))

    return call


def main() -> list[dict]:
    """Compare the answers, then the times."""
    grid = Grid.draw()
    require(compiled_core() is not None, "The compiled core was not built.")
    _agreement(grid)
    square = np.random.default_rng(0).standard_normal((1000, 1000))
    runs = interleaved({"ours": lambda: gram(grid, "native"), "dgemm": lambda: square @ square},
                       REPEATS)  # fmt: skip
    ours, dgemm = fastest(runs)
    rate, peak = grid.flops() / ours / 1e9, 2e-9 * len(square) ** 3 / dgemm
    rows = [
        row("rate, one core", f"{rate:.1f} GFLOP/s", f"{peak:.1f} GFLOP/s",
            at_least(100 * rate / peak, 40, " %"),
            f"{show_time(ours)}; peer: dgemm; {grid.flops() / 1e9:.1f} GFLOP"),
        _two_cores(grid),
    ]  # fmt: skip
    T, L = len(grid.Phi), len(grid.lam)
    runs = interleaved(
        {
            "gram": lambda: gram(grid, "numpy"),
            "direct": lambda: direct(grid.part(DIRECT_STEPS)),
        },
        5,
    )
    reference, plain = fastest(runs)
    plain *= T / DIRECT_STEPS
    rows += [
        row("NumPy engine", show_time(reference), show_time(plain), at_least(plain / reference, 6),
            f"peer: direct, vectorised, {DIRECT_STEPS} of {T} training tasks"),
        row("NumPy engine", show_time(ours), show_time(reference), no_goal(reference / ours),
            "ours: the native engine"),
        row("NumPy, direct, vectorised", show_time(ours), show_time(plain), no_goal(plain / ours)),
        _jax(grid, ours),
    ]  # fmt: skip
    loop = timed(lambda: loops(grid.part(LOOP_STEPS, pairs=LOOP_PAIRS)))
    loop *= (T / LOOP_STEPS) * (L / LOOP_PAIRS)
    rows.append(
        row("plain loops", show_time(ours), show_time(loop), at_least(loop / ours, 1000),
            f"{LOOP_STEPS} of {T} training tasks, {LOOP_PAIRS} of {L} pairs")
    )  # fmt: skip
    return rows


def _agreement(grid: Grid) -> None:
    """Require all answers to agree; the direct forms where they do not cancel their digits."""
    part = grid.part(len(grid.Phi), tasks=6)
    ours = gram(part, "native")
    agree(gram(part, "native", 2), ours, "two threads", 0.0)
    _close(gram(part, "numpy"), ours, part, 1e-9, "NumPy engine")
    _close(direct(part), ours, part, 1e-6, "NumPy, direct")
    few = grid.part(40, tasks=2, pairs=14)
    _close(loops(few), gram(few, "native"), few, 1e-6, "plain loops")


def _close(theirs, ours, grid: Grid, tol: float, what: str) -> None:
    """Require curves to agree to `tol` for every pair of moderate size."""
    sane = (grid.lam >= 1e-3) & (grid.lam <= 1e3) & (grid.meta_step <= 1e2)
    error = np.abs(theirs / ours - 1)[:, sane].max()
    require(bool(error <= tol), f"{what}: errors differ by {error:.1e}, allowed is {tol:.0e}.")


def _two_cores(grid: Grid) -> dict:
    """Time one and two threads by the wall clock, on all cores of the machine."""
    pinned = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if pinned:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    walls: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(REPEATS):
        for n_jobs, found in walls.items():
            start = time.perf_counter()
            gram(grid, "native", n_jobs)
            found.append(time.perf_counter() - start)
    if pinned:
        os.sched_setaffinity(0, pinned)
    one, two = min(walls[1]), min(walls[2])
    return row("two cores", show_time(two), show_time(one), at_least(one / two, 1.7),
               f"wall clock; load average {os.getloadavg()[0]:.1f}")  # fmt: skip


def _jax(grid: Grid, ours: float) -> dict:
    call = jax_direct()
    if call is None:
        return row("JAX, vmap and scan", show_time(ours), "", {"goal": ">= 15x"}, "not installed")
    part = grid.part(JAX_STEPS)
    _close(call(part), gram(part, "native"), part, 1e-6, "JAX")
    theirs = min(timed(lambda: call(part)) for _ in range(3)) * len(grid.Phi) / JAX_STEPS
    note = f"compiled before; {JAX_STEPS} of {len(grid.Phi)} training tasks"
    verdict = at_least(theirs / ours, 15)
    return row("JAX, vmap and scan", show_time(ours), show_time(theirs), verdict, note)


def _head(points: GridPoints, tasks: int | None) -> GridPoints:
    """Return the first tasks, or all."""
    X, y, offsets = points
    offsets = offsets if tasks is None else offsets[: tasks + 1]
    return GridPoints(X[: offsets[-1]], y[: offsets[-1]], offsets)


def _points(X, y) -> GridPoints:
    offsets = np.arange(len(X) + 1) * X.shape[1]
    return GridPoints(np.ascontiguousarray(X.reshape(-1, X.shape[2])), y.ravel().copy(), offsets)


if __name__ == "__main__":
    from benchmarks.__main__ import table
    from benchmarks.common import pin

    pin()
    print(f"{table(main())}\n\nload average {os.getloadavg()[0]:.1f}")
