"""scikit-learn transformers: listed ones transform the same after loading; others are refused."""

import re
from collections import UserList

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.interpolate import BSpline
from sklearn import compose, decomposition, impute, kernel_approximation, pipeline, preprocessing
from sklearn.cluster import KMeans
from sklearn.linear_model import Ridge

from condmeta.errors import ModelFileError
from condmeta.persistence import (
    decode,
    encode,
    model_file,
    read_card,
    read_model,
    transformers,
    write_model,
)

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(40, 3))
GAPS = np.where(RNG.random((40, 3)) < 0.2, np.nan, NUMBERS)
WORDS = np.array(RNG.choice(["red", "green", "blue"], (40, 2)), object)
WITH_GAPS = np.where(RNG.random((40, 2)) < 0.2, None, WORDS)
QUANTILES = {"quantile_method": "averaged_inverted_cdf"}  # scikit-learn 1.6 does not ask for one
if "quantile_method" not in preprocessing.KBinsDiscretizer().get_params():
    QUANTILES = {}
FRAME = pd.DataFrame({"size": NUMBERS[:, 0], "age": GAPS[:, 1], "kind": WORDS[:, 0]})

pre = preprocessing
CASES = [
    (pre.StandardScaler(), NUMBERS),
    (pre.StandardScaler(), FRAME[["size", "age"]]),
    (pre.MinMaxScaler(clip=True), NUMBERS),
    (pre.RobustScaler(quantile_range=(10.0, 90.0)), NUMBERS),
    (pre.MaxAbsScaler(), NUMBERS),
    (pre.Normalizer(), NUMBERS),
    (pre.Binarizer(threshold=0.3), NUMBERS),
    (pre.OneHotEncoder(), WORDS),
    (pre.OneHotEncoder(sparse_output=False, handle_unknown="ignore", dtype=float), WITH_GAPS),
    (pre.OneHotEncoder(min_frequency=15, handle_unknown="infrequent_if_exist"), WORDS),
    (pre.OneHotEncoder(drop="first", sparse_output=False), WORDS.astype("U5")),
    (pre.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), WITH_GAPS),
    (pre.SplineTransformer(), NUMBERS),
    (pre.SplineTransformer(extrapolation="periodic", knots="quantile", degree=2), NUMBERS),
    (pre.SplineTransformer(sparse_output=True), NUMBERS),
    (pre.PolynomialFeatures(degree=(1, 3), interaction_only=True), NUMBERS),
    (pre.KBinsDiscretizer(**QUANTILES), NUMBERS),
    (pre.KBinsDiscretizer(encode="ordinal", strategy="uniform"), NUMBERS),
    (pre.QuantileTransformer(n_quantiles=10, output_distribution="normal"), NUMBERS),
    (pre.PowerTransformer(), NUMBERS),
    (pre.FunctionTransformer(), NUMBERS),
    (impute.SimpleImputer(add_indicator=True), GAPS),
    (impute.SimpleImputer(strategy="most_frequent", missing_values=None), WITH_GAPS),
    (impute.MissingIndicator(features="all"), GAPS),
    (decomposition.PCA(2, whiten=True), NUMBERS),
    (decomposition.PCA(2, svd_solver="randomized", random_state=np.random.RandomState(3)), NUMBERS),
    (decomposition.TruncatedSVD(2, random_state=0), NUMBERS),
    (kernel_approximation.Nystroem(n_components=7, random_state=0, gamma=0.5), NUMBERS),
    (kernel_approximation.Nystroem(kernel="polynomial", degree=2, n_components=7), NUMBERS),
    (kernel_approximation.RBFSampler(n_components=7, gamma="scale", random_state=0), NUMBERS),
    (pipeline.make_pipeline(impute.SimpleImputer(), pre.StandardScaler(), "passthrough"), GAPS),
    (pipeline.FeatureUnion([("a", decomposition.PCA(1)), ("b", "passthrough")]), NUMBERS),
    (
        compose.ColumnTransformer(
            [
                (
                    "a",
                    pipeline.make_pipeline(impute.SimpleImputer(), pre.StandardScaler()),
                    ["age"],
                ),
                ("b", pre.OneHotEncoder(sparse_output=False), ["kind"]),
                ("c", "passthrough", slice(0, 1)),
            ]
        ),
        FRAME,
    ),
    (
        compose.make_column_transformer(
            (pre.StandardScaler(), compose.make_column_selector(dtype_include=np.number)),
            remainder=pre.OneHotEncoder(),
        ),
        FRAME,
    ),
    (pre.StandardScaler().set_output(transform="pandas"), FRAME[["size"]]),
]


def dense(values):
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


def without_addresses(obj):
    return re.sub("0x[0-9a-fA-F]+", "", repr(obj))


@pytest.mark.parametrize(("transformer", "X"), CASES, ids=lambda v: type(v).__name__)
def test_the_same_transform_after_loading(tmp_path, transformer, X):
    before = sklearn.clone(transformer).fit(X)
    expected = before.transform(X)
    write_model(tmp_path / "map", before, card={})
    after = read_model(tmp_path / "map")
    assert type(after) is type(before)
    assert type(after.transform(X)) is type(expected)
    np.testing.assert_array_equal(dense(after.transform(X)), dense(expected))
    assert without_addresses(after) == without_addresses(before)
    assert list(after.get_params()) == list(before.get_params())
    if hasattr(before, "get_feature_names_out"):
        assert list(after.get_feature_names_out()) == list(before.get_feature_names_out())


