"""One pass of Algorithm 1 over a stream of tasks: n = d = k = 20, absolute loss, online inner."""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.common import (
    Tasks,
    agree,
    at_least,
    at_most,
    draw_tasks,
    fastest,
    interleaved,
    medians,
    no_goal,
    require,
    row,
    show_time,
)
from condmeta.losses import Absolute
from condmeta.meta.sgd import SGDState, sgd_pass

N, D, K = 20, 20, 20
T, LONG = 100_000, 1_000_000
LOOPED = 1000  # tasks of the slow peers
LAM, META_STEP = 10.0, 0.05
MEMORY = 1 << 20  # bytes; the counters of the kernel are exact to some dozens of pages only


def main() -> list[dict]:
    """Measure the pass against bandwidth, loops, SGDRegressor, itself on ten times the tasks."""
    tasks = draw_tasks(T, N, D, K, seed=1)
    return [*_against_peers(tasks), *_around_the_kernel(tasks), *_on_a_long_stream(tasks)]


def native(tasks: Tasks, run=sgd_pass) -> SGDState:
    """Run Algorithm 1 from a fresh state."""
    state = SGDState.start(K, D)
    rows = tasks.X, tasks.y, tasks.offsets, tasks.Phi
    status = run(*state, *rows, LAM, Absolute(), META_STEP, False, False, False, 0.0)
    require(status == -1, f"The pass failed at task {status}.")
    return state


def plain_loop(tasks: Tasks) -> np.ndarray:
    """Run Algorithm 1 as it is printed, sign corrected, in NumPy; return the last map (K+1, D)."""
    M, b = np.zeros((D, K)), np.zeros(D)
    for phi, X, y in zip(tasks.Phi, tasks.X.reshape(-1, N, D), tasks.y.reshape(-1, N), strict=True):
        theta = M @ phi + b
        w = theta.copy()
        for i in range(N):
            s = np.sign(X[i] @ w - y[i])
            w -= (s * X[i] + LAM * (w - theta)) / (LAM * (i + 1))
        g = -LAM * (w - theta)
        M -= META_STEP * np.outer(g, phi)
        b -= META_STEP * g
    return np.vstack([M.T, b])


def crossed(tasks: Tasks) -> np.ndarray:
    """Return the features x (x) (phi, 1), (N T, D (K+1)), which a linear learner needs."""
    phi1 = np.column_stack([tasks.Phi, np.ones(len(tasks.Phi))])
    phi1 = np.repeat(phi1, np.diff(tasks.offsets), axis=0)
    return (tasks.X[:, :, None] * phi1[:, None, :]).reshape(len(tasks.X), -1)


def sgd_regressor(Z: np.ndarray, y: np.ndarray):
    """Fit scikit-learn's SGDRegressor in one pass in the order of the rows, same loss."""
    from sklearn.linear_model import SGDRegressor

    return SGDRegressor(
        loss="epsilon_insensitive", epsilon=0.0, penalty=None, learning_rate="constant",
        eta0=0.005, fit_intercept=False, shuffle=False, max_iter=1, tol=None, average=True,
    ).fit(Z, y)  # fmt: skip


def read_all(tasks: Tasks) -> float:
    """Read every byte that the pass reads, by BLAS dot products of arrays with themselves."""
    return sum(float(np.dot(a.ravel(), a.ravel())) for a in (tasks.X, tasks.y, tasks.Phi))


def _against_peers(tasks: Tasks) -> list[dict]:
    few = tasks.head(LOOPED)
    last = native(few).map(META_STEP, "last")
    agree(last, plain_loop(few), "stream, native and plain loop", 1e-8)
    agree(last, native(few, sgd_pass.reference).map(META_STEP, "last"), "stream, engines", 1e-8)
    Z = crossed(few)
    _same_quality(native(few).map(META_STEP), sgd_regressor(Z, few.y).coef_)
    runs = interleaved({"read": lambda: read_all(tasks), "pass": lambda: native(tasks)}, 10)
    read, ours = (seconds / T for seconds in fastest(runs))
    slow = interleaved(
        {
            "loop": lambda: plain_loop(few),
            "reference": lambda: native(few, sgd_pass.reference),
            "sgd": lambda: sgd_regressor(Z, few.y),
        },
        5,
    )
    loop, reference, sgd = (seconds / LOOPED for seconds in fastest(slow))
    size = sum(a.nbytes for a in (tasks.X, tasks.y, tasks.Phi)) / T
    rate = f"{size / read / 1e9:.3g} GB/s"
    share = f"{size / ours / 1e9:.3g} GB/s"
    time = show_time(ours)
    return [
        row(f"a task, T = {T:g}: share of read bandwidth", f"{time}, {share}",
            f"{show_time(read)}, {rate}", at_least(100 * read / ours, 35, " %"),
            "peer: np.dot of each array with itself; best of 10, interleaved"),
        row("a task: plain NumPy loop", time, show_time(loop), at_least(loop / ours, 50),
            f"the printed algorithm; {LOOPED} tasks, best of 5"),
        row("a task: condmeta's NumPy engine", time, show_time(reference),
            no_goal(reference / ours), f"{LOOPED} tasks, best of 5"),
        row("a task: SGDRegressor, one pass", time, show_time(sgd), at_least(sgd / ours, 50),
            f"on x (x) (phi, 1), {D * (K + 1)} columns made beforehand; {LOOPED} tasks, averaged"),
    ]  # fmt: skip


