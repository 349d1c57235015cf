"""The exact batch inner solver, absolute loss: certified gaps, and times against two solvers."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.common import (
    Tasks,
    at_least,
    at_most,
    draw_tasks,
    fastest,
    interleaved,
    require,
    row,
    show_time,
)
from condmeta.inner.batch import batch_tasks
from condmeta.losses import Absolute

D, K = 20, 5
SIZES, LAMS = (10, 50, 200), (1.0, 0.1, 0.01)
TOL = 1e-6
T, SVR_TASKS, CVXPY_TASKS = 200, 20, 5


def main() -> list[dict]:
    """Measure every cell of n and lam."""
    rows = []
    for n in SIZES:
        tasks = draw_tasks(T, n, D, K, seed=n)
        times = []
        for lam in LAMS:
            cell, seconds = _cell(tasks, n, lam)
            rows += cell
            times.append(seconds)
        shown = " / ".join(map(show_time, times))
        rows.append(
            row(f"n = {n}: spread over lam", shown, "", at_most(max(times) / min(times), 2.5),
                f"lam = {' / '.join(f'{lam:g}' for lam in LAMS)}")
        )  # fmt: skip
    return rows


def objective(w, theta, X, y, lam) -> float:
    """Return mean |y - X w| + lam/2 ||w - theta||^2."""
    return float(np.abs(X @ w - y).mean() + lam / 2 * np.sum((w - theta) ** 2))


def solve(tasks: Tasks, lam: float):
    """Solve all tasks on one thread; return coef, gradient, gap, slopes."""
    rows = tasks.theta, tasks.X, tasks.y, tasks.offsets
    return batch_tasks(*rows, lam, Absolute(), TOL, 1)


def linear_svr(tasks: Tasks, lam: float) -> list[np.ndarray]:
    """Solve task by task by LinearSVR, on residuals: it has no bias of its own."""
    from sklearn.svm import LinearSVR

    found = []
    for theta, X, y in tasks.parts():
        model = LinearSVR(
            epsilon=0.0, loss="epsilon_insensitive", C=1 / (lam * len(y)), fit_intercept=False,
            dual=True, tol=TOL, max_iter=10_000, random_state=0,
        )  # fmt: skip
        found.append(theta + model.fit(X, y - X @ theta).coef_)
    return found


class Cvxpy:
    """The same problem in cvxpy, compiled once for all tasks of one size."""

    def __init__(self, n: int, lam: float):
        import cvxpy

        self.solver = cvxpy.CLARABEL
        self.step = cvxpy.Variable(D)
        self.X, self.residual = cvxpy.Parameter((n, D)), cvxpy.Parameter(n)
        loss = cvxpy.norm1(self.X @ self.step - self.residual) / n
        self.problem = cvxpy.Problem(cvxpy.Minimize(loss + lam / 2 * cvxpy.sum_squares(self.step)))

    def __call__(self, tasks: Tasks) -> list[np.ndarray]:
        found = []
        for theta, X, y in tasks.parts():
            self.X.value, self.residual.value = X, y - X @ theta
            self.problem.solve(solver=self.solver)
            found.append(theta + self.step.value)
        return found


def _cell(tasks: Tasks, n: int, lam: float) -> tuple[list[dict], float]:
    coef, _, gap, _ = solve(tasks, lam)
    unit = np.array([np.abs(X @ theta - y).mean() for theta, X, y in tasks.parts()])
    worst = float((gap / unit).max())
    require(worst <= TOL, f"n = {n}, lam = {lam:g}: gap {worst:.1e} is not certified.")
    svr_tasks, cvxpy_tasks = tasks.head(SVR_TASKS), tasks.head(CVXPY_TASKS)
    by_cvxpy = Cvxpy(n, lam)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LinearSVR stops at max_iter in the hard cells
        reached = _excess(linear_svr(svr_tasks, lam), svr_tasks, coef, unit, lam)
        exact = _excess(by_cvxpy(cvxpy_tasks), cvxpy_tasks, coef, unit, lam)
        lower = min(reached.min(), exact.min())
        # Nobody gets below a certified optimum by more than the gap.
        require(lower >= -TOL, f"n = {n}, lam = {lam:g}: a peer is better by {-lower:.1e}.")
        require(exact.max() <= 1e-6, f"n = {n}, lam = {lam:g}: cvxpy is off by {exact.max():.1e}.")
        runs = interleaved(
            {
                "ours": lambda: solve(tasks, lam),
                "svr": lambda: linear_svr(svr_tasks, lam),
                "cvxpy": lambda: by_cvxpy(cvxpy_tasks),
            },
            5,
        )
    ours, svr, cvxpy = fastest(runs)
    ours, svr, cvxpy = ours / T, svr / SVR_TASKS, cvxpy / CVXPY_TASKS
    cell, time = f"n = {n}, lam = {lam:g}", show_time(ours)
    return [
        row(f"{cell}: LinearSVR", time, show_time(svr), at_least(svr / ours, 3),
            f"relative gap: ours {worst:.0e}, LinearSVR {reached.max():.0e}"),
        row(f"{cell}: cvxpy", time, show_time(cvxpy), at_least(cvxpy / ours, 20),
            "Clarabel, compiled once for all tasks"),
    ], ours  # fmt: skip


def _excess(found, tasks: Tasks, coef, unit, lam) -> np.ndarray:
    """Return by how much a peer's objectives exceed ours, relative to the loss at theta."""
    pairs = zip(found, coef, tasks.parts(), unit, strict=False)
    return np.array([(objective(w, *t, lam) - objective(v, *t, lam)) / u for w, v, t, u in pairs])
