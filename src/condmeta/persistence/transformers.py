"""Foreign objects that model files may hold: scikit-learn transformers and their parts.

They are stored by their attributes: parameters and fitted arrays. A module is imported by its name
in the list below, when one of its objects is needed, and never by a name read from a file.
"""

import sys
from collections import UserList
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

from condmeta.errors import ModelFileError
from condmeta.persistence.fields import InvalidFieldError
from condmeta.persistence.registry import Entry, State, restore_attributes

_MODULES = {
    "sklearn.preprocessing": (
        *("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "Normalizer"),
        *("OneHotEncoder", "OrdinalEncoder", "SplineTransformer", "PolynomialFeatures"),
        *("KBinsDiscretizer", "QuantileTransformer", "PowerTransformer", "Binarizer"),
        # Without a function: `ColumnTransformer` uses it for a column that is passed through.
        "FunctionTransformer",
    ),
    "sklearn.impute": ("SimpleImputer", "MissingIndicator"),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.kernel_approximation": ("Nystroem", "RBFSampler"),
    "sklearn.compose": ("ColumnTransformer", "make_column_selector"),
    "sklearn.pipeline": ("Pipeline", "FeatureUnion"),
}
_MOST = {"degree": 100, "_max_degree": 100, "_n_out_full": 10**7}  # no file needs hours
_REQUEST = "_metadata_request"


def find_by_class(cls: type) -> Entry | None:
    """Return the entry of a class on the list."""
    for name, (module, *how) in _LISTED.items():
        # If its module was not imported, the class cannot be the class of this object.
        if getattr(sys.modules.get(module), name.rpartition(".")[2], None) is cls:
            return Entry(cls, name, *how)
    return None


def find_by_name(name: str) -> Entry | None:
    """Return the entry stored under a name; import the class if necessary."""
    if name not in _LISTED:
        return None
    module, *how = _LISTED[name]
    return Entry(getattr(import_module(module), name.rpartition(".")[2]), name, *how)


def estimator_state(estimator: Any) -> State:
    """Return the attributes of a scikit-learn estimator in a form that can be stored.

    Metadata requests (`set_fit_request`) refer back to the estimator; they become plain dicts.
    """
    state = {name: _plain(value) for name, value in vars(estimator).items()}
    request = state.pop(_REQUEST, None)
    if request is not None:
        asked = {name: getattr(part, "_requests", None) for name, part in vars(request).items()}
        state[_REQUEST] = {name: dict(values) for name, values in asked.items() if values}
    return state


def _plain(value: Any) -> Any:
    """Return a value with plain lists: a `ColumnTransformer` of scikit-learn 1.6 has its own."""
    if isinstance(value, UserList):
        return value.data
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def restore_estimator(cls: Any, state: State) -> Any:
    """Rebuild a scikit-learn estimator from its `estimator_state`.

    Its parameters are checked by its own rules. `n_jobs` is dropped: a file does not decide how
    many processes start.
    """
    asked = state.pop(_REQUEST, None)
    if "n_jobs" in state:
        state["n_jobs"] = None
    for name, most in _MOST.items():
        if isinstance(state.get(name), int) and state[name] > most:
            raise InvalidFieldError(name, f"must be at most {most}. Got {state[name]}")
    _check_degrees(state)
    estimator = restore_attributes(cls, state)
    if hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()
    absent = [name for name in signature(cls).parameters if not hasattr(estimator, name)]
    if absent:
        raise InvalidFieldError(absent[0], "is missing")
    if asked is not None:
        request = estimator._get_metadata_request()
        for method, values in asked.items():
            for value in values.values():
                if not (value is None or isinstance(value, bool | str)):
                    raise ValueError(f"{value!r} is not a metadata request")
            vars(request)[method]._requests = values
        setattr(estimator, _REQUEST, request)
    return estimator


def _check_degrees(state: State) -> None:
    """Raise if fitted polynomials have other degrees than their parameter says."""
    if "_max_degree" in state and "degree" in state:
        degree = state["degree"]
        low, high = degree if isinstance(degree, tuple) else (0, degree)
        for name, wanted in (("_min_degree", low), ("_max_degree", high)):
            if state.get(name) != wanted:
                raise InvalidFieldError(name, f"must be {wanted}, as 'degree' says")


def _pipeline_state(pipeline: Any) -> State:
    state = estimator_state(pipeline)
    if state["memory"] is not None:
        raise ModelFileError(
            "A Pipeline with a cache cannot be stored in a model file. Set its 'memory' parameter "
            "to None: fitted steps do not need it."
        )
    return state


def _restore_pipeline(cls: type, state: State) -> Any:
    # A cache is a folder of pickles; a later `fit` would open them.
    if state["memory"] is not None:
        raise ValueError("a Pipeline has a cache")
    return restore_estimator(cls, state)


def _spline_state(spline: Any) -> State:
    if spline.axis != 0:
        raise ModelFileError(f"A BSpline along axis {spline.axis} cannot be stored in a file.")
    return {"t": spline.t, "c": spline.c, "k": spline.k, "extrapolate": spline.extrapolate}


def _restore_spline(cls: type, state: State) -> Any:
    return cls(state["t"], state["c"], state["k"], extrapolate=state["extrapolate"])


def _random_state(generator: Any) -> State:
    state = generator.get_state(legacy=False)
    name = state["bit_generator"]
    if name != "MT19937":
        raise ModelFileError(
            f"A RandomState on {name} cannot be stored in a model file. Use one made from a seed."
        )
    place = {"key": state["state"]["key"], "position": state["state"]["pos"]}
    return place | {"has_gauss": state["has_gauss"], "cached": state["gauss"]}


def _restore_random_state(cls: type, state: State) -> Any:
    key, position = state["key"], state["position"]
    # NumPy does not check the position, and would read beyond the key.
    if key.shape != (624,) or key.dtype != np.uint32 or not 0 <= position <= 624:
        raise ValueError("the state of a random generator makes no sense")
    generator = cls()
    generator.set_state(("MT19937", key, position, state["has_gauss"], state["cached"]))
    return generator


_LISTED = {  # name in files: module, how to export, how to restore
    f"{module}.{name}": (module, estimator_state, restore_estimator)
    for module, names in _MODULES.items()
    for name in names
} | {
    "sklearn.pipeline.Pipeline": ("sklearn.pipeline", _pipeline_state, _restore_pipeline),
    "BSpline": ("scipy.interpolate", _spline_state, _restore_spline),
    "RandomState": ("numpy.random", _random_state, _restore_random_state),
}
