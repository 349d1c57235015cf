"""Every public function has type annotations, so that editors can complete what it returns."""

import inspect
from importlib.resources import files
from types import ModuleType

import pytest

import condmeta


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


def test_the_surface_is_not_empty():
    assert len(FUNCTIONS) > 300
    assert "condmeta.learners.learner.Learner.fit" in FUNCTIONS
    assert "condmeta.paper.theory.risk.excess_risk" in FUNCTIONS


def test_type_checkers_are_told_to_read_them():
    assert (files("condmeta") / "py.typed").is_file()
