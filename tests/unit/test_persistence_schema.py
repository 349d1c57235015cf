"""Every field of a model file is checked against the schema of its class, and named if wrong."""

import copy
import json
import warnings

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import StandardScaler

import condmeta as cm
from condmeta.errors import ModelFileError
from condmeta.persistence import container, read_model, registry, write_model
from condmeta.persistence.fields import (
    InvalidFieldError,
    Sizes,
    check_fields,
    counts,
    floats,
    ids,
    instance,
    labels,
    mapping,
    maybe,
    number,
    one_of,
    optional,
    sequence,
)
from tools import fuzz_model_files, stored_models, write_schema


def holds(field, value):
    return field.holds(value, Sizes(lambda part: None))


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (number(), [0, -1.5, np.float64(2)], [np.nan, np.inf, True, "1", None, 2**63, -(2**70)]),
        (number(above=0), [1e-300], [0, -1]),
        (number(low=0, whole=True), [0, 7], [-1, 1.0, True]),
        (number(infinite=True, low=0), [np.inf], [-np.inf, np.nan]),
        (floats("T d"), [np.zeros((2, 3))], [np.zeros(2), np.full((1, 1), np.nan)]),
        (floats("T", above=0), [np.ones(2), np.ones(0)], [np.zeros(1), np.ones(2, np.float32)]),
        (floats("T", nan=True), [np.array([np.nan, np.inf])], [np.zeros(2, ">f8")]),
        (counts("T"), [np.arange(3), np.array([0.5])], [np.array([-1]), np.array(["a"])]),
        (ids("T"), [np.array(["a", 1, None], object)], [np.array(["a", "a"], object), ["a"]]),
        (labels("2"), [np.array(["a", "b"]), np.array([0, 1])], [np.array([1, 1]), np.arange(3)]),
        (one_of("a", "b"), ["a"], ["c", 1, ["a"]]),
        (maybe(one_of("a")), ["a", None], ["b"]),
        (sequence(number(), "2"), [[1, 2], (1, 2)], [[1], [1, "a"], {1: 2, 2: 3}]),
        (sequence(one_of("a", "b"), distinct=True), [["a", "b"]], [["a", "a"]]),
        (mapping(number()), [{}, {"a": 1}], [{1: 1}, {"a": "b"}, []]),
    ],
)
def test_fields_hold_what_they_say(field, good, bad):
    assert [holds(field, value) for value in good] == [True] * len(good)
    assert [holds(field, value) for value in bad] == [False] * len(bad)


def test_sizes_are_the_same_in_all_fields():
    fields = {"W": floats("k+1 d"), "phi": floats("k"), "b": optional(floats("d"))}
    good = {"W": np.zeros((3, 2)), "phi": np.zeros(2)}
    check_fields(fields, good, Sizes(lambda part: None))
    for wrong in ({"phi": np.zeros(3)}, {"b": np.zeros(3)}, {"c": 1}, {"W": np.zeros((0, 2))}):
        (name,) = wrong
        with pytest.raises(InvalidFieldError, match=rf"^{name} "):
            check_fields(fields, good | wrong, Sizes(lambda part: None))
    with pytest.raises(InvalidFieldError, match="phi is missing; it must be an array"):
        check_fields(fields, {"W": np.zeros((3, 2))}, Sizes(lambda part: None))


def test_sizes_of_an_object_are_compared_with_those_around_it():
    sizes = Sizes(lambda value: ("State", {"T": 4, "d": 2}))
    assert sizes.fit("n", 4)
    assert instance("State", T="n").holds(object(), sizes)
    assert not instance("State", d="n").holds(object(), sizes)
    assert not instance("Other").holds(object(), sizes)


def test_every_class_has_a_schema():
    cm.load  # noqa: B018 - registers every class
    ours = [e for e in registry.entries() if e.cls.__module__.startswith("condmeta.")]
    assert [entry.name for entry in ours if entry.fields is None] == []


def test_a_schema_has_all_fields_of_its_class():
    """A field that someone adds to a class needs a line in its schema."""
    cm.load  # noqa: B018
    for entry in registry.entries():
        if entry.cls.__module__.startswith("condmeta.") and hasattr(entry.cls, "_fields"):
            assert set(entry.fields) >= set(entry.cls._fields), entry.name