def _same_quality(ours: np.ndarray, coef: np.ndarray) -> None:
    """Require both maps to have learned: errors on new tasks without points, against zero."""
    new = draw_tasks(500, N, D, K, seed=2)
    Z = crossed(new)
    error = np.abs(new.y - Z @ ours.T.ravel()).mean()
    peer = np.abs(new.y - Z @ coef).mean()
    nothing = np.abs(new.y).mean()
    require(
        error < 0.75 * nothing and peer < 0.75 * nothing and error < 1.15 * peer,
        f"stream: new tasks' error is {error:.3g}, SGDRegressor's {peer:.3g}, of 0 {nothing:.3g}.",
    )


def _around_the_kernel(tasks: Tasks) -> list[dict]:
    """Measure what `fit` adds to the pass: reading a TaskSet, maps, task models."""
    ids = np.arange(T)
    side = cm.TaskTable(tasks.Phi, ids=ids)
    held = cm.TaskSet(tasks.X, tasks.y, tasks.offsets, ids.tolist(), side=side)

    def fit(keep_tasks):
        learner = cm.ConditionalSGDRegressor(
            cm.feature_maps.Identity(), lam=LAM, meta_step=META_STEP, keep_tasks=keep_tasks
        )
        return learner.fit(held)

    agree(
        fit(False).fitted_.tau.weights, native(tasks).map(META_STEP), "stream, fit and pass", 1e-12
    )
    calls = {"pass": lambda: native(tasks), "map": lambda: fit(False), "all": lambda: fit(True)}
    kernel, learned, kept = fastest(interleaved(calls, 5))
    note = "TaskSet in, side table through Identity(); peer: the pass alone"
    return [
        row(f"fit, T = {T:g}, keep_tasks=False", show_time(learned), show_time(kernel),
            no_goal(learned / kernel), note),
        row(f"fit, T = {T:g}, keep_tasks=True", show_time(kept), show_time(kernel),
            no_goal(kept / kernel), "one further online pass: each task from tau"),
    ]  # fmt: skip


def _on_a_long_stream(tasks: Tasks) -> list[dict]:
    times = LONG // T
    X, y, Phi = (np.concatenate([a] * times) for a in (tasks.X, tasks.y, tasks.Phi))
    many = tasks._replace(X=X, y=y, offsets=np.arange(LONG + 1) * N, Phi=Phi)
    native(many)
    runs = interleaved({"short": lambda: native(tasks), "long": lambda: native(many)}, 5)
    short, long = medians(runs)
    short, long = short / T, long / LONG
    rows = [
        row(f"a task, T = {LONG:g} against {T:g}", show_time(long), show_time(short),
            at_most(long / short, 1.1), f"median of 5 interleaved; {times} copies of the stream")
    ]  # fmt: skip
    extra = _peak_extra(lambda: native(many))
    if extra is not None:
        rows.append(
            row("peak memory of the pass beyond the data", f"{extra / 1024:.0f} KiB", "",
                {"ratio": "", "goal": f"<= {MEMORY // 1024} KiB", "met": extra <= MEMORY},
                f"data {sum(a.nbytes for a in many) / 1e9:.2g} GB; O(d k) is a few KiB")
        )  # fmt: skip
    return rows


def _peak_extra(call) -> int | None:
    """Return by how many bytes a call raised the peak of resident memory; None if unknown."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = _status("VmRSS")
        call()
        return max(_status("VmHWM") - before, 0)
    except OSError:
        return None


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(name))
    return 1024 * int(line.split()[1])
