"""Values are the same after JSON and arrays: type, bits and order."""

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from condmeta import feature_maps
from condmeta.errors import ModelFileError
from condmeta.feature_maps.training_ranges import TrainingRanges
from condmeta.persistence import decode, encode, register, registry

KERNELS = ["LinearKernel", "GaussianKernel", "LaplaceKernel", "AbelKernel", "MeanEmbedding"]


def through(value):
    """Encode, pass through JSON text as a file does, decode."""
    content, arrays = encode(value)
    return decode(json.loads(json.dumps(content, allow_nan=False)), [a.copy() for a in arrays])


def same(a, b):
    """Return whether two values are equal in type and bits, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and not isinstance(a, np.generic):
        return (math.isnan(a) and math.isnan(b)) or (a.hex() == b.hex())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if isinstance(a, np.ndarray | np.generic):
        if a.dtype == object:
            return a.shape == b.shape and same(a.ravel().tolist(), b.ravel().tolist())
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, datetime):
        return a == b and a.utcoffset() == b.utcoffset()
    return a == b


text = st.text(st.characters(codec=None), max_size=8)  # lone surrogates and NUL included
zones = st.none() | st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m)))
atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | text
    | st.dates()
    | st.datetimes(timezones=zones)
)
ids = atoms | st.tuples(atoms) | st.tuples(text, st.integers()) | st.just(())
dtypes = (
    hnp.floating_dtypes(sizes=(16, 32, 64))
    | hnp.integer_dtypes()
    | hnp.unsigned_integer_dtypes()
    | hnp.boolean_dtypes()
    | hnp.unicode_string_dtypes(max_len=5)
)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
values = st.recursive(
    ids | arrays | hnp.arrays(dtypes, 1).map(lambda a: a[0]),
    lambda part: (
        st.lists(part, max_size=4)
        | st.lists(part, max_size=4).map(tuple)
        | st.dictionaries(text, part, max_size=3)
        | st.dictionaries(ids, part, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(values)
def test_values_come_back_exactly(value):
    assert same(through(value), value)


@settings(deadline=None, max_examples=50)
@given(st.lists(ids, max_size=100))
def test_ids_come_back_exactly(given_ids):
    array = np.fromiter(given_ids, object, len(given_ids))
    assert same(through(array), array)
    assert same(through(given_ids), given_ids)


@pytest.mark.parametrize(
    "value",
    [
        slice(None, 3, 2),
        np.dtype("<f4"),
        np.dtype(object),
        np.float32,
        float,
        np.str_("a\0"),
        np.zeros(0, "U0"),
        np.array(["", "a\0b"]),
        np.array(3.5),
        np.array(["x", None], object).reshape(2, 1),
        2**20000,
        [-(2**63), 2**63 - 1, 2**63] * 40,
        {i: np.arange(i) for i in range(50)},
        {(i, "x"): i for i in range(50)},
        {f"store {i}": float(i) for i in range(50)},
        np.fromiter((np.arange(n) for n in range(3)), object, 3),
        np.arange(3, dtype=">i4"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_special_values(value):
    back = through(value)
    assert type(back) is type(value)
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        assert all(np.array_equal(a, b) for a, b in zip(back, value, strict=True))
    elif isinstance(value, dict):
        assert list(back) == list(value)
        assert all(np.array_equal(back[k], value[k]) for k in value)
    elif isinstance(value, np.ndarray):
        assert np.array_equal(back, value)
        assert back.shape == value.shape
    else:
        assert back == value


def test_order_in_memory_is_kept():
    matrix = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    back = through([matrix, matrix[:, ::2]])
    assert back[0].flags.f_contiguous
    assert not back[0].flags.c_contiguous
    assert np.array_equal(back[0], matrix)
    assert np.array_equal(back[1], matrix[:, ::2])


def test_long_id_columns_are_stored_as_arrays():
    for column in (
        range(1000),
        [f"store {i}" for i in range(1000)],
        [("a", i) for i in range(1000)],
    ):
        content, arrays = encode(np.fromiter(column, object, 1000))
        assert len(json.dumps(content)) < 200
        assert sum(a.nbytes for a in arrays) < 40_000


def test_one_long_id_does_not_widen_the_others():
    _, arrays = encode(["a"] * 1000 + ["b" * 10_000])
    assert sum(a.nbytes for a in arrays) < 30_000


def test_numpy_scalars_among_ids_become_equal_python_values():
    array = np.fromiter([np.int64(3), np.str_("x\0"), np.float32(0.1), np.True_], object, 4)
    back = through(array).tolist()
    assert back == array.tolist()
    assert [type(v) for v in back] == [int, str, float, bool]


class Vienna(tzinfo):
    """A zone with a rule of its own, as those of `zoneinfo`."""

    def utcoffset(self, when):
        return timedelta(hours=2 if 4 <= when.month <= 10 else 1)

    def dst(self, when):
        return self.utcoffset(when) - timedelta(hours=1)


def test_zones_become_offsets_of_the_same_instant():
    summer = datetime(2024, 7, 1, 12, tzinfo=Vienna())
    back = through([summer, datetime(2024, 7, 1, tzinfo=UTC), datetime(2024, 7, 1)])
    assert back[0] == summer
    assert hash(back[0]) == hash(summer)
    assert back[0].utcoffset() == timedelta(hours=2)
    assert back[1].tzinfo is UTC
    assert back[2].tzinfo is None
    assert type(through(date(2024, 7, 1))) is date


class Sub(dict):
    """Not a dict: a subclass has a behaviour of its own."""


class Holder:
    def __init__(self, part):
        self.part = part


@pytest.fixture
def holder(monkeypatch):
    monkeypatch.setattr(registry, "_BY_NAME", dict(registry._BY_NAME))
    monkeypatch.setattr(registry, "_BY_CLASS", dict(registry._BY_CLASS))
    return register(Holder)


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (lambda x: x, r"Holder\.part\['a'\]\[1\] is the function .*lambda.*pickle"),
        (open, "is the function open, which a model file cannot hold"),
        (Holder, "is the class Holder"),
        (b"bytes", "an object of class builtins.bytes"),
        (1j, "class builtins.complex"),
        ({1}, "class builtins.set"),
        (Sub(), "test_persistence_values.Sub"),
        (np.ma.array([1.0]), "MaskedArray"),
        (np.array([1j]), "an array of complex128"),
        (np.array(["2020"], "datetime64[D]"), r"an array of datetime64\[D\]"),
        (np.zeros(1, [("x", "f8")]), "an array of "),
        (np.array([object()], object), r"\[1\]\[0\] is an object of class builtins.object"),
        (np.random.default_rng(0), "Generator"),
        (deep(1000), "nested too deeply"),
    ],
    ids=lambda v: v[:20] if isinstance(v, str) else type(v).__name__,
)
def test_what_cannot_be_stored_is_named_with_its_place(holder, part, sentence):
    with pytest.raises(ModelFileError, match=sentence):
        encode(Holder({"a": [1, part]}))


def test_an_object_that_contains_itself_is_refused(holder):
    loop = Holder(None)
    loop.part = loop
    with pytest.raises(ModelFileError, match=r"Holder is nested too deeply .* or contains itself"):
        encode(loop)


def test_registered_objects_come_back_without_their_constructor(holder):
    back = through(Holder([Holder(np.arange(3)), None]))
    assert type(back) is Holder
    assert np.array_equal(back.part[0].part, np.arange(3))


def test_export_and_restore_of_ones_own(holder):
    @register(
        name="point", export=lambda p: {"xy": (p.x, p.y)}, restore=lambda cls, s: cls(*s["xy"])
    )
    class Point:
        __slots__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    assert encode(Point(1, 2))[0]["object"]["class"] == "point"
    assert (through(Point(1, 2)).x, through(Point(1, 2)).y) == (1, 2)


def test_subclasses_are_not_registered_with_their_base(holder):
    class Child(Holder):
        pass

    with pytest.raises(ModelFileError, match=r"Child, which a model file cannot hold"):
        encode(Child(1))


def test_a_name_belongs_to_one_class(holder):
    with pytest.raises(
        ValueError, match=r"already use the name 'Holder' for .*Give .*Sub another `name`"
    ):
        register(Sub, name="Holder")
    register(Holder)


@pytest.mark.parametrize("key", ["__class__", "a b", "", 3])
def test_keys_of_a_state_are_attribute_names(holder, key):
    register(Sub, export=lambda obj: {key: 1})
    with pytest.raises(ModelFileError, match=r"not an attribute name"):
        encode(Sub())
    with pytest.raises(ValueError, match=r"not an attribute name"):
        decode({"object": {"class": "Holder", "state": {key: 1}}}, [])


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("condmeta.losses", ["Loss", "LogisticLoss"]),
        ("condmeta.tasks", ["TaskTable"]),
        ("condmeta.feature_maps", feature_maps.__all__),
        ("condmeta.feature_maps.table_encoder", ["TableEncoder"]),
        ("condmeta.kernels", ["GramRows", "PointSets", "PrecomputedKernel", *KERNELS]),
        ("condmeta.kernels.side_readers", ["GramReader", "SetReader"]),
    ],
)
def test_classes_register_themselves(module, names):
    for name in names:
        cls = getattr(import_module(module), name)
        assert registry.find_by_class(cls).name == name


def test_old_files_know_training_ranges_as_seen_columns():
    assert registry.find_by_class(TrainingRanges).name == "SeenColumns"
