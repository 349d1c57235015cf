"""Feature maps of side tables and of points, one or several together."""

import copy
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from condmeta.errors import DataError
from condmeta.feature_maps import (
    CircleMap,
    ComposedMap,
    Identity,
    MeanFourier,
    MeanInput,
    MeanInputOutput,
    RandomFourier,
    point_maps,
)
from condmeta.tasks import TaskSet, TaskTable
from condmeta.tasks.side_table import read_side_row

MAPS = [
    Identity(),
    CircleMap(),
    RandomFourier(5, std=2.0, random_state=1),
    MeanInput(),
    MeanInputOutput(),
    MeanFourier(5, std=2.0, random_state=1),
]
U, V = np.array([[1, 0], [0.5, -1], [2, 1]]), np.array([0.1, 2, 4])


def table(**columns):
    return TaskTable(columns, ids=[f"t{i}" for i in range(len(next(iter(columns.values()))))])


def points(n_tasks=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return TaskSet.from_arrays(
        rng.normal(size=(4 * n_tasks, d)), rng.normal(size=4 * n_tasks), np.arange(4 * n_tasks) // 4
    )


# single maps


def test_random_fourier_has_the_reference_values():
    phi = RandomFourier(3)
    phi.U_, phi.v_ = U, V
    expected = [[0.716543161, -0.412205118, 0.152286712]]
    np.testing.assert_allclose(phi.transform([[0.4, 0.1]]), expected, atol=1e-9)


def test_mean_fourier_has_the_reference_values():
    phi = MeanFourier(3)
    phi.U_, phi.v_ = U, V
    X = np.array([[0.4, 0.1], [0.2, -0.3]])
    expected = [[0.748286069, -0.507142283, -0.158527538]]
    np.testing.assert_allclose(phi.transform_tasks(X, None, [0, 2]), expected, atol=1e-9)


def test_random_fourier_approximates_the_gaussian_kernel_of_a_standard_deviation():
    s = np.array([[0.3], [1.08]])
    phi = RandomFourier(200_000, std=2.0, random_state=0).fit_transform(s)
    # 200000 features: the standard error of the product is below 0.0025
    assert phi[0] @ phi[1] == pytest.approx(np.exp(-(2.0**2) * 0.78**2 / 2), abs=0.01)
    assert (phi**2).sum(axis=1).max() <= 2


def test_random_state_decides_the_draw():
    X = np.ones((1, 2))
    same = [RandomFourier(4, random_state=3).fit_transform(X) for _ in range(2)]
    np.testing.assert_array_equal(*same)
    free = RandomFourier(4)
    assert not np.array_equal(free.fit_transform(X), free.fit_transform(X))
    assert free.random_state is None
    legacy = RandomFourier(4, random_state=np.random.RandomState(0)).fit_transform(X)
    assert legacy.shape == (1, 4)


@pytest.mark.parametrize("make", [RandomFourier, MeanFourier])
@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_features": 0}, r"'n_features' parameter of \w+ must be an int in \[1, inf\). Got 0"),
        ({"n_features": 2.5}, "must be an int"),
        ({"std": -1}, r"'std' parameter of \w+ must be a float in \(0, inf\). Got -1 instead"),
        ({"std": np.nan}, "must be a float"),
        ({"random_state": "a"}, "'random_state' parameter"),
    ],
)
def test_unusable_parameters_are_refused_in_fit(make, params, sentence):
    phi = make(**params)
    with pytest.raises(DataError, match=sentence):
        phi._draw(2)


def test_circle_map_goes_round():
    s = np.array([[0.0], [0.25], [0.5], [1.0]])
    expected = [[1, 0], [0, 1], [-1, 0], [1, 0]]
    np.testing.assert_allclose(CircleMap().fit_transform(s), expected, atol=1e-12)
    with pytest.raises(DataError, match="CircleMap reads one side column, got 2"):
        CircleMap().fit(np.ones((3, 2)))


def test_mean_input_output_stacks_yx_before_x():
    X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0])
    out = MeanInputOutput().transform_tasks(X, y, np.array([0, 2]))
    assert out.tolist() == [[35, 50, 2, 3]]
    with pytest.raises(DataError, match="MeanInputOutput reads y"):
        MeanInputOutput().transform_tasks(X, None, np.array([0, 2]))


