"""Measure how much of the package a reader meets: classes, files, functions, hidden state.

    python tools/measure_house.py [SRC]

SRC is the folder that holds `condmeta` (default: src of this checkout). A small seeded data set is
fitted on the NumPy engine; each call runs once before it is measured, so that imports do not count.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import Counter
from pathlib import Path

SRC = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "src").resolve()
HOME = SRC / "condmeta"
os.environ["CONDMETA_ENGINE"] = "numpy"
sys.path.insert(0, str(SRC))
# an editable install would come before SRC
sys.meta_path[:] = [f for f in sys.meta_path if "_editable_" not in type(f).__module__]

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import condmeta as cm  # noqa: E402
from condmeta.feature_maps import ComposedMap  # noqa: E402

OWN = {"self", "cls", "np", "super()"}  # x in x._name that is no other object
TUPLES = {"_replace", "_asdict", "_fields", "_make"}  # public methods of named tuples


def entered(call) -> tuple[int, int]:
    """Return how many functions and files of condmeta a call enters."""
    call()
    codes = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(HOME)):
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(codes), len({code.co_filename for code in codes})


def counted(cls: type, name: str, call) -> int:
    """Return how often a call runs a method of a class."""
    method, times = getattr(cls, name), 0

    def noting(self, *args, **kwargs):
        nonlocal times
        times += 1
        return method(self, *args, **kwargs)

    setattr(cls, name, noting)
    try:
        call()
    finally:
        setattr(cls, name, method)
    return times


def private_reaches(tree: ast.AST) -> int:
    """Count x._name where x is another object."""
    return sum(
        isinstance(node, ast.Attribute)
        and re.match("_[^_]", node.attr) is not None
        and node.attr not in TUPLES
        and ast.unparse(node.value) not in OWN
        for node in ast.walk(tree)
    )


def rows() -> list[tuple[str, object]]:
    """Return what is measured, and the numbers."""
    rng = np.random.default_rng(0)
    ids = [f"t{t}" for t in range(30)]
    side = pd.DataFrame({"size": rng.normal(size=30), "kind": rng.choice(["a", "b"], size=30)}, ids)
    X = pd.DataFrame(rng.normal(size=(150, 2)), columns=["x1", "x2"])
    y = np.repeat(side["size"].to_numpy(), 5) * X["x1"] + 0.1 * rng.normal(size=150)
    task = pd.Series(np.repeat(ids, 5), name="task")
    row = {"size": 0.5, "kind": "a"}

    def fit():
        return cm.ConditionalRidge().fit(X, y, task=task, side_info=side)

    model = fit()
    own = [c for c in cm.ConditionalRidge.__mro__ if c.__module__.startswith("condmeta")]
    calls = {
        "fit": fit,
        "predict of known tasks": lambda: model.predict(X, task=task),
        "adapt of one task": lambda: model.adapt(X[:3], y[:3], side_info=row),
    }
    found: list[tuple[str, object]] = [
        ("own classes in the MRO of ConditionalRidge", len(own)),
        ("files that they are in", len({c.__module__ for c in own})),
    ]
    for name, call in calls.items():
        functions, files = entered(call)
        found.append((f"functions / files entered by {name}", f"{functions} / {files}"))
    hidden = sorted(name for name in vars(model) if name.startswith("_"))
    found.append(("underscore attributes after fit", f"{len(hidden)}: {' '.join(hidden)}"))
    found.append(("fits of the side map in one fit", counted(ComposedMap, "fit", fit)))

    texts = [path.read_text(encoding="utf-8") for path in HOME.rglob("*.py")]
    trees = [ast.parse(text) for text in texts]
    classes = Counter(
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    twice = [f"{name} ({times})" for name, times in sorted(classes.items()) if times > 1]
    found += [
        ("uses of __dict__", sum(text.count("__dict__") for text in texts)),
        ("private reaches into other objects", sum(map(private_reaches, trees))),
        ("class names that occur more than once", f"{len(twice)}: {', '.join(twice)}"),
        ("files of Python in src", len(texts)),
        ("lines of Python in src", sum(text.count("\n") for text in texts)),
    ]
    return found


def main() -> None:
    """Print the table."""
    print("| measured | now |\n|---|---|")
    for name, value in rows():
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
