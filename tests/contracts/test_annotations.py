"""Every public function has type annotations that say something, so that editors complete."""

import ast
import functools
import inspect
import sys
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import condmeta
from condmeta import typing
from condmeta.kernels.set_kernels import BASES
from condmeta.learners.parameters import RULES
from condmeta.losses import LOSSES
from condmeta.tables.dates import PARTS


def public_objects():
    """Yield the classes and functions of the package and of its public modules."""
    for name in condmeta.__all__:
        value = getattr(condmeta, name)
        if not isinstance(value, ModuleType):
            yield value
            continue
        own = [
            member
            for member, one in vars(value).items()
            if getattr(one, "__module__", "") == value.__name__ and not member.startswith("_")
        ]
        for member in getattr(value, "__all__", own):
            yield getattr(value, member)


def functions_of(value):
    """Yield a public function, or the public methods and properties of a class."""
    if inspect.isfunction(value):
        yield value
    if not inspect.isclass(value):
        return
    for cls in value.__mro__:
        for member, one in vars(cls).items():
            if member.startswith("_") and member != "__init__":
                continue
            if isinstance(one, classmethod | staticmethod):
                one = one.__func__
            elif isinstance(one, property):
                one = one.fget
            one = getattr(one, "fn", one)  # inside `available_if`
            if inspect.isfunction(one) and one.__module__.startswith("condmeta"):
                yield one


FUNCTIONS = {
    f"{one.__module__}.{one.__qualname__}": one
    for value in public_objects()
    for one in functions_of(value)
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_is_annotated(name):
    signature = inspect.signature(FUNCTIONS[name])
    bare = [
        one.name
        for one in signature.parameters.values()
        if one.annotation is one.empty and one.name not in ("self", "cls")
    ]
    if not name.endswith(".__init__") and signature.return_annotation is signature.empty:
        bare.append("return")
    assert not bare, f"{name} has no annotations of {bare}"


# Public parameters, fields and results that are really of any type, and why.
ANYTHING = {
    "load.return": "the class that the file holds",
    "read_model.return": "the class that the file holds",
    "TableModel.learner_.return": "the class of the learner that the user gave",
    "get_loss.return": "the user's own object, with what it has beside `value` and `slope`",
    "OuterStep.start.return": "the state of a step: whatever it remembers",
    "OuterStep.step.state": "the state of a step: whatever it remembers",
    "TaskModel.__init__.state": "the state of an inner algorithm: whatever it remembers",
    "BestKernelMap.sides": "what a kernel of one's own reads of tasks",
    "encode.value": "any value that a file can hold",
    "encode.return": "the JSON of such a value",
    "decode.value": "the JSON of such a value",
    "decode.return": "any value that a file can hold",
    "write_model.obj": "any registered object",
    "register.cls": "a class: see the overloads",
    "register.return": "the class itself, or a decorator: see the overloads",
    "estimator_state.estimator": "any scikit-learn estimator",
    "restore_estimator.cls": "the class of such an estimator",
    "restore_estimator.return": "such an estimator",
    "TableModel.fit_dask.rows": "a DataFrame of Dask, which has no types",
    "TableModel.fit_dask.client": "a client of Dask, which has no types",
    "reproduce.client": "a client of Dask, which has no types",
}


@functools.cache
def tree_of(module):
    return ast.parse(Path(sys.modules[module].__file__).read_text())


def definitions(value):
    """Return the nodes of a function or class in its source; overloads are several nodes."""
    nodes = [tree_of(value.__module__)]
    for part in value.__qualname__.replace("<locals>.", "").split("."):
        nodes = [
            child
            for node in nodes
            for child in ast.walk(node)
            if isinstance(child, ast.FunctionDef | ast.ClassDef) and child.name == part
        ]
    return nodes


def annotations_of(function):
    """Yield the names and annotations of a function's parameters and of its result.

    Parameters **options are passed on, or refused: they may be anything.
    """
    args = function.args
    for one in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg):
        if one is not None and one.annotation is not None:
            yield one.arg, one.annotation
    if function.returns is not None:
        yield "return", function.returns


def is_anything(annotation, names=("Any",)):
    """Whether an annotation is Any, or a union with Any."""
    if isinstance(annotation, ast.BinOp):
        return is_anything(annotation.left, names) or is_anything(annotation.right, names)
    return isinstance(annotation, ast.Name) and annotation.id in names


def untyped():
    """Yield the public parameters, fields and results that are annotated by a bare Any."""
    for function in FUNCTIONS.values():
        for node in definitions(function):
            for name, annotation in annotations_of(node):
                # A result may be a `Frame`, a table of whatever library the input came from.
                names = ("Any",) if name == "return" else ("Any", "Frame")
                if is_anything(annotation, names):
                    yield f"{function.__qualname__}.{name}"
    for value in public_objects():
        for cls in value.__mro__ if inspect.isclass(value) else ():
            if not cls.__module__.startswith("condmeta"):
                continue
            for statement in definitions(cls)[0].body:
                is_field = isinstance(statement, ast.AnnAssign) and not (
                    statement.target.id.startswith("_")
                )
                if is_field and is_anything(statement.annotation):
                    yield f"{cls.__qualname__}.{statement.target.id}"


def test_annotations_say_something():
    assert set(untyped()) == set(ANYTHING)


def test_bare_any_is_seen():
    code = "def f(a: int | Any, b: dict[str, Any], *c: Any, d: Any = 1, **e: Any) -> Any: ..."
    found = {name: is_anything(one) for name, one in annotations_of(ast.parse(code).body[0])}
    assert found == {"a": True, "b": False, "d": True, "c": True, "return": True}


WORDS = [
    ("Averaging", condmeta.ConditionalSGDRegressor, "averaging"),
    ("ColdStart", condmeta.ConditionalRidge, "cold_start"),
    ("Conditioning", condmeta.ConditionalRidge, "conditioning"),
    ("CriterionName", condmeta.AutoRegressor, "criterion"),
    ("ErrorName", condmeta.ConditionalRidge, "criterion"),
    ("GradientAt", condmeta.ConditionalSGDRegressor, "gradient_at"),
    ("Metric", condmeta.ConditionalRidge, "metric"),
    ("MissingSide", condmeta.ConditionalRidge, "missing_side"),
    ("Noise", condmeta.ConditionalRidge, "noise"),
    ("Order", condmeta.AutoRegressor, "order"),
    ("Scale", condmeta.ConditionalRidge, "scale"),
    ("Search", condmeta.ConditionalSGDRegressorCV, "search"),
]


@pytest.mark.parametrize(("alias", "learner", "name"), WORDS)
def test_words_are_those_that_a_fit_takes(alias, learner, name):
    _, allowed = learner._rules.get(name) or RULES[name]
    for word in get_args(getattr(typing, alias)):
        assert repr(word) in allowed
    assert allowed.count("'") == 2 * len(get_args(getattr(typing, alias)))


def test_names_of_losses_and_kernels():
    assert set(get_args(typing.LossName)) == set(LOSSES)
    assert set(get_args(typing.KernelName)) == {*BASES, "precomputed"}
    assert set(get_args(typing.DatePart)) == set(PARTS)


def test_the_surface_is_not_empty():
    assert len(FUNCTIONS) > 300
    assert "condmeta.learners.learner.Learner.fit" in FUNCTIONS
    assert "condmeta.paper.theory.risk.excess_risk" in FUNCTIONS


def test_type_checkers_are_told_to_read_them():
    assert (files("condmeta") / "py.typed").is_file()
