"""Folds of tasks and orders of rows that depend on the numbers of the rows alone."""

import time

import numpy as np
import pytest

from condmeta.tasks import TaskSet
from condmeta.tasks.splits import folds_by_content, rows_by_content, tasks_by_content


def drawn(sizes, seed=0):
    rng = np.random.default_rng(seed)
    N = sum(sizes)
    offsets = np.append(0, np.cumsum(sizes))
    return TaskSet(rng.normal(size=(N, 3)), rng.normal(size=N), offsets, range(len(sizes)))


def shuffled(tasks, rng):
    """Return the tasks renamed, in another order, their rows permuted; and where they went."""
    order = rng.permutation(len(tasks))
    rows = [rng.permutation(np.arange(*tasks.offsets[t : t + 2])) for t in order]
    offsets = np.append(0, np.cumsum(tasks.sizes[order]))
    at = np.concatenate(rows)
    names = [f"task {k}" for k in range(len(tasks))]
    return TaskSet(tasks.X[at], tasks.y[at], offsets, names), order, at


@pytest.mark.parametrize("salt", [0, 1, 7])
def test_names_and_orders_change_no_fold_and_no_order_of_rows(salt):
    tasks = drawn([3, 5, 1, 8, 2, 40, 7, 7, 4, 9, 6, 30])
    rng = np.random.default_rng(1)
    folds, rows = folds_by_content(tasks, 5, salt), rows_by_content(tasks, salt)
    for _ in range(20):
        other, order, at = shuffled(tasks, rng)
        np.testing.assert_array_equal(folds_by_content(other, 5, salt), folds[order])
        offsets = tasks.offsets
        expected = np.concatenate([rows[offsets[t] : offsets[t + 1]] for t in order])
        np.testing.assert_array_equal(at[rows_by_content(other, salt)], expected)


def test_folds_are_balanced_and_rows_stay_in_their_tasks():
    tasks = drawn([3, 5, 1, 8, 2, 40, 7, 7, 4, 9, 6, 30, 1])
    counts = np.bincount(folds_by_content(tasks, 5))
    assert sorted(counts) == [2, 2, 3, 3, 3]
    rows = rows_by_content(tasks)
    for lo, hi in zip(tasks.offsets[:-1], tasks.offsets[1:], strict=True):
        assert sorted(rows[lo:hi]) == list(range(lo, hi))


def test_salts_give_independent_folds_and_halves():
    tasks = drawn([4] * 2000)
    one, two = folds_by_content(tasks, 5), folds_by_content(tasks, 5, salt=1)
    assert abs((one == two).mean() - 0.2) < 0.05
    first, second = (rows_by_content(tasks, salt).reshape(-1, 4)[:, :2] for salt in (0, 1))
    shared = (first[:, :, None] == second[:, None, :]).sum(axis=(1, 2))
    assert abs(shared.mean() - 1) < 0.05  # of two points


def test_folds_do_not_follow_the_size_or_the_level_of_a_task():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, 3000)
    tasks = drawn(sizes.tolist())
    level = np.repeat(np.arange(3000.0), sizes)
    folds = folds_by_content(tasks.with_rows(tasks.X, level), 5)
    for value in sizes, np.arange(3000):
        means = [value[folds == f].mean() for f in range(5)]
        assert np.ptp(means) < 6 * value.std() / np.sqrt(600)


def test_tasks_without_rows_and_the_last_digits_do_not_change_the_folds_of_others():
    tasks = drawn([3, 5, 1, 8, 2, 4])
    some = drawn([3, 5, 0, 1, 8, 0, 2, 4])  # the same rows
    filled = some.sizes > 0
    np.testing.assert_array_equal(folds_by_content(some, 3)[filled], folds_by_content(tasks, 3))
    near = tasks.with_rows(tasks.X * (1 + 1e-15), tasks.y * (1 - 1e-15))
    np.testing.assert_array_equal(folds_by_content(near, 3), folds_by_content(tasks, 3))
    signed = tasks.with_rows(np.where(tasks.X > 0, tasks.X, -0.0), tasks.y)
    plain = tasks.with_rows(np.where(tasks.X > 0, tasks.X, 0.0), tasks.y)
    np.testing.assert_array_equal(rows_by_content(signed), rows_by_content(plain))
    assert tasks_by_content(some)[-2:].tolist() == [2, 5]  # tasks without rows are last


@pytest.mark.parametrize("n", [2, 3, 7])
def test_the_first_rows_are_a_random_sample_where_all_tasks_have_the_same_inputs(n):
    """As in a panel of n years: no year, and neither small nor large labels, come first."""
    T = 4000
    rng, year = np.random.default_rng(0), np.tile(np.arange(2001.0, 2001 + n), T)
    y = rng.normal(size=T * n) + np.repeat(10 * rng.normal(size=T), n)
    tasks = TaskSet(year[:, None], y, np.arange(T + 1) * n, range(T))
    first = rows_by_content(tasks).reshape(T, n)[:, 0]
    for values in year.reshape(T, n), y.reshape(T, n):
        rank = values.argsort(axis=1).argsort(axis=1).ravel()[first]
        counts = np.bincount(rank, minlength=n)
        assert np.abs(counts - T / n).max() < 5 * np.sqrt(T / n)


def test_copies_of_a_row_are_not_divided_evenly():
    """Of 4 zeros, 4 ones and another label, every second one from the first on: 5 at random."""
    T, n = 2000, 9
    y = np.tile([0.0] * 4 + [1.0] * 5, T)
    y[8::n] = np.linspace(2, 9, T)
    tasks = TaskSet(np.ones((T * n, 1)), y, np.arange(T + 1) * n, range(T))
    zeros = (y[rows_by_content(tasks)] == 0).reshape(T, n)[:, ::2].sum(axis=1)
    assert zeros.mean() == pytest.approx(5 * 4 / 9, rel=0.05)
    assert zeros.var() == pytest.approx(5 * (4 / 9) * (5 / 9) * (9 - 5) / (9 - 1), rel=0.15)


def test_units_and_zeros_of_inputs_and_labels_do_not_matter():
    tasks = drawn([3, 5, 1, 8, 3, 4])
    other = tasks.with_rows(tasks.X * [1e3, 0.1, 7.0] - [9, 0, 1], tasks.y * 1e-5 + 7)
    np.testing.assert_array_equal(rows_by_content(other), rows_by_content(tasks))
    np.testing.assert_array_equal(folds_by_content(other, 3), folds_by_content(tasks, 3))


def test_the_largest_floats_and_one_task_alone_are_hashed_without_a_warning():
    X = np.array([[1e308], [-1e308], [0.0], [5e-324]])
    tasks = TaskSet(X, np.zeros(4), [0, 4], ["a"])
    assert sorted(rows_by_content(tasks)) == [0, 1, 2, 3]
    assert folds_by_content(tasks, 5).tolist() == [0]


def test_tasks_without_labels_are_ordered_by_their_inputs():
    tasks = TaskSet(np.arange(12.0)[:, None], None, [0, 4, 8, 12], "abc")
    assert sorted(folds_by_content(tasks, 3)) == [0, 1, 2]
    assert sorted(rows_by_content(tasks)[:4]) == [0, 1, 2, 3]


def test_a_million_rows_take_less_than_a_second():
    tasks = drawn([10] * 100_000)
    start = time.process_time()
    folds_by_content(tasks, 5)
    rows_by_content(tasks)
    assert time.process_time() - start < 2  # about .3 s in all on a slow machine
