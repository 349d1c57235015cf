"""The kernel form of Algorithm 1: T = 5000, Gaussian kernel, n = d = p = 20, absolute loss.

The peer, "NumPy rows", computes one row of kernel values for each task, vectorised over the tasks
before it (norms and one matrix-vector product), then theta = row @ G, and runs the online pass on
the task's Gram matrix; BLAS on one thread.
"""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.common import (
    Tasks,
    agree,
    at_least,
    draw_tasks,
    fastest,
    interleaved,
    no_goal,
    require,
    row,
    show_time,
)
from condmeta.kernels import GaussianKernel, LaplaceKernel, LinearKernel
from condmeta.losses import Absolute
from condmeta.meta.kernel_sgd import kernel_pass, kernel_theta, task_weights

N, D, P = 20, 20, 20
T = 5000
LAM, META_STEP = 10.0, 1e-4
GAUSSIAN = GaussianKernel(lengthscale=4.0)


def main() -> list[dict]:
    """Measure the pass and the evaluation of the map against rows in NumPy."""
    tasks = draw_tasks(T, N, D, P, seed=1)
    return [*_pass(tasks), *_other_kernels(tasks), *_around_the_pass(tasks)]


def ours(tasks: Tasks, kernel=GAUSSIAN, batch=False, run=kernel_pass) -> np.ndarray:
    """Return the meta-gradients (T, D)."""
    G = np.zeros((len(tasks.Phi), D))
    data = tasks.Phi, G, 0, tasks.X, tasks.y, tasks.offsets, kernel
    status = run(*data, LAM, Absolute(), META_STEP, batch, 1e-6)
    require(status == -1, f"The pass failed at task {status}.")
    return G


def numpy_rows(tasks: Tasks) -> np.ndarray:
    """Return the meta-gradients (T, D), one vectorised kernel row a task."""
    S, G = tasks.Phi, np.zeros((len(tasks.Phi), D))
    norms, scale = np.einsum("ij,ij->i", S, S), GAUSSIAN.native[1]
    X, y = tasks.X.reshape(-1, N, D), tasks.y.reshape(-1, N)
    shares = 1.0 / (LAM * np.maximum(np.arange(N), 1.0))
    for t in range(len(S)):
        kk = np.exp(scale * (2.0 * (S[:t] @ S[t]) - norms[:t] - norms[t])) + 1.0
        theta = -META_STEP * (kk @ G[:t])
        start, gram, s = X[t] @ theta - y[t], X[t] @ X[t].T, np.zeros(N)
        for i in range(N):
            s[i] = np.sign(start[i] - shares[i] * (gram[i, :i] @ s[:i]))
        G[t] = s @ X[t] / N
    return G


def rows_theta(new: np.ndarray, sides: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the map at new side information, one dense Gram at once, as an academic writes it."""
    norms = [np.einsum("ij,ij->i", S, S) for S in (new, sides)]
    distances = norms[0][:, None] + norms[1] - 2.0 * (new @ sides.T)
    return (np.exp(-GAUSSIAN.native[1] * distances) + 1.0) @ weights


def _pass(tasks: Tasks) -> list[dict]:
    few = tasks.head(1000)
    agree(ours(few), ours(few, run=kernel_pass.reference), "kernel, engines", 1e-9)
    agree(ours(few), numpy_rows(few), "kernel, native and NumPy rows", 1e-8)
    calls = {"ours": lambda: ours(tasks), "rows": lambda: numpy_rows(tasks)}
    native, rows = fastest(interleaved(calls, 5))
    reference = fastest(interleaved({"r": lambda: ours(tasks, run=kernel_pass.reference)}, 2))[0]
    return [
        row(f"pass, T = {T}: NumPy rows", show_time(native), show_time(rows),
            at_least(rows / native, 4), "best of 5, interleaved"),
        row(f"pass, T = {T}: condmeta's NumPy engine", show_time(native), show_time(reference),
            no_goal(reference / native), "best of 2"),
    ]  # fmt: skip


def _other_kernels(tasks: Tasks) -> list[dict]:
    few, found = tasks.head(300), []
    for name, kernel, batch in (
        ("linear kernel", LinearKernel(), False),
        ("Laplace kernel", LaplaceKernel(4.0), False),
        ("batch inner", GAUSSIAN, True),
    ):
        same = ours(few, kernel, batch), ours(few, kernel, batch, kernel_pass.reference)
        agree(*same, f"kernel, {name}, engines", 1e-6 if batch else 1e-9)
        calls = {
            "this": lambda kernel=kernel, batch=batch: ours(tasks, kernel, batch),
            "gaussian": lambda: ours(tasks),
        }
        this, gaussian = fastest(interleaved(calls, 5))
        found.append(
            row(f"pass, T = {T}: {name}", show_time(this), show_time(gaussian),
                no_goal(gaussian / this), "peer: Gaussian kernel, online inner")
        )  # fmt: skip
    return found


def _around_the_pass(tasks: Tasks) -> list[dict]:
    """Measure the learned map at 1000 new tasks, and a whole fit."""
    S, new = tasks.Phi, draw_tasks(1000, 1, D, P, seed=2).Phi
    C = task_weights(T, META_STEP)[:, None] * ours(tasks)
    agree(
        kernel_theta(new, S, C, GAUSSIAN, 1),
        rows_theta(new, S, C),
        "kernel, map at new tasks",
        1e-9,
    )
    ids = np.arange(T)
    held = cm.TaskSet(tasks.X, tasks.y, tasks.offsets, ids.tolist(), side=cm.TaskTable(S, ids=ids))

    def fit():
        model = cm.KernelConditionalSGDRegressor(
            GAUSSIAN, feature_map=cm.feature_maps.Identity(), lam=LAM, meta_step=META_STEP
        )
        return model.fit(held)

    calls = {
        "map": lambda: kernel_theta(new, S, C, GAUSSIAN, 1),
        "gram": lambda: rows_theta(new, S, C),
        "pass": lambda: ours(tasks),
        "fit": fit,
    }
    ours_map, gram, alone, whole = fastest(interleaved(calls, 5))
    return [
        row("tau at 1000 new tasks", show_time(ours_map), show_time(gram),
            no_goal(gram / ours_map), "peer: the dense Gram matrix at once, in NumPy"),
        row(f"fit, T = {T}, keep_tasks=True", show_time(whole), show_time(alone),
            no_goal(whole / alone), "peer: the pass alone; fit also needs tau of all T tasks"),
    ]  # fmt: skip
