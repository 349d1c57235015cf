"""The time of a fit beside mixed-model packages on the same model and rows.

y = <x, w_t> + noise with w_t around a linear function of the side columns, all coefficients and the
intercept random, full covariance (GPBoost: diagonal), one noise; the packages get inputs, side
columns and their products as fixed effects. "fixed": ConditionalRidge(metric="full",
noise="shared", kappa=0), the same model; "chosen": ConditionalRidge(), all its choices included.
Predictions for new tasks with five points are compared first: those of "fixed" and of the package
must differ by less than 2 % of their spread (5 % for GPBoost's diagonal covariance). Processor
seconds, one thread. A package that took more than a minute is left out at larger sizes; one that is
not installed has no rows. Goals: "fixed" no slower than mixedlm; "chosen" 20 times faster than a
package that takes 5 s or more, otherwise within a second or its time.
"""

from __future__ import annotations

import numpy as np

import condmeta as cm
from benchmarks.accuracy import mixed
from benchmarks.accuracy.design import codes_of
from benchmarks.common import at_least, at_most, draw_tasks, no_goal, require, row, show_time, timed
from condmeta.tasks import TaskSet, TaskTable

SIZES = (300, 10, 2, 2), (1000, 10, 3, 2), (3000, 10, 4, 2)  # tasks, points, inputs, side columns
PACKAGES = {
    "statsmodels": mixed.Statsmodels,
    "lme4": mixed.Lme4,
    "mixedlm": mixed.Mixedlm,
    "mixedlm-rs": mixed.MixedlmRs,
    "GPBoost": mixed.GpboostLinear,
}
NEW, SHOWN = 200, 5
PATIENCE = 60.0


def draw(count: int, n: int, d: int, k: int) -> tuple[TaskSet, TaskSet, TaskSet]:
    """Return training tasks, and support and query points of new ones."""
    tasks = draw_tasks(count + NEW, n, d, k, seed=0)
    ids = np.arange(count + NEW)
    side = TaskTable({f"s{j}": column for j, column in enumerate(tasks.Phi.T)}, ids=ids)
    intercept = 2 + 0.5 * np.random.default_rng(1).standard_normal(count + NEW)
    y = tasks.y + np.repeat(intercept, n)
    whole = TaskSet(tasks.X, y, tasks.offsets, ids.tolist(), side)
    return whole[:count], *whole[count:].split_points(SHOWN, "first")


def said(learner, support: TaskSet, query: TaskSet) -> np.ndarray:
    """Return the predictions of the query points."""
    return learner.adapt(support).predict(query.X, task=query.ids[codes_of(query)])


def rows_of(size: tuple[int, int, int, int], patient: dict[str, bool]) -> list[dict]:
    """Race at one size."""
    train, support, query = draw(*size)
    linear = {"x_transform": None, "y_transform": None}
    fixed = cm.ConditionalRidge(metric="full", noise="shared", kappa=0.0, **linear)
    chosen = cm.ConditionalRidge()
    seconds = {name: timed(lambda one=one: one.fit(train)) for name, one in
               (("fixed", fixed), ("chosen", chosen))}  # fmt: skip
    ours = said(fixed, support, query)
    title, out = "T = {}, n = {}, d = {}, k = {}".format(*size), []
    for name, make in PACKAGES.items():
        if not patient.get(name, True):
            continue
        try:
            package = make()
        except ImportError:
            continue
        peer = timed(lambda package=package: package.fit(train))
        patient[name] = peer <= PATIENCE
        theirs = package.predict(support, query)
        off = np.sqrt(np.mean((ours - theirs) ** 2)) / theirs.std()
        allowed = 0.05 if name == "GPBoost" else 0.02  # its covariance is diagonal
        require(bool(off < allowed), f"{name}: predictions differ by {100 * off:.1f} %.")
        own = seconds["fixed"]
        goal = at_most(own / peer, 1.0) if name == "mixedlm" else no_goal(own / peer)
        out.append(row(f"{title}: fixed", show_time(own), show_time(peer), goal, f"peer: {name}"))
        own = seconds["chosen"]
        if peer >= 5:
            goal = at_least(peer / own, 20.0)
        else:
            goal = at_most(own, max(1.0, peer), " s")
        out.append(row(f"{title}: chosen", show_time(own), show_time(peer), goal, f"peer: {name}"))
    return out


def main() -> list[dict]:
    """Race at every size."""
    patient: dict[str, bool] = {}
    cm.ConditionalRidge().fit(draw(30, 5, 1, 1)[0])  # imports and first calls
    return [found for size in SIZES for found in rows_of(size, patient)]