@pytest.mark.parametrize("block", [1, 5, 64, 1 << 20])
def test_point_maps_average_ragged_tasks_whatever_the_block(block, monkeypatch):
    monkeypatch.setattr(point_maps, "_BLOCK_VALUES", block)
    rng = np.random.default_rng(0)
    sizes = np.array([0, 3, 0, 1, 57, 2, 0, 0, 9, 0])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X, y = rng.normal(size=(offsets[-1], 2)), rng.normal(size=offsets[-1])
    fourier = MeanFourier(6, random_state=0).fit_tasks(X, y, offsets)
    for phi in (MeanInput(), MeanInputOutput(), fourier):
        out = phi.transform_tasks(X, y, offsets)
        for t, (a, b) in enumerate(pairwise(offsets)):
            if a == b:
                assert not out[t].any()
            else:
                alone = phi.transform_tasks(X[a:b], y[a:b], np.array([0, b - a]))[0]
                np.testing.assert_allclose(out[t], alone, atol=1e-13)
                if phi is not fourier:
                    features = [y[a:b, None] * X[a:b], X[a:b]][not phi.needs_y :]
                    expected = np.concatenate([f.mean(axis=0) for f in features])
                    np.testing.assert_allclose(out[t], expected, atol=1e-13)


def test_the_mean_of_a_task_does_not_depend_on_its_neighbours(monkeypatch):
    monkeypatch.setattr(point_maps, "_BLOCK_VALUES", 16)
    X = np.random.default_rng(0).normal(size=(40, 2))
    whole = MeanInput().transform_tasks(X, None, np.array([0, 5, 33, 40]))
    alone = MeanInput().transform_tasks(X[5:33], None, np.array([0, 28]))
    np.testing.assert_array_equal(whole[1], alone[0])


@pytest.mark.parametrize("phi", MAPS, ids=lambda phi: type(phi).__name__)
def test_maps_clone_copy_and_show_their_parameters(phi):
    for twin in (clone(phi), copy.deepcopy(phi)):
        assert type(twin) is type(phi)
        assert twin.get_params() == phi.get_params()
    shown = "(n_features=5, std=2.0, random_state=1)" if phi.get_params() else "()"
    assert repr(phi) == type(phi).__name__ + shown
    with pytest.raises(DataError, match="has no parameter 'gamma'"):
        phi.set_params(gamma=1)


def test_parameters_are_set_by_name():
    assert RandomFourier().set_params(std=3.0).std == 3.0
    assert make_pipeline(StandardScaler(), Identity()).fit_transform([[1.0], [3.0]]).tolist() == [
        [-1.0],
        [1.0],
    ]


# composed maps


def test_no_map_gives_no_features():
    phi = ComposedMap(None).fit(table(s=[1.0, 2.0]), points())
    assert phi.transform(5).shape == (5, 0)
    assert (phi.n_features_out, phi.names_out_) == (0, ())
    assert not phi.reads_table
    assert not phi.reads_points
    phi.transform(1, table=table(other=[1.0]))


def test_auto_encodes_a_raw_table():
    t = table(size=[1.0, 3.0], city=["Rome", None])
    phi = ComposedMap("auto")
    assert phi.reads_table
    assert not phi.reads_points
    phi.fit(t)
    assert phi.names_out_ == ("size", "city=Rome", "city=(missing)")
    assert phi.columns_ == ("size", "city")
    assert phi.transform(2, table=t).tolist() == [[-1, 1, 0], [1, 0, 1]]
    row = read_side_row({"city": "Rome", "size": 3.0})
    assert phi.transform(1, table=row).tolist() == [[1, 1, 0]]


def test_auto_without_a_table_is_the_unconditional_case():
    phi = ComposedMap("auto").fit(None, points())
    assert phi.transform(3).shape == (3, 0)
    assert not phi.reads_table
    with pytest.raises(DataError, match="given now, but there was none in fit"):
        phi.transform(1, table=table(s=[1.0]))


