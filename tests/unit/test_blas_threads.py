"""Fits in several threads leave the number of BLAS threads as it was."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import condmeta as cm
from condmeta.blas_threads import limit_threads


def threads_in_use():
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}


RNG = np.random.default_rng(0)
X, Y, TASK = RNG.normal(size=(300, 2)), RNG.normal(size=300), np.repeat(np.arange(60), 5)


def fit():
    cm.ConditionalRidge().fit(X, Y, task=TASK)


@pytest.fixture(autouse=True)
def two_threads():
    fit()  # loads all libraries
    with threadpool_limits(2):
        yield


def test_calls_that_overlap_restore_what_was_before():
    before = threads_in_use()
    first, second = limit_threads(1), limit_threads(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads_in_use().values()) == {1}
    second.__exit__(None, None, None)
    assert threads_in_use() == before


def test_an_error_restores_what_was_before():
    before = threads_in_use()
    with pytest.raises(KeyError), limit_threads(1):
        raise KeyError
    assert threads_in_use() == before


def test_fits_in_threads_restore_what_was_before():
    before = threads_in_use()
    start = threading.Barrier(4)

    def fits(number):
        start.wait()
        for _ in range(number + 1):
            fit()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fits, range(4)))
    assert threads_in_use() == before
