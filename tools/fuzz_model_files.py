"""Damage every field of every kind of model file, with checksums made anew.

    python tools/fuzz_model_files.py --rounds 20     # 20 random mutations of each field
    python tools/fuzz_model_files.py --models ridge auto --seed 3

A mutated file must be refused with a ModelFileError that names the field, or load; what loads must
give finite numbers where the original does, or a sentence of condmeta (DataError,
DivergenceError), or the error that the original gives. A call that takes longer than 10 seconds of
processor time is a hang; a file that takes a minute ends the study. Anything else is printed, and
the exit code is 1.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import faulthandler
import io
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import condmeta as cm
from condmeta.errors import DataError, DivergenceError, ModelFileError
from condmeta.persistence import container, registry
from tools import stored_models

PATIENCE = 10.0  # seconds of processor time
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 7, 10**6, 2**62, 0.5, -0.5, 1e-320, 1e308, -1e308, "", "x",
    "auto", "a" * 1000, "\x1b[31m", [], [1], ["x", "x"], {"float": "nan"}, {"float": "inf"},
    {"float": "-inf"}, {"int": "0x" + "f" * 40}, {"tuple": []}, {"tuple": [1, "x"]}, {"dict": {}},
    {"dict": {"x": 1}}, {"slice": [None, None, None]}, {"date": "2020-01-01"}, {"type": "float"},
    {"dtype": "<f8"}, {"scalar": ["<f8", "000000000000f87f"]}, {"scalar": ["<i8", "ff" * 8]},
    {"numpy.str": "x"}, {"map": [[1], [2]]}, {"objects": [[1], ["x"]]},
]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, -1, 0, 1, 2**31, -(2**62), 1e308, -1e308, 1e-320]


class Fault(NamedTuple):
    """A mutated file that was neither refused nor usable."""

    model: str
    mutation: str
    call: str
    error: str


class Contents(NamedTuple):
    """The parts of a model file."""

    card: dict
    model: Any
    arrays: list[np.ndarray]


def nodes(value: Any, path: tuple = ()):
    """Yield the place of every value in a JSON document."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from nodes(inner, (*path, key))


def at(value: Any, path: tuple) -> Any:
    """Return the value at a place."""
    for key in path:
        value = value[key]
    return value


