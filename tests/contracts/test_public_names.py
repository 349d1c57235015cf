"""Every public name resolves, is documented by a doctest, and costs nothing until it is used."""

import ast
import doctest
import inspect
import json
import pkgutil
import re
import statistics
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import condmeta

NAMES = [name for name in condmeta.__all__ if name != "__version__"]
OBJECTS = [name for name in NAMES if not isinstance(getattr(condmeta, name), ModuleType)]
MODULES = [name for name in NAMES if name not in OBJECTS]
HEAVY = {"sklearn", "scipy", "pandas", "polars", "pyarrow", "narwhals", "matplotlib", "joblib"}


def members_of(module):
    """Return the public names of a module with their values: those listed, or its own."""
    if hasattr(module, "__all__"):
        return [(member, getattr(module, member)) for member in module.__all__]
    return [
        (member, value)
        for member, value in vars(module).items()
        if getattr(value, "__module__", "").startswith(module.__name__)
        and not member.startswith("_")
    ]


def public_members():
    """Yield the classes and functions that the public modules name in `__all__` or define."""
    for name in MODULES:
        module = getattr(condmeta, name)
        for member, value in members_of(module):
            if inspect.isclass(value) or inspect.isfunction(value):
                yield pytest.param(value, id=f"{name}.{member}")


def test_names_are_unique_and_listed():
    assert len(set(condmeta.__all__)) == len(condmeta.__all__)
    assert set(dir(condmeta)) == set(condmeta.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ConditionalMagic'"):
        condmeta.ConditionalMagic  # noqa: B018


def test_the_stub_for_type_checkers_lists_the_same_names():
    stub = Path(condmeta.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname: node.module for node in imports for alias in node.names}
    assert set(homes) == set(NAMES)
    for name, home in homes.items():
        value = getattr(condmeta, name)
        assert getattr(import_module(home), name) is value


@pytest.mark.parametrize("name", NAMES)
def test_name_resolves_and_is_documented(name):
    value = getattr(condmeta, name)
    first = inspect.getdoc(value).splitlines()[0]
    assert first.endswith("."), f"the first line of {name} is no sentence: {first!r}"


@pytest.mark.parametrize("name", OBJECTS)
def test_name_has_an_example_that_runs(name):
    value = getattr(condmeta, name)
    doc = inspect.getdoc(value)
    assert "Examples\n--------" in doc, f"{name} has no section Examples"
    assert doctest.DocTestParser().get_examples(doc), f"the example of {name} is no doctest"


@pytest.mark.parametrize("member", list(public_members()))
def test_member_of_a_public_module_is_documented(member):
    assert inspect.getdoc(member)


@pytest.mark.parametrize("name", [n for n in OBJECTS if isinstance(getattr(condmeta, n), type)])
def test_public_methods_are_documented(name):
    cls = getattr(condmeta, name)
    for member, value in inspect.getmembers(cls, inspect.isfunction):
        if not member.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"


def test_the_reference_lists_every_public_name():
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    listed, home = [], ""
    for line in page.splitlines():
        if line.startswith(".. currentmodule:: "):
            home = line.split()[-1].removeprefix("condmeta").lstrip(".")
        elif re.fullmatch(r"   \w+", line):
            listed.append(f"{home}.{line.strip()}".lstrip("."))
    expected = set(OBJECTS)
    for module in MODULES:
        for member, value in members_of(getattr(condmeta, module)):
            if not isinstance(value, ModuleType):
                expected.add(f"{module}.{member}")
    assert sorted(listed) == sorted(expected)


def test_every_module_imports():
    for module in pkgutil.walk_packages(condmeta.__path__, "condmeta."):
        if not module.name.startswith("condmeta.native."):
            __import__(module.name)


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_import_loads_numpy_alone():
    loaded = run("import condmeta, sys, json; print(json.dumps(sorted(sys.modules)))")
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(HEAVY)


CLOCK = (
    "from time import process_time as clock\n"
    "import json\n"
    "start = clock()\n"
    "import {}\n"
    "print(json.dumps(clock() - start))"
)


def test_import_costs_little_more_than_numpy():
    """At most 50 ms; in processor time, so that a busy machine does not count."""
    extra = [run(CLOCK.format("numpy, condmeta")) - run(CLOCK.format("numpy")) for _ in range(7)]
    assert statistics.median(extra) <= 0.050
