"""Choose one setting among several: the one race that all learners share.

Candidates are compared in rounds, each on other held-out tasks. After a round the candidates that
are clearly behind the best one drop out, so that later rounds cost less. What a loss is, when a
candidate drops out and how ties are decided are functions of the caller.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np

HELD_OUT, EVIDENCE, GIVEN = "held-out tasks", "evidence", "given"


class Selection(NamedTuple):
    """The chosen candidate, and how it was chosen.

    Attributes
    ----------
    chosen : a candidate
    method : "held-out tasks", "evidence", or "given" where there was one candidate only
    scores : dict of candidate to float
        Of the candidates that were compared to the end; less is better.
    start : Prior or None
        Where a fit with the chosen candidate can start.
    weights : dict of candidate to float
        Of the candidates to average; empty if only the chosen one counts.
    """

    chosen: Any
    method: str
    scores: dict[Any, float]
    start: Any = None
    weights: dict[Any, float] = {}

    @classmethod
    def given(cls, candidate: Any) -> Self:
        """Return the selection of the only candidate."""
        return cls(candidate, GIVEN, {})

    def rows(self) -> list[dict[str, Any]]:
        """Return the candidates with their scores as dicts, the best first."""
        ranked = sorted(self.scores.items(), key=lambda item: item[1])
        rows = [candidate._asdict() | {"score": score} for candidate, score in ranked]
        if self.weights:
            for row, (candidate, _) in zip(rows, ranked, strict=True):
                row["weight"] = self.weights.get(candidate, 0.0)
        return rows


def select(
    candidates: Iterable, rounds: Iterable[Callable], decide: Callable[[dict, dict], Any], *,
    score: Callable[[Any], float] = float, drop: Callable[[dict], dict] | None = None,
    initial: Any = 0.0, join: Callable[[Any, Any], Any] = add, method: str = HELD_OUT,
) -> Selection:  # fmt: skip
    """Compare candidates round by round and choose one.

    Parameters
    ----------
    candidates : hashable values, simplest first
    rounds : functions
        Each takes the list of candidates that are left, and yields (candidate, losses) for them.
    decide : function
        (losses, scores), dicts of the candidates left, -> the chosen one: the rule for ties.
    score : function
        The losses of one candidate from all rounds -> its score.
    drop : function, optional
        Losses so far, a dict -> the same without the candidates that are clearly behind.
    initial, join
        A candidate's losses before the first round, and how those of a further round are added.

    Examples
    --------
    >>> rounds = [lambda left: [(c, abs(c - 3)) for c in left]] * 2
    >>> select([1, 2, 4, 9], rounds, lambda losses, scores: max(close_to_best(scores, 0.01)),
    ...        drop=lambda losses: drop_behind(losses, 2.0))[:3]
    (4, 'held-out tasks', {1: 4.0, 2: 2.0, 4: 2.0})
    """
    losses = dict.fromkeys(candidates, initial)
    for judge in rounds:
        for candidate, found in judge(list(losses)):
            losses[candidate] = join(losses[candidate], found)
        losses = losses if drop is None else drop(losses)
    scores = {candidate: score(each) for candidate, each in losses.items()}
    return Selection(decide(losses, scores), method, scores)


def close_to_best(scores: dict, tolerance: float) -> list:
    """Return the candidates with scores within a relative tolerance of the least."""
    least = min(scores.values())
    return [c for c, score in scores.items() if score <= least + tolerance * abs(least)]


def drop_behind(losses: dict, margin: float) -> dict:
    """Drop the candidates with a sum of losses above `margin` times the least."""
    limit = margin * min(np.sum(each) for each in losses.values())
    return {candidate: each for candidate, each in losses.items() if np.sum(each) <= limit}


def task_rounds(fold: np.ndarray, judged: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the positions of the tasks to learn from and of the tasks to judge by, fold by fold.

    fold (T,) int: the round in which a task is held out; judged (T,) bool: whether it has points to
    judge by. A fold without tasks on either side is left out.
    """
    for number in np.unique(fold):
        train, held = np.flatnonzero(fold != number), np.flatnonzero((fold == number) & judged)
        if len(train) and len(held):
            yield train, held