def change_json(contents: Contents, path: tuple, rng) -> str:
    """Change the value at a place of the JSON; return what was done."""
    holder, key = at(contents.model, path[:-1]), path[-1]
    old = holder[key]
    kinds = ["replace"] * 3 + ["delete"]
    if isinstance(old, list) and old:
        kinds += ["shorten", "repeat", "swap"]
    if isinstance(old, int | float) and not isinstance(old, bool):
        kinds += ["other number"] * 2
    if key == "class":
        kinds = ["other class"]
    kind = rng.choice(kinds)
    if kind == "replace":
        holder[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    elif kind == "delete":
        del holder[key]
    elif kind == "shorten":
        old.pop(int(rng.integers(len(old))))
    elif kind == "repeat":
        old.append(copy.deepcopy(old[int(rng.integers(len(old)))]))
    elif kind == "swap":
        old.reverse()
    elif kind == "other number":
        holder[key] = old + int(rng.integers(-3, 4)) if isinstance(old, int) else old * -1.0
    else:
        known = sorted(registry._BY_NAME)
        holder[key] = known[int(rng.integers(len(known)))]
    new = holder[key] if kind in ("replace", "other number", "other class") else ""
    return f"{kind} {'/'.join(map(str, path))} {str(new)[:60]}"


def change_array(contents: Contents, index: int, rng) -> str:
    """Change one array; return what was done."""
    array = contents.arrays[index].copy()
    kinds = ["shape", "shorter", "longer", "dtype", "empty"]
    if array.size:
        kinds += ["value", "value", "value", "all", "shuffle"]
    kind = rng.choice(kinds)
    if kind == "value" or kind == "all":
        where = slice(None) if kind == "all" else int(rng.integers(array.size))
        value: Any = NUMBERS[rng.integers(len(NUMBERS))]
        if array.dtype.kind == "U":
            value = rng.choice(["", "x", "\x00", "yes"])
        elif array.dtype.kind in "iu":
            info = np.iinfo(array.dtype)
            choices = [-1, 0, 1, 10**6, info.max, info.min, array.flat[0], len(array)]
            value = min(max(int(choices[rng.integers(len(choices))]), info.min), info.max)
        elif array.dtype.kind == "b":
            value = not array.flat[0]
        with np.errstate(all="ignore"):
            array.flat[where] = value
        kind = f"{kind} {value}"
    elif kind == "shape":
        array = array[None] if array.ndim < 2 else array.reshape(-1)
    elif kind == "shorter":
        array = array[:-1]
    elif kind == "longer":
        array = np.concatenate([array, array[:1]]) if array.ndim else array
    elif kind == "dtype":
        to = ["<f4", "<i8", "<f8", "|b1", "<U3", ">f8"][rng.integers(6)]
        with contextlib.suppress(ValueError), np.errstate(all="ignore"), quiet():
            array = array.astype(to)
        kind = f"dtype {to}"
    elif kind == "empty":
        array = array[:0]
    else:
        array = rng.permutation(array.ravel()).reshape(array.shape)
    contents.arrays[index] = np.ascontiguousarray(array)
    return f"array {index} {kind}"


@contextlib.contextmanager
def quiet():
    """Let calls warn and print without showing it."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def answer(use, model) -> tuple[str, Any]:
    """Return "value" and whether it is finite, or the class of the error and its text."""
    try:
        with quiet(), np.errstate(all="ignore"):
            value = use(model)
    except Exception as error:
        return type(error).__name__, error
    if value is None:
        return "value", True
    array = np.asarray(value)
    return "value", array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def judge(expected: tuple[str, Any], found: tuple[str, Any]) -> str | None:
    """Return what is wrong with the answer of a model from a mutated file; None if nothing is."""
    kind, detail = found
    if kind == "value":
        return None if detail or expected != ("value", True) else "not finite"
    if isinstance(detail, DataError | DivergenceError | ModelFileError):
        return None
    if kind == expected[0] and kind != "value":
        return None
    return f"{kind}: {detail}"


def fuzz(name: str, rounds: int, seed: int, most: int | None = None) -> tuple[dict, list[Fault]]:
    """Mutate the file of one model; return counts by outcome, and the faults."""
    stored = stored_models.stored(name)
    rng = np.random.default_rng([seed, *name.encode()])
    counts, faults = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.condmeta"
        with quiet():
            stored.save(path)
        original = Contents(*container.read_container(path))
        expected = {call: answer(use, cm.load(path)) for call, use in stored.uses.items()}
        sentences = "value", "DataError"  # other calls are not for this model
        uses = {call: use for call, use in stored.uses.items() if expected[call][0] in sentences}
        places: list[Any] = [p for p in nodes(original.model) if len(p) > 1]
        places += list(range(len(original.arrays)))
        chosen = [place for place in places for _ in range(rounds)]
        if most is not None:
            chosen = [chosen[i] for i in rng.permutation(len(chosen))[:most]]
        for place in chosen:
            contents = copy.deepcopy(original)
            change = change_array if isinstance(place, int) else change_json
            what = change(contents, place, rng)
            faulthandler.dump_traceback_later(6 * PATIENCE, exit=True)
            outcome, new = try_file(path, contents, uses, expected)
            faulthandler.cancel_dump_traceback_later()
            counts[outcome] += 1
            faults += [Fault(name, what, call, error) for call, error in new]
    return counts, faults


def try_file(path, contents: Contents, uses, expected) -> tuple[str, list[tuple[str, str]]]:
    """Write and use one mutated file; return the outcome, and calls with what is wrong."""
    container.write_container(path, *contents)
    start = time.process_time()
    kind, detail = answer(lambda _: cm.load(path) and None, None)
    if kind == "ModelFileError":
        named = "its field" in str(detail) or "it holds an object of class" in str(detail)
        named |= "an array is not used" in str(detail)
        return "refused", [] if named else [("load", f"no field named: {detail}")]
    if kind != "value":
        return "fault", [("load", f"{kind}: {detail}")]
    faults = []
    for call, use in uses.items():
        begin = time.process_time()
        wrong = judge(expected[call], answer(use, cm.load(path)))
        if wrong is not None:
            faults.append((call, wrong))
        if time.process_time() - begin > PATIENCE:
            faults.append((call, f"took {time.process_time() - begin:.0f} s"))
    if time.process_time() - start > 5 * PATIENCE:
        faults.append(("all calls", "took too long"))
    return "fault" if faults else "usable", faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="mutations of each field")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, help="mutations of each model, at most")
    parser.add_argument("--models", nargs="*", default=stored_models.names())
    options = parser.parse_args()
    total, all_faults = collections.Counter(), []
    for name in options.models:
        counts, faults = fuzz(name, options.rounds, options.seed, options.most)
        total += counts
        all_faults += faults
        print(f"{name:24}", *(f"{key} {n}" for key, n in sorted(counts.items())), flush=True)
        for fault in faults:
            print("   ", fault.mutation, "|", fault.call, "|", fault.error[:200], flush=True)
    print("total", *(f"{key} {n}" for key, n in sorted(total.items())), f"faults {len(all_faults)}")
    return 1 if all_faults else 0


if __name__ == "__main__":
    sys.exit(main())