def test_a_list_concatenates():
    t, p = table(s=[0.0, 0.25, 0.5]), points()
    phi = ComposedMap([CircleMap(), "auto", MeanInputOutput()]).fit(t, p)
    Phi = phi.transform(3, table=t, points=p)
    assert phi.widths_ == [2, 1, 4]
    assert phi.reads_table
    assert phi.reads_points
    assert phi.needs_y
    assert phi.names_out_ == (
        "cos(2 pi s)", "sin(2 pi s)", "s", "mean(y*x0)", "mean(y*x1)", "mean(x0)", "mean(x1)"
    )  # fmt: skip
    np.testing.assert_allclose(Phi[:, :2], [[1, 0], [0, 1], [-1, 0]], atol=1e-12)
    np.testing.assert_allclose(Phi[:, 5:], p.X.reshape(3, 4, 2).mean(axis=1))


def test_points_may_be_three_arrays():
    p = points()
    phi = ComposedMap(MeanFourier(3, random_state=0)).fit(points=(p.X, p.y, p.offsets))
    first = phi.transform(3, points=p)
    np.testing.assert_array_equal(first, phi.transform(3, points=(p.X, p.y, p.offsets)))


def test_tasks_without_a_row_or_points_take_the_fill():
    t, p = table(s=[1.0, 2.0]), points(2)
    phi = ComposedMap([Identity(), MeanInput()]).fit(t, p)
    some = p.X, p.y, np.array([0, 0, 8, 8])
    fill = np.array([7.0, 8.0, 9.0])
    Phi = phi.transform(3, table=t, rows=[2, 0], points=some, fill=fill)
    np.testing.assert_allclose(Phi[:, 0], [2, 7, 1])
    np.testing.assert_allclose(Phi[:, 1:], [[8, 9], p.X.mean(axis=0), [8, 9]])
    assert phi.transform(2, fill=fill).tolist() == [[7, 8, 9]] * 2
    with pytest.raises(DataError, match=r"1 of 3 tasks have no side information.*Identity"):
        phi.transform(3, table=t, rows=[2, 0], points=some)
    with pytest.raises(DataError, match=r"2 of 3 tasks have no points, which .* MeanInput"):
        phi.transform(3, table=table(s=[1.0, 2.0, 3.0]), points=some)


@pytest.mark.parametrize("bad", ["x", 3, ["auto", "y"], StandardScaler, object()])
def test_unknown_maps_are_refused(bad):
    with pytest.raises(DataError, match=r"'feature_map' parameter must be 'auto', None, a map, a "):
        ComposedMap(bad).fit(table(s=[1.0]))
    with pytest.raises(DataError, match="Got 'x' instead"):
        _ = ComposedMap("x").reads_table


def test_what_a_map_reads_must_be_there():
    with pytest.raises(DataError, match="Identity reads side information: pass side_info="):
        ComposedMap(Identity()).fit(None, points())
    with pytest.raises(DataError, match="MeanInput reads the points of the tasks"):
        ComposedMap(MeanInput()).fit(table(s=[1.0]))


def test_the_users_map_is_not_changed():
    mine, scaler = RandomFourier(4, random_state=0), StandardScaler()
    ComposedMap([mine, scaler]).fit(table(s=[1.0, 2.0]))
    assert not hasattr(mine, "U_")
    assert not hasattr(scaler, "mean_")


@pytest.mark.parametrize("make", [Identity, lambda: RandomFourier(2, random_state=0)])
def test_our_maps_need_numbers_without_gaps(make):
    with pytest.raises(DataError, match=r"Side column 'c' holds text \('x'.*\"auto\""):
        ComposedMap(make()).fit(table(c=["x", "y"]))
    with pytest.raises(DataError, match=r"Task 't1' has NaN .* side column 's'.*\"auto\""):
        ComposedMap(make()).fit(table(s=[1.0, None]))
    with pytest.raises(DataError, match="The task has NaN"):
        ComposedMap(make()).fit(table(s=[1.0])).transform(1, table=read_side_row({"s": None}))


# scikit-learn's transformers


