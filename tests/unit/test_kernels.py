"""Kernels: values by hand, sets of points, limits of the printed Abel kernel, errors."""

import numpy as np
import pytest
from sklearn.base import clone

from condmeta.errors import DataError
from condmeta.feature_maps import MeanFourier, MeanInput, RandomFourier
from condmeta.kernels import (
    AbelKernel,
    FunctionKernel,
    GaussianKernel,
    LaplaceKernel,
    LinearKernel,
    MeanEmbedding,
    PointSets,
    check_kernel,
    get_kernel,
)

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3))
SETS = PointSets(RNG.normal(size=(9, 2)), [0, 2, 3, 7, 9])
PAIRS = PointSets(RNG.normal(size=(8, 2)), [0, 2, 4, 6, 8])


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        (LinearKernel(), lambda a, b: a @ b),
        (GaussianKernel(0.7), lambda a, b: np.exp(-np.sum((a - b) ** 2) / (2 * 0.7**2))),
        (LaplaceKernel(0.7), lambda a, b: np.exp(-np.sqrt(np.sum((a - b) ** 2)) / 0.7)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_values_on_coordinates(kernel, value):
    want = np.array([[value(a, b) for b in B] for a in A])
    np.testing.assert_allclose(kernel.gram(A, B), want, rtol=1e-13)
    np.testing.assert_allclose(FunctionKernel(value).gram(A, B), want, rtol=1e-13)
    assert kernel(A[0], B[1]) == pytest.approx(want[0, 1], rel=1e-13)


@pytest.mark.parametrize("kernel", [LinearKernel(), GaussianKernel(), LaplaceKernel()])
def test_bits_of_a_pair_do_not_depend_on_the_others(kernel):
    """This is what makes a stream cut into calls end in the same bits."""
    many = np.random.default_rng(1).normal(size=(50, 7))
    whole = kernel.gram(many, many)
    np.testing.assert_array_equal(kernel.gram(many[3:4], many[:20]), whole[3:4, :20])


def test_far_from_the_origin_no_digits_are_lost():
    a, b = np.array([[1e8, 1.0]]), np.array([[1e8, 2.5]])
    assert GaussianKernel().gram(a, b)[0, 0] == pytest.approx(np.exp(-(1.5**2) / 2), rel=1e-12)


# -- sets of points --------------------------------------------------------------------------------


def test_mean_embedding_is_the_mean_over_pairs_of_points():
    k0 = GaussianKernel(1.3)
    K = MeanEmbedding(k0).gram(SETS, PAIRS)
    for t in range(len(SETS)):
        for u in range(len(PAIRS)):
            want = k0.gram(SETS[[t]].X, PAIRS[[u]].X).mean()
            assert K[t, u] == pytest.approx(want, rel=1e-13)


def test_mean_embedding_equals_mean_features():
    sets = SETS.X, None, SETS.offsets
    means = MeanInput().transform_tasks(*sets)
    K = MeanEmbedding("linear").gram(SETS, SETS)
    np.testing.assert_allclose(K, means @ means.T, atol=1e-15)
    fourier = MeanFourier(n_features=6, random_state=0).fit_tasks(*sets)
    on_points = RandomFourier(n_features=6, random_state=0).fit(SETS.X)
    phi = fourier.transform_tasks(*sets)
    k0 = FunctionKernel(
        lambda a, b: float((on_points._phi(a[None]) @ on_points._phi(b[None]).T)[0, 0])
    )
    np.testing.assert_allclose(MeanEmbedding(k0).gram(SETS, SETS), phi @ phi.T, atol=1e-15)


def test_mean_embedding_in_pieces_and_in_any_order(monkeypatch):
    kernel, turned = MeanEmbedding(), PointSets(SETS.X[[1, 0, 2, 6, 5, 4, 3, 8, 7]], SETS.offsets)
    whole = kernel.gram(SETS, SETS)
    np.testing.assert_allclose(kernel.gram(turned, SETS), whole, rtol=1e-14)
    assert np.linalg.eigvalsh(whole)[0] > 0
    monkeypatch.setattr("condmeta.kernels.set_kernels._BLOCK_VALUES", 5)
    np.testing.assert_array_equal(kernel.gram(SETS, SETS), whole)


def test_abel_kernel_as_printed():
    X = np.array([[0.0, 0.0], [3.0, 1.0]])
    kernel = AbelKernel()
    assert kernel(X, X) == 1.0
    assert kernel(X, X[::-1]) == pytest.approx(0.0017917628, abs=1e-10)  # the order matters
    assert np.linalg.eigvalsh(kernel.gram(PAIRS, PAIRS))[0] > 0


def test_abel_kernel_cut_to_the_shorter_set_would_not_be_a_kernel():
    """The printed sum over pairs of points, sets cut to one length, has a negative eigenvalue."""
    sets = [np.array([0.0]), np.array([0.0, 50.0]), np.array([0.0, -50.0])]
    K = [[np.exp(-sum(abs(a - b) for a, b in zip(x, z, strict=False))) for z in sets] for x in sets]
    assert np.linalg.eigvalsh(K)[0] == pytest.approx(1 - np.sqrt(2), abs=1e-6)
    with pytest.raises(DataError, match=r"have 1 and 2 points\. Use MeanEmbedding"):
        AbelKernel().gram(PointSets.of([s[:, None] for s in sets]), PointSets.of([[[0.0]]]))


def test_abel_kernel_vanishes_unless_sigma_grows_with_the_points():
    rng = np.random.default_rng(0)
    draw = PointSets(rng.normal(size=(400, 20)), np.arange(0, 401, 10))
    off = ~np.eye(40, dtype=bool)
    assert 1e-29 < np.median(AbelKernel(1.0).gram(draw, draw)[off]) < 1e-26
    assert 1e-3 < np.median(AbelKernel(10.0).gram(draw, draw)[off]) < 1e-2


@pytest.mark.parametrize("kernel", [MeanEmbedding(), AbelKernel()])
def test_a_set_without_points_is_refused(kernel):
    empty = PointSets(np.zeros((2, 1)), [0, 2, 2])
    with pytest.raises(DataError, match="set number 1 has no points"):
        kernel.gram(empty, empty)


def test_sets_are_cut_and_joined():
    parts = [SETS[[2, 0]], SETS[1:2]]
    both = parts[0].concat(parts[1])
    assert both.sizes.tolist() == [4, 2, 1]
    np.testing.assert_array_equal(both.X, SETS.X[[3, 4, 5, 6, 0, 1, 2]])
    assert SETS[SETS.sizes == 2].sizes.tolist() == [2, 2]


# -- choosing and checking -------------------------------------------------------------------------


def test_names_kernels_and_functions():
    assert isinstance(get_kernel("linear"), LinearKernel)
    assert isinstance(get_kernel("laplace"), LaplaceKernel)
    kernel = MeanEmbedding(GaussianKernel(2.0))
    assert get_kernel(kernel) is kernel
    assert isinstance(get_kernel(lambda a, b: 1.0), FunctionKernel)
    assert clone(GaussianKernel(3.0)).lengthscale == 3.0
    assert GaussianKernel().set_params(lengthscale=4.0).lengthscale == 4.0


@pytest.mark.parametrize("bad", ["rbf", 3, GaussianKernel, None])
def test_what_is_not_a_kernel(bad):
    with pytest.raises(DataError, match="The 'kernel' parameter must be 'linear'"):
        get_kernel(bad)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, "1", True])
