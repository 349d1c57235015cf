"""Combinations of models by the number of points."""

from __future__ import annotations

import numpy as np

from condmeta.learners.blend import Blends, decided, probabilities


def test_the_largest_number_up_to_a_tasks_own_counts():
    answers = np.array([[1.0, 10.0, 100.0]] * 6)
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
    lines = np.array([[0.0, 1.0], [0.0, 1.0], [10.0, 2.0]])
    blends = Blends(np.array([1, 3, 5]), weights, lines)
    found = blends.of(answers, np.array([0, 1, 2, 3, 5, 99]))
    assert found.tolist() == [1.0, 1.0, 1.0, 10.0, 115.5, 115.5]


def test_classes_are_the_more_probable_ones():
    classes, answers = np.array(["no", "yes"]), np.array([0.2, 0.5, 0.7])
    assert decided(answers, classes).tolist() == ["no", "no", "yes"]
    np.testing.assert_allclose(
        probabilities(answers, classes), [[0.8, 0.2], [0.5, 0.5], [0.3, 0.7]]
    )
    assert decided(answers, None) is answers


def test_of_several_classes_the_most_probable_is_decided():
    answers, classes = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]), np.array(["a", "b", "c"])
    assert decided(answers, classes).tolist() == ["b", "a"]
    assert probabilities(answers, classes) is answers