def test_the_document_is_the_schema():
    assert write_schema.DOCUMENT.read_text(encoding="utf-8") == write_schema.text(), (
        "run python tools/write_schema.py"
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.condmeta"


def change(path, place, value):
    """Set a value of the stored JSON, with checksums made anew."""
    card, model, arrays = container.read_container(path)
    fuzz_model_files.at(model, place[:-1])[place[-1]] = value
    container.write_container(path, card, model, arrays)


def state(*fields):
    """Return the place of a field of nested objects."""
    return tuple(step for field in fields for step in ("object", "state", field))


@pytest.mark.parametrize(
    ("fields", "value", "sentence"),
    [
        (("fitted", "n_tasks"), "x", "fitted.n_tasks must be a whole number >= 0. Got 'x' instead"),
        (("fitted", "conditioning"), 3, "fitted.conditioning must be 'shared' or 'split'. Got 3"),
        (("fitted", "predictor", "scales", "y_offset"), None, "scales.y_offset must be a finite"),
        (
            ("fitted", "predictor", "scales", "y_offset"),
            {"int": "0x" + "f" * 40},
            "y_offset must be",
        ),
        (("fitted", "reader", "missing_side"), "no", "reader.missing_side must be 'error' or"),
        (("fitted", "tasks", "coef"), None, "tasks.coef must be an array .T, w. of finite float64"),
        (("fitted",), {"object": {"class": "Online", "state": {}}}, "fitted.lam is missing"),
        (("fitted", "extra"), 1, "fitted.extra is not a field of this class"),
    ],
)
def test_the_refusal_names_the_field(path, fields, value, sentence):
    stored_models.stored("sgd online").save(path)
    change(path, state(*fields), value)
    with pytest.raises(ModelFileError, match=f"is damaged: its field .*{sentence}"):
        cm.load(path)


def test_a_parameter_out_of_range_is_named(path):
    stored_models.stored("sgd online").save(path)
    change(path, (*state("params"), "dict", "lam"), -1.0)
    with pytest.raises(ModelFileError, match=r"The 'lam' parameter of .* must be .*Got -1.0"):
        cm.load(path)


@pytest.mark.parametrize("value", [[["low"], ["fair", "high"]], ["low", "low"], {"float": "nan"}])
def test_ordered_classes_that_are_none_are_named(path, value):
    """`partial_fit` would raise a ValueError."""
    stored_models.stored("ordered").save(path)
    change(path, (*state("params"), "dict", "classes"), value)
    with pytest.raises(ModelFileError, match=r"params\['classes'\] must hold two or more"):
        cm.load(path)


def test_classes_that_a_table_does_not_have_are_refused(path):
    """`predict` would raise an IndexError."""
    stored_models.stored("table classes").save(path)
    card, model, arrays = container.read_container(path)
    forged = [np.array([0.0, 2.0]) if array.tolist() == [0, 1] else array for array in arrays]
    container.write_container(path, card, model, forged)
    with pytest.raises(ModelFileError, match=r"TableModel\.learner_\.classes must be 0 to 1"):
        cm.load(path)


@pytest.mark.parametrize(("name", "number"), [("sgd log odds", 2), ("logistic", 2), ("ordered", 3)])
def test_a_class_that_is_missing_is_refused(path, name, number):
    """`predict` would raise an IndexError."""
    stored = stored_models.stored(name)
    stored.save(path)
    card, model, arrays = container.read_container(path)
    classes = stored.model.classes_
    cut = [array[:-1] if np.array_equal(array, classes) else array for array in arrays]
    container.write_container(path, card, model, cut)
    with pytest.raises(ModelFileError, match=rf"predictor\.classes must be {number} labels"):
        cm.load(path)


def put(path, name, stored_array, value):
    """Fill an array of the file of a model with one value."""
    stored_models.stored(name).save(path)
    card, model, arrays = container.read_container(path)
    (at,) = [i for i, array in enumerate(arrays) if np.array_equal(array, stored_array)]
    arrays[at] = np.full_like(arrays[at], value)
    container.write_container(path, card, model, arrays)


def test_standard_deviations_of_a_huge_prior_are_finite(path):
    """A = I + L^T S L / s2 is not positive definite after rounding."""
    factor = stored_models.stored("ridge of powers").model.fitted_.inner.factor
    put(path, "ridge of powers", factor, 2.0**31)
    X, task = stored_models.X[:3], stored_models.TASK[:3]
    _, std = cm.load(path).predict(X, task=task, return_std=True)
    assert np.isfinite(std).all()


@pytest.mark.parametrize("value", [2.0**31, 1e20])
@pytest.mark.parametrize("field", ["factors", "covariance", "statistics"])
def test_huge_numbers_in_groups_are_a_sentence(path, field, value):
    """`update` raised a LinAlgError: I - C Lambda or s2 I + S Q is singular after rounding."""
    stored = stored_models.stored("levels")
    fitted = stored.model.fitted_
    arrays = {
        "factors": fitted.inner.factors, "covariance": fitted.tasks.state.covariance,
        "statistics": fitted.state.whole.mean,
    }  # fmt: skip
    put(path, "levels", arrays[field], value)
    for name, use in stored.uses.items():
        found = fuzz_model_files.answer(use, cm.load(path))
        assert fuzz_model_files.judge(("value", True), found) is None, name


def test_tables_of_a_huge_mean_do_not_fail(path):
    mean = stored_models.stored("ridge").model.fitted_.scales.x_mean
    put(path, "ridge", mean, 1e308)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(cm.load(path).coef_frame()["adapted"]).all()


def test_a_huge_cold_start_is_refused(path):
    put(path, "ridge", stored_models.stored("ridge").model.fitted_.tau.cold, 1e308)
    with pytest.raises(ModelFileError, match=r"tau\.cold must be .* <= 1e\+101"):
        cm.load(path)


def test_huge_covariances_of_classes_are_refused(path):
    """Probabilities were not finite."""
    covariance = stored_models.stored("logistic").model.fitted_.tasks.state.covariance
    put(path, "logistic", covariance, 1e308)
    with pytest.raises(ModelFileError, match=r"state\.covariance must be .* <= 1e\+100"):
        cm.load(path)


def test_a_whole_number_beyond_64_bits_is_no_parameter(path):
    stored_models.stored("ridge wide").save(path)
    change(path, (*state("params"), "dict", "kappa"), {"int": "0x" + "f" * 40})
    with pytest.raises(ModelFileError, match="The 'kappa' parameter of ConditionalRidge must be"):
        cm.load(path)


def test_degrees_of_polynomials_are_those_of_their_parameter(path):
    stored_models.stored("x transform").save(path)
    steps = (*state("fitted", "predictor", "scales", "transformer"), "object", "state", "steps")
    place = (*steps, 1, "tuple", 1, "object", "state", "_max_degree")
    change(path, place, 5)
    with pytest.raises(ModelFileError, match="_max_degree must be 2, as 'degree' says"):
        cm.load(path)


@pytest.mark.parametrize("unit", ["weeks", None, 3])
def test_the_unit_of_times_is_that_of_the_drift(path, unit):
    stored_models.stored("drift").save(path)
    change(path, (*state("fitted", "info"), "dict", "time"), unit)
    with pytest.raises(ModelFileError, match=r"info\['time'\] must be 'numbers'"):
        cm.load(path)


@pytest.mark.parametrize(
    ("name", "fields", "value", "sentence"),
    [
        ("table", ("roles", "trials"), "price", "schema_.roles.trials must be None with this le"),
        ("table classes", ("classes",), {"list": ["a"]}, "schema_.classes must be the 2 of the l"),
        ("table", ("classes",), {"list": ["a", "b"]}, "schema_.classes must be the 0 of the le"),
    ],
)
def test_the_learner_of_a_table_predicts_what_the_schema_says(path, name, fields, value, sentence):
    stored_models.stored(name).save(path)
    change(path, state("schema_", *fields), value)
    with pytest.raises(ModelFileError, match=sentence):
        cm.load(path)


def test_features_of_points_need_a_map_that_reads_points(path):
    """`partial_fit` would join them with none."""
    stored_models.stored("ridge of points").save(path)
    change(path, state("fitted", "reader", "map", "feature_map"), "auto")
    with pytest.raises(ModelFileError, match=r"reader\.map must read points"):
        cm.load(path)


def test_a_number_of_points_that_would_overflow_is_refused(path):
    stored = stored_models.stored("sgd online")
    stored.save(path)
    card, model, arrays = container.read_container(path)
    count = stored.model.fitted_.tasks.state.count
    for at, array in enumerate(arrays):
        if np.array_equal(array, count):
            arrays[at] = np.full_like(count, 2**63 - 1)
    container.write_container(path, card, model, arrays)
    with pytest.raises(ModelFileError, match=r"must be .* of int64 >= 0 and <= 1e\+15"):
        cm.load(path)


def test_trees_with_a_cycle_are_refused(path):
    """`predict` would go round for ever."""
    stored = stored_models.stored("ridge on trees")
    stored.save(path)
    card, model, arrays = container.read_container(path)
    trees = stored.model.fitted_.predictor.shared.model
    at = next(i for i, a in enumerate(arrays) if np.array_equal(a, trees.left))
    parent = int(np.flatnonzero(trees.left != np.arange(len(trees.left)))[0])
    child = int(trees.left[parent])
    arrays[at][child] = parent
    container.write_container(path, card, model, arrays)
    with pytest.raises(ModelFileError, match=r"model.left must name later nodes of the same tree"):
        cm.load(path)


def test_n_jobs_of_a_transformer_is_dropped(path):
    made = ColumnTransformer([("z", StandardScaler(), [0])]).fit(np.eye(3)[:, :1])
    made.set_params(n_jobs=10_000)  # after fit, which would start as many processes
    write_model(path, made, card={})
    assert read_model(path).n_jobs is None


def test_n_jobs_of_a_learner_is_bounded(path):
    stored_models.stored("sgd online").save(path)
    change(path, (*state("params"), "dict", "n_jobs"), 10**6)
    with pytest.raises(ModelFileError, match=r"params\['n_jobs'\] must be at most 1024"):
        cm.load(path)


def test_inspect_shows_control_characters_as_escapes(path):
    from click.testing import CliRunner

    from condmeta.cli.app import app

    stored_models.stored("sgd online").save(path)
    card, model, arrays = container.read_container(path)
    card["settings"] = {"lam\x1b]0;title\x07": "\x1b[31mred\nline \u202e", "rows": [{}]}
    container.write_container(path, card, model, arrays)
    done = CliRunner().invoke(app, ["inspect", str(path)])
    assert done.exit_code == 0, done.output
    assert not {"\x1b", "\x07", "\u202e"} & set(done.output)
    assert r"\x1b[31mred\nline \u202e" in done.output


def test_a_field_cannot_hide_a_method(path):
    write_model(path, StandardScaler().fit(np.eye(3)), card={})
    change(path, state("transform"), "x")
    with pytest.raises(ModelFileError, match=r"its field .*transform would hide a method"):
        read_model(path)


def test_predictions_that_overflow_are_a_sentence(path):
    stored_models.stored("sgd batch").save(path)
    card, model, arrays = container.read_container(path)
    coef = stored_models.stored("sgd batch").model.fitted_.tasks.coef
    for array in arrays:
        if array.shape == coef.shape and np.array_equal(array, coef):
            array[:] = 1e308
    container.write_container(path, card, model, arrays)
    with pytest.raises(cm.errors.DataError, match=r"prediction of row \d+ leaves the range"):
        cm.load(path).predict(10 * np.ones_like(stored_models.X), task=stored_models.TASK)


def test_slices_by_columns_keep_their_order_in_memory(path):
    """A product of matrices has the same bits only with the same order."""
    whole = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    write_model(path, {"rows": whole[:2], "columns": whole[:, :2]}, card={})
    again = read_model(path)
    assert again["rows"].flags.f_contiguous
    assert again["columns"].flags.f_contiguous


@pytest.mark.parametrize("name", stored_models.names())
def test_a_mutated_field_is_refused_by_name_or_the_model_can_be_used(name):
    """The short form of tools/fuzz_model_files.py: 6 mutations of each kind of model."""
    counted, faults = fuzz_model_files.fuzz(name, rounds=1, seed=1, most=6)
    assert faults == []
    assert sum(counted.values()) == 6


def test_the_mutator_changes_every_kind_of_value():
    """It would be a poor test if the mutations did nothing."""
    rng = np.random.default_rng(0)
    original = fuzz_model_files.Contents({}, {"a": [1, 2, {"class": "Online"}]}, [np.arange(3.0)])
    before = json.dumps(original.model)
    changed = set()
    for place in [p for p in fuzz_model_files.nodes(original.model) if p]:
        for _ in range(20):
            contents = copy.deepcopy(original)
            fuzz_model_files.change_json(contents, place, rng)
            if json.dumps(contents.model) != before:
                changed.add(place)
    assert changed == {p for p in fuzz_model_files.nodes(original.model) if p}


def test_the_models_hold_every_class():
    """A class that no stored model holds is not attacked."""
    found = set()

    def walk(value):
        if isinstance(value, dict):
            if set(value) == {"class", "state"}:
                found.add(value["class"])
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    from condmeta.persistence.encoder import encode

    for name in stored_models.names():
        walk(encode(stored_models.stored(name).model)[0])
    cm.load  # noqa: B018
    ours = {e.name for e in registry.entries() if e.cls.__module__.startswith("condmeta.")}
    assert ours - found == set()


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("mean", (0, 0), -1e308), ("mean", (3, -1), 1e160), ("triangles", (0, 0), -1.0),
        ("triangles", (2, 5), 1e308), ("triangles", (2, 1), -1e160),
    ],
)  # fmt: skip
def test_statistics_that_no_rows_have_are_refused(path, name, at, value):
    """They loaded, and `partial_fit` then failed in the middle of the linear algebra."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(60, 2)), np.repeat(np.arange(20), 3)
    model = cm.ConditionalRidge().fit(X, X[:, 0] + rng.normal(size=60), task=task)
    state = model.fitted_.state
    numbers = getattr(state.whole, name).copy()
    numbers[at] = value
    whole = state.whole._replace(**{name: numbers})
    model._model = model.fitted_._replace(state=state._replace(whole=whole))
    model.save(path)
    with pytest.raises(ModelFileError, match=rf"state\.whole\.{name} must"):
        cm.load(path)
