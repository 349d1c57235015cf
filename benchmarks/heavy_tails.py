"""Noise with heavy tails: what `ConditionalRidge(noise="robust")` gains where rows are wild.

Drawn tasks: 100 of 8 points to learn from, 300 new ones, 6 draws each. `ours` is "robust", the peer
`noise="auto"`; numbers are the mean error of predicted means, then the log density of labels, at 0,
1, 3 and 5 points. Real sets, those of the first and the development half of the accuracy benchmark,
three splits: changes of absolute errors in percent and of log densities where Student's noise is
taken. Goals: the error of drawn tasks no larger at 5 points; real errors no larger on average.
"""

from __future__ import annotations

import warnings
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

import condmeta as cm
from benchmarks.accuracy.data import PROBLEMS, group
from benchmarks.accuracy.problem import split
from benchmarks.common import at_most, row
from condmeta.errors import DataError

SHOTS = 0, 1, 3, 5
DRAWS, SPLITS = 6, 3
KINDS: dict[str, dict[str, Any]] = {
    "normal noise": {},
    "2 % of rows 10 deviations off": {"wild": 0.02},
    "5 % of rows 10 deviations off": {"wild": 0.05},
    "Student's noise, 3 degrees of freedom": {"df": 3},
}
MOST_COLUMNS, MOST_ROWS = 64, 60_000


def draw(count: int, n: int, seed: int, wild: float = 0.0, df: int | None = None):
    """Return tasks, and the means of their labels (N,)."""
    rng = np.random.default_rng(seed)
    s, task = rng.normal(size=(count, 2)), np.repeat(np.arange(count), n)
    w = np.column_stack([s @ [1, 0.5], s @ [0, 1], 1 + s @ [0.5, -0.5]])
    w += rng.normal(size=(count, 3)) * [0.5, 0.5, 0.7]
    X = rng.normal(size=(count * n, 2))
    mean = np.einsum("ij,ij->i", np.column_stack([X, np.ones(len(X))]), w[task])
    noise = rng.normal(size=len(X)) if df is None else rng.standard_t(df, size=len(X))
    off = rng.random(len(X)) < wild
    y = mean + noise + 10 * off * rng.choice([-1, 1], size=len(X))
    side = cm.TaskTable(s, ids=range(count), columns=["a", "b"])
    return cm.TaskSet.from_arrays(X, y, task, side_info=side), mean


def judge(model: Any, support: cm.TaskSet, query: cm.TaskSet, truth: np.ndarray):
    """Return the mean absolute error of predictions, and the mean log density of labels."""
    ids, models = np.repeat(query.ids, query.sizes), model.adapt(support)
    nu = getattr(model.fitted_.inner, "nu", np.inf)
    mean, std = models.predict(query.X, task=ids, return_std=True)
    if nu < np.inf:  # the scale of the law, from its variance
        noise = model.s2_ if model.fitted_.target is None else _noise(model, mean)
        std = np.sqrt(np.maximum(std**2 - noise * 2 / (nu - 2), noise))
    z = (query.y - mean) / std
    logs = norm.logpdf(z) if nu == np.inf else student.logpdf(z, nu)
    return float(np.abs(mean - truth).mean()), float(np.mean(logs - np.log(std)))


def _noise(model: Any, mean: np.ndarray) -> np.ndarray:
    """Return the squared scale of the noise at predictions, in the units of y."""
    return model.s2_ * model.fitted_.target.slope(mean) ** 2


def drawn_row(name: str, how: dict[str, Any]) -> dict:
    """Compare both noises on drawn tasks."""
    found, taken = np.zeros((2, len(SHOTS), 2)), 0
    for seed in range(DRAWS):
        train, _ = draw(100, 8, seed, **how)
        new, mean = draw(300, 13, 1000 + seed, **how)
        rank = np.arange(len(new.y)) % 13
        query, truth = new.where(rank >= 8), mean[rank >= 8]
        for at, noise in enumerate(("robust", "auto")):
            model = cm.ConditionalRidge(noise=noise).fit(train)
            taken += model.noise_ == "student"
            said = [judge(model, new.where(rank < shot), query, truth) for shot in SHOTS]
            found[at] += np.array(said) / DRAWS
    ours, peer = (f"{_numbers(each[:, 0], 3)}; {_numbers(each[:, 1], 2)}" for each in found)
    verdict = at_most(found[0, -1, 0] / found[1, -1, 0], 1.01)
    return row(name, ours, peer, verdict, f"taken in {taken} of {DRAWS} draws")


def real_rows() -> list[dict]:
    """Compare both noises on real sets."""
    rows, times, fits, changes = [], np.zeros(2), 0, []
    for name, problem in PROBLEMS.items():
        if problem.classes or group(name) == "validation":
            continue
        for seed in range(SPLITS):
            try:
                drawn = split(problem, seed)
            except (DataError, OSError):  # data that are not there
                break
            if drawn.train.X.shape[1] > MOST_COLUMNS or len(drawn.train.X) > MOST_ROWS:
                break
            models, fits = [], fits + 1
            for at, noise in enumerate(("robust", "auto")):
                start = process_time()
                models.append(
                    cm.ConditionalRidge(missing_side="mean", noise=noise).fit(drawn.train)
                )
                times[at] += process_time() - start
            if models[0].noise_ != "student":
                continue
            sizes = [at for at, size in enumerate(problem.sizes) if size in SHOTS]
            said = np.array([
                [judge(m, drawn.supports[at], drawn.query, drawn.query.y) for at in sizes]
                for m in models
            ])  # fmt: skip
            errors, density = (
                100 * (said[0, :, 0] / said[1, :, 0] - 1),
                said[0, :, 1] - said[1, :, 1],
            )
            changes.append(float(errors.mean()))
            shown = f"errors {_numbers(errors, 1)} %", f"log densities {_numbers(density, 2)}"
            verdict = {"ratio": "", "goal": "", "met": None}
            rows.append(row(f"{name}, split {seed}", *shown, verdict, f"nu = {models[0].nu_:g}"))
    mean = at_most(float(np.mean(changes)), 0.0, "")
    rows.append(row(
        "mean change of errors", f"{np.mean(changes):.1f} %", "", mean,
        f"taken in {len(changes)} of {fits} fits",
    ))  # fmt: skip
    share = {"ratio": float(times[0] / times[1]), "goal": "", "met": None}
    rows.append(row("processor time of all fits", *(f"{t:.1f} s" for t in times), share))
    return rows


def main() -> list[dict]:
    """Measure drawn tasks, then real sets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*(drawn_row(name, how) for name, how in KINDS.items()), *real_rows()]


def _numbers(values: np.ndarray, digits: int) -> str:
    return " / ".join(f"{value:.{digits}f}" for value in values)
