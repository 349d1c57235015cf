r"""The choice of drift for `ConditionalRidge`: one step ahead, on later rows of the training data.

Each row of the later half of the time is predicted from the rows of its task before its time, once
for every candidate: no drift, and decay and AR(1) at several rates. The noise s2 around weights
that stay contains what the weights have moved, so that a candidate also has its share of s2. A
candidate's loss is the sum of its absolute errors in each task.

Nothing is forgotten unless it clearly pays: unless the best candidate has errors lower by a
hundredth, and by two standard errors over tasks. Else the simplest candidate within one standard
error of the best is taken: the one with most of the noise, then the slowest.
"""

from functools import cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np

from condmeta.inner.drift import KINDS, Drift, Process
from condmeta.inner.posterior import Gaussian
from condmeta.inner.scores import row_scores
from condmeta.inner.squared import SquaredState
from condmeta.meta.selection import Selection, select
from condmeta.tasks.timed import Timed

# What is left of a row, or of a distance to theta, after the typical time between two rows.
SHARES = 0.99, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.35, 0.2
NOISES = 0.5, 0.25, 0.1, 0.03  # share of s2
LEAST_GAIN = 0.01
LEAST_GAIN_OWN = 0.05  # where it gives up the noise of each task's own
FEWEST_TASKS = 5  # with later rows to judge by
MOST_TIMES = 60  # at which a model that stays is judged
MOST_ROWS, FEWEST_ROWS, MOST_WORK = 20_000, 1000, 2e7  # work: rows times columns cubed


class DriftSetting(NamedTuple):
    """One candidate; without drift the rate is 1."""

    drift: str
    rate: float
    noise: float = 1.0


NONE = DriftSetting("none", 1.0)


def choose_drift(
    inner: Gaussian, theta: np.ndarray, rows: Timed, n_jobs: int = 1,
    before: SquaredState | None = None,
) -> Selection:  # fmt: skip
    """Choose a `DriftSetting`; theta (T, d) of the tasks, rows in the learner's units.

    With statistics of rows `before`, which are as of each task's first row, all times but the first
    are judged. There are no scores if too few tasks have rows to judge by.
    """
    rows, at = some_tasks(rows.sorted(), theta.shape[1])
    theta = theta[at]
    gap, judged = typical_gap(rows), later_rows(rows, half=before is None)
    task = np.unique(rows.task_of_row[judged], return_inverse=True)[1]
    if gap is None or task.max(initial=-1) + 1 < FEWEST_TASKS:
        return Selection.given(NONE)
    state = SquaredState.start(*theta.shape) if before is None else before.take(at)
    start = state, np.full(len(theta), np.nan), theta, rows, n_jobs

    @cache
    def losses_of(setting: DriftSetting) -> np.ndarray:
        drift = Drift("decay" if setting is NONE else setting.drift, setting.rate)
        process = Process(drift, inner.factor, inner.s2 * setting.noise)
        return np.bincount(task, np.abs(rows.y - process.one_step_ahead(*start))[judged])

    def judge(left):
        return ((setting, losses_of(setting)) for setting in left)

    candidates = [NONE]
    for kind in KINDS:
        path = [DriftSetting(kind, share ** (1 / gap)) for share in SHARES]
        best = min(range(len(path)), key=lambda at: losses_of(path[at]).sum())
        near = path[max(best - 1, 0) : best + 2]
        candidates += [*path, *(s._replace(noise=c) for s, c in product(near, NOISES))]
    least = LEAST_GAIN_OWN if inner.own_noise else LEAST_GAIN
    mean = partial(_mean, n_rows=int(judged.sum()))
    return select(candidates, [judge], partial(_decide, least=least), score=mean)


def drift_pays(
    drifting: Process, theta: np.ndarray, still: Gaussian, theta_still: np.ndarray, rows: Timed,
    n_jobs: int = 1,
) -> bool:  # fmt: skip
    """Return whether tasks that drift are predicted clearly better than by a model that stays.

    The two may have learned different priors; `still` may read the context of a task, which the
    candidates of `choose_drift` cannot. Rows of at most 60 times are judged.
    """
    rows, at = some_tasks(rows.sorted(), theta.shape[1])
    theta, theta_still = theta[at], theta_still[at]
    judged = later_rows(rows)
    times = np.unique(rows.time[judged])
    times = times[np.unique(np.linspace(0, len(times) - 1, MOST_TIMES).astype(int))]
    judged &= np.isin(rows.time, times)
    task = rows.task_of_row
    start = SquaredState.start(*theta.shape), np.full(len(theta), np.nan)
    lost = np.abs(rows.y - drifting.one_step_ahead(*start, theta, rows, n_jobs))
    stays = np.zeros(len(rows.y))
    for time in times:
        known = SquaredState.of(*rows.points.where(rows.time < time))
        coef, now = still.posterior(known, theta_still, n_jobs).mean, judged & (rows.time == time)
        predicted = row_scores(np.ascontiguousarray(rows.X[now]), coef, task[now], n_jobs)
        stays[now] = np.abs(rows.y[now] - predicted)
    gain, all_lost = (np.bincount(task[judged], each[judged]) for each in (stays - lost, stays))
    gain = gain[np.bincount(task[judged]) > 0]
    return bool(gain.sum() > max(2 * _standard_error(gain), LEAST_GAIN * all_lost.sum()))


def _mean(losses: np.ndarray, n_rows: int) -> float:
    return float(losses.sum() / n_rows)


def _decide(losses: dict[DriftSetting, np.ndarray], scores: dict, least: float) -> DriftSetting:
    best = min(scores, key=scores.get)
    gain = losses[NONE] - losses[best]
    if gain.sum() <= max(2 * _standard_error(gain), least * losses[NONE].sum()):
        return NONE
    behind = {setting: found - losses[best] for setting, found in losses.items()}
    close = [s for s, each in behind.items() if each.sum() <= _standard_error(each)]
    return max(close, key=lambda s: (s.noise, s.rate, s.drift)) if NONE not in close else best


def _standard_error(differences: np.ndarray) -> float:
    """Return the standard error of the sum of differences, one a task."""
    return float(np.sqrt(len(differences)) * differences.std(ddof=1))


def some_tasks(rows: Timed, d: int) -> tuple[Timed, np.ndarray]:
    """Return the first tasks, as many as can be judged in a second or so, and their positions."""
    most = np.clip(MOST_WORK / d**3, FEWEST_ROWS, MOST_ROWS)
    at = np.arange(len(rows.offsets) - 1)[: max(int(np.searchsorted(rows.offsets, most)), 1)]
    return rows.take(at), at


def typical_gap(rows: Timed) -> float | None:
    """Return the median time between a task's rows of different times; None if there is none."""
    steps = rows.steps(np.full(len(rows.offsets) - 1, np.nan))
    return float(np.median(steps[steps > 0])) if (steps > 0).any() else None


def later_rows(rows: Timed, half: bool = True) -> np.ndarray:
    """Return a mask (N,) of rows with earlier ones in their task, in the later half of time."""
    sizes = np.diff(rows.offsets)
    first = np.repeat(rows.time[rows.offsets[:-1][sizes > 0]], sizes[sizes > 0])
    later = rows.time > first
    return later & (rows.time > np.median(rows.time)) if half else later
