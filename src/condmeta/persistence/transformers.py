"""The short list of foreign objects in model files: scikit-learn transformers and their parts.

They are stored by their attributes: parameters and fitted arrays. Modules are imported by the names
that stand below, when an object of theirs is met, and never by a name read from a file.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from condmeta.errors import ModelFileError
from condmeta.persistence.registry import Entry, State, restore_attributes

_MODULES = {
    "sklearn.preprocessing": (
        *("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "Normalizer"),
        *("OneHotEncoder", "OrdinalEncoder", "SplineTransformer", "PolynomialFeatures"),
        *("KBinsDiscretizer", "QuantileTransformer", "PowerTransformer", "Binarizer"),
        # Without a function: `ColumnTransformer` puts it where a column is passed through.
        "FunctionTransformer",
    ),
    "sklearn.impute": ("SimpleImputer", "MissingIndicator"),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.kernel_approximation": ("Nystroem", "RBFSampler"),
    "sklearn.compose": ("ColumnTransformer", "make_column_selector"),
    "sklearn.pipeline": ("Pipeline", "FeatureUnion"),
}
_SKLEARN = {f"{module}.{name}": (module, name) for module in _MODULES for name in _MODULES[module]}
_PARTS = {"BSpline": "scipy.interpolate", "RandomState": "numpy.random"}
_REQUEST = "_metadata_request"


def find_by_class(cls: type) -> Entry | None:
    """Return the entry of a class on the list."""
    for name, (module, attribute) in _SKLEARN.items():
        # A class whose module was not imported cannot be the class of an object at hand.
        if getattr(sys.modules.get(module), attribute, None) is cls:
            return _sklearn_entry(name, cls)
    for name, module in _PARTS.items():
        if getattr(sys.modules.get(module), name, None) is cls:
            return _part_entry(name)
    return None


def find_by_name(name: str) -> Entry | None:
    """Return the entry stored under a name, and import the class if need be."""
    if name in _PARTS:
        return _part_entry(name)
    if name in _SKLEARN:
        module, attribute = _SKLEARN[name]
        return _sklearn_entry(name, getattr(import_module(module), attribute))
    return None


def estimator_state(estimator: Any) -> State:
    """Return the attributes of a scikit-learn estimator in a form that can be stored.

    Metadata requests (`set_fit_request`) refer back to the estimator; they become plain dicts.
    """
    state = dict(vars(estimator))
    request = state.pop(_REQUEST, None)
    if request is not None:
        methods = {
            method: getattr(part, "_requests", None) for method, part in vars(request).items()
        }
        state[_REQUEST] = {method: dict(asked) for method, asked in methods.items() if asked}
    return state


def restore_estimator(cls: type, state: State) -> Any:
    """Rebuild a scikit-learn estimator from its `estimator_state`."""
    asked = state.pop(_REQUEST, None)
    estimator = restore_attributes(cls, state)
    if asked is not None:
        request = estimator._get_metadata_request()
        for method, values in asked.items():
            for value in values.values():
                if not (value is None or isinstance(value, bool | str)):
                    raise ValueError(f"{value!r} is no metadata request")
            vars(request)[method]._requests = values
        setattr(estimator, _REQUEST, request)
    return estimator


def _sklearn_entry(name: str, cls: type) -> Entry:
    if cls.__name__ == "Pipeline":
        return Entry(cls, name, _pipeline_state, _restore_pipeline)
    return Entry(cls, name, estimator_state, restore_estimator)


def _pipeline_state(pipeline: Any) -> State:
    state = estimator_state(pipeline)
    if state["memory"] is not None:
        raise ModelFileError(
            "A Pipeline with a cache cannot be stored in a model file. Set its 'memory' parameter "
            "to None: fitted steps do not need it."
        )
    return state


def _restore_pipeline(cls: type, state: State) -> Any:
    # A cache is a folder of pickles, which a later `fit` would open.
    if state["memory"] is not None:
        raise ValueError("a Pipeline has a cache")
    return restore_estimator(cls, state)


def _part_entry(name: str) -> Entry:
    cls = getattr(import_module(_PARTS[name]), name)
    if name == "BSpline":
        return Entry(cls, name, _spline_state, _restore_spline)
    return Entry(cls, name, _random_state, _restore_random_state)


def _spline_state(spline: Any) -> State:
    if spline.axis != 0:
        raise ModelFileError(
            f"A BSpline along axis {spline.axis} cannot be stored in a model file."
        )
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
    return {
        "key": state["state"]["key"],
        "position": state["state"]["pos"],
        "has_gauss": state["has_gauss"],
        "cached": state["gauss"],
    }


def _restore_random_state(cls: type, state: State) -> Any:
    key, position = state["key"], state["position"]
    # NumPy does not check the position, and would read beyond the key.
    if key.shape != (624,) or key.dtype != np.uint32 or not 0 <= position <= 624:
        raise ValueError("the state of a random generator makes no sense")
    generator = cls()
    generator.set_state(("MT19937", key, position, state["has_gauss"], state["cached"]))
    return generator
