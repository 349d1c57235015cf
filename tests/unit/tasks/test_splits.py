"""Splits are disjoint, complete, seeded, and keep the order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condmeta.errors import DataError
from condmeta.tasks.points import Points
from condmeta.tasks.splits import (
    across_tasks,
    first_halves,
    half_of,
    make_generator,
    point_mask,
    task_parts,
    within_tasks,
)


@given(st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_fractions_that_sum_to_one_use_every_task_once(n_tasks, seed):
    parts = task_parts(n_tasks, (0.5, 0.3, 0.2), seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n_tasks))
    assert all((np.diff(part) > 0).all() for part in parts)


def test_counts_give_parts_of_that_size():
    parts = task_parts(10, (3, 4), random_state=0)
    assert [part.size for part in parts] == [3, 4]
    assert not set(parts[0]) & set(parts[1])


def test_one_number_means_that_many_and_the_rest():
    assert [part.size for part in task_parts(10, 0.7, 0)] == [7, 3]
    assert [part.size for part in task_parts(10, 4, 0)] == [4, 6]


@pytest.mark.parametrize("sizes", [(6, 5), (0.6, 0.5), (-1, 2), ("a",), (0.5, 3)])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(DataError, match="'sizes' parameter of split_tasks must be counts"):
        task_parts(10, sizes)


@pytest.mark.parametrize("make", [lambda: 3, lambda: np.random.default_rng(3), lambda: np.int64(3),
                                  lambda: np.random.RandomState(3)])  # fmt: skip
def test_the_same_seed_gives_the_same_split(make):
    first, second = task_parts(50, 0.5, make()), task_parts(50, 0.5, make())
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_no_seed_draws_anew():
    a, b = (task_parts(1000, 0.5)[0] for _ in range(2))
    assert not np.array_equal(a, b)


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_unusable_seeds_are_refused(seed):
    with pytest.raises(DataError, match="'random_state' parameter must be a non-negative int"):
        make_generator(seed)


sizes_of_tasks = st.lists(st.integers(0, 7), min_size=1, max_size=20)


@given(sizes_of_tasks, st.integers(0, 5), st.sampled_from(["random", "first"]))
def test_a_count_takes_that_many_points_of_each_task(sizes, count, order):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    mask = point_mask(offsets, count, order, random_state=0)
    taken = [int(mask[a:b].sum()) for a, b in pairwise(offsets)]
    assert taken == [min(count, n) for n in sizes]


@given(sizes_of_tasks)
def test_a_fraction_rounds_half_up_in_each_task(sizes):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    mask = point_mask(offsets, 0.5, "first")
    taken = [int(mask[a:b].sum()) for a, b in pairwise(offsets)]
    assert taken == [(n + 1) // 2 for n in sizes]


def test_first_takes_the_first_rows_and_random_takes_others_too():
    offsets = np.arange(0, 101, 10)
    first = point_mask(offsets, 3, "first").reshape(10, 10)
    assert (first == (np.arange(10) < 3)).all()
    drawn = point_mask(offsets, 3, "random", random_state=0).reshape(10, 10)
    assert drawn[:, 3:].any()
    assert len({tuple(row) for row in drawn}) > 1


@pytest.mark.parametrize("train", [1.0, 0.0, -1, True, "half", None])
def test_unusable_train_is_refused(train):
    with pytest.raises(DataError, match="'train' parameter of split_points must be a count"):
        point_mask(np.array([0, 2]), train)


def test_unknown_order_is_refused():
    sentence = r"'order' parameter of split_points must be 'random' or 'first'. Got 'last' instead"
    with pytest.raises(DataError, match=sentence):
        point_mask(np.array([0, 2]), 1, "last")


def numbered(sizes) -> Points:
    """Return points of tasks with these sizes; x and y are the row's number."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(float(offsets[-1]))
    return Points(rows[:, None], rows, offsets, rows + 1)


@given(sizes_of_tasks)
def test_the_two_halves_of_tasks_are_all_their_points(sizes):
    points = numbered(sizes)
    second, first = (half_of(points, half) for half in (True, False))
    assert sorted([*first.y, *second.y]) == points.y.tolist()
    assert second.sizes.tolist() == [n // 2 for n in sizes]
    mask, *offsets = first_halves(points.offsets)
    assert np.diff(offsets[0]).tolist() == [n // 2 for n in sizes]
    np.testing.assert_array_equal(points.where(mask).offsets, offsets[0])
    np.testing.assert_array_equal(points.where(~mask).offsets, offsets[1])


@given(sizes_of_tasks)
def test_points_that_come_in_chunks_have_the_same_halves(sizes):
    points = numbered(sizes)
    first = point_mask(points.offsets, 3, "first")
    shown, rest = points.where(first), points.where(~first)
    for half in (True, False):
        parts = half_of(shown, half), half_of(rest, half, shown.sizes)
        assert sorted([*parts[0].y, *parts[1].y]) == sorted(half_of(points, half).y)


def test_rows_are_held_out_once_within_tasks():
    points = numbered([7, 1, 0, 2])
    support, query = within_tasks(points)
    # Five problems of the first task, two of the last; one point alone cannot be held out.
    assert len(query.sizes) == len(support.sizes) == 7
    assert sorted(query.y) == [*range(7), 8, 9]
    assert (support.sizes + query.sizes).tolist() == [7] * 5 + [2] * 2
    np.testing.assert_array_equal(query.weight, query.y + 1)


@pytest.mark.parametrize(("sizes", "whole"), [([3] * 6, True), ([3] * 4, False)])
def test_tasks_are_held_out_whole_if_there_are_five(sizes, whole):
    points = numbered(sizes)
    support, query = across_tasks(points)
    assert sorted(query.y) == points.y.tolist()
    for f in range(5):
        seen = support.y[support.offsets[f] : support.offsets[f + 1]] // 3
        held = query.y[query.offsets[f] : query.offsets[f + 1]] // 3
        assert bool(set(seen) & set(held)) != whole