def test_transformers_read_arrays_when_the_side_information_is_an_array():
    t = TaskTable(np.random.default_rng(0).normal(size=(6, 2)), range(6))
    phi = ComposedMap(Nystroem(n_components=3, random_state=0)).fit(t)
    expected = Nystroem(n_components=3, random_state=0).fit_transform(t.numeric())
    np.testing.assert_allclose(phi.transform(6, table=t), expected)
    assert phi.input_kinds_ == ["array"]
    assert phi.names_out_ == ("nystroem0", "nystroem1", "nystroem2")
    one = phi.transform(1, table=read_side_row(t.numeric()[2], columns=phi.columns_))
    np.testing.assert_allclose(one, expected[2:3])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_transformers_read_frames_and_sparse_output_is_made_dense(make):
    t = TaskTable(make({"size": [1.0, 3.0], "city": ["Rome", "Bonn"]}), ["a", "b"])
    by_column = make_column_transformer((StandardScaler(), ["size"]), (OneHotEncoder(), ["city"]))
    phi = ComposedMap(by_column.set_params(sparse_threshold=1.0)).fit(t)
    assert phi.transform(2, table=t).tolist() == [[-1, 0, 1], [1, 1, 0]]
    row = read_side_row({"size": 1.0, "city": "Bonn"})  # becomes a frame of the same kind
    assert phi.transform(1, table=row).tolist() == [[-1, 1, 0]]
    assert phi.names_out_[0] == "standardscaler__size"


def test_transformers_that_return_frames_are_read():
    t = TaskTable(pd.DataFrame({"size": [1.0, 3.0]}), ["a", "b"])
    phi = ComposedMap(StandardScaler().set_output(transform="pandas")).fit(t)
    assert phi.transform(2, table=t).tolist() == [[-1], [1]]


def test_object_arrays_reach_transformers_of_text():
    t = table(city=["Rome", "Bonn"])
    phi = ComposedMap(OneHotEncoder()).fit(t)
    assert phi.input_kinds_ == ["object"]
    assert phi.transform(2, table=t).tolist() == [[0, 1], [1, 0]]


def test_gaps_pass_if_the_transformer_fills_them():
    t = table(s=[1.0, None, 3.0])
    phi = ComposedMap(make_pipeline(SimpleImputer(), StandardScaler())).fit(t)
    assert phi.transform(3, table=t)[1, 0] == 0
    with pytest.raises(DataError, match=r"Task 't1' has NaN .* side column 's'.*\"auto\""):
        ComposedMap(StandardScaler()).fit(t)  # lets NaN through
    with pytest.raises(DataError, match=r"Task 't1' has NaN .* side column 's'.*\"auto\""):
        ComposedMap(Nystroem(n_components=2)).fit(t)  # refuses NaN itself


class AnyOutput(TransformerMixin, BaseEstimator):
    """A map that returns the output that a test asks for."""

    def __init__(self, output):
        self.output = output

    def fit(self, X, y=None):
        """Learn nothing."""
        return self

    def transform(self, X):
        """Return the wanted output."""
        return self.output(np.asarray(X))


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (lambda X: X[:, 0], r"feature map AnyOutput gave an array of shape \(2,\) .*\(2, k\)"),
        (lambda X: X[:1], r"shape \(1, 1\)"),
        (lambda X: X.astype(str), "expected numbers"),
        (lambda X: X / [[1.0], [0.5]] * [[1.0], [np.inf]], "Task 't1' got NaN or infinity from"),
    ],
)
def test_unusable_output_of_a_map_is_refused(output, sentence):
    with pytest.raises(DataError, match=sentence):
        ComposedMap(AnyOutput(output)).fit(table(s=[1.0, 2.0]))


def test_the_width_of_a_map_must_not_change():
    phi = ComposedMap(AnyOutput(lambda X: np.ones((len(X), len(X))))).fit(table(s=[1.0, 2.0]))
    with pytest.raises(DataError, match="feature map AnyOutput gave 3 features, expected 2"):
        phi.transform(3, table=table(s=[1.0, 2.0, 3.0]))


def test_later_tables_must_have_the_columns_of_fit():
    phi = ComposedMap(Identity()).fit(table(s=[1.0], t=[2.0]))
    assert phi.transform(1, table=table(t=[5.0], s=[4.0])).tolist() == [[4.0, 5.0]]
    with pytest.raises(DataError, match="lacks 't' and has the unknown 'u'"):
        phi.transform(1, table=table(s=[1.0], u=[2.0]))


def test_own_maps_of_points_need_only_transform_tasks():
    class Size:
        """Describe a task by its number of points."""

        def transform_tasks(self, X, y, offsets):
            """Return (T, 1)."""
            return np.diff(offsets)[:, None]

    phi = ComposedMap(Size()).fit(points=points())
    assert phi.reads_points
    assert phi.transform(3, points=points()).tolist() == [[4], [4], [4]]
    assert phi.names_out_ == ("size0",)