def test_lengthscales(value):
    for kernel in (GaussianKernel(value), LaplaceKernel(value)):
        with pytest.raises(DataError, match=r"'lengthscale' parameter .* float in \(0, inf\)"):
            kernel.gram(A, B)
    with pytest.raises(DataError, match="'sigma' parameter of AbelKernel"):
        AbelKernel(value).gram(PAIRS, PAIRS)
    with pytest.raises(DataError, match="'base' parameter of MeanEmbedding"):
        MeanEmbedding("rbf").gram(PAIRS, PAIRS)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda a, b: a[0], "not symmetric: tasks 'a' and 'c' give 0 and, in the other order, 3"),
        (lambda a, b: -np.sum((a - b) ** 2), "not positive semi-definite: on 3 tasks"),
        (lambda a, b: np.nan, r"The kernel <lambda> gave nan for the rows \[0.0\]"),
        (lambda a, b: a, r"must return one number for two rows. Got array\(\[0.\]\)"),
        (lambda a, b: "x", "must return one number for two rows. Got 'x'"),
    ],
)
def test_functions_that_are_not_kernels(function, sentence):
    with pytest.raises(DataError, match=sentence):
        check_kernel(function, np.array([[0.0], [1.0], [3.0]]), ids=["a", "b", "c"])


def test_foreign_kernel_objects_are_checked():
    class Rude:
        def __init__(self, values):
            self.gram = lambda A, B: values

    with pytest.raises(DataError, match=r"shape \(2, 2\) for 3 tasks, expected \(3, 3\)"):
        check_kernel(Rude(np.eye(2)), np.zeros((3, 1)))
    with pytest.raises(DataError, match="gave inf for the tasks 0 and 0"):
        check_kernel(Rude(np.full((3, 3), np.inf)), np.zeros((3, 1)))


def test_rounding_is_forgiven():
    """A table written with six digits has eigenvalues a little below zero."""
    S = np.linspace(0, 1, 40)[:, None]
    K = GaussianKernel(0.5).gram(S, S).round(6)
    assert np.linalg.eigvalsh(K)[0] < -1e-7

    class Written:
        def gram(self, A, B):
            return K[np.ix_(*(np.searchsorted(S[:, 0], x[:, 0]) for x in (A, B)))]

    check_kernel(Written(), S)