def test_every_class_on_the_list_is_tested():
    seen = {
        part["class"]
        for transformer, X in CASES
        for part in objects(encode(sklearn.clone(transformer).fit(X))[0])
    }
    assert seen == set(transformers._LISTED)


def objects(content):
    if isinstance(content, dict):
        if "object" in content:
            yield content["object"]
        content = list(content.values())
    if isinstance(content, list):
        for part in content:
            yield from objects(part)


def test_an_unfitted_transformer_comes_back_unfitted():
    back = decode(*encode(pre.StandardScaler(with_mean=False)))
    assert back.get_params() == pre.StandardScaler(with_mean=False).get_params()
    assert not hasattr(back, "mean_")


@pytest.mark.parametrize(
    ("transformer", "sentence"),
    [
        (KMeans(), "KMeans is an object of class sklearn.cluster._kmeans.KMeans, which a model"),
        (pre.FunctionTransformer(np.log1p), r"FunctionTransformer\.func is .*pickle"),
        (kernel_approximation.Nystroem(kernel=min), r"Nystroem\.kernel is the function min"),
        (
            pipeline.make_pipeline(pre.StandardScaler(), Ridge()),
            r"Pipeline\.steps\[1\]\[1\] is an object of class .*Ridge",
        ),
        (
            compose.make_column_transformer((pre.StandardScaler(), lambda X: [0])),
            r"ColumnTransformer\.transformers\[0\]\[2\] is the function",
        ),
        (
            pipeline.make_pipeline(pre.StandardScaler(), memory="cache"),
            "Pipeline: A Pipeline with a cache cannot be stored .* 'memory' parameter to None",
        ),
        (
            BSpline(np.arange(6.0), np.ones((2, 3)), 2, axis=1),
            "A BSpline along axis 1 cannot be stored",
        ),
        (
            np.random.RandomState(np.random.PCG64(0)),
            "A RandomState on PCG64 cannot be stored",
        ),
    ],
    ids=lambda v: type(v).__name__,
)
def test_others_are_refused(transformer, sentence):
    with pytest.raises(ModelFileError, match=sentence):
        encode(transformer)


def test_subclasses_of_listed_transformers_are_refused():
    class StandardScaler(pre.StandardScaler):
        pass

    with pytest.raises(ModelFileError, match=r"which a model file cannot hold"):
        encode(StandardScaler())


def test_random_state_goes_on_where_it_was():
    generator = np.random.RandomState(7)
    generator.normal(size=3)
    back = decode(*encode(generator))
    assert back.normal(size=5).tolist() == generator.normal(size=5).tolist()


@pytest.mark.parametrize("position", [-1, 625, 10**6])
def test_a_crafted_random_state_cannot_read_foreign_memory(position):
    content, arrays = encode(np.random.RandomState(0))
    content["object"]["state"]["position"] = position
    with pytest.raises(ValueError, match=r"makes no sense"):
        decode(content, arrays)


def test_a_crafted_pipeline_cannot_open_a_cache_of_pickles():
    content, arrays = encode(pipeline.make_pipeline(pre.StandardScaler()))
    content["object"]["state"]["memory"] = "/tmp/cache"
    with pytest.raises(ValueError, match=r"a Pipeline has a cache"):
        decode(content, arrays)


def test_metadata_requests_are_kept():
    with sklearn.config_context(enable_metadata_routing=True):
        before = pre.StandardScaler().set_fit_request(sample_weight="w").fit(NUMBERS)
        after = decode(*encode(before))
        assert after.get_metadata_routing().fit.requests == {"sample_weight": "w"}
        assert after.get_metadata_routing().transform.requests == {"copy": None}
    content, arrays = encode(before)
    content["object"]["state"]["_metadata_request"] = {"dict": {"fit": {"dict": {"w": [1]}}}}
    with pytest.raises(ValueError, match=r"not a metadata request"):
        decode(content, arrays)


def test_another_version_of_scikit_learn_warns_once_and_only_where_it_matters(
    tmp_path, monkeypatch
):
    versions = {"scikit-learn": "1.2.3"}
    monkeypatch.setattr(model_file, "_version", lambda package: versions.get(package, "0.1"))
    write_model(tmp_path / "with", [pre.StandardScaler(), pre.Normalizer()], card={})
    write_model(tmp_path / "without", {"M": NUMBERS}, card={})
    assert read_card(tmp_path / "with")["scikit_learn_version"] == "1.2.3"
    versions["scikit-learn"] = "1.2.9"
    read_model(tmp_path / "with")
    versions["scikit-learn"] = "1.3.0"
    with pytest.warns(
        UserWarning, match=r"saved with scikit-learn 1\.2\.3, and this is 1\.3\.0"
    ) as got:
        read_model(tmp_path / "with")
    assert len(got) == 1
    assert got[0].filename == __file__
    read_model(tmp_path / "without")


def test_lists_of_a_class_of_scikit_learn_are_stored_as_lists():
    """In scikit-learn 1.6 the columns of a remainder are a list of a private class."""
    known = compose.ColumnTransformer([("a", pre.StandardScaler(), [0])], remainder="passthrough")
    known.fit(NUMBERS)
    known._remainder = (*known._remainder[:2], UserList([1, 2]))
    again = decode(*encode(known))
    assert again._remainder[2] == [1, 2]
    assert type(again._remainder[2]) is list
    np.testing.assert_array_equal(again.transform(NUMBERS), known.transform(NUMBERS))
