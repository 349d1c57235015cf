"""The choice of an Auto learner: which candidates answer at each number of points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.fitted.columns import Columns
from condmeta.inner.log_rms import denoised_moments
from condmeta.learners.auto_report import report
from condmeta.learners.blend import Blends
from condmeta.learners.held_out import HeldOutAnswers, of_all_rounds
from condmeta.meta.criteria import Criterion
from condmeta.meta.stacking import Blend, best_blend
from condmeta.tasks.numbers import power_of_two


class Chosen(NamedTuple):
    """What the fit of an Auto learner leaves.

    `learners` are those with a weight, and `blends` combines them; `offset` says that the labels
    were given less an offset, `least` is the smallest possible prediction; the rest are the
    attributes of the learner.
    """

    candidates: list[str]
    shots: np.ndarray
    errors: np.ndarray
    weights: np.ndarray
    task_errors: np.ndarray | None
    report: str
    learners: dict[str, Any]
    columns: Columns
    n_tasks: int
    classes: np.ndarray | None
    lines: np.ndarray
    offset: bool = False
    least: float = -np.inf

    @property
    def blends(self) -> Blends:
        """The combinations of `learners`."""
        used = [self.candidates.index(name) for name in self.learners]
        return Blends(self.shots, self.weights[:, used], self.lines, self.least)


class of_choice:  # noqa: N801, a property by another name
    """An attribute of an Auto learner that reads the field of `Chosen` of the same name."""

    def __init__(self, doc: str):
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str):
        self.field = name.removesuffix("_")

    def __get__(self, auto: Any, owner: type | None = None) -> Any:
        return self if auto is None else getattr(auto.chosen_, self.field)


def no_lines(n_shots: int) -> np.ndarray:
    return np.tile([0.0, 1.0], (n_shots, 1))


def learned_priors(names: Any) -> np.ndarray:
    """Return equal weights of the learned priors that are always candidates, else 0 (C,).

    These are the ones without and with side information, alone and on a base: not those with
    transformations, nor the random intercept on a base.
    """
    learned = np.array(["conditional" in name for name in names], dtype=float)
    return learned / learned.sum()


def default_choice(names: list[str], why: str) -> dict[str, Any]:
    best = "conditional" if "conditional" in names else "unconditional"
    return {
        "shots": np.array([0]),
        "errors": np.full((1, len(names)), np.nan),
        "weights": np.eye(len(names))[[names.index(best)]],
        "task_errors": None,
        "report": f"{best}: {why}.",
        "lines": no_lines(1),
    }


def choose(
    names: Any, rounds: list[list[HeldOutAnswers]], criterion: Criterion, numbers: bool
) -> dict[str, Any]:
    """Return the weights of the candidates at each number of points, and what they rest on.

    Each round held out all tasks once. Errors of tasks are those of the first: their variance is
    that of independent rows.
    """
    trials = of_all_rounds(rounds)
    with np.errstate(over="ignore"):
        errors = np.array([criterion.mean(t.answers, t.y, t.weight) for t in trials])
    towards = learned_priors(names)
    found = [best_blend(t.answers, t.y, t.task, criterion, t.weight, towards) for t in trials]
    weights = np.array([blend.weights for blend in found])
    lines = np.array([(blend.shift, blend.slope) for blend in found])
    task_errors = None
    if numbers:
        task_errors = np.array([_task_errors(*one) for one in zip(rounds[0], found, strict=True)])
    shots = np.array([trial.shot for trial in trials])
    return {
        "shots": shots, "errors": errors, "weights": weights, "task_errors": task_errors,
        "report": report(names, shots, weights, lines, errors, criterion), "lines": lines,
    }  # fmt: skip


def _task_errors(trial: HeldOutAnswers, blend: Blend) -> tuple[float, float]:
    """Return mean and variance of the log root mean square errors of tasks with very many rows."""
    unit = power_of_two(np.abs(trial.y).max())  # squares stay finite
    sizes, error = np.bincount(trial.task), (trial.y - blend.of(trial.answers)) / unit
    square = np.bincount(trial.task, error**2) / sizes
    mean, variance = denoised_moments(0.5 * np.log(square + 1e-300), sizes)
    return mean + np.log(unit), variance
