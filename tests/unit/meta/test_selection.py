"""The race among settings: who drops out, who is judged, and who wins."""

from __future__ import annotations

import numpy as np

from condmeta.meta.selection import (
    Selection,
    close_to_best,
    drop_behind,
    select,
    task_rounds,
)


def best(losses, scores):
    return min(scores, key=scores.get)


def test_a_candidate_that_dropped_out_is_not_judged_again():
    seen = []

    def judge(left):
        seen.append(left)
        yield from ((candidate, float(candidate)) for candidate in left)

    found = select([1, 2, 5], [judge] * 3, best, drop=lambda losses: drop_behind(losses, 2.0))
    assert seen == [[1, 2, 5], [1, 2], [1, 2]]
    assert found == Selection(1, "held-out tasks", {1: 3.0, 2: 6.0}, None)


def test_losses_of_rounds_are_joined_before_they_are_scored():
    rounds = [lambda left: [("b", [2.0]), ("a", [1.0])], lambda left: [("a", [4.0])]]
    found = select(["b", "a"], rounds, best, score=len, initial=[], join=list.__add__)
    assert found.scores == {"b": 1, "a": 2}
    assert found.chosen == "b"


def test_without_rounds_the_rule_for_ties_decides_among_all():
    assert select("xy", [], lambda losses, scores: max(scores)).chosen == "y"
    assert Selection.given("x") == Selection("x", "given", {}, None)


def test_ties_are_relative_to_the_best_whatever_its_sign():
    assert close_to_best({"a": 100.0, "b": 100.09, "c": 100.2}, 1e-3) == ["a", "b"]
    assert close_to_best({"a": -100.0, "b": -99.91, "c": -99.8}, 1e-3) == ["a", "b"]


def test_every_task_with_query_points_is_held_out_once():
    fold, judged = np.array([0, 1, 2, 0, 1, 2, 3]), np.array([1, 1, 0, 1, 1, 0, 1], bool)
    rounds = list(task_rounds(fold, judged))
    assert [held.tolist() for _, held in rounds] == [[0, 3], [1, 4], [6]]  # none in fold 2
    assert all((fold[train] != fold[held[0]]).all() for train, held in rounds)
    assert list(task_rounds(np.zeros(3, int), np.ones(3, bool))) == []  # none to learn from
