"""Draw inputs, weights and labels of many tasks at once.

Each ingredient has a random stream of its own, filled task by task. So with one seed the first
tasks of a long sample are those of a short one, and two environments that differ in one option
share all the other draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.splits import make_generator


class Streams(NamedTuple):
    """Hold one generator for each ingredient of a task."""

    place: np.random.Generator
    weights: np.random.Generator
    inputs: np.random.Generator
    noise: np.random.Generator


def open_streams(random_state: Any) -> Streams:
    """Return the streams of a seed; a Generator that is passed moves on, so its next draw differs.

    Examples
    --------
    >>> open_streams(0).place.random() == open_streams(0).place.random()
    True
    """
    entropy = int.from_bytes(make_generator(random_state).bytes(32), "little")
    children = np.random.SeedSequence(entropy).spawn(len(Streams._fields))
    return Streams(*map(np.random.default_rng, children))


def draw_inputs(
    rng: np.random.Generator, centers: np.ndarray, n: int, spread: float, inputs: str
) -> np.ndarray:
    """Draw n points around the centre (T, d) of each task: (T, n, d).

    "gaussian": centre + spread N(0, I); "unit": centre + spread u, u uniform on the unit sphere.
    """
    T, d = centers.shape
    steps = rng.standard_normal((T, n, d))
    if inputs == "unit":
        steps /= np.sqrt(np.einsum("tnd,tnd->tn", steps, steps))[:, :, None]
    steps *= spread
    steps += centers[:, None, :]
    return steps


def draw_labels(
    rng: np.random.Generator, X: np.ndarray, w: np.ndarray, snr: float | None, noise: float | None
) -> np.ndarray:
    """Draw y = <x, w> + noise, (T, n), for X (T, n, d) and w (T, d).

    The standard deviation of a task's noise is `noise`, or else that of its own clean labels
    (over its n points) divided by sqrt(snr), or else 0.
    """
    clean = (X @ w[:, :, None])[:, :, 0]
    if noise is None and snr is None:
        return clean
    spread = clean.std(axis=1, keepdims=True) / np.sqrt(snr) if noise is None else noise
    return clean + spread * rng.standard_normal(clean.shape)


def check_count(value: Any, name: str, owner: str) -> int:
    """Return a count of at least 1, or raise."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1:
        return int(value)
    raise wrong(name, owner, "an int of at least 1", value)


def check_spread(value: Any, name: str, owner: str, *, zero: bool = False) -> float:
    """Return a finite number above 0 (or from 0), or raise."""
    usable = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if usable and (0 < value < np.inf or (zero and value == 0)):
        return float(value)
    raise wrong(name, owner, f"a float in {'[' if zero else '('}0, inf)", value)


def check_labels(snr: Any, noise: Any, owner: str) -> tuple[float | None, float | None]:
    """Return the checked signal-to-noise ratio and noise level; None is allowed for both."""
    snr = None if snr is None else check_spread(snr, "snr", owner)
    return snr, None if noise is None else check_spread(noise, "noise", owner, zero=True)


def check_inputs(inputs: Any, owner: str) -> str:
    """Return the name of an input distribution, or raise."""
    if isinstance(inputs, str) and inputs in ("gaussian", "unit"):
        return inputs
    raise wrong("inputs", owner, "'gaussian' or 'unit'", inputs)


def check_center(value: Any, d: int, name: str, owner: str) -> np.ndarray:
    """Return a centre (d,), from one number for all coordinates or from d of them."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (d,)) or not np.isfinite(array).all():
        raise wrong(name, owner, f"a finite number or {d} of them", value)
    return frozen(np.broadcast_to(array, (d,)).copy())


def frozen(array: np.ndarray) -> np.ndarray:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


def wrong(name: str, owner: str, wanted: str, value: Any) -> DataError:
    """Return the error about a parameter."""
    return DataError(f"The {name!r} parameter of {owner} must be {wanted}. Got {value!r} instead.")
