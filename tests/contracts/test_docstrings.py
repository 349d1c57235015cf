"""Docstrings stand alone: each parameter is explained where it is used, not in another class."""

import inspect
import re

import pytest
from sklearn.base import BaseEstimator

import condmeta

# `Shrinkage` is the result of `condmeta.shrink`, which documents its parameters.
LEARNERS = [
    name
    for name in condmeta.__all__
    if name not in ("Shrinkage", "TableModel", "__version__")
    and inspect.isclass(getattr(condmeta, name))
    and issubclass(getattr(condmeta, name), BaseEstimator)
]
METHODS = ["fit", "adapt", "update", "partial_fit", "predict", "predict_proba"]
METHODS += ["decision_function", "score", "n_points", "theta_for"]
ELSEWHERE = re.compile(r"\b[Aa]s for `|\bsee `Conditional\w+\.\w+`")
SHARED = ["missing_side", "task_column", "side_columns", "side_key", "keep_tasks", "n_jobs"]
SHARED += ["scale", "fit_intercept", "conditioning"]


def entries(obj) -> dict[str, str]:
    """Return the text of each parameter in the section Parameters of a docstring."""
    section = re.search(
        r"Parameters\n-+\n(.*?)(?=\n\n[A-Z][a-z]+\n-+\n|\Z)", inspect.getdoc(obj) or "", re.S
    )
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section[1].splitlines() if section else []:
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
            found |= dict.fromkeys(names, "")
        else:
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return found


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_explains_each_of_its_parameters(name):
    cls = getattr(condmeta, name)
    found = entries(cls)
    bare = [one for one in inspect.signature(cls).parameters if not found.get(one)]
    assert not bare, f"{name} does not explain {bare}"
    extra = set(found) - set(inspect.signature(cls).parameters)
    assert not extra, f"{name} explains parameters that it does not have: {extra}"


@pytest.mark.parametrize("name", LEARNERS)
def test_no_docstring_of_a_learner_sends_the_reader_elsewhere(name):
    cls = getattr(condmeta, name)
    methods = [getattr(cls, one) for one in METHODS if inspect.isfunction(getattr(cls, one, None))]
    for obj in (cls, *methods):
        assert not ELSEWHERE.search(inspect.getdoc(obj)), f"{obj.__qualname__} refers elsewhere"


@pytest.mark.parametrize(
    ("name", "method"),
    [
        (name, method)
        for name in LEARNERS
        for method in METHODS
        if inspect.isfunction(getattr(getattr(condmeta, name), method, None))
    ],
)
def test_a_method_explains_each_of_its_arguments(name, method):
    function = getattr(getattr(condmeta, name), method)
    arguments = [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.name != "self" and one.kind is not one.VAR_KEYWORD
    ]
    missing = [one for one in arguments if one not in entries(function)]
    assert not missing, f"{function.__qualname__} does not explain {missing}"


@pytest.mark.parametrize("parameter", SHARED)
def test_a_parameter_that_all_share_has_one_text(parameter):
    """The texts are written out in each class; this keeps them from drifting apart."""
    texts = {}
    for name in LEARNERS:
        found = entries(getattr(condmeta, name)).get(parameter)
        if found and (name, parameter) != ("KernelConditionalSGDRegressor", "missing_side"):
            texts.setdefault(found, []).append(name)
    assert len(texts) == 1, texts
